"""The reaction asked of the layer that could answer it: feed-forward k + 1 against what comes back in attention k + 1.

Definitions and answers are in the plan of the lens. ``python -m experiments.lens_record --network reaction --out
FOLDER`` writes ``reaction.json.gz``; the one beside this module is the record of the book.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments import encoder, records
from experiments.encoder import Encoder, Trace
from experiments.lens_record import echoes, runs

__all__ = ["DIRECTIONS", "NETWORKS", "SHIFTS", "collect", "parts"]

NETWORKS = ("trained", "shuffled", "fresh")
SHIFTS = (1, 7, 20)
DIRECTIONS = ("echo", "message 1", "message 7", "message 20", "input", "random")
"""The order of ``response``, and, without the last two, of ``ablation`` and ``sentence``."""
_ARTIFACT, _WINDOWS, _GROUPS = "reaction.json.gz", {"trained": 32, "shuffled": 8, "fresh": 8}, 8


class _Task(NamedTuple):
    network: str
    window: int


def _carried(x: np.ndarray, norm: Any, before: Any) -> np.ndarray:
    """What a part (..., N, D) of a sum becomes in its normalisation, with the divisor as it is."""
    off = x - x.mean(-1, keepdims=True)
    return np.asarray(norm[0] * off / np.asarray(before).std(-1)[:, None], np.float32)


def parts(network: Encoder, traces: Sequence[Trace], k: int) -> dict[str, np.ndarray]:
    """Of the feed-forward network of layer k + 1, (N, D) each: output, input, the parts of the input, and raw ones.

    ``echo`` is what attention k + 1 brings a token of its own message in attention k, ``message s`` what it brings by
    the same way of the message of the token s places on, ``induced`` all that it brings from others. ``raw`` ones are
    before the normalisation. Layers count from zero.
    """
    old, new = network.layers[k], network.layers[k + 1]
    s, t = traces[k], traces[k + 1]
    given = np.asarray(echoes.contributions(s.attention, s.values, old.from_values[0]), np.float32)
    for norm, before in ((old.first_norm, s.inputs + s.attended), (old.second_norm, s.middle + s.forward)):
        given = _carried(given.swapaxes(0, 1), norm, before).swapaxes(0, 1)
    N = len(given)
    J = np.asarray(t.attention) * (1 - np.eye(N, dtype=np.float32))
    values = (given.reshape(N * N, -1) @ np.asarray(new.to_values[0])).reshape(N, N, len(J), -1)
    W, found = np.asarray(new.from_values[0]), {}
    for shift in (0, *SHIFTS):
        back = np.einsum("hij,jihd->ihd", J, np.roll(values, -shift, axis=1), optimize=True).reshape(N, -1) @ W
        found["echo" if shift == 0 else f"message {shift}"] = back
    got = np.asarray(echoes.contributions(t.attention, t.values, new.from_values[0]), np.float32)
    found["induced"] = got.sum(1) - got[np.arange(N), np.arange(N)]
    carried = {name: _carried(x, new.first_norm, t.inputs + t.attended) for name, x in found.items()}
    raw = {f"raw {name}": found[name] for name in ("induced", "echo")}
    return {"output": np.asarray(t.forward), "input": np.asarray(t.middle)} | carried | raw


@jax.jit
def _along(x: Any, layer: Any, u: Any) -> tuple[Any, Any]:
    """sum u . F'(x) u / sum |u|^2, and the same with a finite step."""
    forward = partial(encoder.feed_forward, layer=layer)
    y, slope = jax.jvp(forward, (x,), (u,))
    size = jnp.sum(u * u)
    return jnp.sum(u * slope) / size, jnp.sum(u * (y - forward(x - u))) / size


def _sentence(network: Encoder, tokens: np.ndarray, removed: Sequence[np.ndarray]) -> np.ndarray:
    """The direction of the sentence when ``removed`` is taken out of what layers 2 to L hand to their networks."""
    x = encoder.embed(jnp.asarray(tokens), network)
    for k, layer in enumerate(network.layers):
        t = encoder.block(x, layer)
        middle = t.middle if k == 0 else t.middle - removed[k - 1]
        x = encoder.normalised(middle + encoder.feed_forward(middle, layer), layer.second_norm)
    mean = np.asarray(x, float)[1:].mean(0)
    return np.asarray(mean / np.linalg.norm(mean))


