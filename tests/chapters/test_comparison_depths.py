"""Each figure of the comparison of stacks shows the numbers that it is given, at the row of their stack."""

import math

import numpy as np
import pytest

from chapters import style
from chapters.comparison import depths as plot
from experiments.comparison import questions
from experiments.comparison.by_depth import Stack
from experiments.comparison.contrasts import Finding
from experiments.comparison.judging import Paired, Verdict
from experiments.comparison.questions import QUESTIONS, Answer

NOTHING = (math.nan, math.nan)
GUESSES = {"mnist": ("accuracy", 0.1), "text": ("loss", 2.8)}
MARGINS = {"mnist": ("accuracy", 0.01), "text": ("loss", 0.02)}


def stack(row, depth, score, task="mnist", **values):
    fields = dict.fromkeys(Stack._fields) | {
        "row": row,
        "family": "transformer",
        "task": task,
        "depth": depth,
        "score": score,
        "half_width": 0.01,
        "time_ratio": 2.0 * depth,
        "contraction": NOTHING,
        "production": NOTHING,
        "failed": 0,
    }
    return Stack(**(fields | values))


def answer(task, mean, decision):
    found = [
        Finding(
            contrast, Paired(mean, 0.1 * mean, 0.8 * mean, 1.2 * mean, 5), Verdict(decision, 0, 0), None, (), decision
        )
        for contrast in questions.contrasts(QUESTIONS[0], task)
    ]
    return Answer(QUESTIONS[0], task, Verdict(decision, 0, 0), decision, tuple(found))


def points(ax, marker):
    return [tuple(map(float, line.get_xydata()[0])) for line in ax.lines if line.get_marker() == marker]


def test_contrasts_stand_at_their_means_in_their_units_with_the_look_of_their_decision():
    figure = plot.answers([answer("mnist", 0.03, "yes"), answer("text", -0.5, "undecided")], MARGINS)
    left, right = figure.axes
    np.testing.assert_allclose(points(left, "o"), [(3.0, y) for y in (2, 1, 0)])
    np.testing.assert_allclose(points(right, "s"), [(-0.5, y) for y in (2, 1, 0)])
    assert left.get_yticklabels()[0].get_text() == "no residual (essential)"
    intervals = [list(line.get_xdata()) for line in left.lines if len(line.get_xdata()) == 2][1:]
    np.testing.assert_allclose(intervals, 3 * [[2.4, 3.6]])
    (band,) = left.patches
    assert (band.get_x(), band.get_width()) == pytest.approx((-1.0, 2.0))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["yes", "undecided"]


def test_scores_of_a_row_stand_together_by_depth():
    stacks = [stack("vanilla", d, 0.9 + d / 100) for d in (1, 4)] + [
        stack("FNet", 4, 0.5),
        stack("FNet", 1, 2.0, "text"),
    ]
    figure = plot.scores(stacks, GUESSES)
    left, right = figure.axes
    assert [x for x, _ in points(left, "o")] == pytest.approx([0.91])
    deep = points(left, "D")
    assert [x for x, _ in deep] == pytest.approx([0.94, 0.5])
    assert [round(y) for _, y in deep] == [1, 0]
    assert [x for x, _ in points(right, "o")] == pytest.approx([2.0])
    assert not [line for ax in (left, right) for line in ax.lines if line.get_linestyle() == "--"]


def test_a_row_with_failures_is_hollow_and_has_no_interval():
    figure = plot.scores([stack("vanilla", 1, 0.9), stack("FNet", 1, 0.6, failed=1)], {"mnist": GUESSES["mnist"]})
    markers = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [line.get_markerfacecolor() == style.PAPER for line in markers] == [False, True]
    widths = [np.ptp(bar.get_segments()[0][:, 0]) for bar in figure.axes[0].collections]
    assert widths == pytest.approx([0.02, 0.0])


def test_a_guess_is_drawn_where_a_row_has_its_score():
    figure = plot.scores([stack("vanilla", 1, 0.9), stack("no residual", 1, 0.1)], {"mnist": GUESSES["mnist"]})
    dashed = [float(line.get_xdata()[0]) for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert dashed == pytest.approx([0.1])


def test_the_simplest_method_is_a_dotted_line_in_the_panel_of_its_task():
    stacks = [stack("vanilla", 1, 0.9), stack("vanilla", 1, 2.0, "text")]
    figure = plot.scores(stacks, GUESSES, simplest={"mnist": 0.92})
    dotted = [[float(x.get_xdata()[0]) for x in ax.lines if x.get_linestyle() == ":"] for ax in figure.axes]
    assert dotted == [[0.92], []]
    alone = plot.scores(stacks[:1], {"mnist": GUESSES["mnist"]})
    assert [text.get_text() for text in alone.axes[0].texts] == []


def test_physics_is_drawn_for_rows_that_have_some():
    spins = [stack("naive spins", d, 0.9, contraction=(0.2, 0.1 * d), production=(0.0, 1.0 * d)) for d in (4, 1)]
    figure = plot.physics([*spins, stack("vanilla", 1, 0.9)], "mnist")
    time, contraction, production = figure.axes
    assert [line.get_ydata().tolist() for line in time.lines] == [[2.0, 8.0]]
    before, after = contraction.lines[:2]
    assert (before.get_linestyle(), before.get_ydata().tolist()) == ("--", [0.2, 0.2])
    np.testing.assert_allclose(after.get_ydata(), [0.1, 0.4])
    assert production.lines[1].get_ydata().tolist() == [1.0, 4.0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["naive spins"]


def test_a_row_without_a_look_is_an_error():
    many = [stack(f"row {k}", 1, 0.9, contraction=(0.1, 0.2)) for k in range(len(style.MARKERS) + 1)]
    with pytest.raises(ValueError, match="items: expected at most"):
        plot.physics(many, "mnist")


def test_every_course_of_a_kind_has_its_colour_and_counting_is_a_level():
    courses = {"alone": [([0, 2], [3.0, 1.0])], "twice": [([0, 4], [3.0, 1.5]), ([0, 4], [3.1, 1.4])]}
    ax = plot.by_heart(courses, 1.25).axes[0]
    first, second, third, level = [line for line in ax.lines if len(line.get_xdata()) == 2]
    assert first.get_color() != second.get_color() == third.get_color()
    np.testing.assert_array_equal(third.get_ydata(), [3.1, 1.4])
    np.testing.assert_array_equal(level.get_ydata(), [1.25, 1.25])
    assert [line.get_label() for line in (first, second, level)] == ["alone", "twice", "counting"]
