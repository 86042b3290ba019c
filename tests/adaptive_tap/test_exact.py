"""Enumeration against loops over states written out."""

import itertools
import math

import numpy as np
import pytest

from spinbook.adaptive_tap import exact

# Sums of a few hundred terms of order one.
ROUNDING = 1e-12


def test_enumeration_counts_every_pair_once(make_ising):
    J, h = make_ising(4, 1.2, seed=0)
    beta, weights, first = 0.7, [], []
    for S in itertools.product((-1, 1), repeat=4):
        exponent = sum(J[i, j] * S[i] * S[j] for i in range(4) for j in range(i)) + sum(h[i] * S[i] for i in range(4))
        weights.append(math.exp(beta * exponent))
        first.append(S)
    Z = sum(weights)
    m = np.array(weights) @ np.array(first) / Z
    second = np.einsum("s,si,sj->ij", np.array(weights) / Z, np.array(first), np.array(first))
    assert float(exact.log_partition(J, h, beta=beta)) == pytest.approx(math.log(Z), rel=ROUNDING)
    np.testing.assert_allclose(exact.magnetizations(J, h, beta=beta), m, atol=ROUNDING)
    np.testing.assert_allclose(exact.susceptibilities(J, h, beta=beta), second - np.outer(m, m), atol=ROUNDING)


def test_published_two_spins_match_one_way_of_reading_the_energy():
    J, h = np.array([[0, 0.5], [0.5, 0]]), np.array([0.3, -0.2])
    # Pairs once, pairs twice, and exp(-E), each to a unit of the last digit known.
    np.testing.assert_allclose(exact.magnetizations(J, h), [0.2056, -0.0645], atol=1e-4)
    np.testing.assert_allclose(exact.magnetizations(2 * J, h), [0.1475, 0.0256], atol=1e-4)
    np.testing.assert_allclose(exact.magnetizations(-J, -h), [-0.3726, 0.3234], atol=1e-4)
