"""Five tokens of a star: where a long walk is, how concentrated, and how irreversible, in fifty digits."""

import mpmath
import numpy as np
import pytest

from spinbook import lens

# Rows of exact decimals that sum to one. The third token gets 0.4 of each other token, and keeps 0.9 for itself.
ROWS = [
    ["0.30", "0.10", "0.40", "0.05", "0.15"],
    ["0.20", "0.25", "0.40", "0.10", "0.05"],
    ["0.04", "0.01", "0.90", "0.03", "0.02"],
    ["0.05", "0.30", "0.40", "0.05", "0.20"],
    ["0.10", "0.15", "0.40", "0.25", "0.10"],
]


def walk():
    """The row that the weights leave as it is, by elimination with its sum held at one."""
    J = mpmath.matrix([[mpmath.mpf(entry) for entry in row] for row in ROWS])
    A = J.T - mpmath.eye(5)
    for j in range(5):
        A[4, j] = 1
    return J, mpmath.lu_solve(A, mpmath.matrix([0, 0, 0, 0, 1]))


def test_a_walk_on_a_star_is_where_elimination_finds_it():
    J, pi = walk()
    weights = np.array(ROWS, float)
    found = lens.stationary(weights)
    np.testing.assert_allclose(found, [float(p) for p in pi], rtol=1e-13)
    # What the sink gets and keeps is enough to know its share.
    assert abs(pi[2] - mpmath.mpf("0.4") / (mpmath.mpf("0.4") + 1 - mpmath.mpf("0.9"))) < mpmath.mpf(10) ** -45
    assert float(lens.concentration(found)) == pytest.approx(float(5 * sum(p**2 for p in pi)), rel=1e-13)
    flows = [(pi[i] * J[i, j], pi[j] * J[j, i]) for i in range(5) for j in range(5) if i != j]
    sigma = sum((there - back) * mpmath.log(there / back) for there, back in flows) / 2
    assert float(lens.irreversibility(weights)) == pytest.approx(float(sigma), rel=1e-11)
