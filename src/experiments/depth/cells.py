"""A learning rate for each row of an experiment, and then its seeds: which trainings are made, and in which order.

Trains nothing. Trials choose the rate of each row in validation: three rates, and further ones beside the best as long
as it is the last on its side. A record is the store of its own cells: what it has is not trained again, here or on
another machine, if plan, sizes and data are the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import designs, records
from spinbook import validate

__all__ = ["RATES", "Cell", "begun", "chosen", "digest", "tuned"]

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""The rates that may be tried."""
_FIRST = RATES[2:5]


@designs.record(stage=("ladder", "trial", "run"), seed=validate.count)
class Cell(NamedTuple):
    """One training, in the ``stage`` "ladder", "trial" or "run". Only runs count, and no trial has a seed of theirs."""

    stage: str
    row: str
    rate: float
    seed: int


def digest(plan: str | os.PathLike[str]) -> str:
    """SHA-256 of the text of a plan up to its heading "Changes". Raises ``FileNotFoundError``."""
    fixed = Path(plan).read_text(encoding="utf-8").split("\n## Changes\n")[0]
    return hashlib.sha256(fixed.encode()).hexdigest()


def begun(path: str | os.PathLike[str], head: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Cell, Any]]:
    """The record that lies at ``path``, to go on with, and its runs by cell; empty where nothing lies there.

    Raises ``ValueError`` for a record that differs in what ``head`` says, and for a damaged one.
    """
    if not Path(path).exists():
        return {}, {}
    before = records.read(path)
    for name, value in head.items():
        # Tuples are lists in a record.
        if before.get(name) != json.loads(json.dumps(value)):
            raise ValueError(f"folder: expected a record of this plan and design, got one with another {name}")
    return before, {Cell(*(run[name] for name in Cell._fields)): run for run in before["runs"]}


def chosen(losses: Mapping[float, float | None]) -> tuple[float, float | None]:
    """The rate with the least loss, and the next rate of ``RATES`` to try if it is the last on its side, else None.

    A run without a loss comes last; among equals the lower rate counts.

    >>> chosen({1e-3: 1.5, 3e-3: 1.4, 1e-2: 1.6}), chosen({1e-3: 1.5, 3e-3: 1.4, 1e-2: 1.3})  # exact
    ((0.003, None), (0.01, 0.03))
    """
    best = min(sorted(losses), key=lambda rate: math.inf if losses[rate] is None else float(losses[rate] or 0))
    at = RATES.index(best)
    for step in (-1, 1):
        beside = at + step
        if 0 <= beside < len(RATES) and RATES[beside] not in losses:
            return best, RATES[beside]
    return best, None


def tuned(
    stage: Callable[[str, Sequence[Cell]], None],
    found: Mapping[Cell, Mapping[str, Any]],
    names: Sequence[str],
    *,
    seeds: Sequence[int],
    trials: Sequence[int] = (0,),
) -> None:
    """Trials of the rows ``names`` from the seeds ``trials``, and runs with the best rate from ``seeds``.

    ``stage`` is called with the name of each step and its cells, and leaves what they came to in ``found``, where
    ``validation`` is a loss, or None. The mean over the trials of a rate counts, and one without a loss spoils it.
    """

    def best(row: str) -> tuple[float, float | None]:
        losses: dict[float, list[float]] = {}
        for cell, entry in found.items():
            if (cell.stage, cell.row) == ("trial", row):
                loss = entry["validation"]
                losses.setdefault(cell.rate, []).append(math.inf if loss is None else loss)
        return chosen({rate: math.fsum(its) / len(its) for rate, its in losses.items()})

    stage("trials", [Cell("trial", row, rate, seed) for row in names for rate in _FIRST for seed in trials])
    # Each time all rows whose best rate is the last on its side get one more.
    for k in range(len(RATES)):
        further = [(row, best(row)[1]) for row in names]
        cells = [Cell("trial", row, rate, seed) for row, rate in further if rate is not None for seed in trials]
        if not cells:
            break
        stage(f"trials-{k + 2}", cells)
    # All rows of a seed before the next, so that contrasts can be looked at as soon as a seed is through.
    stage("runs", [Cell("run", row, best(row)[0], seed) for seed in seeds for row in names])
