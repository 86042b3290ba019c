"""Small language models of naive spins, trained and used with different numbers of updates.

A ``Row`` says how many updates K each layer makes in training, where its values enter and how warm its spins are. All
rows of a seed begin with the same weights and see the same characters; each is then used with every K. What was asked
beforehand, and how the losses answer, is in ``transient_questions``.

The model is that of Bal (2026), section "Training at K = 1 selects a nonequilibrium transient", at another size:
embeddings that act as fields at the bottom, layers whose inputs are the magnetizations of the one below, and a linear
readout from normalised magnetizations. ``python -m experiments run nonequilibrium-transient --out FOLDER`` trains
every row, keeps each run, and writes ``transient.json.gz``.
"""

from __future__ import annotations

import io
import math
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from experiments import designs, records
from experiments.comparison import transient_questions
from experiments.comparison.blocks import require_sizes
from experiments.datasets import moby_dick
from spinbook import sphere, sweep, validate
from spinbook.precision import enable_x64
from spinbook.spin_transformer import (
    AtFields,
    Learned,
    Relax,
    Rotary,
    SpinTransformer,
    SpinTransformerModule,
    Unroll,
    as_magnetizations,
    naive,
    sphere_per_head,
    unit_length,
)

__all__ = [
    "ALL",
    "BESIDE",
    "PRIMARY",
    "SMOKE",
    "USES",
    "Checkpoint",
    "Design",
    "LanguageModel",
    "Row",
    "Run",
    "VanillaStack",
    "assembled",
    "compare",
    "made",
    "restored",
    "resumed",
    "softmax",
    "spins",
    "text_of",
    "train",
]

USES = ("1", "2", "3", "4", "8", "inf")
"""The numbers of updates with which a model of spins is used; "inf" is the steady state."""
LARGEST_RANDOM = 8
"""The row that is trained with a random K draws it from 1 to this, anew for each update of the weights."""
STEPS = 12
"""Updates along which the mismatch and the irreversibility of a layer are followed."""

_VANILLA = "vanilla"
_EPSILON = 1e-6
_ARTIFACT = "transient.json.gz"
_COURSE = ("losses", "unsettled", "skipped")


@designs.record(trained=("1", "2", "inf", "random", _VANILLA))
class Row(NamedTuple):
    """``trained``: "1", "2", "inf", "random", or "vanilla". ``field``: whether the values are a field, not a start.

    ``beta`` is the inverse temperature of the spins, and of no meaning for a vanilla stack.
    """

    trained: str
    field: bool = False
    beta: float = 1.0

    @property
    def name(self) -> str:
        """What questions and records call it, whatever its temperature.

        >>> Row("inf").name, Row("inf", True).name
        ('inf', 'inf, values in the field')
        """
        return f"{self.trained}, values in the field" if self.field else self.trained

    @property
    def own_use(self) -> str:
        """The use that is nearest to its training; of random K one update, the first of those it was trained for."""
        return {"random": "1", _VANILLA: "once"}.get(self.trained, self.trained)

    @property
    def uses(self) -> tuple[str, ...]:
        """All uses that make sense for it."""
        return ("once",) if self.trained == _VANILLA else USES


@designs.record(seed=validate.count)
class Run(NamedTuple):
    """One training: a row from a seed."""

    row: Row
    seed: int


PRIMARY = (Row("1"), Row("inf"), Row("random"), Row("inf", field=True), Row("2"))
"""The rows of the questions, at the temperature of the source."""
BESIDE = (Row("1", beta=3.0), Row("inf", beta=3.0), Row(_VANILLA))
"""Rows that no question is about: colder spins, whose first update is farther from their steady state, and a twin."""


@designs.record(beside_seeds=validate.count)
class Design(NamedTuple):
    """Sizes and numbers of runs. ``least`` seeds of ``primary`` rows, ``most`` where a question is then undecided."""

    name: str
    depth: int = 6
    dim: int = 128
    num_heads: int = 4
    length: int = 64
    batch: int = 16
    updates: int = 2000
    learning_rate: float = 1e-3
    look_every: int = 100
    look_batches: int = 4
    held_out_batches: int = 64
    least: int = transient_questions.SEEDS[0]
    most: int = transient_questions.SEEDS[1]
    beside_seeds: int = 3
    primary: tuple[Row, ...] = PRIMARY
    beside: tuple[Row, ...] = BESIDE
    sample: bool = False


