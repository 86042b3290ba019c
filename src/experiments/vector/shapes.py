"""Measures how wrong naive delayed correlations are for attention of many shapes, and what theory foresees of it.

A ``Case`` is a matrix of attention of one of ``SHAPES`` in fields of length R and random directions, of 32 components.
Delayed correlations of sampled spins, as in ``vector.fidelity``, give the relative error of those of independent
spins at the naive means. Predicted is it by the law of one shared fluctuation, without and with the concentration P of
the stationary distribution, and by ``spinbook.vector.closure``, of which none has seen a sample.
``records/shapes/run.py`` says what was sampled, and when it was fixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments import lens_record, records
from spinbook import sphere

SHAPES = (
    "independent",
    "queries and keys",
    "popular columns",
    "sink +2",
    "sink +3",
    "sink +5",
    "two sinks",
    "sink that keeps",
    "band",
    "ring",
    "recency",
    "causal",
    "causal recency",
    "blocks",
    "sharp rows",
    "mostly itself",
    "mostly the next",
    "learned",
    "learned, weak sink",
)
"""The shapes of ``system``; the last two are heads of a trained network (``experiments.lens_record``)."""
LAWS = ("columns alike", "with P", "linear law", "closure")
"""The order of ``predicted``: the three of ``lens.sink_law``, and ``closure.steady_state``."""
_HEADS = ((0, 3), (2, 8), (4, 5), (5, 10))
"""Layer and head, both from zero, of the draws of learned attention, on the second window of the sample."""


class Case(NamedTuple):
    """Attention of one shape at one temperature, and how long its spins are sampled."""

    shape: str
    beta: float
    draw: int
    num_sites: int = 48
    dim: int = 32
    replicas: int = 32
    steps: int = 400


def _attention(logits: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    logits = logits if mask is None else np.where(mask, logits, -np.inf)
    J = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(J / J.sum(axis=1, keepdims=True))


def system(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Attention (N, N) and fields (N, D) of length R; a weak sink has a field of a quarter of that.

    Logits are independent and normal, with standard deviation 1, to which a shape adds: 2, 3 or 5 for the column of a
    sink, 4 more for its own (a sink that keeps), 3 within a quarter of the tokens, 4 for a token itself or the next,
    a random number for a column, -|i - j| / 4 (recency). A band and a ring hear three neighbours on each side. The
    logits of bands, rings, popular columns and recency are halved, those of sharp rows tripled.

    >>> J, x = system(Case("causal", 1.0, 0, num_sites=6, dim=8))
    >>> J.sum(1).round(6).tolist(), J[0].round(6).tolist()
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """
    N, D = case.num_sites, case.dim
    rng = np.random.default_rng([SHAPES.index(case.shape), case.draw])
    if case.shape.startswith("learned"):
        layer, head = _HEADS[case.draw % len(_HEADS)]
        J = lens_record.sample().attention[layer, 1, head]
        N = len(J)
    x = rng.normal(size=(N, D))
    x *= sphere.radius(D) / np.linalg.norm(x, axis=1, keepdims=True)
    if case.shape.startswith("learned"):
        x[0] *= 0.25 if case.shape == "learned, weak sink" else 1
        return J, x
    logits = rng.normal(size=(N, N))
    i, j = np.indices((N, N))
    apart = np.abs(i - j)
    if case.shape == "queries and keys":
        queries, keys = x @ rng.normal(size=(2, D, D))
        logits = queries @ keys.T / (queries @ keys.T).std()
    halved = case.shape in ("popular columns", "band", "ring", "recency", "causal recency")
    logits *= 0.5 if halved else 3 if case.shape == "sharp rows" else 1
    if case.shape == "popular columns":
        logits += rng.normal(size=N)
    if "sink" in case.shape:
        logits[:, : 1 + (case.shape == "two sinks")] += {"sink +2": 2, "sink +5": 5}.get(case.shape, 3)
        logits[0, 0] += 4 * (case.shape == "sink that keeps")
    logits += {
        "recency": -apart / 4,
        "causal recency": -apart / 4,
        "blocks": 3.0 * (i // (-(-N // 4)) == j // (-(-N // 4))),
        "mostly itself": 4.0 * (i == j),
        "mostly the next": 4.0 * (j == (i + 1) % N),
    }.get(case.shape, 0)
    masks = {"band": apart <= 3, "ring": np.minimum(apart, N - apart) <= 3}
    return _attention(logits, i >= j if "causal" in case.shape else masks.get(case.shape)), x


def record() -> list[tuple[Case, dict[str, np.ndarray]]]:
    """Every case of the book's record with what was measured: by sampling, and by ``LAWS`` as ``predicted``.

    >>> len(record()), record()[0][0].shape  # exact
    (126, 'independent')
    """
    return records.rows("shapes", case=Case)[0]
