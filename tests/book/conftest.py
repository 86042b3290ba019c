"""What tests of this book share: pages with its live models."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.book.live import LIVE, Model


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Model], Path]:
    """Writes a page with a live model beside the scripts, at the depth of a chapter, once for each model."""

    @cache
    def write(model: Model) -> Path:
        site = tmp_path_factory.mktemp(model.name)
        (site / "_static" / "live").mkdir(parents=True)
        for script in ("kernel", model.name):
            shutil.copy(LIVE / f"{script}.js", site / "_static" / "live")
        (site / "notebooks").mkdir()
        path = site / "notebooks" / "page.html"
        path.write_text(
            '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8"></head><body><main>'
            f'<figure id="{model.id}"><div class="book-picture">{model.still}</div></figure>'
            f"{model.markup}</main></body></html>"
        )
        return path

    return write


@pytest.fixture
def page(request: pytest.FixtureRequest, page_of: Callable[[Model], Path]) -> Path:
    """The page of the model of the module that asks."""
    return page_of(request.module.MODEL)
