"""The price of a quench and of the steady state for spins in three dimensions, from integrals over their sphere.

The mismatch is the divergence of two densities, integrated here as it is defined. The entropy production of first order
in the couplings rests on traces of products of covariances, differentiated here out of the free energy of one spin.
"""

import itertools

import mpmath
import numpy as np
import pytest

from spinbook.entropy_production.mean_field import vector_mean_field
from spinbook.entropy_production.relaxation import divergence

BETA, DIM = "1.3", 3
FIELDS = [["0.9", "-0.4", "0.3"], ["-0.2", "0.7", "0.5"], ["0.1", "-0.6", "-1.1"]]
J = [["0", "0.6", "-0.2"], ["0.15", "0", "0.4"], ["0.5", "-0.3", "0"]]


def in_mp(rows):
    return [[mpmath.mpf(x) for x in row] for row in rows]


def radius():
    return mpmath.sqrt(mpmath.mpf(DIM) / 2 - 1)


def log_weight(*h):
    """The logarithm of the integral of exp(beta h . s) over the sphere, without the area: sinh(k) / k."""
    k = mpmath.mpf(BETA) * radius() * mpmath.sqrt(sum(x * x for x in h))
    return mpmath.log(mpmath.sinh(k) / k)


def test_the_mismatch_is_the_integral_that_defines_a_divergence():
    # Claim nonequilibrium-dynamics.divergence.
    h, g = in_mp(FIELDS)[:2]
    scale = mpmath.mpf(BETA) * radius()
    along = sum(a * b for a, b in zip(h, g, strict=True)) / sum(a * a for a in h)
    across = mpmath.sqrt(sum((b - along * a) ** 2 for a, b in zip(h, g, strict=True)))
    length = mpmath.sqrt(sum(a * a for a in h))

    def at(cosine, angle):
        # h along the pole; g has a part along it and a part across.
        sine = mpmath.sqrt(1 - cosine * cosine)
        first = scale * length * cosine
        second = scale * (along * length * cosine + across * sine * mpmath.cos(angle))
        density = mpmath.exp(first - log_weight(*h)) / (4 * mpmath.pi)
        return density * (first - log_weight(*h) - second + log_weight(*g))

    with mpmath.workdps(20):
        integral = 2 * mpmath.quadgl(at, [-1, 1], [0, mpmath.pi])
    found = divergence(*(np.array([float(x) for x in v]) for v in (h, g)), beta=float(BETA))
    assert float(found) == pytest.approx(float(integral), rel=1e-12)


def covariance(h):
    """d^2 ln Z / dh_a dh_b / beta^2."""
    orders = {
        (a, b): tuple(int(c == a) + int(c == b) for c in range(DIM)) for a, b in itertools.product(range(DIM), repeat=2)
    }
    return mpmath.matrix(
        [
            [mpmath.diff(log_weight, tuple(h), orders[a, b]) / mpmath.mpf(BETA) ** 2 for b in range(DIM)]
            for a in range(DIM)
        ]
    )


def test_the_entropy_production_is_a_sum_of_squares_of_asymmetries_with_overlaps_of_covariances():
    # Claims nonequilibrium-dynamics.trace and proxy-not-negative: beta sum (J_ij - J_ji) D_ij, D_ij = beta J_ij T_ij.
    beta, weights = mpmath.mpf(BETA), in_mp(J)
    spread = [covariance(h) for h in in_mp(FIELDS)]
    overlap = [[sum((a * b)[c, c] for c in range(DIM)) for b in spread] for a in spread]
    by_definition = beta * sum(
        (weights[i][j] - weights[j][i]) * beta * weights[i][j] * overlap[i][j]
        for i, j in itertools.product(range(3), repeat=2)
    )
    fields = np.array(FIELDS, float)
    found = vector_mean_field(np.array(J, float), fields, fields, beta=float(BETA))
    assert float(found) == pytest.approx(float(by_definition), rel=1e-12)
