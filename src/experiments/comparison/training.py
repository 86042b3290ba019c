"""One training run of a module on a task, in JAX or PyTorch.

Both frameworks get the same: features made vectors by one linear map, learned positions added to them, answers read off
by one linear map from standardised vectors; the same start of these parts, the same batches in the same order, and Adam
with the same rates, gradients clipped to length 1. Single precision throughout, whatever the process is set to. Both
compute on an accelerator where their framework sees one.
"""

from __future__ import annotations

import contextlib
import math
import time
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from jaxtyping import Array, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from experiments.comparison import blocks, modules, torch_blocks
from experiments.comparison.modules import Module
from experiments.comparison.tasks import NOT_ASKED, Examples, Task
from spinbook import validate
from spinbook.precision import enable_x64

# More effort makes these programs no faster, and takes several times as long as running them.
_COMPILE_QUICKLY: Any = {"xla_backend_optimization_level": 1}
_BETAS, _EPSILON, _CLIP = (0.9, 0.999), 1e-8, 1.0
_CHUNK = 25
# Examples that are answered side by side, beyond which memory grows for nothing, and those a curve is made of.
_AT_ONCE, _WATCHED = 500, 500


class Recipe(NamedTuple):
    """``num_updates`` batches of ``batch`` examples: the same for every module, whatever its learning rate.

    The learning rate rises for a tenth of the updates and then falls to zero as a cosine. A run has failed as diverged
    if more than ``allowed_skips`` of its updates had no finite gradient, each of which was left out, and as not
    converged if more than ``allowed_unsolved`` of the test examples were left without a steady state. A run in which
    most examples of 25 updates have none is stopped.
    """

    num_updates: int = 300
    batch: int = 32
    allowed_skips: float = 0.1
    allowed_unsolved: float = 0.01


class Outcome(NamedTuple):
    """What a run came to. NaN where a number is not defined for the module, or could not be had.

    ``accuracy`` and ``validation_accuracy``: of answers, where an example without a steady state has only wrong ones.
    ``loss``: the mean over the last 25 updates, in nats. ``skipped``: the part of the updates without a finite
    gradient. ``unsolved_training`` and ``unsolved``: the parts of examples without a steady state, over all updates
    and in the test. ``seconds_per_update``, and ``time_ratio`` in units of the vanilla model of the same framework in
    turns with it. ``failure``: the reason, or "".
    """

    accuracy: float
    validation_accuracy: float
    loss: float
    skipped: float
    unsolved_training: float
    unsolved: float
    seconds_per_update: float
    time_ratio: float
    failure: str


class Score(NamedTuple):
    """Of examples: nats per answer, the share of right answers, the part of examples without a steady state.

    An example without a steady state, or with logits that are not finite, has only wrong answers, and the loss of a
    uniform guess.
    """

    loss: float
    accuracy: float
    unsolved: float


class Course(NamedTuple):
    """A run with its course. ``test`` and ``validation``: scores at the end; ``outcome`` as of ``train``.

    ``losses``: the training loss, the mean of each 25 updates. ``looks`` (3, looks): numbers of updates, and accuracy
    and loss of up to 500 examples for validation after them. ``network``: what was trained, from the features of an
    example to its logits and the ``Settled`` of the module; of many examples in PyTorch.
    """

    test: Score
    validation: Score
    outcome: Outcome
    losses: Float[np.ndarray, " chunks"]
    looks: Float[np.ndarray, "3 looks"]
    network: Any


_NO_SCORE = Score(math.nan, math.nan, math.nan)


def scored(logits: np.ndarray, converged: np.ndarray, labels: np.ndarray) -> Score:
    """Accuracy and loss on the labels that are asked for; what is not finite or did not converge counts as wrong."""
    asked = labels != NOT_ASKED
    sound = np.isfinite(logits).all(-1) & converged[:, None]
    right = (logits.argmax(-1) == labels) & sound
    finite = np.where(sound[..., None], logits, 0).astype(float)
    top = finite.max(-1)
    total = top + np.log(np.exp(finite - top[..., None]).sum(-1))
    chosen = np.take_along_axis(finite, np.where(asked, labels, 0)[..., None].astype(np.int64), axis=-1)[..., 0]
    return Score(
        loss=float((total - chosen)[asked].mean()),
        accuracy=float(right[asked].mean()),
        unsolved=float(1 - converged.mean()),
    )


