"""The modern Hopfield energy as a mixture of normal densities: integrals, Bayes' rule, gradients and attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from spinbook.rbm import (
    mixture,
    mixture_log_density,
    mixture_weights,
    modern_hopfield_energy,
    posterior_mean,
    responsibilities,
    retrieve,
)

every_beta = pytest.mark.parametrize("beta", [0.4, 3.0])

# Fewer than 1e4 operations on exponents below 1e2, in float64.
ROUNDING = 1e-11

rng = np.random.default_rng(5)
X = rng.normal(size=(5, 2))
Q = 1.5 * rng.normal(size=(7, 2))


def plane(beta):
    """A grid on which the trapezoidal rule is exact to rounding for normal densities of variance 1 / beta."""
    x = np.arange(-12, 12, 0.1) / np.sqrt(min(beta, 1))
    v = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    return v, (x[1] - x[0]) ** 2


@every_beta
def test_partition_function_is_the_integral_of_the_boltzmann_factor(beta):
    v, area = plane(beta)
    energies = np.sum(v * v, 1) / 2 - logsumexp(beta * v @ X.T, axis=1) / beta
    np.testing.assert_allclose(modern_hopfield_energy(v[::999], X, beta=beta), energies[::999], atol=ROUNDING)
    log_z = logsumexp(-beta * energies) + np.log(area)
    assert float(mixture.mixture_log_partition(X, beta=beta)) == pytest.approx(log_z, abs=ROUNDING)


@every_beta
def test_density_is_the_weighted_sum_of_normal_densities_around_the_patterns(beta):
    weights = np.exp(beta * np.sum(X**2, 1) / 2)
    weights /= weights.sum()
    np.testing.assert_allclose(mixture_weights(X, beta=beta), weights, atol=ROUNDING)
    mixture = sum(w * multivariate_normal(x, np.eye(2) / beta).pdf(Q) for w, x in zip(weights, X, strict=True))
    np.testing.assert_allclose(mixture_log_density(Q, X, beta=beta), np.log(mixture), atol=ROUNDING)


@every_beta
def test_update_is_the_posterior_mean_and_a_gradient_step_of_size_one(beta):
    patterns, queries = rng.normal(size=(9, 16)), rng.normal(size=(6, 16))
    retrieved = retrieve(queries, patterns, beta=beta)
    np.testing.assert_allclose(posterior_mean(queries, patterns, beta=beta), retrieved, atol=ROUNDING)
    gradient = jax.grad(lambda q: modern_hopfield_energy(q, patterns, beta=beta).sum())(jnp.asarray(queries))
    np.testing.assert_allclose(queries - np.asarray(gradient), retrieved, atol=ROUNDING)


@every_beta
def test_responsibilities_are_the_posterior_of_the_mixture_by_bayes_rule(beta):
    likelihood = np.stack([multivariate_normal(x, np.eye(2) / beta).pdf(Q) for x in X], axis=1)
    joint = np.asarray(mixture_weights(X, beta=beta)) * likelihood
    r = responsibilities(Q, X, beta=beta)
    np.testing.assert_allclose(r, joint / joint.sum(1, keepdims=True), atol=ROUNDING)
    np.testing.assert_allclose(r.sum(-1), 1, atol=ROUNDING)
    np.testing.assert_allclose(posterior_mean(Q, X, beta=beta), np.asarray(r) @ X, atol=ROUNDING)


def test_update_is_scaled_dot_product_attention_at_beta_one_over_root_dim():
    patterns, queries = rng.normal(size=(9, 16)), rng.normal(size=(6, 16))
    q, k = torch.tensor(queries)[None], torch.tensor(patterns)[None]
    attention = torch.nn.functional.scaled_dot_product_attention(q, k, k)[0]
    np.testing.assert_allclose(retrieve(queries, patterns, beta=16**-0.5), attention.numpy(), atol=ROUNDING)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    beta=st.sampled_from([0.05, 0.3, 1.0, 4.0, 30.0]),
    size=st.sampled_from([0.1, 1.0, 5.0]),
)
def test_energy_never_increases(seed, beta, size):
    draw = np.random.default_rng(seed)
    patterns, queries = size * draw.normal(size=(9, 16)), 2 * draw.normal(size=(6, 16))
    before = np.asarray(modern_hopfield_energy(queries, patterns, beta=beta))
    after = np.asarray(modern_hopfield_energy(retrieve(queries, patterns, beta=beta), patterns, beta=beta))
    # Rounding of energies of up to a thousand.
    assert np.max(after - before) <= 1e-11


def test_cold_limit_returns_the_pattern_with_the_largest_overlap_and_the_hot_one_their_mean():
    winners = X[np.argmax(Q @ X.T, axis=1)]
    np.testing.assert_allclose(retrieve(Q, X, beta=1e5), winners, atol=ROUNDING)
    np.testing.assert_allclose(posterior_mean(Q, X, beta=1e5), winners, atol=1e-9)  # exponents of 1e6: rounding 1e-10
    # First order in beta: the deviation is at most beta |q| |x|_max^2.
    bound = 1e-8 * np.linalg.norm(Q, axis=1).max() * np.linalg.norm(X, axis=1).max() ** 2
    np.testing.assert_allclose(retrieve(Q, X, beta=1e-8), np.broadcast_to(X.mean(0), Q.shape), atol=bound)


@pytest.mark.usefixtures("optimised")
def test_bayes_route_does_not_store_the_differences_of_all_queries_and_patterns():
    # 500 queries and 600 patterns in 64 dimensions: differences of 154 MB, distances of 2.4 MB.
    q, x = jnp.zeros((500, 64)), jnp.ones((600, 64))
    compiled = jax.jit(posterior_mean).lower(q, x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 10 * q.shape[0] * x.shape[0] * 8
