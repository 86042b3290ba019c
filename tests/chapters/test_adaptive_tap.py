"""Each figure of the chapter shows the numbers that it is given."""

import numpy as np
import pytest

from chapters import adaptive_tap as plot
from tests.chapters.drawings import shows

METHODS = ("naive", "TAP", "adaptive")
STRENGTHS = np.array([0.1, 0.5, 1.0])
RNG = np.random.default_rng(0)


def test_errors_are_medians_over_systems_in_a_panel_for_each_size():
    quartiles = {N: {name: np.sort(RNG.uniform(0.01, 1, (3, 3)), axis=0) for name in METHODS} for N in (10, 12)}
    figure = plot.errors(STRENGTHS, quartiles, quantity="error")
    assert [ax.get_title(loc="center") for ax in figure.axes] == ["$N = 10$", "$N = 12$"]
    assert all(shows(figure, middle) for by_method in quartiles.values() for _, middle, _ in by_method.values())


def test_convergence_separates_runs_that_converged_from_those_that_did_not():
    lowest, converged = RNG.normal(size=(3, 5)), RNG.uniform(size=(3, 5)) < 0.5
    fractions = {name: RNG.uniform(size=3) for name in METHODS}
    traces = {"weak": RNG.uniform(size=4), "strong": RNG.normal(size=9)}
    figure = plot.convergence(STRENGTHS, fractions, traces=traces, lowest=lowest, converged=converged)
    assert shows(figure, fractions, traces, lowest[converged], lowest[~converged])


def test_gaussian_shows_both_readings_and_all_iterations():
    deviations = {"spin's variance": np.full(3, 1e-15), "prior's covariance": np.array([0.01, 0.1, 0.2])}
    residuals = {
        "$V=0$": np.geomspace(1, 0.1, 5),
        "damped": np.geomspace(1, 0.2, 5),
        "with $V$": np.geomspace(1, 99, 5),
    }
    figure = plot.gaussian(STRENGTHS, deviations, residuals=residuals)
    assert shows(figure, deviations, residuals)


def test_correction_shows_points_and_medians_in_the_order_given():
    spins, truth = RNG.uniform(-1, 1, (2, 20))
    quartiles = {"none": np.array([0.1, 0.3, 0.9]), "trained": np.array([0.01, 0.02, 0.05])}
    figure = plot.correction(spins, truth, fitted=truth / 2, random=spins, quartiles=quartiles)
    assert shows(figure, truth, truth / 2)
    dots = [line.get_xdata()[0] for line in figure.axes[2].lines if len(line.get_xdata()) == 1]
    assert dots == [middle for _, middle, _ in quartiles.values()]
    assert [label.get_text() for label in figure.axes[2].get_yticklabels()] == list(quartiles)


def test_initialisation_shows_every_seed_and_the_means_of_both_sweeps():
    factors = {"couplings": np.array([0.1, 1.0, 10.0]), "fields": np.array([0.1, 10.0])}
    sweeps = {name: RNG.uniform(size=(len(values), 2, 4)) for name, values in factors.items()}
    figure = plot.initialisation(factors, sweeps)
    for k, ax in enumerate(figure.axes):
        lines = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
        for values in sweeps.values():
            for column in (values[:, k].mean(axis=-1), *values[:, k].T):
                assert any(np.array_equal(line, column) for line in lines)


def test_message_passing_shows_the_prediction_and_the_means():
    predicted, errors = np.linspace(1, 0.1, 6), {name: RNG.uniform(size=(5, 6)) for name in ("with memory", "none")}
    figure = plot.message_passing(predicted, errors)
    assert shows(figure, predicted)
    assert all(shows(figure, rows.mean(axis=0)) for rows in errors.values())
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == list(errors)


def test_organisation_draws_the_strongest_tenth_and_the_whole_matrix():
    norms = RNG.uniform(size=(2, 17, 17)) * (1 - np.eye(17))
    figure = plot.organisation([0, 10], norms)
    graphs, matrices = figure.axes[:2], figure.axes[2:4]
    for graph, matrix, values in zip(graphs, matrices, norms, strict=True):
        # 272 couplings between different spins; the two lines more are the dots.
        assert len(graph.lines) - 2 == pytest.approx(27, abs=1)
        assert np.array_equal(matrix.images[0].get_array(), values)


def test_class_token_is_drawn_apart_from_the_grid_of_patches():
    at = plot.places()
    assert at.shape == (17, 2)
    assert at[0, 0] < at[1:, 0].min()
    # The first patch is at the top left, as in the image.
    assert at[1].tolist() == [0, 3]
    assert at[16].tolist() == [3, 0]


def test_a_frame_is_a_picture_of_the_strip():
    norms = RNG.uniform(size=(2, 17, 17)) * (1 - np.eye(17))
    strip, frame = plot.organisation([0, 10], norms), plot.network(norms[1], top=float(norms.max()))
    lines = [[line.get_xydata().tolist() for line in ax.lines] for ax in (strip.axes[1], frame.axes[0])]
    assert lines[0] == lines[1]


def test_headline_shows_errors_and_the_part_of_the_change_of_every_seed_after_the_start():
    accuracies, parts = np.array([[0.1, 0.9, 0.98], [0.2, 0.8, 0.97]]), np.array([[0, 0.3, 1], [0, 0.4, 1]])
    patterns = np.array([[0, 0.6, 1], [0, 0.7, 1]])
    figure = plot.headline(
        [0, 10, 20], accuracies, parts, patterns, published=0.991, asked=(10, 0.9), fallen=np.array([0.1, 0.7, 0.1])
    )
    errors, change = figure.axes
    for k in range(2):
        assert np.array_equal(errors.lines[k].get_ydata(), 100 * (1 - accuracies[k, 1:]))
        assert np.array_equal(change.lines[2 * k].get_ydata(), parts[k, 1:])
        assert np.array_equal(change.lines[2 * k + 1].get_ydata(), patterns[k, 1:])
        assert np.array_equal(change.lines[2 * k].get_xdata(), [10, 20])
    assert errors.lines[2].get_ydata() == pytest.approx([30, 90])
    assert errors.lines[-1].get_ydata()[0] == pytest.approx(0.9)
    assert (change.lines[-1].get_xdata()[0], change.lines[-1].get_ydata()[0]) == (10, 0.9)
