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


QUIET = {
    "as it is": lambda left, right: None,
    "numbers outside the view, which are not drawn": lambda left, right: (
        left.set_xticks([0.0, 1.0, 50.0, 50.01], ["0", "1", "50.00", "50.01"]),
        left.set_xlim(0, 2),
    ),
    "a label on a curve that clears its ground": lambda left, right: style.label(
        left, "noise", (1.0, 1.0), style.INK, ha="center", va="center", box=True
    ),
    "a label in its marker, and one in its box": lambda left, right: (
        right.plot([0.5], [1.2], "o", markersize=16),
        right.text(0.5, 1.2, "i", ha="center", va="center"),
        style.box(right, (1.0, 1.0), (0.5, 0.3), "norm", style.INK),
    ),
    "a legend that says what a kind of line means": lambda left, right: (
        left.plot([], [], "--", label="dashed: TAP"),
        left.legend(loc="upper left"),
    ),
}


@pytest.mark.parametrize("case", QUIET)
def test_nothing_is_found_in_a_figure(case):
    figure = good()
    with plt.rc_context(style.RC):
        QUIET[case](*figure.axes)
    assert found(figure) == []


DEFECTS = {
    "small letters": (lambda left, right: left.set_xlabel("time", fontsize=4.0), "text of 4 points"),
    "large letters": (lambda left, right: left.set_xlabel("time", fontsize=15.0), "text of 15 points"),
    "two labels in one place": (
        lambda left, right: style.label(right, "late", (1.0, 0.5), style.QUALITATIVE[1], (10, -8)),
        "texts overlap: 'slow' and 'late'",
    ),
    "numbers of an axis that read as one": (
        lambda left, right: left.set_xticks([1.0, 1.11, 2.0], ["1.00", "1.11", "2.00"]),
        "texts overlap: '1.00' and '1.11'",
    ),
    "a label on the curve of another": (
        lambda left, right: left.text(1.0, 1.0, "noise", ha="center", va="center", fontsize=8.5),
        "a text lies on a curve: 'noise'",
    ),
    "a legend over data": (lambda left, right: right.legend(loc="upper right"), "a legend lies on a curve"),
    "a legend over markers": (lambda left, right: right.scatter([0.25], [1.85]), "a legend lies on a curve"),
    "a legend of a curve outside its panel": (
        lambda left, right: (left.plot([0, 1], [np.nan, np.nan], label="gone"), left.legend(loc="upper left")),
        "'gone', no point of it lies in the panel",
    ),
    "a legend of a curve beneath another": (
        lambda left, right: (
            left.lines[0].set_linestyle("--"),
            left.plot([0, 1, 2], [0, 1, 2], "-", label="again", linewidth=2),
            left.legend(loc="upper left"),
        ),
        "'ours', 'again' lies on all of it",
    ),
    "a legend of a curve too faint to see": (
        lambda left, right: (left.lines[0].set_color("#f4f4f4"), left.legend(loc="upper left")),
        "too faint on its paper: 'ours'",
    ),
}


@pytest.mark.parametrize("case", DEFECTS)
def test_one_defect_is_found_and_named(case):
    figure, (change, words) = good(), DEFECTS[case]
    with plt.rc_context(style.RC):
        change(*figure.axes)
    (finding,) = found(figure)
    assert words in finding


def test_letters_that_the_page_makes_small_with_a_wide_figure():
    figure = good()
    figure.set_size_inches(16, 5)
    assert all("text of" in finding for finding in found(figure))
    assert found(figure)


@style.house
def unnamed():
    figure, axes = style.subplots(1, 2, height=2.4)
    for ax in axes:
        ax.plot([0, 1], [0, 1])
    return figure


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("caption", "A line at \\beta = 1 (a), and another (b).", "caption"),
        ("caption", "A line at {numref}`one` of $x_i (a), and another (b).", "caption"),
        ("caption", "A line (a), and x_{12} (b).", "caption"),
        ("alt", "A line that rises with $x$ from zero at the left to two.", "alt"),
        ("source", "Figure 2 of {cite:t}`author`", "source"),
        ("caption", r"A line (a), at $\\beta = 1$ (b).", "one backslash"),
        ("caption", "A line. Panel b has noise, (a) has not (b).", "panel"),
        ("caption", "a: a line. (a), (b).", "panel"),
        ("caption", "A line (a, b), (a), (c).", "panel"),
        ("caption", "In black (a), in blue (b).", "another shade in the dark theme"),
        ("alt", WORDS["alt"] + " White.", "another shade in the dark theme"),
        ("caption", "A line, darker at the end (a), and one more (b).", "another shade in the dark theme"),
    ],
)
def test_words_that_are_untrue_or_left_over_are_found(name, text, words):
    findings = found(good(), **{name: text})
    assert findings
    assert all(words in finding for finding in findings)


def test_roles_and_formulas_are_no_tex_left_over_and_panels_without_letters_cannot_be_named():
    assert found(good(), caption=r"As in {eq}`eq:one`: $x_{12} = \frac{1}{2}$ (a), `a_b` (b).") == []
    (finding,) = found(unnamed(), caption="Left: a line. Right: a line.")
    assert "panels have letters" in finding


def test_shades_of_a_map_are_the_same_in_both_themes():
    mapped = good()
    mapped.axes[0].scatter([1.5], [0.2], c=[0.3])
    findings = found(mapped, caption="A line, darker at the end (a), and one more (b).")
    assert [finding for finding in findings if "shade" in finding] == []
