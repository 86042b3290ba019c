"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import numpy as np

from chapters import entropy_production as plot
from tests.chapters.drawings import shows_nearly

SEEDS = np.array([[0.1, 0.3], [0.2, 0.6], [0.5, 0.7]])


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


def test_settling_draws_means_over_seeds():
    betas = np.array([0.5, 1.0, 2.0])
    figure = plot.settling({"a": SEEDS}, betas=betas, first=SEEDS, rest=SEEDS / 2, factors=SEEDS / 3)
    assert shows_nearly(figure, [(SEEDS / k).mean(axis=1) for k in (1, 2, 3)])


def test_training_panels_show_every_condition():
    names = ["maximised, causal", "minimised, causal", "maximised, no mask", "minimised, no mask"]
    updates = np.array([0, 10, 20])
    panels = {title: {name: SEEDS * (k + j) for k, name in enumerate(names, 1)} for j, title in enumerate("ab")}
    figure = plot.mechanism(updates, panels)
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
