"""Defects that a figure can be searched for: each is found where it is, and not where it is not."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from chapters import style
from companion import legible

WORDS = {
    "caption": "A line (a), and the same with noise of variance $\\sigma^2$ (b), in blue.",
    "alt": "Two straight lines that rise from zero at the left to two at the right end.",
    "source": "Figure 2 of Author (2000)",
}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@style.house
def good():
    figure, axes = style.subplots(1, 2, height=2.4)
    style.letters(*axes)
    for ax in axes:
        ax.plot([0, 1, 2], [0, 1, 2], label="ours")
        ax.plot([0, 1, 2], [0, 0.5, 2], label="theirs")
        ax.set_xlabel("time")
        ax.legend(loc="upper left")
        style.label(ax, "slow", (1.0, 0.5), style.QUALITATIVE[1], (6, -8))
    return figure


def found(figure, **changes):
    with plt.rc_context(style.RC):
        figure.draw_without_rendering()
    return legible.faults(figure, **(WORDS | changes)) + legible.crowded(figure)


def one(figure, words, **changes):
    findings = found(figure, **changes)
    assert len(findings) == 1, findings
    assert words in findings[0]


def test_a_figure_without_defects_has_no_finding():
    assert found(good()) == []


@pytest.mark.parametrize("points", [4.0, 15.0])
def test_letters_of_another_size(points):
    figure = good()
    figure.axes[0].set_xlabel("time", fontsize=points)
    one(figure, f"text of {points:g} points")


def test_letters_that_the_page_makes_small_with_a_wide_figure():
    figure = good()
    figure.set_size_inches(16, 5)
    assert all("text of" in finding for finding in found(figure))
    assert found(figure)


def test_labels_that_overlap():
    figure = good()
    style.label(figure.axes[1], "late", (1.0, 0.5), style.QUALITATIVE[1], (10, -8))
    one(figure, "texts overlap: 'slow' and 'late'")


def test_numbers_of_an_axis_that_read_as_one():
    figure = good()
    figure.axes[0].set_xticks([1.0, 1.11, 2.0], ["1.00", "1.11", "2.00"])
    one(figure, "texts overlap: '1.00' and '1.11'")


def test_numbers_outside_the_view_are_not_drawn_and_cannot_overlap():
    figure = good()
    figure.axes[0].set_xticks([0.0, 1.0, 50.0, 50.01], ["0", "1", "50.00", "50.01"])
    figure.axes[0].set_xlim(0, 2)
    assert found(figure) == []


def test_a_label_on_the_curve_of_another():
    figure = good()
    figure.axes[0].text(1.0, 1.0, "noise", ha="center", va="center", fontsize=8.5)
    one(figure, "a text lies on a curve: 'noise'")


def test_a_label_that_clears_its_ground_may_lie_on_a_curve():
    figure = good()
    style.label(figure.axes[0], "noise", (1.0, 1.0), style.INK, ha="center", va="center", box=True)
    assert found(figure) == []


@style.house
def test_a_label_in_its_marker_or_its_box_lies_on_nothing():
    figure = good()
    ax = figure.axes[1]
    ax.plot([0.5], [1.2], "o", markersize=16)
    ax.text(0.5, 1.2, "i", ha="center", va="center")
    style.box(ax, (1.0, 1.0), (0.5, 0.3), "norm", style.INK)
    assert found(figure) == []


def test_a_legend_over_data():
    figure = good()
    figure.axes[1].legend(loc="upper right")
    one(figure, "a legend lies on a curve")


def test_a_legend_over_markers():
    figure = good()
    figure.axes[1].scatter([0.25], [1.85])
    one(figure, "a legend lies on a curve")


def test_a_legend_names_a_curve_outside_its_panel():
    figure = good()
    figure.axes[0].plot([0, 1], [np.nan, np.nan], label="gone")
    figure.axes[0].legend(loc="upper left")
    one(figure, "'gone', no point of it lies in the panel")


def test_a_legend_may_name_what_a_kind_of_line_means():
    figure = good()
    figure.axes[0].plot([], [], "--", label="dashed: TAP")
    figure.axes[0].legend(loc="upper left")
    assert found(figure) == []


def test_a_legend_names_a_curve_beneath_another():
    figure = good()
    figure.axes[0].lines[0].set_linestyle("--")
    figure.axes[0].plot([0, 1, 2], [0, 1, 2], "-", label="again", linewidth=2)
    figure.axes[0].legend(loc="upper left")
    one(figure, "'ours', 'again' lies on all of it")


def test_a_legend_names_a_curve_too_faint_to_see():
    figure = good()
    figure.axes[0].lines[0].set_color("#f4f4f4")
    figure.axes[0].legend(loc="upper left")
    one(figure, "too faint on its paper: 'ours'")


@pytest.mark.parametrize(
    "changes",
    [
        {"caption": "A line at \\beta = 1 (a), and another (b)."},
        {"caption": "A line at {numref}`one` of $x_i (a), and another (b)."},
        {"caption": "A line (a), and x_{12} (b)."},
        {"alt": "A line that rises with $x$ from zero at the left to two."},
        {"source": "Figure 2 of {cite:t}`author`"},
    ],
)
def test_tex_in_words(changes):
    findings = found(good(), **changes)
    assert findings
    assert all(next(iter(changes)) in finding for finding in findings)


def test_a_command_with_two_backslashes():
    one(good(), "one backslash", caption=r"A line (a), at $\\beta = 1$ (b).")


def test_roles_and_formulas_are_no_tex_left_over():
    assert found(good(), caption=r"As in {eq}`eq:one`: $x_{12} = \frac{1}{2}$ (a), `a_b` (b).") == []


@pytest.mark.parametrize(
    "caption", ["A line. Panel b has noise, (a) has not (b).", "a: a line. (a), (b).", "A line (a, b), (a), (c)."]
)
def test_panels_have_one_name(caption):
    findings = found(good(), caption=caption)
    assert findings
    assert all("panel" in finding for finding in findings)


@style.house
def unnamed():
    figure, axes = style.subplots(1, 2, height=2.4)
    for ax in axes:
        ax.plot([0, 1], [0, 1])
    return figure


def test_panels_without_letters_cannot_be_named():
    one(unnamed(), "panels have letters", caption="Left: a line. Right: a line.")


@pytest.mark.parametrize(
    ("name", "text"), [("caption", "In black (a), in blue (b)."), ("alt", WORDS["alt"] + " White.")]
)
def test_colours_that_the_dark_theme_exchanges(name, text):
    one(good(), "another shade in the dark theme", **{name: text})


def test_shades_of_a_map_are_the_same_in_both_themes_and_those_of_a_curve_are_not():
    words = {"caption": "A line, darker at the end (a), and one more (b)."}
    one(good(), "another shade in the dark theme", **words)
    mapped = good()
    mapped.axes[0].scatter([1.5], [0.2], c=[0.3])
    assert [finding for finding in found(mapped, **words) if "shade" in finding] == []
