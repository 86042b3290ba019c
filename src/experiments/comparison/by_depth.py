"""What a record of stacks comes to, complete or not: scores, costs and physics by depth, as tables.

The answers to the primary questions are those of ``questions``; here they are only set out. A run that failed counts
with the score of a guess, as it does there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from experiments.comparison import judging, questions
from experiments.comparison.questions import Answer
from experiments.comparison.summary import changes, markdown, median, number

__all__ = [
    "Stack",
    "answer_table",
    "cost_table",
    "coverage_table",
    "find",
    "physics_table",
    "score_table",
    "summarize",
    "whole_cells",
]


class Stack(NamedTuple):
    """A row on a task at a depth, over the runs that count. NaN where nothing is defined or known.

    ``scores``: of all runs, accuracies, or nats per character on the text; a guess where a run failed. ``score`` and
    ``half_width``: their mean, and half of its interval of 95 % by Student's t. ``time_ratio`` and ``memory_ratio``: of
    an update, in units of the vanilla stack of this depth in the same framework, medians of the runs that were timed.
    Pairs are means before and after training over the runs that did not fail, as in ``training.Outcome``; ``by_layer``
    has the same for each layer. ``failed`` of ``num_runs``, with their ``reasons``.
    """

    row: str
    family: str
    task: str
    depth: int
    width: int
    parameters: int
    learning_rate: float
    scores: Float[np.ndarray, " runs"]
    score: float
    half_width: float
    time_ratio: float
    memory_ratio: float
    steps: tuple[float, float]
    contraction: tuple[float, float]
    production: tuple[float, float]
    by_layer: dict[str, Float[np.ndarray, "2 layers"]]
    failed: int
    num_runs: int
    reasons: tuple[str, ...]


def _array(values: Any) -> np.ndarray:
    return np.array(values, float)


def _over_runs(values: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """The mean over those of the runs that are fine and have a number."""
    there = np.where(np.isfinite(values) & fine.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)
    known = np.isfinite(there).sum(axis=0)
    total = np.nansum(there, axis=0)
    return np.divide(total, known, out=np.full(np.shape(total), np.nan), where=known > 0)


def _stack(cell: Mapping[str, Any], blind: Mapping[str, float]) -> Stack:
    runs, endpoint = cell["runs"], questions.endpoint(cell["task"])
    measured = _array(runs["accuracy" if endpoint == "accuracy" else "test_loss"])
    lost = np.array([bool(reason) for reason in runs["failure"]]) | ~np.isfinite(measured)
    scores = judging.filled(measured, lost, blind[endpoint])
    n = scores.size
    error = float(scores.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    def pair(name: str) -> tuple[float, float]:
        before, after = (float(_over_runs(_array(runs[f"{name}_{when}"]), ~lost)) for when in ("before", "after"))
        return before, after

    return Stack(
        row=cell["row"],
        family=cell["family"],
        task=cell["task"],
        depth=cell["depth"],
        width=cell["width"],
        parameters=cell["parameters"],
        learning_rate=runs["learning_rate"][0],
        scores=scores,
        score=float(scores.mean()),
        half_width=float(stats.t.ppf(0.975, n - 1)) * error if n > 1 else math.nan,
        time_ratio=median(_array(runs["time_ratio"])),
        memory_ratio=median(_array(runs["memory_ratio"])),
        steps=pair("steps"),
        contraction=pair("contraction"),
        production=pair("production"),
        by_layer={name: _over_runs(_array(values), ~lost) for name, values in runs["layers"].items()},
        failed=int(lost.sum()),
        num_runs=n,
        reasons=tuple(reason for reason in runs["failure"] if reason),
    )


def _runs_planned(cell: Mapping[str, Any], record: Mapping[str, Any]) -> int:
    """As many as the pilot asked for in a primary cell, if there was one, else the least number of the design."""
    design = record["design"]
    primary = questions.primary_cells(design["tasks"], design["depths"])
    least = int(design["least"])
    if (cell["row"], cell["task"], cell["depth"]) in primary:
        return int(record["runs_of_primary_cells"].get(cell["task"], least))
    return least


def _num_runs(cell: Mapping[str, Any]) -> int:
    return len(cell["runs"]["seed"]) if "runs" in cell else 0


def whole_cells(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with those cells only of which all runs that count are made.

    >>> whole_cells({"cells": [], "design": {}})["cells"]
    []
    """
    whole = [c for c in record["cells"] if "runs" in c and _num_runs(c) >= _runs_planned(c, record)]
    return {**record, "cells": whole}


def _missing(record: Mapping[str, Any], task: str) -> str:
    """The rows of which a depth is not in the record, or not with all runs, in words."""
    design = record["design"]
    there = {(c["row"], c["depth"]) for c in whole_cells(record)["cells"] if c["task"] == task}
    lacking = {row: [d for d in design["depths"] if (row, d) not in there] for row in design["rows"]}
    if all(len(depths) == len(design["depths"]) for depths in lacking.values()):
        return "all"
    words = [
        row if len(depths) == len(design["depths"]) else f"{row} at depth {' and '.join(map(str, depths))}"
        for row, depths in lacking.items()
        if depths
    ]
    return "; ".join(words) or "none"