def batches(num_examples: int, recipe: Recipe, *, seed: int) -> Int[np.ndarray, "updates batch"]:
    """Which examples each update sees: all of them once in random order, then again in another.

    >>> batches(100, Recipe(num_updates=3, batch=4), seed=0).shape
    (3, 4)
    """
    num_examples = validate.count(num_examples, "num_examples", minimum=1)
    needed = recipe.num_updates * recipe.batch
    rng = np.random.default_rng([validate.count(seed, "seed"), 1])
    rounds = [rng.permutation(num_examples) for _ in range(math.ceil(needed / num_examples))]
    return np.concatenate(rounds)[:needed].reshape(recipe.num_updates, recipe.batch).astype(np.int32)


def rate_profile(num_updates: int) -> Float[np.ndarray, " updates"]:
    """Learning rates in units of the largest: a linear rise over a tenth, then (1 + cos) / 2 down to zero.

    >>> rate_profile(20)[[0, 1, 2, 11]].round(1).tolist()
    [0.5, 1.0, 1.0, 0.5]
    """
    t = np.arange(validate.count(num_updates, "num_updates", minimum=1))
    rise = max(1, num_updates // 10)
    fall = (1 + np.cos(np.pi * (t - rise) / max(1, num_updates - rise))) / 2
    return np.where(t < rise, (t + 1) / rise, fall).astype(np.float32)


def shared_start(task: Task, dim: int, *, seed: int) -> dict[str, np.ndarray]:
    """Embedding, positions and readout as they are drawn for every module of this width, by name.

    >>> from experiments.comparison.tasks import recall
    >>> shared_start(recall(num_train=1), 8, seed=0)["positions"].shape
    (16, 8)
    """
    dim = validate.count(dim, "dim", minimum=1)
    rng = np.random.default_rng([validate.count(seed, "seed"), 0])
    arrays = {
        "embedding": rng.normal(size=(dim, task.num_features)),
        "positions": 0.5 * rng.normal(size=(task.num_sites, dim)),
        "readout": rng.normal(size=(task.num_classes, dim)) / math.sqrt(dim),
        "bias": np.zeros(task.num_classes),
    }
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _failure(recipe: Recipe, skipped: float, unsolved: float, error: str) -> str:
    if error:
        return error
    if skipped > recipe.allowed_skips:
        return f"diverged: {100 * skipped:.0f} % of the updates had no finite gradient"
    if not unsolved <= recipe.allowed_unsolved:
        return f"not converged: {100 * unsolved:.0f} % of the test examples"
    return ""


def _mean(values: Any) -> float:
    array = np.asarray(values, float)
    return float(array.mean()) if array.size and np.isfinite(array).all() else math.nan


class _Network(eqx.Module):
    """Features (sites, features) to logits (answers, classes)."""

    embedding: Array
    positions: Array
    readout: Array
    bias: Array
    block: Any
    answer_sites: tuple[int, ...] = eqx.field(static=True)
    normalized: bool = eqx.field(static=True)
    averaged: bool = eqx.field(static=True)

    def __call__(self, features: Array) -> tuple[Array, blocks.Settled]:
        found = self.block(features @ self.embedding.T + self.positions)
        read = found.value if self.averaged else found.value[jnp.asarray(self.answer_sites)]
        read = blocks.standardized(read) if self.normalized else read
        read = jnp.mean(read, axis=0, keepdims=True) if self.averaged else read
        return read @ self.readout.T + self.bias, found


def _network(module: Module, task: Task, dim: int, seed: int) -> _Network:
    start = {name: jnp.asarray(array) for name, array in shared_start(task, dim, seed=seed).items()}
    block = module.make(jax.random.key(seed), task.num_sites, dim)
    return _Network(
        start["embedding"],
        start["positions"],
        start["readout"],
        start["bias"],
        block,
        task.answer_sites,
        module.normalized,
        task.averaged,
    )


@lru_cache(maxsize=2)
def _on_device(task: Task) -> tuple[Array, Array]:
    """The examples to learn from, once for all modules."""
    return jnp.asarray(task.train.features), jnp.asarray(task.train.labels)


class _JaxProgram:
    """The compiled functions of a module on a task: shared by all seeds and learning rates."""

    failures: tuple[type[Exception], ...] = ()

    def __init__(self, module: Module, task: Task, dim: int, recipe: Recipe) -> None:
        self.module, self.task, self.dim = module, task, dim
        self.chunk = self.timed = min(_CHUNK, recipe.num_updates)
        self.rest = eqx.filter(_network(module, task, dim, 0), eqx.is_array, inverse=True)
        self.optimizer = optax.chain(optax.clip_by_global_norm(_CLIP), optax.scale_by_adam(*_BETAS, _EPSILON))
        self.data = _on_device(task)
        self.size = min(_AT_ONCE, max(len(task.test.labels), len(task.validation.labels)))
        self._updates, self._predict = (
            jax.jit(function, compiler_options=_COMPILE_QUICKLY) for function in (self._updating, self._predicting)
        )

    def start(self, seed: int) -> Any:
        arrays = eqx.filter(_network(self.module, self.task, self.dim, seed), eqx.is_array)
        return arrays, self.optimizer.init(arrays)

    def advance(self, state: Any, indices: np.ndarray, rates: np.ndarray) -> tuple[Any, np.ndarray]:
        """The state after a chunk of updates; loss, part of unsolved examples, and whether it was left out, of each."""
        state, record = self._updates(state, self.data, jnp.asarray(indices), jnp.asarray(rates))
        return state, np.stack([np.asarray(column, float) for column in record], axis=1)

    def _loss(self, arrays: Any, features: Array, labels: Array) -> tuple[Array, Array]:
        logits, found = jax.vmap(eqx.combine(arrays, self.rest))(features)
        asked = labels != NOT_ASKED
        each = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.where(asked, labels, 0))
        errors = jnp.sum(jnp.where(asked, each, 0), axis=-1) / jnp.maximum(jnp.sum(asked, axis=-1), 1)
        solved = found.converged.astype(jnp.float32)
        total = jnp.sum(jnp.where(found.converged, errors, 0)) / jnp.maximum(jnp.sum(solved), 1)
        return total, jnp.mean(1 - solved)

    def _updating(self, state: Any, data: tuple[Array, Array], indices: Array, rates: Array) -> Any:
        def update(state: Any, now: tuple[Array, Array]) -> tuple[Any, Any]:
            arrays, moments = state
            chosen, rate = now
            slope = jax.value_and_grad(self._loss, has_aux=True)
            (loss, unsolved), slopes = slope(arrays, data[0][chosen], data[1][chosen])
            fine = jnp.isfinite(loss)
            for leaf in jax.tree.leaves(slopes):
                fine = fine & jnp.all(jnp.isfinite(leaf))
            changes, new_moments = self.optimizer.update(slopes, moments, arrays)
            new = jax.tree.map(lambda a, c: a - rate * c, arrays, changes), new_moments
            return jax.tree.map(lambda a, b: jnp.where(fine, a, b), new, state), (loss, unsolved, ~fine)

        return jax.lax.scan(update, state, (indices, rates))

    def _predicting(self, arrays: Any, features: Array) -> tuple[Array, Array]:
        logits, found = jax.vmap(eqx.combine(arrays, self.rest))(features)
        return logits, found.converged

    def score(self, state: Any, examples: Examples) -> Score:
        """Of the answers to these examples."""
        answered = []
        for begin in range(0, len(examples.labels), self.size):
            part = examples.features[begin : begin + self.size]
            # The last examples are repeated to fill the program, and their second answers dropped.
            full = part[np.arange(self.size) % len(part)]
            answered.append([np.asarray(a)[: len(part)] for a in self._predict(state[0], jnp.asarray(full))])
        logits, converged = (np.concatenate(column) for column in zip(*answered, strict=True))
        return scored(logits, converged, examples.labels)


