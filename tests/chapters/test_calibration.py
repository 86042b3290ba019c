"""Each figure of the calibration shows the numbers that it is given, in their places."""

import numpy as np

from chapters.nonequilibrium_dynamics import calibration as plot
from tests.chapters.drawings import curves, shows_curve


def test_the_map_writes_every_error_in_its_cell_and_hatches_what_is_doubtful():
    errors = {"D": {3: np.array([[0.011, 0.022], [np.nan, 0.3]]), 16: np.array([[0.0004, 0.05], [0.06, 1.7]])}}
    doubtful = {3: np.array([[False, False], [True, False]]), 16: np.zeros((2, 2), bool)}
    figure = plot.error_map(errors, doubtful, drives=(0.5, 1.0), betas=(1.0, 2.0))
    written = [{t.get_position(): t.get_text() for t in ax.texts} for ax in figure.axes]
    assert written[0] == {(0.5, 0.5): "1.1", (1.5, 0.5): "2.2", (0.5, 1.5): "–", (1.5, 1.5): "30"}
    assert written[1][0.5, 0.5] == "<.1"
    assert written[1][1.5, 1.5] == "170"
    hatched = [[p.get_xy() for p in ax.patches if p.get_hatch() and p.get_edgecolor()[3]] for ax in figure.axes]
    assert hatched == [[(0, 1)], []]
    assert [ax.get_title() for ax in figure.axes] == ["$D = 3$", "$D = 16$"]
    assert all("drive" in ax.get_xlabel() for ax in figure.axes)
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["0.5", "1"]


def test_predictions_have_a_diagonal_and_one_colour_for_each_setting():
    x, y = np.array([0.1, 0.2, 0.4]), np.array([0.11, 0.19, 0.5])
    labels = np.array(["warm", "warm", "cold"])
    figure = plot.prediction({"all": (x, y)}, {"all": 0.01 * y}, {"all": labels})
    assert shows_curve(figure, x[:2], y[:2])
    assert shows_curve(figure, x[2:], y[2:])
    assert any(np.array_equal(*line) for line in curves(figure))
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["warm", "cold"]


def test_noise_shows_the_gains_against_both_formulas():
    predicted, measured, guess = np.array([8.0, 9.0]), np.array([8.1, 8.8]), np.array([3.0, 3.5])
    figure = plot.noise({"here": (predicted, measured)}, {"here": guess})
    assert shows_curve(figure, predicted, measured)
    assert shows_curve(figure, guess, measured)
