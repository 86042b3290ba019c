"""Verdicts from paired runs: Student's t, one-sided against a margin, equivalence by two of these, pairs that it takes.

A difference is that of two runs from the same seed. Nothing here knows what was run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import integrate, stats

from spinbook import validate
from spinbook.annotations import ArrayLike

__all__ = [
    "Paired",
    "Verdict",
    "above",
    "equivalence_power",
    "equivalent",
    "filled",
    "greatest_spread",
    "holm",
    "one_sided_power",
    "paired",
    "pairs_needed",
    "together",
]

Decision = Literal["yes", "no", "undecided"]


class Paired(NamedTuple):
    """``mean`` of ``num_pairs`` differences, its ``standard_error``, and ``low`` to ``high`` by Student's t."""

    mean: float
    standard_error: float
    low: float
    high: float
    num_pairs: int


class Verdict(NamedTuple):
    """What was decided, and with which probabilities: of "yes" where it is wrong, and of "no" where it is wrong.

    ``p_yes`` and ``p_no`` are the p values of the tests that reject the opposite; a decision is made where one is below
    the level.
    """

    decision: Decision
    p_yes: float
    p_no: float


def _row(values: ArrayLike, name: str) -> Float[np.ndarray, " runs"]:
    array = validate.known_numbers(values, name)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"{name}: expected at least two numbers in a row, got shape {array.shape}")
    validate.require(lambda x: np.isfinite(x * x * x.size), array, name, "numbers with finite squares")
    return array


_level = partial(validate.number, above=0, below=0.5)
_share = partial(validate.number, above=0, below=1)


def paired(ours: ArrayLike, theirs: ArrayLike, *, confidence: float = 0.95) -> Paired:
    """mean(d) -+ t_{n-1} s / sqrt(n) of d_k = ours_k - theirs_k, where k is a seed that both have in common.

    Raises ``ValueError`` for rows of different length, fewer than two pairs and numbers that are not finite.

    >>> paired([0.5, 0.7, 0.6], [0.4, 0.5, 0.6]).mean.__round__(3)
    0.1
    """
    a, b, confidence = _row(ours, "ours"), _row(theirs, "theirs"), _share(confidence, "confidence")
    if a.shape != b.shape:
        raise ValueError(f"theirs: expected the shape of ours, {a.shape}, got {b.shape}")
    d = a - b
    mean, error = float(d.mean()), _standard_error(d)
    half = float(stats.t.ppf((1 + confidence) / 2, d.size - 1)) * error
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


def above(differences: ArrayLike, margin: float, *, level: float = 0.05) -> Verdict:
    """Is the mean difference above the margin? "yes" rejects mean <= margin, "no" mean >= margin, one-sided.

    Student's t with n - 1 degrees of freedom. At most one of the two can be rejected; where neither is, the question is
    undecided.

    >>> above([2.0, 2.1, 1.9], 1.0).decision, above([2.0, 2.1, 1.9], 2.0).decision
    ('yes', 'undecided')
    """
    d, margin, level = _row(differences, "differences"), validate.number(margin, "margin"), _level(level, "level")
    p_yes, p_no = _p_above(d, margin), _p_above(-d, -margin)
    decision: Decision = "yes" if p_yes < level else "no" if p_no < level else "undecided"
    return Verdict(decision, p_yes, p_no)


def equivalent(differences: ArrayLike, margin: float, *, level: float = 0.05) -> Verdict:
    """Is the mean difference within -+ margin? "yes" by two one-sided tests (TOST), "no" where it is beyond one end.

    "yes" rejects mean <= -margin and mean >= margin, each at the level, so that its p value is the larger of the two:
    it is "yes" just where the interval of confidence 1 - 2 level lies within the margins. "no" rejects
    |mean| <= margin: the smaller p value of the two ends, twice, since either end may be the one.

    >>> equivalent([0.1, -0.1, 0.05, 0.0], 1.0).decision, equivalent([2.0, 2.1, 1.9], 1.0).decision
    ('yes', 'no')
    """
    d, level = _row(differences, "differences"), _level(level, "level")
    margin = validate.number(margin, "margin", above=0)
    p_yes = max(_p_above(d, -margin), _p_above(-d, -margin))
    p_no = min(1.0, 2 * min(_p_above(d, margin), _p_above(-d, margin)))
    decision: Decision = "yes" if p_yes < level else "no" if p_no < level else "undecided"
    return Verdict(decision, p_yes, p_no)


