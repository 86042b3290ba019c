"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from spinbook.plot import kinetic_ising as plot


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def _drawn(figure: Figure) -> list[np.ndarray]:
    """The y values of every line of the figure."""
    return [np.asarray(line.get_ydata(), dtype=float) for ax in figure.axes for line in ax.lines]


def _shows(figure: Figure, values: np.ndarray) -> bool:
    return any(np.array_equal(line, values, equal_nan=True) for line in _drawn(figure))


def _half_lengths(bars) -> list[float]:
    return [(segment[1, 1] - segment[0, 1]) / 2 for segment in bars.lines[2][0].get_segments()]


def _texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_schematic_has_couplings_only_while_alpha_is_not_zero():
    figure = plot.schematic()
    # Four spins at either time have an arrow each, so have four fields; the rest are couplings.
    couplings = [sum(type(patch).__name__ == "FancyArrowPatch" for patch in ax.patches) - 12 for ax in figure.axes]
    assert couplings == [16, 16, 0]
    assert {"$J_{ij}$", "$J_{ji}$"} <= set(_texts(figure.axes[0]))


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
    assert all(_shows(figure, values) for values in [exact, *curves.values()])


def test_trajectories_put_spins_in_rows_and_time_in_columns():
    magnetizations = np.linspace(1, 0.2, 12).reshape(4, 3)  # 4 steps, 3 spins
    fields = np.array([-0.1, 0.0, 0.2])
    figure = plot.trajectories(
        magnetizations, fields=fields, field_axis=np.array([-0.5, 0.5]), average_response=np.array([0.1, 0.4])
    )
    (image,) = [image for ax in figure.axes for image in ax.images if image.get_array().shape == (3, 4)]
    assert np.array_equal(image.get_array(), magnetizations.T)
    assert _shows(figure, magnetizations.mean(axis=1))
    assert _shows(figure, magnetizations[-1])


def test_naive_and_tap_leave_out_exact_zeros_of_the_loose_difference():
    curves = {"naive": np.array([1.0, 0.5, 0.4]), "TAP": np.array([1.0, 0.4, 0.3])}
    sampled, errors = np.array([0.38, 0.28]), np.array([0.01, 0.02])
    figure = plot.naive_and_tap(
        curves,
        sampled_steps=np.array([1, 2]),
        sampled=sampled,
        standard_errors=errors,
        loose_difference=np.array([0.0, 1e-4, 1e-5]),
    )
    assert all(_shows(figure, values) for values in [*curves.values(), sampled, np.array([1e-4, 1e-5])])
    (bars,) = figure.axes[1].containers
    assert _half_lengths(bars) == pytest.approx([0.01, 0.02])


def test_truth_draws_each_method_with_its_own_errors():
    ratios, steps = np.array([0.5, 1.0, 2.0]), np.array([1, 10])
    mean = {"naive": np.array([0.0, 0.06, 0.01]), "TAP": np.array([0.0, 0.03, 0.0])}
    spin = {"naive": np.array([0.01, 0.07, 0.02]), "TAP": np.array([0.01, 0.04, 0.01])}
    spin_errors = {"naive": np.array([0.001, 0.002, 0.003]), "TAP": np.array([0.004, 0.005, 0.006])}
    in_time = {"naive": np.array([0.0, 0.02]), "TAP": np.array([0.0, 0.01])}
    figure = plot.truth(
        ratios,
        mean,
        np.array([0.001, 0.003, 0.001]),
        spin_errors=spin,
        spin_standard_errors=spin_errors,
        steps=steps,
        errors_in_time=in_time,
        standard_errors_in_time=np.array([0.002, 0.004]),
    )
    for ax, family in zip(figure.axes, (mean, spin, in_time), strict=True):
        assert [bars.lines[0].get_ydata().tolist() for bars in ax.containers] == [v.tolist() for v in family.values()]
    naive_bars, tap_bars = figure.axes[1].containers
    assert _half_lengths(naive_bars) == pytest.approx(spin_errors["naive"])
    assert _half_lengths(tap_bars) == pytest.approx(spin_errors["TAP"])


def test_starts_draw_every_run_and_write_every_count():
    runs = np.array([[0.1, 0.5, 0.9], [-0.1, -0.5, -0.9], [0.2, 0.6, 0.9]])
    figure = plot.starts({"cold": runs}, counts={"cold": {0.9: 2, -0.9: 1}})
    assert all(_shows(figure, run) for run in runs)
    assert {"2 of 3", "1 of 3"} <= set(_texts(figure.axes[0]))


