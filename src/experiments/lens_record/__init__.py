"""The records of the lens: two trained networks on one text, with their controls, and a sample of the first.

``records/lens`` has them and their plan. Here they are read; the modules below have what was measured, a function each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from experiments import records

NETWORKS = ("trained", "fresh", "shuffled", "other order")
_PLACES = {"spins": "lens-spins", "order": "lens-spins", "reaction": "lens-reaction", "metric": "lens-reaction"}


def recorded(name: str = "lens") -> dict[str, Any]:
    """A record of the encoder, as "causal" of the second network, or one of the four below.

    "spins" has every head of both as vector spins, "order" six of them with other numbers of components, "reaction" the
    echo at the layer that can have seen it, and "metric" attention in the best diagonal metric.

    >>> recorded()["complete"], recorded("causal")["complete"]
    (True, True)
    """
    return records.of_book(_PLACES.get(name, "lens"), name)


def values(record: Mapping[str, Any], part: str, name: str, network: str = "trained") -> np.ndarray:
    """What a record has under this name: of the trained network by window, of heads of controls mean and error."""
    return np.array(record["networks"][network][part][name], float)


def by_head(record: Mapping[str, Any], name: str, network: str = "trained") -> np.ndarray:
    """Means over windows, (L, H) of a measure of heads or (L,) of one of layers.

    >>> by_head(recorded(), "concentration").shape
    (6, 12)
    """
    found = values(record, "heads", name, network)
    return np.asarray(found.mean(axis=0) if network == "trained" else found[0])


class Sample(NamedTuple):
    """A few windows of the trained network: ``tokens`` (B, N) as text, ``attention`` (L, B, H, N, N), ``states``
    (L + 1, B, N, D), ``queries`` and ``keys`` (L, B, H, N, d)."""

    tokens: np.ndarray
    attention: np.ndarray
    states: np.ndarray
    queries: np.ndarray
    keys: np.ndarray


def sample() -> Sample:
    """Two windows, so that pages run without the weights, from vectors of nine bits a component.

    The attention is made of queries and keys; its largest weights are right within a part in two hundred.

    >>> sample().attention.shape
    (6, 2, 12, 64, 64)
    """
    with np.load(records.place("lens", "minilm.npz")) as data:
        arrays = dict(data)

    def unpacked(name: str) -> np.ndarray:
        """Whole parts of the largest component of each vector, of which the last bit lies in a file of bits."""
        high, scale = arrays[f"{name}.high"].astype(float), arrays[f"{name}.scale"].astype(float)
        low = np.unpackbits(arrays[f"{name}.low"], count=high.size).reshape(high.shape)
        return np.asarray((2 * high + low) * scale)

    states, q, k = (unpacked(name) for name in ("states", "queries", "keys"))
    logits = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    attention = np.exp(logits - logits.max(-1, keepdims=True))
    return Sample(arrays["tokens"], attention / attention.sum(-1, keepdims=True), states, q, k)
