"""The comparison of stacks: rows, tasks, depths and seeds as tasks of a sweep, and its record.

A cell is a row on a task at a depth. Task by task, the cells of the primary questions come first, then the others, then
the rows that cost most, and the task without a primary question last: a part of the record answers questions. Each of
these groups of cells goes through stages, each in its own subfolder. *Trials*: every cell with every learning rate,
from a seed that counts for nothing else. *Pilot*: the cells of the primary questions from seeds that count for nothing
else either, which set the number of runs. *Runs*: what counts. Which questions are asked, and how they are answered, is
in ``questions``.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import designs, records
from experiments.comparison import modules, questions, tasks, training
from experiments.comparison.tasks import Task
from experiments.comparison.training import Course, Outcome, Recipe, Score
from experiments.datasets import mnist, moby_dick
from spinbook import sweep, validate

__all__ = [
    "ALL",
    "BRIEF",
    "SMOKE",
    "Cell",
    "Design",
    "Run",
    "again",
    "compare",
    "find_run",
    "recorded",
    "run_one",
]

_ARTIFACT, _SAMPLE = "depths.json.gz", "depths-sample.json.gz"
_EARLIER = "earlier.json.gz"
_STAGES = ("trials", "pilot", "runs")
_CIRCUMSTANCES = ("commit", "date", "machine", "versions", "minutes_of_this_process")
# A curve of more numbers than this is thinned out by averaging neighbours.
_CURVE = 80
# Seconds between two versions of the record while runs come in.
_PAUSE = 30.0
_TRIAL_SEED, _FIRST_PILOT_SEED = 0, 1001
# Several times what a vanilla stack takes.
_DEAR = ("energy transformer", "adaptive TAP, Gaussian", "free energy, symmetric")


@designs.record()
class Cell(NamedTuple):
    """A row on a task at a depth."""

    row: str
    task: str
    depth: int


@designs.record(seed=validate.count)
class Run(NamedTuple):
    """One training: a cell, a learning rate, a seed, and whether its updates are timed against the vanilla stack's."""

    cell: Cell
    learning_rate: float
    seed: int
    timed: bool


@designs.record(pilot=validate.count)
class Design(NamedTuple):
    """What is run. The number of runs of a primary cell is set by the pilot, between ``least`` and ``most``.

    Cells that belong to no primary question get ``least`` runs. Without ``pilot`` seeds every cell gets ``least``.
    """

    name: str
    rows: tuple[str, ...] = modules.ROWS
    tasks: tuple[str, ...] = ("mnist", "text", "recall apart")
    depths: tuple[int, ...] = (1, 2, 4)
    learning_rates: tuple[float, ...] = (2e-3, 6e-3, 2e-2)
    pilot: int = 4
    least: int = 5
    most: int = 16
    recipe: Recipe = Recipe(num_updates=1000)

    @property
    def cells(self) -> list[Cell]:
        """All cells, those of one task and depth side by side."""
        return [Cell(row, task, depth) for task in self.tasks for depth in self.depths for row in self.rows]


ALL = Design("all")
BRIEF = Design("brief", depths=(1, 2), learning_rates=(6e-3,), pilot=0, least=2, most=2, recipe=Recipe(num_updates=100))
SMOKE = Design(
    "smoke",
    rows=("vanilla", "local pooling", "adaptive TAP, Gaussian"),
    tasks=("mnist, sample", "text, sample"),
    depths=(2,),
    learning_rates=(6e-3,),
    pilot=0,
    least=2,
    most=2,
    recipe=Recipe(num_updates=25, batch=8),
)
_TASKS: dict[str, Callable[[], Task]] = {
    "mnist": tasks.classify_mnist,
    "text": tasks.fill_in,
    "recall apart": tasks.recall_apart,
    "mnist, sample": lambda: tasks.classify_mnist(mnist.sample()),
    "text, sample": lambda: tasks.fill_in(moby_dick.sample()),
}
_FILES = {"mnist": mnist.FILES, "text": (moby_dick.FILE,)}


@cache
def _task(name: str) -> Task:
    return _TASKS[name]()


def run_one(run: Run, recipe: Recipe) -> Course:
    """This run, from the data to the scores."""
    row, name, depth = run.cell
    task = _task(name)
    return training.follow(
        modules.stacked(row, depth, task.grid),
        task,
        learning_rate=run.learning_rate,
        seed=run.seed,
        recipe=recipe,
        repeats=2 if run.timed else 0,
    )


def _arrays(run: Run, recipe: Recipe) -> dict[str, np.ndarray]:
    course = run_one(run, recipe)
    arrays = {f"outcome.{field}": np.array(value) for field, value in course.outcome._asdict().items()}
    for part in ("test", "validation"):
        arrays |= {f"{part}.{field}": np.array(value) for field, value in getattr(course, part)._asdict().items()}
    arrays |= {f"layers.{name}": value for name, value in course.layers.items()}
    return arrays | {"losses": course.losses, "looks": course.looks}


