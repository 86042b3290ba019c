"""Modified Kneser-Ney: how well counts alone predict the next symbol.

A model of order n conditions on n - 1 symbols. Source: Chen and Goodman, "An empirical study of smoothing techniques
for language modeling" (1999), section 3, in its interpolated form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbook.annotations import Float, Int


class Level(NamedTuple):
    """Counts of k-grams, written as numbers of base V in growing order, and what follows each of their contexts.

    ``counts`` are occurrences at the highest level, and below it of how many different symbols a k-gram is preceded.
    ``discounts``: what is taken from counts of 1, of 2 and of 3 or more. Of each of ``contexts``, the ``totals`` of the
    counts, and ``freed``, the share of them that the discounts take and the level below gets.
    """

    grams: Int[np.ndarray, " G"]
    counts: Int[np.ndarray, " G"]
    discounts: Float[np.ndarray, "3"]
    contexts: Int[np.ndarray, " C"]
    totals: Int[np.ndarray, " C"]
    freed: Float[np.ndarray, " C"]


def _grams(symbols: Int[np.ndarray, " N"], length: int, base: int) -> Int[np.ndarray, " M"]:
    """The number of each run of ``length`` symbols, the last of them the digit of ones."""
    if base**length >= 2**63:
        raise ValueError(f"length: expected at most 63 bits for an n-gram of {base} symbols, got {length}")
    grams = np.zeros(len(symbols) - length + 1, np.int64)
    for k in range(length):
        grams = grams * base + symbols[k : k + len(grams)]
    return grams


def _discounts(counts: Int[np.ndarray, " G"]) -> Float[np.ndarray, "3"]:
    """k - (k + 1) Y n_{k+1} / n_k, Y = n_1 / (n_1 + 2 n_2), n_k the number of k-grams that were counted k times.

    Where a text is so short that one of n_1 to n_3 is missing, the one discount of Kneser and Ney, Y, or 1/2 without.
    """
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(float)
    ratio = n[0] / (n[0] + 2 * n[1]) if n[0] and n[1] else 0.5
    if not n[:3].all():
        return np.full(3, ratio)
    k = np.arange(1, 4)
    return np.clip(k - (k + 1) * ratio * n[1:] / n[:3], 0.0, k.astype(float))


def _level(grams: Int[np.ndarray, " G"], counts: Int[np.ndarray, " G"], base: int) -> Level:
    discounts = _discounts(counts)
    contexts, place = np.unique(grams // base, return_inverse=True)
    totals = np.bincount(place, counts).astype(np.int64)
    freed = np.bincount(place, discounts[np.minimum(counts, 3) - 1]) / totals
    return Level(grams, counts, discounts, contexts, totals, freed)


def counted(symbols: Int[np.ndarray, " N"], order: int, *, num_symbols: int) -> list[Level]:
    """The model of a text, a row of numbers from 0 to V - 1: its levels, from single symbols to n-grams.

    Raises ``ValueError`` for more n-grams than 63 bits can number.

    >>> [level.counts.tolist() for level in counted(np.array([0, 1, 0, 1, 1]), 2, num_symbols=2)]
    [[1, 2], [2, 1, 1]]
    """
    grams, counts = np.unique(_grams(symbols, order, num_symbols), return_counts=True)
    levels = [_level(grams, counts, num_symbols)]
    for length in range(order - 1, 0, -1):
        # Each different (k + 1)-gram is one symbol before its last k.
        grams, counts = np.unique(levels[0].grams % num_symbols**length, return_counts=True)
        levels.insert(0, _level(grams, counts, num_symbols))
    return levels


def _found(keys: Int[np.ndarray, " G"], wanted: Int[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
    """Where the wanted stand among sorted keys, and whether they do."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def losses(model: list[Level], symbols: Int[np.ndarray, " N"], *, num_symbols: int) -> Float[np.ndarray, " M"]:
    """-ln P of every symbol of a text after the n - 1 before it, in nats; the first n - 1 symbols have none.

    A context that was not seen leaves the symbol to a shorter one.

    >>> losses(counted(np.array([0, 1, 0, 1, 1]), 2, num_symbols=2), np.array([0, 1]), num_symbols=2).round(3).tolist()
    [0.087]
    """
    grams = _grams(symbols, len(model), num_symbols)
    found = np.full(len(grams), 1 / num_symbols)
    for length, level in enumerate(model, start=1):
        short = grams % num_symbols**length
        place, seen = _found(level.grams, short)
        at, known = _found(level.contexts, short // num_symbols)
        counts = level.counts[place]
        kept = np.where(seen, counts - level.discounts[np.minimum(counts, 3) - 1], 0) / level.totals[at]
        found = np.where(known, kept + level.freed[at] * found, found)
    return -np.log(found)
