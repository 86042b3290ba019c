"""Adaptive TAP, TAP and naive mean field against enumeration, their own equations, and each other."""

import numpy as np
import pytest
import torch

from spinbook.adaptive_tap import ising

SOLVERS = {"naive": ising.solve_naive_ising, "tap": ising.solve_tap_ising, "adaptive": ising.solve_ising}
each = pytest.mark.parametrize("name", SOLVERS)
TOL = 1e-10


@each
def test_solution_satisfies_the_printed_equations(name, make_ising):
    J, h = make_ising(9, 0.9, seed=0)
    beta = 1.3
    found = SOLVERS[name](J, h, beta=beta)
    m, V = found.magnetizations.numpy(), found.cavity_variances.numpy()
    A, v = beta * J, 1 - m**2
    np.testing.assert_allclose(m, np.tanh(beta * h + A @ m - V * m), atol=2 * TOL)
    own = {"naive": 0 * m, "tap": A**2 @ v, "adaptive": V}[name]
    np.testing.assert_allclose(V, own, atol=10 * TOL)
    Lambda = np.diag(V + 1 / v)
    extra = 2 * A**2 * np.outer(m, m) if name == "tap" else 0
    chi = np.linalg.inv(Lambda - A - extra)
    np.testing.assert_allclose(found.susceptibilities, chi, atol=100 * TOL)
    if name == "adaptive":
        np.testing.assert_allclose(np.diag(chi), v, atol=10 * TOL)
    assert bool(found.converged)
    assert float(found.residual) <= TOL


@each
def test_magnetizations_are_the_slope_of_the_theory_s_own_log_partition(name, make_ising):
    J, h = make_ising(6, 0.8, seed=4)
    beta = 1.2
    h = torch.tensor(h, requires_grad=True)
    found = SOLVERS[name](J, h, beta=beta)
    (slope,) = torch.autograd.grad(found.log_partition, h)
    np.testing.assert_allclose(slope, beta * found.magnetizations.detach(), atol=1e-8)


@pytest.mark.parametrize("name", ["naive", "tap"])
def test_susceptibilities_are_the_slope_of_the_magnetizations(name, make_ising):
    J, h = make_ising(5, 0.8, seed=5)
    beta = 1.2
    slope = torch.autograd.functional.jacobian(lambda x: SOLVERS[name](J, x, beta=beta).magnetizations, torch.tensor(h))
    np.testing.assert_allclose(slope, beta * SOLVERS[name](J, h, beta=beta).susceptibilities, atol=1e-8)


@each
def test_gradients_of_every_output(name, make_ising):
    W, h = (torch.tensor(x, requires_grad=True) for x in make_ising(3, 0.9, seed=6, batch=(2,)))
    beta = torch.tensor([0.8, 1.1], dtype=torch.float64, requires_grad=True)

    def outputs(W, h, beta):
        hollow = torch.triu(W, 1)
        found = SOLVERS[name](hollow + hollow.mT, h, beta=beta, tol=1e-13)
        values = found.magnetizations, found.susceptibilities, found.log_partition
        return values if name == "naive" else (*values, found.cavity_variances)

    assert torch.autograd.gradcheck(outputs, (W, h, beta), fast_mode=True)


STRENGTHS = (0.5, 2.0, 10.0, 100.0, 1000.0)


def check_solutions(found):
    """Converged, finite and physical, and what rounding left over is small even where couplings are strong."""
    assert bool(found.converged.all()), found.residual[~found.converged]
    assert bool((found.magnetizations.abs() <= 1).all())
    assert float(found.residual.median()) <= TOL
    assert float(found.residual.max()) < 1e-6


@each
def test_every_coupling_strength_ends_in_a_solution(name, make_ising):
    for strength in STRENGTHS:
        check_solutions(SOLVERS[name](*make_ising(10, strength, seed=10, batch=(20,))))


def test_the_floor_of_the_residual_is_what_rounding_leaves(make_ising):
    """Asked for the impossible, the solver stops at rounding, says so, and is no farther from the exact solution."""
    J, h = make_ising(10, 10.0, seed=15, batch=(20,))
    found = ising.solve_ising(J, h, tol=1e-300)
    assert bool(found.converged.all())
    assert float(found.residual.max()) < 1e-10
    rough = ising.solve_ising(J.astype(np.float32), h.astype(np.float32))
    assert bool(rough.converged.all())
    assert float(rough.residual.max()) > 1e-10
