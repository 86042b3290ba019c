"""Mean-field entropy production against definitions with explicit covariances, enumeration, and limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from spinbook import entropy_production as ep
from spinbook import sphere
from spinbook.ising import exact
from spinbook.ising import mean_field as ising_mean_field


def random_system(N, D, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, N)) / np.sqrt(N), scale * rng.normal(size=(2, N, D))


@pytest.mark.parametrize("response", [sphere.exact, sphere.large_d], ids=repr)
def test_delayed_correlations_are_traces_of_products_of_covariances(response):
    J, (now, before) = random_system(4, 6)
    covariance = sphere.covariance if response is sphere.exact else sphere.covariance_large_d
    traces = np.einsum("iab,jba->ij", covariance(now, beta=1.3), covariance(before, beta=1.3))
    D = ep.vector_delayed_correlations(J, now, before, beta=1.3, response=response)
    np.testing.assert_allclose(D, 1.3 * J * traces, rtol=1e-12)


def test_with_heads_a_coupling_is_a_diagonal_matrix():
    N, D, H, beta = 3, 8, 2, 1.1
    _, (now, before) = random_system(N, D, seed=2)
    J = np.random.default_rng(3).normal(size=(H, N, N))
    V, W = np.asarray(sphere.covariance(now, beta=beta)), np.asarray(sphere.covariance(before, beta=beta))
    expected = 0.0
    for i in range(N):
        for j in range(N):
            d = np.diag(np.repeat(J[:, i, j] - J[:, j, i], D // H))
            expected += beta**2 / 4 * (np.trace(d @ W[j] @ d @ V[i]) + np.trace(d @ V[j] @ d @ W[i]))
    np.testing.assert_allclose(ep.vector_mean_field(J, now, before, beta=beta), expected, rtol=1e-12)
    same = ep.vector_mean_field(np.stack([J[0], J[0]]), now, now, beta=beta)
    np.testing.assert_allclose(same, ep.vector_mean_field(J[0], now, now, beta=beta), rtol=1e-12)


def test_weak_couplings_make_the_ising_form_exact():
    # In sigma the first dropped term is two orders in J above the leading one.
    rng = np.random.default_rng(6)
    A, h = rng.normal(size=(5, 5)), rng.uniform(-0.5, 0.5, size=5)
    # Not at one, where a lost power of beta would not show.
    beta, errors = 2.5, []
    h = h / beta
    for strength in (0.02, 0.01):
        J = strength * A / beta
        m = ising_mean_field.steady_state(J, h, beta=beta).value
        sigma = float(ep.ising_mean_field(m, m, J, beta=beta))
        truth = float(exact.entropy_production(J, h, beta=beta))
        errors.append(abs(sigma - truth) / truth)
    assert errors[0] < 0.01
    assert 3 < errors[0] / errors[1] < 6


@pytest.mark.parametrize(("response", "mode"), [(sphere.large_d, "rev"), (sphere.exact, "fwd")])
def test_derivatives_are_those_of_differences(response, mode):
    J, (now, before) = random_system(3, 5, seed=10)

    @jax.jit
    def sigma(J, now, before, beta):
        return ep.vector_mean_field(J, now, before, beta=beta, response=response)

    check_grads(sigma, (jnp.asarray(J), now, before, jnp.asarray(1.2)), order=1, modes=[mode], rtol=1e-5)
