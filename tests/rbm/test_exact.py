"""Enumeration and the effective interactions it reveals, prior by prior."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spinbook.rbm import cumulant_generating_functions as K
from spinbook.rbm import effective_energy, exact
from spinbook.rbm.visible_terms import linear

# Fewer than 1e4 additions of numbers of order one.
ROUNDING = 2e-12

rng = np.random.default_rng(3)
W = rng.normal(0, 0.5, (5, 3))
A = rng.normal(0, 1, 5)


def subset(number):
    """The members of a subset, from its number, by division: not by the shifts of the library."""
    members, i = [], 0
    while number:
        number, member = divmod(number, 2)
        members += [i] * member
        i += 1
    return members


def test_states_are_all_different_and_numbered_by_their_bits():
    for n in (1, 4):
        states = np.asarray(exact.states(n))
        assert states.shape == (2**n, n)
        assert set(np.unique(states)) == {0.0, 1.0}
        np.testing.assert_array_equal(states @ 2.0 ** np.arange(n), np.arange(2**n))


@settings(max_examples=25, deadline=None)
@given(hnp.arrays(np.float64, 16, elements=st.floats(-10, 10)))
def test_interactions_rebuild_every_energy_function(energies):
    J = np.asarray(exact.interactions(energies))
    for state in range(16):
        on = set(subset(state))
        rebuilt = sum(J[S] for S in range(16) if set(subset(S)) <= on)
        # Sixteen interactions, each a sum of up to sixteen energies of at most 10.
        assert rebuilt == pytest.approx(-energies[state], abs=256 * 10 * 4e-16)


def test_interactions_are_the_alternating_sums_over_subsets():
    energies = rng.normal(size=8)
    J = np.asarray(exact.interactions(energies))
    for S in range(8):
        inner = [T for T in range(8) if set(subset(T)) <= set(subset(S))]
        expected = sum((-1) ** (len(subset(S)) - len(subset(T))) * -energies[T] for T in inner)
        assert J[S] == pytest.approx(expected, abs=ROUNDING)


def test_poisson_prior_interacts_at_every_order_as_a_product_of_exponentials():
    J = np.asarray(exact.interactions(effective_energy(exact.states(5), W, K.poisson(1.0))))
    assert J[0] == pytest.approx(0, abs=ROUNDING)
    for S in range(1, 32):
        expected = sum(np.prod([np.expm1(W[i, m]) for i in subset(S)]) for m in range(3))
        assert J[S] == pytest.approx(expected, abs=ROUNDING)
    assert abs(J[31]) > 1e-4  # five-body, and not zero


def test_gaussian_prior_has_fields_and_pairs_and_nothing_else():
    J = np.asarray(exact.interactions(effective_energy(exact.states(5), W, K.gaussian, linear(A))))
    for S in range(32):
        members = subset(S)
        if len(members) == 1:
            (i,) = members
            expected = A[i] + np.sum(W[i] ** 2) / 2  # the diagonal of W W^T is a field on units in {0, 1}
        elif len(members) == 2:
            i, j = members
            expected = W[i] @ W[j]
        else:
            expected = 0.0
        assert J[S] == pytest.approx(expected, abs=ROUNDING)


def test_constant_prior_has_fields_only():
    strength = np.asarray(
        exact.interaction_strength_by_order(effective_energy(exact.states(5), W, K.constant(2.0), linear(A)))
    )
    np.testing.assert_allclose(strength[[0, 2, 3, 4, 5]], 0, atol=ROUNDING)
    assert strength[1] == pytest.approx(np.sqrt(np.mean((A + 2 * W.sum(1)) ** 2)), abs=ROUNDING)


def test_symmetric_bernoulli_prior_has_every_order_on_binary_units():
    # Its cumulants of odd order beyond the mean vanish, yet every order of interaction appears: an order counts
    # different units, and a power of the input that is even contains products of three of them, v_i^2 being v_i.
    strength = exact.interaction_strength_by_order(effective_energy(exact.states(5), W, K.bernoulli(0.5)))
    assert np.all(np.asarray(strength)[1:] > 1e-5)


def test_interaction_strength_is_the_root_mean_square_over_subsets_of_each_size():
    energies = rng.normal(size=32)
    J = np.asarray(exact.interactions(energies))
    strength = np.asarray(exact.interaction_strength_by_order(energies))
    assert strength.shape == (6,)
    for k in range(6):
        members = [sum(2**i for i in c) for c in itertools.combinations(range(5), k)]
        assert strength[k] == pytest.approx(np.sqrt(np.mean(J[members] ** 2)), abs=ROUNDING)
