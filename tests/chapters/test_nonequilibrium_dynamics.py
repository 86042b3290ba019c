"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters.nonequilibrium_dynamics import figures as plot

BANDS = np.array([[1.0, 1.2], [0.3, 0.5], [0.1, 0.2]])


def _shows(ax: plt.Axes, values: np.ndarray) -> bool:
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    return any(line.shape == np.shape(values) and np.allclose(line, values) for line in lines)


def test_layers_show_the_mean_of_every_label():
    curves = {"a": BANDS, "b": 2 * BANDS}
    (ax,) = plot.through_layers(curves).axes
    assert all(_shows(ax, values.mean(axis=1)) for values in curves.values())


def test_quench_shows_both_thermometers_and_the_value_at_rest():
    left, right = plot.quench(BANDS, 2 * BANDS, steady=np.array([0.1, 0.3])).axes
    assert _shows(left, BANDS.mean(axis=1))
    assert _shows(right, 2 * BANDS.mean(axis=1))
    assert _shows(right, np.array([0.2, 0.2]))


def test_starts_marks_every_module_in_the_row_of_its_start():
    values = np.array([0.1, 0.2, 0.4])
    left, right = plot.starts({"a": values, "b": 2 * values}, {"a": values / 2, "b": values}).axes
    for ax, rows in ((left, (values, 2 * values)), (right, (values / 2, values))):
        drawn = [(line.get_xdata(), line.get_ydata()) for line in ax.lines]
        for row, expected in enumerate(rows):
            assert any(np.array_equal(x, expected) and np.all(np.equal(y, -row)) for x, y in drawn)


def test_every_share_of_two_states_is_in_its_map():
    betas, strengths = np.array([2.0, 4.0, 8.0]), np.array([0.1, 0.5])
    shares = {"even": np.array([[0.0, 1.0, 0.5], [0.0, 0.25, 1.0]]), "uneven": np.zeros((2, 3))}
    border = np.array([0.0, 0.7, 0.87])
    figure: Figure = plot.branches(betas, strengths, shares, border)
    for ax, values in zip(figure.axes, shares.values(), strict=False):
        assert np.array_equal(np.reshape(ax.collections[0].get_array(), (2, 3)), values)
        assert _shows(ax, border)


def test_curves_over_a_parameter():
    x, curves = np.array([8.0, 16.0, 32.0]), {"a": np.array([0.1, 0.05, 0.02]), "b": np.array([0.3, 0.3, 0.3])}
    figure: Figure = plot.large_d(x, curves)
    assert all(_shows(figure.axes[0], values) for values in curves.values())
