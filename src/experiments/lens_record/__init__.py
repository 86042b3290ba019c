"""The records of the lens: two trained networks on one text, with their controls, and a sample of the first.

``python -m experiments.lens_record --out FOLDER`` does what the plan of the lens (``book/plan-of-the-lens.md``) says
of the encoder, and writes ``lens.json.gz``; with ``--network causal`` it trains the second network, and writes
``causal.json.gz``. What lies beside this module are the records of the book. Here they are read, by pages that carry
nothing of the runs: those are in ``runs``, ``causal``, ``spins`` and ``reaction``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from experiments import records

__all__ = ["NETWORKS", "Sample", "by_head", "packed", "recorded", "sample", "values"]

NETWORKS = ("trained", "fresh", "shuffled", "other order")
_RECORDS = {name: f"{name}.json.gz" for name in ("lens", "causal", "spins", "order", "reaction", "metric")}
_SAMPLE = "minilm.npz"


def recorded(name: str = "lens") -> dict[str, Any]:
    """A record beside this module: of the encoder, as "causal" of the second network, or one of the four below.

    "spins" has every head of both as vector spins, "order" six of them with other numbers of components, "reaction" the
    echo at the layer that can have seen it, and "metric" attention in the best diagonal metric. Raises ``KeyError`` for
    another name.

    >>> recorded()["complete"], recorded("causal")["complete"]
    (True, True)
    """
    return records.beside("experiments.lens_record", _RECORDS[name])


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


_LEVELS = 255
"""On each side of zero: nine bits for a number, of which the last lies in a file of bits."""


def packed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Vectors (..., d) as whole parts of their largest component, which is kept in half precision: nine bits each."""
    found: dict[str, np.ndarray] = {}
    for name, x in arrays.items():
        scale = (np.abs(x).max(-1, keepdims=True) / _LEVELS).astype(np.float16)
        parts = np.clip(np.round(x / scale.astype(float)), -_LEVELS, _LEVELS).astype(np.int16)
        found |= {f"{name}.scale": scale, f"{name}.high": (parts >> 1).astype(np.int8)}
        found[f"{name}.low"] = np.packbits((parts & 1).astype(bool))
    return found


def _unpacked(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    high, scale = arrays[f"{name}.high"].astype(float), arrays[f"{name}.scale"].astype(float)
    low = np.unpackbits(arrays[f"{name}.low"], count=high.size).reshape(high.shape)
    return np.asarray((2 * high + low) * scale)


def sample() -> Sample:
    """Two windows, so that pages run without the weights, from vectors of nine bits a component.

    The attention is made of queries and keys; its largest weights are right within a part in two hundred.

    >>> sample().attention.shape
    (6, 2, 12, 64, 64)
    """
    with resources.as_file(resources.files("experiments.lens_record") / _SAMPLE) as path, np.load(path) as data:
        arrays = dict(data)
    states, q, k = (_unpacked(arrays, name) for name in ("states", "queries", "keys"))
    logits = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    attention = np.exp(logits - logits.max(-1, keepdims=True))
    return Sample(arrays["tokens"], attention / attention.sum(-1, keepdims=True), states, q, k)
