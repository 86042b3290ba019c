"""Other colours of the style: no kernel runs, and the figures are those that a new run would leave."""

import json

import pytest

from companion.declaring import notebooks
from companion.running import execution, freshness, redrawing

STYLE = """\
PAPER, INK = "#ffffff", "#1b1f24"
LINE = "#0069a8"
DARK = {PAPER: "#14181e", INK: "#e6e9ee", LINE: "#5ab8f0", "#000000": "#e6e9ee"}
RC = {"axes.edgecolor": INK, "figure.constrained_layout.use": True}
"""
SHADES = """\
from matplotlib.colors import LinearSegmentedColormap
ax.imshow([[0, 1], [2, 3]], cmap=LinearSegmentedColormap.from_list("shades", [SHADES]), extent=(0, 0.2, 0.8, 1))
"""


@pytest.fixture
def styled(toy_book):
    """A toy book with a style, whose figure has a curve and a picture in shades of its colour."""
    toy_book.path("src/walks/look.py").write_text(STYLE)
    toy_book.edit("_config.yml", "  library: walks\n", "  library: walks\n  style: walks.look\n")
    toy_book.edit("notebooks/probe.md", "from walks import pairs", "from walks import look, pairs")
    shaded = SHADES.replace("SHADES", "(*to_rgb(look.LINE), 0), look.LINE").replace("import L", "import to_rgb, L")
    toy_book.edit("notebooks/probe.md", "ax.plot(x, y)", f"ax.plot(x, y, color=look.LINE)\n{shaded}")
    return toy_book


def run(book):
    """Run the page and keep its result; returns the record."""
    assert execution.publish(book.root, "probe", threads=1) is None
    return execution.read_record(execution.results_folder(book.root, "probe"))


def in_todays_colours(book):
    """What a build does with the run that stands before it runs anything."""
    key = freshness.key(book.root, notebooks.load(book.root, "probe"))
    standing = execution.standing(book.root, "probe", key)
    assert standing.record, standing.reason
    return redrawing.redraw(book.root, "probe", standing)


def pictures(book):
    folder = execution.results_folder(book.root, "probe")
    found = {path.name: path.read_bytes() for path in folder.glob("figures/probe-line/*")}
    notebook = json.loads((folder / "probe.ipynb").read_text())
    return found, [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


@pytest.mark.slow
def test_a_figure_in_other_colours_is_drawn_without_a_kernel_as_a_new_run_would_draw_it(styled):
    before = run(styled)
    first = pictures(styled)
    # Two colours change places, so that exchanging one after the other would lose one.
    styled.edit("src/walks/look.py", "0069a8", "123456")
    styled.edit("src/walks/look.py", "1b1f24", "0069a8")
    after = in_todays_colours(styled).record
    drawn = pictures(styled)
    assert after.finished == before.finished
    assert after.colours == freshness.colours(styled.root) != before.colours
    assert drawn[0].keys() == first[0].keys()
    assert {name for name in drawn[0] if drawn[0][name] != first[0][name]} == {
        *(name for name in drawn[0] if name.endswith((".svg", ".png", ".pdf"))),
        "figure.json",
    }
    assert run(styled).key == after.key
    assert pictures(styled) == drawn


@pytest.mark.slow
def test_what_is_mixed_of_two_colours_of_the_style_runs_again(styled):
    styled.edit("notebooks/probe.md", "(*to_rgb(look.LINE), 0), look.LINE", "look.PAPER, look.LINE")
    run(styled)
    styled.edit("src/walks/look.py", "0069a8", "123456")
    found = in_todays_colours(styled)
    assert found.record is None
    assert "colours of the style have changed" in found.reason


@pytest.mark.parametrize(("old", "new"), [("1b1f24", "ffffff"), ("#0069a8", "blue"), ('use": True', 'use": False')])
def test_two_colours_that_become_one_or_anything_else_of_the_style_is_a_change(styled, old, new):
    page = notebooks.load(styled.root, "probe")
    before = freshness.key(styled.root, page)
    styled.edit("src/walks/look.py", old, new)
    assert freshness.key(styled.root, page) != before
