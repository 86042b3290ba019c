"""Enumeration and the effective interactions it reveals, prior by prior."""

import itertools

import numpy as np

from spinbook.rbm import cumulant_generating_functions as K
from spinbook.rbm import effective_energy, exact

# Fewer than 1e4 additions of numbers of order one.
ROUNDING = 2e-12

rng = np.random.default_rng(3)
W = rng.normal(0, 0.5, (5, 3))
A = rng.normal(0, 1, 5)


def bias(v):
    return v * np.broadcast_to(A, v.shape)


def strength(*model):
    return np.asarray(exact.interaction_strength_by_order(effective_energy(exact.states(5), W, *model)))


def root_mean_square(J_of, k):
    return np.sqrt(np.mean([J_of(members) ** 2 for members in itertools.combinations(range(5), k)]))


def test_states_are_all_different_and_numbered_by_their_bits():
    for n in (1, 4):
        states = np.asarray(exact.states(n))
        assert states.shape == (2**n, n)
        assert set(np.unique(states)) == {0.0, 1.0}
        np.testing.assert_array_equal(states @ 2.0 ** np.arange(n), np.arange(2**n))


def test_strengths_are_those_of_alternating_sums_over_subsets():
    energies = rng.normal(size=32)

    def interaction(S):
        inner = itertools.chain.from_iterable(itertools.combinations(S, k) for k in range(len(S) + 1))
        return sum((-1) ** (len(S) - len(T)) * -energies[sum(2**i for i in T)] for T in inner)

    found = np.asarray(exact.interaction_strength_by_order(energies))
    np.testing.assert_allclose(found, [root_mean_square(interaction, k) for k in range(6)], atol=ROUNDING)


def test_gaussian_prior_has_fields_and_pairs_and_nothing_else():
    # The diagonal of W W^T is a field on units in {0, 1}.
    fields, pairs = A + np.sum(W**2, axis=1) / 2, (W @ W.T)[np.triu_indices(5, 1)]
    expected = [0, *(np.sqrt(np.mean(x**2)) for x in (fields, pairs)), 0, 0, 0]
    np.testing.assert_allclose(strength(K.gaussian, bias), expected, atol=ROUNDING)
