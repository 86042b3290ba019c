"""Summarises the runs of a record: means over seeds with their errors, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float


class Summary(NamedTuple):
    """A row on a task, over the seeds that did not choose its learning rate. NaN where nothing is defined or left.

    ``scores``: accuracies, or nats per character on the text. Of single blocks those of the runs that did not fail; of
    stacks, whose record says what guessing reaches, of all runs, a guess where a run failed. ``score`` and
    ``standard_error``: their mean, and the standard deviation over seeds divided by the root of their number.
    ``time_ratio`` and ``memory_ratio``: medians, in units of the vanilla model of the same framework and depth. Pairs
    are means before and after training over the runs that did not fail, as in ``training.Outcome``; ``unsolved`` is the
    part of training examples without a steady state. ``failed`` of ``num_runs``.
    """

    row: str
    family: str
    framework: str
    task: str
    depth: int
    width: int
    parameters: int
    learning_rate: float
    scores: Float[np.ndarray, " seeds"]
    score: float
    standard_error: float
    time_ratio: float
    memory_ratio: float
    steps: tuple[float, float]
    contraction: tuple[float, float]
    production: tuple[float, float]
    unsolved: float
    failed: int
    num_runs: int


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else math.nan


def _median(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else math.nan


def _summary(entry: Mapping[str, Any], blind: Mapping[str, float] | None) -> Summary:
    runs, task = entry["runs"], entry["task"]
    if not isinstance(runs, Mapping):
        runs = {name: [run[name] for run in runs] for name in runs[0]}

    def column(name: str) -> np.ndarray:
        return np.array(runs.get(name, [None] * len(runs["failure"])), float)

    endpoint = "loss" if task.startswith("text") else "accuracy"
    measured = column("accuracy" if endpoint == "accuracy" else "test_loss")
    lost = np.array([bool(reason) for reason in runs["failure"]]) | ~np.isfinite(measured)
    scores = measured[~lost] if blind is None else np.where(lost, blind[endpoint], measured)
    times = column("time_ratio")

    def pair(name: str) -> tuple[float, float]:
        before, after = (_mean(column(f"{name}_{when}")[~lost]) for when in ("before", "after"))
        return before, after

    return Summary(
        row=entry.get("row") or entry["module"],
        family=entry["family"],
        framework=entry["framework"],
        task=task,
        depth=entry.get("depth", 1),
        width=entry["width"],
        parameters=entry["parameters"],
        learning_rate=entry.get("learning_rate") or runs["learning_rate"][0],
        scores=scores,
        score=_mean(scores),
        standard_error=float(scores.std(ddof=1) / math.sqrt(scores.size)) if scores.size > 1 else math.nan,
        time_ratio=_median(times[~lost] if blind is None else times),
        memory_ratio=_median(column("memory_ratio")),
        steps=pair("steps"),
        contraction=pair("contraction"),
        production=pair("production"),
        unsolved=_mean(column("unsolved_training")),
        failed=int(lost.sum()),
        num_runs=lost.size,
    )


def summarize(record: Mapping[str, Any]) -> tuple[Summary, ...]:
    """One ``Summary`` for each row of a record of blocks, or for each cell with runs of a record of stacks, in order.

    >>> summarize({"rows": []})
    ()
    """
    entries, blind = record.get("cells", record.get("rows", ())), record.get("blind", {})
    return tuple(_summary(entry, blind.get(entry["task"])) for entry in entries if "runs" in entry)


def find(summaries: Sequence[Summary], row: str, task: str, depth: int = 1) -> Summary:
    """The row on a task at a depth. Raises ``ValueError`` where there is none.

    >>> from experiments import records
    >>> find(summarize(records.of_book("comparison")), "vanilla", "recall").width
    32
    """
    for summary in summaries:
        if (summary.row, summary.task, summary.depth) == (row, task, depth):
            return summary
    raise ValueError(f"row: expected one with runs on {task} at depth {depth}, got {row}")


def wins(a: Summary, b: Summary) -> float:
    """The share of pairs of runs, one of each, in which that of a has the larger score; equal ones count by half.

    Of rows that are the same one half is expected; NaN where a row has no run that counts. Of five runs against five
    all pairs go to the first by chance once in 252 times (the statistic of Mann and Whitney, over its largest value).

    >>> from experiments import records
    >>> rows = summarize(records.of_book("comparison"))
    >>> wins(rows[0], rows[0])
    0.5
    """
    gaps = a.scores[:, None] - b.scores
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean()) if gaps.size else math.nan


def markdown(header: Sequence[str], body: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """A table whose first ``words`` columns are words, the others numbers.

    >>> print(markdown(["row", "loss"], [["gMLP", "2.1"]]))  # exact
    | row | loss |
    | --- | ---: |
    | gMLP | 2.1 |
    """
    align = [*["---"] * words, *["---:"] * (len(header) - words)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, align, *body))


def table(
    summaries: Sequence[Summary], by: str, columns: Mapping[str, Callable[[Summary], str]], prefix: str = ""
) -> str:
    """Markdown: a line for each row, and each of ``columns`` for every value of the field ``by``, after ``prefix``.

    >>> from experiments import records
    >>> rows = summarize(records.of_book("comparison"))[:2]
    >>> print(table(rows, "task", {"score": lambda s: number(s.score, 3)}))  # exact
    | row | score, digits | score, recall |
    | --- | ---: | ---: |
    | vanilla | 0.918 | 1.000 |
    """
    values = sorted({getattr(s, by) for s in summaries})
    rows: dict[str, dict[Any, Summary]] = {}
    for s in summaries:
        rows.setdefault(s.row, {})[getattr(s, by)] = s
    header = ["row", *(f"{name}, {prefix}{value}" for name in columns for value in values)]
    body = [
        [row, *(show(cells[v]) if v in cells else "" for show in columns.values() for v in values)]
        for row, cells in rows.items()
    ]
    return markdown(header, body)


def number(value: float, digits: int) -> str:
    """So many digits behind the point, or a dash for NaN.

    >>> number(1.25, 1), number(math.nan, 1)
    ('1.2', '–')
    """
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def change(pair: tuple[float, float], digits: int) -> str:
    """A number before and after training, or a dash where none is known.

    >>> change((0.4, 0.52), 1), change((math.nan, math.nan), 1)
    ('0.4 → 0.5', '–')
    """
    return "–" if all(map(math.isnan, pair)) else " → ".join(number(value, digits) for value in pair)
