"""What the lesson spin-transformers claims, measured on the variables that its cells leave behind."""

import jax
import numpy as np
import scipy.special
from scipy.special import ive

from companion.claims import Measurement
from experiments.vector import fidelity
from spinbook import lens, sphere
from spinbook.vector import phases, stochastic
from spinbook.vector.mean_field import flat_tap_step, naive_step


def norms(vectors):
    return np.linalg.norm(vectors, axis=-1)


def onsager_rescales(J, x):
    """The part of a term's length outside of the plane of a site's input and its attention."""
    m = fidelity.steady_means(J, x, 1.0, flat_tap_step)
    planes = np.linalg.qr(np.stack([x, J @ m], axis=2))[0]

    def outside(extra):
        inside = planes @ (planes.swapaxes(1, 2) @ extra[..., None])
        return np.linalg.norm(extra - inside[..., 0]) / np.linalg.norm(extra)

    dim, rng = x.shape[1], np.random.default_rng(0)
    weights = rng.normal(size=(2, 4 * dim, dim)) / np.sqrt(dim)
    onsager = np.asarray(sphere.field_large_d(m, beta=1.0)) - x - J @ m
    return Measurement(outside(onsager), rival=outside(np.maximum(0, m @ weights[0].T) @ weights[1]))


def tap_accounts_for_correlations(seed):
    """TAP's error over the naive one with couplings of both signs, N = 96, D = 128, from eight copies."""
    N, D, copies = 96, 128, 8
    rng, R = np.random.default_rng([seed, 1]), sphere.radius(D)
    J, x = rng.normal(size=(N, N)) / np.sqrt(N), rng.normal(size=(N, D))
    x *= R / norms(x)[:, None]
    single = [a.astype(np.float32) for a in (np.broadcast_to(x, (copies, N, D)), J, x)]

    def ratio(beta):
        options = {"beta": np.float32(beta), "steps": 120, "transient": 20}
        keys = jax.random.split(jax.random.key(seed), 2)
        pair = [np.asarray(stochastic.simulate(key, *single, **options).replica_magnetizations) for key in keys]
        # Products of the deviations from two runs, in which noise cancels; one number for each copy.
        means = [fidelity.steady_means(J, x, beta, step) for step in (flat_tap_step, naive_step)]
        tap, naive = (np.sum((m - pair[0]) * (m - pair[1]), axis=(1, 2)) for m in means)
        left = np.sqrt(np.maximum((tap.sum() - tap) / (naive.sum() - naive), 0))
        return np.sqrt(max(tap.mean() / naive.mean(), 0)), np.sqrt((copies - 1) * np.var(left))

    return Measurement(*ratio(2.0), rival=ratio(1.0))


def test_by_hand(a, by_hand, missed):
    assert abs(a - 0.414) < 5e-4
    assert [round(value, 3) for value in by_hand] == [0.518, 0.515, 0.478]
    assert abs((1 + a) ** 2 - 2) < 1e-12
    assert [round(value, 3) for value in (1 - a**2, 2 + 1 - a**2, 2 + (1 - a**2) / 20)] == [0.828, 2.828, 2.041]
    assert [round(100 * value) for value in missed] == [0, 2, 38]


def test_factors_are_those_of_the_library(exact, short):
    for D, beta in ((8, 0.5), (128, 2.0), (512, 4.0)):
        h = np.eye(3, D) * np.array([[0.3], [1.0], [2.5]]) * sphere.radius(D)
        squared = (h**2).sum(axis=1)
        assert np.abs(sphere.magnetization(h, beta=beta) - exact(squared, beta, D)[:, None] * h).max() < 1e-9
        assert np.abs(sphere.magnetization_large_d(h, beta=beta) - short(squared, beta, D)[:, None] * h).max() < 1e-9


def test_the_line_is_nearer_to_what_was_sampled(table):
    assert table["one line more"].median() < table["naive"].median() / 2
    assert table["naive"].median() < table["one update"].median()


