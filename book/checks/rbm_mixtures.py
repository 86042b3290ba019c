"""What the lesson rbm-mixtures claims, measured on the functions and variables that its cells leave behind."""

import jax
import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from companion.claims import Measurement
from experiments.datasets import digits as images
from spinbook import rbm

jax.config.update("jax_enable_x64", True)


def update_is_posterior_mean(bayes, attention, pixels):
    rng, beta = np.random.default_rng(1), 0.25
    xi = pixels[:40] + rng.normal(size=(40, 64)) / np.sqrt(beta)
    answer = attention(xi, pixels, beta)
    w = softmax(beta / 2 * (pixels**2).sum(axis=1))
    others = [bayes(xi, pixels, beta, w), *(f(xi, pixels, beta=beta) for f in (rbm.posterior_mean, rbm.retrieve))]
    gap = max(np.abs(np.asarray(other) - answer).max() for other in others)
    return Measurement(gap, rival=np.abs(bayes(xi, pixels, beta, np.full(len(w), 1 / len(w))) - answer).max())


def mixture_density(energy, places):
    beta, nodes = 0.7, np.linspace(-10, 10, 201)
    grid = np.stack(np.meshgrid(nodes, nodes), axis=-1)
    density = np.exp(-beta * energy(grid, places, beta))
    density /= density.sum() * (nodes[1] - nodes[0]) ** 2
    w = softmax(beta / 2 * (places**2).sum(axis=1))
    normal = beta / (2 * np.pi) * np.exp(-beta / 2 * ((grid[..., None, :] - places) ** 2).sum(axis=-1))
    library = np.exp(np.asarray(rbm.mixture_log_density(grid, places, beta=beta)))
    gap = max(np.abs(density - mixture).max() for mixture in (normal @ w, library))
    return Measurement(gap, rival=np.abs(density - normal.mean(axis=-1)).max())


def weights_near_uniform_digits(fraction):
    norms = np.linalg.norm(np.asarray(images.load().patterns, dtype=float), axis=1)
    similar = 8 * (1 + 0.1 / 64 * np.random.default_rng(2).normal(size=1000))
    return Measurement(fraction(norms), control=fraction(similar))  # at beta = 1, as in Bal's post


def lost_patterns(lost, patterns):
    equal_norms = np.argmax(patterns @ patterns.T, axis=1) != np.arange(len(patterns))
    return Measurement(lost.mean(), rival=equal_norms.mean())


def rapid_convergence_attention_temperature(attention, settle, patterns):
    rng, left = np.random.default_rng(3), {1 / 8: [], 1.0: []}
    for _ in range(8):
        X = patterns[rng.permutation(len(patterns))[:100]]
        xi = X + rng.normal(size=X.shape)
        for beta, medians in left.items():
            end = settle(xi, X, beta)
            far, near = (np.linalg.norm(q - end, axis=1) for q in (xi, attention(xi, X, beta)))
            medians.append(np.median(near / far))
    (warm, error), cold = ((np.mean(values), np.std(values, ddof=1) / np.sqrt(8)) for values in left.values())
    return Measurement(warm, error, control=cold)


def projections_have_no_energy():
    keys, values, queries = np.random.default_rng(4).normal(size=(3, 100, 64))
    same = max(asymmetry(keys, keys, xi) for xi in queries)
    return Measurement(min(asymmetry(keys, values, xi) for xi in queries), rival=same)


def asymmetry(keys, values, xi, beta=1 / 8):
    """|A - A^T| / |A + A^T| for the derivative A of the update at xi."""
    r = softmax(beta * keys @ xi)
    A = beta * (values * r[:, None]).T @ (keys - r @ keys)
    return np.linalg.norm(A - A.T) / np.linalg.norm(A + A.T)


def test_two_keys_on_a_line(keys, seen, likelihood, prior):
    assert np.allclose(likelihood, [0.995, 0.667], atol=5e-4)
    assert np.allclose(likelihood / likelihood.sum(), [0.60, 0.40], atol=0.005)
    assert np.allclose(softmax(keys * seen), [0.25, 0.75], atol=0.005)
    assert np.allclose(prior * likelihood / (prior @ likelihood), softmax(keys * seen))
    assert abs(prior[1] / prior[0] - 4.48) < 0.005


