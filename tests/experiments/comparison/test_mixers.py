"""Other mixers of sites: their formula by another route."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.comparison import blocks, mixers

SITES, DIM, HEADS = 6, 8, 2
KEY = jax.random.key(3)
X = jax.random.normal(jax.random.key(4), (SITES, DIM), jnp.float32)
ATTENTION = {
    "softmax": blocks.Attention(DIM, HEADS, key=KEY),
    "normalised": mixers.NormalizedAttention(DIM, HEADS, key=KEY),
    "rectified": mixers.RectifiedAttention(DIM, HEADS, key=KEY),
}
FIXED = {
    "pooling": mixers.LocalPooling((2, 3)),
    "sites": mixers.SiteMLP(SITES, key=KEY),
    "gated": mixers.GatedMLP(SITES, DIM, key=KEY),
    "Fourier": mixers.Fourier(),
}
ENERGY = mixers.EnergyBlock(DIM, HEADS, steps=5, key=KEY)
# Sums of at most a few hundred products in single precision.
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


def plain_attention(maps, weigh):
    """One head after another, with NumPy in double precision."""
    x, out = X.astype(float), []
    qkv = np.asarray(maps.to_queries_keys_values, float) @ x.T
    width = DIM // HEADS
    for h in range(HEADS):
        q, k, v = (qkv[part * DIM + h * width :][:width].T for part in range(3))
        out.append(weigh(q, k) @ v)
    return np.concatenate(out, axis=1) @ np.asarray(maps.to_output, float).T


def test_pure_normalisation_is_the_formula_head_by_head():
    def weigh(q, k):
        s = q @ k.T / math.sqrt(DIM // HEADS)
        spread = np.sqrt(s.var(axis=1, keepdims=True) + 1e-5)
        return ((s - s.mean(axis=1, keepdims=True)) / spread + 1) / SITES

    expected = plain_attention(ATTENTION["normalised"].maps, weigh)
    np.testing.assert_allclose(ATTENTION["normalised"](jnp.asarray(X)), expected, **CLOSE)


def test_rectified_attention_is_the_formula_head_by_head_with_weights_that_add_up_to_one():
    def weigh(q, k):
        a = (np.maximum(q, 0) + 1e-3) @ (np.maximum(k, 0) + 1e-3).T
        return a / a.sum(axis=1, keepdims=True)

    expected = plain_attention(ATTENTION["rectified"].maps, weigh)
    np.testing.assert_allclose(ATTENTION["rectified"](jnp.asarray(X)), expected, **CLOSE)


@pytest.mark.parametrize("grid", [(7,), (2, 3), (4, 4)])
def test_pooling_is_the_mean_of_the_neighbours_on_the_grid_minus_the_site(grid):
    x = jnp.asarray(np.random.default_rng(1).normal(size=(*grid, 3)))
    expected = np.empty_like(x)
    for site in itertools.product(*map(range, grid)):
        around = itertools.product(
            *(range(max(k - 1, 0), min(k + 2, size)) for k, size in zip(site, grid, strict=True))
        )
        expected[site] = np.mean([x[other] for other in around], axis=0) - x[site]
    np.testing.assert_allclose(mixers.LocalPooling(grid)(x.reshape(-1, 3)), expected.reshape(-1, 3), atol=1e-12)


def test_the_fourier_mixer_is_the_sum_over_sites_and_components():
    n, d = np.arange(SITES), np.arange(DIM)
    sites, parts = np.exp(-2j * np.pi * np.outer(n, n) / SITES), np.exp(-2j * np.pi * np.outer(d, d) / DIM)
    expected = (sites @ np.asarray(X) @ parts).real / math.sqrt(SITES * DIM)
    np.testing.assert_allclose(FIXED["Fourier"](jnp.asarray(X)), expected, **CLOSE)


def plain_energy(g):
    """The energy term by term, with loops."""
    k, q = (g @ np.asarray(w, float).T for w in (ENERGY.to_keys, ENERGY.to_queries))
    width, total = DIM // HEADS, 0.0
    beta = 1 / math.sqrt(width)
    for h in range(HEADS):
        part = slice(h * width, (h + 1) * width)
        for c in range(SITES):
            others = [math.exp(beta * float(k[b, part] @ q[c, part])) for b in range(SITES) if b != c]
            total -= math.log(sum(others)) / beta
    return total - 0.5 * sum(max(float(m @ site), 0) ** 2 for m in np.asarray(ENERGY.memories, float) for site in g)


def test_the_energy_is_that_of_attention_to_others_and_of_memories():
    g = np.asarray(ENERGY.norm(jnp.asarray(X)), float)
    assert float(ENERGY.energy(jnp.asarray(g, jnp.float32))) == pytest.approx(plain_energy(g), rel=1e-5)


def test_a_step_goes_down_the_gradient_at_the_normalised_state():
    one = mixers.EnergyBlock(DIM, HEADS, steps=1, key=KEY)
    g = np.asarray(one.norm(jnp.asarray(X)), float)
    slope, h = np.empty_like(g), 1e-5
    for index in np.ndindex(*g.shape):
        up, down = g.copy(), g.copy()
        up[index] += h
        down[index] -= h
        slope[index] = (plain_energy(up) - plain_energy(down)) / (2 * h)
    np.testing.assert_allclose(one(jnp.asarray(X)).value, np.asarray(X) - 0.25 * slope, rtol=1e-4, atol=1e-4)


def gelu(x):
    return x * stats.norm.cdf(x)


def test_the_mlp_along_the_sites_is_the_formula_component_by_component():
    up, up_bias, down, down_bias = (np.asarray(a, float) for a in jax.tree.leaves(FIXED["sites"]))
    expected = [down @ gelu(up @ column + up_bias) + down_bias for column in np.asarray(X, float).T]
    np.testing.assert_allclose(FIXED["sites"](X), np.transpose(expected), **CLOSE)


def test_the_gate_is_the_formula_with_gains_and_biases_that_are_not_one():
    rng = np.random.default_rng(5)
    moved = jax.tree.map(lambda a: a + jnp.asarray(0.3 * rng.normal(size=a.shape), a.dtype), FIXED["gated"])
    up, up_bias, gain, bias, sites, sites_bias, down, down_bias = (np.asarray(a, float) for a in jax.tree.leaves(moved))
    hidden = gelu(np.asarray(X, float) @ up.T + up_bias)
    u, v = hidden[:, : 2 * DIM], hidden[:, 2 * DIM :]
    v = (v - v.mean(axis=1, keepdims=True)) / np.sqrt(v.var(axis=1, keepdims=True) + 1e-5)
    expected = (u * (sites @ (gain * v + bias) + sites_bias[:, None])) @ down.T + down_bias
    np.testing.assert_allclose(moved(X), expected, **CLOSE)
