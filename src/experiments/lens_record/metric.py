"""Attention as a slope in the best diagonal metric: a lower bound on the antisymmetric share, over all metrics.

The plan of the lens says what is asked. ``python -m experiments.lens_record --network metric --out FOLDER`` writes
``metric.json.gz``; the one beside this module is the record of the book.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import eigsh

from experiments import encoder, records
from experiments.lens_record import runs, spins
from spinbook.annotations import ArrayLike, Float

__all__ = ["collect", "least_share", "share"]

_TOKENS, _ARTIFACT = 8, "metric.json.gz"


def share(jacobian: Float[ArrayLike, "n n"]) -> float:
    """|(J - J^T) / 2|^2 / |J|^2: zero for a slope in the plain metric, one half for independent numbers.

    >>> share([[0.0, 1.0], [-1.0, 0.0]])
    1.0
    """
    J = np.asarray(jacobian, float)
    return float((1 - np.sum(J * J.T) / np.sum(J * J)) / 2)


def least_share(jacobian: Float[ArrayLike, "n n"]) -> float:
    """(1 - lambda) / 2, below which the share of W J lies for no diagonal W; lambda is at most one.

    The share of W J is (1 - w.T w / w.S w) / 2 with T = J o J^T and S = diag sum_b J_ab^2, so that the largest
    eigenvalue of S^-1/2 T S^-1/2 bounds it. Zero if J is a symmetric matrix times a metric.

    >>> metric, H = np.diag([1.0, 3.0, 0.5]), np.array([[1.0, 2.0, 0.5], [2.0, -1.0, 1.0], [0.5, 1.0, 2.0]])
    >>> round(share(metric @ H), 2), round(abs(least_share(metric @ H)), 6)
    (0.18, 0.0)
    """
    J = np.asarray(jacobian, float)
    root = np.sqrt(np.maximum(np.sum(J * J, axis=1), np.finfo(float).tiny))
    M = (J / root[:, None]) * (J / root[:, None]).T
    largest = np.linalg.eigvalsh(M)[-1] if len(M) < 50 else eigsh(M, k=1, which="LA", v0=root, tol=1e-4)[0][0]
    return float((1 - largest) / 2)


def collect(
    folder: str | Path, *, path: str | None = None, text: str | None = None, plan: str | Path | None = None
) -> dict[str, Any]:
    """The record, also written to ``metric.json.gz`` in ``folder``; arguments as in ``runs.collect``."""
    digest = hashlib.sha256(Path(plan).read_bytes()).hexdigest() if plan is not None else None
    growing = records.Growing.at(Path(folder), _ARTIFACT)
    network = runs._encoder("trained", path)
    tokens = runs._windows(path, text, runs.FULL.windows)[spins.WINDOW][:_TOKENS]
    rows: dict[str, list[float]] = {name: [] for name in ("plain", "least", "control_plain", "control_least", "random")}
    rng = np.random.default_rng(0)
    with jax.numpy_dtype_promotion("standard"):
        for t, layer in zip(encoder.run(tokens, network), network.layers, strict=True):
            shape = t.inputs.shape

            def added(x: Any, layer: Any = layer, shape: Any = shape) -> Any:
                return encoder.block(x.reshape(shape), layer).attended.ravel()

            x = t.inputs.ravel()
            column = jax.jit(jax.vmap(lambda u, x=x, added=added: jax.jvp(added, (x,), (u,))[1]))
            n = len(x)
            J = np.empty((n, n), np.float32)
            for begin in range(0, n, 256):
                J[:, begin : begin + 256] = np.asarray(column(jnp.eye(n, dtype=x.dtype)[begin : begin + 256])).T
            rows["plain"].append(share(J))
            rows["least"].append(least_share(J))
            # A symmetric matrix whose rows are as long, in a metric of spread one.
            lengths = np.sqrt(np.sqrt(np.sum(J.astype(float) ** 2, axis=1)))
            H = rng.normal(size=(n, n)).astype(np.float32)
            H = (H + H.T) * np.outer(lengths, lengths)
            H *= np.exp(rng.normal(size=n))[:, None]
            rows["control_plain"].append(share(H))
            rows["control_least"].append(least_share(H))
            rows["random"].append(least_share(rng.normal(size=(n, n)) * lengths[:, None] ** 2))
    found = {name: records.numbers(values, 4) for name, values in rows.items()}
    return growing.write({"format": 1, "plan": digest, "tokens": _TOKENS, "layers": found, "complete": True})
