"""Cumulant generating functions K(t) = log E[exp(t h)] of six hidden priors, in closed form.

``gaussian`` is a plain function of t; the others are makers that take the parameter of the prior, a number or one for
each hidden unit (the last axis), and return K. Each K acts entry by entry and keeps dtype and shape. All are convex,
vanish at t = 0 and can be differentiated to any order there.

Where E[exp(t h)] diverges there is no K: known t raise ``ValueError``, traced ones give +inf (an energy of -inf).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
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


@dataclass(frozen=True)
class _Prior:
    """A family of priors: its parameter with the check of it, K(t, parameter), and the t ``inside`` its ``domain``."""

    parameter: str
    check: Callable[[Any, str], Array]
    formula: Callable[[Array, Array], Array]
    domain: str = ""
    inside: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def __call__(self, value: Any) -> CumulantGeneratingFunction:
        checked = self.check(value, self.parameter)

        def K(t: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
            t = validate.finite(t, "t")
            validate.broadcastable(checked, self.parameter, t.shape)
            values = jnp.broadcast_to(checked.astype(t.dtype), t.shape)
            if self.inside is not None:
                validate.require(self.inside, t, "t", self.domain, (values,))
            return self.formula(t, values)

        return K


_BEYOND = "(beyond, {} prior has no cumulant generating function)".format
_PRIORS = {
    "bernoulli": _Prior("probability", validate.probability, _bernoulli),
    "poisson": _Prior("rate", validate.positive, lambda t, rate: rate * jnp.expm1(t)),
    "exponential": _Prior("rate", validate.positive, _exponential, f"t < rate {_BEYOND('an exponential')}", np.less),
    "laplace": _Prior(
        *("scale", validate.positive, _laplace, f"|t| < 1 / scale {_BEYOND('a Laplace')}"),
        lambda t, scale: np.abs(t) * scale < 1,
    ),
    "constant": _Prior("value", validate.finite, lambda t, value: value * t),
}


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
    return _PRIORS["bernoulli"](probability)


def poisson(rate: Float[ArrayLike, "*units"] = 1.0) -> CumulantGeneratingFunction:
    """K(t) = rate (e^t - 1), the prior with h = 0, 1, 2, ...; all t.

    Up to the constant -rate this is the exponential interaction of modern discrete Hopfield networks.
    Source: Bal (2020), section 2, modern discrete Hopfield networks.

    >>> round(float(poisson(2.0)(1.0)), 4)
    3.4366
    """
    return _PRIORS["poisson"](rate)


def exponential(rate: Float[ArrayLike, "*units"] = 1.0) -> CumulantGeneratingFunction:
    """K(t) = -log(1 - t / rate), the prior with density rate e^{-rate h} for h >= 0; t < rate only.

    >>> exponential(1.0)(1.5)
    Traceback (most recent call last):
    ValueError: t: expected t < rate (beyond, an exponential prior has no cumulant generating function), got 1.5
    """
    return _PRIORS["exponential"](rate)


def laplace(scale: Float[ArrayLike, "*units"] = 1.0) -> CumulantGeneratingFunction:
    """K(t) = -log(1 - scale^2 t^2), the prior with density e^{-|h| / scale} / (2 scale); |t| < 1 / scale only.

    >>> round(float(laplace(0.5)(1.0)), 4)
    0.2877
    """
    return _PRIORS["laplace"](scale)


def constant(value: Float[ArrayLike, "*units"] = 1.0) -> CumulantGeneratingFunction:
    """K(t) = value t, the prior of a hidden unit frozen at ``value``; all t.

    The effective energy is then linear in the visible units, up to their own terms: the single model E_mu of the
    mixture behind softmax attention. Source: Bal (2020), section 2, modern Hopfield networks as mixtures.

    >>> float(constant(2.0)(1.5))
    3.0
    """
    return _PRIORS["constant"](value)
