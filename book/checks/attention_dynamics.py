"""What the lesson attention-dynamics claims, measured on the variables that its cells leave behind."""

from dataclasses import replace

import jax
import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from companion.claims import Measurement
from spinbook import self_attention as sa
from spinbook.precision import enable_x64

SIZES = 1000 * np.array([3, 10, 30, 100, 300, 1000, 3000])
CROWDS = 40


def exact_at_large_n(network):
    """The power of N with which crowds deviate from the map; the rival is a map whose positions are a step late."""
    late = sa.token_window(network)._replace(position=np.int64(1))
    keys = jax.random.split(jax.random.key(1), CROWDS)

    def values_of(N):
        """Value overlaps of crowds of N bits, (crowds, tokens, patterns)."""
        options = {"beta": 0.8, "num_spins": int(N), "steps": 30}
        return jax.vmap(lambda key: sa.sample_finite(key, network, **options).values)(keys)

    with enable_x64():
        values = np.array([values_of(N) for N in SIZES])

    def power(start):
        limit = sa.simulate(network, beta=0.8, steps=30, start=start).values
        each = np.sqrt(((values - limit) ** 2).mean(axis=(2, 3)))
        mean, error = each.mean(axis=1), each.std(axis=1, ddof=1) / CROWDS**0.5
        (slope, _), covariance = np.polyfit(np.log(SIZES), np.log(mean), 1, w=mean / error, cov="unscaled")
        return slope, np.sqrt(covariance[0, 0])

    return Measurement(*power(None), rival=power(late))


def _largest(network, steps=100_000):
    """Mean of the largest exponent over 24 orbits, and its standard error."""
    options = {"steps": steps, "transient": 1000, "num_exponents": 1, "observation": sa.EXPONENTS_ONLY}
    starts = np.random.default_rng(24).uniform(-0.5, 0.5, (24, 4, 3))
    values = sa.bifurcation(network, [1.28], starts=starts, **options).exponents.values.ravel()
    return values.mean(), values.std(ddof=1) / len(values) ** 0.5


def largest_exponent(network):
    return Measurement(*_largest(network), rival=_largest(replace(network, epsilon=0.0)))


def order_of_regimes(close):
    """How abruptly the exponent leaves zero, if cycle, torus and chaos follow one another; rival: the first onset."""
    names = np.array(sa.REGIMES)[sa.classify_sweep(close).regime.values]
    first = close.exponents.values[:, 0]

    def stays(wanted):
        """Index at which a regime first stays for three temperatures."""
        here = np.convolve(names == wanted, np.ones(3), "valid") == 3
        return int(here.argmax()) if here.any() else 0

    torus, chaos = stays("quasi-periodic"), stays("chaotic")
    on_torus = np.abs(first[:chaos][names[:chaos] == "quasi-periodic"]).max(initial=1e-9)
    in_order = names[0] == "fixed point" and 0 < torus < chaos
    jump = first[chaos] / on_torus if in_order else 0.0
    return Measurement(jump, rival=np.abs(first[torus]) / np.abs(first[max(torus - 1, 0)]))


def _slope(sizes, passage, exponent):
    """2 lambda_1 times the slope of the mean time against log N, and its standard error over places."""
    draws = np.random.default_rng(1).integers(passage.shape[1], size=(200, passage.shape[1]))
    slopes = [
        np.polyfit(np.log(sizes), times.mean(axis=1), 1)[0] for times in (passage, *(passage[:, d] for d in draws))
    ]
    return 2 * exponent * slopes[0], 2 * exponent * np.std(slopes[1:], ddof=1)


def prediction_horizon(network, W, sizes, places, limit, off, passage, follow):
    exponent, _ = _largest(network, 20_000)
    colder = follow(places, 1.01 * 1.28, len(off))[:, None]
    late = np.linalg.norm((off + limit - colder)[..., 0, :] @ W[0].T / 3, axis=-1) > 0.05
    of_colder = np.where(late.any(axis=0), late.argmax(axis=0), len(late)) + 1
    return Measurement(*_slope(sizes, passage, exponent), rival=_slope(sizes, of_colder, exponent))


