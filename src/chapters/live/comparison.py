"""The table of the comparison, row against row: markup of the live model, and the picture in its place."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from chapters import scripts
from spinbook import records

TASKS = {"MNIST": (0.1, 0.94), "digits": (0.1, 0.0), "recall": (0.125, 0.0)}
"""The accuracy of guessing on each task, and that at which its bars begin."""


def _rows(runs: pd.DataFrame) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for (task, updates, module), its in runs.groupby(["task", "updates", "module"], sort=False):
        fine = its.dropna(subset="accuracy")
        row = {"task": task, "updates": updates, "module": module, "accuracies": fine.accuracy.tolist()}
        rows.append(row | {"time": None if fine.time.isna().all() else round(fine.time.median(), 2)})
    return rows


def markup(*, task: str = "MNIST", module: str = "vanilla") -> str:
    """All runs, the task to begin with and the module that is given up first, for ``_static/live/comparison.js``."""
    runs = records.table("comparison").query("kind != 'linear'")
    quantiles = {n: float(stats.t.ppf(0.975, n)) for n in range(1, 9)}
    guesses, begins = ({name: pair[k] for name, pair in TASKS.items()} for k in (0, 1))
    content = {"rows": _rows(runs), "chances": guesses, "from": begins, "quantiles": quantiles}
    return scripts.markup("comparison", content | {"task": task, "start": module})


def still(*, task: str = "MNIST", module: str = "vanilla") -> Figure:
    """Means and single runs of the rows of ``task`` in its shortest training; a line at the mean of ``module``."""
    runs = records.table("comparison").query("task == @task and kind != 'linear'")
    runs = runs[runs.updates == runs.updates.min()]
    names = list(dict.fromkeys(runs.module))[::-1]
    with plt.style.context("spinbook.book"):
        figure, ax = plt.subplots(figsize=(6, 0.8 + 0.24 * len(names)))
        for y, name in enumerate(names):
            accuracies = runs.accuracy[runs.module == name]
            ax.plot(accuracies, [y] * len(accuracies), ".", color="0.6")
            ax.plot(accuracies.mean(), y, "o", color="C0")
        ax.axvline(runs.accuracy[runs.module == module].mean(), color="0.7", lw=1, zorder=0)
        ax.set_yticks(range(len(names)), names)
        ax.set(xlabel=f"accuracy on {task}", xlim=(TASKS[task][1], 1.005))
    return figure
