"""Small causal language models, of naive spins and of softmax attention, and their training.

The model of spins is that of Bal (2026), section "Training at K = 1 selects a nonequilibrium transient": embeddings
that act as fields at the bottom, layers whose inputs are the magnetizations of the one below, and a linear readout from
normalised magnetizations. A stack of either kind has 11 D^2 weights in a layer, and begins between the same embedding
and readout. Parameters are in single precision; train and use models under ``precision.enable_x64(False)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from experiments.datasets import moby_dick
from spinbook import sphere
from spinbook.spin_transformer import (
    Learned,
    Relax,
    Rotary,
    SpinTransformer,
    Unroll,
    as_magnetizations,
    naive,
    sphere_per_head,
    unit_length,
)

STACKS = ("spins", "vanilla", "identity mixer")
"""What a model can be made of: spins, softmax attention, or the block without attention."""


def causal(num_sites: int) -> Bool[np.ndarray, "N N"]:
    """True where a site may attend to another: to itself and to those before it."""
    return np.tril(np.ones((num_sites, num_sites), bool))


class VanillaStack(eqx.Module):
    """x + W_O attention(norm x), then x + W_2 gelu(W_1 norm x), ``depth`` times: causal, with rotary positions.

    Without biases; norms divide by the root of the mean square and have gains. The feed-forward network has 3.5 D
    hidden units in place of 4 D, which makes up for the output projection that layers of spins lack. Where it does not
    mix, no site receives from another, and the feed-forward network has 5.5 D units.

    >>> stack = VanillaStack(2, 8, 2, key=jax.random.key(0))
    >>> stack(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    to_queries_keys_values: Float[Array, "L 3D D"] | None
    to_output: Float[Array, "L D D"] | None
    up: Float[Array, "L E D"]
    down: Float[Array, "L D E"]
    gains: Float[Array, "L 2 D"]
    num_heads: int = eqx.field(static=True)

    def __init__(self, depth: int, dim: int, num_heads: int, *, mixes: bool = True, key: PRNGKeyArray) -> None:
        def weight(part: int, outputs: int, inputs: int) -> Array:
            drawn = jax.random.uniform(jax.random.fold_in(key, part), (depth, outputs, inputs), jnp.float32, -1, 1)
            return drawn / np.float32(math.sqrt(inputs))

        hidden = (7 if mixes else 11) * dim // 2
        self.to_queries_keys_values = weight(0, 3 * dim, dim) if mixes else None
        self.to_output = weight(1, dim, dim) if mixes else None
        self.up, self.down = weight(2, hidden, dim), weight(3, dim, hidden)
        self.gains = jnp.ones((depth, 2, dim), jnp.float32)
        self.num_heads = num_heads

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        def layer(x: Array, weights: VanillaStack) -> tuple[Array, None]:
            if weights.to_queries_keys_values is not None and weights.to_output is not None:
                parts = _normalised(x, weights.gains[0]) @ weights.to_queries_keys_values.T
                q, k, v = jnp.moveaxis(parts.reshape(len(x), 3, self.num_heads, -1), (1, 2), (0, 1))
                mixed = _attention(Rotary()(q), Rotary()(k), v)
                x = x + jnp.moveaxis(mixed, 0, 1).reshape(x.shape) @ weights.to_output.T
            hidden = jax.nn.gelu(_normalised(x, weights.gains[1]) @ weights.up.T, approximate=False)
            return x + hidden @ weights.down.T, None

        return jax.lax.scan(layer, x, self)[0]


def _attention(q: Array, k: Array, v: Array) -> Array:
    """softmax_j(q_i . k_j / sqrt(d)) v_j over the j up to i, for heads (H, N, d)."""
    logits = q @ jnp.swapaxes(k, -1, -2) / np.float32(math.sqrt(q.shape[-1]))
    return jax.nn.softmax(jnp.where(causal(q.shape[-2]), logits, jnp.finfo(logits.dtype).min), axis=-1) @ v


def _normalised(x: Array, gain: Array) -> Array:
    """g x / sqrt(mean x^2)."""
    return gain * x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + np.float32(1e-6))


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

        ``use``: a number of updates, "inf" for the steady state, or "once" for a stack without spins. Where a layer
        finds no steady state it passes on the best state that it met.
        """
        x = self.bottom(characters)
        unsettled = jnp.zeros(1, bool)
        if isinstance(self.stack, VanillaStack):
            top = self.stack(x)
        elif use == "inf":
            found = self.stack.under(Relax()).steady_state(x, causal(len(x)))
            top, unsettled = found.value[-1], ~found.converged
        else:
            top = self.stack.under(Unroll(int(use)))(x, causal(len(x)))
        return _normalised(top, self.gain) @ self.readout.T, unsettled


def made(stack: str, depth: int, dim: int, num_heads: int, *, beta: float = 1.0, key: PRNGKeyArray) -> LanguageModel:
    """The model before training, of one of ``STACKS``; the same weights for the same key wherever parts are the same.

    Spins are in the configuration of the source: a sphere for each head, a learned start, a feed-forward network of 4 D
    units, queries and keys of length one with rotary positions. ``beta`` is their inverse temperature.

    >>> made("identity mixer", 2, 16, 2, key=jax.random.key(0)).stack.up.shape
    (2, 88, 16)
    """
    if stack not in STACKS:
        raise ValueError(f"stack: expected one of {', '.join(STACKS)}, got {stack}")
    embedding_key, stack_key, readout_key = (jax.random.fold_in(key, part) for part in range(3))
    layers: SpinTransformer | VanillaStack
    if stack == "spins":
        layers = SpinTransformer(
            *(depth, dim, num_heads),
            beta=beta,
            theory=naive,
            spheres=sphere_per_head,
            inputs=as_magnetizations,
            start=Learned,
            feed_forward=4 * dim,
            query_key_maps=(unit_length, Rotary()),
            sharpness=jnp.float32(math.sqrt(dim // num_heads)),
            dtype=jnp.float32,
            key=stack_key,
        )
    else:
        layers = VanillaStack(depth, dim, num_heads, mixes=stack == "vanilla", key=stack_key)
    num_characters = len(moby_dick.ALPHABET)
    drawn = jax.random.normal(embedding_key, (num_characters, num_heads, dim // num_heads), jnp.float32)
    embedding = jnp.float32(sphere.radius(dim // num_heads)) * drawn / jnp.linalg.norm(drawn, axis=-1, keepdims=True)
    readout = jax.random.uniform(readout_key, (num_characters, dim), jnp.float32, -1, 1) / np.float32(math.sqrt(dim))
    return LanguageModel(embedding.reshape(num_characters, dim), layers, jnp.ones(dim, jnp.float32), readout)


@eqx.filter_jit
def loss(model: LanguageModel, read: Int[Array, "B N"], targets: Int[Array, "B M"], use: str) -> tuple[Array, Array]:
    """Nats per character, and the part of (window, layer) without the steady state that was asked for.

    ``targets`` are the characters that follow the last M of the N that are read.
    """
    logits, unsettled = jax.vmap(partial(model, use=use))(read)
    scored = logits[:, read.shape[1] - targets.shape[1] :]
    losses = optax.softmax_cross_entropy_with_integer_labels(scored, targets)
    return jnp.mean(losses), jnp.mean(unsettled.astype(jnp.float32))


Disturb = Callable[[LanguageModel, Array, Array], tuple[LanguageModel, Array]]
"""What a training makes of a model and of the characters (B, N) that it reads, with the number of the update."""


@eqx.filter_jit
def _advance(
    model: LanguageModel, state: Any, batches: Array, rates: Array, numbers: Array, use: str, clip: float, disturb: Any
) -> Any:
    start, rest = eqx.partition(model, eqx.is_inexact_array)

    def disturbed(params: Any, batch: Array, number: Array) -> tuple[Array, Array]:
        model, read = eqx.combine(params, rest), batch[:, :-1]
        if disturb is not None:
            model, read = disturb(model, read, number)
        return loss(model, read, batch[:, 1:], use)

    def update(carried: Any, now: tuple[Array, Array, Array]) -> Any:
        params, state = carried
        batch, rate, number = now
        (value, unsettled), slope = jax.value_and_grad(disturbed, has_aux=True)(params, batch, number)
        change, new_state = _optimizer(clip).update(slope, state, params)
        new = jax.tree.map(lambda a, b: a - rate * b, params, change), new_state
        fine = jnp.isfinite(optax.global_norm(slope))
        return jax.tree.map(partial(jnp.where, fine), new, carried), (value, unsettled, ~fine)

    (params, state), course = jax.lax.scan(update, (start, state), (batches, rates, numbers))
    return eqx.combine(params, rest), state, course


def _optimizer(clip: float) -> optax.GradientTransformation:
    adam = optax.scale_by_adam(b1=0.9, b2=0.99)
    return optax.chain(optax.clip_by_global_norm(clip), adam, optax.add_decayed_weights(0.01))


def train(
    model: LanguageModel,
    batches: Int[np.ndarray, "U B N1"],
    rates: Float[np.ndarray, " U"],
    *,
    use: str,
    clip: float,
    every: int,
    look: Callable[[LanguageModel], Any] = lambda model: None,
    disturb: Disturb | None = None,
) -> tuple[LanguageModel, dict[str, list[Any]]]:
    """The model after AdamW on U batches of windows, with moments 0.9 and 0.99 and a decay of 0.01 of the rate.

    Gradients are clipped to the length ``clip``; an update without a finite gradient is left out. The course has means
    over stretches of ``every`` updates: the ``losses``, the part ``unsettled`` of (window, layer) without the steady
    state that ``use`` asks for, and the part ``skipped`` of updates; and in ``looks`` what ``look`` makes of the model
    before the first and after every stretch.
    """
    state = _optimizer(clip).init(eqx.filter(model, eqx.is_inexact_array))
    course: dict[str, list[Any]] = {"losses": [], "unsettled": [], "skipped": [], "looks": [look(model)]}
    for first in range(0, len(batches), every):
        part = slice(first, first + every)
        now = jnp.asarray(batches[part]), jnp.asarray(rates[part], jnp.float32), jnp.arange(len(batches))[part]
        model, state, found = _advance(model, state, *now, use, clip, disturb)
        for name, values in zip(("losses", "unsettled", "skipped"), found, strict=True):
            course[name].append(float(np.mean(values, dtype=float)))
        course["looks"].append(look(model))
    return model, course
