"""The forward pass of RXNMapper's network: one trained block that is applied twelve times, to batches of reactions.

The weights are not shipped. They are in the wheel ``rxnmapper`` 0.4.3, of which two files are read and nothing is run;
every byte is compared with its SHA-256 first. The network is an ALBERT: embeddings of 128 components, widened to 256,
then one layer of a BERT again and again. Licence of the weights: MIT. Source of the architecture: Lan et al. (2020), of
the network: Schwaller et al. (2021).
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from experiments.datasets.files import Known, check, located
from experiments.encoder import Layer, feed_forward, normalised
from spinbook.vector.heads import by_heads, from_heads

HEADS = 8
FILES = (
    Known("pytorch_model.bin", 3212952, "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2"),
    Known("vocab.txt", 3525, "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd"),
)
_WHEEL = "rxnmapper-0.4.3-py3-none-any.whl"
_INSIDE = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/"
_HOW = (
    f"The files are in {_WHEEL}: pip download rxnmapper==0.4.3 --no-deps makes it. "
    "Give the folder of the wheel, or that of the unpacked files."
)
_TOKEN = re.compile(r"\[[^\]]+\]|Br|Cl|%\d\d|>>|.")


class Looped(NamedTuple):
    """``words`` (V, 128), ``places`` (512, 128) that hold the segment too, the ``norm`` after their sum, ``widen`` to
    256 components, the ``layer`` that is repeated, the head that fills in masked tokens, and the vocabulary.

    The head is a map to 128 components, a normalisation, and offsets (V,) of the logits, whose map is ``words``.
    """

    words: Array
    places: Array
    norm: tuple[Array, Array]
    widen: tuple[Array, Array]
    layer: Layer
    head: tuple[Array, Array]
    head_norm: tuple[Array, Array]
    offsets: Array
    vocabulary: dict[str, int]


def _read(folder: Path, known: Known) -> bytes:
    if (folder / known.name).is_file():
        data = (folder / known.name).read_bytes()
    else:
        with zipfile.ZipFile(folder / _WHEEL) as wheel:
            data = wheel.read(_INSIDE + known.name)
    check(data, known, known.name)
    return data


def load(path: str | os.PathLike[str] | None = None) -> Looped:
    """The trained network in JAX's floating type, from a folder with the wheel or with its files.

    Without ``path`` it is ``$SPINBOOK_DATA``, or ``rxnmapper`` in it. Needs PyTorch, to read a file of tensors. Raises
    ``FileNotFoundError`` that says how to get it, and ``ValueError`` for other content than that of ``FILES``.
    """
    import torch

    root = Path(path if path is not None else os.environ.get("SPINBOOK_DATA") or ".")
    with_wheel = [place for place in (root, root / "rxnmapper") if (place / _WHEEL).is_file()]
    folder = with_wheel[0] if with_wheel else located(path, FILES, (".", "rxnmapper"), argument="path", how=_HOW)
    tensors = torch.load(io.BytesIO(_read(folder, FILES[0])), weights_only=True, map_location="cpu")
    found = {name: jnp.asarray(a.double().numpy()) for name, a in tensors.items()}

    def linear(name: str) -> tuple[Array, Array]:
        return found[f"{name}.weight"].T, found[f"{name}.bias"]

    def norm(name: str) -> tuple[Array, Array]:
        return found[f"{name}.weight"], found[f"{name}.bias"]

    at = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    layer = Layer(
        linear(f"{at}.attention.query"),
        linear(f"{at}.attention.key"),
        linear(f"{at}.attention.value"),
        linear(f"{at}.attention.dense"),
        norm(f"{at}.attention.LayerNorm"),
        linear(f"{at}.ffn"),
        linear(f"{at}.ffn_output"),
        norm(f"{at}.full_layer_layer_norm"),
    )
    places = found["albert.embeddings.position_embeddings.weight"]
    return Looped(
        found["albert.embeddings.word_embeddings.weight"],
        places + found["albert.embeddings.token_type_embeddings.weight"][0],
        norm("albert.embeddings.LayerNorm"),
        linear("albert.encoder.embedding_hidden_mapping_in"),
        layer,
        linear("predictions.dense"),
        norm("predictions.LayerNorm"),
        found["predictions.bias"],
        {word: k for k, word in enumerate(_read(folder, FILES[1]).decode().splitlines())},
    )


def tokens(reaction: str) -> list[str]:
    """Atoms, bonds, branches and ring closures of a reaction SMILES, [CLS] before and [SEP] behind.

    >>> tokens("CBr>>C[Mg]Br")
    ['[CLS]', 'C', 'Br', '>>', 'C', '[Mg]', 'Br', '[SEP]']
    """
    return ["[CLS]", *_TOKEN.findall(reaction), "[SEP]"]


def padded(
    reactions: Sequence[str], vocabulary: dict[str, int], length: int
) -> tuple[Int[np.ndarray, "B N"], Int[np.ndarray, " B"]]:
    """Numbers of the tokens of each reaction, zeros behind them, and how many there are."""
    found = np.zeros((len(reactions), length), int)
    words = [tokens(reaction) for reaction in reactions]
    for row, these in zip(found, words, strict=True):
        row[: len(these)] = [vocabulary[word] for word in these]
    return found, np.array([len(these) for these in words])


def _linear(x: Array, weights: tuple[Array, Array]) -> Array:
    return x @ weights[0] + weights[1]


def _seen(x: Array, number: Int[Array, ""]) -> Bool[Array, " N"]:
    return jnp.arange(x.shape[-2]) < number


def embed(ids: Int[Array, " N"], number: Int[Array, ""], network: Looped) -> Float[Array, "N D"]:
    """x_0: the normalised sum of the vectors of a token and of its place, widened. Zero behind ``number`` tokens."""
    x = _linear(normalised(network.words[ids] + network.places[: len(ids)], network.norm), network.widen)
    return jnp.where(_seen(x, number)[:, None], x, 0)


def apply(
    x: Float[Array, "N D"], number: Int[Array, ""], layer: Layer
) -> tuple[Float[Array, "N D"], Float[Array, "H N N"], Float[Array, "H N d"]]:
    """x_(k+1) = f(x_k): attention and its sum normalised, a feed-forward network and its sum normalised.

    With it the attention weights and values of the heads. Tokens behind the first ``number`` are not seen, and zero.
    """
    q, k, v = (by_heads(_linear(x, w), HEADS) for w in (layer.to_queries, layer.to_keys, layer.to_values))
    logits = jnp.einsum("hid,hjd->hij", q, k) / q.shape[-1] ** 0.5
    seen = _seen(x, number)
    attention = jax.nn.softmax(jnp.where(seen, logits, -jnp.inf), axis=-1)
    middle = normalised(x + _linear(from_heads(attention @ v), layer.from_values), layer.first_norm)
    after = normalised(middle + feed_forward(middle, layer), layer.second_norm)
    return jnp.where(seen[:, None], after, 0), attention, v


@partial(jax.jit, static_argnames="passes")
def trajectory(
    x: Float[Array, "B N D"], numbers: Int[Array, " B"], layer: Layer, passes: int
) -> tuple[Float[Array, "K B N D"], Float[Array, "K B H N N"]]:
    """The states after each of so many passes, and the attention weights in each."""
    one = jax.vmap(lambda x, number: apply(x, number, layer)[:2])

    def step(x: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        after, attention = one(x, numbers)
        return after, (after, attention)

    states, attention = jax.lax.scan(step, x, None, length=passes)[1]
    return states, attention


def filled_in(x: Float[Array, "*n D"], network: Looped) -> Float[Array, "*n V"]:
    """Logits of the tokens that may stand in each place."""
    inner = normalised(jax.nn.gelu(_linear(x, network.head), approximate=False), network.head_norm)
    return inner @ network.words.T + network.offsets
