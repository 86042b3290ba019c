"""Every run of the comparison as a row of the table that the library carries, ``records.table("comparison")``.

``python -m experiments.comparison.table`` writes it anew from the records of ``experiment`` and of ``depth.mnist``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from experiments import records
from experiments.comparison import experiment, modules, tasks
from experiments.datasets import mnist as images
from experiments.depth import mnist

__all__ = ["ABOUT", "runs"]

_KINDS = {
    "transformer": "vanilla",
    "ablations": "part left out",
    "other mixers": "other mixer",
    "spin transformer": "spins",
    "parallel block": "spins",
    "free energy": "spins",
    "deep implicit": "spins, free couplings",
}
ABOUT = (
    "A row is one training of a small model: a stack of two blocks on MNIST, or a single block on digits of 8 x 8 "
    "pixels or on associative recall. kind is vanilla or what stands in its place. accuracy is that of the test, "
    "and missing where the run failed; parameters are those of the whole model; time is that of an update in "
    "units of the vanilla block, measured in turns with it on the same core, and missing where it was not "
    "measured. The learning rate of every module was chosen on other seeds. Made by experiments.comparison.table."
)


def _blocks() -> Iterator[dict[str, Any]]:
    for longer in (False, True):
        record = experiment.recorded(longer=longer)
        for row in record["rows"]:
            shared = {"task": row["task"], "updates": record["recipe"]["num_updates"], "module": row["module"]}
            shared["kind"] = _KINDS[row["family"]]
            for run in row["runs"]:
                accuracy = None if run["failure"] else run["accuracy"]
                cost = {"parameters": row["parameters"], "time": run["time_ratio"]}
                yield shared | {"seed": run["seed"], "accuracy": accuracy} | cost


def _stacks() -> Iterator[dict[str, Any]]:
    record, task = mnist.recorded(), tasks.classify_mnist(images.sample())
    design = record["design"]
    for name in design["rows"]:
        shared: dict[str, Any] = {"task": "MNIST", "updates": design["updates"], "module": name}
        if name == mnist.LINEAR:
            kind = "linear"
            parameters = (task.num_sites * task.num_features + 1) * task.num_classes
        else:
            row = modules.stacked(name, design["depth"], task.grid)
            kind = _KINDS[row.family]
            parameters = modules.num_parameters(row, task, modules.width(row, task))
        for seed, wrong in zip(design["seeds"], mnist.wrong_answers(record, name), strict=True):
            run = {"kind": kind, "seed": seed, "accuracy": round(1 - wrong, 6)}
            yield shared | run | {"parameters": parameters, "time": None}


def runs() -> pd.DataFrame:
    """The runs of the records that count for a result, in their order: ``ABOUT`` says what the columns are.

    >>> runs().query("task == 'MNIST' and module == 'vanilla'").accuracy.mean().round(3)
    np.float64(0.985)
    """
    frame = pd.DataFrame([*_stacks(), *_blocks()])
    return frame.astype({"accuracy": float, "time": float})


if __name__ == "__main__":
    records.tabulate("comparison", runs(), ABOUT)
