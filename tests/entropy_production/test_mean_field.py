"""Mean-field entropy production against definitions with explicit covariances, enumeration, and limits."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from spinbook import entropy_production as ep
from spinbook import sphere
from spinbook.entropy_production import mean_field
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


def test_delayed_correlations_are_the_response_to_a_spin_before():
    # <s_i(t) s_j(t-1)> to first order in J: the derivative of m_i with respect to the coupling, by autodiff.
    _, (now, before) = random_system(2, 5, seed=1)
    beta, step = 0.9, 1e-4

    def joint(J):
        # Spin 0 in the field now[0] + J (s_1 - m_1), s_1 with the law of its own field; Gauss quadrature in s_1 is not
        # needed to first order: the linear response times the covariance of s_1.
        response = jax.jacfwd(lambda h: sphere.magnetization(h, beta=beta))(jnp.asarray(now[0]))
        return J * jnp.trace(response @ sphere.covariance(before[1], beta=beta))

    J = np.array([[0.0, step], [0.0, 0.0]])
    D = ep.vector_delayed_correlations(J, now, before, beta=beta)
    np.testing.assert_allclose(D[0, 1], joint(step), rtol=1e-10)


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
    with pytest.warns(ep.NotSteadyWarning):
        sigma = ep.vector_mean_field(J, now, before, beta=beta)
    np.testing.assert_allclose(sigma, expected, rtol=1e-12)
    same = ep.vector_mean_field(np.stack([J[0], J[0]]), now, now, beta=beta)
    np.testing.assert_allclose(same, ep.vector_mean_field(J[0], now, now, beta=beta), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::spinbook.entropy_production.NotSteadyWarning")
def test_it_is_never_negative_where_the_printed_form_is():
    rng = np.random.default_rng(4)
    printed, ours = [], []
    for _ in range(100):
        A = rng.normal(size=(6, 6)) / np.sqrt(6)
        J = (A + A.T) / 2 + 0.02 * A
        theta = rng.uniform(0.1, 3, size=(6, 1)) * rng.normal(size=(6, 8))
        D = ep.source_delayed_correlations(J, theta, theta, beta=1.0)
        printed.append(float(ep.from_delayed_correlations(J, D, beta=1.0)))
        ours.append(float(ep.vector_mean_field(J, theta, theta + rng.normal(size=theta.shape), beta=1.0)))
    assert min(ours) > 0
    assert min(printed) < 0


def test_in_the_steady_state_it_is_the_identity_with_its_own_correlations():
    J, (theta, _) = random_system(5, 7, seed=5)
    D = ep.vector_delayed_correlations(J, theta, theta, beta=0.8)
    np.testing.assert_allclose(
        ep.vector_mean_field(J, theta, theta, beta=0.8), ep.from_delayed_correlations(J, D, beta=0.8), rtol=1e-12
    )


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


def test_the_leading_order_is_reached_as_one_over_the_dimension():
    J, _ = random_system(4, 3, seed=7)
    gaps = []
    for D in (32, 64, 128):
        theta = np.random.default_rng(8).normal(size=(4, D))
        # Opposite and parallel directions, where the angles would matter most.
        theta[1], theta[2] = theta[0], -theta[0]
        full = float(ep.vector_mean_field(J, theta, theta, beta=1.0))
        gaps.append(abs(float(ep.leading_order(J, theta, beta=1.0)) / full - 1) * D)
    assert max(gaps) / min(gaps) < 1.5


def test_the_angle_estimate_follows_angles_where_the_entropy_production_does_not():
    J, _ = random_system(2, 3, seed=9)
    D = 512
    parallel = np.zeros((2, D))
    parallel[:, 0] = 10.0
    orthogonal = parallel.copy()
    orthogonal[1] = np.roll(parallel[1], 1)
    change = ep.vector_mean_field(J, parallel, parallel, beta=1.0) / ep.vector_mean_field(
        J, orthogonal, orthogonal, beta=1.0
    )
    # The angles enter through one of D directions.
    assert abs(float(change) - 1) < 2 / D
    assert float(ep.angle_estimate(J, orthogonal)) < 1e-12 < float(ep.angle_estimate(J, parallel))
    # At sixty degrees cos^2 is a quarter, whatever the lengths.
    slanted = [[2.0, 0.0, 0.0], [1.5, 1.5 * np.sqrt(3), 0.0]]
    expected = 0.25 * (J[0, 1] - J[1, 0]) ** 2
    for size in (1, 1e-170, 1e170):
        assert float(ep.angle_estimate(J, size * np.asarray(slanted))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("response", "mode"), [(sphere.large_d, "rev"), (sphere.exact, "fwd")])
def test_derivatives_are_those_of_differences(response, mode):
    J, (now, before) = random_system(3, 5, seed=10)

    @jax.jit
    def sigma(J, now, before, beta):
        return ep.vector_mean_field(J, now, before, beta=beta, response=response)

    check_grads(sigma, (jnp.asarray(J), now, before, jnp.asarray(1.2)), order=1, modes=[mode], rtol=1e-5)


def test_symmetric_couplings_are_a_minimum_and_fields_at_rest_have_a_gradient():
    J, (now, before) = random_system(3, 5, seed=10)

    @jax.jit
    def gradient(J, now, before):
        return jax.grad(lambda *args: ep.vector_mean_field(*args, beta=1.2, response=sphere.large_d), argnums=(0, 1))(
            J, now, before
        )

    np.testing.assert_allclose(gradient(J + J.T, now, before)[0], 0, atol=1e-14)
    np.testing.assert_array_equal(gradient(J, 0 * now, 0 * before)[1], 0)


def test_single_precision_and_compiled_code_agree_with_double():
    J, (now, before) = random_system(4, 6, seed=11)
    single = [np.asarray(x, np.float32) for x in (J, now, before)]
    fast = jax.jit(lambda J, now, before: ep.vector_mean_field(J, now, before, beta=1.0))
    assert fast(*single).dtype == np.float32
    np.testing.assert_allclose(fast(*single), fast(J, now, before), rtol=1e-5)


def test_two_times_that_differ_are_warned_of_and_steady_ones_are_not():
    J, (theta, _) = random_system(3, 5, seed=12)
    with pytest.warns(ep.NotSteadyWarning, match=r"previous_fields: expected a steady state, got a drift of 0\.\d+"):
        ep.vector_mean_field(J, theta, 0.5 * theta, beta=1.0)
    with pytest.warns(ep.NotSteadyWarning, match="magnetizations"):
        ep.ising_mean_field([0.5, 0.0, 0.0], [0.4, 0.0, 0.0], J, beta=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ep.vector_mean_field(J, theta, theta * (1 + 1e-6), beta=1.0)


def test_the_quick_form_for_driven_modules_is_the_checked_one():
    J, (now, before) = random_system(3, 5, seed=13)
    quick = mean_field.driven_production(jnp.asarray(J), jnp.asarray(now), jnp.asarray(before), jnp.asarray(1.1))
    with pytest.warns(ep.NotSteadyWarning):
        checked = ep.vector_mean_field(J, now, before, beta=1.1, response=sphere.large_d)
    np.testing.assert_allclose(quick, checked, rtol=1e-13)
