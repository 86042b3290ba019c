"""Modified Kneser-Ney: how well counts alone predict the next symbol. Learns no representation.

A model of order n conditions on n - 1 symbols. Source: Chen and Goodman, "An empirical study of smoothing techniques
for language modeling" (1999), section 3, in its interpolated form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Int

__all__ = ["KneserNey", "Level", "counted", "distribution", "losses"]


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


class KneserNey(NamedTuple):
    """``levels`` from single symbols to n-grams, of ``num_symbols`` symbols V."""

    levels: tuple[Level, ...]
    num_symbols: int

    @property
    def order(self) -> int:
        """n: of the symbols before, n - 1 are known.

        >>> counted([0, 1, 0, 1], 2, num_symbols=2).order
        2
        """
        return len(self.levels)


def _symbols(symbols: Any, num_symbols: int, name: str) -> Int[np.ndarray, " N"]:
    known = validate.known_numbers(symbols, name)
    if known.ndim != 1:
        raise ValueError(f"{name}: expected symbols in a row, got shape {known.shape}")
    inside = f"integers from 0 to {num_symbols - 1}"
    validate.require(lambda s: (s >= 0) & (s < num_symbols) & (s % 1 == 0), known, name, inside)
    return known.astype(np.int64)


def _grams(symbols: Int[np.ndarray, " N"], length: int, base: int) -> Int[np.ndarray, " M"]:
    """The number of each run of ``length`` symbols, the last of them the digit of ones."""
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


def counted(symbols: Int[ArrayLike, " N"], order: int, *, num_symbols: int) -> KneserNey:
    """The model of a text, a row of numbers from 0 to V - 1; needs the text once for each order.

    Raises ``ValueError`` for a text that is not longer than ``order``, for other symbols, and for more n-grams than 63
    bits can number.

    >>> model = counted([0, 1, 0, 1, 1], 2, num_symbols=2)
    >>> distribution(model, [0]).round(3).tolist()
    [0.083, 0.917]
    """
    order, base = validate.count(order, "order", minimum=1), validate.count(num_symbols, "num_symbols", minimum=2)
    text = _symbols(symbols, base, "symbols")
    if len(text) <= order:
        raise ValueError(f"symbols: expected more than {order}, got {len(text)}")
    if base**order >= 2**63:
        raise ValueError(f"order: expected at most 63 bits for an n-gram of {base} symbols, got {order}")
    grams, counts = np.unique(_grams(text, order, base), return_counts=True)
    levels = [_level(grams, counts, base)]
    for length in range(order - 1, 0, -1):
        # Each different (k + 1)-gram is one symbol before its last k.
        grams, counts = np.unique(levels[0].grams % base**length, return_counts=True)
        levels.insert(0, _level(grams, counts, base))
    return KneserNey(tuple(levels), base)


def _found(keys: Int[np.ndarray, " G"], wanted: Int[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
    """Where the wanted stand among sorted keys, and whether they do."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def _probabilities(model: KneserNey, grams: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Of the last symbol of each n-gram after its others; a context that was never seen leaves it to a shorter one."""
    found = np.full(len(grams), 1 / model.num_symbols)
    for length, level in enumerate(model.levels, start=1):
        short = grams % model.num_symbols**length
        place, seen = _found(level.grams, short)
        at, known = _found(level.contexts, short // model.num_symbols)
        counts = level.counts[place]
        kept = np.where(seen, counts - level.discounts[np.minimum(counts, 3) - 1], 0) / level.totals[at]
        found = np.where(known, kept + level.freed[at] * found, found)
    return found


def distribution(model: KneserNey, context: Int[ArrayLike, " K"]) -> Float[np.ndarray, " V"]:
    """P(s | context) of every symbol s; of the context the last n - 1 symbols count, and it needs as many.

    >>> round(float(distribution(counted([0, 1, 2, 0, 1, 1], 3, num_symbols=3), [2, 0, 1]).sum()), 6)
    1.0
    """
    before = _symbols(context, model.num_symbols, "context")
    if len(before) < model.order - 1:
        raise ValueError(f"context: expected at least {model.order - 1} symbols, got {len(before)}")
    number = 0
    for symbol in before[len(before) - model.order + 1 :]:
        number = number * model.num_symbols + int(symbol)
    return _probabilities(model, number * model.num_symbols + np.arange(model.num_symbols))


def losses(model: KneserNey, symbols: Int[ArrayLike, " N"]) -> Float[np.ndarray, " M"]:
    """-ln P of every symbol of a text after the n - 1 before it, in nats; the first n - 1 symbols have none.

    >>> losses(counted([0, 1, 0, 1, 1], 2, num_symbols=2), [0, 1]).round(3).tolist()
    [0.087]
    """
    text = _symbols(symbols, model.num_symbols, "symbols")
    if len(text) < model.order:
        raise ValueError(f"symbols: expected at least {model.order}, got {len(text)}")
    return -np.log(_probabilities(model, _grams(text, model.order, model.num_symbols)))
