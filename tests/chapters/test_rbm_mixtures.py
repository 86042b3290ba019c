"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import numpy as np
import pytest

from chapters import style
from chapters.rbm_mixtures import figures as plot
from companion import themes
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


def test_weights_marks_the_uniform_value_one_over_n():
    spreads = np.array([0.01, 0.1])
    values = {dim: np.array([0.9, 0.1 * k]) for k, dim in enumerate((4, 16, 64, 256), start=1)}
    figure = plot.weights(
        np.array([1.0, 2.0, 3.0, 4.0]),
        np.array([0.1, 0.2, 0.3, 0.4]),
        spreads=spreads,
        fractions=values,
        standard_errors={dim: np.array([0.01, 0.01]) for dim in values},
        prediction_spreads=spreads,
        predictions={dim: v / 2 for dim, v in values.items()},
        examples={"example": (0.05, 0.5)},
    )
    assert shows(figure, np.array([0.25, 0.25]), [(v, v / 2) for v in values.values()])


def test_convergence_shows_the_medians_and_the_scan():
    medians = {beta: np.geomspace(1, 10.0 ** -(k + 1), 4) for k, beta in enumerate((0.125, 0.25, 0.5, 1.0))}
    own = np.array([0.2, 0.9])
    figure = plot.convergence(medians, rule=0.01, betas=np.array([0.1, 1.0]), own_pattern=own)
    assert shows(figure, medians, own)


def test_retrieval_puts_the_images_in_the_order_stored_query_retrieved():
    stored, query, retrieved = np.full((1, 4), 0.1), np.full((1, 4), 0.2), np.array([[[0.3] * 4, [0.4] * 4]])
    figure = plot.retrieval(
        stored, query, retrieved, betas=(1.0, 2.0), overlaps=np.array([[0.5, 0.6, 0.7]]), shape=(2, 2), rows=["noise"]
    )
    assert [float(ax.images[0].get_array()[0, 0]) for ax in figure.axes] == [0.1, 0.2, 0.3, 0.4]
    assert [ax.get_xlabel() for ax in figure.axes] == ["", "0.50", "0.60", "0.70"]


def test_recall_draws_each_curve_with_its_own_errors():
    curves = {"x": np.array([10.0, 100.0]), "a": np.array([0.9, 0.5]), "a error": np.array([0.02, 0.04])}
    figure = plot.recall(curves, curves, curves)
    for ax in figure.axes:
        (bars,) = ax.containers
        assert bars.lines[0].get_ydata().tolist() == [0.9, 0.5]
        assert half_lengths(bars) == pytest.approx([0.02, 0.04])


def test_dark_variant_of_the_landscape_keeps_its_lines_unfilled():
    axis = np.linspace(-1, 1, 9)
    x, y = np.meshgrid(axis, axis)
    point = np.zeros((1, 2))
    figure = plot.landscape(
        axis,
        (x**2 + y**2)[None],
        np.stack([-x, -y], axis=-1)[None],
        queries=point + 0.5,
        updates=point[None],
        patterns=point,
        betas=(1.0, 1.0)[:1],
    )
    with themes.dark(figure, style.DARK):
        (lines,) = [c for c in figure.axes[0].collections if c.get_label() == "contour lines"]
        assert len(lines.get_facecolor()) == 0


def test_orders_is_the_first_panel_of_interactions_alone():
    strengths = {"Gaussian": np.array([0.3, 0.1, 1e-18]), "Poisson": np.array([0.3, 0.2, 0.1])}
    figure = plot.orders(strengths, floor=1e-15)
    assert len(figure.axes) == 1
    assert shows(figure, strengths["Gaussian"][:2], strengths["Poisson"])


def test_the_still_picture_shows_the_query_its_step_and_its_end():
    axis = np.linspace(-2.8, 2.8, 9)
    energy = axis[:, None] ** 2 + axis**2
    query, shares = np.array([0.3, -0.4]), np.full((2, 5), 0.2)
    steps, ends = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.5, 0.6], [0.7, 0.8]])
    figure = plot.live(
        axis,
        np.stack([energy, energy]),
        query=query,
        patterns=np.zeros((5, 2)),
        weights=shares,
        steps=steps,
        ends=ends,
        returned=np.zeros((2, 4, 4)),
        betas=(0.5, 2.0),
        names="ABCDE",
    )
    for ax, step, end in zip(figure.axes[::2], steps, ends, strict=True):
        marks = {tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xydata()) == 1}
        assert {tuple(query), tuple(step), tuple(end)} <= marks