ALL = Design("all")
SMOKE = Design(
    "smoke",
    depth=1,
    dim=16,
    num_heads=2,
    length=8,
    batch=2,
    updates=20,
    look_every=10,
    look_batches=1,
    held_out_batches=2,
    least=2,
    most=2,
    beside_seeds=1,
    sample=True,
)


Mixer = Callable[[Array, Array, Array, Array | None], Array]
"""What heads (H, N, d) make of queries, keys and values, and perhaps of two numbers for each head (2, H)."""


def softmax(q: Array, k: Array, v: Array, scales: Array | None = None) -> Float[Array, "H N d"]:
    """softmax_j(q_i . k_j / sqrt(d)) v_j over the j up to i.

    Takes its arguments without checks; its callers have checked them.

    >>> softmax(*jnp.ones((3, 1, 2, 4), jnp.float32))[0, 1].round(5).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    logits = q @ jnp.swapaxes(k, -1, -2) / np.float32(math.sqrt(q.shape[-1]))
    mask = np.tril(np.ones(logits.shape[-2:], bool))
    J = jax.nn.softmax(jnp.where(mask, logits, jnp.finfo(logits.dtype).min), axis=-1)
    return J @ v


class VanillaStack(eqx.Module):
    """x + W_O attention(norm x), then x + W_2 gelu(W_1 norm x), ``depth`` times: causal, with rotary positions.

    Without biases; norms divide by the root of the mean square and have gains. The feed-forward network has 3.5 D
    hidden units in place of 4 D, which makes up for the output projection that layers of spins lack: 11 D^2 weights in
    a layer of either kind. ``mixer`` stands in the place of softmax attention, with ``scaled`` numbers for its heads;
    with None no site hears of another, and the feed-forward network has 5.5 D units.

    >>> stack = VanillaStack(2, 8, 2, key=jax.random.key(0))
    >>> stack(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    to_queries_keys_values: Float[Array, "L 3D D"] | None
    to_output: Float[Array, "L D D"] | None
    up: Float[Array, "L E D"]
    down: Float[Array, "L D E"]
    gains: Float[Array, "L 2 D"]
    scales: Float[Array, "L 2 H"] | None
    num_heads: int = eqx.field(static=True)
    mixer: Mixer | None = eqx.field(static=True)

    def __init__(
        self,
        depth: int,
        dim: int,
        num_heads: int,
        *,
        mixer: Mixer | None = softmax,
        scaled: bool = False,
        key: PRNGKeyArray,
    ) -> None:
        require_sizes(depth=depth, dim=dim, num_heads=num_heads)
        validate.key(key)

        def weight(part: int, outputs: int, inputs: int) -> Array:
            drawn = jax.random.uniform(jax.random.fold_in(key, part), (depth, outputs, inputs), jnp.float32, -1, 1)
            return drawn / np.float32(math.sqrt(inputs))

        mixes = mixer is not None
        hidden = (7 if mixes else 11) * dim // 2
        self.to_queries_keys_values = weight(0, 3 * dim, dim) if mixes else None
        self.to_output = weight(1, dim, dim) if mixes else None
        self.up, self.down = weight(2, hidden, dim), weight(3, dim, hidden)
        self.gains = jnp.ones((depth, 2, dim), jnp.float32)
        self.scales = jnp.ones((depth, 2, num_heads), jnp.float32) if scaled else None
        self.num_heads, self.mixer = num_heads, mixer

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        def mixed(y: Array, weights: VanillaStack) -> Array:
            if self.mixer is None or weights.to_queries_keys_values is None or weights.to_output is None:
                return jnp.zeros_like(y)
            parts = (y @ weights.to_queries_keys_values.T).reshape(len(y), 3, self.num_heads, -1)
            q, k, v = jnp.moveaxis(parts, (1, 2), (0, 1))
            found = self.mixer(Rotary()(q), Rotary()(k), v, weights.scales)
            return jnp.moveaxis(found, 0, 1).reshape(y.shape) @ weights.to_output.T

        def layer(x: Array, weights: VanillaStack) -> tuple[Array, None]:
            x = x + mixed(_normalised(x, weights.gains[0]), weights)
            hidden = jax.nn.gelu(_normalised(x, weights.gains[1]) @ weights.up.T, approximate=False)
            return x + hidden @ weights.down.T, None

        return jax.lax.scan(layer, x, self)[0]


def _normalised(x: Array, gain: Array) -> Array:
    """g x / sqrt(mean x^2)."""
    return gain * x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + np.float32(_EPSILON))


