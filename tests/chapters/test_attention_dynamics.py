"""Each figure of the chapter shows the numbers that it is given."""

import numpy as np
import pytest

from chapters import style
from chapters.attention_dynamics import figures as plot
from tests.chapters.drawings import curves, shows_curve, written


def test_hopfield_has_three_overlaps_of_each_kind_and_three_attention_values():
    texts = set(written(plot.hopfield()))
    assert {f"$m^{kind}_{a}$" for kind in "qk" for a in (1, 2, 3)} <= texts
    assert {f"$A_{a}$" for a in (1, 2, 3)} <= texts


def test_layer_has_four_tokens_in_the_window_and_one_that_enters():
    texts = written(plot.layer())
    assert [text for text in texts if text.startswith("$x_")] == [
        "$x_{t-3}$",
        "$x_{t-2}$",
        "$x_{t-1}$",
        "$x_t$",
        "$x_{t+1}$",
    ]


def test_layer_counts_positions_in_two_bits_from_zero_to_three_and_on_to_zero():
    figure = plot.layer()
    squares = [patch for patch in figure.axes[0].patches if abs(getattr(patch, "get_width", lambda: 0)() - 0.18) < 1e-9]
    filled = [to != (1.0, 1.0, 1.0, 1.0) for to in (square.get_facecolor() for square in squares)]
    assert [2 * high + low for high, low in zip(filled[::2], filled[1::2], strict=True)] == [0, 1, 2, 3, 0]


@pytest.fixture
def sweep() -> dict[str, np.ndarray]:
    counts = np.zeros((4, 10), dtype=int)
    counts[0, 5] = 9
    counts[1, [2, 7]] = 4
    counts[2, 2:8] = 2
    counts[3, 1:9] = 1
    crossings = np.full((4, 3), np.nan)
    crossings[2, :2] = [-0.3, 0.3]
    crossings[3] = [-0.5, 0.1, 0.5]
    return {
        "betas": np.array([0.0, 1.0, 2.0, 3.0]),
        "bins": np.linspace(-0.9, 0.9, 10),
        "counts": counts,
        "crossings": crossings,
        "regimes": np.array(["fixed point", "periodic", "quasi-periodic", "chaotic"]),
        "exponents": np.array([[-0.3, -0.4], [-0.1, -0.2], [0.0, -0.1], [0.1, -0.1]]),
    }


def test_bifurcation_draws_repeating_orbits_as_points_and_the_others_on_the_plane(sweep):
    figure = plot.bifurcation(**sweep)
    bins = sweep["bins"]
    assert shows_curve(figure, np.array([0.0, 1.0, 1.0]), bins[[5, 2, 7]])
    assert shows_curve(figure, np.array([2.0, 2.0, 2.0]), sweep["crossings"][2])
    assert shows_curve(figure, np.array([3.0, 3.0, 3.0]), sweep["crossings"][3])
    for order in range(2):
        assert shows_curve(figure, sweep["betas"], sweep["exponents"][:, order])


def test_bifurcation_shades_only_orbits_that_do_not_repeat(sweep):
    (image,) = plot.bifurcation(**sweep).axes[0].images
    level = np.asarray(image.get_array()).T
    assert not level[:2].any()
    # Bins that nobody visits are cut off above and below.
    assert np.array_equal(level[2:] > 0, sweep["counts"][2:, 1:9] > 0)
    assert np.allclose(image.get_extent(), (0.0, 3.0, -0.8, 0.8))


def test_bifurcation_is_darker_where_an_orbit_is_more_often(sweep):
    sweep["counts"][3] = [0, 1, 5, 6, 25, 26, 100, 1, 1, 0]
    (image,) = plot.bifurcation(**sweep).axes[0].images
    assert np.asarray(image.get_array())[:, 3].tolist() == [1, 1, 2, 2, 3, 3, 1, 1]


def test_bifurcation_names_marks_that_lie_too_close_together_once(sweep):
    figure = plot.bifurcation(**sweep, marks=[1.0, 1.01, 2.0], zoom=(2.0, 3.0))
    assert {"1, 1.01", "2", "next figure"} <= set(written(figure))


def test_bifurcation_survives_an_exponent_of_minus_infinity(sweep):
    sweep["exponents"][0] = -np.inf
    low, high = plot.bifurcation(**sweep).axes[1].get_ylim()
    assert np.isfinite([low, high]).all()


def test_bifurcation_takes_the_largest_exponent_alone(sweep):
    sweep["exponents"] = sweep["exponents"][:, :1]
    figure = plot.bifurcation(**sweep)
    assert r"$\lambda_2$" not in written(figure)


def test_transitions_shows_exponents_multipliers_and_both_places():
    beta = np.linspace(0, 1, 5)
    first = {"beta": beta, "exponents": np.stack([beta, -beta, -2 * beta], axis=1)}
    second = {"beta": beta + 1, "exponents": np.stack([beta**2, -beta], axis=1), "other start": beta**3}
    multipliers = np.array([1j, -1j, 0.2])
    figure = plot.transitions(first, second, onset=0.3, chaos=(1.4, 1.5), multipliers=multipliers)
    for part in (first, second):
        assert shows_curve(figure, part["beta"], part["exponents"][:, 0])
        assert shows_curve(figure, part["beta"], part["exponents"][:, 1])
    assert shows_curve(figure, second["beta"], second["other start"])
    assert shows_curve(figure, multipliers.real, multipliers.imag)
    assert any(np.array_equal(x, [0.3, 0.3]) for x, _ in curves(figure))
    assert figure.axes[2].patches[0].get_x() == pytest.approx(1.4)


