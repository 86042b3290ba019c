"""A network that really is repeated: one trained block, applied twelve times to a chemical reaction, and then more.

``python -m experiments.looped --out FOLDER`` does what the plan of the lens (``book/plan-of-the-lens.md``) says of it,
and writes ``looped.json.gz``. What lies beside this module is the record of the book.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import records

__all__ = ["recorded", "values"]


def recorded() -> dict[str, Any]:
    """The record beside this module.

    >>> recorded()["complete"]
    True
    """
    return records.beside("experiments.looped", "looped.json.gz")


def values(record: dict[str, Any], name: str, network: str = "trained") -> np.ndarray:
    """What the record has under this name, of the network or of its control "shuffled"."""
    return np.array(record["networks"][network][name], float)