def test_samples_draw_one_curve_for_each_set_of_parameters_and_their_mean():
    betas = np.array([0.5, 1.0, 1.5])
    absolute = np.array([[0.0, 0.2, 0.8], [0.1, 0.4, 0.9]])
    spreads, errors = np.array([0.01, 0.1, 0.05]), np.array([0.001, 0.01, 0.004])
    figure = plot.samples(betas, absolute, spreads=spreads, spread_errors=errors, critical=1.1)
    (bundle,) = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    assert np.array_equal([segment[:, 1] for segment in bundle.get_segments()], absolute)
    assert _shows(figure, absolute.mean(axis=0))
    (bars,) = figure.axes[1].containers
    assert bars.lines[0].get_ydata().tolist() == spreads.tolist()
    assert _half_lengths(bars) == pytest.approx(errors)


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
        assert sum(np.allclose(line, values, rtol=1e-12) for line in _drawn(figure)) == 2
    assert {"slope 2", "slope 3"} <= set(_texts(figure.axes[0]))


def test_accumulation_begins_at_the_second_step():
    values = np.array([0.0, 0.1, 0.2, 0.3])
    figure = plot.accumulation(
        {"naive": {"a": values}, "TAP": {"a": values / 2}},
        {"naive": {"a": np.full(4, 0.01)}, "TAP": {"a": np.full(4, 0.01)}},
    )
    for ax, expected in zip(figure.axes, (values, values / 2), strict=True):
        assert ax.lines[0].get_xdata().tolist() == [2, 3, 4]
        assert ax.lines[0].get_ydata().tolist() == expected[1:].tolist()


def test_transition_marks_the_three_critical_points_on_the_axis():
    betas, values = np.array([1.0, 1.2]), np.array([0.0, 0.4])
    critical = {"infinite": 1.11, "naive": 1.1, "TAP": 1.1101}
    numbers = np.array([64, 128])
    by_number = {
        name: (numbers, np.array([0.4, 0.3]) / k, np.array([0.01, 0.02]))
        for k, name in enumerate(("sampled", "naive", "TAP", "naive, balanced", "TAP, balanced"), start=1)
    }
    figure = plot.transition(
        betas,
        values,
        sampled_betas=betas,
        sampled={128: (values, values / 10), 512: (values / 2, values / 20)},
        closures={name: (betas, values + k) for k, name in enumerate(critical)},
        critical=critical,
        at_source_beta=by_number,
        naive_limit=0.16,
    )
    whole, close, sizes = figure.axes
    marks = [line.get_xdata()[0] for line in close.lines if line.get_marker() == "|"]
    assert marks == list(critical.values())
    assert [bars.lines[0].get_ydata().tolist() for bars in whole.containers] == [[0.0, 0.4], [0.0, 0.2]]
    drawn = [bars.lines[0].get_ydata().tolist() for bars in sizes.containers]
    assert drawn == [mean.tolist() for _, mean, _ in by_number.values()]


def test_breakdown_shows_limits_finite_systems_and_one_run():
    widths, points, steps = np.linspace(0, 1, 6), np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.arange(4)
    limits = {name: widths * k for k, name in enumerate(("infinite", "naive", "TAP"), start=1)}
    finite = {"naive": points / 2, "TAP": points / 3}
    sampled, errors = points / 4, np.full(5, 0.01)
    runs = {"naive": np.array([1, 0.9, 0.8, 0.7]), "TAP": np.array([1, 0.6, 0.4, 0.2])}
    figure = plot.breakdown(
        widths,
        limits,
        points=points,
        finite=finite,
        sampled=sampled,
        standard_errors=errors,
        steps=steps,
        runs=runs,
        run_steps=np.array([1, 2]),
        run_sampled=np.array([0.7, 0.6]),
        run_errors=np.array([0.02, 0.03]),
    )
    shown = [*limits.values(), *finite.values(), *runs.values(), sampled, np.array([0.7, 0.6])]
    assert all(_shows(figure, values) for values in shown)
    (bars,) = figure.axes[1].containers
    assert _half_lengths(bars) == pytest.approx([0.02, 0.03])