def test_attractors_has_a_panel_for_each_orbit_in_the_colour_of_its_regime():
    points = np.random.default_rng(0).normal(size=(3, 300, 2))
    regimes = ("periodic", "quasi-periodic", "chaotic")
    figure = plot.attractors([(f"{k}", regime, points[k]) for k, regime in enumerate(regimes)])
    for ax, regime, orbit in zip(figure.axes, regimes, points, strict=False):
        assert np.array_equal(np.transpose(ax.lines[0].get_data()), orbit)
        assert ax.lines[0].get_color() == plot.REGIME_COLOURS[regime]


def test_memory_writes_the_height_of_a_peak_that_leaves_the_frame():
    column = {
        "title": "orbit",
        "regime": "chaotic",
        "orbit": np.sin(np.arange(20.0)),
        "long_orbit": np.cos(np.arange(50.0)),
        "frequency": np.linspace(0, 0.5, 6),
        "power": np.array([0.0, 1.0, 2.0, 1.0, 0.5, 15.0]),
        "lags": np.arange(4),
        "autocorrelation": np.array([1.0, 0.5, 0.0, -0.5]),
        "clip": 4.0,
    }
    figure = plot.memory([column, column | {"clip": 20.0, "regime": "quasi-periodic"}])
    assert shows_curve(figure, column["frequency"], column["power"])
    assert shows_curve(figure, column["lags"], column["autocorrelation"])
    assert [text for text in written(figure) if "up to" in text] == ["up to 15.0\nat $f = 0.5$"]


def test_coexistence_draws_every_start_and_stops_a_survival_curve_where_nobody_survives():
    betas = np.array([1.26, 1.27])
    amplitudes = np.array([[0.1, 0.2, 0.4], [0.15, 0.15, 0.38]])
    regimes = np.array([["periodic", "quasi-periodic", "chaotic"], ["periodic", "periodic", "chaotic"]])
    times = np.array([0.0, 1000.0, 2000.0])
    alive = np.array([1.0, 0.5, 0.0])
    twins = np.array([[0.14, -0.1, -0.1], [0.14, 0.14, -0.1]])
    figure = plot.coexistence(
        betas,
        amplitudes,
        regimes,
        times=times,
        survival={1.27: alive},
        lifetimes={1.27: 1443.0},
        twin_times=times,
        twins=twins,
    )
    drawn = sum(len(line.get_xdata()) for line in figure.axes[0].lines)
    assert drawn == amplitudes.size
    assert shows_curve(figure, times[:2] / 1e3, alive[:2])
    assert shows_curve(figure, times[:2] / 1e3, np.exp(-times[:2] / 1443.0))
    for orbit in twins:
        assert shows_curve(figure, times / 1e3, orbit)


def test_exponent_map_puts_white_at_zero_and_marks_the_source():
    betas, gammas = np.linspace(0.5, 3, 4), np.geomspace(2, 200, 3)
    exponents = np.linspace(-1, 0.2, 12).reshape(3, 4)
    figure = plot.exponent_map(betas, gammas, exponents, paper=(127.0, (0.5, 3.0)))
    mesh = figure.axes[0].collections[0]
    assert np.asarray(mesh.get_array()).max() == 0.2
    assert float(mesh.norm(0.0)) == 0.5
    assert shows_curve(figure, np.array([0.5, 3.0]), np.array([127.0, 127.0]))


def test_variations_multiplies_exponents_by_the_length_of_the_window():
    betas = np.linspace(1, 3, 5)
    by_context = {4: np.linspace(-0.1, 0.1, 5), 8: np.linspace(-0.05, 0.05, 5)}
    shares = np.array([[0.25, 0.1, 0.65], [0.5, 0.1, 0.4]])
    figure = plot.variations(
        np.array([0.0, 0.02, 0.5]),
        np.array([0.5, 0.5, 0.0]),
        betas=betas,
        by_context=by_context,
        seed_betas=np.array([1.0, 2.0, 3.0]),
        by_seed=np.array([[-0.2, -0.1, -0.3], [0.1, 0.05, -0.1]]),
        features=(3, 4),
        feature_shares=shares,
    )
    assert shows_curve(figure, betas, 4 * by_context[4])
    assert shows_curve(figure, betas, 8 * by_context[8])
    heights = [patch.get_height() for patch in figure.axes[3].patches]
    assert np.allclose(np.reshape(heights, (3, 2)).T, shares)


def test_blocks_shows_every_kind_of_block_in_both_panels():
    strengths = np.array([0.0, 0.5])
    shares = {"residual": np.array([0.1, 0.2]), "both": np.array([0.1, 0.05])}
    halves = {name: values / 2 for name, values in shares.items()}
    figure = plot.blocks(dict.fromkeys(shares, strengths), shares, halves, halves, halves)
    for values in (*shares.values(), *halves.values()):
        assert shows_curve(figure, strengths, values)


@pytest.mark.parametrize("colour", list(plot.REGIME_COLOURS.values()))
def test_regimes_have_colours_of_the_palette(colour):
    assert colour in style.DARK