def _thinned(losses: np.ndarray) -> np.ndarray:
    size = math.ceil(len(losses) / _CURVE)
    return np.array([losses[k : k + size].mean() for k in range(0, len(losses), size)]) if size else losses


def _entry(runs: Sequence[tuple[Run, Mapping[str, np.ndarray]]]) -> dict[str, Any]:
    """The runs of a cell by columns, which is a fraction of what they take as rows."""
    columns: dict[str, Any] = {
        "seed": [run.seed for run, _ in runs],
        "learning_rate": [run.learning_rate for run, _ in runs],
    }
    for name in (*(f"outcome.{f}" for f in Outcome._fields), *(f"{p}.loss" for p in ("test", "validation"))):
        columns[name.removeprefix("outcome.").replace(".", "_")] = [
            records.numbers(found[name], 6) for _, found in runs
        ]
    layers = {name: [records.numbers(found[f"layers.{name}"], 4) for _, found in runs] for name in training._LOOKED_FOR}
    known = {name: rows for name, rows in layers.items() if np.isfinite(np.array(rows, float)).any()}
    columns["layers"] = known
    columns["losses"] = [records.numbers(_thinned(found["losses"]), 4) for _, found in runs]
    columns["looks"] = [records.numbers(found["looks"], 4) for _, found in runs]
    return columns


Found = dict[Run, dict[str, np.ndarray]]


def _read_back(entry: Mapping[str, Any], stage: str) -> Found:
    """The runs of a cell of a record, in the digits that it has; the inverse of ``_entry``."""
    cell, columns = Cell(entry["row"], entry["task"], entry["depth"]), entry[stage]
    known = columns["layers"]
    empty = np.full((2, cell.depth), math.nan)
    found: Found = {}
    for k, (seed, rate) in enumerate(zip(columns["seed"], columns["learning_rate"], strict=True)):

        def value(name: str, k: int = k) -> np.ndarray:
            number = columns[name][k]
            return np.array(number if isinstance(number, str) else math.nan if number is None else number)

        arrays = {f"outcome.{name}": value(name) for name in Outcome._fields}
        for part in ("test", "validation"):
            # A record has each number once; of the validation it keeps what a learning rate is chosen by.
            accuracy = "accuracy" if part == "test" else "validation_accuracy"
            parts = {"accuracy": value(accuracy), "loss": value(f"{part}_loss")}
            parts["unsolved"] = value("unsolved") if part == "test" else np.array(math.nan)
            arrays |= {f"{part}.{field}": parts[field] for field in Score._fields}
        arrays |= {
            f"layers.{name}": np.array(known[name][k] if name in known else empty, float)
            for name in training._LOOKED_FOR
        }
        arrays |= {name: np.array(columns[name][k], float) for name in ("losses", "looks")}
        found[Run(cell, rate, seed, stage == "runs" and seed == 1)] = arrays
    return found


def _earlier(design: Design, folder: Path | None) -> dict[str, Any] | None:
    """The record whose runs are taken over, if there is one in the folder; it has to be one of this design."""
    if folder is None or not (folder / _EARLIER).exists():
        return None
    record = records.read(folder / _EARLIER)
    if record.get("design") != _written(design):
        raise ValueError(f"folder: expected {_EARLIER} to be a record of the design {design.name}, got another design")
    if record["data"] != _data(design):
        raise ValueError(f"folder: expected {_EARLIER} to be a record of the same data, got other checksums")
    return record


def _written(design: Design) -> dict[str, Any]:
    """As a record has it."""
    plain = design._replace(recipe=design.recipe._asdict())._asdict()  # type: ignore[arg-type]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}


def _data(design: Design) -> dict[str, str]:
    return {file.name: file.sha256 for name in design.tasks for file in _FILES.get(name, ())}


def _score(found: Mapping[str, np.ndarray], task: str) -> float:
    """What a learning rate is chosen by, larger is better: on examples for validation, the endpoint of the task."""
    endpoint = questions.endpoint(task)
    value = float(found[f"validation.{endpoint}"])
    if found["outcome.failure"] != "" or not math.isfinite(value):
        return -math.inf
    return value if endpoint == "accuracy" else -value


def _chosen(trials: Sequence[tuple[Run, Mapping[str, np.ndarray]]]) -> float:
    """The best learning rate, the smaller of equals; of runs that all failed the smallest, which fails last."""
    ordered = sorted(trials, key=lambda trial: trial[0].learning_rate)
    return max(ordered, key=lambda trial: _score(trial[1], trial[0].cell.task))[0].learning_rate


