"""Kneser-Ney against a hand-computed example, against its recursive definition, and by enumeration."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from experiments.datasets import moby_dick
from experiments.depth.kneser_ney import counted, distribution, losses

LETTERS = np.random.default_rng(0).choice(4, size=400, p=[0.5, 0.3, 0.15, 0.05])


def test_a_text_of_five_letters_by_hand():
    # 01 twice, 10 and 11 once: n_1 = 2, n_2 = 1, so that 1/2 is taken from every count. Below, 0 follows one letter and
    # 1 two: n_1 = n_2 = 1, of which 1/3 is taken, and 2/9 are shared between two letters.
    model = counted([0, 1, 0, 1, 1], 2, num_symbols=2)
    alone = np.array([2 / 9 + 1 / 9, 5 / 9 + 1 / 9])
    np.testing.assert_allclose(distribution(model, [0]), [0.25 * alone[0], 0.75 + 0.25 * alone[1]])
    np.testing.assert_allclose(distribution(model, [1]), [0.25 + 0.5 * alone[0], 0.25 + 0.5 * alone[1]])
    np.testing.assert_allclose(losses(model, [0, 1, 0]), -np.log([0.75 + 0.25 * alone[1], 0.25 + 0.5 * alone[0]]))
    # What the occurrences of the letters themselves give is another number.
    assert abs(distribution(model, [0])[1] - (0.75 + 0.25 * 0.6)) > 0.01


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_are_a_distribution_in_every_context(order):
    model = counted(LETTERS, order, num_symbols=4)
    for context in product(range(4), repeat=order - 1):
        p = distribution(model, np.array(context, int))
        assert p.min() > 0
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
    model = counted(text, 3, num_symbols=36)
    expected = [-np.log(defined(text.tolist(), 3, 36, held_out[i : i + 3])) for i in range(len(held_out) - 2)]
    np.testing.assert_allclose(losses(model, held_out), expected, rtol=1e-12)


def test_more_context_helps_on_a_text_and_not_on_independent_letters():
    characters = moby_dick.encode(moby_dick.sample())
    learnt, rest = characters[:16000], characters[16000:]
    scores = [losses(counted(learnt, n, num_symbols=36), rest).mean() for n in (1, 2, 3)]
    assert scores[0] > scores[1] + 0.3 > scores[2] + 0.4
    random = np.random.default_rng(1).integers(4, size=(2, 20000))
    for order in (1, 3):
        assert losses(counted(random[0], order, num_symbols=4), random[1]).mean() == pytest.approx(np.log(4), abs=5e-3)


def test_bad_texts_are_refused_in_words():
    with pytest.raises(ValueError, match="symbols: expected integers from 0 to 1"):
        counted([0, 1, 2], 1, num_symbols=2)
    with pytest.raises(ValueError, match="symbols: expected more than 3, got 3"):
        counted([0, 1, 0], 3, num_symbols=2)
    with pytest.raises(ValueError, match="order: expected at most 63 bits"):
        counted(np.zeros(50, int), 13, num_symbols=36)
    model = counted([0, 1, 0, 1, 1], 3, num_symbols=2)
    with pytest.raises(ValueError, match="context: expected at least 2 symbols, got 1"):
        distribution(model, [0])
