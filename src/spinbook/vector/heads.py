"""Cuts vectors into slices, one for each attention head, and joins the slices.

Head h is the h-th of H equal slices of the components; vectors (..., N, D) become (..., H, N, D / H), so that the
couplings of a head act on the last two axes.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["by_heads", "from_heads"]


def by_heads(vectors: Float[Array, "*batch N D"], heads: int) -> Float[Array, "*batch H N d"]:
    """Slices of the components in front of the sites; raises ``ValueError`` where the heads do not divide them.

    >>> by_heads(jnp.zeros((5, 8)), 2).shape
    (2, 5, 4)
    """
    *batch, num_sites, dim = vectors.shape
    if dim % heads:
        raise ValueError(f"couplings: expected a number of heads that divides {dim} components, got {heads}")
    return jnp.moveaxis(vectors.reshape(*batch, num_sites, heads, dim // heads), -2, -3)


def from_heads(vectors: Float[Array, "*batch H N d"]) -> Float[Array, "*batch N D"]:
    """The inverse of ``by_heads``.

    >>> from_heads(jnp.zeros((2, 5, 4))).shape
    (5, 8)
    """
    a = jnp.moveaxis(vectors, -3, -2)
    # The size is told, since none can be found for an empty batch.
    return a.reshape(*a.shape[:-2], a.shape[-2] * a.shape[-1])
