"""Adaptive TAP of three spins: the printed equations solved here in fifty digits, and every state counted."""

from itertools import product

import mpmath
import numpy as np
import pytest
import sympy
import torch

from spinbook.adaptive_tap import ising
from spinbook.adaptive_tap.vector import solve_gaussian

PAIRS = {(0, 1): "0.31", (0, 2): "-0.22", (1, 2): "0.17"}
FIELDS = ["0.4", "-0.15", "0.6"]


def model(scale=1):
    A = mpmath.zeros(3)
    for (i, j), value in PAIRS.items():
        A[i, j] = A[j, i] = scale * mpmath.mpf(value)
    return A, [mpmath.mpf(x) for x in FIELDS]


def in_double(A, x):
    matrix = np.array([[float(A[i, j]) for j in range(3)] for i in range(3)])
    return torch.from_numpy(matrix), torch.tensor([float(v) for v in x], dtype=torch.float64)


def counted(A, x):
    """The means of the eight states."""
    total, means = mpmath.mpf(0), [mpmath.mpf(0)] * 3
    for state in product((-1, 1), repeat=3):
        energy = sum(A[i, j] * state[i] * state[j] for i in range(3) for j in range(i)) + sum(
            h * s for h, s in zip(x, state, strict=True)
        )
        weight = mpmath.exp(energy)
        total += weight
        means = [m + weight * s for m, s in zip(means, state, strict=True)]
    return [m / total for m in means]


def adaptive(A, x):
    """m_i = tanh(x_i + sum_j A_ij m_j - V_i m_i) with [(Lambda - A)^-1]_ii = 1 - m_i^2, six equations at once."""

    def equations(*unknown):
        m, V = unknown[:3], unknown[3:]
        Lambda = mpmath.diag([V[i] + 1 / (1 - m[i] ** 2) for i in range(3)])
        chi = mpmath.inverse(Lambda - A)
        means = [mpmath.tanh(x[i] + sum(A[i, j] * m[j] for j in range(3)) - V[i] * m[i]) - m[i] for i in range(3)]
        return means + [chi[i, i] - (1 - m[i] ** 2) for i in range(3)]

    start = [mpmath.tanh(h) for h in x] + [sum(A[i, j] ** 2 for j in range(3)) for i in range(3)]
    return list(mpmath.findroot(equations, start, tol=1e-40, maxsteps=60))


def test_the_printed_equations_have_the_solution_of_the_library():
    A, x = model()
    found = adaptive(A, x)
    response = ising.solve_ising(*in_double(A, x), tol=1e-13)
    np.testing.assert_allclose(response.magnetizations, [float(m) for m in found[:3]], atol=1e-12)


def order(error):
    """The exponent with which an error falls when the couplings are made smaller ten thousand times."""
    strong, weak = mpmath.mpf(10) ** -3, mpmath.mpf(10) ** -7
    return mpmath.log(error(strong) / error(weak)) / mpmath.log(strong / weak)


def test_the_error_is_of_third_order_in_the_couplings_and_naive_mean_field_of_second():
    # Claims adaptive-tap.order-naive and order-adaptive, without the floor that rounding sets to 53 bits.
    def of_adaptive(scale):
        A, x = model(scale)
        return max(abs(a - b) for a, b in zip(adaptive(A, x)[:3], counted(A, x), strict=True))

    def of_naive(scale):
        A, x = model(scale)
        m = [mpmath.tanh(h) for h in x]
        for _ in range(40):
            m = [mpmath.tanh(x[i] + sum(A[i, j] * m[j] for j in range(3))) for i in range(3)]
        return max(abs(a - b) for a, b in zip(m, counted(A, x), strict=True))

    assert float(order(of_adaptive)) == pytest.approx(3, abs=1e-3)
    assert float(order(of_naive)) == pytest.approx(2, abs=1e-3)


def test_a_gaussian_prior_in_rational_numbers():
    # Two sites of one component and unit prior: the covariance is (1 - J)^-1, to be had without any rounding.
    J = sympy.Matrix([[0, sympy.Rational(2, 5)], [sympy.Rational(2, 5), 0]])
    fields = sympy.Matrix([sympy.Rational(1, 3), sympy.Rational(-1, 7)])
    covariance = (sympy.eye(2) - J).inv()
    couplings = torch.zeros(2, 2, 1, 1, dtype=torch.float64)
    couplings[0, 1] = couplings[1, 0] = 0.4
    found = solve_gaussian(couplings, torch.tensor([[1 / 3], [-1 / 7]], dtype=torch.float64))
    np.testing.assert_allclose(found.magnetizations[:, 0], [float(v) for v in covariance * fields], rtol=1e-13)
    cavity = [1 - 1 / covariance[i, i] for i in range(2)]
    np.testing.assert_allclose(found.cavity_variances[:, 0, 0], [float(v) for v in cavity], rtol=1e-12)
