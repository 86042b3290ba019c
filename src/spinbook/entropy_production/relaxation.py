"""D(p || q) between vector spins in two fields: how far a mean-field system is from rest."""

from __future__ import annotations

from typing import Annotated

import jax.numpy as jnp
from jaxtyping import Array

from spinbook import sphere
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Positive, checked

__all__ = ["divergence"]

Fields = Annotated[Float[ArrayLike, "*#batch D"], sphere.has_radius]


@checked(static=())
def divergence(fields: Fields, other: Fields, *, beta: Positive) -> Float[Array, "*batch"]:
    """D(p || q) = beta (h - g) . m(h) - log Z(h) + log Z(g), with h = ``fields`` and g = ``other``.

    Between a spin in the field h and a spin in the field g, in nats; exact for any D, never negative, zero for h = g.
    Raises ``ValueError`` for D <= 2, fields that do not fit, NaN and beta <= 0. Source: this book.

    >>> round(float(divergence([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], beta=1.0)), 3)
    0.079
    """
    h, g = jnp.broadcast_arrays(fields, other)
    work = beta * jnp.sum((h - g) * sphere.magnetization(h, beta=beta), axis=-1)
    return work - sphere.log_partition(h, beta=beta) + sphere.log_partition(g, beta=beta)
