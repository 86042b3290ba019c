"""The three questions that were written down before anything was run, and how a record answers them.

The page ``book/plan-of-the-comparison`` says the same in words. All else in a record is exploratory.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from experiments.comparison import judging
from experiments.comparison.contrasts import Finding, by_seed, found, joint
from experiments.comparison.judging import Verdict
from spinbook import validate

__all__ = [
    "LEVEL",
    "MARGINS",
    "POWER",
    "QUESTIONS",
    "Answer",
    "Contrast",
    "Question",
    "answer",
    "answers",
    "contrasts",
    "endpoint",
    "in_order",
    "is_complete",
    "primary_cells",
    "runs_needed",
]

LEVEL, POWER = 0.05, 0.9
# The endpoint of each task, and the least difference in it that matters: one percentage point, 0.02 nats.
_ENDPOINTS: dict[str, Literal["accuracy", "loss"]] = {"mnist": "accuracy", "text": "loss", "recall apart": "accuracy"}
MARGINS = {"accuracy": 0.01, "loss": 0.02}
PRIMARY_TASKS = ("mnist", "text")
SHALLOW, DEEP = 1, 4


class Question(NamedTuple):
    """``rows`` are held against the vanilla stack, each by one contrast; the answer is yes if it is yes for all.

    ``kind``: *loss*, is the row worse by more than the margin at the greater depth? *equivalence*, is it within the
    margins there? *growth*, does its distance from vanilla grow by less than the margin between the two depths?
    """

    name: str
    asks: str
    rows: tuple[str, ...]
    kind: Literal["loss", "equivalence", "growth"]


QUESTIONS: tuple[Question, ...] = (
    Question(
        "essential",
        "Are residual connections, normalisation and feed-forward layers all essential in a stack?",
        ("no residual", "no normalisation", "no feed-forward"),
        "loss",
    ),
    Question(
        "any mixer",
        "Will any mixer do in the place of attention?",
        ("local pooling", "MLP-mixer", "gMLP", "FNet"),
        "equivalence",
    ),
    Question(
        "depth",
        "Do modules of spins keep up with the vanilla block when stacks get deeper?",
        ("naive spins, one step, 4 heads", "TAP spins, one step, 4 heads"),
        "growth",
    ),
)


class Contrast(NamedTuple):
    """sum_k sign_k score(row_k, depth_k) from one seed, where more is worse for the row in question."""

    question: str
    row: str
    task: str
    terms: tuple[tuple[int, str, int], ...]


class Answer(NamedTuple):
    """To a question on a task: the verdict of all findings together, and the findings."""

    question: Question
    task: str
    verdict: Verdict
    decision: judging.Decision
    findings: tuple[Finding, ...]


def endpoint(task: str) -> Literal["accuracy", "loss"]:
    """What counts on this task: the loss in nats per character where a text is filled in, else the accuracy.

    Raises ``ValueError`` for a name of no task.

    >>> endpoint("text"), endpoint("mnist"), endpoint("recall apart")
    ('loss', 'accuracy', 'accuracy')
    """
    name = validate.instance(task, str, "task").partition(",")[0]
    return _ENDPOINTS[validate.choice(name, _ENDPOINTS, "task")]


def contrasts(question: Question, task: str) -> tuple[Contrast, ...]:
    """One for each row of the question, with signs that make a positive number a disadvantage of the row.

    >>> contrasts(QUESTIONS[0], "mnist")[0].terms
    ((1, 'vanilla', 4), (-1, 'no residual', 4))
    """
    # An accuracy is good and a loss is bad.
    good = 1 if endpoint(task) == "accuracy" else -1
    made = []
    for row in question.rows:
        deep = ((good, "vanilla", DEEP), (-good, row, DEEP))
        shallow = ((-good, "vanilla", SHALLOW), (good, row, SHALLOW))
        made.append(Contrast(question.name, row, task, deep + shallow if question.kind == "growth" else deep))
    return tuple(made)


def primary_cells(tasks: Collection[str], depths: Collection[int]) -> set[tuple[str, str, int]]:
    """(row, task, depth) of all cells that a primary question needs, as far as the tasks and depths are there.

    >>> len(primary_cells(["mnist", "text"], [1, 2, 4]))
    26
    """
    return {
        (row, task, depth)
        for task in tasks
        if task in PRIMARY_TASKS
        for question in QUESTIONS
        for contrast in contrasts(question, task)
        for _, row, depth in contrast.terms
        if depth in depths
    }


def in_order(task: str) -> list[tuple[str, str, int]]:
    """(row, task, depth) of the cells that the primary questions need on a task, in the order of the questions.

    With the first of them there the first question can be answered, and so on.

    >>> in_order("mnist")[:3]
    [('vanilla', 'mnist', 4), ('no residual', 'mnist', 4), ('no normalisation', 'mnist', 4)]
    """
    terms = [term for question in QUESTIONS for contrast in contrasts(question, task) for term in contrast.terms]
    return [(row, task, depth) for row, depth in dict.fromkeys((row, depth) for _, row, depth in terms)]


def _judged(kind: str, margin: float, differences: np.ndarray) -> Verdict:
    if kind == "loss":
        return judging.above(differences, margin, level=LEVEL)
    if kind == "equivalence":
        return judging.equivalent(differences, margin, level=LEVEL)
    # That the distance grows by less than the margin is that its opposite is above minus the margin.
    return judging.above(-differences, -margin, level=LEVEL)


def runs_needed(scores: Mapping[tuple[str, int, int], float], task: str, *, least: int, most: int) -> int:
    """The number of seeds for a task: what the hardest of its contrasts needs for a power of nine in ten.

    ``scores``: those of the pilot by (row, depth, seed). The spread of each contrast is taken at the upper end of its
    one-sided interval of 80 %. A loss is supposed to be twice the margin, and two modules to be the same where the
    question is whether they are. ``least`` where there was no pilot for the task.
    """
    least = validate.count(least, "least", minimum=2)
    most = validate.count(most, "most", minimum=least)
    margin, numbers = MARGINS[endpoint(task)], [least]
    for question in QUESTIONS:
        for contrast in contrasts(question, task):
            values = list(by_seed(contrast.terms, scores).values()) if scores else []
            if len(values) < 2 or (spread := judging.greatest_spread(values)) == 0:
                continue

            def power(n: int, spread: float = spread, kind: str = question.kind) -> float:
                if kind == "equivalence":
                    return judging.equivalence_power(n, margin, spread, level=LEVEL)
                return judging.one_sided_power(n, margin, spread, level=LEVEL)

            numbers.append(judging.pairs_needed(power, power=POWER, least=least, most=most))
    return max(numbers)


def _scores(
    record: Mapping[str, Any], task: str
) -> tuple[dict[tuple[str, int, int], float], set[tuple[str, int, int]]]:
    """Endpoints of the runs by (row, depth, seed), a guess where a run failed, and which ones did."""
    column = "accuracy" if endpoint(task) == "accuracy" else "test_loss"
    blind = record["blind"][task][endpoint(task)]
    scores, failed = {}, set()
    for cell in record["cells"]:
        if cell["task"] != task or "runs" not in cell:
            continue
        runs = cell["runs"]
        lost = [bool(reason) or value is None for reason, value in zip(runs["failure"], runs[column], strict=True)]
        values = [math.nan if value is None else value for value in runs[column]]
        for seed, value, gone in zip(runs["seed"], judging.filled(values, lost, blind), lost, strict=True):
            key = (cell["row"], cell["depth"], seed)
            scores[key] = float(value)
            failed |= {key} if gone else set()
    return scores, failed


def answer(question: Question, record: Mapping[str, Any], task: str) -> Answer:
    """What the runs of a record say to the question on this task.

    Raises ``ValueError`` where a contrast has fewer than two seeds.
    """
    margin = MARGINS[endpoint(task)]
    scores, failed = _scores(record, task)
    findings = []
    for contrast in contrasts(question, task):
        values = by_seed(contrast.terms, scores)
        if len(values) < 2:
            raise ValueError(
                f"record: expected at least two seeds of {contrast.row} and vanilla on {task}, got {len(values)}"
            )
        test = partial(_judged, question.kind, margin)
        findings.append(found(contrast, values, failed, test, confidence=1 - 2 * LEVEL))
    return Answer(question, task, *joint(findings, level=LEVEL), tuple(findings))


def is_complete(question: Question, record: Mapping[str, Any], task: str) -> bool:
    """Whether the record has all runs of this task that the question needs, as many of each as the pilot asked for.

    Before that nothing is judged: who looks at some of the runs could stop when he likes what he sees.
    """
    number = record["runs_of_primary_cells"].get(task)
    there = {
        (cell["row"], cell["depth"]): cell["runs"]["seed"]
        for cell in record["cells"]
        if cell["task"] == task and "runs" in cell
    }
    return number is not None and all(
        set(there.get(term[1:], ())) >= set(range(1, number + 1))
        for contrast in contrasts(question, task)
        for term in contrast.terms
    )


def answers(record: Mapping[str, Any]) -> tuple[Answer, ...]:
    """To every question on every primary task for which the record has all runs, complete or not in other parts."""
    return tuple(
        answer(question, record, task)
        for task in PRIMARY_TASKS
        for question in QUESTIONS
        if is_complete(question, record, task)
    )
