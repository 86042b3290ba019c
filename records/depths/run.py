"""Stacks of one, two and four blocks on images and on a text: ``records/comparison/plan.md``.

The record was made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then
``python -m experiments run comparison-depths --out FOLDER`` (eight hours on one core), with the data of
``book/data.md``. It lacks *recall apart*, which was not run.

This script makes the cells that the primary questions need, each with the number of runs that the pilot of the plan
asked for; the pilot itself, memory and physics are left to the tag. With ``--brief`` it trains one block for two
updates on the samples of the data. What is done is kept in the folder, and not done again.
"""

import math
import time
from functools import cache, partial

import torch

from experiments import records
from experiments.comparison import modules, tasks, training
from experiments.comparison.training import Recipe
from experiments.datasets import mnist, moby_dick

SPINS = ("naive spins, one step, 4 heads", "TAP spins, one step, 4 heads")
ROWS = ("vanilla", "no residual", "no normalisation", "no feed-forward", "local pooling", "MLP-mixer", "gMLP", "FNet")
CELLS = [(row, 4) for row in ROWS + SPINS] + [(row, 1) for row in ("vanilla", *SPINS)]
FULL = {"tasks": ["mnist", "text"], "learning_rates": [2e-3, 6e-3, 2e-2], "least": 16, "recipe": Recipe(1000)}
BRIEF = FULL | {"learning_rates": [6e-3], "least": 2, "recipe": Recipe(2, 8)}


@cache
def task(name, brief):
    if name == "text":
        return tasks.fill_in(moby_dick.sample() if brief else None)
    return tasks.classify_mnist(mnist.sample() if brief else None)


def one(case, recipe, brief):
    """The course of a training; seed 1 is timed."""
    row, name, depth, rate, seed = case
    its = task(name, brief)
    module, repeats = modules.stacked(row, depth, its.grid), 2 if seed == 1 else 0
    course = training.follow(module, its, learning_rate=rate, seed=seed, recipe=recipe, repeats=repeats)
    losses = {"test_loss": course.test.loss, "validation_loss": course.validation.loss}
    return course.outcome._asdict() | losses | {"losses": course.losses, "looks": course.looks}


def score(run, name):
    """What a rate is chosen by: in validation the accuracy, or on the text minus the loss; a failed run comes last."""
    value = run["validation_accuracy"] if name == "mnist" else run["validation_loss"]
    return -math.inf if run["failure"] or value is None else value if name == "mnist" else -value


def entry(cell, trials, runs, brief):
    """A cell of the record: runs by columns, which is a fraction of what they take as rows."""
    row, name, depth = cell
    its = task(name, brief)
    module = modules.stacked(row, depth, its.grid)
    dim = modules.width(module, its)
    about = {"row": row, "task": name, "depth": depth, "family": module.family, "framework": module.framework}
    about |= {"width": dim, "parameters": modules.num_parameters(module, its, dim)}
    for stage, made in {"trials": trials, "runs": runs}.items():
        mine = {case: run for case, run in made.items() if case[:3] == cell}
        columns = {"seed": [case[4] for case in mine], "learning_rate": [case[3] for case in mine]}
        names = next(iter(mine.values()))
        about[stage] = columns | {name: [run[name] for run in mine.values()] for name in names}
    return about


def main(brief, out):
    begin = time.perf_counter()
    torch.set_num_threads(1)
    options = BRIEF if brief else FULL
    stacks = [("vanilla", 1)] if brief else CELLS
    cells = [(row, name, depth) for name in options["tasks"] for row, depth in stacks]
    rates, recipe = options["learning_rates"], options["recipe"]
    trained = partial(records.kept, partial(one, recipe=recipe, brief=brief), identity=str(recipe))
    trials = trained([(*cell, rate, 0) for cell in cells for rate in rates], out / "trials")
    best = {cell: max(rates, key=lambda rate, c=cell: score(trials[*c, rate, 0], c[1])) for cell in cells}
    seeds = range(1, 1 + options["least"])
    runs = trained([(*cell, best[cell], seed) for cell in cells for seed in seeds], out / "runs")
    files = [] if brief else [*mnist.FILES, moby_dick.FILE]
    content = {
        "format": 1,
        "complete": True,
        "design": {"name": "brief" if brief else "primary", **options, "recipe": recipe._asdict()},
        "runs_of_primary_cells": dict.fromkeys(options["tasks"], options["least"]),
        "blind": {name: task(name, brief).blind._asdict() for name in options["tasks"]},
        "data": {file.name: file.sha256 for file in files},
        "cells": [entry(cell, trials, runs, brief) for cell in cells],
        "earlier": [],
    }
    records.write(out / "depths.json.gz", content | records.circumstances(begin, records.commit()))


if __name__ == "__main__":
    given = records.arguments(__doc__)
    main(given.brief, given.out)