class _Record:
    """The record as it grows; written now and then, and at the end."""

    def __init__(self, design: Design, folder: Path | None) -> None:
        self.design, self.growing, self.written = design, records.Growing.at(folder, _ARTIFACT), 0.0
        self.found: dict[str, Found] = {}
        self.seeds: dict[str, int] = {}
        self.known: dict[str, Found] = {stage: {} for stage in _STAGES}
        self.earlier: list[dict[str, Any]] = []
        if (record := _earlier(design, folder)) is not None:
            for stage in _STAGES:
                for entry in record["cells"]:
                    self.known[stage] |= _read_back(entry, stage) if stage in entry else {}
            num_runs = sum(len(found) for found in self.known.values())
            own = {name: record[name] for name in _CIRCUMSTANCES} | {"sha256": record["sha256"], "num_runs": num_runs}
            self.earlier = [own, *record.get("earlier", [])]

    def add(self, stage: str, run: Run, arrays: dict[str, np.ndarray]) -> None:
        self.found.setdefault(stage, {})[run] = arrays
        if time.perf_counter() - self.written > _PAUSE:
            self.write(complete=False)

    def write(self, *, complete: bool) -> dict[str, Any]:
        self.written = time.perf_counter()
        design = self.design
        cells = []
        for cell in design.cells:
            parts = {
                stage: _entry(sorted(mine, key=lambda pair: (pair[0].seed, pair[0].learning_rate)))
                for stage, found in self.found.items()
                if (mine := [(run, arrays) for run, arrays in found.items() if run.cell == cell])
            }
            if not parts:
                continue
            task = _task(cell.task)
            module = modules.stacked(cell.row, cell.depth, task.grid)
            dim = modules.width(module, task)
            about = {"family": module.family, "framework": module.framework, "width": dim}
            about["parameters"] = modules.num_parameters(module, task, dim)
            cells.append(cell._asdict() | about | parts)
        blind = {name: _task(name).blind._asdict() for name in design.tasks if any(c["task"] == name for c in cells)}
        content = {
            "format": 1,
            "complete": complete,
            "design": _written(design),
            "runs_of_primary_cells": self.seeds,
            "blind": blind,
            "data": _data(design),
            "cells": cells,
            "earlier": self.earlier,
        }
        return self.growing.write(content)


def _stage(name: str, group: _Group, runs: Sequence[Run], record: _Record, **options: Any) -> Found:
    """All runs of a stage of a group: those of an earlier record, those that are in the folder, and the others."""
    design = record.design
    mine: Found = {run: record.known[name][run] for run in runs if run in record.known[name]}
    for run, arrays in mine.items():
        record.add(name, run, arrays)
    runs = [run for run in runs if run not in mine]
    if not runs:
        return mine
    described = [[*run.cell, run.learning_rate, run.seed, run.timed] for run in runs], list(design.recipe)
    place = record.growing.beside(group.name)
    options = {"label": f"{group.name}: {name}"} | options
    train = partial(_arrays, recipe=design.recipe)
    for run, arrays in records.runs(train, runs, *described, folder=place and place / name, **options):
        mine[run] = arrays
        record.add(name, run, arrays)
    return mine


class _Group(NamedTuple):
    """Cells that go through the stages together."""

    name: str
    task: str
    cells: list[Cell]
    primary: bool


def _groups(design: Design) -> list[_Group]:
    """In the order in which they are run: task by task, of each the primary cells question by question and then others.

    The rows that cost most come after all tasks with primary questions, and tasks without one last: what is there when
    a comparison is broken off then answers most.
    """
    primary = questions.primary_cells(design.tasks, design.depths)
    found = []
    for asked_about in (True, False):
        cheap, dear = [], []
        for task in design.tasks:
            if (task in questions.PRIMARY_TASKS) != asked_about:
                continue
            asked = [Cell(*cell) for cell in questions.in_order(task) if cell in primary and cell[0] in design.rows]
            rest = [cell for cell in design.cells if cell.task == task and cell not in primary]
            cheap.append(_Group(f"{task}, primary", task, asked, True))
            cheap.append(_Group(f"{task}, others", task, [cell for cell in rest if cell.row not in _DEAR], False))
            dear.append(_Group(f"{task}, dear", task, [cell for cell in rest if cell.row in _DEAR], False))
        found += cheap + dear
    return [group for group in found if group.cells]


