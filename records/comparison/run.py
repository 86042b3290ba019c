"""Single blocks on digits and on recall, before any plan.

The records were made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then
``python -m experiments run comparison --out FOLDER`` (an hour on one core) for ``comparison.json.gz``, and
``comparison-longer`` for ``longer.json.gz``, five rows on digits, five times as long. ``simplest.json.gz`` and
``doubts.json.gz`` are what ``experiments.comparison.simplest.compare`` and ``experiments.comparison.doubts.compare`` of
that tag wrote: a linear classifier and counts of neighbours beside the rows of ``records/depths``, and single runs
outside of its plan.

This script makes the first record, without memory and physics, which are left to the tag. With ``--brief`` it trains
one block for two updates on digits. What is done is kept in the folder, and not done again.
"""

import math
import time
from functools import cache, partial

import torch

from experiments import records
from experiments.comparison import modules, tasks, training
from experiments.comparison.training import Recipe

BLOCKS = {module.name: module for module in modules.MODULES}
TASKS = {"digits": tasks.classify_digits, "recall": tasks.recall}
RATES, SEEDS = (1e-3, 5e-3, 2e-2), (1, 2, 3, 4, 5)


@cache
def task(name):
    return TASKS[name]()


def one(case, recipe):
    """The outcome of a training, with its time where the seed counts."""
    row, name, rate, seed = case
    repeats = 2 if seed else 0
    return training.train(
        BLOCKS[row], task(name), learning_rate=rate, seed=seed, recipe=recipe, repeats=repeats
    )._asdict()


def rank(run):
    """By validation alone: a run that failed comes last, of equals that of the lower loss first."""
    accuracy, loss = (math.nan if run[name] is None else run[name] for name in ("validation_accuracy", "loss"))
    return not run["failure"], -1.0 if math.isnan(accuracy) else accuracy, -math.inf if math.isnan(loss) else -loss


def of_blocks(rows, names, rates, seeds, recipe, folder):
    """Every block on every task: a rate from seed 0, and then the seeds that count."""
    begin, cells = time.perf_counter(), [(row, name) for row in rows for name in names]
    trained = partial(records.kept, partial(one, recipe=recipe), identity=str(recipe))
    trials = trained([(*cell, rate, 0) for cell in cells for rate in rates], folder / "trials")
    best = {cell: max(rates, key=lambda rate, cell=cell: rank(trials[*cell, rate, 0])) for cell in cells}
    runs = trained([(*cell, best[cell], seed) for cell in cells for seed in seeds], folder / "runs")

    def row(cell):
        module, its = BLOCKS[cell[0]], task(cell[1])
        dim = modules.width(module, its)
        about = {"module": module.name, "family": module.family, "framework": module.framework, "task": its.name}
        about |= {"width": dim, "parameters": modules.num_parameters(module, its, dim), "learning_rate": best[cell]}
        tried = [{"learning_rate": rate} | trials[*cell, rate, 0] for rate in rates]
        return about | {"trials": tried, "runs": [{"seed": seed} | runs[*cell, best[cell], seed] for seed in seeds]}

    made = records.circumstances(begin, records.commit())
    # The record has neither of these.
    del made["minutes_of_this_process"], made["versions"]["scipy"]
    recipe = {"learning_rates": rates, "seed_of_trials": 0, "seeds": seeds, **recipe._asdict(), "cells": len(cells)}
    recipe |= {"command": "python records/comparison/run.py", "vanilla_width": modules.VANILLA_WIDTH}
    records.write(folder / "comparison.json.gz", {"recipe": recipe | made, "rows": [row(cell) for cell in cells]})


if __name__ == "__main__":
    given = records.arguments(__doc__)
    torch.set_num_threads(1)
    whole = tuple(BLOCKS), tuple(TASKS), RATES, SEEDS, Recipe()
    brief = ("adaptive TAP, Gaussian",), ("digits",), RATES[:2], SEEDS[:2], Recipe(2, 8)
    of_blocks(*(brief if given.brief else whole), given.out)