def _done(task: _Task, path: str | None, text: str | None) -> dict[str, np.ndarray]:
    network = runs._encoder(task.network, path)
    tokens = runs._windows(path, text, runs.FULL.windows)[task.window * runs.FULL.windows // _WINDOWS[task.network]]
    found: dict[str, list[Any]] = {}
    with jax.numpy_dtype_promotion("standard"):
        traces = encoder.run(tokens, network)
        all_parts = [parts(network, traces, k) for k in range(len(traces) - 1)]
        for k, part in enumerate(all_parts):
            vectors = np.stack([v.ravel() for v in part.values()]).astype(float)
            noise = jax.random.normal(jax.random.key(100 * task.window + k), part["input"].shape)
            directions = [noise if name == "random" else part[name] for name in DIRECTIONS]
            along = np.array([_along(part["input"], network.layers[k + 1], u) for u in directions])
            for name, value in {
                "gram": vectors @ vectors.T,
                "sums": np.stack([v.sum(0) for v in part.values()]).astype(float),
                "response": along[:, 0],
                "ablation": along[:4, 1],
            }.items():
                found.setdefault(name, []).append(value)
        whole = _sentence(network, tokens, [0 * p["echo"] for p in all_parts])
        turned = []
        for name in DIRECTIONS[:4]:
            scaled = [p[name] * np.linalg.norm(p["echo"]) / np.linalg.norm(p[name]) for p in all_parts]
            turned.append(float(whole @ _sentence(network, tokens, scaled)))
    return {name: np.array(values) for name, values in found.items()} | {"sentence": np.array(turned)}


def _fit(gram: np.ndarray, sums: np.ndarray, chosen: np.ndarray, columns: list[int], tokens: int) -> np.ndarray:
    """Coefficients of least squares of the first part on these ``columns``, with a constant vector, on the windows."""
    n = chosen.sum() * tokens
    total = sums[chosen].sum(0)
    centred = gram[chosen].sum(0) - total @ total.T / n
    return np.asarray(np.linalg.solve(centred[np.ix_(columns, columns)], centred[columns, 0]))


def _regressions(gram: np.ndarray, sums: np.ndarray, tokens: int = 64) -> dict[str, Any]:
    """Of all windows (W, L, 9, 9) and (W, L, 9, D): last coefficients with each of the parts, errors, shares."""
    names = ["output", "input", "echo", "message 1", "message 7", "message 20", "induced", "raw induced", "raw echo"]
    W, L = gram.shape[:2]
    first = np.arange(W) < W // 2
    rows: dict[str, list[Any]] = {"coefficients": [], "errors": [], "adds": []}
    for k in range(L):
        g, s = gram[:, k], sums[:, k]
        line: dict[str, list[float]] = {name: [] for name in rows}
        for last in (*DIRECTIONS[:4], "raw echo"):
            columns = [1, names.index("raw induced" if last == "raw echo" else "induced"), names.index(last)]
            a = _fit(g, s, first, columns, tokens)
            left = [_fit(g, s, np.arange(W) % _GROUPS != group, columns, tokens)[-1] for group in range(_GROUPS)]
            # What the part adds to the share of the squares of held-out tokens that is explained.
            n, mean = W // 2 * tokens, s[first].sum(0) / (W // 2 * tokens)
            total = s[~first].sum(0)
            held = g[~first].sum(0) - total @ mean.T - mean @ total.T + n * mean @ mean.T

            def unexplained(a: np.ndarray, columns: list[int], held: np.ndarray = held) -> float:
                weights = np.zeros(len(held))
                weights[0], weights[columns] = 1, -a
                return float(weights @ held @ weights / held[0, 0])

            less = _fit(g, s, first, columns[:2], tokens)
            for name, value in (
                ("coefficients", a[-1]),
                ("errors", np.sqrt((_GROUPS - 1) * np.var(left))),
                ("adds", unexplained(less, columns[:2]) - unexplained(a, columns)),
            ):
                line[name].append(float(value))
        for name in rows:
            rows[name].append(line[name])
    sizes = np.sqrt(np.einsum("wlkk->lk", gram) / (W * sums.shape[-1] * tokens))
    return rows | {"sizes": sizes, "names": names}


def collect(
    folder: str | Path,
    *,
    path: str | None = None,
    text: str | None = None,
    plan: str | Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The record, also written to ``reaction.json.gz`` in ``folder``; arguments as in ``runs.collect``."""
    digest = hashlib.sha256(Path(plan).read_bytes()).hexdigest() if plan is not None else None
    tasks = [_Task(name, k) for name in NETWORKS for k in range(_WINDOWS[name])]
    growing = records.Growing.at(Path(folder), _ARTIFACT)
    run = partial(_done, path=path, text=text)
    found = dict(records.runs(run, tasks, folder=growing.beside("reaction"), label="reaction", **options))
    body: dict[str, Any] = {}
    for name in NETWORKS:
        cells = [found[_Task(name, k)] for k in range(_WINDOWS[name])]
        stacked = {key: np.stack([cell[key] for cell in cells]) for key in cells[0]}
        regression = _regressions(stacked.pop("gram"), stacked.pop("sums"))
        names = regression.pop("names")
        body[name] = {key: records.numbers(v, 4) for key, v in stacked.items()}
        body[name]["regression"] = {key: records.numbers(v, 4) for key, v in regression.items()} | {"parts": names}
    return growing.write({"format": 1, "plan": digest, "networks": body, "complete": True})
