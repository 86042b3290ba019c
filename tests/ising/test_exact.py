"""Enumeration against loops over states, detailed balance, and the identities of the stationary state."""

import itertools

import jax
import jax.numpy as jnp
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


def test_entropy_production_equals_the_asymmetric_part_of_the_delayed_correlations():
    for seed in range(3):
        J, h = system(7, seed=seed)
        D = exact.delayed_correlations(J, h, beta=1.4)
        direct = exact.entropy_production(J, h, beta=1.4)
        assert float(direct) > 0.1
        assert abs(float(direct) - 1.4 * np.sum((J - J.T) * D)) < 1e-10


def test_moments_are_the_sums_over_states():
    J, h = system(5)
    p = np.random.default_rng(2).dirichlet(np.ones(2**5))
    s = all_states(5)
    m = p @ s
    np.testing.assert_allclose(exact.magnetizations(J, h, beta=1.0, distribution=p), m, rtol=1e-12)
    P = matrix_by_loops(J, h, 1.0)
    joint = np.einsum("ab,b,ai,bl->il", P, p, s, s)
    D = exact.delayed_correlations(J, h, beta=1.0, distribution=p)
    np.testing.assert_allclose(D, joint - np.outer(P @ p @ s, m), atol=1e-13)


def equilibrium(J, h, beta):
    """Peretto (1984): p(s) is proportional to exp(beta h.s) prod_i 2 cosh(beta (h_i + sum_j J_ij s_j))."""
    s = np.asarray(exact.states(len(h)))
    weight = np.exp(beta * s @ h) * np.prod(2 * np.cosh(beta * (h + s @ J.T)), axis=1)
    return weight / weight.sum()


@pytest.mark.parametrize("num_spins", [11, pytest.param(14, marks=pytest.mark.slow)])
def test_many_spins_need_no_transition_matrix(num_spins, optimised):
    # At 14 spins the matrix alone would have 2.1 GB.
    J, h = system(num_spins, strength=0.1, symmetric=True)
    p = exact.stationary_distribution(J, h, beta=1.0)
    np.testing.assert_allclose(p, equilibrium(J, h, 1.0), rtol=1e-9)
    assert abs(float(exact.entropy_production(J, h, beta=1.0, distribution=p))) < 1e-10


def test_columns_of_the_transition_matrix_sum_to_one_and_small_entries_are_not_lost():
    # exp(-2 * 300) is far below the rounding error of 1, but not zero; exp(-800) would be.
    P = np.asarray(exact.transition_matrix(np.zeros((2, 2)), [300.0, 0.3], beta=1.0))
    np.testing.assert_allclose(P.sum(axis=0), 1, rtol=1e-15)
    np.testing.assert_allclose(P[0] + P[2], np.exp(-600), rtol=1e-12)


@pytest.mark.documented_nan
@pytest.mark.parametrize(
    "couplings",
    [[[-30.0]], 30.0 * np.eye(3), [[0.0, 30.0], [30.0, 0.0]], 8 * np.ones((3, 3))],
    ids=["a spin that turns at every step", "frozen spins", "a state that alternates", "two wells"],
)
def test_a_chain_without_one_stationary_state_has_none(couplings):
    # Each has distributions that a step leaves alone to rounding, and yet more than one, or a cycle of two.
    assert np.isnan(exact.stationary_distribution(couplings, 0.0, beta=1.0, max_steps=200)).all()
    stationary = equilibrium(np.array(couplings), np.zeros(len(couplings)), 1.0)
    np.testing.assert_allclose(exact.step(stationary, couplings, 0.0, beta=1.0), stationary, rtol=1e-12)


@pytest.mark.documented_nan
def test_compiled_batches_settle_one_by_one():
    J, h = system(3, seed=7)
    solve = jax.jit(jax.vmap(lambda beta: exact.stationary_distribution(J, h, beta=beta, max_steps=300)))
    found = solve(jnp.array([0.5, 1.0, 300.0]))
    np.testing.assert_allclose(found[1], exact.stationary_distribution(J, h, beta=1.0), rtol=1e-13)
    assert np.isnan(found[2]).all()


def test_derivatives_go_forward_through_the_stationary_state():
    J, h = system(3, seed=8)

    @jax.jit
    def means(h):
        return exact.magnetizations(J, h, beta=1.0)

    width = 1e-5
    differences = [(means(h + width * e) - means(h - width * e)) / (2 * width) for e in np.eye(3)]
    np.testing.assert_allclose(jax.jit(jax.jacfwd(means))(h), np.array(differences).T, atol=1e-9)
    with pytest.raises(ValueError, match="Reverse-mode differentiation"):
        jax.jacrev(means)(h)
