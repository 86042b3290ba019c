"""Each figure of the transient shows the numbers that it is given, in the place and with the look of their row."""

import numpy as np
from matplotlib.colors import to_hex

from chapters.nonequilibrium_dynamics import transient as plot
from experiments.comparison.contrasts import Finding
from experiments.comparison.judging import Paired, Verdict
from experiments.comparison.transient_questions import QUESTIONS, Answer


def paired(mean):
    return Paired(mean, 0.01, mean - 0.02, mean + 0.03, 5)


def curves(ax):
    return {tuple(line.get_ydata()): line for line in ax.lines if len(line.get_xdata()) > 2}


def test_contrasts_stand_at_their_means_with_their_seeds_and_the_look_of_their_decision():
    question = QUESTIONS[1]
    decisions = ("yes", "no", "undecided")
    findings = tuple(
        Finding(contrast, paired(0.1 * k), Verdict(decision, 0, 0), None, (), decision)
        for k, (contrast, decision) in enumerate(zip(question.contrasts, decisions, strict=True), 1)
    )
    by_seed = {c.name: [0.1 * k - 0.01, 0.1 * k + 0.02] for k, c in enumerate(question.contrasts, 1)}
    figure = plot.contrasts([Answer(question, "no", True, (1, 2), findings)], by_seed, margin=0.01)
    (ax,) = figure.axes
    for k, decision in enumerate(decisions, 1):
        colour, marker = plot.DECISIONS[decision]
        (point,) = (line for line in ax.lines if line.get_marker() == marker)
        np.testing.assert_allclose(point.get_xydata(), [[0.1 * k, 3 - k]])
        assert to_hex(point.get_color()) == colour.lower()
    seeds = [line.get_xdata() for line in ax.lines if line.get_marker() == "|"]
    np.testing.assert_allclose(seeds, list(by_seed.values()))
    assert [list(line.get_xdata()) for line in ax.lines if line.get_linestyle() == ":"] == [[0.01, 0.01]]
    assert ax.get_yticklabels()[-1].get_text() == f"{question.contrasts[0].name}\n({question.name})"
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["yes", "no", "undecided", "margin"]


def test_proxies_are_means_over_layers_in_the_band_of_all():
    updates = np.array([0, 100, 200])
    mismatch = {"1": np.array([[1.0, 3.0], [2.0, 4.0], [5.0, 9.0]])}
    production = {"1": 10 * mismatch["1"], "inf": 20 * mismatch["1"]}
    left, right = plot.proxies(updates, mismatch, production).axes
    assert set(curves(left)) == {(2.0, 3.0, 7.0)}
    assert set(curves(right)) == {(20.0, 30.0, 70.0), (40.0, 60.0, 140.0)}
    (band,) = left.collections
    assert band.get_paths()[0].get_extents().ymax == 9
    assert left.get_yscale() == right.get_yscale() == "log"
    assert [t.get_text() for t in left.get_legend().get_texts()] == ["one update"]


def test_heads_stand_at_their_errors_and_those_of_the_first_layer_are_open():
    found = {
        "predicted": np.array([[0.1, 0.2], [0.3, 0.4]]),
        "delayed": np.array([[0.11, 0.21], [0.31, 0.41]]),
        "sigma": np.array([[0.01, -0.02], [0.03, -0.04]]),
    }
    left, right = plot.heads({"1": found}, small=0.05).axes
    marked = [line for line in left.lines if line.get_marker() == plot.ROWS["1"][2]]
    assert [line.get_fillstyle() for line in marked] == ["none", "full"]
    np.testing.assert_allclose(marked[0].get_xydata(), [[0.1, 0.11], [0.2, 0.21]])
    np.testing.assert_allclose(marked[1].get_xydata(), [[0.3, 0.31], [0.4, 0.41]])
    right_points = [line.get_xydata() for line in right.lines if line.get_marker() == plot.ROWS["1"][2]]
    np.testing.assert_allclose(right_points[1], [[0.31, 0.03], [0.41, 0.04]])
    assert any(np.array_equal(line.get_xdata(), line.get_ydata()) for line in left.lines)
    assert any(list(line.get_ydata()) == [0.05, 0.05] for line in right.lines)
