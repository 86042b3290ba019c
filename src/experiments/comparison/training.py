"""One training run of a module on a task, in JAX or PyTorch, and what is measured before and after.

Both frameworks get the same: features made vectors by one linear map, learned positions added to them, answers read off
by one linear map from standardised vectors; the same start of these parts, the same batches in the same order, and Adam
with the same rates, gradients clipped to length 1. Single precision throughout, whatever the process is set to. Both
compute on an accelerator where their framework sees one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from jaxtyping import Array, Float, Int
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from experiments import designs
from experiments.comparison import blocks, modules, torch_blocks
from experiments.comparison.modules import Module
from experiments.comparison.tasks import NOT_ASKED, Examples, Task
from spinbook import validate
from spinbook.fixed_point import spectral_radii
from spinbook.precision import enable_x64

__all__ = [
    "Course",
    "Outcome",
    "Recipe",
    "Score",
    "batches",
    "follow",
    "hessenberg",
    "rate_profile",
    "scored",
    "shared_start",
    "train",
]

# More effort makes these programs no faster, and takes several times as long as running them.
_COMPILE_QUICKLY: Any = {"xla_backend_optimization_level": 1}
# What runs briefly has ended before a faster program were compiled.
_COMPILE_PLAINLY: Any = {"xla_backend_optimization_level": 0}
_BETAS, _EPSILON, _CLIP = (0.9, 0.999), 1e-8, 1.0
_CHUNK = 25
_LOOKED_AT = 8
_KRYLOV = 30
# Examples that are answered side by side, beyond which memory grows for nothing, and those a curve is made of.
_AT_ONCE, _WATCHED = 500, 500


_SHARE = partial(validate.number, least=0, most=1)


@designs.record(allowed_skips=_SHARE, allowed_unsolved=_SHARE)
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
    and in the test. Before and after training, means over eight test examples: ``steps``, updates of the solver;
    ``contraction``, max |lambda| of the Jacobian of an update at the state given out; ``production``, the entropy
    production per site in nats. ``seconds_per_update`` and ``time_ratio``, in units of the vanilla block of the same
    framework in turns with it; ``memory_ratio`` of temporary memory in the same units. ``failure``: the reason, or "".
    """

    accuracy: float
    validation_accuracy: float
    loss: float
    skipped: float
    unsolved_training: float
    unsolved: float
    steps_before: float
    steps_after: float
    contraction_before: float
    contraction_after: float
    production_before: float
    production_after: float
    seconds_per_update: float
    time_ratio: float
    memory_ratio: float
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
    and loss of up to 500 examples for validation after them. ``layers``: for each layer of a stack (2, layers), before
    and after training, ``steps``, ``contraction`` and ``production`` as in ``Outcome``, NaN where there is none.
    """

    test: Score
    validation: Score
    outcome: Outcome
    losses: Float[np.ndarray, " chunks"]
    looks: Float[np.ndarray, "3 looks"]
    layers: dict[str, Float[np.ndarray, "2 layers"]]


_NO_SCORE = Score(math.nan, math.nan, math.nan)
_LOOKED_FOR = ("steps", "contraction", "production")


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


def _watched(task: Task) -> Examples:
    return Examples(*(part[:_WATCHED] for part in task.validation))


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


def _hopeless(unsolved: np.ndarray, updates: int) -> str:
    """Why a run that went on like this would only cost time, or nothing."""
    part = float(unsolved.mean())
    return f"not converged: {100 * part:.0f} % of the examples, stopped after {updates} updates" if part > 0.5 else ""


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
    averaged: bool = eqx.field(static=True, default=False)

    def inputs(self, features: Array) -> Array:
        return features @ self.embedding.T + self.positions

    def __call__(self, features: Array) -> tuple[Array, blocks.Settled]:
        found = self.block(self.inputs(features))
        read = found.value if self.averaged else found.value[jnp.asarray(self.answer_sites)]
        read = blocks.standardized(read) if self.normalized else read
        read = jnp.mean(read, axis=0, keepdims=True) if self.averaged else read
        return read @ self.readout.T + self.bias, found


def _network(module: Module, task: Task, dim: int, seed: int) -> _Network:
    start = {name: jnp.asarray(array) for name, array in shared_start(task, dim, seed=seed).items()}
    block = module.make(jax.random.key(seed), task.num_sites, dim)
    return _Network(
        **start,
        block=block,
        answer_sites=task.answer_sites,
        normalized=module.normalized,
        averaged=task.averaged,
    )


@lru_cache(maxsize=2)
def _on_device(task: Task) -> tuple[Array, Array]:
    """The examples to learn from, once for all modules."""
    return jnp.asarray(task.train.features), jnp.asarray(task.train.labels)


def _is_partial(task: Task) -> bool:
    return bool((task.train.labels == NOT_ASKED).any())


def hessenberg(
    update: Callable[[Array], Array], state: Float[Array, "*shape"], steps: int = _KRYLOV
) -> Float[Array, "K K"]:
    """The Jacobian of ``update`` at ``state`` in a Krylov space of ``steps`` directions, by Arnoldi's method.

    Its largest eigenvalues approach those of the Jacobian. For compiled code, and without checks: it can be batched, as
    ``relaxation.contraction_factor`` cannot.

    >>> h = hessenberg(lambda m: jnp.array([0.5, -0.8, 0.1], m.dtype) * m, jnp.ones(3), 3)
    >>> round(float(spectral_radii(np.asarray(h)[None])[0]), 5)
    0.8
    """
    shape, steps = state.shape, min(steps, state.size)
    start = jax.random.normal(jax.random.key(0), (state.size,), state.dtype)

    def push(v: Array) -> Array:
        out: Array = jax.jvp(update, (state,), (v.reshape(shape),))[1]
        return out.ravel()

    def advance(basis: Array, k: Array) -> tuple[Array, Array]:
        w = push(basis[k])
        first = basis @ w
        w = w - first @ basis
        second = basis @ w
        w = w - second @ basis
        length = jnp.linalg.norm(w)
        # What is left when the space is exhausted is rounding: no direction.
        open_ = length > 10 * jnp.finfo(w.dtype).eps * (1 + jnp.linalg.norm(first))
        basis = basis.at[k + 1].set(jnp.where(open_, w / jnp.where(open_, length, 1), 0))
        return basis, (first + second).at[k + 1].set(jnp.where(open_, length, 0))

    basis = jnp.zeros((steps + 1, state.size), state.dtype).at[0].set(start / jnp.linalg.norm(start))
    columns = jax.lax.scan(advance, basis, jnp.arange(steps))[1]
    return columns[:, :steps].T


class _JaxProgram:
    """The compiled functions of a module on a task: shared by all seeds and learning rates."""

    def __init__(self, module: Module, task: Task, dim: int, recipe: Recipe) -> None:
        self.module, self.task, self.dim, self.recipe = module, task, dim, recipe
        self.chunk = min(_CHUNK, recipe.num_updates)
        example = _network(module, task, dim, 0)
        arrays, self.rest = eqx.partition(example, eqx.is_array)
        self.optimizer = optax.chain(optax.clip_by_global_norm(_CLIP), optax.scale_by_adam(*_BETAS, _EPSILON))
        state = (arrays, self.optimizer.init(arrays))
        self.data, self.partial = _on_device(task), _is_partial(task)
        plan = jnp.zeros((self.chunk, recipe.batch), jnp.int32), jnp.zeros(self.chunk, jnp.float32)
        self.advance = self._compiled(self._advance, state, self.data, *plan)
        self.arrays = arrays
        self.seen = jnp.asarray(task.test.features[:_LOOKED_AT])

    @cached_property
    def predict(self) -> Any:
        """For as many examples as are answered side by side: one program for all sets of them."""
        size = min(_AT_ONCE, max(len(self.task.test.features), len(self.task.validation.features)))
        shape = (size, *self.task.test.features.shape[1:])
        return self._compiled(self._predict, self.arrays, jnp.zeros(shape, jnp.float32)), size

    @cached_property
    def look(self) -> Any:
        return self._compiled(self._look, self.arrays, self.seen, brief=True)

    def _compiled(self, function: Callable[..., Any], *arguments: Any, brief: bool = False) -> Any:
        brief = brief or self.recipe.num_updates <= _CHUNK
        return jax.jit(function).lower(*arguments).compile(_COMPILE_PLAINLY if brief else _COMPILE_QUICKLY)

    @property
    def temporary_bytes(self) -> float:
        """What the compiled updates hold at most, beside parameters and data."""
        return float(self.advance.memory_analysis().temp_size_in_bytes)

    def start(self, seed: int) -> Any:
        arrays = eqx.filter(_network(self.module, self.task, self.dim, seed), eqx.is_array)
        return arrays, self.optimizer.init(arrays)

    def _loss(self, arrays: Any, features: Array, labels: Array) -> tuple[Array, Any]:
        logits, found = jax.vmap(eqx.combine(arrays, self.rest))(features)
        if self.partial:
            asked = labels != NOT_ASKED
            each = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.where(asked, labels, 0))
            errors = jnp.sum(jnp.where(asked, each, 0), axis=-1) / jnp.maximum(jnp.sum(asked, axis=-1), 1)
        else:
            errors = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels), axis=-1)
        solved = found.converged.astype(jnp.float32)
        total = jnp.sum(jnp.where(found.converged, errors, 0)) / jnp.maximum(jnp.sum(solved), 1)
        return total, jnp.mean(1 - solved)

    def _advance(self, state: Any, data: Any, indices: Array, rates: Array) -> Any:
        def update(state: Any, plan: tuple[Array, Array]) -> tuple[Any, Any]:
            arrays, moments = state
            chosen, rate = plan
            (loss, unsolved), slopes = jax.value_and_grad(self._loss, has_aux=True)(
                arrays, data[0][chosen], data[1][chosen]
            )
            fine = jnp.isfinite(loss)
            for leaf in jax.tree.leaves(slopes):
                fine = fine & jnp.all(jnp.isfinite(leaf))
            changes, new_moments = self.optimizer.update(slopes, moments, arrays)
            new = jax.tree.map(lambda a, c: a - rate * c, arrays, changes), new_moments
            return jax.tree.map(lambda a, b: jnp.where(fine, a, b), new, state), (loss, unsolved, ~fine)

        return jax.lax.scan(update, state, (indices, rates))

    def _predict(self, arrays: Any, features: Array) -> tuple[Array, Array]:
        logits, found = jax.vmap(eqx.combine(arrays, self.rest))(features)
        return logits, found.converged

    def _look(self, arrays: Any, features: Array) -> list[dict[str, Array]]:
        net = eqx.combine(arrays, self.rest)
        inputs, block = jax.vmap(net.inputs)(features), net.block
        if isinstance(block, blocks.Stack):
            given = jax.vmap(block.inputs)(inputs)
            return [_look_into(layer, x) for layer, x in zip(block.layers, given, strict=True)]
        return [_look_into(block, inputs)]

    def diagnose(self, arrays: Any) -> list[tuple[float, float, float]]:
        """Steps, contraction factor and entropy production of each layer."""
        found = []
        for layer in self.look(arrays, self.seen):
            seen = {name: np.asarray(value, float) for name, value in layer.items()}
            if seen:
                radii = spectral_radii(seen["jacobian"])
                found.append((_mean(seen["steps"]), _mean(radii), _mean(seen["production"])))
            else:
                found.append((math.nan, math.nan, math.nan))
        return found

    def score(self, arrays: Any, examples: Any) -> Score:
        """Of the answers to these examples."""
        predict, size = self.predict
        answered = []
        for begin in range(0, len(examples.labels), size):
            part = examples.features[begin : begin + size]
            # The last examples are repeated to fill the program, and their second answers dropped.
            full = part[np.arange(size) % len(part)]
            answered.append([np.asarray(a)[: len(part)] for a in predict(arrays, jnp.asarray(full))])
        logits, converged = (np.concatenate(column) for column in zip(*answered, strict=True))
        return scored(logits, converged, examples.labels)

    def seconds(self, state: Any, indices: np.ndarray) -> float:
        """Per update, of one more chunk that changes nothing."""
        plan = jnp.asarray(indices[: self.chunk]), jnp.zeros(self.chunk, jnp.float32)
        begin = time.perf_counter()
        jax.block_until_ready(self.advance(state, self.data, *plan))
        return (time.perf_counter() - begin) / self.chunk


def _look_into(block: Any, inputs: Array) -> dict[str, Array]:
    """Steps, projected Jacobian and entropy production of one layer for each of its inputs, if it is one of spins."""
    if not isinstance(block, blocks.Updating):
        return {}
    layer: Any = block
    return {
        "steps": jax.vmap(layer)(inputs).num_steps,
        "jacobian": jax.vmap(lambda x: hessenberg(*block.update(x)))(inputs),
        "production": jax.vmap(block.entropy_production)(inputs),
    }


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

    def inputs(self, features: Tensor) -> Tensor:
        return features @ self.embedding.T + self.positions

    def forward(self, features: Tensor) -> tuple[Tensor, torch_blocks.SettledBatch]:
        found = self.block(self.inputs(features))
        read = found.value if self.averaged else found.value[:, self.answer_sites]
        read = torch_blocks.standardized(read) if self.normalized else read
        read = read.mean(dim=1, keepdim=True) if self.averaged else read
        return read @ self.readout.T + self.bias, found


class _LiveBytes(TorchDispatchMode):
    """Counts the bytes of the tensors that operations make and that are still alive, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        known = [a for a in _pytree.tree_leaves((args, kwargs)) if isinstance(a, Tensor)]
        given = {a.untyped_storage()._cdata for a in known}
        for tensor in _pytree.tree_leaves(out):
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in given:
                storage = tensor.untyped_storage()
                self.alive[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.alive = {key: entry for key, entry in self.alive.items() if not entry[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self.alive.values()))
        return out


class _TorchProgram:
    """The same face as ``_JaxProgram``; nothing is compiled."""

    def __init__(self, module: Module, task: Task, dim: int, recipe: Recipe) -> None:
        self.module, self.task, self.dim, self.recipe = module, task, dim, recipe
        self.chunk = min(_CHUNK, recipe.num_updates)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.features = torch.from_numpy(task.train.features).to(self.device)
        self.labels = torch.from_numpy(task.train.labels.astype(np.int64)).to(self.device)
        self.partial = _is_partial(task)
        self.seen = torch.from_numpy(task.test.features[:_LOOKED_AT]).to(self.device)

    def start(self, seed: int) -> Any:
        # Drawn on the processor, so that a seed is the same start everywhere.
        net = _TorchNetwork(self.module, self.task, self.dim, seed).to(self.device)
        return net, torch.optim.Adam(net.parameters(), lr=0.0, betas=_BETAS, eps=_EPSILON)

    def update(self, state: Any, chosen: np.ndarray, rate: float) -> tuple[float, float, bool]:
        """Loss, the part of examples without a solution, and whether the update was left out."""
        net, optimizer = state
        optimizer.zero_grad(set_to_none=True)
        index = torch.from_numpy(chosen.astype(np.int64)).to(self.device)
        logits, found = net(self.features[index])
        labels = self.labels[index]
        each = functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), reduction="none", ignore_index=NOT_ASKED
        )
        errors = each.reshape(labels.shape)
        errors = errors.sum(-1) / (labels != NOT_ASKED).sum(-1).clamp_min(1) if self.partial else errors.mean(-1)
        solved = found.converged
        loss = torch.where(solved, errors, 0).sum() / solved.sum().clamp_min(1)
        loss.backward()
        length = nn.utils.clip_grad_norm_(net.parameters(), _CLIP)
        skip = not bool(torch.isfinite(loss) & torch.isfinite(length))
        if not skip:
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
        return float(loss.detach()), 1 - float(solved.float().mean()), skip

    @property
    def temporary_bytes(self) -> float:
        """The peak of what the operations of one update hold, beside parameters, moments and data."""
        state = self.start(0)
        indices = np.arange(self.recipe.batch) % len(self.features)
        # The moments are made by the first update.
        self.update(state, indices, 0.0)
        with _LiveBytes() as live:
            self.update(state, indices, 0.0)
        return float(live.peak)

    def diagnose(self, net: Any) -> list[tuple[float, float, float]]:
        """Steps, contraction factor and entropy production of each layer."""
        inputs, block = net.inputs(self.seen).detach(), net.block
        if isinstance(block, torch_blocks.Stack):
            return [self._look_into(layer, x) for layer, x in zip(block.layers, block.inputs(inputs), strict=True)]
        return [self._look_into(block, inputs)]

    @staticmethod
    def _look_into(block: nn.Module, inputs: Tensor) -> tuple[float, float, float]:
        steps = contraction = math.nan
        if isinstance(block, torch_blocks.Solving):
            steps = _mean(block.evidence(inputs).num_steps.cpu())
        if isinstance(block, torch_blocks.Contracting):
            contraction = _mean(block.contraction_factors(inputs).cpu())
        return steps, contraction, 0.0 if isinstance(block, torch_blocks.Symmetric) else math.nan

    def score(self, net: Any, examples: Any) -> Score:
        """Of the answers to these examples."""
        logits, converged = [], []
        with torch.no_grad():
            for part in torch.from_numpy(examples.features).split(_AT_ONCE):
                found = net(part.to(self.device))
                logits.append(found[0].cpu().numpy())
                converged.append(found[1].converged.cpu().numpy())
        return scored(np.concatenate(logits), np.concatenate(converged), examples.labels)

    def seconds(self, state: Any, indices: np.ndarray) -> float:
        """Per update, of a few more that change nothing."""
        few = indices[: min(10, self.chunk)]
        begin = time.perf_counter()
        for chosen in few:
            self.update(state, chosen, 0.0)
        return (time.perf_counter() - begin) / len(few)


