"""Two spins that drive each other: the chain of four states, solved here in fifty digits."""

from itertools import product

import mpmath
import numpy as np
import pytest

from spinbook.entropy_production.steady import from_delayed_correlations
from spinbook.ising import exact

J = [["0", "0.9"], ["-0.35", "0"]]
FIELDS, BETA = ["0.4", "-0.1"], "1.4"
STATES = list(product((-1, 1), repeat=2))


def probability(new, old):
    """P(new | old) of parallel dynamics, one spin after the other."""
    beta = mpmath.mpf(BETA)
    result = mpmath.mpf(1)
    for i in range(2):
        felt = beta * (mpmath.mpf(FIELDS[i]) + sum(mpmath.mpf(J[i][j]) * old[j] for j in range(2)))
        result /= 1 + mpmath.exp(-2 * new[i] * felt)
    return result


def stationary():
    """The vector that the transitions leave as it is, by elimination with the sum held at one."""
    A = mpmath.matrix(4, 4)
    for a, new in enumerate(STATES):
        for b, old in enumerate(STATES):
            A[a, b] = probability(new, old) - (a == b)
    for b in range(4):
        A[3, b] = 1
    return mpmath.lu_solve(A, mpmath.matrix([0, 0, 0, 1]))


def produced(p):
    total = mpmath.mpf(0)
    for a, new in enumerate(STATES):
        for b, old in enumerate(STATES):
            forward, backward = probability(new, old), probability(old, new)
            total += p[b] * forward * mpmath.log(forward / backward)
            assert a < 4
    return total


def delayed(p, i, j):
    products = sum(p[b] * probability(new, old) * new[i] * old[j] for new in STATES for b, old in enumerate(STATES))
    means = [sum(p[b] * state[k] for b, state in enumerate(STATES)) for k in (i, j)]
    return products - means[0] * means[1]


def test_the_log_ratio_of_paths_is_beta_times_the_asymmetry_times_the_delayed_correlations():
    # Claim entropy-production.missing-beta: to fifty digits with beta, and by a factor of 1.4 without.
    p = stationary()
    sigma = produced(p)
    by_pairs = sum((mpmath.mpf(J[i][j]) - mpmath.mpf(J[j][i])) * delayed(p, i, j) for i in range(2) for j in range(2))
    assert mpmath.almosteq(sigma, mpmath.mpf(BETA) * by_pairs, rel_eps=mpmath.mpf(10) ** -45)
    assert float(sigma / by_pairs) == pytest.approx(1.4)


def test_the_library_gives_the_same():
    p = stationary()
    couplings, fields = np.array(J, float), np.array(FIELDS, float)
    sigma = exact.entropy_production(couplings, fields, beta=float(BETA))
    assert float(sigma) == pytest.approx(float(produced(p)), rel=1e-12)
    D = exact.delayed_correlations(couplings, fields, beta=float(BETA))
    np.testing.assert_allclose(D, [[float(delayed(p, i, j)) for j in range(2)] for i in range(2)], atol=1e-13)
    assert float(from_delayed_correlations(couplings, D, beta=float(BETA))) == pytest.approx(float(produced(p)))