def test_a_step_lowers_the_energy_and_is_a_whole_gradient(energy, attention, places):
    rng = np.random.default_rng(5)
    xi, tiny = rng.normal(size=(50, 2)), 1e-5
    for beta in (0.3, 1.0, 5.0):
        new = attention(xi, places, beta)
        assert np.all(energy(new, places, beta) <= energy(xi, places, beta))
        moves = tiny * np.eye(2)[:, None]
        slope = (energy(xi + moves, places, beta) - energy(xi - moves, places, beta)) / (2 * tiny)
        assert np.allclose(xi - slope.T, new, atol=1e-8)


def test_six_per_cent_lose_against_a_longer_digit(lost, tied, norms, products, pixels):
    assert (lost.sum(), tied.sum()) == (106, 4)
    bright = (pixels + 1) / 2
    overlaps = bright @ bright.T
    assert round(100 * (overlaps.max(axis=1) > np.diag(overlaps) + 1e-9).mean()) == 81
    assert np.all(norms[products.argmax(axis=1)][lost] > norms[lost])


def test_the_fraction_follows_the_spread_times_the_dimension(fraction, random_norms, spreads, norms):
    for dim, rows in random_norms.items():
        expected = np.exp(-((dim * spreads) ** 2))
        near = spreads < 0.1  # the formula is that of small spreads
        assert np.abs([fraction(row) for row in rows] - expected)[near].max() < 0.12
    assert fraction(norms, 1 / 8) > 0.9
    assert 1 / 64 < 0.02
    assert np.exp(np.ptp(norms**2) / 2) > 1e4


def test_what_it_takes_to_win():
    assert round(np.log(1797), 1) == 7.5
    assert round(8 * np.log(1797)) == 60


def test_digits_resemble_each_other_and_do_not_come_back(memories, back, left_over, missed):
    typical = {}
    for name, X in memories.items():
        typical[name] = np.sqrt(((X @ X.T / 64)[np.triu_indices(len(X), 1)] ** 2).mean())
    assert typical["digits"] > 2 * typical["random patterns"]
    assert back["digits", 0.125] < 0.2 < 0.5 < back["random patterns", 0.125]
    assert back["digits", 1.0] > 0.9
    assert left_over["digits", 1.0] < 0.01
    assert missed["digits", 0.125] > 10 * missed["digits", 1.0]


def test_at_large_beta_the_right_digit_leads_and_the_erased_one_shares(cosines, spoiled, patterns, chosen):
    r = softmax(spoiled @ patterns.T, axis=1)
    assert r.argmax(axis=1).tolist() == [int(k) for k in chosen]
    noisy, erased, halved = r.max(axis=1)
    assert min(noisy, halved) > 0.9
    assert erased < 0.5
    assert np.all(cosines[-1] > cosines[2])


def test_exercise_1():
    weight = {N: softmax(np.r_[8.0, np.zeros(N - 1)])[0] for N in (2981, 2982)}
    assert weight[2982] < 0.5 <= weight[2981]
    rng = np.random.default_rng(6)
    overlaps = rng.normal(size=(200, 64)) @ rng.normal(size=(64, 200)) / 8
    assert abs(np.exp(overlaps).mean() / np.exp(0.5) - 1) < 0.1


def test_exercise_2(settle):
    pair = np.array([[0.6, 0.8], [-0.6, -0.8]])
    root = brentq(lambda m: np.tanh(1.5 * m) - m, 0.1, 1)
    assert abs(settle(0.3 * pair[:1], pair, 1.5)[0] @ pair[0] - root) < 1e-8
    assert abs(root - 0.8586) < 5e-5
    assert np.abs(settle(0.3 * pair[:1], pair, 0.9)).max() < 1e-6


def test_exercise_3(attention, places):
    c, query = np.array([0.5, -1.0]), np.array([[0.3, 0.4]])
    assert np.allclose(attention(query, places + c, 1.0) - c, attention(query, places, 1.0))
    before, after = (softmax((x**2).sum(axis=1) / 2) for x in (places, places + c))
    assert np.abs(before - after).max() > 0.1


def test_exercise_4(attention, places, six, winners):
    assert 5 not in winners
    assert {0, 1} <= set(winners.tolist())
    across = six[0] - six[1]
    tie = 3 * np.array([[-across[1], across[0]]]) / np.linalg.norm(across)
    tie *= np.sign(tie @ six[5])
    for stored in (six, places):
        assert np.allclose(attention(tie, stored, 1000.0), six[5])
