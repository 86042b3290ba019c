"""What was asked of the transient before anything was run, and how a record answers.

The page ``book/plan-of-the-transient`` says the same in words. All else in a record is exploratory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from experiments.comparison import judging
from experiments.comparison.judging import Answer, Contrast, Finding, Question, by_seed, found, joint
from spinbook import validate

__all__ = [
    "DECIDING",
    "LEVEL",
    "MARGIN",
    "QUESTIONS",
    "SEEDS",
    "Answer",
    "Contrast",
    "Question",
    "Term",
    "answer",
    "answers",
    "undecided",
]

MARGIN = 0.01
"""Nats per character: a smaller difference may be there and does not matter."""
LEVEL = 0.05
"""Of each question over both looks, half of it at each."""
SEEDS = (5, 8)
"""Seeds at the first look, and at the second if the first decides nothing."""

# A run failed if more of its updates were left out, or more of the steady states that a contrast asks for not found.
_MOST_SKIPPED, _MOST_UNSETTLED = 0.1, 0.01


class Term(NamedTuple):
    """A signed loss: that of a row, as ``Row.name`` has it, with the number of updates with which it is used."""

    sign: int
    row: str
    use: str


_TRANSIENT = Term(-1, "1", "1")
QUESTIONS: tuple[Question, ...] = (
    Question(
        "relaxing hurts",
        "Does a model that was trained with one update lose if it relaxes to its steady state?",
        (Contrast("steady state instead of one update", (Term(1, "1", "inf"), _TRANSIENT)),),
    ),
    Question(
        "transients are better",
        "Is a model that was trained and is used with one update better than all that are not bound to it?",
        (
            Contrast("trained and used in the steady state", (Term(1, "inf", "inf"), _TRANSIENT)),
            Contrast(
                "the same, with the values in the field",
                (Term(1, "inf, values in the field", "inf"), _TRANSIENT),
            ),
            Contrast("trained with a random number of updates, used with one", (Term(1, "random", "1"), _TRANSIENT)),
        ),
    ),
    Question(
        "more than any change",
        "Does one update more than in training cost more than one update less?",
        (
            Contrast(
                "1 used with 2, against 2 used with 1",
                (Term(1, "1", "2"), _TRANSIENT, Term(-1, "2", "1"), Term(1, "2", "2")),
            ),
        ),
    ),
)
DECIDING = ("relaxing hurts", "transients are better")
"""The questions that call for more seeds if they are undecided."""


def _losses(record: Mapping[str, Any], beta: float) -> tuple[dict[tuple[str, str, int], float], set[Any]]:
    """By row, use and seed; the loss of guessing where there is none. And which of them failed."""
    losses, failed = {}, set()
    for run in record["runs"]:
        if run["beta"] != beta:
            continue
        spoilt = run["skipped"] > _MOST_SKIPPED
        for use, loss, unsettled in zip(run["uses"], run["held_out"], run["held_out_unsettled"], strict=True):
            key = (run["row"], use, run["seed"])
            losses[key] = float(record["blind"] if loss is None else loss)
            if spoilt or loss is None or unsettled > _MOST_UNSETTLED:
                failed.add(key)
    return losses, failed


def _at(
    question: Question, losses: Mapping[Any, float], failed: set[Any], seeds: Sequence[int]
) -> tuple[judging.Decision, tuple[Finding, ...]]:
    test = partial(judging.above, margin=MARGIN, level=LEVEL / len(SEEDS))
    findings = []
    for contrast in question.contrasts:
        differences = by_seed(contrast.terms, losses)
        findings.append(found(contrast, {seed: differences[seed] for seed in seeds}, failed, test))
    return joint(findings, level=LEVEL / len(SEEDS))[1], tuple(findings)


def answer(question: Question, record: Mapping[str, Any], *, beta: float = 1.0) -> Answer:
    """What the runs of a record say to a question: at the first look, or at the second if the first decides nothing.

    With fewer seeds than the first look has, all that are there are judged, and the answer is not final; nor is it
    where the first look decided nothing and the second is still to come. Raises ``ValueError`` where fewer than two
    seeds have all runs of the question.
    """
    losses, failed = _losses(record, validate.number(beta, "beta", above=0))
    needed = {(term.row, term.use) for contrast in question.contrasts for term in contrast.terms}
    seeds = sorted(set.intersection(*({s for row, use, s in losses if (row, use) == pair} for pair in needed)))
    if len(seeds) < 2:
        raise ValueError(f"record: expected at least two seeds of {question.name} at beta = {beta:g}, got {len(seeds)}")
    first, second = SEEDS
    chosen = seeds[: min(first, len(seeds))]
    decision, findings = _at(question, losses, failed, chosen)
    if len(chosen) < first:
        return Answer(question, decision, False, tuple(chosen), findings)
    if decision == "undecided" and len(seeds) >= second:
        chosen = seeds[:second]
        decision, findings = _at(question, losses, failed, chosen)
    final = decision != "undecided" or len(chosen) == second
    return Answer(question, decision, final, tuple(chosen), findings)


def answers(record: Mapping[str, Any], *, beta: float = 1.0) -> tuple[Answer, ...]:
    """To every question."""
    return tuple(answer(question, record, beta=beta) for question in QUESTIONS)


def undecided(record: Mapping[str, Any]) -> bool:
    """Whether a deciding question is undecided at the first look, so that the plan calls for more seeds."""
    asked = [question for question in QUESTIONS if question.name in DECIDING]
    return any(answer(question, record).decision == "undecided" for question in asked)
