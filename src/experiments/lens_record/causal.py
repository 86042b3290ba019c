"""The second network of the lens: a causal transformer of our own, which is trained here before it is looked at.

It is the ordinary twin in the trainings of ``comparison.transient``, from the same seed. What is asked of it, and which
answers a causal mask gives by itself, is in the plan of the lens. ``python -m experiments.lens_record --network causal
--out FOLDER`` writes ``causal.json.gz``; the one beside this module is the record of the book. It needs the file of
``datasets.moby_dick``, and with ``--quick`` only the sample of it. The training goes on where it stopped, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from experiments import records
from experiments.comparison import transient
from experiments.comparison.transient import Checkpoint, Design, LanguageModel, Row, Run, VanillaStack
from experiments.datasets import moby_dick
from experiments.encoder import Trace
from experiments.lens_record import runs
from experiments.lens_record.runs import FULL, Sizes, _Task
from spinbook import lens, sweep
from spinbook.precision import enable_x64
from spinbook.spin_transformer import Rotary
from spinbook.vector.heads import by_heads, from_heads

__all__ = ["Layer", "block", "collect", "control", "layers", "run", "windows"]

_ROW, _SEED = Row("vanilla"), 1
_ABLATIONS = ("residual", "own", "forward")
_WEIGHTS, _TRAINING = "weights.npz", "training.npz"


class Layer(NamedTuple):
    """Weights of one layer, as rows of ``comparison.transient.VanillaStack`` have them: maps are (out, in)."""

    to_queries_keys_values: Array
    to_output: Array
    up: Array
    down: Array
    gains: Array


def layers(model: LanguageModel) -> tuple[Layer, ...]:
    """The layers of a model whose stack is vanilla, the first below."""
    stack = model.stack
    assert isinstance(stack, VanillaStack)
    return tuple(Layer(*(getattr(stack, name)[k] for name in Layer._fields)) for k in range(len(stack.up)))


def _divided(x: Array, own: bool = True) -> Array:
    """x over the root mean square of each token, or of all of them."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1 if own else None, keepdims=True) + np.float32(1e-6))


def _parts(y: Array, layer: Layer, heads: int) -> tuple[Array, Array, Array, Array]:
    q, k, v = (by_heads(a, heads) for a in jnp.split(y @ layer.to_queries_keys_values.T, 3, axis=-1))
    q, k = Rotary()(q), Rotary()(k)
    logits = jnp.einsum("hid,hjd->hij", q, k) / np.float32(np.sqrt(q.shape[-1]))
    allowed = np.tril(np.ones((len(y), len(y)), bool))
    return jax.nn.softmax(jnp.where(allowed, logits, jnp.finfo(logits.dtype).min), axis=-1), q, k, v


def _attended(y: Array, layer: Layer, heads: int) -> Array:
    attention, _, _, v = _parts(y, layer, heads)
    return from_heads(attention @ v) @ layer.to_output.T


def _forward(y: Array, layer: Layer) -> Array:
    return jax.nn.gelu(y @ layer.up.T, approximate=False) @ layer.down.T


@partial(jax.jit, static_argnames=("heads", "residual", "own", "forward", "silent"))
def block(
    x: Float[Array, "N D"],
    layer: Layer,
    heads: int,
    *,
    residual: bool = True,
    own: bool = True,
    forward: bool = True,
    silent: int | None = None,
) -> Trace:
    """x + attention(norm x), then that plus the feed-forward network of its norm; ``middle`` is what the latter reads.

    Without ``own`` a norm divides by the root mean square of all tokens; ``silent`` is a token whose values are zero.
    """
    attention, q, k, v = _parts(layer.gains[0] * _divided(x, own), layer, heads)
    v = v if silent is None else v.at[:, silent].set(0)
    attended = from_heads(attention @ v) @ layer.to_output.T
    between = residual * x + attended
    middle = layer.gains[1] * _divided(between, own)
    added = forward * _forward(middle, layer)
    return Trace(x, q, k, v, attention, attended, middle, added, residual * between + added)


def run(characters: Int[np.ndarray | Array, " N"], model: LanguageModel, **changes: Any) -> list[Trace]:
    """The traces of all layers on these characters, as they are or with the ``changes`` of ``block``."""
    assert isinstance(model.stack, VanillaStack)
    x, traces = model.bottom(jnp.asarray(characters)), []
    for layer in layers(model):
        traces.append(block(x, layer, model.stack.num_heads, **changes))
        x = traces[-1].outputs
    return traces