# As many as the primary questions need on a task, so that no stage of theirs compiles anew.
@lru_cache(maxsize=24)
def _program(module: Module, task: Task, dim: int, recipe: Recipe) -> Any:
    kind = _JaxProgram if module.framework == "jax" else _TorchProgram
    return kind(module, task, dim, recipe)


_TORCH_VANILLA = Module(
    "vanilla, PyTorch",
    "transformer",
    lambda key, sites, dim: torch_blocks.Vanilla(dim, 4),
    modules.MODULES[0].own,
    "torch",
)


@lru_cache
def _torch_vanilla(depth: int) -> Module:
    def make(key: Any, sites: int, dim: int) -> nn.Module:
        return torch_blocks.Stack(torch_blocks.Vanilla(dim, 4) for _ in range(depth))

    own = _TORCH_VANILLA.own
    return _TORCH_VANILLA._replace(make=make, own=lambda n, d: depth * own(n, d), depth=depth)


def _reference(module: Module) -> Module:
    if module.framework == "jax":
        return modules.MODULES[0] if module.depth == 1 else modules.stacked("vanilla", module.depth)
    return _TORCH_VANILLA if module.depth == 1 else _torch_vanilla(module.depth)


@lru_cache(maxsize=64)
def _memory(module: Module, task: Task, dim: int, recipe: Recipe) -> float:
    return float(_program(module, task, dim, recipe).temporary_bytes)


