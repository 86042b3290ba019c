"""The whole comparison: a learning rate for each module and task, then other seeds, kept on disk as it goes.

A cell is one module on one task. It is trained once with each learning rate from one seed; the rate with the best
accuracy on the validation set, among runs that did not fail, is then used from other seeds, and these are what counts.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import records
from experiments.comparison import modules, tasks, training
from experiments.comparison.modules import MODULES, Module
from experiments.comparison.tasks import Task
from experiments.comparison.training import Outcome, Recipe
from spinbook import sweep, validate

__all__ = ["FULL", "LONGER", "LONGER_MODULES", "QUICK", "Plan", "choose", "compare", "recorded", "repeat"]

_TASKS: dict[str, Callable[[], Task]] = {"digits": tasks.classify_digits, "recall": tasks.recall}
_LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "torch", "numpy", "scikit-learn")
_ARTIFACT = "comparison.json"


@validate.record()
class Plan(NamedTuple):
    """Which learning rates are tried from seed 0, from which other seeds the chosen one is used, and for how long."""

    learning_rates: tuple[float, ...] = (1e-3, 5e-3, 2e-2)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    recipe: Recipe = Recipe()


FULL = Plan()
QUICK = Plan(seeds=(1,), recipe=Recipe(num_updates=50))
# Five times as long, for the question whether the order of the modules is one of speed only.
LONGER = Plan(recipe=Recipe(num_updates=1500))
LONGER_MODULES = (
    "vanilla",
    "memory, three steps",
    "naive spins, one step, 4 heads",
    "identity mixer, averaged",
    "free energy, symmetric",
)
_OPTIONS = {FULL: " --full", LONGER: " --longer"}


def choose(outcomes: Sequence[Outcome]) -> int:
    """The index of the best validation accuracy, of the lower loss among equals; a run that failed comes last.

    >>> fine = Outcome(*[0.5] * 15, failure="")
    >>> choose([fine._replace(failure="diverged"), fine, fine._replace(loss=0.4)])
    2
    """

    def rank(k: int) -> tuple[bool, float, float]:
        run = outcomes[k]
        accuracy = -1.0 if math.isnan(run.validation_accuracy) else run.validation_accuracy
        return not run.failure, accuracy, -math.inf if math.isnan(run.loss) else -run.loss

    return max(range(len(outcomes)), key=rank)


@cache
def _known() -> dict[str, Module]:
    return {module.name: module for module in MODULES}


@cache
def _task(name: str) -> Task:
    return _TASKS[name]()


def _cell(names: tuple[str, str], plan: Plan) -> dict[str, np.ndarray]:
    """Outcomes of the trial runs and of the others, as arrays by name.

    Takes names, because a module does not travel to another process: it is found again there.
    """
    module, task = _known()[names[0]], _task(names[1])
    trials = [
        training.train(module, task, learning_rate=rate, seed=0, recipe=plan.recipe, repeats=0)
        for rate in plan.learning_rates
    ]
    rate = plan.learning_rates[choose(trials)]
    runs = [training.train(module, task, learning_rate=rate, seed=seed, recipe=plan.recipe) for seed in plan.seeds]
    arrays = {"learning_rate": np.array(rate)}
    for prefix, outcomes in (("trial", trials), ("run", runs)):
        for field in Outcome._fields:
            arrays[f"{prefix}_{field}"] = np.array([getattr(outcome, field) for outcome in outcomes])
    return arrays


def _plain(value: Any) -> Any:
    """A number of JSON: six digits, and null for what is not a number."""
    if isinstance(value, (str, np.str_)):
        return str(value)
    number = float(value)
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _row(module: Module, task: Task, plan: Plan, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    dim = modules.width(module, task)

    def outcomes(prefix: str, labels: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
        return [
            {name: label} | {field: _plain(arrays[f"{prefix}_{field}"][k]) for field in Outcome._fields}
            for k, (name, label) in enumerate(labels)
        ]

    return {
        "module": module.name,
        "family": module.family,
        "framework": module.framework,
        "task": task.name,
        "width": dim,
        "parameters": modules.num_parameters(module, task, dim),
        "learning_rate": float(arrays["learning_rate"]),
        "trials": outcomes("trial", (("learning_rate", rate) for rate in plan.learning_rates)),
        "runs": outcomes("run", (("seed", seed) for seed in plan.seeds)),
    }


def _recipe(plan: Plan, commit: str, seconds: float, names: Sequence[str]) -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "command": "python -m experiments.comparison" + _OPTIONS.get(plan, ""),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit,
        "versions": {"python": platform.python_version()}
        | {library: importlib.metadata.version(library) for library in _LIBRARIES},
        "machine": f"one core of {os.cpu_count()}, {platform.machine()}, {memory:.0f} GiB, no accelerator",
        "minutes_of_this_process": round(seconds / 60, 1),
        "learning_rates": list(plan.learning_rates),
        "seed_of_trials": 0,
        "seeds": list(plan.seeds),
        **plan.recipe._asdict(),
        "vanilla_width": modules.VANILLA_WIDTH,
        "cells": len(names),
    }


def compare(
    plan: Plan = QUICK,
    *,
    folder: str | os.PathLike[str] | None = None,
    module_names: Sequence[str] | None = None,
    task_names: Sequence[str] = ("digits", "recall"),
    executor: Executor | None = None,
    time_limit: float | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """``recipe`` and ``rows``, one for each module and task: what is written to ``comparison.json`` in ``folder``.

    The finished cells are kept in the subfolder ``cells`` and not computed again; the file is written anew with each.
    ``module_names``: some of the modules only. Runs one after another, for their times to mean something, unless an
    ``executor`` is given (see ``spinbook.sweep``): cells that run side by side on one machine are as right, but slower.
    ``time_limit``: seconds for one cell.

    Raises ``ValueError`` for names that are not in the list, and for a folder with another comparison.
    """
    names = [module.name for module in MODULES] if module_names is None else list(module_names)
    known = _known()
    for name in names:
        if name not in known:
            raise ValueError(f"module_names: expected some of {', '.join(known)}, got {name}")
    for name in task_names:
        if name not in _TASKS:
            raise ValueError(f"task_names: expected some of {', '.join(_TASKS)}, got {name}")
    cells = [(name, task) for name in names for task in task_names]
    labels = [f"{name} | {task}" for name, task in cells]

    begin, commit, rows = time.perf_counter(), records.commit(), {}
    done = {}
    for k, arrays in sweep.iterate(
        partial(_cell, plan=plan),
        cells,
        identity=sweep.fingerprint(
            labels, list(plan.learning_rates), list(plan.seeds), list(plan.recipe), sweep.code_version(_cell)
        ),
        folder=None if folder is None else Path(folder) / "cells",
        executor=executor,
        num_threads=1 if executor is None else None,
        time_limit=time_limit,
        progress=progress,
        label="cells",
        note="compiling and training the first",
    ):
        rows[k] = _row(known[cells[k][0]], _task(cells[k][1]), plan, arrays)
        recipe = _recipe(plan, commit, time.perf_counter() - begin, labels)
        done = {"recipe": recipe, "rows": [rows[j] for j in sorted(rows)]}
        if folder is not None:
            (Path(folder) / _ARTIFACT).write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
    return done


def recorded(*, longer: bool = False) -> dict[str, Any]:
    """``recipe`` and ``rows`` of the full comparison as it was run and recorded, from the file beside this module.

    ``longer``: the runs of five times as many updates, some modules on digits only.

    >>> recorded()["recipe"]["num_updates"], recorded(longer=True)["recipe"]["num_updates"]
    (300, 1500)
    """
    name = "longer.json" if longer else _ARTIFACT
    text = resources.files("experiments.comparison").joinpath(name).read_text(encoding="utf-8")
    result: dict[str, Any] = json.loads(text)
    return result


def repeat(
    module_name: str, task_name: str, *, seed: int = 1, record: Mapping[str, Any] | None = None
) -> tuple[Outcome, dict[str, Any]]:
    """One run of the record again, and what the record says of it; ``record`` is ``recorded()`` unless given.

    The recipe, the learning rate and the seed are those of the record. Raises ``ValueError`` where it has no such run.
    """
    record = recorded() if record is None else record
    for row in record["rows"]:
        for run in row["runs"]:
            if (row["module"], row["task"], run["seed"]) == (module_name, task_name, seed):
                recipe = Recipe(**{field: record["recipe"][field] for field in Recipe._fields})
                module = next(module for module in MODULES if module.name == module_name)
                again = training.train(
                    module,
                    _TASKS[task_name](),
                    learning_rate=row["learning_rate"],
                    seed=seed,
                    recipe=recipe,
                    repeats=0,
                )
                return again, run
    raise ValueError(f"record: expected a run of {module_name} on {task_name} from seed {seed}, got none")