def windows(design: Design, number: int) -> Int[np.ndarray, "W N1"]:
    """``number`` windows of the held-out tenth of the text, evenly spaced, each with the character that follows."""
    characters = moby_dick.encode(moby_dick.sample() if design.sample else moby_dick.load()).astype(np.int32)
    rest = characters[len(characters) * 9 // 10 :]
    begin = np.arange(number) * (len(rest) - design.length - 1) // number
    return np.asarray(rest[begin[:, None] + np.arange(design.length + 1)])


def control(name: str, model: LanguageModel, design: Design) -> LanguageModel:
    """ "fresh" as it was before its first update, "shuffled" with permuted entries of every matrix of its layers."""
    rng = np.random.default_rng(0)
    if name == "fresh":
        with enable_x64(False):
            return transient.made(_ROW, design, jax.random.key(_SEED))
    if name != "shuffled":
        return model
    matrices = Layer._fields[:-1]
    old = [getattr(model.stack, field) for field in matrices]
    new = [jnp.stack([jnp.asarray(rng.permuted(np.ravel(W)).reshape(W.shape)) for W in each]) for each in old]
    shuffled: LanguageModel = eqx.tree_at(lambda m: [getattr(m.stack, field) for field in matrices], model, new)
    return shuffled


def _trained(folder: Path, design: Design) -> dict[str, Any]:
    """Trains the network, unless its weights lie in the folder; what the training came to."""
    if not (folder / _TRAINING).is_file():
        unfinished = folder / "unfinished.npz"
        identity = sweep.fingerprint(list(map(str, design)), sweep.code_version(transient.train))
        found = transient.train(Run(_ROW, _SEED), design, checkpoint=Checkpoint(unfinished, identity))
        weights: dict[str, Any] = {name: a for name, a in found.items() if name.startswith("weight.")}
        np.savez(folder / _WEIGHTS, **weights)
        np.savez(folder / _TRAINING, held_out=found["held_out"][0], skipped=found["skipped"].mean())
        unfinished.unlink()
    with np.load(folder / _TRAINING) as training:
        held_out = training["held_out"].astype(float)
        error = held_out.std(ddof=1) / np.sqrt(len(held_out))
        return {
            "held_out": records.numbers(held_out.mean(), 6),
            "held_out_error": records.numbers(error, 3),
            "skipped": records.numbers(training["skipped"], 4),
        }


@cache
def _network(name: str, folder: Path, design: Design) -> LanguageModel:
    return control(name, transient.restored(_ROW, design, folder / _WEIGHTS), design)


def _loss(traces: Sequence[Trace], model: LanguageModel, following: np.ndarray) -> float:
    """Nats a character."""
    logits = model.gain * _divided(traces[-1].outputs) @ model.readout.T
    return float(jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, following)))


def _sentence(model: LanguageModel, window: np.ndarray) -> dict[str, Any]:
    """Cosines by depth without one part (ablations, L + 1); losses as it is, with silent first and other character."""
    characters, following = window[:-1], window[1:]
    cosines = []
    for part in _ABLATIONS:
        traces = run(characters, model, **{part: False})
        cosines.append([float(lens.token_cosine(x)) for x in (traces[0].inputs, *(t.outputs for t in traces))])
    silent = (None, 0, min(20, len(characters) - 2))
    losses = [_loss(run(characters, model, silent=token), model, following) for token in silent]
    return {"ablations": np.array(cosines), "losses": np.array(losses)}


def _outputs(x: Array, layer: Layer, *, heads: int) -> Array:
    return block(x, layer, heads).outputs


def _added(x: Array, layer: Layer, *, heads: int) -> Array:
    return block(x, layer, heads).outputs - x


@cache
def _of_layers(heads: int) -> tuple[Callable[..., Array], ...]:
    """What a layer makes of its states, adds, and adds by attention; always the same objects, so compiled once."""
    return tuple(partial(f, heads=heads) for f in (_outputs, _added, _attended))


def _done(task: _Task, sizes: Sizes, folder: Path, design: Design) -> dict[str, Any]:
    model = _network(task.network, folder, design)
    stack = model.stack
    assert isinstance(stack, VanillaStack)
    outputs, added, attended = _of_layers(stack.num_heads)
    texts = windows(design, sizes.windows)
    window = texts[task.number % len(texts)]
    characters = window[:-1]
    if task.network == "other order":
        characters = np.random.default_rng(task.number).permutation(characters)
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        if task.part == "heads":
            mask = np.tril(np.ones((len(characters),) * 2, bool))
            return runs.measured(run(characters, model), layers(model), outputs, task.number, mask)
        if task.part == "jacobians":
            functions = added, attended, _forward
            rows = []
            for t, layer in zip(run(characters, model), layers(model), strict=True):
                states = t.inputs, layer.gains[0] * _divided(t.inputs), t.middle
                rows.append([(f, x, layer) for f, x in zip(functions, states, strict=True)])
            return runs.of_jacobians(rows, task.number)
        if task.part == "rest":
            layer = layers(model)[task.number]
            start = [_divided(run(w[:-1], model)[task.number].inputs) for w in texts[: sizes.few]]
            return runs.rest(lambda x: _divided(outputs(x, layer)), jnp.stack(start), sizes)
        if task.part == "spins":
            return runs.spins(run(characters, model), task.number, sizes.replicas)
        return _sentence(model, window)


def collect(
    folder: str | Path, *, sizes: Sizes = FULL, plan: str | Path | None = None, **options: Any
) -> dict[str, Any]:
    """The record of the second network, also written to ``causal.json.gz`` in ``folder``, with the weights beside it.

    Sizes other than ``FULL`` train a small network on the sample of the text. ``plan`` as in ``runs.collect``.
    """
    place, design = Path(folder), transient.ALL if sizes == FULL else transient.SMOKE
    place.mkdir(parents=True, exist_ok=True)
    head = {"training": _trained(place, design), "design": {"depth": design.depth, "updates": design.updates}}
    head["data"] = {} if design.sample else {moby_dick.FILE.name: moby_dick.FILE.sha256}
    tasks, described = runs._tasks(sizes, design.depth), (list(sizes), list(map(str, design)))
    function = partial(_done, sizes=sizes, folder=place, design=design)
    return runs._collected(place / "causal.json.gz", function, tasks, sizes, head, plan, *described, **options)
