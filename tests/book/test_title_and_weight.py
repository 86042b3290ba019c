"""What the title page takes from the library, and what a figure's folder leaves to its archive."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.parsers.rst import DirectiveError

from chapters.collectives import figures
from companion import project
from companion.declaring import notebooks
from companion.site import directives, pages, rendering

ROOT = Path(__file__).resolve().parents[2]


def shown(monkeypatch, name, *content):
    monkeypatch.setattr(directives.FromLibrary, "root", ROOT)
    directive = directives.FromLibrary.__new__(directives.FromLibrary)
    directive.arguments, directive.content = [name], list(content)
    return directive.run()[0].astext()


def test_a_page_shows_what_a_function_of_the_library_returns(monkeypatch):
    markup = shown(monkeypatch, "chapters.collectives.figures.roadmap", "folder: notebooks/")
    assert markup == figures.roadmap(folder="notebooks/")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chapters.collectives.figures.nothing", ()),
        ("chapters.nowhere.roadmap", ()),
        ("roadmap", ()),
        ("chapters.collectives.figures.roadmap", ("x",)),
    ],
)
def test_a_page_that_asks_the_library_for_what_it_has_not_is_refused(monkeypatch, name, content):
    with pytest.raises(DirectiveError):
        shown(monkeypatch, name, *content)


def result(monkeypatch, figure, *, state="finished", figures=("walk-line",)):
    """What a page shows of a result, as text, in a book of one chapter that is in this state."""
    record = {"page": "audits/walk", "size": [400, 200], "files": [], "alt": "A line."}
    read = {
        "status.json": {"chapters": [{"chapter": "walk", "state": "finished"}, {"chapter": "walk", "state": state}]},
        "figures.json": [{"id": id} | record for id in figures],
    }
    monkeypatch.setattr(directives.Result, "read", lambda self, name: read[name])
    monkeypatch.setattr(directives.Result, "to_root", lambda self: "")
    monkeypatch.setattr(directives.Result, "root", Path("book"))
    monkeypatch.setattr(directives.project, "chapter_of", lambda id, base: id.partition("-")[0] if base else "")
    directive = directives.Result.__new__(directives.Result)
    directive.arguments, directive.content, directive.content_offset = [figure], ["said"], 0
    parse = SimpleNamespace(
        nested_parse=lambda lines, _, node: node.append(nodes.paragraph("", *map(nodes.Text, lines)))
    )
    directive.state = parse
    return "".join(node.astext() for node in directive.run())


def test_a_result_is_a_picture_that_leads_to_its_place_and_a_sentence(monkeypatch):
    shown = result(monkeypatch, "walk-line")
    assert re.search(
        r'<a href="notebooks/audits/walk\.html#walk-line">.*alt="A line\.".*</a><div>said</div></div>$', shown
    )


def test_a_result_whose_figure_was_not_drawn_is_left_out_and_an_unknown_one_is_refused(monkeypatch):
    assert result(monkeypatch, "walk-line", state="not run") == result(monkeypatch, "walk-line")
    assert result(monkeypatch, "walk-line", state="not run", figures=()) == ""
    for unknown in ("walk-circle", "nowhere"):
        with pytest.raises(DirectiveError):
            result(monkeypatch, unknown)


def test_the_title_page_has_five_results_with_pictures_that_lessons_draw():
    named = re.findall(r"^```\{result\} (\S+)$", (ROOT / "book" / "index.md").read_text(), flags=re.MULTILINE)
    assert len(set(named)) == 5
    for figure in named:
        lesson = (ROOT / "notebooks" / f"{project.chapter_of(figure)}.md").read_text()
        assert f'"{figure}",' in lesson, f"{figure} is drawn by its lesson"


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


def test_no_lesson_shows_the_ledger():
    lessons = [notebooks.load(ROOT, name) for name in notebooks.chapters(ROOT)]
    cells = [cell for lesson in lessons for cell in lesson.notebook.cells if "claims.measure" in cell.source]
    assert len(cells) > 20
    assert [cell.source for cell in cells if "remove-cell" not in cell.metadata.get("tags", [])] == []
