"""Other mixers of sites: their formula by another route, their symmetry, the size of their parameters."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


def count(module):
    return sum(leaf.size for leaf in jax.tree.leaves(module) if isinstance(leaf, jax.Array))


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_of_every_kind_follows_a_permutation_of_the_sites(name):
    order = np.random.default_rng(0).permutation(SITES)
    np.testing.assert_allclose(ATTENTION[name](X[order]), ATTENTION[name](X)[order], **CLOSE)


@pytest.mark.parametrize("name", FIXED)
def test_mixers_with_fixed_places_do_not_follow_a_permutation(name):
    order = np.roll(np.arange(SITES), 1)
    assert np.abs(np.asarray(FIXED[name](X[order]) - FIXED[name](X)[order])).max() > 1e-3


@pytest.mark.parametrize("name", [*ATTENTION, *FIXED])
def test_every_site_hears_of_its_neighbour_in_the_precision_of_the_input(name):
    module, x = (ATTENTION | FIXED)[name], jnp.asarray(X)
    assert (module(x).shape, module(x).dtype) == (x.shape, x.dtype)
    assert np.abs(np.asarray(jax.jacobian(module)(x)[0, :, 1])).max() > 1e-5


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


def test_pure_normalisation_does_not_see_the_scale_of_the_scores_and_softmax_does():
    def sharpened(module, where, factor):
        return eqx.tree_at(where, module, where(module).at[: 2 * DIM].multiply(factor))(jnp.asarray(X))

    # So large that the constant under the root of the variance, 1e-5, is below what single precision resolves.
    one, other = (sharpened(ATTENTION["normalised"], lambda m: m.maps.to_queries_keys_values, f) for f in (30.0, 300.0))
    np.testing.assert_allclose(one, other, **CLOSE)
    one, other = (sharpened(ATTENTION["softmax"], lambda m: m.to_queries_keys_values, f) for f in (1.0, 3.0))
    assert np.abs(np.asarray(one - other)).max() > 1e-2


def test_equal_scores_make_pure_normalisation_the_mean_of_the_values():
    same = jnp.tile(X[:1], (SITES, 1))
    np.testing.assert_allclose(ATTENTION["normalised"](same), ATTENTION["softmax"](same), **CLOSE)


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


def test_an_mlp_along_the_sites_treats_every_component_alike():
    order = np.random.default_rng(0).permutation(DIM)
    np.testing.assert_allclose(FIXED["sites"](X[:, order]), FIXED["sites"](X)[:, order], **CLOSE)


def test_a_gate_that_knows_no_sites_leaves_every_site_by_itself():
    closed = eqx.tree_at(lambda m: m.sites, FIXED["gated"], jnp.zeros((SITES, SITES), jnp.float32))
    slopes = np.asarray(jax.jacobian(closed)(jnp.asarray(X)))
    assert np.abs(slopes[0, :, 1]).max() == 0
    # At the start the gate is nearly that: what comes from another site is a hundredth of what comes from the same.
    slopes = np.asarray(jax.jacobian(FIXED["gated"])(jnp.asarray(X)))
    assert 0 < np.abs(slopes[0, :, 1]).max() < 0.05 * np.abs(slopes[0, :, 0]).max()


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


def test_the_energy_falls_from_step_to_step():
    energies = []
    for steps in range(6):
        x = mixers.EnergyBlock(DIM, HEADS, steps=steps, key=KEY)(jnp.asarray(X)).value if steps else jnp.asarray(X)
        energies.append(float(ENERGY.energy(ENERGY.norm(x))))
    assert (np.diff(energies) < 0).all()


def test_the_energy_block_follows_a_permutation_and_says_how_many_steps_it_took():
    order = np.random.default_rng(0).permutation(SITES)
    found = ENERGY(jnp.asarray(X))
    np.testing.assert_allclose(ENERGY(jnp.asarray(X[order])).value, found.value[order], rtol=1e-4, atol=1e-4)
    assert int(found.num_steps) == 5
    assert bool(found.converged)


def test_numbers_of_parameters():
    n, d = SITES, DIM
    expected = {
        "normalised": 4 * d * d + 2 * HEADS,
        "rectified": 4 * d * d,
        "pooling": 0,
        "sites": 4 * n * n + 3 * n,
        "gated": 6 * d * d + 9 * d + n * n + n,
        "Fourier": 0,
    }
    assert {name: count((ATTENTION | FIXED)[name]) for name in expected} == expected
    assert count(ENERGY) == 6 * d * d + 1 + d
