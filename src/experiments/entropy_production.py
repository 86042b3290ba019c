"""Training runs of the source's announced experiments, many seeds and conditions at once.

All runs are in single precision and compiled together: conditions and seeds are lanes of one program, so that a number
that differs between conditions is an array here and never a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Int, PRNGKeyArray
from tqdm.auto import tqdm

from experiments import designs
from experiments.memory import MemoryModule, MemoryStack, causal
from spinbook import sphere, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.entropy_production.mean_field import driven_production

# More effort makes these programs no faster, and takes several times as long as running them.
_COMPILE_QUICKLY = {"xla_backend_optimization_level": 1}
# What runs briefly has ended before a faster program were compiled.
_COMPILE_PLAINLY = {"xla_backend_optimization_level": 0}

__all__ = [
    "Conditions",
    "Objectives",
    "RecallRun",
    "RecallTask",
    "Sculpture",
    "World",
    "learn_recall",
    "sculpt",
    "signal_share",
]


@designs.record()
class World(NamedTuple):
    """The surroundings of a module: ``num_sites`` sites, each with one of ``num_symbols`` symbols for ``steps`` steps.

    Symbols have embeddings of ``dim`` components and length R, which belong to the system and learn with it; the noise
    that is added to them does not. ``batch_size`` independent worlds are drawn for every update.
    """

    num_sites: int = 8
    num_symbols: int = 8
    dim: int = 16
    hidden_dim: int = 32
    batch_size: int = 8
    steps: int = 5


class Conditions(NamedTuple):
    """Lists of equal length, with an entry for each condition.

    ``direction``: 1 to maximise the entropy production, -1 to minimise it. ``noise``: its length relative to that of an
    embedding. ``memory``: 1 if the feed-forward network learns, 0 if it stays as it was drawn. ``masked``: 1 for a
    causal mask, 0 without mask.
    """

    direction: Float[ArrayLike, " C"]
    noise: Float[ArrayLike, " C"]
    memory: Float[ArrayLike, " C"]
    masked: Float[ArrayLike, " C"]


class Sculpture(NamedTuple):
    """Measures of the modules after each of ``updates`` (T,); all others (T, C, S), C conditions and S seeds.

    ``row_entropy``: of the attention of sites with a choice, divided by its largest value. ``diagonal``: the attention
    of such a site to itself. ``entropy_production``: per site and step, in nats. ``asymmetry``: the mean over
    sites of sum_j (J_ij - J_ji)^2 / 2. ``freedom``: the weighted mean of T_ij = tr Var_i Var'_j, divided by D / 4,
    which is that of spins without a field. ``length``: of the outputs, divided by R. ``alignment``: the mean cos^2
    between the outputs of different sites. ``clustering``: the same between embeddings of different symbols, 1 / D for
    random ones. ``signal``: the part of the variance of the outputs that the symbols explain, the rest being noise, by
    ``signal_share``.
    """

    updates: Int[np.ndarray, " T"]
    row_entropy: Float[np.ndarray, "T C S"]
    diagonal: Float[np.ndarray, "T C S"]
    entropy_production: Float[np.ndarray, "T C S"]
    asymmetry: Float[np.ndarray, "T C S"]
    freedom: Float[np.ndarray, "T C S"]
    length: Float[np.ndarray, "T C S"]
    alignment: Float[np.ndarray, "T C S"]
    clustering: Float[np.ndarray, "T C S"]
    signal: Float[np.ndarray, "T C S"]


def signal_share(first: Float[Array, " B *shape"], second: Float[Array, " B *shape"]) -> Float[Array, ""]:
    """(b - w) / (b + w): the part of the variance of the outputs due to the world; the rest is due to the noise.

    ``first`` and ``second`` are outputs in the same B worlds under two independent draws of the noise. With x_k and y_k
    those of world k, w = sum_k |x_k - y_k|^2 / (2 B) and b = 2 sum_k |(x_k + y_k) / 2 - their mean|^2 / (B - 1): the
    mean squares of a one-way analysis of variance. Both have the right expectation for any B, so that the share
    scatters around zero if outputs do not depend on the world; with sums around the sample mean it would scatter around
    -1 / (2 B - 1). NaN for B = 1. For compiled code, and without checks. Source: this book.

    >>> world, noise = jnp.array([[1.0], [-1.0], [0.0]]), jnp.array([[0.1], [0.2], [-0.1]])
    >>> bool(signal_share(world + noise, world - noise) > 0.9), float(signal_share(world, world))
    (True, 1.0)
    """
    means, halves = (first + second) / 2, (first - second) / 2
    within = 2 * jnp.sum(halves**2) / len(means)
    between = 2 * jnp.sum((means - jnp.mean(means, axis=0)) ** 2) / (len(means) - 1)
    return (between - within) / (between + within)


class _Perceiver(eqx.Module):
    embedding: Array
    module: MemoryModule


def _single(tree: Any) -> Any:
    return jax.tree.map(lambda a: a.astype(jnp.float32) if eqx.is_inexact_array(a) else a, tree)


def _normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
    return jax.random.normal(key, shape, jnp.float32)


def _unit(x: Array) -> Array:
    return x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True) + 1e-12)


def _perceiver(key: PRNGKeyArray, world: World, beta: float) -> _Perceiver:
    a, b = jax.random.split(key)
    module = MemoryModule(world.dim, hidden_dim=world.hidden_dim, beta=beta, key=b)
    return _single(_Perceiver(_normal(a, (world.num_symbols, world.dim)), module))


def _mask(masked: Array, num_sites: int) -> Array:
    return causal(num_sites) | (masked < 0.5)


def _live(net: _Perceiver, world: World, symbols: Array, noise: Array, mask: Array) -> tuple[Array, Array, Array]:
    """Outputs, couplings and entropy production of all steps of one world: symbols (N,), noise (steps, N, D).

    The first two steps still depend on the start at rest, and are left out.
    """
    J, states = net.module.driven(
        sphere.radius(world.dim) * _unit(net.embedding[symbols]) + noise, mask, steps=world.steps
    )
    theta = states.effective_fields[2:]
    sigma = jax.vmap(driven_production, (0, 0, 0, None))(J[2:], theta[1:], theta[:-1], net.module.beta)
    return states.magnetizations[3:], J[2:], sigma


def _draw(key: PRNGKeyArray, world: World, noise: Array) -> tuple[Array, Array]:
    a, b = jax.random.split(key)
    symbols = jax.random.randint(a, (world.batch_size, world.num_sites), 0, world.num_symbols, jnp.int32)
    shape = (world.batch_size, world.steps, world.num_sites, world.dim)
    # A vector of independent components of this width is as long as an embedding.
    width = noise * (sphere.radius(world.dim) / world.dim**0.5)
    return symbols, width * _normal(b, shape)


def _production(net: _Perceiver, key: PRNGKeyArray, world: World, condition: Any) -> Array:
    symbols, noise = _draw(key, world, condition.noise)
    mask = _mask(condition.masked, world.num_sites)
    sigma = jax.vmap(lambda s, e: _live(net, world, s, e, mask))(symbols, noise)[2]
    return jnp.mean(sigma) / world.num_sites


def _look(net: _Perceiver, key: PRNGKeyArray, world: World, condition: Any) -> tuple[Array, ...]:
    """The fields of ``Sculpture``, for one lane."""
    symbols, first = _draw(key, world, condition.noise)
    second = _draw(jax.random.fold_in(key, 1), world, condition.noise)[1]
    mask = _mask(condition.masked, world.num_sites)
    live = jax.vmap(jax.vmap(lambda s, e: _live(net, world, s, e, mask)), (None, 0))
    (m, again), (J, _), (sigma, _) = live(symbols, jnp.stack([first, second]))
    n, dim = world.num_sites, world.dim
    choices = jnp.sum(mask, axis=-1)
    chooses = (choices > 1) / jnp.sum(choices > 1)
    entropy = -jnp.sum(jnp.where(J > 0, J * jnp.log(jnp.where(J > 0, J, 1)), 0), axis=-1)
    relative = jnp.mean(entropy, axis=(0, 1)) / jnp.log(jnp.maximum(choices, 2))
    asymmetry = jnp.sum((J - jnp.swapaxes(J, -1, -2)) ** 2, axis=(-2, -1)) / 2
    freedom = jnp.mean(sigma) / (net.module.beta**2 * jnp.mean(asymmetry) * dim / 4)
    u, e = _unit(m), _unit(net.embedding)
    apart, different = ~np.eye(n, dtype=bool), ~np.eye(world.num_symbols, dtype=bool)
    alignment = jnp.mean(((u @ jnp.swapaxes(u, -1, -2)) ** 2)[..., apart])
    length = jnp.mean(jnp.sqrt(jnp.sum(m * m, axis=-1))) / sphere.radius(dim)
    return (
        jnp.sum(chooses * relative),
        jnp.sum(chooses * jnp.mean(jnp.diagonal(J, axis1=-2, axis2=-1), axis=(0, 1))),
        jnp.mean(sigma) / n,
        jnp.mean(asymmetry) / n,
        freedom,
        length,
        alignment,
        jnp.mean(((e @ e.T) ** 2)[different]),
        signal_share(m[:, -1], again[:, -1]),
    )


def _scaled(module: MemoryModule, memory: Array | float) -> MemoryModule:
    """Gradients of a module: zero for beta, and those of the feed-forward network times ``memory``."""
    gradient = eqx.tree_at(lambda g: g.beta, module, jnp.zeros_like(module.beta))
    return eqx.tree_at(lambda g: g.memory, gradient, jax.tree.map(lambda a: memory * a, gradient.memory))


class _Lanes(NamedTuple):
    """One program for all lanes: functions that start, advance and measure a lane, and the records to measure at."""

    make: Callable[[PRNGKeyArray], Any]
    gradient: Callable[[Any, PRNGKeyArray, Any], tuple[Any, Any]]
    look: Callable[[Any, PRNGKeyArray, Any], Any]
    looks: Collection[int]
    updates: int
    learning_rate: float


def _stacked(rows: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *rows)


def _run(key: PRNGKeyArray, lanes: _Lanes, conditions: Any, num_seeds: int, records: int, progress: bool) -> Any:
    """What ``look`` sees at the records to look at, 0 being before the first update, as (looks, C, S) arrays,
    and what ``gradient`` reports of every block of updates, averaged over it: (records, C, S).
    """
    columns = [np.atleast_1d(np.asarray(column, np.float32)) for column in conditions]
    if any(column.ndim != 1 or column.shape != columns[0].shape for column in columns):
        raise ValueError(f"conditions: expected lists of equal length, got shapes {[c.shape for c in columns]}")
    if not all(np.all(np.isfinite(column)) for column in columns):
        raise ValueError("conditions: expected finite numbers")
    conditions = type(conditions)(*columns)
    seeds = jax.random.split(key, num_seeds)
    static = eqx.filter_eval_shape(lanes.make, seeds[0])
    rest = eqx.partition(static, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))[1]
    optimizer = optax.adam(lanes.learning_rate)

    def start(key: PRNGKeyArray) -> Any:
        arrays = eqx.filter(lanes.make(key), eqx.is_array)
        return arrays, optimizer.init(arrays)

    def block(state: Any, key: PRNGKeyArray, condition: Any, record: Array) -> Any:
        def update(state: Any, key: PRNGKeyArray) -> Any:
            arrays, moments = state
            gradient, report = lanes.gradient(eqx.combine(arrays, rest), key, condition)
            changes, moments = optimizer.update(eqx.filter(gradient, eqx.is_array), moments, arrays)
            return (optax.apply_updates(arrays, changes), moments), report

        keys = jax.random.split(jax.random.fold_in(key, record), lanes.updates)
        state, reports = jax.lax.scan(update, state, keys)
        return state, jax.tree.map(lambda a: jnp.mean(a, axis=0), reports)

    def view(state: Any, key: PRNGKeyArray, condition: Any, record: Array) -> Any:
        return lanes.look(eqx.combine(state[0], rest), jax.random.fold_in(key, record), condition)

    def compiled(function: Callable[..., Any], effort: dict[str, Any]) -> Callable[..., Any]:
        # One condition after the other: on some processors XLA's program for all conditions at once ends in a
        # segmentation fault while its gradient runs.
        over_seeds = jax.jit(jax.vmap(function, (0, 0, None, None)), compiler_options=effort)

        def over_conditions(state: Any, seeds: Any, conditions: Any, record: int) -> Any:
            rows = []
            for c in range(len(conditions[0])):
                condition = type(conditions)(*(column[c] for column in conditions))
                rows.append(over_seeds(jax.tree.map(lambda a, c=c: a[c], state), seeds, condition, record))
            return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)

        return over_conditions

    brief = lanes.updates * records <= 10
    advance = compiled(block, _COMPILE_PLAINLY if brief else _COMPILE_QUICKLY)
    look = compiled(view, _COMPILE_PLAINLY)
    # The optimiser mixes its integer counter with real numbers.
    with jax.numpy_dtype_promotion("standard"):
        begun = jax.jit(jax.vmap(start), compiler_options=_COMPILE_PLAINLY)(seeds)
        state = jax.tree.map(lambda a: np.stack([np.asarray(a)] * len(columns[0])), begun)
        seen, reported = [], []
        for record in tqdm(range(records + 1), disable=not progress, unit="block"):
            if record > 0:
                state, report = advance(state, seeds, conditions, record)
                reported.append(report)
            if record in lanes.looks:
                seen.append(look(state, seeds, conditions, 0))
    return _stacked(seen), _stacked(reported)


def _blocks(num_updates: int, num_records: int) -> tuple[int, int]:
    records = validate.count(num_records, "num_records", minimum=1)
    updates = validate.count(num_updates, "num_updates", minimum=1)
    if updates % records:
        raise ValueError(f"num_updates: expected a multiple of num_records, {records}, got {updates}")
    return updates // records, records


def sculpt(
    key: PRNGKeyArray,
    conditions: Conditions,
    world: World = World(),  # noqa: B008
    *,
    beta: float = 1.0,
    num_seeds: int = 4,
    num_updates: int = 300,
    num_records: int = 12,
    learning_rate: float = 3e-3,
    progress: bool = False,
) -> Sculpture:
    """parameters <- Adam(direction d<sigma>/d parameters): modules whose only aim is their entropy production.

    Every update sees a new batch of worlds once. The parameters are queries, keys, the memory unless frozen, and the
    embeddings; beta is constant. All measurements are made on the same further batch. A seed gives the same start and
    the same worlds under every condition, so that conditions can be compared in pairs.

    Raises ``ValueError`` for conditions of different lengths, NaN, beta <= 0, dim <= 2, a single world, and a number of
    updates that the number of records does not divide. Source: Bal (2026), sections "Vibe check" and "Model behavior in
    a noisy environment", which have no experiments.

    >>> up = Conditions(direction=[1.0], noise=[0.0], memory=[1.0], masked=[1.0])
    >>> run = sculpt(jax.random.key(0), up, World(3, 2, 4, 4, 2, 3), num_seeds=2, num_updates=2, num_records=1)
    >>> run.updates.tolist(), run.entropy_production.shape
    ([0, 2], (2, 1, 2))
    """
    key = validate.key(key)
    size, records = _blocks(num_updates, num_records)
    beta = float(validate.positive(beta, "beta", ndim=0))
    validate.count(world.batch_size, "batch_size", minimum=2)

    def gradient(net: _Perceiver, key: PRNGKeyArray, condition: Any) -> tuple[_Perceiver, Array]:
        def loss(net: _Perceiver) -> Array:
            return -condition.direction * _production(net, key, world, condition)

        value, slope = eqx.filter_value_and_grad(loss)(net)
        return eqx.tree_at(lambda g: g.module, slope, _scaled(slope.module, condition.memory)), value

    lanes = _Lanes(
        lambda key: _perceiver(key, world, beta),
        gradient,
        lambda net, key, condition: _look(net, key, world, condition),
        range(records + 1),
        size,
        learning_rate,
    )
    seen, _ = _run(key, lanes, conditions, validate.count(num_seeds, "num_seeds", minimum=1), records, progress)
    return Sculpture(size * np.arange(records + 1), *seen)


@designs.record(lag=validate.count)
class RecallTask(NamedTuple):
    """Recall: every site is to name the symbol ``lag`` sites before it, in a sequence that is shown once.

    ``depth`` modules in a row with a causal mask, ``steps`` time steps under a constant sequence.
    """

    num_sites: int = 8
    num_symbols: int = 8
    dim: int = 16
    hidden_dim: int = 32
    batch_size: int = 16
    steps: int = 3
    depth: int = 2
    lag: int = 2


class Objectives(NamedTuple):
    """Lists of equal length, with an entry for each way of learning.

    ``task``: 1 if the error of the last layer's readout reaches that layer. ``layer_task``: the same for every layer's
    own readout. ``through``: 1 if gradients pass from a layer to the one below. ``production``: the weight of the
    entropy production per site of every layer; positive weights maximise. Readouts always learn the task.
    """

    task: Float[ArrayLike, " C"]
    layer_task: Float[ArrayLike, " C"]
    through: Float[ArrayLike, " C"]
    production: Float[ArrayLike, " C"]


class RecallRun(NamedTuple):
    """Averages over the ``updates`` (T,) of each block, on sequences before they are learned from: (T, C, S).

    ``final_accuracy`` (C, S): of the last layer's readout after the last update; chance is 1 / num_symbols.
    ``accuracy``: the same during training. ``entropy_production``: per site, layer and step.
    """

    updates: Int[np.ndarray, " T"]
    final_accuracy: Float[np.ndarray, "C S"]
    accuracy: Float[np.ndarray, "T C S"]
    entropy_production: Float[np.ndarray, "T C S"]


class _Reader(eqx.Module):
    embedding: Array
    place: Array
    stack: MemoryStack
    readouts: tuple[eqx.nn.Linear, ...]


def _reader(key: PRNGKeyArray, task: RecallTask, beta: float) -> _Reader:
    keys = jax.random.split(key, 4)
    stack = MemoryStack(task.depth, task.dim, hidden_dim=task.hidden_dim, beta=beta, key=keys[2])
    readouts = tuple(eqx.nn.Linear(task.dim, task.num_symbols, key=k) for k in jax.random.split(keys[3], task.depth))
    embedding, place = _normal(keys[0], (task.num_symbols, task.dim)), _normal(keys[1], (task.num_sites, task.dim))
    return _single(_Reader(embedding, place, stack, readouts))


def _gate(x: Array, open_: Array) -> Array:
    """x, with its gradient times ``open_``."""
    return open_ * x + (1 - open_) * jax.lax.stop_gradient(x)


def _read(net: _Reader, task: RecallTask, symbols: Array, through: Array) -> tuple[list[Array], Array]:
    """The last magnetizations of every layer, and their entropy production per site."""
    x = (net.embedding[symbols] + net.place)[None]
    layers, sigmas = [], []
    for module in net.stack.modules:
        J, (m, theta) = module.driven(x, causal(task.num_sites), steps=task.steps)
        layers.append(m[-1])
        sigmas.append(driven_production(J[-1], theta[-1], theta[-2], module.beta))
        x = _gate(m[1:], through)
    return layers, jnp.mean(jnp.stack(sigmas)) / task.num_sites


def _errors(net: _Reader, key: PRNGKeyArray, task: RecallTask, goal: Any) -> tuple[Array, tuple[Array, Array]]:
    symbols = jax.random.randint(key, (task.batch_size, task.num_sites), 0, task.num_symbols, jnp.int32)
    layers, sigma = jax.vmap(lambda s: _read(net, task, s, goal.through))(symbols)
    wanted = symbols[:, : -task.lag]
    loss = -goal.production * jnp.mean(sigma) * task.depth
    for k, (m, readout) in enumerate(zip(layers, net.readouts, strict=True)):
        last = k == task.depth - 1
        features = _gate(m, jnp.maximum(goal.layer_task, goal.task) if last else goal.layer_task)
        logits = jax.vmap(jax.vmap(readout))(features)[:, task.lag :]
        loss = loss + jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, wanted))
    accuracy = jnp.mean((jnp.argmax(logits, axis=-1) == wanted).astype(jnp.float32))
    return loss, (accuracy, jnp.mean(sigma))


def learn_recall(
    key: PRNGKeyArray,
    objectives: Objectives,
    task: RecallTask = RecallTask(),  # noqa: B008
    *,
    beta: float = 1.0,
    num_seeds: int = 3,
    num_updates: int = 1000,
    num_records: int = 20,
    learning_rate: float = 3e-3,
    progress: bool = False,
) -> RecallRun:
    """parameters <- Adam(d loss / d parameters), loss = cross-entropies of the readouts - production x sigma.

    Objectives differ in which part of the loss reaches which parameters. The first ``lag`` sites have no symbol to name
    and are left out. Seeds and errors as for ``sculpt``, and a lag that leaves no site. Source: Bal
    (2026), section "Global coherence from local backpropagation", which has no experiment.

    >>> end_to_end = Objectives(task=[1.0], layer_task=[0.0], through=[1.0], production=[0.0])
    >>> small = RecallTask(num_sites=3, num_symbols=2, dim=4, hidden_dim=4, batch_size=2, lag=1)
    >>> learn_recall(jax.random.key(0), end_to_end, small, num_seeds=2, num_updates=2, num_records=1).accuracy.shape
    (1, 1, 2)
    """
    key = validate.key(key)
    size, records = _blocks(num_updates, num_records)
    beta = float(validate.positive(beta, "beta", ndim=0))
    validate.count(task.lag, "lag", minimum=1, maximum=task.num_sites - 1)

    def gradient(net: _Reader, key: PRNGKeyArray, goal: Any) -> tuple[_Reader, Any]:
        (_, report), slope = eqx.filter_value_and_grad(_errors, has_aux=True)(net, key, task, goal)
        modules = tuple(_scaled(module, 1.0) for module in slope.stack.modules)
        return eqx.tree_at(lambda g: g.stack.modules, slope, modules), report

    lanes = _Lanes(
        lambda key: _reader(key, task, beta),
        gradient,
        lambda net, key, goal: _errors(net, key, task._replace(batch_size=16 * task.batch_size), goal)[1][0],
        [records],
        size,
        learning_rate,
    )
    seeds = validate.count(num_seeds, "num_seeds", minimum=1)
    seen, (accuracy, sigma) = _run(key, lanes, objectives, seeds, records, progress)
    return RecallRun(size * np.arange(1, records + 1), seen[-1], accuracy, sigma)
