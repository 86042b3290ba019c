"""One parallel step of spins on the sphere of three dimensions, where the response is Langevin's function.

To second order in the couplings the mean of a spin is phi(h) + (1/2) sum_j J_ij^2 Tr[phi''(h) Cov_j], with h the mean
of its field: the average of the response over what its senders do, expanded. Derivatives are taken here by mpmath.
"""

import itertools

import jax.numpy as jnp
import mpmath
import numpy as np

from spinbook import sphere
from spinbook.vector import mean_field

BETA, STRENGTH = "1.7", 2e-3
FIELDS = [["0.6", "-0.3", "0.2"], ["0.1", "0.9", "-0.4"], ["-0.5", "0.2", "0.7"]]
BEFORE = [["0.3", "0.4", "-0.2"], ["-0.1", "-0.6", "0.5"], ["0.8", "0.1", "0.1"]]
J = [["0", "0.7", "-0.4"], ["0.5", "0", "0.9"], ["-0.8", "0.3", "0"]]
DIM = 3


def in_mp(rows):
    return [[mpmath.mpf(x) for x in row] for row in rows]


def respond(*h):
    """phi(h): along h, R (coth k - 1/k) with k = beta R |h| and R^2 = D/2 - 1, the book's radius."""
    R = mpmath.sqrt(mpmath.mpf(DIM) / 2 - 1)
    length = mpmath.sqrt(sum(x * x for x in h))
    k = mpmath.mpf(BETA) * R * length
    return [R * (mpmath.coth(k) - 1 / k) * x / length for x in h]


def component(a):
    return lambda *h: respond(*h)[a]


def covariance(h):
    """d phi_a / d h_b / beta, the fluctuation of a spin in the field h."""
    orders = [tuple(int(c == b) for c in range(DIM)) for b in range(DIM)]
    return [[mpmath.diff(component(a), tuple(h), order) / mpmath.mpf(BETA) for order in orders] for a in range(DIM)]


def second_order(i, of_the_receiver=False):
    """(1/2) sum_j J_ij^2 sum_ab Cov_j,ab d^2 phi / dh_a dh_b at the mean field of spin i."""
    x, before = in_mp(FIELDS), in_mp(BEFORE)
    weights = [STRENGTH * w for w in in_mp(J)[i]]
    means = [respond(*h) for h in before]
    h = [x[i][c] + sum(weights[j] * means[j][c] for j in range(3)) for c in range(DIM)]
    total = [mpmath.mpf(0)] * DIM
    for j in range(3):
        C = covariance(h if of_the_receiver else before[j])
        for a, b in itertools.product(range(DIM), repeat=2):
            order = tuple(int(c == a) + int(c == b) for c in range(DIM))
            for c in range(DIM):
                total[c] += weights[j] ** 2 / 2 * C[a][b] * mpmath.diff(component(c), tuple(h), order)
    return [float(v) for v in total]


def test_the_radius_and_the_response_are_those_of_the_library():
    for h in in_mp(FIELDS):
        found = sphere.magnetization(jnp.array([float(x) for x in h]), beta=float(BETA))
        np.testing.assert_allclose(found, [float(x) for x in respond(*h)], rtol=1e-12)


def test_tap_adds_the_second_order_of_the_expansion_with_the_fluctuations_of_the_senders():
    # Claim spin-transformers.onsager-index: with those of the receiver the same numbers are wrong by far more.
    means = jnp.array([[float(v) for v in respond(*h)] for h in in_mp(BEFORE)])
    fields = jnp.array(FIELDS, float)
    weights = STRENGTH * np.array(J, float)
    options = {"beta": float(BETA), "response": sphere.exact}
    added = np.asarray(
        mean_field.tap_step(means, weights, fields, tol=1e-15, **options)
        - mean_field.naive_step(means, weights, fields, **options)
    )
    expected = np.array([second_order(i) for i in range(3)])
    # The next order is smaller by the couplings; subtraction leaves rounding of numbers of order one.
    allowed = 3 * STRENGTH * np.abs(expected).max() + 1e-15
    np.testing.assert_allclose(added, expected, atol=allowed)
    assert np.abs(added - [second_order(i, of_the_receiver=True) for i in range(3)]).max() > 10 * allowed
