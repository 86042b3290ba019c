"""What is asked of the depth experiment before it is run, and how a record answers.

The page ``book/plan-of-depth`` says the same in words. All else in a record is exploratory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.comparison import judging
from experiments.comparison.judging import Decision, Paired, Verdict
from experiments.depth.rows import ROWS

__all__ = ["GATE", "GATE_MARGIN", "LEVEL", "MARGIN", "Contrast", "Finding", "Gate", "answers", "gate", "judged"]

GATE = ("vanilla", "identity mixer")
"""The rows that are run first."""
GATE_MARGIN = 0.1
"""Nats per character by which softmax attention has to be ahead of counting and of a stack that does not mix."""
MARGIN = 0.03
"""Nats per character: a smaller difference between rows may be there and does not matter."""
LEVEL = 0.05
"""Of the gate, and of all questions of all rows together."""
# A run failed if more of its updates were left out, or more of its held-out layers without a steady state.
_MOST_SKIPPED, _MOST_UNSETTLED = 0.1, 0.01


class Gate(NamedTuple):
    """Whether attention pays: by how much counting, and the stack that does not mix, are worse than vanilla."""

    opened: Decision
    counting: Paired
    identity: Paired


class Finding(NamedTuple):
    """A question about a row. ``difference`` has the interval of 95 % for itself, ``decision`` that of all together.

    ``p`` is the smaller p value of the two directions, twice; ``failed`` the seeds in which a run of it failed.
    """

    row: str
    question: str
    difference: Paired
    p: float
    decision: Decision
    failed: tuple[int, ...]


def _runs(record: Mapping[str, Any]) -> dict[tuple[str, int], Mapping[str, Any]]:
    return {(run["row"], run["seed"]): run for run in record["runs"] if run["stage"] == "run"}


def _failed(run: Mapping[str, Any]) -> bool:
    lost = run["test"] is None or run["skipped"] > _MOST_SKIPPED
    return bool(lost or run["unsettled"] > _MOST_UNSETTLED)


def _losses(record: Mapping[str, Any], row: str) -> np.ndarray:
    """In the test, of all seeds; that of guessing where a run gave none. A run that is missing is a ``KeyError``."""
    runs = _runs(record)
    values = [runs[row, seed]["test"] for seed in record["design"]["seeds"]]
    return np.array([record["blind"] if value is None else value for value in values], float)


def _counting(record: Mapping[str, Any]) -> float:
    """In the test, of the order that is best in validation."""
    return float(min(record["counting"], key=lambda found: found["validation"])["test"])


def _together(differences: Sequence[np.ndarray], margin: float, level: float) -> Decision:
    return judging.together([judging.above(d, margin, level=level) for d in differences], level=level).decision


def gate(record: Mapping[str, Any]) -> Gate:
    """Is vanilla ahead of both by more than the margin? Raises ``ValueError`` while a run of the two rows is missing.

    A vanilla run that failed has the loss of guessing, and the gate stays shut.
    """
    try:
        vanilla, identity = (_losses(record, row) for row in GATE)
    except KeyError as error:
        raise ValueError(f"record: expected all runs of {' and '.join(GATE)}, got none of {error}") from None
    differences = [_counting(record) - vanilla, identity - vanilla]
    zero = np.zeros(len(vanilla))
    pairs = [judging.paired(d, zero) for d in differences]
    return Gate(_together(differences, GATE_MARGIN, LEVEL), *pairs)


class Contrast(NamedTuple):
    """Is ``sign`` times the loss of ``row`` minus that of ``other`` above ``margin``?"""

    row: str
    question: str
    sign: int
    other: str
    margin: float


_ASKED = tuple(
    contrast
    for row in ROWS
    if row not in GATE
    for contrast in (Contrast(row, "behind", 1, "vanilla", MARGIN), Contrast(row, "mixes", -1, GATE[1], GATE_MARGIN))
)


def answers(record: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Of each other row: is it *behind* vanilla by more than ``MARGIN``, and *mixes* it, as the gate asks of vanilla?

    Of the rows of the record's design. Nothing is asked while the gate is not open, or while a run is missing; see
    ``judged``.
    """
    runs, names = _runs(record), record["design"].get("rows", ROWS)
    if any((row, seed) not in runs for row in names for seed in record["design"]["seeds"]):
        return ()
    return judged(record, [its for its in _ASKED if its.row in names]) if gate(record).opened == "yes" else ()


def judged(record: Mapping[str, Any], contrasts: Sequence[Contrast]) -> tuple[Finding, ...]:
    """The level holds for all ``contrasts`` together, by Holm's method.

    With failed runs a decision has to be the same without their seeds, else it is undecided. A run that is missing is a
    ``KeyError``.
    """
    seeds, runs = record["design"]["seeds"], _runs(record)
    asked: list[tuple[np.ndarray, np.ndarray]] = []
    for row, _, sign, other, _ in contrasts:
        d = sign * (_losses(record, row) - _losses(record, other))
        asked.append((d, np.array([_failed(runs[row, seed]) or _failed(runs[other, seed]) for seed in seeds])))
    verdicts = [judging.above(d, its.margin) for its, (d, _) in zip(contrasts, asked, strict=True)]
    p = [min(1.0, 2 * min(verdict.p_yes, verdict.p_no)) for verdict in verdicts]
    rejected = judging.holm(p, level=LEVEL)
    found = []
    for its, (d, lost), verdict, value, stands in zip(contrasts, asked, verdicts, p, rejected, strict=True):
        decision: Decision = _side(verdict) if stands else "undecided"
        if lost.any() and ((~lost).sum() < 2 or _side(judging.above(d[~lost], its.margin)) != decision):
            decision = "undecided"
        pair = judging.paired(d, np.zeros(len(d)))
        failed = tuple(seed for seed, gone in zip(seeds, lost, strict=True) if gone)
        found.append(Finding(its.row, its.question, pair, value, decision, failed))
    return tuple(found)


def _side(verdict: Verdict) -> Decision:
    return "yes" if verdict.p_yes < verdict.p_no else "no"
