"""The modern Hopfield energy as a mixture of normal densities: integrals, Bayes' rule, gradients and attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from spinbook.rbm import (
    mixture_log_density,
    mixture_log_partition,
    mixture_weights,
    modern_hopfield_energy,
    posterior_mean,
    responsibilities,
    retrieve,
)

BETAS = [0.4, 1.0, 3.0]
every_beta = pytest.mark.parametrize("beta", BETAS)

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
    assert float(mixture_log_partition(X, beta=beta)) == pytest.approx(log_z, abs=ROUNDING)


@every_beta
def test_density_is_the_weighted_sum_of_normal_densities_around_the_patterns(beta):
    weights = np.exp(beta * np.sum(X**2, 1) / 2)
    weights /= weights.sum()
    np.testing.assert_allclose(mixture_weights(X, beta=beta), weights, atol=ROUNDING)
    mixture = sum(w * multivariate_normal(x, np.eye(2) / beta).pdf(Q) for w, x in zip(weights, X, strict=True))
    np.testing.assert_allclose(mixture_log_density(Q, X, beta=beta), np.log(mixture), atol=ROUNDING)


def test_weights_as_printed_sum_to_a_power_of_two_pi():
    # The source divides Z_mu = exp(|x_mu|^2 / 2) by a Z that contains (2 pi)^{n/2}.
    for n in (1, 2):
        patterns = rng.normal(size=(4, n))
        printed = np.exp(np.sum(patterns**2, 1) / 2 - float(mixture_log_partition(patterns)))
        assert printed.sum() == pytest.approx((2 * np.pi) ** (-n / 2), abs=ROUNDING)
        assert float(mixture_weights(patterns).sum()) == pytest.approx(1, abs=ROUNDING)
    assert (2 * np.pi) ** -1 == pytest.approx(0.159155, abs=5e-7)


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


def test_energy_with_the_root_of_the_dimension_inside_alone_does_not_give_attention():
    # A gradient step of size one on |q|^2 / 2 - lse(K q / sqrt(d)) is attention divided by sqrt(d).
    patterns, q = rng.normal(size=(9, 16)), rng.normal(size=16)
    energy = jax.jit(lambda q: jnp.sum(q * q) / 2 - jax.nn.logsumexp(patterns @ q / 4))
    step = q - np.asarray(jax.grad(energy)(q))
    np.testing.assert_allclose(step, np.asarray(retrieve(q, patterns, beta=1 / 4)) / 4, atol=ROUNDING)


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


def in_convex_hull(point, patterns):
    conditions = np.vstack([patterns.T, np.ones(len(patterns))])
    target = np.append(point, 1.0)
    return linprog(np.zeros(len(patterns)), A_eq=conditions, b_eq=target, bounds=(0, None)).status == 0


@every_beta
def test_retrieved_queries_lie_in_the_convex_hull_of_the_patterns(beta):
    patterns, queries = rng.normal(size=(5, 2)), 3 * rng.normal(size=(7, 2))
    assert not all(in_convex_hull(q, patterns) for q in queries)  # the queries do not
    assert all(in_convex_hull(q, patterns) for q in np.asarray(retrieve(queries, patterns, beta=beta)))


def test_single_pattern_is_a_parabola_and_is_retrieved_from_anywhere():
    x = X[:1]
    energies = np.sum((Q - x) ** 2, 1) / 2 - np.sum(x**2) / 2
    np.testing.assert_allclose(modern_hopfield_energy(Q, x, beta=2.0), energies, atol=ROUNDING)
    np.testing.assert_allclose(retrieve(Q, x, beta=2.0), np.broadcast_to(x, Q.shape), atol=ROUNDING)
    assert mixture_weights(x).tolist() == [1.0]


def test_cold_limit_returns_the_pattern_with_the_largest_overlap_and_the_hot_one_their_mean():
    winners = X[np.argmax(Q @ X.T, axis=1)]
    np.testing.assert_allclose(retrieve(Q, X, beta=1e5), winners, atol=ROUNDING)
    np.testing.assert_allclose(posterior_mean(Q, X, beta=1e5), winners, atol=1e-9)  # exponents of 1e6: rounding 1e-10
    # First order in beta: the deviation is at most beta |q| |x|_max^2.
    bound = 1e-8 * np.linalg.norm(Q, axis=1).max() * np.linalg.norm(X, axis=1).max() ** 2
    np.testing.assert_allclose(retrieve(Q, X, beta=1e-8), np.broadcast_to(X.mean(0), Q.shape), atol=bound)


def test_two_opposite_patterns_give_the_mean_field_equation_of_a_spin():
    # X = +-x: the update is x tanh(beta x . q), a single Ising spin in the field of the query.
    x = X[0]
    np.testing.assert_allclose(
        retrieve(Q, np.stack([x, -x]), beta=1.3), np.tanh(1.3 * Q @ x)[:, None] * x, atol=ROUNDING
    )


FUNCTIONS = [modern_hopfield_energy, mixture_log_density, responsibilities, posterior_mean, retrieve]
every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@every_function
def test_single_precision_in_gives_single_precision_out(function):
    q, x = Q.astype(np.float32), X.astype(np.float32)
    single = function(q.tolist(), torch.tensor(x), beta=0.7)
    assert single.dtype == jnp.float32
    # Some ten roundings of exponents of about ten.
    np.testing.assert_allclose(single, function(Q, X, beta=0.7), rtol=0, atol=10 * 10 * 6e-8)


@pytest.mark.usefixtures("optimised")
def test_bayes_route_does_not_store_the_differences_of_all_queries_and_patterns():
    # 500 queries and 600 patterns in 64 dimensions: differences of 154 MB, distances of 2.4 MB.
    q, x = jnp.zeros((500, 64)), jnp.ones((600, 64))
    compiled = jax.jit(posterior_mean).lower(q, x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 10 * q.shape[0] * x.shape[0] * 8
