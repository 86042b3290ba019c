"""Results of long runs that lessons show: tables beside this module. Computes nothing."""

from __future__ import annotations

import csv
from importlib import resources

import numpy as np

__all__ = ["losses_by_updates"]


def losses_by_updates() -> dict[str, np.ndarray]:
    """Columns ``trained``, ``used``, ``seed`` and ``loss`` of the language models of spins, at beta = 1.

    ``trained`` and ``used`` say how many updates a layer makes in training and afterwards, and ``loss`` is that on text
    not seen in training, in nats per character. The vanilla transformer of the same size is used "once". Runs of
    ``experiments.comparison.transient``, whose whole record is ``experiments.comparison.transient_record.recorded``.

    >>> table = losses_by_updates()
    >>> at_rest = (table["trained"] == "at rest") & (table["used"] == "at rest")
    >>> round(float(table["loss"][at_rest].mean()), 2)
    1.71
    """
    text = resources.files(__name__).joinpath("losses_by_updates.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    kinds = {"trained": str, "used": str, "seed": int, "loss": float}
    return {name: np.array([row[name] for row in rows]).astype(kind) for name, kind in kinds.items()}