def test_by_hand():
    assert abs(1.154**16 - 10) < 0.15
    assert round(np.log(50_000) / np.log(1.154)) == 76
    for newest, after in ((0.60, (0.565, 0.633)), (0.61, (0.577, 0.641))):
        window = np.array([newest, -0.23])
        for m in (*after, None):
            window = np.array([np.tanh(1.28 * softmax(4 * window[0] * window) @ window), window[0]])
            assert m is None or abs(window[0] - m) < 6e-4
        for _ in range(200):
            window = np.array([np.tanh(1.28 * softmax(4 * window[0] * window) @ window), window[0]])
        assert abs(window[0] - 0.736) < 5e-4
    assert abs(np.sqrt((1 - 0.565**2) / 8) - 0.29) < 5e-3


def test_factor_of_the_text(network):
    assert abs(np.exp(_largest(network)[0]) - 1.154) < 2e-3


def test_turn_is_a_step_of_the_library(network, attention, turn, W):
    start = sa.simulate(network, beta=1.28, steps=1, transient=999).window
    mu = np.tanh(1.28 * start.attention @ W[0])
    for t, A in enumerate(sa.simulate(network, beta=1.28, steps=12, start=start).attention):
        assert np.abs(attention(mu, t) - A).max() < 1e-12
        mu = turn(mu, t, 1.28)


def test_crowd_has_the_mean_of_the_map(turn, places):
    crowd, limit = turn(np.broadcast_to(places, (400, *places.shape)), 0, 1.28, 3000), turn(places, 0, 1.28)
    assert np.abs(crowd.mean(axis=0) - limit)[:, 0].max() < 6 / np.sqrt(400 * 1000)


def test_nine_tenths_of_the_exponent_come_from_four_steps_in_ten(places, overlaps, turn, gamma):
    mu, delta = places, np.random.default_rng(1).normal(size=places.shape)
    undecided, grown = [], []
    for t in range(-50, 400):
        delta = delta * 1e-7 / np.linalg.norm(delta, axis=(1, 2), keepdims=True)
        m = [overlaps(mu[:, n], t - n) for n in range(4)]
        w = softmax(gamma * np.stack([(m[0][:, 2] * key[:, 3]).sum(axis=1) for key in m], axis=1), axis=1)
        mu, twin = turn(np.stack([mu, mu + delta]), t, 1.28)
        delta = twin - mu
        if t >= 0:
            undecided.append(w.max(axis=1) < 0.9)
            grown.append(np.log(np.linalg.norm(delta, axis=(1, 2)) / 1e-7))
    undecided, grown = np.array(undecided), np.array(grown)
    assert 0.35 < undecided.mean() < 0.4
    assert 0.9 < (undecided * grown).sum() / grown.sum() < 0.97


def test_averages_of_few_and_many_bits(few, lost):
    share = dict(zip(few.tolist(), lost, strict=True))
    assert share[3000] < 0.1 < 0.5 < share[30]
    assert share[3] > 0.9


def test_exercise_1():
    def settled(beta, window):
        values = [0.9] * window
        for _ in range(3000):
            values = [np.tanh(beta * np.mean(values)), *values[:-1]]
        return values[0]

    root = brentq(lambda m: np.tanh(1.5 * m) - m, 0.1, 1)
    assert abs(root - 0.8586) < 5e-5
    for window in (1, 4, 8):
        assert settled(0.95, window) < 1e-9
        assert abs(settled(1.5, window) - root) < 1e-9


def test_exercise_2(turn):
    """``turn`` reads the weight of the positions from the page."""
    mu, page = np.random.default_rng(2).uniform(-1, 1, size=(4, 3)), turn.__globals__
    assert np.abs(turn(-mu, 0, 1.28) + turn(mu, 0, 1.28)).max() > 1e-3
    kept, page["eps"] = page["eps"], 0.0
    try:
        assert np.abs(turn(-mu, 0, 1.28) + turn(mu, 0, 1.28)).max() < 1e-12
    finally:
        page["eps"] = kept


def test_exercise_3(total):
    assert abs(total / 20_000 - 0.419) < 0.01
