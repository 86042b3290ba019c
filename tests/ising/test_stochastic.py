"""Sampling against enumeration: the distribution of a step, the moments of the steady state, and reproducibility."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook.ising import exact, stochastic


def system(num_spins=4, seed=0):
    rng = np.random.default_rng(seed)
    return 0.8 * rng.normal(size=(num_spins, num_spins)), rng.uniform(-0.5, 0.5, size=num_spins)


def test_one_step_has_the_transition_probabilities():
    J, h = system()
    count = 200_000
    old = np.array([1.0, -1.0, -1.0, 1.0])
    new = stochastic.step(jax.random.key(0), np.tile(old, (count, 1)), J, h, beta=1.1)
    number = np.asarray((np.asarray(new) > 0) @ (2 ** np.arange(4)), int)
    counts = np.bincount(number, minlength=16)
    expected = count * np.asarray(exact.transition_matrix(J, h, beta=1.1))[:, 0b1001]
    # Pearson's chi squared has 15 degrees of freedom; 5 standard deviations.
    assert np.sum((counts - expected) ** 2 / expected) < 15 + 5 * np.sqrt(30)


def test_the_moments_of_the_steady_state_lie_within_their_standard_errors():
    J, h = system(5, seed=1)
    start = jnp.ones((400, 5))
    result = stochastic.simulate(jax.random.key(2), start, J, h, beta=1.0, steps=150, transient=30, correlations=True)
    p = exact.stationary_distribution(J, h, beta=1.0)
    pairs = [
        (result.magnetizations, result.magnetization_standard_errors, exact.mean(p)),
        (result.correlations, result.correlation_standard_errors, exact.covariance(p)),
        (
            result.delayed_correlations,
            result.delayed_correlation_standard_errors,
            exact.delayed_correlations(J, h, beta=1.0, distribution=p),
        ),
    ]
    for measured, error, truth in pairs:
        assert 0 < float(np.max(error)) < 0.02
        # Some 25 numbers with errors from 16 groups (Student's t with 15 degrees of freedom): six errors.
        assert np.all(np.abs(measured - truth) < 6 * np.asarray(error) + 1e-12)


def test_delayed_correlations_have_the_later_time_first():
    # Spin 0 follows spin 1, and spin 1 follows nobody.
    result = stochastic.simulate(
        jax.random.key(3),
        jnp.ones((400, 2)),
        [[0.0, 1.0], [0.0, 0.0]],
        0.0,
        beta=1.0,
        steps=200,
        transient=5,
        correlations=True,
    )
    D = result.delayed_correlations
    assert abs(float(D[0, 1]) - np.tanh(1.0)) < 6 * float(result.delayed_correlation_standard_errors[0, 1])
    assert abs(float(D[1, 0])) < 0.05


def test_a_key_is_a_run_and_another_key_another():
    J, h = system()
    first, again, other = (
        stochastic.simulate(jax.random.key(seed), jnp.ones((10, 4)), J, h, beta=1.0, steps=20).spins
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def keep(spins):
    return spins


def test_averages_are_those_of_the_trajectory():
    J, h = system()
    result = stochastic.simulate(
        jax.random.key(7), jnp.ones((6, 4)), J, h, beta=1.0, steps=30, transient=10, correlations=True, observable=keep
    )
    s = np.asarray(result.observed)
    assert s.shape == (30, 6, 4)
    np.testing.assert_array_equal(s[-1], result.spins)
    now, before = s[10:], s[9:-1]
    np.testing.assert_allclose(result.magnetizations, now.mean((0, 1)), atol=1e-12)
    m, m_before = now.mean((0, 1)), before.mean((0, 1))
    C = np.einsum("tri,trk->ik", now, now) / 120 - np.outer(m, m)
    D = np.einsum("tri,trl->il", now, before) / 120 - np.outer(m, m_before)
    np.testing.assert_allclose(result.correlations, C, atol=1e-12)
    np.testing.assert_allclose(result.delayed_correlations, D, atol=1e-12)


def test_replicas_are_independent_and_uniform_numbers_are_unbiased():
    spins = stochastic.step(jax.random.key(8), np.ones((4000, 50)), np.zeros((50, 50)), 0.0, beta=1.0)
    assert abs(float(np.mean(spins))) < 5 / np.sqrt(200_000)
    correlation = np.corrcoef(np.asarray(spins).T)[~np.eye(50, dtype=bool)]
    assert abs(correlation.std() - 1 / np.sqrt(4000)) < 0.1 / np.sqrt(4000)


@pytest.mark.parametrize(
    ("spins", "couplings", "beta", "message"),
    [
        ([[1.0, 0.5]], np.zeros((2, 2)), 1.0, "spins: expected spins that are -1 or 1"),
        ([[1.0, 1.0, 1.0]], np.zeros((2, 2)), 1.0, "spins: expected shape"),
        ([[1.0, 1.0]], np.zeros((2, 3)), 1.0, "couplings: expected a square matrix"),
        ([[1.0, 1.0]], np.full((2, 2), np.inf), 1.0, "couplings: expected finite"),
        ([[1.0, 1.0]], np.zeros((2, 2)), -2.0, "beta: expected"),
    ],
)
def test_bad_input_is_named(spins, couplings, beta, message):
    with pytest.raises(ValueError, match=message):
        stochastic.step(jax.random.key(0), spins, couplings, 0.0, beta=beta)
