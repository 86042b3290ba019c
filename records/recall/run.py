"""Which mixers look something up? Trains the stacks of ``plan.md`` on recall and writes ``recall.json.gz``.

``python records/recall/run.py --out FOLDER`` runs the whole plan, one training after another, and goes on from what it
finds in the folder; ``--brief`` is one row of one block for a moment. The record beside this file was made at the
commit that it names.
"""

from __future__ import annotations

import time
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments import records
from experiments.comparison import modules, tasks, training
from experiments.comparison.tasks import Task
from experiments.comparison.training import Recipe

ROWS = (
    "vanilla",
    "identity mixer",
    "local pooling",
    "pure normalisation",
    "ReLU attention",
    "no residual",
    "no normalisation",
    "no feed-forward",
)
RATES, TRIAL, SEEDS = (0.001, 0.003, 0.01), 101, (1, 2, 3, 4, 5)


class Sizes(NamedTuple):
    """Pairs, keys and values of a sequence, sequences for training and for the test, blocks and updates."""

    pairs: int = 16
    keys: int = 128
    values: int = 16
    train: int = 40000
    test: int = 2000
    depth: int = 2
    updates: int = 1500


BRIEF = Sizes(2, 4, 2, train=64, test=16, depth=1, updates=2)


@cache
def task(sizes: Sizes) -> Task:
    """Recall in the sizes of the plan."""
    return tasks.recall(
        num_pairs=sizes.pairs, num_keys=sizes.keys, num_values=sizes.values, num_train=sizes.train, num_test=sizes.test
    )


def train(cell: tuple[str, float, int], sizes: Sizes) -> dict[str, Any]:
    """The share of right answers after the last update, in validation and in the test, and ten times on the way."""
    name, rate, seed = cell
    begin, examples = time.process_time(), task(sizes)
    row = modules.stacked(name, sizes.depth, (examples.num_sites,))
    course = training.follow(
        row, examples, learning_rate=rate, seed=seed, recipe=Recipe(sizes.updates, min(32, sizes.train)), repeats=0
    )
    return {
        "validation": course.validation.accuracy,
        "test": course.test.accuracy,
        "looks": course.looks[1],
        "skipped": course.outcome.skipped,
        "width": modules.width(row, examples),
        "seconds": time.process_time() - begin,
    }


def main() -> None:
    """Tune the rate of each row by one trial each, then train the seeds that count."""
    options = records.arguments(__doc__)
    rows, rates, seeds, sizes = ROWS, RATES, SEEDS, Sizes()
    if options.brief:
        rows, rates, seeds, sizes = ROWS[1:2], RATES[1:2], SEEDS[:2], BRIEF
    begin = time.perf_counter()

    def trained(cells: list[tuple[str, float, int]], stage: str) -> list[dict[str, Any]]:
        work, folder = partial(train, sizes=sizes), options.out / stage
        found = records.kept(work, cells, folder, identity=f"recall {sizes}", digits=5)
        return [dict(zip(("row", "rate", "seed"), cell, strict=True)) | found[cell] for cell in cells]

    trials = trained([(row, rate, TRIAL) for row in rows for rate in rates], "trials")
    best = {row: max((t for t in trials if t["row"] == row), key=lambda t: t["validation"])["rate"] for row in rows}
    runs = trained([(row, best[row], seed) for row in rows for seed in seeds], "runs")
    head = {
        "plan": records.plan("recall"),
        "sizes": sizes._asdict(),
        "most_frequent": tasks.most_frequent(sizes.pairs, sizes.values),
        "trials": trials,
        "runs": runs,
    }
    records.write(options.out / "recall.json.gz", head | records.circumstances(begin))
    for row in rows:
        print(row, best[row], np.mean([run["test"] for run in runs if run["row"] == row]).round(4))


if __name__ == "__main__":
    main()