class _TorchNetwork(nn.Module):
    embedding: Tensor
    positions: Tensor
    readout: Tensor
    bias: Tensor

    def __init__(self, module: Module, task: Task, dim: int, seed: int) -> None:
        super().__init__()
        for name, array in shared_start(task, dim, seed=seed).items():
            self.register_parameter(name, nn.Parameter(torch.from_numpy(array)))
        with torch_blocks.seeded(seed):
            self.block = module.make(None, task.num_sites, dim).float()
        self.answer_sites, self.normalized = list(task.answer_sites), module.normalized
        self.averaged = task.averaged

    def forward(self, features: Tensor) -> tuple[Tensor, torch_blocks.SettledBatch]:
        found = self.block(features @ self.embedding.T + self.positions)
        read = found.value if self.averaged else found.value[:, self.answer_sites]
        read = torch_blocks.standardized(read) if self.normalized else read
        read = read.mean(dim=1, keepdim=True) if self.averaged else read
        return read @ self.readout.T + self.bias, found


class _TorchProgram:
    """The same face as ``_JaxProgram``; nothing is compiled."""

    # No steady state exists, or none was found.
    failures = (ValueError, RuntimeError)

    def __init__(self, module: Module, task: Task, dim: int, recipe: Recipe) -> None:
        self.module, self.task, self.dim = module, task, dim
        self.chunk, self.timed = 1, min(10, recipe.num_updates)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.features = torch.from_numpy(task.train.features).to(self.device)
        self.labels = torch.from_numpy(task.train.labels.astype(np.int64)).to(self.device)

    def start(self, seed: int) -> Any:
        # Drawn on the processor, so that a seed is the same start everywhere.
        net = _TorchNetwork(self.module, self.task, self.dim, seed).to(self.device)
        return net, torch.optim.Adam(net.parameters(), lr=0.0, betas=_BETAS, eps=_EPSILON)

    def advance(self, state: Any, indices: np.ndarray, rates: np.ndarray) -> tuple[Any, np.ndarray]:
        """As that of ``_JaxProgram``; the state is changed in place."""
        return state, np.array([self._update(state, *now) for now in zip(indices, rates, strict=True)], float)

    def _update(self, state: Any, chosen: np.ndarray, rate: float) -> tuple[float, float, bool]:
        net, optimizer = state
        optimizer.zero_grad(set_to_none=True)
        index = torch.from_numpy(chosen.astype(np.int64)).to(self.device)
        logits, found = net(self.features[index])
        labels, solved = self.labels[index], found.converged
        each = functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), reduction="none", ignore_index=NOT_ASKED
        )
        errors = each.reshape(labels.shape).sum(-1) / (labels != NOT_ASKED).sum(-1).clamp_min(1)
        loss = torch.where(solved, errors, 0).sum() / solved.sum().clamp_min(1)
        loss.backward()
        length = nn.utils.clip_grad_norm_(net.parameters(), _CLIP)
        skip = not bool(torch.isfinite(loss) & torch.isfinite(length))
        if not skip:
            optimizer.param_groups[0]["lr"] = float(rate)
            optimizer.step()
        return float(loss.detach()), 1 - float(solved.float().mean()), skip

    def score(self, state: Any, examples: Examples) -> Score:
        """Of the answers to these examples."""
        logits, converged = [], []
        with torch.no_grad():
            for part in torch.from_numpy(examples.features).split(_AT_ONCE):
                found = state[0](part.to(self.device))
                logits.append(found[0].cpu().numpy())
                converged.append(found[1].converged.cpu().numpy())
        return scored(np.concatenate(logits), np.concatenate(converged), examples.labels)


