"""Every head of both networks as vector spins: what the closure and its rivals foresee, against sampled spins.

What is asked, and what would refute it, is in the plan of the lens. ``python -m experiments.lens_record --network spins
--out FOLDER`` writes ``spins.json.gz``; the causal network's weights have to lie in the folder, where ``--network
causal`` leaves them. ``--network order`` writes ``order.json.gz``, six heads with other numbers of components. Beside
this module are the records of the book.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments import encoder, records
from experiments.comparison import transient
from experiments.lens_record import causal, runs
from experiments.vector import fidelity
from experiments.vector.fidelity import forgotten, jackknife, squared_error
from spinbook import lens, sphere
from spinbook.entropy_production import vector_delayed_correlations
from spinbook.precision import enable_x64
from spinbook.vector import closure, mean_field

__all__ = ["BETAS", "HEADS", "LAWS", "MEANS", "collect", "collect_order", "heads", "measure", "order"]

BETAS = (1.0, 2.0, 4.0)
LAWS = ("columns alike", "with P", "linear", "one mode", "closure")
"""The order of ``predicted``."""
MEANS = ("naive", "TAP", "spread", "closure")
"""The order of ``means``."""
HEADS = ((1, 3), (2, 9), (3, 5), (4, 1), (5, 8), (6, 12))
"""Layer and head, counted from one, whose couplings give the order in 1 / D."""
_DIMS = (8, 16, 32, 64, 128)
WINDOW = 3


class Sizes(NamedTuple):
    """Replicas of each half, their steps, and steps before these that do not count."""

    replicas: int = 32
    steps: int = 60
    transient: int = 30


class _Task(NamedTuple):
    part: str
    network: str
    layer: int
    beta: float


def heads(network: str, layer: int, folder: Path, path: str | None = None, text: str | None = None) -> list[Any]:
    """The attention (N, N) and the fields (N, d) of every head of a layer of "encoder" or "causal" on the window."""
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        if network == "encoder":
            traces = encoder.run(runs._windows(path, text, runs.FULL.windows)[WINDOW], runs._encoder("trained", path))
        else:
            model = causal._network("trained", folder, transient.ALL)
            traces = causal.run(causal.windows(transient.ALL, runs.FULL.windows)[WINDOW][:-1], model)
        t = traces[layer]
        J, v = np.asarray(t.attention, float), np.asarray(t.values, float)
    squared = np.mean(np.sum(v**2, -1), axis=-1)[:, None, None]
    return list(
        zip(J / J.sum(-1, keepdims=True), v * np.sqrt(sphere.squared_radius(v.shape[-1]) / squared), strict=True)
    )


def _naive(J: np.ndarray, x: np.ndarray, beta: float, step: Any) -> np.ndarray:
    # Of naive updates one head takes 300 and a few; what TAP's do not reach by then they do not reach.
    most = 3000 if step is fidelity.STEPS["naive"] else 300
    steady = mean_field.steady_state(J, x, beta=beta, step=step, max_steps=most)
    return np.where(steady.converged, np.asarray(steady.value), np.nan)


def measure(key: Any, J: np.ndarray, x: np.ndarray, beta: float, sizes: Sizes) -> dict[str, Any]:
    """What sampling says of a head, and what was foreseen.

    ``delayed`` (2,): the squared relative error of naive delayed correlations, with its standard error; ``left`` (2,):
    the same of the closure's; ``means`` (4,): squared relative errors of ``MEANS``; ``predicted`` (5,): the relative
    error of naive delayed correlations by ``LAWS``; ``predicted_means``: that of naive means by the closure; ``sigma``
    (2,): the irreversibility of the sampled spins and its standard error; ``sigma_closure`` and ``sigma_naive``: by
    theory; ``forgotten``: the squared distance of the halves over what their scatter lets expect.
    """
    options = {"replicas": sizes.replicas, "steps": sizes.steps, "transient": sizes.transient}
    halves = fidelity.sampled(key, J, x, beta=beta, delayed=True, **options)
    means, delayed = (np.asarray(part, float) for part in halves)
    a, b = means.mean(1)
    states = {name: _naive(J, x, beta, fidelity.STEPS[name]) for name in ("naive", "TAP")}
    states["spread"] = fidelity.spread_means(J, x, beta=beta)
    found = closure.steady_state(J, x, beta=beta)
    lost = 0.0 if bool(found.converged) else np.nan
    states["closure"], D = (np.asarray(z) + lost for z in (found.magnetizations, found.delayed_correlations))
    m = states["naive"]
    theta = x + J @ m
    naive = np.asarray(vector_delayed_correlations(J, theta, theta, beta=beta, response=sphere.exact))
    law = lens.sink_law(J, m, beta=beta)
    odd = beta * (J - J.T)
    return {
        "delayed": jackknife(squared_error(naive), delayed),
        "left": jackknife(squared_error(D), delayed),
        "means": [squared_error(states[name])(a, b) for name in MEANS],
        "predicted": [
            law.uniform,
            law.with_sinks,
            law.linear,
            law.one_mode,
            np.linalg.norm(D - naive) / np.linalg.norm(D),
        ],
        "predicted_means": np.linalg.norm(states["closure"] - m) / np.linalg.norm(states["closure"]),
        "sigma": jackknife(lambda c, d: float(np.sum(odd * (c + d) / 2)), delayed),
        "sigma_closure": np.sum(odd * D),
        "sigma_naive": np.sum(odd * naive),
        "forgotten": forgotten(means),
    }


def order(J: np.ndarray, x: np.ndarray, beta: float, sizes: Sizes, seed: int) -> np.ndarray:
    """Squared relative errors that the closure and naive theory leave, with standard errors, at each D (5, 2, 2).

    Couplings are kept, and fields are as long as they were, in units of R, in random directions.
    """
    found = []
    for dim in _DIMS:
        rng = np.random.default_rng([seed, dim])
        u = rng.normal(size=(len(J), dim))
        u *= (np.linalg.norm(x, axis=1) / sphere.radius(x.shape[1]) * sphere.radius(dim) / np.linalg.norm(u, axis=1))[
            :, None
        ]
        options = {"replicas": sizes.replicas, "steps": sizes.steps, "transient": sizes.transient}
        halves = fidelity.sampled(jax.random.key(rng.integers(2**31)), J, u, beta=beta, delayed=True, **options)
        D = np.asarray(closure.steady_state(J, u, beta=beta).delayed_correlations)
        theta = u + J @ _naive(J, u, beta, fidelity.STEPS["naive"])
        naive = np.asarray(vector_delayed_correlations(J, theta, theta, beta=beta, response=sphere.exact))
        delayed = np.asarray(halves.delayed, float)
        found.append([jackknife(squared_error(theory), delayed) for theory in (D, naive)])
    return np.array(found)


def _done(task: _Task, sizes: Sizes, folder: Path, path: str | None, text: str | None) -> dict[str, np.ndarray]:
    chosen = heads(task.network, task.layer, folder, path, text)
    with enable_x64(True):
        if task.part == "order":
            h = dict(HEADS)[task.layer + 1] - 1
            J, x = chosen[h]
            return {"order": order(J, x, task.beta, sizes, task.layer)}
        key = jax.random.key(1000 * task.layer + int(10 * task.beta) + (task.network == "causal"))
        rows = [measure(jax.random.fold_in(key, h), J, x, task.beta, sizes) for h, (J, x) in enumerate(chosen)]
    return {name: np.array([row[name] for row in rows], float) for name in rows[0]}


def _all(
    chosen: list[_Task],
    name: str,
    growing: records.Growing,
    sizes: Sizes,
    path: str | None,
    text: str | None,
    **options: Any,
) -> dict[Any, Any]:
    """Every task with its arrays; what is done lies in a folder of this name beside the record."""
    assert growing.path is not None
    run = partial(_done, sizes=sizes, folder=growing.path.parent, path=path, text=text)
    kept = growing.beside(f"spins-{name}")
    return dict(records.runs(run, chosen, list(sizes), folder=kept, label=name, **options))


def _digest(plan: str | Path | None) -> str | None:
    return hashlib.sha256(Path(plan).read_bytes()).hexdigest() if plan is not None else None


def collect(
    folder: str | Path,
    *,
    sizes: Sizes | None = None,
    path: str | None = None,
    text: str | None = None,
    plan: str | Path | None = None,
    networks: tuple[str, ...] = ("encoder", "causal"),
    **options: Any,
) -> dict[str, Any]:
    """The record, also written to ``spins.json.gz`` in ``folder``; arguments as in ``runs.collect``.

    ``networks`` may be measured one after the other, since what is done is kept.
    """
    sizes, digest, growing = sizes or Sizes(), _digest(plan), records.Growing.at(folder, "spins.json.gz")
    body: dict[str, Any] = {}
    for name in networks:
        tasks = [[_Task("heads", name, k, beta) for k in range(6)] for beta in BETAS]
        found = _all([task for row in tasks for task in row], name, growing, sizes, path, text, **options)
        cells = [[found[task] for task in row] for row in tasks]
        body[name] = {key: records.numbers([[cell[key] for cell in row] for row in cells], 4) for key in cells[0][0]}
    record = {"format": 1, "sizes": sizes._asdict(), "betas": list(BETAS), "plan": digest}
    return growing.write(record | {"networks": body, "complete": True})


def collect_order(
    folder: str | Path,
    *,
    sizes: Sizes | None = None,
    path: str | None = None,
    text: str | None = None,
    plan: str | Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The record of the order in 1 / D, also written to ``order.json.gz`` in ``folder``; as ``collect``."""
    sizes, digest, growing = sizes or Sizes(), _digest(plan), records.Growing.at(folder, "order.json.gz")
    tasks = [_Task("order", "encoder", layer - 1, 2.0) for layer, _ in HEADS]
    found = _all(tasks, "order", growing, sizes, path, text, **options)
    left = records.numbers([found[task]["order"] for task in tasks], 4)
    record = {"format": 1, "sizes": sizes._asdict(), "dims": list(_DIMS), "plan": digest}
    return growing.write(record | {"heads": [list(head) for head in HEADS], "left": left, "complete": True})
