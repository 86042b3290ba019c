"""Approximate free energies against sums over states: orders of their errors, and consistency of their derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chapters.collectives.response import exact, mean_field
from spinbook.adaptive_tap.ising import solve_naive_ising, solve_tap_ising

RNG = np.random.default_rng(0)
J = RNG.normal(size=(6, 6)) / 6**0.5
H = RNG.normal(size=(6, 1)) / 2
THEORIES = {
    "naive": (mean_field.naive_free_energy, mean_field.naive_solve, 2),
    "TAP": (mean_field.tap_free_energy, mean_field.tap_solve, 3),
}


@pytest.fixture(scope="module", params=THEORIES)
def theory(request):
    free_energy, solve, order = THEORIES[request.param]
    value_and_slopes = jax.jit(jax.value_and_grad(partial(free_energy, beta=1.2), argnums=(0, 1)))
    return value_and_slopes, solve, order


def _errors(value_and_slopes, scale):
    states = exact.configurations(6)
    truth = exact.moments(states, scale * J, H, beta=1.2)
    value, (by_couplings, by_fields) = value_and_slopes(scale * J, H)
    exact_value = exact.free_energy(states, scale * J, H, beta=1.2)
    return np.array(
        [
            abs(value - exact_value),
            jnp.abs(-by_fields - truth.magnetizations).max(),
            jnp.abs(-by_couplings - truth.correlations).max(),
        ]
    )


def test_errors_have_the_order_of_the_first_dropped_term(theory):
    value_and_slopes, _, order = theory
    orders = np.log2(_errors(value_and_slopes, 0.02) / _errors(value_and_slopes, 0.01))
    # The next order contributes a relative 0.01 times numbers of order one.
    np.testing.assert_allclose(orders, [order, order, order - 1], atol=0.15)


def test_the_response_at_fixed_couplings_is_the_magnetization_of_the_solver(theory):
    value_and_slopes, solve, _ = theory
    solution = solve(0.3 * J, H, beta=1.2)
    assert bool(solution.converged)
    _, (_, by_fields) = value_and_slopes(0.3 * J, H)
    np.testing.assert_allclose(-by_fields[:, 0], solution.value, atol=1e-9)


def test_solutions_are_those_of_the_solver_of_adaptive_tap():
    K = (J + J.T) * 0.2 * (1 - np.eye(6))
    for ours, theirs in ((mean_field.naive_solve, solve_naive_ising), (mean_field.tap_solve, solve_tap_ising)):
        found = ours(0.2 * J, H, beta=1.0).value
        np.testing.assert_allclose(found, theirs(K, H[:, 0], beta=1.0).magnetizations, atol=1e-8)


def test_where_no_stationary_point_is_found_the_free_energy_is_nan(theory):
    value_and_slopes, solve, order = theory
    if order == 3:
        # Far beyond the reach of the expansion the search for a solution fails.
        assert not bool(solve(6 * J, 0.1 * H, beta=1.2).converged)
        assert np.isnan(float(value_and_slopes(6 * J, 0.1 * H)[0]))
    assert not bool(solve(0.3 * J, H, beta=1.2, max_steps=1).converged)


def test_without_couplings_both_are_exact(theory):
    value_and_slopes, _, _ = theory
    value, _ = value_and_slopes(0 * J, H)
    assert float(value) == pytest.approx(-float(np.log(np.cosh(1.2 * H)).sum()) / 1.2, rel=1e-12)
