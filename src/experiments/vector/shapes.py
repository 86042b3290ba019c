"""How wrong are naive delayed correlations for attention of many shapes, and does theory foresee it?

A ``Case`` is a matrix of attention of one of ``SHAPES`` in fields of length R and random directions, of 32 components.
Delayed correlations of sampled spins, as in ``vector.fidelity``, give the relative error of those of independent
spins at the naive means. Predicted is it by the law of one shared fluctuation, without and with the concentration P of
the stationary distribution, and by ``spinbook.vector.closure``, of which none has seen a sample.

``python -m experiments run attention-shapes --out FOLDER`` computes all of ``cases()`` and writes ``shapes.json.gz``;
the one beside this module is the record of the book, see ``record``. The shapes, the ranges and the two draws of each
were committed, with the declarations of the claims, before the sweep ran; trials before that had other draws and
heads.
"""

from __future__ import annotations

from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments import designs, records
from experiments.vector import fidelity
from experiments.vector.fidelity import forgotten, independent_correlations, jackknife, squared_error, steady_means
from spinbook import lens, sphere, validate
from spinbook.precision import enable_x64
from spinbook.vector import closure

__all__ = ["LAWS", "SHAPES", "Case", "cases", "compute", "measure", "record", "system"]

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
_ARTIFACT = "shapes.json.gz"
_HEADS = ((0, 3), (2, 8), (4, 5), (5, 10))
"""Layer and head, both from zero, of the draws of learned attention, on the second window of the sample."""


@designs.record(shape=SHAPES, draw=validate.count)
class Case(NamedTuple):
    """Attention of one shape at one temperature, and how long its spins are sampled."""

    shape: str
    beta: float
    draw: int
    num_sites: int = 48
    dim: int = 32
    replicas: int = 32
    steps: int = 400


def cases() -> list[Case]:
    """Two draws of each shape at beta = 1, 2 and 4, and four of learned attention, which has 64 tokens.

    >>> len(cases()), cases()[0]
    (126, Case(shape='independent', beta=1.0, draw=100, num_sites=48, dim=32, replicas=32, steps=400))
    """
    draws = {shape: range(100, 104 if shape.startswith("learned") else 102) for shape in SHAPES}
    return [Case(shape, beta, draw) for shape in SHAPES for beta in (1.0, 2.0, 4.0) for draw in draws[shape]]


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
        # By its name, so that pages that read the record, which carry all that they import, do not carry a network.
        lens_record = import_module("experiments.lens_record")
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


def measure(case: Case) -> dict[str, np.ndarray]:
    """What sampling says of a case, and what was foreseen.

    ``delayed`` (2,): the squared relative error of naive delayed correlations, with its standard error; ``left`` (2,):
    the same of the closure's; ``means`` (2,): the squared error of the closure's means over that of naive ones;
    ``predicted`` (4,): the relative error by ``LAWS``; ``uniform`` (2,): the share of the squared error along the
    uniform matrix; ``attention`` (3,): P, the second eigenvalue and the mean number of attended tokens; ``forgotten``:
    the squared distance of the two halves over what their scatter lets expect. NaN where no state was found.
    """
    with enable_x64(True):
        J, x = system(case)
        key = jax.random.key(int.from_bytes(sha256(repr(case).encode()).digest()[:4], "big"))
        sizes: dict[str, Any] = {"beta": case.beta, "replicas": case.replicas, "steps": case.steps}
        halves = fidelity.sampled(key, jnp.asarray(J), jnp.asarray(x), transient=40, delayed=True, **sizes)
        means, delayed = (np.asarray(part, dtype=float) for part in halves)
        m = steady_means(J, x, case.beta, fidelity.STEPS["naive"])
        naive = independent_correlations(J, m, case.beta)
        law = lens.sink_law(J, m, beta=case.beta)
        found = closure.steady_state(J, x, beta=case.beta)
        lost = np.nan if not found.converged else 0.0
        closed, closed_means = (np.asarray(a) + lost for a in (found.delayed_correlations, found.magnetizations))
        alike = lens.second_eigenvalue(J), lens.attended(J)

    def uniform(a: np.ndarray, b: np.ndarray) -> float:
        first, second = naive - a, naive - b
        return float(first.sum() * second.sum() / len(J) ** 2 / np.sum(first * second))

    def of_means(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.sum((closed_means - a) * (closed_means - b)) / np.sum((m - a) * (m - b)))

    foreseen = np.linalg.norm(closed - naive) / np.linalg.norm(closed)
    return {
        "delayed": np.array(jackknife(squared_error(naive), delayed)),
        "left": np.array(jackknife(squared_error(closed), delayed)),
        "means": np.array(jackknife(of_means, means)),
        "predicted": np.array([law.uniform, law.with_sinks, law.linear, foreseen]),
        "uniform": np.array(jackknife(uniform, delayed)),
        "attention": np.array([law.concentration, *alike]),
        "forgotten": np.array(forgotten(means)),
    }


def compute(out: Path, quick: bool, **options: Any) -> None:
    """Measure every case, see ``records.measure``; ``quick`` takes two small ones."""
    chosen = cases()
    if quick:
        chosen = [case._replace(num_sites=6, dim=6, replicas=8, steps=4) for case in (chosen[0], chosen[50])]
    records.measure(out, "attention-shapes", _ARTIFACT, {"case": (measure, chosen)}, **options)


def record() -> list[tuple[Case, dict[str, np.ndarray]]]:
    """Every case of the book's record with what was measured.

    >>> [case for case, _ in record()] == cases()  # exact
    True
    """
    return records.measured("experiments.vector", _ARTIFACT, case=Case)[0]
