"""What the title page takes from the library, and what a figure's folder leaves to its archive."""

from pathlib import Path

import pytest
from docutils.parsers.rst import DirectiveError

from chapters import collectives
from companion.site import directives, pages, rendering

ROOT = Path(__file__).resolve().parents[2]


def shown(monkeypatch, name, *content):
    monkeypatch.setattr(directives.FromLibrary, "root", ROOT)
    directive = directives.FromLibrary.__new__(directives.FromLibrary)
    directive.arguments, directive.content = [name], list(content)
    return directive.run()[0].astext()


def test_a_page_shows_what_a_function_of_the_library_returns(monkeypatch):
    markup = shown(monkeypatch, "plot.collectives.roadmap", "folder: notebooks/")
    assert markup == collectives.roadmap(folder="notebooks/")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plot.collectives.nothing", ()),
        ("plot.nowhere.roadmap", ()),
        ("roadmap", ()),
        ("plot.collectives.roadmap", ("x",)),
    ],
)
def test_a_page_that_asks_the_library_for_what_it_has_not_is_refused(monkeypatch, name, content):
    with pytest.raises(DirectiveError):
        shown(monkeypatch, name, *content)


DRAWN = ("x.svg", "x-dark.svg", "x.png", "x.pdf", "x.csv", "x.zip", "figure.json")
HEAVY = ("x.svg", "x-dark.png", "x.png", "x.pdf", "x.npz", "x.zip", "figure.json")


@pytest.mark.parametrize(
    ("files", "preview", "gone"),
    [(DRAWN, False, {"x.png", "x.pdf"}), (DRAWN, True, {"x.pdf"}), (HEAVY, False, {"x.svg", "x.pdf", "x.npz"})],
)
def test_what_no_page_shows_is_in_the_archive_alone(tmp_path, files, preview, gone):
    folder = tmp_path / "x"
    folder.mkdir()
    for name in files:
        (folder / name).write_text(name)
    rendering._lighten(folder, preview=preview)
    assert {path.name for path in folder.iterdir()} == set(files) - gone


def test_a_site_above_its_limit_is_too_heavy(tmp_path):
    (tmp_path / "numbers.npz").write_bytes(bytes(pages._SITE_LIMIT - 1_000_000))
    assert pages.overweight(tmp_path) == []
    (tmp_path / "more.npz").write_bytes(bytes(2_000_000))
    assert [line.split(":")[0] for line in pages.overweight(tmp_path)] == ["site too heavy"]