@lru_cache(maxsize=24)
def _program(module: Module, task: Task, dim: int, recipe: Recipe) -> Any:
    return (_JaxProgram if module.framework == "jax" else _TorchProgram)(module, task, dim, recipe)


@lru_cache
def _reference(framework: str, depth: int) -> Module:
    """The vanilla model of this framework and depth."""
    vanilla = modules.stacked("vanilla", depth)
    if framework == "jax":
        return vanilla

    def make(key: Any, sites: int, dim: int) -> nn.Module:
        return torch_blocks.Stack(torch_blocks.Vanilla(dim, 4) for _ in range(depth))

    return vanilla._replace(name="vanilla, PyTorch", make=make, framework="torch")


def _seconds(program: Any, state: Any, plan: np.ndarray) -> float:
    """Per update, of a few that change nothing."""
    begin = time.perf_counter()
    for k in range(0, program.timed, program.chunk):
        state, _ = program.advance(state, plan[k : k + program.chunk], np.zeros(program.chunk, np.float32))
    return (time.perf_counter() - begin) / program.timed


def _timed(program: Any, state: Any, reference: Any, plan: np.ndarray, repeats: int) -> tuple[float, float]:
    """Seconds per update of the module, and in units of the reference's, in turns."""
    other = reference.start(0)
    _seconds(reference, other, plan)
    pairs = [(_seconds(program, state, plan), _seconds(reference, other, plan)) for _ in range(repeats)]
    ours, theirs = np.median(np.array(pairs), axis=0)
    return float(ours), float(ours / theirs)


