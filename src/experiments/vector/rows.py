"""The rows of the record of fidelity as the table "attention-rows" of the library.

``python -m experiments.vector.rows`` writes it anew.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments import records
from experiments.vector import fidelity

__all__ = ["ABOUT", "rows"]

ABOUT = (
    "A row is one row of attention, of 40 systems of 32 or 64 spins with softmax couplings and inputs of length R. "
    "n_eff is the effective number of tokens that it reads; masked, under a causal mask; trained, by a module trained "
    "to find twins (32 components), otherwise random (128). The others are errors of a steady mean against sampled "
    "spins, over the distance from the mean without attention to the naive mean; tap is missing where it has no steady "
    "state, and an error below the noise may be zero. Made by experiments.vector.rows from its record of fidelity."
)


def rows() -> pd.DataFrame:
    """The table that the library carries: ``ABOUT`` says what its columns are.

    >>> len(rows()), (rows().naive < 0.05).mean().round(2)
    (2304, np.float64(0.27))
    """
    frames = []
    for case, found in fidelity.record():
        if case.kind == "rows" and case.field == 1:
            errors = dict(zip(("naive", "tap", "spread"), np.sqrt(np.maximum(found["by_row"], 0)), strict=True))
            known = {"beta": case.beta, "masked": int(case.causal), "trained": int(case.scale == 0)}
            frames.append(pd.DataFrame(known | {"n_eff": found["n_eff"]} | errors))
    table = pd.concat(frames, ignore_index=True)
    table["n_eff"] = table.n_eff.map(lambda value: float(f"{value:.3g}"))
    columns = ["naive", "tap", "spread"]
    table[columns] = table[columns].map(lambda value: float(f"{value:.2g}"))
    return table


if __name__ == "__main__":
    records.tabulate("attention-rows", rows(), ABOUT)
