"""The recorded run of the lens on the encoder, with its controls, and what both networks share of it.

It needs the files of ``encoder.FILES`` and of ``datasets.moby_dick``. Every task is kept in the folder of the record,
and the same command goes on where it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from experiments import encoder, records
from experiments.datasets import moby_dick
from experiments.encoder import Encoder, Layer, Trace
from experiments.lens_record import NETWORKS, echoes, jacobians, packed
from experiments.vector import fidelity
from spinbook import lens, lyapunov, sphere
from spinbook.entropy_production import vector_delayed_correlations
from spinbook.precision import enable_x64
from spinbook.vector import mean_field

__all__ = [
    "FULL",
    "QUICK",
    "Sizes",
    "collect",
    "control",
    "gamma",
    "long_keys",
    "measured",
    "of_jacobians",
    "rest",
    "spins",
    "write_sample",
]

_ARTIFACT = "lens.json.gz"
_LENGTHS = "share total_variation qk_norm"
_ABLATIONS = {"no residual": (False, True, True), "no division": (True, False, True), "no forward": (True, True, False)}
_SINKS = ("without [CLS]", "value zero", "mean contribution", "another value zero")
_PARTS = ("layer", "attention", "forward")
_THEORIES = ("naive", "TAP", "spread")


class Sizes(NamedTuple):
    """Windows of cheap measures, of Jacobians and of what is costliest; steps of exponents; replicas of spins."""

    windows: int = 32
    jacobians: int = 8
    few: int = 2
    transient: int = 300
    steps: int = 200
    replicas: int = 32


FULL, QUICK = Sizes(), Sizes(2, 1, 1, 4, 4, 8)


class _Task(NamedTuple):
    part: str
    network: str
    number: int


@cache
def _encoder(name: str, path: str | None) -> Encoder:
    return control(name, encoder.load(path))


@cache
def _windows(path: str | None, text: str | None, number: int) -> np.ndarray:
    ids = encoder.tokenizer(path).encode(moby_dick.load(text), add_special_tokens=False).ids
    return encoder.windows(ids, number)


def control(name: str, trained: Encoder, seed: int = 0) -> Encoder:
    """One of ``NETWORKS``: "fresh" as the network is initialised, "shuffled" with permuted entries of every matrix.

    The matrices of the layers are shuffled; embeddings, offsets and gains stay. Other names give the network itself.
    """
    rng = np.random.default_rng(seed)

    def fresh(weights: Array) -> Array:
        return jnp.asarray(rng.normal(scale=0.02, size=weights.shape), weights.dtype)

    def layer(old: Layer) -> Layer:
        new = []
        for field, (W, b) in zip(old._fields, old, strict=True):
            if name == "fresh":
                norm = field.endswith("norm")
                new.append((jnp.ones_like(W) if norm else fresh(W), jnp.zeros_like(b)))
            else:
                new.append((W if W.ndim == 1 else jnp.asarray(rng.permuted(np.asarray(W).ravel()).reshape(W.shape)), b))
        return Layer(*new)

    if name not in ("fresh", "shuffled"):
        return trained
    layers = tuple(layer(old) for old in trained.layers)
    if name == "shuffled":
        return trained._replace(layers=layers)
    ones = jnp.ones_like(trained.norm[0]), jnp.zeros_like(trained.norm[1])
    return Encoder(fresh(trained.words), fresh(trained.places), ones, layers)


def _added(x: Array, layer: Layer) -> Array:
    return encoder.block(x, layer).outputs - x


def _attended(x: Array, layer: Layer) -> Array:
    return encoder.block(x, layer).attended


def _outputs(x: Array, layer: Layer) -> Array:
    return encoder.block(x, layer).outputs


def gamma(queries: Array, keys: Array) -> np.ndarray:
    """mean_ij |q_i| |k_j| / sqrt(d), the inverse temperature that multiplies the cosine of query and key.

    >>> float(gamma(2 * np.ones((3, 4)), np.ones((3, 4))))
    4.0
    """
    q, k = (np.linalg.norm(np.asarray(x, float), axis=-1).mean(-1) for x in (queries, keys))
    return np.asarray(q * k / np.sqrt(queries.shape[-1]))


def long_keys(keys: Array, attention: Array, mask: np.ndarray | None = None) -> np.ndarray:
    """The correlation, over tokens j, of ln |k_j| with ln (sum_i J_ij / sum_i E_ij): do long keys get more attention?

    E_ij is what i gives if it attends alike to all that it sees, which ``mask`` says.

    >>> J = np.tile([0.1, 0.2, 0.7], (3, 1))
    >>> float(long_keys(J.T, J).round(6))
    1.0
    """
    k, J = np.asarray(keys, float), np.asarray(attention, float)
    seen = np.ones(J.shape[-2:]) if mask is None else mask.astype(float)
    x, y = np.log(np.linalg.norm(k, axis=-1)), np.log(J.sum(-2) / (seen / seen.sum(-1, keepdims=True)).sum(-2))
    x, y = (z - z.mean(-1, keepdims=True) for z in (x, y))
    return np.asarray(np.sum(x * y, -1) / np.sqrt(np.sum(x**2, -1) * np.sum(y**2, -1)))


def measured(
    traces: Sequence[Trace],
    layers: Sequence[Any],
    outputs: Callable[[Array, Any], Array],
    number: int,
    mask: np.ndarray | None = None,
) -> dict[str, Any]:
    """Measures of all heads and layers on one window; ``outputs(x, layer)`` is what a layer makes of its states."""
    states = [traces[0].inputs, *(t.outputs for t in traces)]
    by_head = lens.measure([t.attention[None] for t in traces], [x[None] for x in states])
    found = {str(name): np.asarray(values[0]) for name, values in by_head.data_vars.items()}
    rows: dict[str, list[Any]] = {}
    for layer, t in zip(layers, traces, strict=True):
        lengths = lens.key_lengths(t.queries, t.keys, mask=mask)
        sizes = np.linalg.norm(np.asarray(t.values, float), axis=-1)
        middle, forward = np.asarray(t.middle, float), np.asarray(t.forward, float)
        cosine = (middle * forward).sum(-1) / np.linalg.norm(middle, axis=-1) / np.linalg.norm(forward, axis=-1)
        for name, value in {
            **dict(zip(_LENGTHS.split(), lengths, strict=True)),
            "long_keys": long_keys(t.keys, t.attention, mask=mask),
            "gamma": gamma(t.queries, t.keys),
            "first_value": sizes[:, 0] / sizes[:, 1:].mean(-1),
            "first_own": t.attention[:, 0, 0],
            "first_share": lens.stationary(t.attention)[:, 0],
            "growth": jacobians.growth(jax.random.key(number), outputs, t.inputs, (layer,), num_probes=4),
            "forward_cosine": cosine.mean(),
        }.items():
            rows.setdefault(name, []).append(np.asarray(value))
    return found | {name: np.stack(values) for name, values in rows.items()}


def _heads(network: Encoder, tokens: np.ndarray, number: int, keep: bool) -> dict[str, Any]:
    """What ``measured`` has, and what the regression needs."""
    traces = encoder.run(tokens, network)
    found = measured(traces, network.layers, _outputs, number)
    if keep:
        found["echoes"] = np.array([_echoes(network, traces, k) for k in range(len(traces) - 1)], np.float32)
    return found


def _centred(x: np.ndarray) -> np.ndarray:
    return x - x.mean(-1, keepdims=True)


def _echoes(network: Encoder, traces: Sequence[encoder.Trace], k: int) -> list[np.ndarray]:
    """Output and input of the feed-forward network of layer k, the induced term and the echo, (4, N, D)."""
    layer, following = network.layers[k], network.layers[k + 1]
    t = traces[k]
    got = echoes.contributions(t.attention, t.values, layer.from_values[0])
    # With the divisors of both normalisations as they are, what a token holds of another goes on linearly.
    divisors = [np.asarray(s, float).std(-1)[:, None, None] for s in (t.inputs + t.attended, t.middle + t.forward)]
    gains = [np.asarray(norm[0], float) for norm in (layer.first_norm, layer.second_norm)]
    given = got
    for divisor, gain in zip(divisors, gains, strict=True):
        given = gain * _centred(given) / divisor
    back = echoes.echo(given, traces[k + 1].attention, following.to_values[0], following.from_values[0])
    induced = got.sum(1) - got[np.arange(len(got)), np.arange(len(got))]
    return [np.asarray(t.forward), np.asarray(t.middle), induced, back]


def of_jacobians(parts: Sequence[Sequence[tuple[Any, Array, Any]]], number: int) -> dict[str, Any]:
    """Antisymmetric shares (L, parts) and their errors over probes, of functions of states and a layer."""
    key = jax.random.key(number)
    found = [[jacobians.antisymmetric_share(key, f, x, (layer,)) for f, x, layer in row] for row in parts]
    return {"antisymmetric": np.array(found)[..., 0], "antisymmetric_error": np.array(found)[..., 1]}


def rest(outputs: Callable[[Array], Array], start: Array, sizes: Sizes) -> dict[str, Any]:
    """A layer applied to its own output: exponent and error, last step, and how far one application goes."""
    shape, start = start.shape[1:], start.reshape(len(start), -1)

    def f(x: Array, _: Any) -> Array:
        return outputs(x.reshape(shape)).ravel()

    found = lyapunov.exponents(f, start, steps=sizes.steps, transient=sizes.transient, num_exponents=1, num_blocks=4)
    end = jnp.asarray(found.end)
    after, first = (jax.vmap(lambda x: f(x, ()))(x) for x in (end, start))
    norms = partial(jnp.linalg.norm, axis=-1)
    return {
        "exponent": found.exponents[:, 0],
        "exponent_error": found.standard_errors[:, 0],
        "last_step": norms(after - end) / norms(end),
        "way": 1 - norms(first - end) / norms(start - end),
        "end_cosine": lens.token_cosine(end.reshape(len(start), *shape)),
    }


def spins(traces: Sequence[Trace], number: int, replicas: int) -> dict[str, Any]:
    """Each head of each layer as spins: errors of means (L, H, theories) and of delayed correlations, and laws."""
    rows: list[list[dict[str, Any]]] = []
    with enable_x64(True):
        for k, t in enumerate(traces):
            key = jax.random.key(100 * number + k)
            heads = zip(np.asarray(t.attention, float), np.asarray(t.values, float), strict=True)
            rows.append([_one_head(jax.random.fold_in(key, h), J, v, replicas) for h, (J, v) in enumerate(heads)])
    return {name: np.array([[head[name] for head in row] for row in rows], float) for name in rows[0][0]}


def _one_head(key: Any, J: np.ndarray, values: np.ndarray, replicas: int) -> dict[str, Any]:
    J = J / J.sum(-1, keepdims=True)
    x = values * np.sqrt(sphere.squared_radius(values.shape[-1]) / np.mean(np.sum(values**2, -1)))
    halves = fidelity.sampled(key, J, x, beta=1.0, replicas=replicas, steps=60, transient=30, delayed=True)
    assert halves.delayed is not None
    (a, b), (c, d) = (np.asarray(values, float).mean(1) for values in (halves.means, halves.delayed))
    scatter = sum(np.var(np.asarray(half, float), axis=0, ddof=1).sum() / len(half) for half in halves.means)

    def relative(theory: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
        return float(np.sqrt(max(np.sum((theory - one) * (theory - other)), 0) / np.sum(one * other)))

    states = {}
    for name in ("naive", "TAP"):
        steady = mean_field.steady_state(J, x, beta=1.0, step=fidelity.STEPS[name], max_steps=300)
        states[name] = np.where(steady.converged, np.asarray(steady.value), np.nan)
    states["spread"] = fidelity.spread_means(J, x, beta=1.0)
    m = states["naive"]
    theta = x + J @ m
    D = np.asarray(vector_delayed_correlations(J, theta, theta, beta=1.0, response=sphere.exact))
    law = lens.sink_law(J, m, beta=1.0)
    return {
        "means": [relative(states[name], a, b) for name in _THEORIES],
        "delayed": relative(D, c, d),
        "law": [law.uniform, law.with_sinks, law.linear],
        "forgotten": np.sum((a - b) ** 2) / scatter,
    }


def _normalised(x: Array, norm: tuple[Array, Array], own: bool) -> Array:
    """Without a length of its own every token is divided by the root mean square of all standard deviations."""
    if own:
        return encoder.normalised(x, norm)
    off = x - x.mean(-1, keepdims=True)
    return norm[0] * off / jnp.sqrt(jnp.mean(off**2)) + norm[1]


@partial(jax.jit, static_argnames=("residual", "own", "forward", "sink"))
def _changed(
    x: Array, layer: Layer, residual: bool = True, own: bool = True, forward: bool = True, sink: str = ""
) -> Array:
    attention, _, _, v = encoder.attend(x, layer)
    if sink == "another value zero":
        v = v.at[:, 20].set(0)
    if sink == "value zero":
        v = v.at[:, 0].set(0)
    out = jnp.einsum("hij,hjd->hid", attention, v)
    if sink == "mean contribution":
        share = attention[..., 0]
        out = out + (share.mean(-1, keepdims=True) - share)[..., None] * v[:, :1]
    attended = encoder.from_heads(out) @ layer.from_values[0] + layer.from_values[1]
    x = _normalised(residual * x + attended, layer.first_norm, own)
    return _normalised(residual * x + forward * encoder.feed_forward(x, layer), layer.second_norm, own)


def _sentence(network: Encoder, tokens: np.ndarray, another: np.ndarray) -> dict[str, Any]:
    """Cosines by depth of what is left out (ablations, L + 1); cosines with the sentence as it is (L_SINKS + 1)."""
    start, found = encoder.embed(jnp.asarray(tokens), network), []
    for residual, own, forward in _ABLATIONS.values():
        states = [start]
        for layer in network.layers:
            states.append(_changed(states[-1], layer, residual, own, forward))
        found.append([float(lens.token_cosine(x)) for x in states])

    def direction(x: Array) -> np.ndarray:
        mean = np.asarray(x, float)[1:].mean(0)
        return mean / np.linalg.norm(mean)

    whole = encoder.run(tokens, network)[-1].outputs
    cosines, without = [], start[1:]
    alone = []
    for layer in network.layers:
        t = encoder.block(without, layer)
        alone.append(np.asarray(t.attention))
        without = t.outputs
    mean = np.asarray(without, float).mean(0)
    cosines.append(float(direction(whole) @ mean / np.linalg.norm(mean)))
    for sink in _SINKS[1:]:
        x = start
        for layer in network.layers:
            x = _changed(x, layer, sink=sink)
        cosines.append(float(direction(whole) @ direction(x)))
    cosines.append(float(direction(whole) @ direction(encoder.run(another, network)[-1].outputs)))
    pi = lens.stationary(np.stack(alone))
    return {
        "ablations": np.array(found),
        "sentence": np.array(cosines),
        "alone_concentration": lens.concentration(pi),
        "alone_first": pi[..., 0],
        "alone_last": pi[..., -1],
    }


def _done(task: _Task, sizes: Sizes, path: str | None, text: str | None) -> dict[str, Any]:
    network, all_windows = _encoder(task.network, path), _windows(path, text, sizes.windows)
    tokens = all_windows[task.number % len(all_windows)]
    if task.network == "other order":
        tokens = np.r_[tokens[:1], np.random.default_rng(task.number).permutation(tokens[1:-1]), tokens[-1:]]
    with jax.numpy_dtype_promotion("standard"):
        if task.part == "heads":
            return _heads(network, tokens, task.number, keep=task.network in ("trained", "shuffled"))
        if task.part == "jacobians":
            functions = (_added, "inputs"), (_attended, "inputs"), (encoder.feed_forward, "middle")
            pairs = zip(encoder.run(tokens, network), network.layers, strict=True)
            return of_jacobians([[(f, getattr(t, x), layer) for f, x in functions] for t, layer in pairs], task.number)
        if task.part == "rest":
            layer = network.layers[task.number]
            few = [encoder.run(window, network)[task.number].inputs for window in all_windows[: sizes.few]]
            return rest(lambda x: _outputs(x, layer), jnp.stack(few), sizes)
        if task.part == "spins":
            return spins(encoder.run(tokens, network), task.number, sizes.replicas)
        return _sentence(network, tokens, all_windows[(task.number + 1) % len(all_windows)])


def _tasks(sizes: Sizes, depth: int = 6) -> list[_Task]:
    tasks = [_Task("sentence", "trained", k) for k in range(sizes.windows)]
    tasks += [_Task("heads", network, k) for network in NETWORKS for k in range(sizes.windows)]
    tasks += [_Task("jacobians", network, k) for network in NETWORKS[:3] for k in range(sizes.jacobians)]
    tasks += [_Task("spins", "trained", k) for k in range(sizes.few)]
    return tasks + [_Task("rest", network, k) for network in NETWORKS[:3] for k in range(depth)]


def _regression(terms: np.ndarray) -> dict[str, Any]:
    """Of all windows (W, L, 4, N, D): first half fitted, second held out; and of outputs that do subtract the echo."""
    W, L, _, N, D = terms.shape
    fitted = np.repeat(np.arange(W) < W // 2, N)
    rows: dict[str, list[Any]] = {}
    for k in range(L):
        y, *x = np.moveaxis(terms[:, k], 1, 0).reshape(4, W * N, D).astype(float)
        size = [float(np.sqrt(np.mean(v**2))) for v in (y, *x)]
        cosine = np.sum(y * x[2], -1) / np.linalg.norm(y, axis=-1) / np.linalg.norm(x[2], axis=-1)
        found, planted = echoes.explained(y, x, fitted), echoes.explained(y - x[2], x, fitted)
        # Each group in turn is held out, and the scatter of what the others say gives the error.
        groups = np.arange(W * N) // N % min(8, W)
        left = np.array([echoes.explained(y, x, groups != g).coefficients for g in np.unique(groups)])
        for name, value in {
            "coefficients": found.coefficients,
            "coefficient_errors": np.sqrt((len(left) - 1) * left.var(axis=0)),
            "share": found.share,
            "without": found.without,
            "sizes": size,
            "echo_cosine": cosine.mean(),
            "planted_coefficients": planted.coefficients,
            "planted_share": planted.share,
            "planted_without": planted.without,
        }.items():
            rows.setdefault(name, []).append(value)
    return {name: records.numbers(values, 4) for name, values in rows.items()}


def collect(
    folder: str | Path,
    *,
    sizes: Sizes = FULL,
    path: str | None = None,
    text: str | None = None,
    plan: str | Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The record, also written to ``lens.json.gz`` in ``folder``, where each task is kept as soon as it is done.

    ``path`` and ``text`` are those of ``encoder.load`` and ``moby_dick.load``; ``plan`` a file whose SHA-256 is kept.
    """
    function = partial(_done, sizes=sizes, path=path, text=text)
    head = {"files": [f._asdict() for f in encoder.FILES]}
    described = [f.sha256 for f in encoder.FILES], list(sizes)
    return _collected(Path(folder) / _ARTIFACT, function, _tasks(sizes), sizes, head, plan, *described, **options)