def together(verdicts: Sequence[Verdict], *, level: float = 0.05) -> Verdict:
    """Is it "yes" for all of them? "yes" needs every single one, "no" one that stands after Bonferroni's correction.

    All have to be "yes" for a wrong "yes" to happen, so that no correction is needed there (an intersection-union
    test); one wrong "no" is enough, so that the least of k p values counts k times.

    >>> together([Verdict("yes", 0.01, 0.99), Verdict("undecided", 0.2, 0.8)]).decision
    'undecided'
    """
    if not verdicts:
        raise ValueError("verdicts: expected at least one, got none")
    level = _level(level, "level")
    p_yes = max(v.p_yes for v in verdicts)
    p_no = min(1.0, len(verdicts) * min(v.p_no for v in verdicts))
    decision: Decision = "yes" if p_yes < level else "no" if p_no < level else "undecided"
    return Verdict(decision, p_yes, p_no)


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
    passed = np.cumprod(p[order] < _level(level, "level") / np.arange(p.size, 0, -1)) > 0
    found = np.zeros(p.size, bool)
    found[order] = passed
    return found


def filled(
    scores: ArrayLike, failed: Bool[np.ndarray, " runs"] | Sequence[bool], blind: float
) -> Float[np.ndarray, " runs"]:
    """The scores with ``blind``, that of guessing, in the place of every run that failed.

    A run that failed has to count, or a module that diverges every second time would look better than it is.

    >>> filled([0.75, float("nan")], [False, True], 0.5).tolist()
    [0.75, 0.5]
    """
    values, lost = validate.known_numbers(scores, "scores", finite=False), validate.known_numbers(failed, "failed")
    if values.shape != lost.shape:
        raise ValueError(f"failed: expected the shape of scores, {values.shape}, got {lost.shape}")
    validate.require(lambda x: (x == 0) | (x == 1), lost, "failed", "truth values")
    result = np.where(lost == 1, validate.number(blind, "blind"), values)
    validate.require(np.isfinite, result, "scores", "finite numbers where a run did not fail")
    return result


def greatest_spread(differences: ArrayLike, *, confidence: float = 0.8) -> float:
    """s sqrt((n - 1) / chi2_{n-1}(1 - confidence)): the upper limit of the standard deviation that a pilot allows.

    >>> greatest_spread([1.0, 1.0, 1.0])
    0.0
    """
    d, confidence = _row(differences, "differences"), _share(confidence, "confidence")
    spread = _standard_error(d) * math.sqrt(d.size)
    return spread * math.sqrt((d.size - 1) / float(stats.chi2.ppf(1 - confidence, d.size - 1)))


def one_sided_power(num_pairs: int, distance: float, spread: float, *, level: float = 0.05) -> float:
    """P("yes" of ``above``) where the mean difference is ``distance`` above the margin, by the noncentral t.

    >>> round(one_sided_power(10, 0.0, 1.0), 3)
    0.05
    """
    n, level = validate.count(num_pairs, "num_pairs", minimum=2), _level(level, "level")
    spread = validate.number(spread, "spread", above=0)
    shift = validate.number(distance, "distance") * math.sqrt(n) / spread
    return float(stats.nct.sf(stats.t.ppf(1 - level, n - 1), n - 1, shift))


def equivalence_power(num_pairs: int, margin: float, spread: float, *, level: float = 0.05) -> float:
    """E_s [2 Phi((sqrt(n) margin - t s) / spread) - 1]_+: P("yes" of ``equivalent``) where the mean difference is 0.

    The expectation is over the sample's standard deviation s.

    >>> equivalence_power(10, 3.0, 1.0) > 0.999
    True
    """
    n, level = validate.count(num_pairs, "num_pairs", minimum=2), _level(level, "level")
    spread = validate.number(spread, "spread", above=0)
    reach = validate.number(margin, "margin", above=0) * math.sqrt(n) / spread
    quantile = float(stats.t.ppf(1 - level, n - 1))

    # With more pairs s is known anyway, and rounding would spoil its density.
    freedom = min(n - 1, 10**6)

    def integrand(u: float) -> float:
        # u is s / spread, whose n - 1 fold square is chi-squared.
        density = 2 * freedom * u * float(stats.chi2.pdf(freedom * u * u, freedom))
        return (2 * float(stats.norm.cdf(reach - quantile * u)) - 1) * density

    # Beyond the first limit no sample is equivalent; beside the others, next to 1 for many pairs, there are none.
    width = 12 / math.sqrt(2 * freedom)
    first, last = max(0.0, 1 - width), min(reach / quantile, 1 + width)
    return min(1.0, float(integrate.quad(integrand, first, last, limit=200)[0])) if first < last else 0.0


def pairs_needed(power_of: Callable[[int], float], *, power: float = 0.9, least: int = 5, most: int = 20) -> int:
    """The least number of pairs, from ``least`` to ``most``, with this power; ``most`` where none has it.

    >>> pairs_needed(lambda n: equivalence_power(n, 1.0, 1.0))
    13
    """
    least = validate.count(least, "least", minimum=2)
    most, power = validate.count(most, "most", minimum=least), _share(power, "power")
    return next((n for n in range(least, most) if power_of(n) >= power), most)
