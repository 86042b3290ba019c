"""Single blocks on digits and on recall, and the simplest method on the tasks of stacks.

The records were made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then ``python -m
experiments run comparison --out FOLDER`` (an hour on one core) for ``comparison.json.gz``, and ``comparison-longer`` for
``longer.json.gz``, five rows on digits, five times as long. ``simplest.json.gz`` and ``doubts.json.gz`` are what
``experiments.comparison.simplest.compare`` and ``experiments.comparison.doubts.compare`` of that tag wrote: the former
beside the rows of ``records/depths``, the latter single runs outside of its plan.

This script makes the first and the third; memory is not measured any more. With ``--brief`` it trains two blocks for 25
updates, and the simplest method on the samples of the data. What is done is kept in the folder, and not done again.
"""

import argparse
import math
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

from experiments import records
from experiments.comparison import modules, simplest, tasks, training
from experiments.comparison.training import Recipe
from experiments.datasets import mnist, moby_dick
from spinbook import sweep

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


def trained(stage, cases, recipe, folder):
    """The outcomes of these trainings by case, as numbers for JSON."""
    found = sweep.iterate(
        partial(one, recipe=recipe), cases, identity=str(recipe), folder=folder / stage, num_threads=1
    )
    return {cases[k]: {name: records.numbers(value, 6) for name, value in out.items()} for k, out in found}


def rank(run):
    """By validation alone: a run that failed comes last, of equals that of the lower loss first."""
    accuracy, loss = (math.nan if run[name] is None else run[name] for name in ("validation_accuracy", "loss"))
    return not run["failure"], -1.0 if math.isnan(accuracy) else accuracy, -math.inf if math.isnan(loss) else -loss


def of_blocks(rows, names, rates, seeds, recipe, folder):
    """Every block on every task: a rate from seed 0, and then the seeds that count."""
    begin, cells = time.perf_counter(), [(row, name) for row in rows for name in names]
    trials = trained("trials", [(*cell, rate, 0) for cell in cells for rate in rates], recipe, folder)
    best = {cell: max(rates, key=lambda rate, cell=cell: rank(trials[*cell, rate, 0])) for cell in cells}
    runs = trained("runs", [(*cell, best[cell], seed) for cell in cells for seed in seeds], recipe, folder)

    def row(cell):
        module, its = BLOCKS[cell[0]], task(cell[1])
        dim = modules.width(module, its)
        about = {"module": module.name, "family": module.family, "framework": module.framework, "task": its.name}
        about |= {"width": dim, "parameters": modules.num_parameters(module, its, dim), "learning_rate": best[cell]}
        tried = [{"learning_rate": rate} | trials[*cell, rate, 0] for rate in rates]
        return about | {"trials": tried, "runs": [{"seed": seed} | runs[*cell, best[cell], seed] for seed in seeds]}

    made = records.circumstances(begin, records.commit())
    del made["minutes_of_this_process"]
    recipe = {"learning_rates": rates, "seed_of_trials": 0, "seeds": seeds, **recipe._asdict(), "cells": len(cells)}
    recipe |= {"command": "python records/comparison/run.py", "vanilla_width": modules.VANILLA_WIDTH}
    records.write(folder / "comparison.json.gz", {"recipe": recipe | made, "rows": [row(cell) for cell in cells]})


def of_the_simplest(images, text, rates, seeds, recipe, folder):
    """A linear classifier of all pixels, trained as every row, and counts of what stands between two neighbours."""
    begin = time.perf_counter()
    train = partial(simplest.train_linear, images, recipe)
    trials = [train(learning_rate=rate, seed=0)[1].accuracy for rate in rates]
    rate = rates[int(np.argmax(trials))]
    scores = [train(learning_rate=rate, seed=seed)[0] for seed in seeds]
    linear = {"method": "a linear classifier of all pixels", "learning_rates": rates, "learning_rate": rate}
    linear |= {"validation_accuracy": records.numbers(trials, 6), "seed": seeds}
    linear |= {name: records.numbers([getattr(s, name) for s in scores], 6) for name in ("accuracy", "loss")}
    score, strength = simplest.count_neighbours(text)
    counted = {"method": "counts of what stands between two neighbours", "strength": strength}
    counted |= {name: records.numbers(getattr(score, name), 6) for name in ("accuracy", "loss")}
    content = {"format": 1, "recipe": recipe._asdict(), images.name: linear, text.name: counted}
    records.write(folder / "simplest.json.gz", content | records.circumstances(begin, records.commit()))


def main():
    """Parse the arguments and make both records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    parser.add_argument("--brief", action="store_true", help="two blocks, few updates, samples of the data")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    if options.brief:
        images, text = tasks.classify_mnist(mnist.sample(), num_validation=50), tasks.fill_in(moby_dick.sample())
        brief, rows = Recipe(num_updates=25, batch=8), ("vanilla", "adaptive TAP, Gaussian")
        of_blocks(rows, ("digits",), RATES[:2], SEEDS[:2], brief, options.out)
        of_the_simplest(images, text, (1e-3, 1e-2), [1, 2], brief, options.out)
    else:
        of_blocks(tuple(BLOCKS), tuple(TASKS), RATES, SEEDS, Recipe(), options.out)
        seeds = list(range(1, 17))
        recipe = Recipe(num_updates=1000)
        of_the_simplest(tasks.classify_mnist(), tasks.fill_in(), (2e-3, 6e-3, 2e-2), seeds, recipe, options.out)


if __name__ == "__main__":
    main()
