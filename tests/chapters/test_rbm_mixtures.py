"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import numpy as np
import pytest

from chapters.rbm_mixtures import figures as plot
from tests.chapters.drawings import half_lengths, shows


def test_schematic_has_five_visible_units_in_each_of_four_panels():
    figure = plot.schematic()
    names = [text.get_text() for text in figure.axes[0].texts]
    assert len(figure.axes) == 4
    assert all({f"$v_{i}$" for i in range(1, 6)} <= {text.get_text() for text in ax.texts} for ax in figure.axes)
    assert {"$h_1$", "$h_2$", "$h_3$"} <= set(names)


def test_cumulants_shows_every_generating_function_partial_sum_and_error():
    t = np.linspace(-3, 3, 7)
    orders = np.arange(1, 31)
    functions = {name: t + k for k, name in enumerate(plot.PRIOR_COLOURS)}
    sums = {order: t * order for order in (2, 4, 8, 16)}
    errors = {2.0: np.geomspace(1, 1e-8, 30), 4.0: np.geomspace(1, 20, 30)}
    figure = plot.cumulants(
        t, functions, series_arguments=t, closed_form=t**2, partial_sums=sums, radius=2.5, orders=orders, errors=errors
    )
    assert shows(figure, functions, sums, errors, t**2)


def test_interactions_under_the_floor_are_drawn_hollow_on_the_floor():
    strengths = {"Gaussian": np.array([0.3, 0.1, 1e-18]), "Poisson": np.array([0.3, 0.2, 0.1])}
    ratios = {"Poisson": {2: np.array([1.0, 2.0]), 3: np.array([1.0, 4.0])}}
    figure = plot.interactions(strengths, floor=1e-15, scales=np.array([0.1, 1.0]), ratios=ratios)
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "none" and len(line.get_ydata())]
    assert [line.get_ydata().tolist() for line in hollow] == [[1e-15]]
    assert shows(figure, strengths["Gaussian"][:2], strengths["Poisson"], ratios)


def test_landscape_draws_one_arrow_from_each_query_to_its_update():
    axis = np.linspace(-1, 1, 9)
    x, y = np.meshgrid(axis, axis)
    queries = np.array([[0.5, 0.5], [-0.5, 0.0]])
    updates = np.array([[[0.1, 0.2], [0.0, 0.0]], [[0.3, 0.4], [-0.2, 0.1]]])
    figure = plot.landscape(
        axis,
        np.stack([x**2 + y**2, x**2]),
        np.stack([np.stack([-x, -y], axis=-1)] * 2),
        queries=queries,
        updates=updates,
        patterns=np.zeros((1, 2)),
        betas=(0.5, 2.0),
    )
    for ax, ends in zip(figure.axes, updates, strict=True):
        arrows = [(note.xyann, note.xy) for note in ax.texts if note.arrow_patch is not None]
        assert np.array_equal(np.array(arrows), np.stack([queries, ends], axis=1))


def test_recall_draws_each_curve_with_its_own_errors():
    curves = {"x": np.array([10.0, 100.0]), "a": np.array([0.9, 0.5]), "a error": np.array([0.02, 0.04])}
    figure = plot.recall(curves, curves, curves)
    for ax in figure.axes:
        (bars,) = ax.containers
        assert bars.lines[0].get_ydata().tolist() == [0.9, 0.5]
        assert half_lengths(bars) == pytest.approx([0.02, 0.04])


def test_orders_is_the_first_panel_of_interactions_alone():
    strengths = {"Gaussian": np.array([0.3, 0.1, 1e-18]), "Poisson": np.array([0.3, 0.2, 0.1])}
    figure = plot.orders(strengths, floor=1e-15)
    assert len(figure.axes) == 1
    assert shows(figure, strengths["Gaussian"][:2], strengths["Poisson"])
