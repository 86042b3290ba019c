"""The forward pass of all-MiniLM-L6-v2, a sentence encoder of six layers, with all its intermediate results.

The weights are not shipped; the code at the tag ``before-2.0`` reads them. The network is a BERT: embeddings of words,
places and a segment, then layers that normalise after every sum. Source of the architecture: Devlin et al. (2019), of
the network: Reimers and Gurevych (2019), Wang et al. (2020).

The parts of a layer take their arguments without checks; their callers have checked them.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from spinbook.vector.heads import by_heads, from_heads

HEADS = 12
_EPSILON = 1e-12


class Layer(NamedTuple):
    """Weights of one layer. Maps are (in, out), so that x @ W + b; normalisations are a gain and an offset."""

    to_queries: tuple[Array, Array]
    to_keys: tuple[Array, Array]
    to_values: tuple[Array, Array]
    from_values: tuple[Array, Array]
    first_norm: tuple[Array, Array]
    widen: tuple[Array, Array]
    narrow: tuple[Array, Array]
    second_norm: tuple[Array, Array]


class Encoder(NamedTuple):
    """``words`` (V, D), ``places`` (512, D) that hold the segment too, the ``norm`` after their sum, and the layers."""

    words: Array
    places: Array
    norm: tuple[Array, Array]
    layers: tuple[Layer, ...]


class Trace(NamedTuple):
    """All intermediate results of one layer on N tokens; H heads of d components, D = H d.

    ``inputs`` (N, D); ``queries``, ``keys``, ``values`` (H, N, d); ``attention`` (H, N, N), rows sum to one;
    ``attended`` (N, D), what attention adds; ``middle`` (N, D), what the feed-forward network reads; ``forward``
    (N, D), what it adds; ``outputs`` (N, D).
    """

    inputs: Float[Array, "N D"]
    queries: Float[Array, "H N d"]
    keys: Float[Array, "H N d"]
    values: Float[Array, "H N d"]
    attention: Float[Array, "H N N"]
    attended: Float[Array, "N D"]
    middle: Float[Array, "N D"]
    forward: Float[Array, "N D"]
    outputs: Float[Array, "N D"]


def normalised(x: Float[Array, "*n D"], norm: tuple[Array, Array]) -> Float[Array, "*n D"]:
    """g (x - mean x) / sqrt(var x + 1e-12) + b, over the components of each token."""
    off = x - x.mean(-1, keepdims=True)
    return norm[0] * off / jnp.sqrt((off**2).mean(-1, keepdims=True) + _EPSILON) + norm[1]


def _linear(x: Array, weights: tuple[Array, Array]) -> Array:
    return x @ weights[0] + weights[1]


def embed(tokens: Int[Array, " N"], encoder: Encoder) -> Float[Array, "N D"]:
    """Normalised sum of the vector of a word and that of its place."""
    return normalised(encoder.words[tokens] + encoder.places[: len(tokens)], encoder.norm)


def attend(
    x: Float[Array, "N D"], layer: Layer, heads: int = HEADS
) -> tuple[Float[Array, "H N N"], Array, Array, Array]:
    """softmax_j(q_i . k_j / sqrt(d)) of every head, with its queries, keys and values (H, N, d)."""
    q, k, v = (by_heads(_linear(x, w), heads) for w in (layer.to_queries, layer.to_keys, layer.to_values))
    logits = jnp.einsum("hid,hjd->hij", q, k) / q.shape[-1] ** 0.5
    return jax.nn.softmax(logits, axis=-1), q, k, v


def feed_forward(x: Float[Array, "N D"], layer: Layer) -> Float[Array, "N D"]:
    """W_2 gelu(W_1 x + b_1) + b_2, with the error function's gelu."""
    return _linear(jax.nn.gelu(_linear(x, layer.widen), approximate=False), layer.narrow)


@partial(jax.jit, static_argnames="heads")
def block(x: Float[Array, "N D"], layer: Layer, heads: int = HEADS) -> Trace:
    """One layer: x + attention, normalised; that plus the feed-forward network of it, normalised."""
    attention, q, k, v = attend(x, layer, heads)
    attended = _linear(from_heads(attention @ v), layer.from_values)
    middle = normalised(x + attended, layer.first_norm)
    forward = feed_forward(middle, layer)
    return Trace(x, q, k, v, attention, attended, middle, forward, normalised(middle + forward, layer.second_norm))


def run(tokens: Int[np.ndarray | Array, " N"], encoder: Encoder) -> list[Trace]:
    """The traces of all layers on one window of tokens (N,), [CLS] and [SEP] among them."""
    x, traces = embed(jnp.asarray(tokens), encoder), []
    for layer in encoder.layers:
        traces.append(block(x, layer))
        x = traces[-1].outputs
    return traces
