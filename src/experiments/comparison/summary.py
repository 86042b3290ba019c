"""What the rows of a record come to: means over seeds with their errors, and tables.

A run that failed has no accuracy that counts: it is left out of the means and counted as a failure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = [
    "Summary",
    "accuracy_table",
    "changes",
    "cost_table",
    "diagnostics_table",
    "difference",
    "find",
    "markdown",
    "median",
    "number",
    "summarize",
    "wins",
]


class Summary(NamedTuple):
    """A module on a task, over the seeds that did not choose its learning rate. NaN where nothing is defined or left.

    ``accuracies``: of the runs that did not fail. ``accuracy`` and ``standard_error``: their mean, and the standard
    deviation over seeds divided by the root of their number. ``time_ratio`` and ``memory_ratio``: medians, in units of
    the vanilla block of the same framework. Pairs are means before and after training, as in ``training.Outcome``.
    ``failed`` of ``num_runs``, and ``failed_trials``, with every learning rate that failed. ``reasons`` for both.
    """

    module: str
    family: str
    framework: str
    task: str
    width: int
    parameters: int
    learning_rate: float
    accuracies: Float[np.ndarray, " seeds"]
    accuracy: float
    standard_error: float
    time_ratio: float
    memory_ratio: float
    steps: tuple[float, float]
    contraction: tuple[float, float]
    production: tuple[float, float]
    unsolved: float
    failed: int
    num_runs: int
    failed_trials: tuple[float, ...]
    reasons: tuple[str, ...]


def _column(runs: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    values = (run[name] for run in runs)
    return np.array([math.nan if value is None else value for value in values], float)


def _mean(values: np.ndarray) -> float:
    """Of what is there."""
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else math.nan


def median(values: np.ndarray) -> float:
    """Of the finite ones, NaN if there are none.

    >>> median(np.array([1.0, np.nan, 3.0]))
    2.0
    """
    there = values[np.isfinite(values)]
    return float(np.median(there)) if there.size else math.nan


def _summary(row: Mapping[str, Any]) -> Summary:
    runs, trials = row["runs"], row["trials"]
    fine = [run for run in runs if not run["failure"]]
    accuracies = _column(fine, "accuracy")
    error = float(accuracies.std(ddof=1) / math.sqrt(accuracies.size)) if accuracies.size > 1 else math.nan

    def pair(name: str) -> tuple[float, float]:
        return _mean(_column(fine, f"{name}_before")), _mean(_column(fine, f"{name}_after"))

    return Summary(
        module=row["module"],
        family=row["family"],
        framework=row["framework"],
        task=row["task"],
        width=row["width"],
        parameters=row["parameters"],
        learning_rate=row["learning_rate"],
        accuracies=accuracies,
        accuracy=_mean(accuracies),
        standard_error=error,
        time_ratio=median(_column(fine, "time_ratio")),
        memory_ratio=median(_column(runs, "memory_ratio")),
        steps=pair("steps"),
        contraction=pair("contraction"),
        production=pair("production"),
        unsolved=_mean(_column(runs, "unsolved_training")),
        failed=len(runs) - len(fine),
        num_runs=len(runs),
        failed_trials=tuple(trial["learning_rate"] for trial in trials if trial["failure"]),
        reasons=tuple(run["failure"] for run in (*trials, *runs) if run["failure"]),
    )


def summarize(record: Mapping[str, Any]) -> tuple[Summary, ...]:
    """One ``Summary`` for each row of a record, in the order of the rows.

    >>> summarize({"rows": []})
    ()
    """
    return tuple(_summary(row) for row in record["rows"])


def find(summaries: Sequence[Summary], module: str, task: str) -> Summary:
    """The row of a module on a task. Raises ``ValueError`` where there is none.

    >>> from experiments.comparison.experiment import recorded
    >>> find(summarize(recorded()), "vanilla", "recall").width
    32
    """
    for summary in summaries:
        if (summary.module, summary.task) == (module, task):
            return summary
    raise ValueError(f"module: expected one with a row for {task}, got {module}")


def difference(one: Summary, other: Summary) -> tuple[float, float]:
    """accuracy - accuracy of the other, and its standard error, the seeds of both taken as independent.

    >>> from experiments.comparison.experiment import recorded
    >>> rows = summarize(recorded())
    >>> difference(rows[0], rows[0])[0]
    0.0
    """
    return one.accuracy - other.accuracy, math.hypot(one.standard_error, other.standard_error)


def wins(one: Summary, other: Summary) -> float:
    """The share of pairs of runs, one of each, in which the first is more accurate; equal ones count by half.

    Of rows that are the same one half is expected; NaN where a row has no run that counts. Of five runs against five
    all pairs go to the first by chance once in 252 times (the statistic of Mann and Whitney, over its largest value).

    >>> from experiments.comparison.experiment import recorded
    >>> rows = summarize(recorded())
    >>> wins(rows[0], rows[0])
    0.5
    """
    gaps = one.accuracies[:, None] - other.accuracies
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean()) if gaps.size else math.nan


def _modules(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    groups: dict[str, list[Summary]] = {}
    for summary in summaries:
        groups.setdefault(summary.module, []).append(summary)
    return groups


def _score(s: Summary) -> str:
    if not s.accuracies.size:
        return "none"
    spread = "" if math.isnan(s.standard_error) else f" ± {s.standard_error:.3f}"
    return f"{s.accuracy:.3f}{spread}"


def _both(rows: Sequence[Summary], text: Any) -> str:
    parts = [text(row) for row in rows]
    return parts[0] if len(set(parts)) == 1 else " / ".join(parts)


def markdown(header: Sequence[str], body: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """A table whose first ``words`` columns are words, the others numbers.

    >>> print(markdown(["row", "loss"], [["gMLP", "2.1"]]))  # exact
    | row | loss |
    | --- | ---: |
    | gMLP | 2.1 |
    """
    align = [*["---"] * words, *["---:"] * (len(header) - words)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, align, *body))


def accuracy_table(summaries: Sequence[Summary]) -> str:
    """Markdown: width, parameters, learning rate, accuracy on each task and failed runs; two tasks as a / b.

    >>> accuracy_table([]).splitlines()[0]
    '| module | width | parameters | learning rate | failed runs |'
    """
    tasks = list(dict.fromkeys(s.task for s in summaries))
    header = ["module", "width", "parameters", "learning rate", *tasks, "failed runs"]
    body = []
    for name, rows in _modules(summaries).items():
        scores = {row.task: _score(row) for row in rows}
        body.append(
            [
                name,
                _both(rows, lambda s: f"{s.width}"),
                _both(rows, lambda s: f"{s.parameters}"),
                _both(rows, lambda s: f"{s.learning_rate:g}"),
                *(scores.get(task, "") for task in tasks),
                _both(rows, lambda s: f"{s.failed} of {s.num_runs}"),
            ]
        )
    return markdown(header, body)


def number(value: float, digits: int) -> str:
    """So many digits behind the point, or a dash for NaN.

    >>> number(1.25, 1), number(math.nan, 1)
    ('1.2', '–')
    """
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def changes(found: Any) -> list[str] | None:
    """Steps, contraction factor and entropy production, before → after; None if none of them is known."""
    pairs = (found.steps, 1), (found.contraction, 2), (found.production, 2)
    if all(math.isnan(value) for pair, _ in pairs for value in pair):
        return None
    return [
        "–" if all(map(math.isnan, pair)) else " → ".join(number(value, digits) for value in pair)
        for pair, digits in pairs
    ]


def cost_table(summaries: Sequence[Summary]) -> str:
    """Markdown: framework, time and temporary memory of an update in units of the vanilla block's; two tasks as a / b.

    >>> cost_table([]).splitlines()[0]
    '| module | framework | time | memory |'
    """
    body = [
        [
            name,
            {"jax": "JAX", "torch": "PyTorch"}[rows[0].framework],
            _both(rows, lambda s: number(s.time_ratio, 1)),
            _both(rows, lambda s: number(s.memory_ratio, 1)),
        ]
        for name, rows in _modules(summaries).items()
    ]
    return markdown(["module", "framework", "time", "memory"], body)


def diagnostics_table(summaries: Sequence[Summary]) -> str:
    """Markdown: solver updates, contraction factor, entropy production, before → after; modules without any left out.

    >>> diagnostics_table([]).splitlines()[0]
    '| module | task | solver updates | contraction factor | entropy production | without a steady state |'
    """
    body = [
        [s.module, s.task, *told, f"{100 * s.unsolved:.1f} %"] for s in summaries if (told := changes(s)) is not None
    ]
    header = ["module", "task", "solver updates", "contraction factor", "entropy production", "without a steady state"]
    return markdown(header, body)
