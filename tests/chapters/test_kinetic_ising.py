"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from chapters.kinetic_ising import figures as plot
from tests.chapters.drawings import drawn, half_lengths, shows, written


def test_schematic_has_couplings_only_while_alpha_is_not_zero():
    figure = plot.schematic()
    # Four spins at either time have an arrow each, so have four fields; the rest are couplings.
    couplings = [sum(type(patch).__name__ == "FancyArrowPatch" for patch in ax.patches) - 12 for ax in figure.axes]
    assert couplings == [16, 16, 0]
    assert {"$J_{ij}$", "$J_{ji}$"} <= set(written(figure))


def test_expansion_marks_the_three_points_where_they_are():
    axis = np.linspace(0, 1, 9)
    points = {"exact": (0.5, 0.5), "naive": (0.8, 0.9), "TAP": (0.4, 0.6)}
    alphas = np.linspace(0, 1, 5)
    curves = {"naive": 0.2 + alphas, "TAP": 0.2 + alphas**2}
    exact = 0.2 + alphas * (1 - alphas)
    figure = plot.expansion(
        axis,
        axis,
        (axis[:, None] - 0.5) ** 2 + (axis - 0.5) ** 2,
        points=points,
        alphas=alphas,
        interpolated=exact,
        partial_sums=curves,
    )
    marks = [(line.get_xdata()[0], line.get_ydata()[0]) for line in figure.axes[0].lines]
    assert marks == list(points.values())
    assert shows(figure, exact, curves)


def test_trajectories_put_spins_in_rows_and_time_in_columns():
    magnetizations = np.linspace(1, 0.2, 12).reshape(4, 3)  # 4 steps, 3 spins
    fields = np.array([-0.1, 0.0, 0.2])
    figure = plot.trajectories(
        magnetizations, fields=fields, field_axis=np.array([-0.5, 0.5]), average_response=np.array([0.1, 0.4])
    )
    (image,) = [image for ax in figure.axes for image in ax.images if image.get_array().shape == (3, 4)]
    assert np.array_equal(image.get_array(), magnetizations.T)
    assert shows(figure, magnetizations.mean(axis=1), magnetizations[-1])


def test_starts_draw_every_run_and_write_every_count():
    runs = np.array([[0.1, 0.5, 0.9], [-0.1, -0.5, -0.9], [0.2, 0.6, 0.9]])
    figure = plot.starts({"cold": runs}, counts={"cold": {0.9: 2, -0.9: 1}})
    assert shows(figure, list(runs))
    assert {"2 of 3", "1 of 3"} <= set(written(figure))


def test_samples_draw_one_curve_for_each_set_of_parameters_and_their_mean():
    betas = np.array([0.5, 1.0, 1.5])
    absolute = np.array([[0.0, 0.2, 0.8], [0.1, 0.4, 0.9]])
    spreads, errors = np.array([0.01, 0.1, 0.05]), np.array([0.001, 0.01, 0.004])
    figure = plot.samples(betas, absolute, spreads=spreads, spread_errors=errors, critical=1.1)
    (bundle,) = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    assert np.array_equal([segment[:, 1] for segment in bundle.get_segments()], absolute)
    assert shows(figure, absolute.mean(axis=0))
    (bars,) = figure.axes[1].containers
    assert bars.lines[0].get_ydata().tolist() == spreads.tolist()
    assert half_lengths(bars) == pytest.approx(errors)


def test_error_law_draws_the_expected_powers_through_the_weakest_coupling():
    strengths = 0.0125 * 2.0 ** np.arange(8)
    errors = {"means": {"naive": 0.3 * strengths**2, "TAP": 0.2 * strengths**3}}
    figure = plot.error_law(
        strengths,
        errors,
        sizes={"means": np.full(8, 0.5)},
        orders={"means": {"naive": 2, "TAP": 3}},
    )
    # A curve that follows its power exactly lies on its guide: it is drawn twice.
    for values in errors["means"].values():
        assert sum(np.allclose(line, values, rtol=1e-12) for line in drawn(figure)) == 2
    assert {"slope 2", "slope 3"} <= set(written(figure))


def test_limits_mark_the_three_critical_points_on_the_axis():
    betas, values = np.array([1.0, 1.2]), np.array([0.0, 0.4])
    critical = {"model": 1.11, "naive": 1.1, "TAP": 1.1101}
    figure = plot.limits(
        betas,
        values,
        sampled_betas=np.array([1.1, 2.0]),
        sampled=np.array([0.3, 0.9]),
        standard_errors=np.array([0.01, 0.02]),
        closures={name: (betas, values + k) for k, name in enumerate(critical)},
        critical=critical,
        source_beta=1.1108,
    )
    whole, close = figure.axes
    marks = [line.get_xdata()[0] for line in close.lines if line.get_marker() == "|"]
    assert marks == list(critical.values())
    assert shows(figure, [values + k for k in range(3)])
    # What lies beyond the line is left out.
    assert [bars.lines[0].get_ydata().tolist() for bars in whole.containers] == [[0.3]]


def test_transition_draws_every_family_with_its_errors():
    betas, values = np.array([1.0, 1.2]), np.array([0.0, 0.4])
    numbers = np.array([64, 128])
    by_number = {
        name: (numbers, np.array([0.4, 0.3]) / k, np.array([0.01, 0.02]))
        for k, name in enumerate(("sampled", "naive", "TAP", "naive, balanced", "TAP, balanced"), start=1)
    }
    spreads = {name: (values + k, np.array([0.01, 0.02])) for k, name in enumerate(("drawn", "balanced"))}
    figure = plot.transition(
        betas,
        values,
        sampled_betas=betas,
        sampled={128: (values, values / 10), 512: (values / 2, values / 20)},
        at_source_beta=by_number,
        naive_limit=0.16,
        ratios=betas,
        spreads=spreads,
    )
    whole, sizes, spread = figure.axes
    assert [bars.lines[0].get_ydata().tolist() for bars in whole.containers] == [[0.0, 0.4], [0.0, 0.2]]
    drawn = [bars.lines[0].get_ydata().tolist() for bars in sizes.containers]
    assert drawn == [mean.tolist() for _, mean, _ in by_number.values()]
    assert [bars.lines[0].get_ydata().tolist() for bars in spread.containers] == [[0.0, 0.4], [1.0, 1.4]]
    assert half_lengths(spread.containers[0]) == pytest.approx([0.01, 0.02])
