"""The recorded run on the network that is repeated, and on the same block with shuffled weights."""

from __future__ import annotations

import hashlib
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.sparse.linalg import LinearOperator, eigs

from experiments import records
from experiments.encoder import Layer
from experiments.lens_record import jacobians
from experiments.looped import mapping
from experiments.looped.network import Looped, apply, embed, filled_in, load, padded, tokens, trajectory
from experiments.vector import fidelity
from spinbook import lens, sphere
from spinbook.entropy_production import vector_delayed_correlations
from spinbook.lyapunov import exponents
from spinbook.precision import enable_x64
from spinbook.sweep import Processes
from spinbook.vector import mean_field
from spinbook.vector.closure import steady_state

__all__ = ["FEW", "FULL", "LENGTH", "PASSES", "QUICK", "READ", "Sizes", "collect", "shuffled"]

LENGTH, PASSES, READ, HEAD = 48, 12, 11, 5
"""Tokens at most; passes in use; the pass whose attention is read, from one, and its head, from zero."""
FEW = (
    "nitration",
    "Michael addition",
    "Claisen condensation",
    "amide from acid chloride",
    "Fischer esterification",
    "Diels-Alder reaction",
)
"""The six of costly measures; the first four, which are those of spins, have 37 tokens each."""
_KEPT = (*range(1, 25), 50, 100)
_LATE = 400
_SPECTRUM = (1, 6, 12, 400)
_WHOLE = ("concentration", "attended", "second_eigenvalue", "positional", "first_token")
_BETAS = (1.0, 2.0, 4.0)
_AXES = {"late_change": 1, "late_largest": 1, "late_neighbours": 1}
"""Where the reactions are, if not first."""


class _Task(NamedTuple):
    part: str
    network: str
    begin: int = 0


class Sizes(NamedTuple):
    """Reactions; those of exponents, in groups of eight; passes whose exponent is averaged, after 400; eigenvalues;
    reactions as spins; replicas."""

    reactions: int = 46
    exponents: int = 24
    steps: int = 400
    eigenvalues: int = 8
    spins: int = 2
    replicas: int = 32


FULL, QUICK = Sizes(), Sizes(6, 8, 8, 4, 1, 16)


def shuffled(network: Looped, seed: int = 0) -> Looped:
    """The network with the entries of every matrix of its block permuted; embeddings, offsets and gains stay."""
    rng = np.random.default_rng(seed)
    layer = Layer(
        *(
            (W if W.ndim == 1 else jnp.asarray(rng.permuted(np.asarray(W).ravel()).reshape(W.shape)), b)
            for W, b in network.layer
        )
    )
    return network._replace(layer=layer)


def _flat(layer: Layer) -> Any:
    """The pass as a function of one row of numbers and of the number of tokens."""

    def f(x: Array, number: Array) -> Array:
        return apply(x.reshape(LENGTH, -1), number, layer)[0].ravel()

    return f


def _norm(x: Any) -> np.ndarray:
    return np.asarray(jnp.sqrt(jnp.sum(jnp.asarray(x) ** 2, axis=(-1, -2))))


def _walk(x: Array, numbers: Array, layer: Layer, passes: int) -> dict[int, Any]:
    """States and attention of the passes that are kept; under 0 the last state and the changes of all passes."""
    kept: dict[int, Any] = {}
    changes, k = [], 0
    while k < passes:
        states, attention = trajectory(x, numbers, layer, 8)
        before = jnp.concatenate([x[None], states[:-1]])
        changes.append(_norm(states - before) / _norm(before))
        for i in range(8):
            if k + i + 1 in _KEPT:
                kept[k + i + 1] = states[i], np.asarray(attention[i])
        x, k = states[-1], k + 8
    return kept | {0: (x, np.concatenate(changes))}


def _spread(x: Array, numbers: Array, layer: Layer) -> np.ndarray:
    """Growth of a random disturbance in each of the first 24 passes, followed from pass to pass; (24, B)."""
    u = jnp.asarray(np.random.default_rng(1).normal(size=x.shape)) * (x != 0)
    one = jax.jit(jax.vmap(lambda x, u, n: jax.jvp(lambda x: apply(x, n, layer)[0], (x,), (u,))))
    rows = []
    for _ in range(24):
        x, after = one(x, u, numbers)
        rows.append(_norm(after) / _norm(u))
        u = after / jnp.asarray(_norm(after))[:, None, None]
    return np.array(rows)


@jax.jit
def _pushed(x: Array, u: Array, number: Array, layer: Layer) -> Array:
    return jax.jvp(lambda x: apply(x, number, layer)[0], (x,), (u,))[1]


