"""The whole comparison: a learning rate for each module and task, then other seeds, kept on disk as it goes.

A cell is one module on one task. It is trained once with each learning rate from one seed; the rate with the best
accuracy on the validation set, among runs that did not fail, is then used from other seeds, and these are what counts.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments import designs, records
from experiments.comparison import modules, tasks, training
from experiments.comparison.modules import MODULES, Module
from experiments.comparison.tasks import Task
from experiments.comparison.training import Outcome, Recipe
from spinbook import validate

__all__ = ["FULL", "LONGER", "LONGER_QUICK", "QUICK", "Plan", "choose", "compare", "recorded", "repeat"]

_TASKS: dict[str, Callable[[], Task]] = {"digits": tasks.classify_digits, "recall": tasks.recall}
_ARTIFACT = "comparison.json.gz"


@cache
def _known() -> dict[str, Module]:
    return {module.name: module for module in MODULES}


@designs.record(
    modules=lambda names, field: [validate.choice(name, _known(), field) for name in names],
    tasks=lambda names, field: [validate.choice(name, _TASKS, field) for name in names],
)
class Plan(NamedTuple):
    """Which learning rates are tried from seed 0, from which other seeds the chosen one is used, and for how long.

    ``modules`` and ``tasks``: which of them, by name.
    """

    learning_rates: tuple[float, ...] = (1e-3, 5e-3, 2e-2)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    recipe: Recipe = Recipe()
    modules: tuple[str, ...] = tuple(_known())
    tasks: tuple[str, ...] = tuple(_TASKS)


FULL = Plan()
QUICK = Plan(seeds=(1,), recipe=Recipe(num_updates=50))
# Five times as long, for the question whether the order of the modules is one of speed only.
LONGER = Plan(
    recipe=Recipe(num_updates=1500),
    modules=(
        "vanilla",
        "memory, three steps",
        "naive spins, one step, 4 heads",
        "identity mixer, averaged",
        "free energy, symmetric",
    ),
    tasks=("digits",),
)
LONGER_QUICK = LONGER._replace(seeds=(1,), recipe=QUICK.recipe)
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


def _row(module: Module, task: Task, plan: Plan, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    dim = modules.width(module, task)

    def outcomes(prefix: str, labels: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
        return [
            {name: label} | {field: records.numbers(arrays[f"{prefix}_{field}"][k], 6) for field in Outcome._fields}
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


def _recipe(plan: Plan, growing: records.Growing, cells: int) -> dict[str, Any]:
    return {
        "command": "python -m experiments.comparison" + _OPTIONS.get(plan, ""),
        **records.circumstances(growing.begin, growing.code),
        "learning_rates": list(plan.learning_rates),
        "seed_of_trials": 0,
        "seeds": list(plan.seeds),
        **plan.recipe._asdict(),
        "vanilla_width": modules.VANILLA_WIDTH,
        "cells": cells,
    }


def compare(plan: Plan = QUICK, *, folder: str | os.PathLike[str] | None = None, **options: Any) -> dict[str, Any]:
    """``recipe`` and ``rows``, one for each module and task: what is written to ``comparison.json.gz`` in ``folder``.

    The finished cells are kept in the subfolder ``cells`` and not computed again; the file is written anew with each.
    Options are those of ``spinbook.sweep.iterate``, as in ``records.runs``. Raises ``ValueError`` for a folder with
    another comparison.
    """
    cells = [(name, task) for name in plan.modules for task in plan.tasks]
    described = cells, list(plan.learning_rates), list(plan.seeds), list(plan.recipe)
    options = {"label": "cells"} | options
    growing, rows, done = records.Growing.at(folder, _ARTIFACT), {}, {}
    run, place = partial(_cell, plan=plan), growing.beside("cells")
    for cell, arrays in records.runs(run, cells, *described, folder=place, **options):
        rows[cell] = _row(_known()[cell[0]], _task(cell[1]), plan, arrays)
        done = {"recipe": _recipe(plan, growing, len(cells)), "rows": [rows[cell] for cell in cells if cell in rows]}
        if growing.path is not None:
            records.write(growing.path, done)
    return done


def recorded(*, longer: bool = False) -> dict[str, Any]:
    """``recipe`` and ``rows`` of the full comparison as it was run and recorded, from the file beside this module.

    ``longer``: the runs of five times as many updates, some modules on digits only.

    >>> recorded()["recipe"]["num_updates"], recorded(longer=True)["recipe"]["num_updates"]
    (300, 1500)
    """
    return records.beside("experiments.comparison", "longer.json.gz" if longer else _ARTIFACT)


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
                again = training.train(
                    _known()[module_name],
                    _TASKS[task_name](),
                    learning_rate=row["learning_rate"],
                    seed=seed,
                    recipe=recipe,
                    repeats=0,
                )
                return again, run
    raise ValueError(f"record: expected a run of {module_name} on {task_name} from seed {seed}, got none")
