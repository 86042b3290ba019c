"""Contrasts of paired runs: what each comes to, and what all contrasts of a question decide together.

A score stands under (row, place, seed), where the place is a depth or the number of updates with which a row is used. A
run that failed counts with the score of a guess, and no decision rests on it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.comparison import judging
from experiments.comparison.judging import Decision, Paired, Verdict

__all__ = ["Finding", "by_seed", "found", "joint"]


class Finding(NamedTuple):
    """A contrast as it came out, with the interval of its ``difference``, whatever the level of the verdict.

    ``without_failures``: the verdict without the seeds in which a run of the contrast ``failed``, None where none did
    or fewer than two are left. ``decision`` is that of the verdict where both agree, else "undecided".
    """

    contrast: Any
    difference: Paired
    verdict: Verdict
    without_failures: Verdict | None
    failed: tuple[int, ...]
    decision: Decision


def by_seed(terms: Sequence[tuple[int, str, Any]], scores: Mapping[tuple[str, Any, int], float]) -> dict[int, float]:
    """sum_k sign_k score(row_k, place_k) of every seed that has all of them.

    >>> by_seed([(1, "gMLP", 4), (-1, "vanilla", 4)], {("gMLP", 4, 1): 2.5, ("vanilla", 4, 1): 2.0})
    {1: 0.5}
    """
    seeds = set.intersection(*({s for *place, s in scores if place == [*term[1:]]} for term in terms))
    return {s: sum(sign * scores[row, place, s] for sign, row, place in terms) for s in sorted(seeds)}


def found(
    contrast: Any,
    differences: Mapping[int, float],
    failed: Collection[tuple[str, Any, int]],
    test: Callable[[np.ndarray], Verdict],
    *,
    confidence: float = 0.95,
) -> Finding:
    """What the ``test`` says of the differences by seed of a contrast, whose ``terms`` name its runs."""
    lost = tuple(s for s in differences if any((row, place, s) in failed for _, row, place in contrast.terms))
    d = np.array(list(differences.values()))
    kept = np.array([value for seed, value in differences.items() if seed not in lost])
    verdict = test(d)
    without = test(kept) if lost and len(kept) > 1 else None
    agreed = not lost or (without is not None and without.decision == verdict.decision)
    interval = judging.paired(d, np.zeros(len(d)), confidence=confidence)
    return Finding(contrast, interval, verdict, without, lost, verdict.decision if agreed else "undecided")


def joint(findings: Sequence[Finding], *, level: float) -> tuple[Verdict, Decision]:
    """The verdict of all, and its decision unless that rests on a finding that failed runs leave undecided."""
    verdict = judging.together([finding.verdict for finding in findings], level=level)
    decisions = [finding.decision for finding in findings]
    stands = {"yes": all(d == "yes" for d in decisions), "no": "no" in decisions, "undecided": True}
    return verdict, verdict.decision if stands[verdict.decision] else "undecided"
