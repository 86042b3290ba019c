"""Single-unit terms a(v) of the energy, E = -sum_i a_i(v_i) + terms of the hidden units and of the couplings.

Each maker returns a function that acts on each unit separately and keeps the shape; the energies sum over the units.
The same functions serve as hidden terms b(h).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["gaussian", "linear"]

Term = Callable[[Any], Array]


@jax.jit
def _gaussian(v: Array, mean: Array, scale: Array) -> Array:
    return -(((v - mean) / scale) ** 2) / 2


def linear(bias: Float[ArrayLike, "*units"]) -> Term:
    """a_i(v_i) = bias_i v_i, for units of any kind; for v in {0, 1} no other term is possible up to a constant.

    ``bias`` is a number or has one entry per unit. The Bernoulli unit with P(v = 1) = p has bias log(p / (1 - p)).
    Raises ``ValueError`` if the bias does not fit the units. Source: Bal (2020), section 2, popular options for a_i.

    >>> linear([0.5, -1.0])([1.0, 1.0]).tolist()
    [0.5, -1.0]
    """
    checked = validate.finite(bias, "bias")

    def term(v: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
        v = validate.finite(v, "v")
        validate.broadcastable(checked, "bias", v.shape)
        return jnp.broadcast_to(checked.astype(v.dtype), v.shape) * v

    return term


def gaussian(mean: Float[ArrayLike, "*units"] = 0.0, scale: Float[ArrayLike, "*units"] = 1.0) -> Term:
    """a_i(v_i) = -(v_i - mean_i)^2 / (2 scale_i^2), for real units.

    The minus sign makes the unit normalisable: exp(a) is the normal density with this mean and standard deviation, up
    to its constant. ``mean`` and ``scale`` are numbers or have one entry per unit; scale <= 0 raises ``ValueError``.
    Source: Bal (2020), section 2, popular options for a_i, which prints the opposite sign (an erratum).

    >>> float(gaussian(mean=1.0, scale=2.0)(3.0))
    -0.5
    """
    centre = validate.finite(mean, "mean")
    width = validate.positive(scale, "scale")

    def term(v: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
        v = validate.finite(v, "v")
        validate.broadcastable(centre, "mean", v.shape)
        validate.broadcastable(width, "scale", v.shape)
        return _gaussian(v, *(jnp.broadcast_to(x.astype(v.dtype), v.shape) for x in (centre, width)))

    return term