def _timed(program: Any, state: Any, reference: Any, plan: np.ndarray, repeats: int) -> tuple[float, float]:
    """Seconds per update of the module, and in units of the reference's, in turns."""
    other = reference.start(0)
    reference.seconds(other, plan)
    pairs = [(program.seconds(state, plan), reference.seconds(other, plan)) for _ in range(repeats)]
    ours, theirs = np.median(np.array(pairs), axis=0)
    return float(ours), float(ours / theirs)


def _looks_at(num_chunks: int, num_looks: int) -> set[int]:
    """After which chunks a curve is looked at: evenly, the last among them."""
    return {round(num_chunks * (k + 1) / num_looks) for k in range(num_looks)} - {0}


def _curve(seen: list[tuple[int, Score]]) -> np.ndarray:
    return np.array([(updates, score.accuracy, score.loss) for updates, score in seen], float).reshape(-1, 3).T


def _train_jax(program: _JaxProgram, rate: float, seed: int, plan: np.ndarray, num_looks: int) -> dict[str, Any]:
    recipe, size = program.recipe, program.chunk
    state = program.start(seed)
    before = program.diagnose(state[0])
    profile = np.float32(rate) * rate_profile(len(plan))
    records, error = [], ""
    looks, curve = _looks_at(len(plan) // size, num_looks), []
    for k in range(0, len(plan) - size + 1, size):
        state, record = program.advance(
            state, program.data, jnp.asarray(plan[k : k + size]), jnp.asarray(profile[k : k + size])
        )
        records.append([np.asarray(a) for a in record])
        if k // size + 1 in looks:
            curve.append((k + size, program.score(state[0], _watched(program.task))))
        if error := _hopeless(records[-1][1], k + size):
            break
    loss, unsolved, skipped = (np.concatenate(column) for column in zip(*records, strict=True))
    test = program.score(state[0], program.task.test)
    validation = program.score(state[0], program.task.validation)
    unsolved_test = test.unsolved
    return {
        "state": state,
        "test": test,
        "validation": validation,
        "losses": loss.reshape(-1, size).mean(axis=1),
        "looks": _curve(curve),
        "accuracy": test.accuracy,
        "validation_accuracy": validation.accuracy,
        "loss": float(loss[-size:].mean()),
        "skipped": float(skipped.mean()),
        "unsolved_training": float(unsolved.mean()),
        "unsolved": unsolved_test,
        "before": before,
        "after": program.diagnose(state[0]),
        "failure": _failure(recipe, float(skipped.mean()), unsolved_test, error),
    }


def _train_torch(program: _TorchProgram, rate: float, seed: int, plan: np.ndarray, num_looks: int) -> dict[str, Any]:
    recipe, size = program.recipe, program.chunk
    state = program.start(seed)
    net = state[0]
    before = program.diagnose(net)
    unknown = [(math.nan, math.nan, layer[2]) for layer in before]
    out: dict[str, Any] = {"state": state, "before": before, "after": unknown}
    records: list[tuple[float, float, bool]] = []
    scores, validation, error = _NO_SCORE, _NO_SCORE, ""
    looks, curve = _looks_at(len(plan) // size, num_looks), []
    try:
        for chosen, now in zip(plan, rate * rate_profile(len(plan)), strict=True):
            records.append(program.update(state, chosen, float(now)))
            if len(records) % size == 0:
                error = _hopeless(np.array([r[1] for r in records[-size:]]), len(records))
                if error:
                    break
                if len(records) // size in looks:
                    curve.append((len(records), program.score(net, _watched(program.task))))
        scores = program.score(net, program.task.test)
        validation = program.score(net, program.task.validation)
        out["after"] = program.diagnose(net)
    except (ValueError, RuntimeError) as failed:
        # No steady state exists, or none was found: the run ends here, and says why.
        error = f"stopped after {len(records)} updates: {str(failed).splitlines()[0][:120]}"
    loss, unsolved, skipped = (
        (np.array(c, float) for c in zip(*records, strict=True)) if records else (np.empty(0),) * 3
    )
    whole = loss[: len(loss) // size * size].reshape(-1, size)
    return out | {
        "test": scores,
        "validation": validation,
        "losses": whole.mean(axis=1),
        "looks": _curve(curve),
        "accuracy": scores.accuracy,
        "validation_accuracy": validation.accuracy,
        "loss": _mean(loss[-size:]),
        "skipped": _mean(skipped),
        "unsolved_training": _mean(unsolved),
        "unsolved": scores.unsolved,
        "failure": _failure(recipe, _mean(skipped), scores.unsolved, error),
    }


def _averages(layers: Sequence[tuple[float, float, float]]) -> tuple[float, ...]:
    """Over the layers that know what is asked for; of steps the sum."""
    columns = np.array(layers, float).T
    known = [column[np.isfinite(column)] for column in columns]
    means = [float(column.mean()) if column.size else math.nan for column in known]
    return float(known[0].sum()) if known[0].size else math.nan, *means[1:]


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
    """One run as of ``train``, with its curves, its losses in the test, and what each layer of a stack is like.

    ``num_looks``: how often examples for validation are answered on the way, evenly, the last time at the end. Of a
    stack the outcome has the sum of steps over the layers, and the means of the other two.

    >>> from experiments.comparison.tasks import recall
    >>> task, recipe = recall(num_pairs=2, num_keys=2, num_values=2, num_train=8, num_test=4), Recipe(50, 2)
    >>> vanilla = modules.stacked("vanilla", 2)
    >>> course = follow(vanilla, task, learning_rate=0.01, seed=0, recipe=recipe, repeats=0, num_looks=1)
    >>> course.losses.shape, course.looks.shape, course.layers["steps"].shape
    ((2,), (3, 1), (2, 2))
    """
    rate = float(validate.positive(learning_rate, "learning_rate", ndim=0))
    updates = validate.count(recipe.num_updates, "num_updates", minimum=1)
    looks = validate.count(num_looks, "num_looks")
    if updates % min(_CHUNK, updates):
        raise ValueError(f"num_updates: expected a multiple of {_CHUNK}, got {updates}")
    plan = batches(len(task.train.labels), recipe, seed=seed)
    reference = _reference(module)
    dim = modules.width(module, task)
    # Single precision and mixed integers and reals are what the optimiser expects.
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        program = _program(module, task, dim, recipe)
        run = (_train_jax if module.framework == "jax" else _train_torch)(program, rate, seed, plan, looks)
        state = run.pop("state")
        measured = (math.nan, math.nan, math.nan)
        if repeats:
            plain = _program(reference, task, modules.VANILLA_WIDTH, recipe)
            try:
                seconds = _timed(program, state, plain, plan, repeats)
            except (ValueError, RuntimeError):
                seconds = (math.nan, math.nan)
            widths = ((module, dim), (reference, modules.VANILLA_WIDTH))
            sizes = [_memory(m, task, width, recipe) for m, width in widths]
            measured = (*seconds, sizes[0] / sizes[1])
    before, after = run.pop("before"), run.pop("after")
    course = {name: run.pop(name) for name in ("test", "validation", "losses", "looks")}
    looked: dict[str, Any] = {f"{n}_before": v for n, v in zip(_LOOKED_FOR, _averages(before), strict=True)}
    looked |= {f"{n}_after": v for n, v in zip(_LOOKED_FOR, _averages(after), strict=True)}
    costs = dict(zip(("seconds_per_update", "time_ratio", "memory_ratio"), measured, strict=True))
    layers = dict(zip(_LOOKED_FOR, np.moveaxis(np.array([before, after], float), -1, 0), strict=True))
    return Course(outcome=Outcome(**(run | looked | costs)), layers=layers, **course)


def train(
    module: Module,
    task: Task,
    *,
    learning_rate: float,
    seed: int,
    recipe: Recipe = Recipe(),  # noqa: B008
    repeats: int = 2,
) -> Outcome:
    """One run: the module of this task's width, trained from ``seed``, scored, looked at and timed.

    The seed sets the start and the order of the batches, for every module the same. Updates without a finite gradient
    are left out and counted; examples without a steady state do not count in the loss. ``repeats`` of timing in turns
    with the vanilla block; 0 leaves them out. A run that fails comes back with its reason. On one machine and
    the same number of cores the same arguments give the same accuracy; else rounding differs, and grows in training.

    Raises ``ValueError`` for a learning rate that is not positive and a number of updates below 1, or no multiple of 25
    beyond that.
    """
    return follow(
        module, task, learning_rate=learning_rate, seed=seed, recipe=recipe, repeats=repeats, num_looks=0
    ).outcome
