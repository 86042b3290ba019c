"""Cumulant generating functions K(t) = log E[exp(t h)] of six hidden priors, in closed form.

``gaussian`` is a plain function of t; the others are makers that take the parameter of the prior, a number or one for
each hidden unit (the last axis), and return K. Each K acts entry by entry and keeps dtype and shape. All are convex,
vanish at t = 0 and can be differentiated to any order there.

Where E[exp(t h)] diverges K is +inf, and with it an energy -inf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["bernoulli", "constant", "exponential", "gaussian", "laplace", "poisson"]

CumulantGeneratingFunction = Callable[[Any], Array]


@jax.jit
def _bernoulli(t: Array, p: Array) -> Array:
    # Near zero the first form keeps the relative accuracy of a small K, far out the second neither overflows nor
    # cancels. Where the first form is not used it gets t = 0: an overflow would make the derivatives NaN.
    near = jnp.abs(t) <= 1
    first = jnp.log1p(p * jnp.expm1(jnp.where(near, t, 0)))
    second = jnp.logaddexp(jnp.log1p(-p), jnp.log(p) + t)
    return jnp.where(near, first, second)


@jax.jit
def _exponential(t: Array, rate: Array) -> Array:
    inside = t < rate
    return jnp.where(inside, -jnp.log1p(-jnp.where(inside, t, 0) / rate), jnp.inf)


@jax.jit
def _laplace(t: Array, scale: Array) -> Array:
    inside = jnp.abs(t) * scale < 1
    return jnp.where(inside, -jnp.log1p(-((scale * jnp.where(inside, t, 0)) ** 2)), jnp.inf)


def _prior(
    value: Any, name: str, check: Callable[[Any, str], Array], formula: Callable[[Array, Array], Array]
) -> CumulantGeneratingFunction:
    """t -> formula(t, value), with the parameter ``value`` checked, in the dtype and the shape of t."""
    parameter = check(value, name)

    def K(t: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
        t = validate.finite(t, "t")
        return formula(t, jnp.broadcast_to(parameter.astype(t.dtype), t.shape))

    return K


def gaussian(t: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
    """K(t) = t^2 / 2, the standard normal prior; all t.

    Only the normal distribution and its limit ``constant`` have a polynomial K (Marcinkiewicz 1939).
    Source: Bal (2020), section 2, classical discrete Hopfield networks.

    >>> gaussian([0.0, 3.0]).tolist()
    [0.0, 4.5]
    """
    t = validate.finite(t, "t")
    return t * t / 2


def bernoulli(probability: Float[ArrayLike, "*units"] = 0.5) -> CumulantGeneratingFunction:
    """K(t) = log(1 - p + p e^t), the prior with h = 1 with probability p and 0 otherwise; all t.

    ``probability`` lies strictly between 0 and 1. A hidden term b h without normalisation is p = 1 / (1 + e^-b) plus
    the constant log(1 + e^b) per unit.

    >>> round(float(bernoulli(0.3)(4.0)), 3)
    2.838
    """
    validate.require(lambda p: p < 1, probability, "probability", "numbers below 1")
    return _prior(probability, "probability", validate.positive, _bernoulli)


def poisson(rate: Float[ArrayLike, "*units"] = 1.0) -> CumulantGeneratingFunction:
    """K(t) = rate (e^t - 1), the prior with h = 0, 1, 2, ...; all t.

    Up to the constant -rate this is the exponential interaction of modern discrete Hopfield networks.
    Source: Bal (2020), section 2, modern discrete Hopfield networks.

    >>> round(float(poisson(2.0)(1.0)), 4)
    3.4366
    """
    return _prior(rate, "rate", validate.positive, lambda t, rate: rate * jnp.expm1(t))


def exponential(rate: Float[ArrayLike, "*units"] = 1.0) -> CumulantGeneratingFunction:
    """K(t) = -log(1 - t / rate) for t < rate, +inf beyond: the prior with density rate e^{-rate h} for h >= 0.

    >>> exponential(1.0)([0.5, 1.5]).round(4).tolist()
    [0.6931, inf]
    """
    return _prior(rate, "rate", validate.positive, _exponential)


def laplace(scale: Float[ArrayLike, "*units"] = 1.0) -> CumulantGeneratingFunction:
    """K(t) = -log(1 - scale^2 t^2) for |t| < 1 / scale, +inf beyond: the prior e^{-|h| / scale} / (2 scale).

    >>> round(float(laplace(0.5)(1.0)), 4)
    0.2877
    """
    return _prior(scale, "scale", validate.positive, _laplace)


def constant(value: Float[ArrayLike, "*units"] = 1.0) -> CumulantGeneratingFunction:
    """K(t) = value t, the prior of a hidden unit frozen at ``value``; all t.

    The effective energy is then linear in the visible units, up to their own terms: the single model E_mu of the
    mixture behind softmax attention. Source: Bal (2020), section 2, modern Hopfield networks as mixtures.

    >>> float(constant(2.0)(1.5))
    3.0
    """
    return _prior(value, "value", validate.finite, lambda t, value: value * t)
