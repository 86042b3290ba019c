"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from chapters import entropy_production as plot
from tests.chapters.drawings import shows_nearly

SEEDS = np.array([[0.1, 0.3], [0.2, 0.6], [0.5, 0.7]])


def test_arrows_are_drawn_for_net_flows_only_and_in_their_direction():
    states = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    flow = np.zeros((4, 4))
    flow[1, 0], flow[0, 1] = 0.2, -0.2
    share, values = np.linspace(0, 1, 3), np.array([0.0, 0.4, 1.0])
    fluxes = {"none": np.zeros((4, 4)), "one": flow}
    figure = plot.arrow_of_time(states, fluxes, angles=share, production={"a": values})
    arrows = [[p for p in ax.patches if type(p).__name__ == "FancyArrowPatch"] for ax in figure.axes]
    assert [len(a) for a in arrows] == [0, 1, 0]
    start, end = arrows[1][0]._posA_posB
    assert (start, end) == ((-1.0, -1.0), (1.0, -1.0))
    assert shows_nearly(figure, values)


def test_the_drawing_of_the_module_closes_its_loop():
    texts = [text.get_text() for text in plot.module().axes[0].texts]
    assert any("later" in text for text in texts)
    assert any("softmax" in text for text in texts)


def test_identity_puts_estimates_against_paths_and_averages_the_ratios():
    paths = np.array([0.1, 1.0])
    ratios = np.array([[1.0, 1.2], [1.4, 2.0]])
    figure = plot.identity(paths, {"x": paths / 2}, strengths=np.array([0.1, 1.0]), ratios={"naive": ratios})
    assert shows_nearly(figure, paths / 2, ratios.mean(axis=1))


def test_phase_diagram_has_every_cut_with_its_naive_and_sampled_values():
    betas, cut = np.array([1.0, 2.0, 3.0]), {"weak": np.array([0.1, 0.3, 0.2]), "strong": np.array([0.4, 0.8, 1.3])}
    naive = {name: values / 2 for name, values in cut.items()}
    sampled = {name: (values[:2] + 0.05, np.array([0.01, 0.02])) for name, values in cut.items()}
    figure = plot.phase_diagram(
        betas,
        np.array([0.1, 1.0]),
        np.array([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]),
        critical=(np.array([0.1, 0.5]), np.array([1.0, 1.4])),
        cut_betas=betas,
        cuts=cut,
        naive_betas=betas,
        naive=naive,
        sampled_betas=betas[:2],
        sampled=sampled,
        marks={"weak": 1.3},
    )
    assert shows_nearly(figure, cut, naive, [mean for mean, _ in sampled.values()])
    assert sum(list(line.get_xdata()) == [1.3, 1.3] for ax in figure.axes for line in ax.lines) == 1


def test_vectors_sort_each_form_by_itself():
    dims = np.array([8, 32])
    errors = {"as printed": np.array([0.1, 0.02]), "exact": np.array([0.01, 0.01])}
    printed, consistent = np.array([0.3, -0.2, 0.1]), np.array([0.2, 0.1, 0.4])
    figure = plot.vectors(
        dims,
        errors,
        strengths=np.array([0.1, 1.0]),
        ratios={name: 1 + values for name, values in errors.items()},
        printed=printed,
        consistent=consistent,
    )
    assert shows_nearly(figure, np.sort(printed), np.sort(consistent), errors, 1 + errors["exact"])


def test_vibe_check_shows_curves_and_estimate():
    angles = np.array([0.0, 90.0, 180.0])
    curve, estimate, share = np.array([1.1, 1.0, 1.1]), np.array([1.0, 0.0, 1.0]), np.array([0.05, 0.01])
    figure = plot.vibe_check(angles, {"D": curve}, estimate, dims=np.array([16, 64]), share=share)
    assert shows_nearly(figure, curve, estimate, share)


def test_driven_counts_steps_from_one():
    rows = {name: np.array([k, k + 1.0]) for k, name in enumerate(("total", "system", "environment", "identity"))}
    turning = {name: 10 * values for name, values in rows.items()}
    figure = plot.driven(rows, turning=turning)
    assert figure.axes[0].lines[0].get_xdata().tolist() == [1, 2]
    assert shows_nearly(figure, rows, turning)


def test_settling_draws_means_over_seeds():
    betas = np.array([0.5, 1.0, 2.0])
    figure = plot.settling({"a": SEEDS}, betas=betas, first=SEEDS, rest=SEEDS / 2, factors=SEEDS / 3)
    assert shows_nearly(figure, [(SEEDS / k).mean(axis=1) for k in (1, 2, 3)])


@pytest.mark.parametrize(
    ("draw", "names"),
    [
        (plot.environment, ["maximised", "minimised", "maximised, memory frozen", "minimised, memory frozen"]),
        (plot.mechanism, ["maximised, causal", "minimised, causal", "maximised, no mask", "minimised, no mask"]),
    ],
)
def test_training_panels_show_every_condition(draw, names):
    updates = np.array([0, 10, 20])
    panels = {title: {name: SEEDS * (k + j) for k, name in enumerate(names, 1)} for j, title in enumerate("ab")}
    figure = draw(updates, panels)
    for ax, curves in zip(figure.axes, panels.values(), strict=True):
        drawn = [line.get_ydata() for line in ax.lines]
        assert all(np.allclose(a, v.mean(axis=1)) for a, v in zip(drawn, curves.values(), strict=True))


def test_learning_has_a_dot_for_every_seed():
    final = {"end": np.array([0.9, 1.0]), "none": np.array([0.1, 0.2])}
    figure = plot.learning(np.array([1, 2, 3]), {"end": SEEDS, "none": SEEDS / 3}, final=final, chance=0.125)
    _, right = figure.axes
    assert [line.get_xdata().tolist() for line in right.lines[:2]] == [v.tolist() for v in final.values()]
    assert [label.get_text() for label in right.get_yticklabels()] == ["end", "none"]
    assert shows_nearly(figure, SEEDS.mean(axis=1))


def test_films_fill_a_square_for_every_spin_that_is_up():
    film = np.array([[1, -1, -1], [-1, 1, -1]])
    figure = plot.films({"first": (film, film[::-1]), "second": (film, film)})
    squares = [[p for p in ax.patches if isinstance(p, Rectangle) and p.get_width() < 1] for ax in figure.axes]
    corners = [sorted((int(p.get_x()), int(p.get_y())) for p in patches) for patches in squares]
    # The first spin is the upper line; the first moment is on the left.
    assert corners == [[(0, 2), (1, 1)], [(0, 1), (1, 2)], [(0, 2), (1, 1)], [(0, 2), (1, 1)]]


def test_evidence_shows_the_mean_over_groups_of_films():
    steps = np.array([1, 10, 100])
    figure = plot.evidence(steps, asymmetries={"a": SEEDS}, temperatures={"b": SEEDS / 2, "c": SEEDS / 4}, goal=0.9)
    assert [len(ax.lines) for ax in figure.axes] == [2, 3]
    for ax, scale in zip(figure.axes, (1, 2), strict=True):
        assert np.allclose(ax.lines[0].get_ydata(), SEEDS.mean(axis=1) / scale)