def _collected(
    file: Path,
    function: Callable[[_Task], dict[str, Any]],
    tasks: Sequence[_Task],
    sizes: Sizes,
    head: Mapping[str, Any],
    plan: str | Path | None,
    *described: Any,
    **options: Any,
) -> dict[str, Any]:
    """The record of these tasks, which is written to ``file``; ``described`` as in ``records.runs``."""
    growing = records.Growing.at(file.parent, file.name)
    # As it is when the run begins: whatever is added to the page afterwards was no plan.
    digest = hashlib.sha256(Path(plan).read_bytes()).hexdigest() if plan is not None else None
    found = dict(records.runs(function, tasks, *described, folder=growing.beside("tasks"), label="lens", **options))
    body: dict[str, Any] = {}
    for name in NETWORKS:
        parts: dict[str, Any] = {}
        for part in ("heads", "jacobians", "spins", "sentence", "rest"):
            cells = [arrays for task, arrays in sorted(found.items()) if (task.part, task.network) == (part, name)]
            if not cells:
                continue
            stacked = {key: np.stack([cell[key] for cell in cells]) for key in cells[0]}
            if "echoes" in stacked:
                parts["regression"] = _regression(stacked.pop("echoes"))
            # Controls are kept as means over windows with their standard errors.
            if part == "heads" and name != "trained":
                n = np.sqrt(sizes.windows)
                stacked = {key: np.stack([v.mean(0), v.std(0, ddof=1) / n]) for key, v in stacked.items()}
            digits = 3 if part == "heads" else 4
            parts[part] = {key: records.numbers(v, digits) for key, v in stacked.items()}
        body[name] = parts
    record = {"format": 1, "sizes": sizes._asdict(), "plan": digest, **head}
    return growing.write(record | {"networks": body, "complete": len(found) == len(tasks)})


def write_sample(file: str | Path, *, path: str | None = None, text: str | None = None) -> None:
    """The file of ``lens_record.sample``, from windows 3 and 19 of the 32 of the plan."""
    network, chosen = encoder.load(path), _windows(path, text, FULL.windows)[[3, 19]]
    words = encoder.tokenizer(path)
    with jax.numpy_dtype_promotion("standard"):
        runs = [encoder.run(window, network) for window in chosen]
    tokens = np.array([[words.id_to_token(int(t)) for t in window] for window in chosen])
    depth = range(len(network.layers))
    arrays = {
        "states": [[run[0].inputs for run in runs], *([run[k].outputs for run in runs] for k in depth)],
        "queries": [[run[k].queries for run in runs] for k in depth],
        "keys": [[run[k].keys for run in runs] for k in depth],
    }
    content: dict[str, Any] = packed({name: np.asarray(values) for name, values in arrays.items()})
    np.savez_compressed(file, tokens=tokens, **content)