def _eigenvalues(x: Array, number: Array, layer: Layer, count: int) -> np.ndarray:
    """The largest of f'(x), by modulus, as real and imaginary parts (count, 2); padding adds only zeros."""

    def product(v: np.ndarray) -> np.ndarray:
        return np.asarray(_pushed(x, jnp.asarray(v.reshape(x.shape)), number, layer)).ravel()

    operator = LinearOperator((x.size, x.size), matvec=product, dtype=float)
    start = np.random.default_rng(2).normal(size=x.shape) * np.asarray(x != 0)
    found = eigs(operator, count, v0=start.ravel(), tol=1e-6, return_eigenvectors=False, maxiter=400, ncv=4 * count)
    found = found[np.argsort(-np.abs(found))]
    return np.stack([found.real, found.imag], -1)


def _apart(x: Array, numbers: Array, layer: Layer, steps: int) -> np.ndarray:
    """The distance of two orbits that are a millionth apart at first, after every eighth pass, (B, steps / 8)."""
    noise = np.random.default_rng(3).normal(size=x.shape) * np.asarray(x != 0)
    y, found = x + jnp.asarray(1e-6 * noise * (_norm(x) / _norm(noise))[:, None, None]), []
    for _ in range(steps // 8):
        x, y = (trajectory(z, numbers, layer, 8)[0][-1] for z in (x, y))
        found.append(_norm(x - y) / _norm(x))
    return np.array(found).T


def _end(start: Array, numbers: Array, layer: Layer, sizes: Sizes) -> dict[str, np.ndarray]:
    """The largest exponent of each reaction from pass 400 on, and how nearly its orbit comes back within 64 passes."""
    rows = start.reshape(len(start), -1)
    number = jnp.asarray(numbers, start.dtype)
    found = exponents(_flat(layer), rows, number, steps=sizes.steps, transient=0, num_exponents=1, num_blocks=8)
    x, recent = jnp.asarray(found.end).reshape(start.shape), []
    for _ in range(8):
        recent.append(trajectory(x, numbers, layer, 8)[0])
        x = recent[-1][-1]
    last = jnp.concatenate(recent)
    back = np.array([_norm(last[-1] - last[-1 - p]) / _norm(last[-1]) for p in range(1, len(last))])
    return {
        "exponent": found.exponents[:, 0],
        "exponent_error": found.standard_errors[:, 0],
        "last_step": back[0],
        "period": back.argmin(0) + 1,
        "return": back.min(0),
    }


def _answers(kept: dict[int, Any], names: list[Any], graphs: list[Any]) -> dict[str, np.ndarray]:
    """Shares of atoms that are mapped right: by all heads and passes with both rules, (passes, heads, B)."""
    rules = {"largest": mapping.by_largest, "neighbours": mapping.by_neighbours}
    found: dict[str, Any] = {name: [] for name in rules}
    for k in kept:
        attention = kept[k][1]
        for name, rule in rules.items():
            heads = range(attention.shape[1]) if name == "largest" else (HEAD,)
            row = np.full((attention.shape[1], len(names)), np.nan)
            for h in heads:
                for b, (reaction, atoms) in enumerate(zip(names, graphs, strict=True)):
                    n = len(tokens(reaction.smiles))
                    chosen = rule(attention[b, h, :n, :n], atoms)
                    row[h, b] = mapping.share_right(chosen, reaction.atoms, atoms)
            found[name].append(row)
    return {name: np.array(rows) for name, rows in found.items()}


def _masked(network: Looped, ids: np.ndarray, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Is a masked token filled in right after k passes? Six a reaction: yes or no, and log-probabilities (K, B, 6)."""
    places = np.stack([np.linspace(1, n - 2, 6).round().astype(int) for n in numbers])
    all_ids = np.repeat(ids, 6, axis=0)
    flat, truth = places.ravel(), all_ids[np.arange(len(all_ids)), places.ravel()]
    all_ids[np.arange(len(all_ids)), flat] = network.vocabulary["[MASK]"]
    many = jnp.asarray(np.repeat(numbers, 6))
    single = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), network._replace(vocabulary={}))
    x = jax.vmap(lambda i, n: embed(i, n, single))(jnp.asarray(all_ids), many)
    step = jax.jit(jax.vmap(lambda x, n: apply(x, n, single.layer)[0]))
    right, logs = [], []
    for k in range(1, 25):
        x = step(x, many)
        if k in _KEPT:
            logits = filled_in(x[jnp.arange(len(x)), flat], single)
            right.append(np.asarray(logits.argmax(-1)) == truth)
            logs.append(np.asarray(jax.nn.log_softmax(logits)[jnp.arange(len(x)), truth]))
    shape = (-1, *places.shape)
    return {"masked": np.reshape(right, shape), "masked_log": np.reshape(logs, shape)}


def _stars(kept: dict[int, Any], names: list[Any]) -> dict[str, np.ndarray]:
    """Measures of heads in passes 1, 6, 11 and 12, means over reactions, and the attention of all to one token."""
    found: dict[str, Any] = {name: [] for name in (*_WHOLE, "star", "reversal")}
    lengths = [len(tokens(reaction.smiles)) for reaction in names]
    stars: list[str] = []
    for k in (1, 6, READ, 12):
        weights = [kept[k][1][b, :, :n, :n] for b, n in enumerate(lengths)]
        measured = [lens.measure([J[None]]) for J in weights]
        for name in _WHOLE:
            found[name].append(np.mean([m[name].values[0, 0] for m in measured], axis=0))
        found["reversal"].append(np.mean([lens.irreversibility(J) for J in weights], axis=0))
        heard = [J.mean(1) for J in weights]
        found["star"].append(np.mean([h.max(-1) for h in heard], axis=0))
        for h in range(weights[0].shape[0]):
            words = [tokens(r.smiles)[int(heard[b][h].argmax())] for b, r in enumerate(names)]
            stars.append(max(sorted(set(words)), key=words.count))
    return {name: np.array(rows) for name, rows in found.items()} | {"star_token": np.array(stars).reshape(4, -1)}


def _spins(kept: dict[int, Any], numbers: np.ndarray, layer: Layer, sizes: Sizes) -> dict[str, np.ndarray]:
    """Heads of the pass that is read, as spins: the sampled error of naive delayed correlations, its standard error
    and that which the closure predicts, and the closure's own; (reactions, betas, heads)."""
    found: dict[str, Any] = {name: [] for name in ("sampled", "sampled_error", "predicted", "closed", "forgotten")}
    for b in range(sizes.spins):
        n = int(numbers[b])
        _, J, v = (np.asarray(a) for a in apply(jnp.asarray(kept[READ - 1][0][b]), jnp.asarray(n), layer))
        rows = [[_one_head(J[h, :n, :n], v[h, :n], beta, 100 * b + h, sizes) for h in range(len(J))] for beta in _BETAS]
        for name, values in zip(found, np.moveaxis(np.array(rows), -1, 0), strict=True):
            found[name].append(values)
    return {name: np.array(rows) for name, rows in found.items()}


def _one_head(J: np.ndarray, values: np.ndarray, beta: float, number: int, sizes: Sizes) -> list[float]:
    J = J / J.sum(-1, keepdims=True)
    x = values * np.sqrt(sphere.squared_radius(values.shape[-1]) / np.mean(np.sum(values**2, -1)))
    key = jax.random.key(number)
    halves = fidelity.sampled(key, J, x, beta=beta, replicas=sizes.replicas, steps=60, transient=30, delayed=True)
    steady = mean_field.steady_state(J, x, beta=beta, step=fidelity.STEPS["naive"], max_steps=1000)
    theta = x + J @ np.where(steady.converged, np.asarray(steady.value), np.nan)
    naive = np.asarray(vector_delayed_correlations(J, theta, theta, beta=beta, response=sphere.exact))
    solved = steady_state(J, x, beta=beta)
    closed = np.where(solved.converged, np.asarray(solved.delayed_correlations), np.nan)
    delayed = np.asarray(halves.delayed, float)
    square, error = fidelity.jackknife(fidelity.squared_error(naive), delayed)
    sampled = np.sqrt(max(square, 0))
    own, _ = fidelity.jackknife(fidelity.squared_error(closed), delayed)
    predicted = np.linalg.norm(naive - closed) / np.linalg.norm(closed)
    apart = fidelity.forgotten(np.asarray(halves.means, float))
    return [sampled, error / (2 * max(sampled, 1e-9)), float(predicted), float(np.sqrt(max(own, 0))), apart]


def _added(x: Array, layer: Layer, number: Array) -> Array:
    after = apply(x, number, layer)[0]
    return jnp.where((after != 0).any(-1, keepdims=True), after - x, 0)


def _chosen(sizes: Sizes) -> list[mapping.Reaction]:
    """The reactions of the run, those of costly measures first."""
    return sorted(mapping.reactions(), key=lambda r: FEW.index(r.name) if r.name in FEW else len(FEW))[
        : sizes.reactions
    ]


def _done(task: _Task, sizes: Sizes, path: str | None) -> dict[str, Any]:
    """One part of the run, on one network."""
    with enable_x64(True), jax.numpy_dtype_promotion("standard"):
        network, names = load(path), _chosen(sizes)
        if task.network == "shuffled":
            network = shuffled(network)
        ids, numbers = padded([r.smiles for r in names], network.vocabulary, LENGTH)
        if task.part == "masked":
            return _masked(network, ids, numbers)
        few = slice(task.begin, task.begin + 8) if task.part == "end" else slice(0, len(FEW))
        if task.part != "path":
            names, ids, numbers = names[few], ids[few], numbers[few]
        count, layer = jnp.asarray(numbers), network.layer
        start = jax.vmap(lambda i, n: embed(i, n, network))(jnp.asarray(ids), count)
        last = {"spins": PASSES, "path": _KEPT[-1]}.get(task.part, _LATE)
        kept = _walk(start, count, layer, last)
        end, changes = kept.pop(0)
        if task.part == "end":
            after, attention = trajectory(end, count, layer, 1)
            graphs = [mapping.graph(r.smiles) for r in names]
            answers = _answers({_LATE: (after[0], np.asarray(attention[0]))}, names, graphs)
            late = {f"late_{name}": shares[0] for name, shares in answers.items()} | {"late_change": changes}
            nearby = {"apart": _apart(end, count, layer, sizes.steps)} if task == _Task("end", "trained") else {}
            return late | nearby | _end(end, count, layer, sizes)
        if task.part == "spins":
            return _spins(kept, numbers, layer, sizes)
        if task.part == "spectrum":
            kept, row = kept | {_LATE: (end, None)}, range(len(FEW))
            values = [[_eigenvalues(kept[k][0][b], count[b], layer, sizes.eigenvalues) for b in row] for k in _SPECTRUM]
            shares = []
            for x in (start, kept[5][0], kept[11][0]):
                key = jax.random.key(7)
                shares.append([jacobians.antisymmetric_share(key, _added, x[b], (layer, count[b])) for b in row])
            odd, error = np.moveaxis(np.array(shares), -1, 0)
            return {"spectrum": np.array(values), "antisymmetric": odd, "antisymmetric_error": error}
        graphs = [mapping.graph(r.smiles) for r in names]
        found: dict[str, Any] = {"change": changes, "growth": _spread(start, count, layer)} | _answers(
            kept, names, graphs
        )
        cosines = [lens.token_cosine(np.asarray(kept[PASSES][0][b][:n])) for b, n in enumerate(numbers)]
        return found | _stars(kept, names) | {"similar": np.array(cosines)}


def collect(
    out: str | Path, *, sizes: Sizes = FULL, path: str | None = None, plan: str | None = None, processes: int = 1
) -> dict[str, Any]:
    """Run every part, as many side by side, and write the record ``looped.json.gz`` to the folder."""
    begin, code = time.perf_counter(), records.commit()
    digest = hashlib.sha256(Path(plan).read_bytes()).hexdigest() if plan is not None else None
    tasks = [_Task("end", "trained", begin) for begin in range(0, sizes.exponents, 8)] + [_Task("end", "shuffled")]
    tasks += [_Task(part, "trained") for part in ("spectrum", "path", "spins", "masked")] + [_Task("path", "shuffled")]
    body: dict[str, dict[str, Any]] = {"trained": {}, "shuffled": {}}
    with Processes(processes) as executor:
        function = partial(_done, sizes=sizes, path=path)
        folder = Path(out) / "tasks"
        found = records.runs(function, tasks, sizes, folder=folder, label="looped", executor=executor)
        done: dict[_Task, dict[str, np.ndarray]] = {}
        for task, arrays in found:
            done[task] = arrays
            print(f"{(time.perf_counter() - begin) / 60:.1f} minutes: {task}", flush=True)
    for name, into in body.items():
        ends = [done[task] for task in tasks if task.part == "end" and task.network == name]
        both = {
            key: np.concatenate([part[key] for part in ends if key in part], axis=_AXES.get(key, 0)) for key in ends[0]
        }
        for arrays in (both, *(done[task] for task in tasks if task.part != "end" and task.network == name)):
            into |= {key: records.numbers(value, 3) for key, value in arrays.items()}
    record = {
        "format": 1,
        "plan": digest,
        "sizes": sizes._asdict(),
        "reactions": [r.name for r in _chosen(sizes)],
        "passes": list(_KEPT),
        "networks": body,
        "complete": sizes == FULL,
    } | records.circumstances(begin, code)
    records.write(Path(out) / "looped.json.gz", record)
    return record
