"""Finitely many units against their mean field, against moments in closed form, and against unit-by-unit sampling."""

import jax
import numpy as np
import pytest
from scipy import stats

from spinbook.self_attention import attention_window, positional_bits, sample_finite, simulate, token_window
from spinbook.self_attention.stochastic import segment_sizes

SIZE, STEPS = 2000, 30
FIELDS = ("output_semantic", "values", "queries", "keys")


def ensemble(network, *, seed=0, **options):
    """Always of one shape, so that it is compiled once."""
    keys = jax.random.split(jax.random.key(seed), SIZE)
    return jax.vmap(lambda key: sample_finite(key, network, **options, steps=STEPS))(keys)


def test_the_first_token_has_the_mean_and_covariance_of_independent_units(paper, optimised):
    # <m> is the mean field; Cov(m^x_a, m^y_b) = (1 - eps)^2 / N^2 sum_i W^x_a W^y_b (1 - tanh^2).
    W = np.repeat(paper.semantic_signs, 10, axis=2).astype(float)
    A = token_window(paper).attention[0]
    variances = 1 - np.tanh(1.3 * A @ W[0]) ** 2
    sampled = ensemble(paper, beta=1.3, num_spins=30)
    samples = np.concatenate([np.asarray(getattr(sampled, name))[:, 0] for name in FIELDS], axis=1)
    patterns = W.reshape(12, 30)
    covariance = 0.98**2 / 30**2 * (patterns * variances) @ patterns.T
    mean_field = simulate(paper, beta=1.3, steps=1)
    expected = np.concatenate([getattr(mean_field, name)[0] for name in FIELDS])
    errors = np.sqrt(np.diag(covariance) / SIZE)
    assert np.abs((samples.mean(axis=0) - expected) / errors).max() < 4.5
    # The error of a sample covariance of nearly normal numbers.
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / SIZE)
    assert np.abs((np.cov(samples.T) - covariance) / spread).max() < 5


def unit_by_unit(network, beta, num_spins, steps, rng):
    """Attention of `SIZE` orbits after so many steps, with every bit drawn and the overlaps computed from the bits."""
    W = np.repeat(network.semantic_signs, segment_sizes(network, num_spins), axis=2).astype(float)
    bits = positional_bits(network.positional_signs.shape[2])
    attention, window = np.repeat(token_window(network).attention[:1], SIZE, axis=0), []
    for t in range(steps):
        up = 1 / (1 + np.exp(-2 * beta * attention @ W[0]))
        x = np.where(rng.random(up.shape) < up, 1.0, -1.0)
        positional = network.positional_signs @ bits[t % len(bits)] / bits.shape[1]
        m = (1 - network.epsilon) * np.einsum("xai,ni->xna", W, x) / num_spins + network.epsilon * positional[:, None]
        window = [m, *window][: network.context]
        logits = network.gamma * np.array([np.sum(m[2] * token[3], axis=1) for token in window])
        weights = np.exp(logits - logits.max(axis=0))
        attention = np.einsum("jn,jna->na", weights / weights.sum(axis=0), np.array([token[1] for token in window]))
    return attention


@pytest.mark.parametrize("steps", [2, 6])
def test_later_attention_is_distributed_as_with_every_bit_drawn(paper, steps, optimised):
    # 16 units in segments of 6, 5 and 5.
    ours = np.asarray(ensemble(paper, beta=1.2, num_spins=16).attention[:, steps - 1])
    theirs = unit_by_unit(paper, 1.2, 16, steps, np.random.default_rng(1))
    for a in range(3):
        assert stats.ks_2samp(ours[:, a], theirs[:, a]).pvalue > 1e-4


def test_a_full_window_is_sampled_too(paper):
    # The older tokens of the window are drawn from its older attention vectors.
    A = np.random.default_rng(3).uniform(-1, 1, (4, 3))
    window = attention_window(paper, A, position=2)
    expected = simulate(paper, beta=0.8, steps=3, start=window)
    sampled = ensemble(paper, beta=0.8, num_spins=10**10, start=window)
    for name in (*FIELDS, "attention"):
        # Five standard deviations of 1e-5 each, which the softmax multiplies by up to gamma = 127.
        assert np.abs(np.asarray(getattr(sampled, name))[:, :3] - getattr(expected, name)).max() < 5e-5 * 127
    assert np.array_equal(sampled.window.attention, sampled.attention[:, :-5:-1])
    assert (int(sampled.window.length[0]), int(sampled.window.position[0])) == (4, 32)


def test_units_are_shared_out_by_weight(other):
    assert segment_sizes(other, 16).tolist() == [2, 4, 1, 6, 3]
    assert segment_sizes(other, 1001).sum() == 1001
    # Shares 5.875, 11.75, 2.9375, 17.625, 8.8125 of 47: the largest remainders are rounded up.
    assert segment_sizes(other, 47).tolist() == [6, 12, 3, 17, 9]