def coverage_table(record: Mapping[str, Any]) -> str:
    """Markdown, a line for each task: how much of the plan was run, how much failed, and which rows were not run.

    >>> coverage_table({"design": {"tasks": []}, "cells": []}).splitlines()[0]
    '| task | cells with all runs | runs that count | failed | not run, or in part |'
    """
    design, body = record["design"], []
    for task in design["tasks"]:
        mine = [cell for cell in record["cells"] if cell["task"] == task]
        whole = whole_cells({**record, "cells": mine})["cells"]
        failed = sum(bool(reason) for cell in mine if "runs" in cell for reason in cell["runs"]["failure"])
        cells = f"{len(whole)} of {len(design['rows']) * len(design['depths'])}"
        body.append([task, cells, str(sum(map(_num_runs, mine))), str(failed), _missing(record, task)])
    header = ["task", "cells with all runs", "runs that count", "failed", "not run, or in part"]
    align = ["---", "---:", "---:", "---:", "---"]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, align, *body))


def summarize(record: Mapping[str, Any]) -> tuple[Stack, ...]:
    """One ``Stack`` for each cell of a record that has runs, in the order of the record.

    >>> summarize({"cells": [], "blind": {}})
    ()
    """
    return tuple(_stack(cell, record["blind"][cell["task"]]) for cell in record["cells"] if "runs" in cell)


def find(stacks: Sequence[Stack], row: str, task: str, depth: int) -> Stack:
    """The stack of this row on a task at a depth. Raises ``ValueError`` where there is none.

    >>> find((), "vanilla", "mnist", 4)
    Traceback (most recent call last):
        ...
    ValueError: row: expected one with runs on mnist at depth 4, got vanilla
    """
    for stack in stacks:
        if (stack.row, stack.task, stack.depth) == (row, task, depth):
            return stack
    raise ValueError(f"row: expected one with runs on {task} at depth {depth}, got {row}")


def _difference(task: str, value: float) -> str:
    """With its sign: percentage points of an accuracy, nats of a loss."""
    return f"{100 * value:+.2f}" if questions.endpoint(task) == "accuracy" else f"{value:+.3f}"


def answer_table(answers: Sequence[Answer]) -> str:
    """Markdown: each contrast with its interval of 90 %, and what it and its question are decided to be.

    Differences are disadvantages of the row, in percentage points of accuracy or in nats.

    >>> print(answer_table([]).splitlines()[0])
    | question | task | row | difference, 90 % interval | margin | pairs | failed | verdict | answer |
    """
    header = ["question", "task", "row", "difference, 90 % interval", "margin", "pairs", "failed", "verdict", "answer"]
    body = []
    for found in answers:
        margin = _difference(found.task, questions.MARGINS[questions.endpoint(found.task)]).removeprefix("+")
        for k, finding in enumerate(found.findings):
            d = finding.difference
            mean, low, high = (_difference(found.task, value) for value in (d.mean, d.low, d.high))
            about = [found.question.name, found.task] if k == 0 else ["", ""]
            answered = f"**{found.decision}**" if k == 0 else ""
            body.append(
                [
                    *about,
                    finding.contrast.row,
                    f"{mean} ({low} to {high})",
                    margin,
                    str(d.num_pairs),
                    str(len(finding.failed)),
                    finding.decision,
                    answered,
                ]
            )
    return markdown(header, body, words=3)


def _depths(stacks: Sequence[Stack], task: str) -> list[int]:
    return sorted({stack.depth for stack in stacks if stack.task == task})


def _by_row(stacks: Sequence[Stack], task: str) -> dict[str, dict[int, Stack]]:
    rows: dict[str, dict[int, Stack]] = {}
    for stack in stacks:
        if stack.task == task:
            rows.setdefault(stack.row, {})[stack.depth] = stack
    return rows


def score_table(stacks: Sequence[Stack], task: str) -> str:
    """Markdown: the score of each row at each depth with half its interval, and how many runs failed where some did.

    >>> score_table((), "mnist").splitlines()[0]
    '| row |'
    """
    depths = _depths(stacks, task)

    def cell(stack: Stack | None) -> str:
        if stack is None:
            return ""
        width = "" if math.isnan(stack.half_width) else f" ± {stack.half_width:.3f}"
        failed = f", {stack.failed} of {stack.num_runs} failed" if stack.failed else ""
        return f"{stack.score:.3f}{width}{failed}"

    body = [[row, *(cell(found.get(depth)) for depth in depths)] for row, found in _by_row(stacks, task).items()]
    return markdown(["row", *(f"depth {depth}" for depth in depths)], body)


def cost_table(stacks: Sequence[Stack], task: str) -> str:
    """Markdown: time and temporary memory of an update at each depth, in units of the vanilla stack of that depth.

    >>> cost_table((), "mnist").splitlines()[0]
    '| row |'
    """
    depths = _depths(stacks, task)
    header = ["row", *(f"{what}, depth {depth}" for what in ("time", "memory") for depth in depths)]
    body = []
    for row, found in _by_row(stacks, task).items():
        values = [
            getattr(found[depth], field) if depth in found else math.nan
            for field in ("time_ratio", "memory_ratio")
            for depth in depths
        ]
        body.append([row, *(number(value, 1) for value in values)])
    return markdown(header, body)


def physics_table(stacks: Sequence[Stack], task: str) -> str:
    """Markdown: solver updates, contraction factor, entropy production, before → after; rows without any left out.

    >>> physics_table((), "mnist").splitlines()[0]
    '| row | depth | solver updates | contraction factor | entropy production |'
    """
    body = [
        [stack.row, str(depth), *told]
        for found in _by_row(stacks, task).values()
        for depth, stack in sorted(found.items())
        if (told := changes(stack)) is not None
    ]
    return markdown(["row", "depth", "solver updates", "contraction factor", "entropy production"], body)
