"""Kneser-Ney against an example by hand and against its recursive definition; its probabilities sum to one."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from experiments.datasets import moby_dick
from experiments.kneser_ney import counted, losses

LETTERS = np.random.default_rng(0).choice(4, size=400, p=[0.5, 0.3, 0.15, 0.05])


def test_a_text_of_five_letters_by_hand():
    # 01 twice, 10 and 11 once: n_1 = 2, n_2 = 1, so that 1/2 is taken from every count. Below, 0 follows one letter and
    # 1 two: n_1 = n_2 = 1, of which 1/3 is taken, and 2/9 are shared between two letters.
    model = counted(np.array([0, 1, 0, 1, 1]), 2, num_symbols=2)
    alone = np.array([2 / 9 + 1 / 9, 5 / 9 + 1 / 9])
    expected = [0.75 + 0.25 * alone[1], 0.25 + 0.5 * alone[0], 0.25 * alone[0], 0.75 + 0.25 * alone[1]]
    np.testing.assert_allclose(losses(model, np.array([0, 1, 0, 0, 1]), num_symbols=2), -np.log(expected))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_are_a_distribution_in_every_context(order):
    model = counted(LETTERS, order, num_symbols=4)
    for context in product(range(4), repeat=order - 1):
        p = np.exp([-losses(model, np.array([*context, s]), num_symbols=4)[0] for s in range(4)])
        assert p.sum() == pytest.approx(1, abs=1e-12)


def defined(text, order, num_symbols, gram):
    """P of the last of ``gram`` after the others, from dictionaries, as the definition has it."""

    def grams(length):
        return [tuple(text[i : i + length]) for i in range(len(text) - length + 1)]

    def level(length):
        if length == order:
            return Counter(grams(length))
        return Counter(gram[1:] for gram in set(grams(length + 1)))

    def probability(gram):
        if not gram:
            return 1 / num_symbols
        counts = level(len(gram))
        n = [sum(c == k for c in counts.values()) for k in range(5)]
        ratio = n[1] / (n[1] + 2 * n[2])
        taken = {k: k - (k + 1) * ratio * n[k + 1] / n[k] for k in (1, 2, 3)}
        followers = {g[-1]: c for g, c in counts.items() if g[:-1] == gram[:-1]}
        if not followers:
            return probability(gram[1:])
        freed = sum(taken[min(c, 3)] for c in followers.values())
        c = followers.get(gram[-1], 0)
        return ((c - taken[min(c, 3)] if c else 0) + freed * probability(gram[1:])) / sum(followers.values())

    return probability(tuple(gram))


def test_the_arrays_follow_the_recursive_definition():
    text = moby_dick.encode(moby_dick.sample())[:4000].astype(int)
    held_out = moby_dick.encode("the whale swims in the sea").astype(int)
    expected = [-np.log(defined(text.tolist(), 3, 36, held_out[i : i + 3])) for i in range(len(held_out) - 2)]
    found = losses(counted(text, 3, num_symbols=36), held_out, num_symbols=36)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_more_symbols_than_63_bits_can_number_are_refused():
    with pytest.raises(ValueError, match="length: expected at most 63 bits"):
        counted(np.zeros(50, int), 13, num_symbols=36)
