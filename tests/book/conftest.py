"""What tests of this book share: its wheels, and pages with its live models."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.book.live import LIVE

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheels of this book and of its press, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    for project in (REPOSITORY, REPOSITORY / "companion"):
        command = [sys.executable, "-c", build, str(folder)]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
        with zipfile.ZipFile(folder / done.stdout.split()[-1]) as archive:
            archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="session")
def live_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes a page with a live model beside the scripts, at the depth of a chapter: `live_page(name, id, markup)`."""

    def write(name: str, id: str, markup: str, still: str = '<img alt="still" src="data:,">') -> Path:
        site = tmp_path_factory.mktemp(name)
        (site / "_static" / "live").mkdir(parents=True)
        for script in ("kernel", name):
            shutil.copy(LIVE / f"{script}.js", site / "_static" / "live")
        (site / "notebooks").mkdir()
        path = site / "notebooks" / "page.html"
        path.write_text(
            '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8"></head><body><main>'
            f'<figure id="{id}"><div class="book-picture">{still}</div></figure>{markup}</main></body></html>'
        )
        return path

    return write
