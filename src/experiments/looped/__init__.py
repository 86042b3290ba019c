"""The record of a network whose one trained block is applied twelve times to a chemical reaction, and then more.

``records/looped`` has the record; ``network`` is the forward pass, and ``mapping`` what its attention is read for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments import records


def recorded() -> dict[str, Any]:
    """The record of the book.

    >>> recorded()["complete"]
    True
    """
    return records.of_book("looped")


def values(record: dict[str, Any], name: str, network: str = "trained") -> np.ndarray:
    """What the record has under this name, of the network or of its control "shuffled"."""
    return np.array(record["networks"][network][name], float)


def by_pass(record: dict[str, Any]) -> pd.DataFrame:
    """Means over the reactions after every pass that was kept, as ``spinbook.lens.repeated_block`` has them.

    >>> by_pass(recorded()).loc[12, ["change", "atoms"]].round(2).tolist()  # exact
    [0.28, 0.99]
    """
    passes, head = np.array(record["passes"]), 5
    found = {}
    for network, ending in (("trained", ""), ("shuffled", "_shuffled")):
        found[f"change{ending}"] = values(record, "change", network)[passes - 1].mean(axis=1)
        found[f"atoms{ending}"] = values(record, "neighbours", network)[:, head].mean(axis=1)
    tokens = values(record, "masked").mean(axis=(1, 2))
    found["tokens"] = np.append(tokens, np.full(len(passes) - len(tokens), np.nan))
    return pd.DataFrame(found, pd.Index(passes, name="pass")).round(4)
