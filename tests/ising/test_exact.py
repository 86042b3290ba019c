"""Enumeration against loops over states, detailed balance, and the identities of the stationary state."""

import itertools

import numpy as np
import pytest

from spinbook.ising import exact


def system(num_spins, strength=0.6, seed=0, *, symmetric=False):
    rng = np.random.default_rng(seed)
    J = strength * rng.normal(size=(num_spins, num_spins))
    return (J + J.T) / 2 if symmetric else J, rng.uniform(-0.5, 0.5, size=num_spins)


def all_states(num_spins):
    """States in the documented order: bit i of the number says whether spin i is up."""
    return np.array([s[::-1] for s in itertools.product((-1, 1), repeat=num_spins)])


def matrix_by_loops(J, h, beta):
    states = all_states(len(h))
    P = np.ones((len(states), len(states)))
    for old, previous in enumerate(states):
        for new, s in enumerate(states):
            for i in range(len(h)):
                theta = beta * (h[i] + sum(J[i, j] * previous[j] for j in range(len(h))))
                P[new, old] *= np.exp(theta * s[i]) / (2 * np.cosh(theta))
    return P


def test_the_states_are_numbered_as_documented():
    np.testing.assert_array_equal(exact.states(4), all_states(4))


def test_the_transition_matrix_is_the_product_over_spins():
    J, h = system(4)
    np.testing.assert_allclose(exact.transition_matrix(J, h, beta=1.3), matrix_by_loops(J, h, 1.3), rtol=1e-12)


def test_a_step_is_the_matrix_times_the_distribution():
    J, h = system(7)
    p = np.random.default_rng(1).dirichlet(np.ones(2**7))
    np.testing.assert_allclose(exact.step(p, J, h, beta=0.9), exact.transition_matrix(J, h, beta=0.9) @ p, rtol=1e-11)


def test_the_stationary_distribution_is_the_leading_eigenvector():
    J, h = system(6)
    values, vectors = np.linalg.eig(matrix_by_loops(J, h, 1.1))
    leading = np.real(vectors[:, np.argmax(values.real)])
    np.testing.assert_allclose(exact.stationary_distribution(J, h, beta=1.1), leading / leading.sum(), atol=1e-12)


def test_symmetric_couplings_have_the_known_equilibrium_of_parallel_updates():
    # Peretto (1984): p(s) is proportional to exp(beta h.s) prod_i 2 cosh(beta (h_i + sum_j J_ij s_j)).
    J, h = system(6, symmetric=True)
    s = all_states(6)
    weight = np.exp(1.2 * s @ h) * np.prod(2 * np.cosh(1.2 * (h + s @ J.T)), axis=1)
    np.testing.assert_allclose(exact.stationary_distribution(J, h, beta=1.2), weight / weight.sum(), rtol=1e-9)


def test_entropy_production_equals_the_asymmetric_part_of_the_delayed_correlations():
    for seed in range(3):
        J, h = system(7, seed=seed)
        D = exact.delayed_correlations(J, h, beta=1.4)
        direct = exact.entropy_production(J, h, beta=1.4)
        assert float(direct) > 0.1
        assert abs(float(direct) - 1.4 * np.sum((J - J.T) * D)) < 1e-10


def test_entropy_production_vanishes_for_symmetric_couplings():
    J, h = system(7, symmetric=True)
    assert abs(float(exact.entropy_production(J, h, beta=1.4))) < 1e-12


def test_moments_are_the_sums_over_states():
    J, h = system(5)
    p = np.random.default_rng(2).dirichlet(np.ones(2**5))
    s = all_states(5)
    m = p @ s
    np.testing.assert_allclose(exact.mean(p), m, rtol=1e-12)
    np.testing.assert_allclose(exact.covariance(p), np.einsum("a,ai,ak->ik", p, s, s) - np.outer(m, m), atol=1e-14)
    P = matrix_by_loops(J, h, 1.0)
    joint = np.einsum("ab,b,ai,bl->il", P, p, s, s)
    D = exact.delayed_correlations(J, h, beta=1.0, distribution=p)
    np.testing.assert_allclose(D, joint - np.outer(P @ p @ s, m), atol=1e-13)


def test_fourteen_spins_need_no_matrix_of_two_gigabytes():
    J, h = system(14, strength=0.3)
    m = exact.magnetizations(J, h, beta=1.0)
    assert m.shape == (14,)
    assert np.isfinite(m).all()


@pytest.mark.parametrize(
    ("couplings", "fields", "beta", "message"),
    [
        (np.zeros((15, 15)), np.zeros(15), 1.0, "at most 14 spins, got 15 .*8.59 GB"),
        (np.zeros((3, 2)), np.zeros(3), 1.0, "couplings: expected a square matrix"),
        (np.zeros((3, 3)), np.zeros(2), 1.0, "fields: expected"),
        (np.full((2, 2), np.nan), np.zeros(2), 1.0, "couplings: expected finite"),
        (np.zeros((2, 2)), np.zeros(2), 0.0, "beta: expected"),
    ],
)
def test_bad_input_is_named(couplings, fields, beta, message):
    with pytest.raises(ValueError, match=message):
        exact.stationary_distribution(couplings, fields, beta=beta)


def test_a_chain_too_slow_to_settle_is_an_error_and_not_an_answer():
    # Two spins that hold themselves: a flip takes exp(2 beta J) steps, far beyond what is tried.
    J = 30.0 * np.eye(2)
    with pytest.raises(ArithmeticError, match="the chain is too slow"):
        exact.stationary_distribution(J, np.zeros(2), beta=1.0)
    assert not bool(exact.stationary_solve(J, np.zeros(2), beta=1.0, max_steps=100).converged)
