"""A network that really is repeated: one trained block, applied twelve times to a chemical reaction, and then more.

``records/looped`` has the record; ``network`` is the forward pass, and ``mapping`` what its attention is read for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import records

__all__ = ["recorded", "values"]


def recorded() -> dict[str, Any]:
    """The record of the book.

    >>> recorded()["complete"]
    True
    """
    return records.of_book("looped")


def values(record: dict[str, Any], name: str, network: str = "trained") -> np.ndarray:
    """What the record has under this name, of the network or of its control "shuffled"."""
    return np.array(record["networks"][network][name], float)
