"""Tests of paired runs: Student's t against a margin, equivalence by two such tests, and many questions together.

A difference is that of runs from the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from spinbook import validate
from spinbook.annotations import ArrayLike

Decision = Literal["yes", "no", "undecided"]


class Paired(NamedTuple):
    """``mean`` of ``num_pairs`` differences, its ``standard_error``, and ``low`` to ``high`` by Student's t."""

    mean: float
    standard_error: float
    low: float
    high: float
    num_pairs: int


class Verdict(NamedTuple):
    """What was decided, and the p values of the tests that reject the opposite of "yes" and of "no"."""

    decision: Decision
    p_yes: float
    p_no: float


def _row(values: ArrayLike, name: str) -> Float[np.ndarray, " runs"]:
    array = validate.known_numbers(values, name)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"{name}: expected at least two numbers in a row, got shape {array.shape}")
    return array


_level = partial(validate.number, above=0, below=0.5)


def paired(ours: ArrayLike, theirs: ArrayLike, *, confidence: float = 0.95) -> Paired:
    """mean(d) -+ t_{n-1} s / sqrt(n) of d_k = ours_k - theirs_k, where k is a seed that both have in common.

    Raises ``ValueError`` for rows of different length, fewer than two pairs and numbers that are not finite.

    >>> paired([0.5, 0.7, 0.6], [0.4, 0.5, 0.6]).mean.__round__(3)
    0.1
    """
    a, b = _row(ours, "ours"), _row(theirs, "theirs")
    if a.shape != b.shape:
        raise ValueError(f"theirs: expected the shape of ours, {a.shape}, got {b.shape}")
    d = a - b
    mean, error = float(d.mean()), _standard_error(d)
    half = float(stats.t.ppf((1 + validate.number(confidence, "confidence", above=0, below=1)) / 2, d.size - 1)) * error
    return Paired(mean, error, mean - half, mean + half, d.size)


def _standard_error(d: np.ndarray) -> float:
    # Differences that are all the same have none, whatever rounding makes of their mean.
    return 0.0 if np.ptp(d) == 0 else float(d.std(ddof=1) / math.sqrt(d.size))


def _p_above(d: np.ndarray, margin: float) -> float:
    """Of H0: mean <= margin. Without any spread the mean is known: 0 where it is above, else 1, a tie included."""
    error = _standard_error(d)
    if error == 0:
        return 0.0 if d[0] > margin else 1.0
    return float(stats.t.sf((d.mean() - margin) / error, d.size - 1))


def _verdict(p_yes: float, p_no: float, level: float) -> Verdict:
    level = _level(level, "level")
    return Verdict("yes" if p_yes < level else "no" if p_no < level else "undecided", p_yes, p_no)


def above(differences: ArrayLike, margin: float, *, level: float = 0.05) -> Verdict:
    """Is the mean difference above the margin? "yes" rejects mean <= margin, "no" mean >= margin, one-sided.

    Student's t with n - 1 degrees of freedom. Where neither is rejected the question is undecided.

    >>> above([2.0, 2.1, 1.9], 1.0).decision, above([2.0, 2.1, 1.9], 2.0).decision
    ('yes', 'undecided')
    """
    d, margin = _row(differences, "differences"), validate.number(margin, "margin")
    return _verdict(_p_above(d, margin), _p_above(-d, -margin), level)


def equivalent(differences: ArrayLike, margin: float, *, level: float = 0.05) -> Verdict:
    """Is the mean difference within -+ margin? "yes" by two one-sided tests (TOST), "no" where it is beyond one end.

    "yes" rejects mean <= -margin and mean >= margin, each at the level, so that its p value is the larger of the two:
    it is "yes" just where the interval of confidence 1 - 2 level lies within the margins. "no" rejects
    |mean| <= margin: the smaller p value of the two ends, twice, since either end may be the one.

    >>> equivalent([0.1, -0.1, 0.05, 0.0], 1.0).decision, equivalent([2.0, 2.1, 1.9], 1.0).decision
    ('yes', 'no')
    """
    d, margin = _row(differences, "differences"), validate.number(margin, "margin", above=0)
    p_yes = max(_p_above(d, -margin), _p_above(-d, -margin))
    return _verdict(p_yes, min(1.0, 2 * min(_p_above(d, margin), _p_above(-d, margin))), level)


def together(verdicts: Sequence[Verdict], *, level: float = 0.05) -> Verdict:
    """Is it "yes" for all of them? "yes" needs every single one, "no" one that stands after Bonferroni's correction.

    All have to be "yes" for a wrong "yes" to happen, so that no correction is needed there (an intersection-union
    test); one wrong "no" is enough, so that the least of k p values counts k times.

    >>> together([Verdict("yes", 0.01, 0.99), Verdict("undecided", 0.2, 0.8)]).decision
    'undecided'
    """
    if not verdicts:
        raise ValueError("verdicts: expected at least one, got none")
    return _verdict(max(v.p_yes for v in verdicts), min(1.0, len(verdicts) * min(v.p_no for v in verdicts)), level)


def holm(p_values: ArrayLike, *, level: float = 0.05) -> Bool[np.ndarray, " tests"]:
    """Which of k hypotheses are rejected: p_(1) < level / k, p_(2) < level / (k - 1), ..., until the first that is not.

    The probability of rejecting any that is true is at most the level, whatever the dependence of the tests.
    Source: Holm, "A simple sequentially rejective multiple test procedure" (1979).

    >>> holm([0.04, 0.01, 0.03]).tolist()
    [False, True, False]
    """
    p = validate.known_numbers(p_values, "p_values")
    if p.ndim != 1 or p.size == 0:
        raise ValueError(f"p_values: expected numbers in a row, got shape {p.shape}")
    validate.require(lambda x: (x >= 0) & (x <= 1), p, "p_values", "numbers from 0 to 1")
    order = np.argsort(p, kind="stable")
    rejected = np.zeros(p.size, bool)
    rejected[order] = np.cumprod(p[order] < _level(level, "level") / np.arange(p.size, 0, -1)) > 0
    return rejected
