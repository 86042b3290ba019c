"""Runs that the plan of the stacks does not have, made to doubt what its record shows.

Each takes away one thing that might have made a number what it is: a learning rate at the end of the grid, features
that drown what a layer adds to them, or that are drowned, or a training that ends early. Their seed is one that the
plan does not use.
"""

from __future__ import annotations

import dataclasses
import os
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments import designs, records
from experiments.comparison import modules, questions, tasks, training
from experiments.comparison.tasks import Examples, Task
from experiments.comparison.training import Recipe
from experiments.datasets import mnist, moby_dick

__all__ = ["ALL", "SEED", "SMOKE", "Doubt", "compare", "find", "recorded", "run_one"]

_ARTIFACT = "doubts.json.gz"
_FILES = {"mnist": mnist.FILES, "text": (moby_dick.FILE,)}
SEED = 9001


@designs.record(task=("mnist", "text"))
class Doubt(NamedTuple):
    """A run of a row at a depth. ``shrunk``: what features, pixels on MNIST, are divided by before anything sees them.

    ``task``: *mnist* or *text*.
    """

    row: str
    depth: int
    learning_rate: float
    num_updates: int = 1000
    shrunk: float = 1.0
    task: str = "mnist"


_NAIVE, _TAP = "naive spins, one step, 4 heads", "TAP spins, one step, 4 heads"
_IMAGES = (
    Doubt("vanilla", 4, 6e-3),
    *(Doubt("no residual", 4, rate) for rate in (2e-4, 6e-4)),
    *(Doubt("no normalisation", 4, rate) for rate in (2e-4, 6e-4)),
    *(Doubt("vanilla", 4, rate, shrunk=7.0) for rate in (2e-3, 6e-3, 2e-2)),
    *(Doubt(row, 1, 6e-2) for row in ("vanilla", _NAIVE, _TAP)),
    # With the rates that the plan chose for them.
    *(Doubt(row, 4, 2e-2, shrunk=7.0) for row in ("identity mixer", "local pooling", "MLP-mixer", "gMLP", "FNet")),
    Doubt(_NAIVE, 4, 6e-3, shrunk=7.0),
    Doubt(_TAP, 4, 2e-3, shrunk=7.0),
)
# A one-hot feature has one component out of 37, so that six times as large it is one of unit mean square.
_TEXT = tuple(
    doubt._replace(task="text")
    for doubt in (
        Doubt("vanilla", 4, 2e-2),
        Doubt("vanilla", 4, 6e-2),
        Doubt("vanilla", 1, 6e-2),
        *(Doubt("vanilla", 4, rate, shrunk=1 / 6) for rate in (2e-3, 6e-3, 2e-2)),
        *(Doubt("vanilla", 4, rate, num_updates=5000) for rate in (6e-3, 2e-2)),
        Doubt("vanilla", 1, 2e-2, num_updates=5000),
        Doubt("no feed-forward", 4, 6e-3, num_updates=5000),
        Doubt("gMLP", 4, 6e-3, num_updates=5000),
        *(Doubt(row, depth, 2e-3, num_updates=5000) for row in (_NAIVE, _TAP) for depth in (1, 4)),
    )
)
ALL = _IMAGES + _TEXT
SMOKE = (
    Doubt("FNet", 1, 6e-3, num_updates=25),
    Doubt("FNet", 1, 6e-3, num_updates=25, shrunk=7.0),
    Doubt("FNet", 1, 6e-3, num_updates=25, task="text"),
)


@cache
def _task(name: str, sample: bool, shrunk: float) -> Task:
    if name == "text":
        task = tasks.fill_in(moby_dick.sample() if sample else None)
    else:
        task = tasks.classify_mnist(mnist.sample() if sample else None)

    def smaller(part: Examples) -> Examples:
        return Examples(part.features / np.float32(shrunk), part.labels)

    train, validation, test = (smaller(part) for part in (task.train, task.validation, task.test))
    return dataclasses.replace(task, train=train, validation=validation, test=test)


def run_one(doubt: Doubt, *, sample: bool = False) -> dict[str, np.ndarray]:
    """``accuracy`` and ``loss`` of the test, ``validation_accuracy``, and ``failure``, the reason or ""."""
    task = _task(doubt.task, sample, doubt.shrunk)
    course = training.follow(
        modules.stacked(doubt.row, doubt.depth, task.grid),
        task,
        learning_rate=doubt.learning_rate,
        seed=SEED,
        recipe=Recipe(num_updates=doubt.num_updates),
        repeats=0,
    )
    return {
        "accuracy": np.array(course.test.accuracy),
        "loss": np.array(course.test.loss),
        "validation_accuracy": np.array(course.validation.accuracy),
        "failure": np.array(course.outcome.failure),
    }


def compare(
    doubts: tuple[Doubt, ...] = SMOKE,
    *,
    sample: bool = False,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The record, also written to ``doubts.json.gz`` in ``folder``, where runs are kept as soon as they are there.

    ``sample``: of the images and the text that come with the library. Options are those of ``spinbook.sweep.iterate``.
    Raises ``FileNotFoundError`` where data are missing.
    """
    names = {doubt.task for doubt in doubts}
    for name in names:
        _task(name, sample, 1.0)
    growing, described = records.Growing.at(folder, _ARTIFACT), [list(doubt) for doubt in doubts]
    run, place = partial(run_one, sample=sample), growing.beside("runs")
    found = dict(records.runs(run, doubts, described, sample, folder=place, label="doubts", **options))
    rows = [
        doubt._asdict() | {name: records.numbers(value, 6) for name, value in found[doubt].items()} for doubt in doubts
    ]
    files = [file for name, its in _FILES.items() if name in names for file in its]
    data = {} if sample else {"data": {file.name: file.sha256 for file in files}}
    return growing.write({"format": 1, "seed": SEED, "runs": rows} | data)


def recorded() -> dict[str, Any]:
    """What ``compare`` found for ``ALL``, from the file beside this module.

    >>> recorded()["seed"]
    9001
    """
    return records.beside("experiments.comparison", _ARTIFACT)


def find(record: dict[str, Any], doubt: Doubt) -> float:
    """What counts on the task of this run, accuracy or loss, or NaN where it failed.

    Raises ``ValueError`` where the record has no such run.

    >>> find({"runs": []}, SMOKE[0])
    Traceback (most recent call last):
        ...
    ValueError: doubt: expected one of the record, got FNet at depth 1 with 0.006
    """
    for run in record["runs"]:
        if all(run[name] == value for name, value in doubt._asdict().items()):
            value = run[questions.endpoint(doubt.task)]
            return float("nan") if run["failure"] or value is None else float(value)
    raise ValueError(
        f"doubt: expected one of the record, got {doubt.row} at depth {doubt.depth} with {doubt.learning_rate:g}"
    )
