"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import numpy as np
from matplotlib.collections import LineCollection, QuadMesh

from chapters.spin_transformers import figures as plot
from tests.chapters.drawings import shows


def _run(rng: np.random.Generator, steps: int = 5, sites: int = 4) -> dict[str, np.ndarray]:
    return {name: rng.uniform(0, 1, (steps, sites)) for name in ("previous", "start", "fields", "norms")}


def test_couplings_are_drawn_as_many_as_asked_and_by_sign():
    J = np.random.default_rng(0).normal(size=(20, 20))
    figure = plot.yarn(J, 0.1, np.array([0.5 + 0.5j]))
    groups = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    counts = [len(group.get_segments()) for group in groups]
    strongest = np.abs(J) >= np.quantile(np.abs(J), 0.9)
    assert counts == [int(np.sum(strongest & (J > 0))), int(np.sum(strongest & (J < 0)))]
    assert shows(figure, np.array([0.5]))


def test_runs_show_means_over_sites():
    rng = np.random.default_rng(1)
    runs = {"cold": {"naive": _run(rng), "TAP": _run(rng)}}
    figure = plot.naive_and_tap(runs, radius=1.0)
    for run in runs["cold"].values():
        assert all(shows(figure, values.mean(axis=1)) for values in run.values())
    one = runs["cold"]["naive"]
    figure = plot.single_run({k: one[k] for k in ("previous", "start", "fields")}, one["norms"], radius=1.0, shown=2)
    assert shows(figure, one["norms"].mean(axis=1), one["norms"][:, 1])
    assert not shows(figure, one["norms"][:, 3])


def test_maps_are_drawn_as_they_are_with_one_mark_for_each_system():
    betas, strengths = np.geomspace(0.2, 6, 6), np.geomspace(0.1, 4, 5)
    values = np.linspace(0, 0.9, 30).reshape(5, 6)
    systems = {"TAP": np.array([[2.0, 1.0, 0.0]])}
    options = {"turned": {"TAP": values > 0.8}, "runs": {"1": ("TAP", 1.0, 1.0)}, "systems": systems}
    figure = plot.existence(betas, strengths, {"TAP": values}, **options)
    mesh = next(c for c in figure.axes[0].collections if isinstance(c, QuadMesh))
    np.testing.assert_array_equal(np.ma.filled(mesh.get_array(), np.nan).ravel(), values.ravel())
    assert [tuple(line.get_xydata()[0]) for line in figure.axes[0].lines] == [(2.0, 1.0), (1.0, 1.0)]


def test_one_step_shows_every_curve():
    dims, strengths = np.array([8.0, 16.0]), np.array([0.1, 0.2])
    names = ("naive, large D", "TAP, large D", "naive, exact", "TAP, exact")
    by_dim = {name: np.array([0.1, 0.05]) / (k + 1) for k, name in enumerate(names)}
    by_strength = {name: np.array([0.01, 0.05]) / (k + 1) for k, name in enumerate(names)}
    noise = np.array([1e-4, 1e-4])
    figure = plot.one_step(
        dims, by_dim, noise, strengths=strengths, by_strength=by_strength, noise_by_strength=noise, guides={2: 1e-3}
    )
    assert shows(figure, by_dim, by_strength, 1e-3 * (strengths / 0.1) ** 2)


def test_draws_of_one_setting_share_a_mark_and_what_was_not_found_is_left_out():
    x, y = np.array([0.1, 0.2, 0.3]), np.array([0.11, np.nan, 0.31])
    labels, errors = {"means": np.array(["a", "a", "b"])}, {"means": np.zeros(3)}
    figure = plot.collective(
        {"means": x, "more": x},
        {"means": y, "more": y},
        labels | {"more": labels["means"]},
        errors=errors | {"more": y * 0},
    )
    assert shows(figure, np.array([0.11]), np.array([0.31]))


def test_every_system_has_a_mark_of_each_law_in_the_row_of_its_shape():
    names = np.array(["band", "band", "sink"])
    ratios = {"short": np.array([0.8, 1.1, 0.1]), "long": np.array([0.97, 1.02, 1.0]), "whole": np.array([1.0, 1, 1])}
    (ax,) = plot.shapes(names, ratios, within=0.1).axes
    assert [line.get_xydata().tolist() for line in ax.lines[:3]] == [
        [[x, row] for x, row in zip(ratio, (0, 0, 1), strict=True)] for ratio in ratios.values()
    ]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["band", "sink"]


def test_printed_entries_are_sorted_and_none_is_lost():
    values = np.random.default_rng(2).uniform(1e-7, 1e-5, 36)
    figure = plot.printed({"module": values}, {"module": np.full(36, 5e-9)})
    assert shows(figure, np.sort(values))


def test_every_other_figure_draws():
    x = np.geomspace(0.1, 1, 13)
    families = {"a": x, "b": x / 2}
    assert len(plot.schematic().axes) == 3
    options = {
        "iterations": np.arange(1, 9),
        "errors": {20.0: x[:8]},
        "failing_orders": x,
        "failures": x,
        "repaired": x,
    }
    assert len(plot.bessel(x, families, families, **options).axes) == 3
    assert len(plot.errata(x, families, dims=x, trace_errors=families).axes) == 2
    options = {"times_nu": {8: 3 * x}, "law": x, "concentrations": x, "sensitivity": x, "choices": {"best": (0.5, 0.5)}}
    assert len(plot.large_d(x, {8: x}, {8: x / 9}, **options).axes) == 3
    run = _run(np.random.default_rng(3))
    options = {"changes": {"naive": x}, "factors": {"naive": 0.9}}
    assert len(plot.strong_run({"naive": run}, **options).axes) == 3
    heads, edges = (
        {"one sphere": np.array([0.0, 4.0, 1.0]), "one per head": np.array([1.0, 3.0, 1.0])},
        np.arange(4) / 5,
    )
    response = {"one sphere": np.ones((4, 4)), "one per head": np.eye(4)}
    assert len(plot.heads(heads, edges=edges, response=response).axes) == 3