def follow(
    module: Module,
    task: Task,
    *,
    learning_rate: float,
    seed: int,
    recipe: Recipe = Recipe(),  # noqa: B008
    repeats: int = 2,
    num_looks: int = 10,
) -> Course:
    """One run: the module of this task's width, trained from ``seed``, scored and timed.

    The seed sets the start and the order of the batches, for every module the same. Updates without a finite gradient
    are left out and counted; examples without a steady state do not count in the loss. ``repeats`` of timing in turns
    with the vanilla model; 0 leaves them out. ``num_looks``: how often examples for validation are answered on the way,
    evenly, the last time at the end. A run that fails comes back with its reason. On one machine and the same number of
    cores the same arguments give the same numbers; else rounding differs, and grows in training.

    Raises ``ValueError`` for a learning rate that is not positive and a number of updates below 1, or no multiple of 25
    beyond that.
    """
    rate = float(validate.positive(learning_rate, "learning_rate", ""))
    updates = validate.count(recipe.num_updates, "num_updates", minimum=1)
    size = min(_CHUNK, updates)
    if updates % size:
        raise ValueError(f"num_updates: expected a multiple of {_CHUNK}, got {updates}")
    plan, rates = batches(len(task.train.labels), recipe, seed=seed), np.float32(rate) * rate_profile(updates)
    looked_after = {size * round(updates // size * (k + 1) / num_looks) for k in range(num_looks)} - {0}
    watched = Examples(*(part[:_WATCHED] for part in task.validation))
    looks: list[tuple[float, float, float]] = []
    record = np.empty((0, 3))
    test, validation, error = _NO_SCORE, _NO_SCORE, ""
    # Single precision and mixed integers and reals are what the optimiser expects.
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        program = _program(module, task, modules.width(module, task), recipe)
        state = program.start(seed)
        try:
            for k in range(0, updates, program.chunk):
                state, new = program.advance(state, plan[k : k + program.chunk], rates[k : k + program.chunk])
                record = np.concatenate([record, new])
                if (done := len(record)) % size == 0 and (part := record[-size:, 1].mean()) > 0.5:
                    error = f"not converged: {100 * part:.0f} % of the examples, stopped after {done} updates"
                    break
                if done in looked_after:
                    seen = program.score(state, watched)
                    looks.append((done, seen.accuracy, seen.loss))
            test, validation = program.score(state, task.test), program.score(state, task.validation)
        except program.failures as failed:
            error = f"stopped after {len(record)} updates: {str(failed).splitlines()[0][:120]}"
        cost = (math.nan, math.nan)
        if repeats:
            vanilla = _program(_reference(module.framework, module.depth), task, modules.VANILLA_WIDTH, recipe)
            with contextlib.suppress(*program.failures):
                cost = _timed(program, state, vanilla, plan, repeats)
    loss, unsolved, skipped = record.T
    outcome = Outcome(
        test.accuracy,
        validation.accuracy,
        _mean(loss[-size:]),
        _mean(skipped),
        _mean(unsolved),
        test.unsolved,
        *cost,
        failure=_failure(recipe, _mean(skipped), test.unsolved, error),
    )
    chunks = loss[: len(loss) // size * size].reshape(-1, size).mean(axis=1)
    network = state[0] if module.framework == "torch" else eqx.combine(state[0], program.rest)
    return Course(test, validation, outcome, chunks, np.array(looks, float).reshape(-1, 3).T, network)


def train(module: Module, task: Task, **options: Any) -> Outcome:
    """The ``outcome`` of ``follow``, without looks on the way. A module of your own, which pools:

    >>> from experiments.comparison.tasks import recall
    >>> task = recall(num_pairs=2, num_keys=2, num_values=2, num_train=8, num_test=4)
    >>> def make(key, sites, dim):
    ...     return blocks.Block(dim, blocks.Pooling(), blocks.FeedForward(dim, key=key))
    >>> mine = Module("mine", "own", make, lambda sites, dim: 8 * dim**2 + 9 * dim)
    >>> train(mine, task, learning_rate=0.01, seed=0, recipe=Recipe(5, 2), repeats=0).failure
    ''
    """
    return follow(module, task, num_looks=0, **options).outcome
