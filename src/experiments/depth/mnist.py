"""MNIST once more: stacks on scaled pixels, trained until more updates hardly help. Judges with ``questions``.

A cell is one training of ``comparison.training``, or of a linear classifier. The record is its own folder of finished
cells: given again, the command goes on after the last of them. The plan is ``book/plan-of-mnist``.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import designs, records
from experiments.comparison import modules, simplest, tasks, training
from experiments.comparison.tasks import Examples, Task
from experiments.comparison.training import Recipe
from experiments.datasets import mnist
from experiments.depth import cells, questions
from experiments.depth.cells import Cell
from experiments.depth.questions import Contrast, Finding
from spinbook import validate

__all__ = [
    "ALL",
    "ASKED",
    "GATE",
    "LINEAR",
    "MARGIN",
    "SMOKE",
    "Design",
    "answers",
    "collect",
    "recorded",
    "train",
    "wrong_answers",
]

LINEAR = "linear classifier"
MARGIN = 0.005
"""Of the share of wrong answers: half a percentage point."""
GATE = (Contrast(LINEAR, "ahead", 1, "vanilla", MARGIN),)
"""A stack has to be better than a linear classifier before anything is asked of another row."""
ASKED = tuple(
    Contrast(row, "behind", 1, "vanilla", MARGIN)
    for row in (
        "identity mixer",
        "no residual",
        "no normalisation",
        "no feed-forward",
        "local pooling",
        "naive spins, one step, 4 heads",
    )
)
_ROWS = ("vanilla", *(contrast.row for contrast in GATE + ASKED))
_ARTIFACT = "mnist.json.gz"


@designs.record(trials=lambda values, name: tuple(validate.count(value, name) for value in values))
class Design(NamedTuple):
    """Sizes of the stacks and of their training, the seeds of ``trials``, and the ``seeds`` that count."""

    name: str
    depth: int = 2
    updates: int = 16000
    trial_updates: int = 4000
    batch: int = 32
    trials: tuple[int, ...] = (101, 102)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    rows: tuple[str, ...] = _ROWS
    sample: bool = False


ALL = Design("all")
SMOKE = Design("smoke", 1, updates=25, trial_updates=25, batch=8, seeds=(1, 2), rows=("vanilla", LINEAR), sample=True)


@cache
def _task(sample: bool) -> Task:
    """Pixels of unit variance, divided by the root of the number of those of a patch."""
    task = tasks.classify_mnist(mnist.sample() if sample else None)
    scale = np.float32(task.num_features**-0.5)
    parts = (Examples(part.features * scale, part.labels) for part in (task.train, task.validation, task.test))
    train, validation, test = parts
    return dataclasses.replace(task, train=train, validation=validation, test=test)


def train(cell: Cell, design: Design) -> dict[str, Any]:
    """What the record says of one training: shares of wrong answers in ``validation`` and, of runs, in the ``test``.

    ``looks``: the same of 500 images for validation, ten times on the way. A share of a run that diverged is None.
    ``seconds`` of the processor in all.
    """
    task, begin = _task(design.sample), time.process_time()
    recipe = Recipe(design.trial_updates if cell.stage == "trial" else design.updates, design.batch)
    if cell.row == LINEAR:
        test, validation = simplest.train_linear(task, recipe, learning_rate=cell.rate, seed=cell.seed)
        evidence: dict[str, Any] = {"skipped": 0.0, "unsettled": 0.0, "looks": []}
    else:
        row = modules.stacked(cell.row, design.depth, task.grid)
        course = training.follow(row, task, learning_rate=cell.rate, seed=cell.seed, recipe=recipe, repeats=0)
        test, validation = course.test, course.validation
        skipped, unsettled = course.outcome.skipped, course.outcome.unsolved
        evidence = {"skipped": skipped, "unsettled": unsettled, "looks": 1 - course.looks[1]}
    found = {"validation": 1 - validation.accuracy} | ({"test": 1 - test.accuracy} if cell.stage == "run" else {})
    numbers = found | evidence | {"seconds": time.process_time() - begin}
    return cell._asdict() | {name: records.numbers(value, 4) for name, value in numbers.items()}


def collect(
    design: Design = SMOKE, *, plan: str | os.PathLike[str], folder: Path, progress: bool = False
) -> dict[str, Any]:
    """The record, which is written to ``mnist.json.gz`` in ``folder``, anew with each cell that is done.

    A record that lies there is gone on with. Every cell gets the SHA-256 of the file ``plan`` up to its heading
    "Changes" as it is trained.
    Raises ``ValueError`` for a record of another plan or design, and ``FileNotFoundError`` without images or plan.
    """
    path, digest = folder / _ARTIFACT, cells.digest(plan)
    begin, code, task = time.perf_counter(), records.commit(), _task(design.sample)
    head = {
        "format": 1,
        "plan": digest,
        "design": design._asdict(),
        "blind": 1 - task.blind.accuracy,
        "data": {} if design.sample else {file.name: file.sha256 for file in mnist.FILES},
    }
    found = cells.begun(path, head)[1]

    def written(complete: bool) -> dict[str, Any]:
        runs = [found[cell] for cell in sorted(found)]
        record = head | {"complete": complete, "runs": runs} | records.circumstances(begin, code)
        records.write(path, record)
        return record

    def stage(name: str, its: Any) -> None:
        for k, cell in enumerate(its):
            if cell not in found:
                found[cell] = train(cell, design) | {"plan": digest, "commit": code}
                written(complete=False)
                if progress:
                    print(f"{name} {k + 1}/{len(its)}: {cell.row}, rate {cell.rate:g}, seed {cell.seed}", flush=True)

    first = ("vanilla", *(contrast.row for contrast in GATE))
    for wanted in (True, False):
        names = [row for row in design.rows if (row in first) == wanted]
        cells.tuned(stage, found, names, seeds=design.seeds, trials=design.trials)
    return written(complete=True)


def answers(record: Mapping[str, Any]) -> tuple[Finding, ...]:
    """The gate, and if it opens each other row: is it *behind* vanilla by more than ``MARGIN``?

    The gate is tested by itself at the level, which holds for all other rows together (``questions.judged``). Nothing
    is asked while a run is missing that an answer needs.
    """
    made = {(run["row"], run["seed"]) for run in record["runs"] if run["stage"] == "run"}

    def whole(contrasts: Sequence[Contrast]) -> bool:
        names = ("vanilla", *(contrast.row for contrast in contrasts))
        return all((row, seed) in made for row in names for seed in record["design"]["seeds"])

    if not whole(GATE):
        return ()
    gate = questions.judged(record, GATE)
    opened = all(found.decision == "yes" for found in gate)
    return gate + (questions.judged(record, ASKED) if opened and whole(ASKED) else ())


def wrong_answers(record: Mapping[str, Any], row: str) -> np.ndarray:
    """The shares of wrong answers in the test of the runs of ``row`` that count, in the order of the seeds.

    A run that diverged is nan. Raises ``ValueError`` while a run of the row is missing.

    >>> float(wrong_answers(recorded(), "vanilla").mean().round(3))
    0.015
    """
    shares = {run["seed"]: run["test"] for run in record["runs"] if (run["stage"], run["row"]) == ("run", row)}
    seeds = record["design"]["seeds"]
    missing = [seed for seed in seeds if seed not in shares]
    if missing:
        raise ValueError(f"record: expected runs of {row} with the seeds {seeds}, got none with {missing}")
    return np.array([shares[seed] for seed in seeds], float)


def recorded() -> dict[str, Any]:
    """The record as it was made, complete or not, from the file beside this module.

    Raises ``FileNotFoundError`` in a version that has none.
    """
    with resources.as_file(resources.files("experiments.depth").joinpath(_ARTIFACT)) as path:
        return records.read(path)
