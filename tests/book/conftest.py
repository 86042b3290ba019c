"""What tests of this book share: pages with its live models, and a browser to ask them."""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.book import browser
from tests.book.live import LIVE, Model


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[..., Any]]:
    """Runs a script in a page and returns what it calls `answer`: `ask(page, script)`. A module has one browser."""
    if browser.find() is None:
        pytest.skip("no browser is installed")
    with browser.Browser() as opened:
        yield lambda page, script, **options: json.loads(
            opened.evaluate(page, f"{script}; return JSON.stringify(answer);", **options)
        )


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Model], Path]:
    """Writes a page with a live model beside the scripts, at the depth of a chapter, once for each model."""

    @cache
    def write(model: Model) -> Path:
        still = f'<figure id="{model.id}"><div class="book-picture">{model.still}</div></figure>' if model.still else ""
        site = tmp_path_factory.mktemp(model.name)
        (site / "_static" / "live").mkdir(parents=True)
        for script in ("kernel", model.name):
            shutil.copy(LIVE / f"{script}.js", site / "_static" / "live")
        (site / "notebooks").mkdir()
        path = site / "notebooks" / "page.html"
        path.write_text(
            '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8"></head><body><main>'
            f"{still}{model.markup}</main></body></html>"
        )
        return path

    return write


@pytest.fixture
def page(request: pytest.FixtureRequest, page_of: Callable[[Model], Path]) -> Path:
    """The page of the model of the module that asks."""
    return page_of(request.module.MODEL)


@pytest.fixture
def each(request: pytest.FixtureRequest, page: Path, ask: Callable[..., Any]) -> Callable[[Any, str], Any]:
    """What a script makes of each case ``c``; it knows the model ``m`` of the module that asks, and its data ``d``."""
    model = request.module.MODEL
    known = (
        f"const m = Live.models['{model.name}'], d = JSON.parse(document.getElementById('{model.id}-data').textContent)"
    )
    return lambda cases, script: ask(page, f"{known}; const answer = {json.dumps(cases)}.map((c) => {script})")