def test_settle_finds_the_means_of_the_record(settle):
    J, x = fidelity.system(fidelity.Case("rows", beta=1.0, scale=1.0, causal=False, num_sites=64, dim=128, draw=0))
    assert np.abs(settle(J, x, 1.0) - fidelity.spread_means(J, x, beta=1.0)).max() < 1e-9


def test_what_is_said_of_the_recorded_rows(rows, shares):
    right = rows[["naive", "tap", "spread"]].fillna(1) < 0.05
    wide, masked = rows.n_eff > 20, rows.masked == 1
    assert right.spread.all()
    assert right.naive[wide & ~masked].mean() > 0.9
    assert right.naive[wide & masked].mean() < 0.5
    assert right.naive[rows.n_eff < 10].mean() < 0.01
    assert (shares["TAP"] >= shares["naive"]).all()
    cold = rows[(rows.beta == 2) & (rows.n_eff < 2) & rows.tap.notna()]
    assert cold.tap.median() > 1.5 * cold.naive.median()
    assert rows.tap[masked & (rows.beta > 1)].isna().mean() > 0.5


def test_most_heads_of_the_trained_encoder_read_few():
    assert np.mean(lens.sample().by_head.sel(measure="attended") < 20) > 0.5


def test_where_the_picture_breaks(ends, best, effect, start):
    misses = {name: np.linalg.norm(m - best) / effect for name, m in ends.items()}
    assert misses["naive"] < min(misses["naive, one update"], misses["short formula"])
    assert 0.05 < norms(best - start).mean() / norms(start).mean() < 0.3


def test_the_library_has_the_line(found, means):
    assert bool(found.converged)
    assert np.abs(found.value - means["one line more"]).max() < 1e-6


def test_the_shared_fluctuation_by_hand():
    r = 0.5**2 / (1 - 0.5**2)
    assert abs(r - 1 / 3) < 1e-12
    assert abs(r / (1 + r) - 1 / 4) < 1e-12


def test_exercise_1(short):
    lengths = [short(63.0, beta, 128) for beta in (1.0, 2.0)]
    assert np.abs(np.array(lengths) - [0.4142, 0.6180]).max() < 1e-4


def test_exercise_2(short, J, x, means):
    h = x + J @ means["naive"]
    cold = short((h**2).sum(axis=1), 1e6, x.shape[1])[:, None] * h
    assert np.abs(cold - sphere.radius(x.shape[1]) * h / norms(h)[:, None]).max() < 1e-4


def test_exercise_3(exact, short):
    R2 = 0.5
    langevin = 1 / np.tanh(0.5) - 2
    assert abs(langevin - 0.164) < 5e-4
    assert abs(exact(R2, 1.0, 3) - langevin) < 1e-9
    assert abs(short(R2, 1.0, 3) - 0.414) < 5e-4
    for D in (64, 128):
        R2 = D / 2 - 1
        assert 0.009 < short(R2, 1.0, D) / exact(R2, 1.0, D) - 1 < 0.021


def test_exercise_4():
    options = {"coupling_mean": 1.0, "coupling_std": 0.5}
    assert abs(phases.border(8.0, **options) - 0.5**0.5) < 1e-12
    assert abs(phases.border(8.0, naive=True, **options) - 0.75) < 1e-12


def test_exercise_5(settle):
    """Length over R of the exact mean of the first token and of the naive one, |x| = R."""
    beta, D = 2.0, 32
    R = sphere.radius(D)
    u, weight = scipy.special.roots_gegenbauer(300, (D - 2) / 2)
    k = beta * R * R * np.sqrt(2 + 2 * u)  # beta R |x + s|
    logits = np.log(weight) + beta * R**2 * u + np.log(ive(D / 2 - 1, k)) + k - (D / 2 - 1) * np.log(k)
    first = R * np.eye(1, D)
    assert abs(scipy.special.softmax(logits) @ u - 0.696) < 1e-3
    assert abs(norms(settle(np.ones((1, 1)), first, beta, spread=False))[0] / R - 0.745) < 1e-3
    assert abs(norms(settle(np.ones((1, 1)), first, beta))[0] / R - 0.697) < 5e-4