def compare(design: Design = SMOKE, *, folder: str | os.PathLike[str] | None = None, **options: Any) -> dict[str, Any]:
    """The record of all stages, which is also written to ``depths.json.gz`` in ``folder``, in part while it grows.

    Called again with the same folder it goes on where it was: each run is kept as soon as it is there. Options are
    those of ``spinbook.sweep.iterate``, as in ``records.runs``. The data are looked for before anything is run.

    A record of the same design with the name ``earlier.json.gz`` in the folder, such as the part that comes with the
    library, is taken over: its runs are not made again, wherever they were made, and the new record says under
    ``earlier`` where, when and by which code.

    Raises ``FileNotFoundError`` where data are missing, and ``ValueError`` for names that are not in the lists, for a
    folder with another comparison, and for an earlier record of another design or of other data.
    """
    for name in design.tasks:
        if name not in _TASKS:
            raise ValueError(f"design: expected tasks out of {', '.join(_TASKS)}, got {name}")
        _task(name)
    for name in design.rows:
        modules.stacked(name, 1)
    record = _Record(design, None if folder is None else Path(folder))
    problems = []
    for group in _groups(design):
        try:
            _all_stages(group, record, **options)
        except sweep.FailedTasks as error:
            # What one group lacks is no reason to leave out the others.
            error.add_note(group.name)
            problems.append(error)
    if problems:
        record.write(complete=False)
        if len(problems) == 1:
            raise problems[0]
        raise ExceptionGroup("; ".join(f"{error.__notes__[-1]}: {error.message}" for error in problems), problems)
    return record.write(complete=True)


def _all_stages(group: _Group, record: _Record, **options: Any) -> None:
    """The trials of these cells, the pilot of primary ones, and the runs that count."""
    design, cells = record.design, group.cells
    trials = [Run(cell, rate, _TRIAL_SEED, False) for cell in cells for rate in design.learning_rates]
    found = _stage("trials", group, trials, record, **options)
    rates = {cell: _chosen([(run, arrays) for run, arrays in found.items() if run.cell == cell]) for cell in cells}
    number = design.least
    if group.primary:
        seeds = range(_FIRST_PILOT_SEED, _FIRST_PILOT_SEED + design.pilot)
        pilot_runs = [Run(cell, rates[cell], seed, False) for cell in cells for seed in seeds]
        pilot = _stage("pilot", group, pilot_runs, record, **options)
        number = record.seeds[group.task] = questions.runs_needed(
            {(run.cell.row, run.cell.depth, run.seed): _endpoint(arrays, group.task) for run, arrays in pilot.items()},
            group.task,
            least=design.least,
            most=design.most,
        )
    runs = [Run(cell, rates[cell], seed, seed == 1) for cell in cells for seed in range(1, 1 + number)]
    _stage("runs", group, runs, record, **options)


def _endpoint(arrays: Mapping[str, np.ndarray], task: str) -> float:
    """The score that counts, or that of a guess where the run failed."""
    endpoint = questions.endpoint(task)
    failed = arrays["outcome.failure"] != ""
    return float(getattr(_task(task).blind, endpoint) if failed else arrays[f"test.{endpoint}"])


def recorded(*, sample: bool = False) -> dict[str, Any]:
    """The comparison of stacks as it was run, complete or not, from the file beside this module.

    ``sample``: that of ``SMOKE``, whose data come with the library, so that its runs can be made again anywhere.

    >>> recorded(sample=True)["complete"]
    True
    """
    return records.beside("experiments.comparison", _SAMPLE if sample else _ARTIFACT)


def _find(record: Mapping[str, Any], cell: Cell, seed: int) -> tuple[Mapping[str, Any], int]:
    for entry in record["cells"]:
        if Cell(entry["row"], entry["task"], entry["depth"]) == cell and seed in entry.get("runs", {}).get("seed", ()):
            return entry["runs"], entry["runs"]["seed"].index(seed)
    raise ValueError(f"record: expected a run of {', '.join(map(str, cell))} from seed {seed}, got none")


def find_run(record: Mapping[str, Any], cell: Cell, *, seed: int = 1) -> Score:
    """What the record says of the test of a run: ``loss``, ``accuracy`` and ``unsolved``.

    Raises ``ValueError`` where the record has no such run.

    >>> find_run(recorded(sample=True), Cell("vanilla", "mnist, sample", 2)).unsolved
    0.0
    """
    columns, k = _find(record, cell, seed)
    then = [columns[name][k] for name in ("test_loss", "accuracy", "unsolved")]
    return Score(*(math.nan if value is None else value for value in then))


def again(record: Mapping[str, Any], cell: Cell, *, seed: int = 1) -> tuple[Course, Score]:
    """One run of the record once more, and what the record says of its test, as ``find_run``.

    Raises ``ValueError`` where the record has no such run.
    """
    columns, k = _find(record, cell, seed)
    recipe = Recipe(**record["design"]["recipe"])
    course = run_one(Run(cell, columns["learning_rate"][k], seed, False), recipe)
    return course, find_run(record, cell, seed=seed)
