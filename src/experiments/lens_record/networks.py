"""The controls of a trained encoder, and a small untrained one for brief runs, which need no weights."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from experiments.encoder import HEADS, Encoder, Layer


def permuted(layer: Layer, rng: np.random.Generator) -> Layer:
    """A layer with the entries of every matrix permuted; offsets and gains stay."""
    mixed = [W if W.ndim == 1 else jnp.asarray(rng.permuted(np.asarray(W).ravel()).reshape(W.shape)) for W, _ in layer]
    return Layer(*((W, b) for W, (_, b) in zip(mixed, layer, strict=True)))


def control(name: str, trained: Encoder) -> Encoder:
    """One of ``NETWORKS``: "fresh" as the network is initialised, "shuffled" with ``permuted`` layers.

    Other names give the network itself.
    """
    rng = np.random.default_rng(0)

    def fresh(weights: Array) -> Array:
        return jnp.asarray(rng.normal(scale=0.02, size=weights.shape), weights.dtype)

    def begun(layer: Layer) -> Layer:
        pairs = layer._asdict().items()
        return Layer(
            *((jnp.ones_like(W) if name.endswith("norm") else fresh(W), jnp.zeros_like(b)) for name, (W, b) in pairs)
        )

    if name == "shuffled":
        return trained._replace(layers=tuple(permuted(layer, rng) for layer in trained.layers))
    if name == "fresh":
        layers = tuple(begun(layer) for layer in trained.layers)
        ones = jnp.ones_like(trained.norm[0]), jnp.zeros_like(trained.norm[1])
        return Encoder(fresh(trained.words), fresh(trained.places), ones, layers)
    return trained


def small(depth: int = 3) -> Encoder:
    """An encoder of so many layers, twelve heads of four components and random weights, in single precision.

    It has forty words and 24 places.

    >>> len(small().layers), small().words.shape
    (3, (40, 48))
    """
    rng, D = np.random.default_rng(0), 4 * HEADS

    def numbers(*shape: int, scale: float = 1.0) -> Array:
        return jnp.asarray(scale * rng.normal(size=shape), jnp.float32)

    def norm() -> tuple[Array, Array]:
        return 1 + numbers(D, scale=0.2), numbers(D, scale=0.1)

    def linear(n: int, m: int) -> tuple[Array, Array]:
        return numbers(n, m, scale=2 / n**0.5), numbers(m, scale=0.1)

    def layer() -> Layer:
        q, k, v, out = (linear(D, D) for _ in range(4))
        return Layer(q, k, v, out, norm(), linear(D, 2 * D), linear(2 * D, D), norm())

    return Encoder(numbers(40, D), numbers(24, D), norm(), tuple(layer() for _ in range(depth)))