class _WithValues(eqx.Module):
    """W_2 gelu(W_1 a) + W_V a: the values as a field, which acts at every update and in the steady state."""

    feed_forward: Callable[[Array], Array]
    values: Array

    def __call__(self, directions: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return self.feed_forward(directions) + directions @ self.values.T


class LanguageModel(eqx.Module):
    """Logits of the next character at every site: W norm(stack(embedding)), the stack used with ``use`` updates."""

    embedding: Float[Array, "C D"]
    stack: SpinTransformer | VanillaStack
    gain: Float[Array, " D"]
    readout: Float[Array, "C D"]

    def bottom(self, characters: Int[Array, " N"]) -> Float[Array, "N D"]:
        """The magnetizations that embeddings make as fields, which the first layer of spins turns back to fields."""
        x = self.embedding[characters]
        if isinstance(self.stack, VanillaStack):
            return x
        modules = self.stack.modules
        beta = jnp.asarray(modules.beta, x.dtype)
        return modules.response(x.reshape(len(x), modules.num_heads, -1), beta).reshape(x.shape)

    def __call__(self, characters: Int[Array, " N"], use: str) -> tuple[Float[Array, "N C"], Bool[Array, " L"]]:
        """The logits, and of each layer whether it was to find a steady state and did not.

        Where a layer finds none it passes on the best state that it met.
        """
        x = self.bottom(characters)
        unsettled = jnp.zeros(1, bool)
        if isinstance(self.stack, VanillaStack):
            top = self.stack(x)
        elif use == "inf":
            found = self.stack.under(Relax()).steady_state(x, _causal(len(x)))
            top, unsettled = found.value[-1], ~found.converged
        else:
            top = self.stack.under(Unroll(int(use)))(x, _causal(len(x)))
        return _normalised(top, self.gain) @ self.readout.T, unsettled


def _causal(num_sites: int) -> np.ndarray:
    return np.tril(np.ones((num_sites, num_sites), bool))


def made(row: Row, design: Design, key: PRNGKeyArray) -> LanguageModel:
    """The model of a row before training; the same weights for all rows of spins with the same key.

    >>> model = made(Row("inf", field=True), SMOKE, jax.random.key(0))
    >>> model.stack.modules.memory.values.shape
    (1, 16, 16)
    """
    stack_key = jax.random.fold_in(validate.key(key), 1)
    sizes = design.depth, design.dim, design.num_heads
    if row.trained == _VANILLA:
        return assembled(VanillaStack(*sizes, key=stack_key), design.dim, design.num_heads, key=key)
    stack = spins(*sizes, beta=row.beta, key=stack_key)
    return assembled(_values_in_the_field(stack) if row.field else stack, design.dim, design.num_heads, key=key)


def spins(depth: int, dim: int, num_heads: int, **options: Any) -> SpinTransformer:
    """Layers in the configuration of the source, but for ``options`` of ``SpinTransformer``: one ``key`` at least.

    >>> spins(2, 16, 2, key=jax.random.key(0)).depth
    2
    """
    configuration: dict[str, Any] = {
        "theory": naive,
        "spheres": sphere_per_head,
        "inputs": as_magnetizations,
        "start": Learned,
        "feed_forward": 4 * dim,
        "query_key_maps": (unit_length, Rotary()),
        "sharpness": jnp.float32(math.sqrt(dim // num_heads)),
        "dtype": jnp.float32,
    }
    return SpinTransformer(depth, dim, num_heads, **(configuration | options))


def assembled(stack: SpinTransformer | VanillaStack, dim: int, num_heads: int, *, key: PRNGKeyArray) -> LanguageModel:
    """The stack between embedding and readout, which are the same for every stack of this width with the same key.

    >>> stack = VanillaStack(1, 16, 2, key=jax.random.key(0))
    >>> assembled(stack, 16, 2, key=jax.random.key(1)).embedding.shape
    (36, 16)
    """
    num_characters = len(moby_dick.ALPHABET)
    embedding_key, readout_key = (jax.random.fold_in(validate.key(key), part) for part in (0, 2))
    drawn = jax.random.normal(embedding_key, (num_characters, num_heads, dim // num_heads), jnp.float32)
    lengths = jnp.linalg.norm(drawn, axis=-1, keepdims=True)
    embedding = jnp.float32(sphere.radius(dim // num_heads)) * drawn / lengths
    readout = jax.random.uniform(readout_key, (num_characters, dim), jnp.float32, -1, 1) / np.float32(math.sqrt(dim))
    return LanguageModel(
        embedding.reshape(num_characters, dim), stack, jnp.ones(dim, jnp.float32), readout.astype(jnp.float32)
    )


def restored(row: Row, design: Design, path: str | os.PathLike[str]) -> LanguageModel:
    """The model of a row with the weights of a file ``weights-ROW-BETA.npz``, as it was after its last update.

    Raises ``ValueError`` for weights of another row or design, and for a file that is damaged.
    """
    data = io.BytesIO(Path(path).read_bytes())
    try:
        with np.load(data) as file:
            weights = [file[f"weight.{k}"] for k in range(len(file.files))]
    # NumPy lets through what its parts raise, which is almost anything.
    except Exception as error:
        raise ValueError(f"path: expected a file of weights, got a damaged {os.fspath(path)} ({error})") from error
    with enable_x64(False):
        arrays, rest = eqx.partition(made(row, design, jax.random.key(0)), eqx.is_inexact_array)
        leaves, structure = jax.tree.flatten(arrays)
        shapes = [weight.shape for weight in weights]
        if shapes != [leaf.shape for leaf in leaves]:
            raise ValueError(f"path: expected weights of row {row.name} of this design, got shapes {shapes}")
        found = [jnp.asarray(weight) for weight in weights]
        model: LanguageModel = eqx.combine(jax.tree.unflatten(structure, found), rest)
        return model


def _values_in_the_field(stack: SpinTransformer) -> SpinTransformer:
    """The same weights, but what was the start of the spins is added to their fields, where they now start."""
    modules = stack.modules
    start, feed_forward = modules.start, modules.memory
    assert isinstance(start, Learned)
    assert feed_forward is not None
    parts: Any = (AtFields(modules.dim, key=jax.random.key(0)), _WithValues(feed_forward, start.weight))
    moved = eqx.tree_at(lambda m: (m.start, m.memory), modules, parts)
    return eqx.tree_at(lambda s: s.modules, stack, moved)


class _Text(NamedTuple):
    """Characters to train on, windows that were held out (batches, batch, length + 1), and the loss of guessing."""

    train: np.ndarray
    held_out: np.ndarray
    blind: float


@cache
def _text(sample: bool, length: int, batch: int, num_batches: int) -> _Text:
    """The last tenth is held out, of which windows are taken at equal distances."""
    characters = moby_dick.encode(moby_dick.sample() if sample else moby_dick.load()).astype(np.int32)
    split = len(characters) * 9 // 10
    learnt, rest = characters[:split], characters[split:]
    starts = np.linspace(0, len(rest) - length - 1, batch * num_batches).astype(int)
    # Neighbouring windows go to different batches.
    starts = starts.reshape(batch, num_batches).T
    held_out = rest[starts[..., None] + np.arange(length + 1)]
    counts = np.bincount(learnt, minlength=len(moby_dick.ALPHABET)) + 1
    return _Text(learnt, held_out, float(-np.log(counts / counts.sum())[held_out[..., 1:]].mean()))


def text_of(design: Design) -> _Text:
    """The characters of a design: those to train on, the held-out ones, and the loss of guessing."""
    return _text(design.sample, design.length, design.batch, design.held_out_batches)


def _batches(design: Design, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows (updates, batch, length + 1) of a seed, the same for all rows, and the K of a row of random K."""
    learnt = text_of(design).train
    starts = np.random.default_rng([seed, 1]).integers(len(learnt) - design.length, size=(design.updates, design.batch))
    numbers = np.random.default_rng([seed, 2]).integers(1, LARGEST_RANDOM + 1, size=design.updates)
    return learnt[starts[..., None] + np.arange(design.length + 1)], numbers.astype(np.int32)


def _loss(model: LanguageModel, windows: Int[Array, "B N1"], use: str) -> tuple[Array, Array]:
    """Nats per character, and the part of (window, layer) without the steady state that was asked for."""
    logits, unsettled = jax.vmap(partial(model, use=use))(windows[:, :-1])
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, windows[:, 1:])
    return jnp.mean(losses), jnp.mean(unsettled.astype(jnp.float32))


class _Programs(NamedTuple):
    """Compiled once for a row and a design, and shared by all seeds; models go in and out as their arrays."""

    begin: Callable[[Any], Any]
    advance: Callable[..., Any]
    evaluate: Callable[..., Any]
    probe: Callable[..., Any]


@cache
def _programs(row: Row, design: Design) -> _Programs:
    rest = eqx.partition(made(row, design, jax.random.key(0)), eqx.is_inexact_array)[1]
    clip, adam = optax.clip_by_global_norm(10.0), optax.adamw(design.learning_rate, b1=0.9, b2=0.99, weight_decay=0.01)
    optimizer = optax.chain(clip, adam)

    def slope(use: str, params: Any, windows: Array) -> Any:
        return jax.value_and_grad(lambda p: _loss(eqx.combine(p, rest), windows, use), has_aux=True)(params)

    def slope_at(number: Array, params: Any, windows: Array) -> Any:
        if row.trained != "random":
            return slope(row.own_use, params, windows)
        branches = [partial(slope, str(k)) for k in range(1, LARGEST_RANDOM + 1)]
        return jax.lax.switch(number - 1, branches, params, windows)

    @jax.jit
    def advance(start: Any, windows: Array, numbers: Array) -> Any:
        def update(carried: Any, batch: Any) -> Any:
            params, state = carried
            (value, unsettled), gradient = slope_at(batch[1], params, batch[0])
            change, new_state = optimizer.update(gradient, state, params)
            new = eqx.apply_updates(params, change), new_state
            fine = jnp.isfinite(optax.global_norm(gradient))
            return jax.tree.map(lambda a, b: jnp.where(fine, a, b), new, carried), (value, unsettled, ~fine)

        return jax.lax.scan(update, start, (windows, numbers))

    @partial(jax.jit, static_argnames="use")
    def evaluate_one(params: Any, windows: Array, use: str) -> Any:
        return _loss(eqx.combine(params, rest), windows, use)

    def evaluate(params: Any, batches: Array, use: str) -> Any:
        # One batch at a time, so that few and many share one program.
        return np.transpose([evaluate_one(params, windows, use=use) for windows in batches])

    @jax.jit
    def probe(params: Any, windows: Array) -> Any:
        model = eqx.combine(params, rest)
        found = jax.vmap(partial(_probed, model, row.own_use))(windows[:, :-1])
        return jax.tree.map(lambda a: jnp.mean(a, axis=0), found)

    return _Programs(jax.jit(optimizer.init), advance, evaluate, probe)


def _probed(model: LanguageModel, use: str, characters: Array) -> dict[str, Array]:
    """Of each layer at the inputs that it has in the model's own use, by update and head; see ``train``."""
    assert isinstance(model.stack, SpinTransformer)
    stack = model.stack.under(Relax() if use == "inf" else Unroll(int(use)))
    arrays, rest = eqx.partition(stack.modules, eqx.is_array)
    mask = _causal(len(characters))

    def layer(x: Array, arrays: Any) -> tuple[Array, dict[str, Array]]:
        module: SpinTransformerModule = eqx.combine(arrays, rest)
        path = module.path(x, mask, steps=STEPS)
        found = module.steady_state(x, mask)
        J = module.couplings(x, mask)
        d = module.dim // module.num_heads
        squares = jnp.sum(path.steady.value.reshape(len(x), module.num_heads, d) ** 2, axis=-1)
        apart = jnp.sqrt(jnp.sum((path.magnetizations - path.steady.value) ** 2, axis=(1, 2)))
        return found.value, {
            "distance": apart / jnp.sqrt(jnp.sum(squares)),
            "mismatch": path.mismatch,
            "irreversibility": path.entropy_production,
            "n_eff": jnp.mean(1 / jnp.sum(J**2, axis=-1), axis=-1),
            "q": len(x) * jnp.mean(jnp.sum(J**2, axis=-1), axis=-1),
            "chi": module.beta * jnp.mean(jnp.float32(sphere.squared_radius(d)) - squares, axis=0) / d,
            "unsettled": 1.0 - path.steady.converged.astype(x.dtype),
        }

    return jax.lax.scan(layer, model.bottom(characters), arrays)[1]


class Checkpoint(NamedTuple):
    """A file with a training on its way, of the sweep with this ``identity``: where a run that was stopped goes on."""

    path: Path
    identity: str

    def write(self, carried: Any, found: Mapping[str, np.ndarray]) -> None:
        """Weights with the state of the optimizer, and what was found so far; whole or not at all."""
        leaves: dict[str, Any] = {f"carried.{k}": np.asarray(a) for k, a in enumerate(jax.tree.leaves(carried))}
        leaves |= {f"found.{name}": values for name, values in found.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        sweep.write(self.path, leaves | {"identity": np.array(self.identity)})

    def read(self, like: Any) -> tuple[Any, dict[str, np.ndarray]] | None:
        """What was written, in the form of ``like``; None where there is nothing, or something of another sweep.

        A damaged file is set aside as NAME.damaged, with a warning, and is nothing: the training begins anew.
        """
        if not self.path.is_file():
            return None
        arrays = sweep.read(self.path)
        if arrays is None:
            aside = self.path.with_name(f"{self.path.name}.damaged")
            os.replace(self.path, aside)
            warnings.warn(
                f"{self.path}: expected a whole checkpoint, got a damaged one, which is now {aside.name}; "
                "this training begins anew, and all that are finished stay as they are",
                stacklevel=2,
            )
            return None
        if str(arrays["identity"]) != self.identity:
            return None
        leaves, structure = jax.tree.flatten(like)
        found = {name.removeprefix("found."): a for name, a in arrays.items() if name.startswith("found.")}
        return jax.tree.unflatten(structure, [jnp.asarray(arrays[f"carried.{k}"]) for k in range(len(leaves))]), found


def resumed(
    carried: Any,
    advance: Callable[[Any, slice], tuple[Any, dict[str, Any]]],
    look: Callable[[Any], dict[str, Any]],
    *,
    updates: int,
    every: int,
    checkpoint: Checkpoint | None = None,
) -> tuple[Any, dict[str, np.ndarray]]:
    """Weights with the state of the optimizer after all ``updates``, and the course, from a checkpoint if there is one.

    ``advance`` makes the updates of a slice and tells of each of them under the names ``losses``, ``unsettled`` and
    ``skipped``; ``look`` is asked before the first and after ``every`` so many, when the checkpoint is written, too.
    ``seconds`` is added, the processor time of an update in each stretch.

    >>> def advance(x, stretch):
    ...     return x + 1, {"losses": np.zeros(len(range(*stretch.indices(99))))}
    >>> x, found = resumed(0, advance, lambda x: {"looks": x}, updates=6, every=2)
    >>> x, found["looks"].tolist(), len(found["losses"])
    (3, [0, 1, 2, 3], 6)
    """
    found: dict[str, np.ndarray] = {}

    def add(name: str, values: Any) -> None:
        """Behind what is there."""
        found[name] = np.concatenate([found[name], values]) if name in found else np.asarray(values)

    def looked() -> None:
        for name, value in look(carried).items():
            add(name, np.asarray(value)[None])

    before = None if checkpoint is None else checkpoint.read(carried)
    if before is None:
        looked()
    else:
        carried, found = before
    for first in range(len(found.get("losses", ())), updates, every):
        begin = time.process_time()
        carried, course = advance(carried, slice(first, first + every))
        for name, values in course.items():
            add(name, np.asarray(values))
        add("seconds", [(time.process_time() - begin) / len(course["losses"])])
        looked()
        if checkpoint is not None:
            checkpoint.write(carried, found)
    return carried, found


def train(run: Run, design: Design, *, checkpoint: Checkpoint | None = None) -> dict[str, np.ndarray]:
    """One training from its seed, the losses of all uses afterwards, and what its layers do on the way.

    ``losses``, ``unsettled`` and ``skipped`` (updates,): the loss, the part of (window, layer) without the steady state
    that was asked for, and whether the gradient was not finite, so that the update was left out. ``looks`` (looks,):
    the loss of the row's own use on a few held-out batches before the first update and after every ``look_every``.
    ``held_out`` and ``held_out_unsettled`` (uses, batches), of all uses of the row on all held-out batches. ``seconds``
    (looks - 1,) of processor time per update; the first has the compiling in it.

    Of spins, at each look and for each layer under the inputs of its own use, averages over a batch: ``distance``
    (looks, depth, 12), |m_k - m*| / |m*| after k updates; ``mismatch`` and ``irreversibility`` (looks, depth, 12,
    heads), see ``SpinTransformerModule.path``; ``n_eff``, ``q`` and ``chi`` (looks, depth, heads), see
    ``spinbook.vector.mean_field.collective_mode``; ``path_unsettled`` (looks, depth). The weights of seed 1 are among
    the arrays as ``weight.0`` and so on, in the order of the model's leaves.

    With a ``checkpoint`` it goes on from there, and writes it after every look.
    """
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        model = made(run.row, design, jax.random.key(run.seed))
        programs = _programs(run.row, design)
        params = eqx.filter(model, eqx.is_inexact_array)
        windows, numbers = _batches(design, run.seed)
        held_out = jnp.asarray(text_of(design).held_out)
        few = held_out[: design.look_batches]
        carried: Any = (params, programs.begin(params))

        def look(carried: Any) -> dict[str, Any]:
            seen = {"looks": float(jnp.mean(programs.evaluate(carried[0], few, use=run.row.own_use)[0]))}
            if run.row.trained == _VANILLA:
                return seen
            probed = programs.probe(carried[0], few[0])
            return seen | {"path_unsettled" if name == "unsettled" else name: a for name, a in probed.items()}

        def advance(carried: Any, stretch: slice) -> tuple[Any, dict[str, Any]]:
            carried, course = programs.advance(carried, jnp.asarray(windows[stretch]), jnp.asarray(numbers[stretch]))
            return carried, dict(zip(_COURSE, course, strict=True))

        carried, found = resumed(
            carried, advance, look, updates=design.updates, every=design.look_every, checkpoint=checkpoint
        )
        ends = [programs.evaluate(carried[0], held_out, use=use) for use in run.row.uses]
        leaves = jax.tree.leaves(carried[0])
        found |= {
            "held_out": np.array([values for values, _ in ends]),
            "held_out_unsettled": np.array([parts for _, parts in ends]),
            "parameters": np.array(sum(leaf.size for leaf in leaves)),
        }
        if run.seed == 1:
            found |= {f"weight.{k}": np.asarray(leaf) for k, leaf in enumerate(leaves)}
        return found


def _entry(run: Run, arrays: Mapping[str, np.ndarray], design: Design) -> dict[str, Any]:
    """What the record says of a run: four digits of courses, six of what counts; paths of the first seed only."""

    def stretches(name: str) -> np.ndarray:
        values = arrays[name].astype(float)
        return np.array([values[k : k + design.look_every].mean() for k in range(0, len(values), design.look_every)])

    held_out = arrays["held_out"].astype(float)
    entry: dict[str, Any] = {
        "row": run.row.name,
        "beta": run.row.beta,
        "seed": run.seed,
        "own_use": run.row.own_use,
        "uses": list(run.row.uses),
        "held_out": records.numbers(held_out.mean(axis=1), 6),
        "held_out_error": records.numbers(held_out.std(axis=1, ddof=1) / math.sqrt(held_out.shape[1]), 3),
        "held_out_unsettled": records.numbers(arrays["held_out_unsettled"].mean(axis=1), 4),
        "skipped": records.numbers(arrays["skipped"].mean(), 4),
        "losses": records.numbers(stretches("losses"), 4),
        "unsettled": records.numbers(stretches("unsettled"), 4),
        "looks": records.numbers(arrays["looks"], 5),
        "seconds": records.numbers(np.median(arrays["seconds"]), 3),
        "parameters": int(arrays["parameters"]),
    }
    if "distance" in arrays:
        entry["distance"] = records.numbers(arrays["distance"][[0, -1]], 4)
        if run.seed == 1:
            for name in ("mismatch", "irreversibility", "n_eff", "q", "chi", "path_unsettled"):
                entry[name] = records.numbers(arrays[name], 4)
    return entry


def _label(row: Row) -> str:
    return f"{row.trained}{'-field' * row.field}-{row.beta:g}"


def _unfinished(folder: Path, run: Run) -> Path:
    return folder / "unfinished" / f"{_label(run.row)}-{run.seed}.npz"


def _task(run: Run, design: Design, place: Path | None, identity: str) -> dict[str, np.ndarray]:
    if place is None:
        return train(run, design)
    return train(run, design, checkpoint=Checkpoint(_unfinished(place, run), identity))


def _runs(rows: Sequence[Row], first: int, last: int) -> list[Run]:
    """All rows of a seed before the next seed, so that contrasts can be looked at as soon as a seed is through."""
    return [Run(row, seed) for seed in range(first, last + 1) for row in rows]


def compare(design: Design = SMOKE, *, folder: Path | None = None, **options: Any) -> dict[str, Any]:
    """The record, which is also written to ``transient.json.gz`` in ``folder``, anew with each run that is done.

    Three stages, each in its own subfolder: the primary rows with the least number of seeds; the rows beside them; and
    more seeds of the primary rows, if a deciding question is undecided then. Called again with the same folder it goes
    on where it was, at the last look of the run that it was at. Weights of the first seed are written beside as
    ``weights-ROW-BETA.npz``, see ``restored``. ``options`` are those of ``spinbook.sweep.iterate``. Raises
    ``FileNotFoundError`` where the text is missing.
    """
    blind = text_of(design).blind
    found: dict[Run, dict[str, Any]] = {}
    growing = records.Growing.at(folder, _ARTIFACT)

    def written(complete: bool) -> dict[str, Any]:
        rows = {name: [row._asdict() for row in getattr(design, name)] for name in ("primary", "beside")}
        content = {
            "format": 1,
            "complete": complete,
            "design": design._asdict() | rows,
            "blind": blind,
            "data": {} if design.sample else {moby_dick.FILE.name: moby_dick.FILE.sha256},
            "runs": [found[run] for run in sorted(found, key=lambda run: (run.row.beta, run.seed, run.row.name))],
        }
        return growing.write(content)

    def stage(name: str, runs: Sequence[Run]) -> None:
        described: list[Any] = [[run.row.trained, run.row.field, run.row.beta, run.seed] for run in runs]
        sizes = [design.depth, design.dim, design.num_heads, design.length, design.batch, design.updates]
        measures = [design.learning_rate, design.look_every, design.look_batches, design.held_out_batches]
        identity = sweep.fingerprint(sizes, measures, sweep.code_version(train))
        work, place = partial(_task, design=design, place=folder, identity=identity), growing.beside(name)
        described += [sizes, measures, design.sample]
        for run, arrays in records.runs(work, runs, *described, folder=place, label=name, **options):
            found[run] = _entry(run, arrays, design)
            if folder is not None:
                weights: dict[str, Any] = {key: value for key, value in arrays.items() if key.startswith("weight.")}
                if weights:
                    np.savez(folder / f"weights-{_label(run.row)}.npz", **weights)
                _unfinished(folder, run).unlink(missing_ok=True)
            written(complete=False)

    stage("primary", _runs(design.primary, 1, design.least))
    stage("beside", _runs(design.beside, 1, design.beside_seeds))
    if design.most > design.least and transient_questions.undecided(written(complete=False)):
        stage("more", _runs(design.primary, design.least + 1, design.most))
    return written(complete=True)
