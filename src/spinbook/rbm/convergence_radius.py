"""Radius of convergence of the cumulant series of each hidden prior: distance from 0 to the nearest singularity of K.

Takes the parameters of the prior and returns the radius; says nothing about the sum itself (see ``cumulants.series``).
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["bernoulli", "constant", "exponential", "gaussian", "laplace", "poisson"]


def gaussian() -> Float[Array, ""]:
    """R = infinity: K is a polynomial.

    >>> float(gaussian())
    inf
    """
    return jnp.asarray(jnp.inf)


@validate.finite_result
def bernoulli(probability: Float[ArrayLike, "*units"] = 0.5) -> Float[Array, "*shape"]:
    """R = |log(q / p) + i pi| with q = 1 - p, where q + p e^t = 0. Never smaller than pi.

    >>> round(float(bernoulli(0.3)), 3)
    3.254
    """
    p = validate.probability(probability, "probability")
    return jnp.hypot(jnp.log1p(-p) - jnp.log(p), jnp.pi)


def poisson(rate: Float[ArrayLike, "*units"] = 1.0) -> Float[Array, "*shape"]:
    """R = infinity: K is the exponential function but for a constant.

    >>> float(poisson(2.0))
    inf
    """
    return jnp.full_like(validate.positive(rate, "rate"), jnp.inf)


@validate.finite_result
def exponential(rate: Float[ArrayLike, "*units"] = 1.0) -> Float[Array, "*shape"]:
    """R = rate, where K itself ends.

    >>> float(exponential(2.0))
    2.0
    """
    return validate.positive(rate, "rate")


@validate.finite_result
def laplace(scale: Float[ArrayLike, "*units"] = 1.0) -> Float[Array, "*shape"]:
    """R = 1 / scale, where K itself ends.

    >>> float(laplace(0.5))
    2.0
    """
    return 1 / validate.positive(scale, "scale")


def constant(value: Float[ArrayLike, "*units"] = 1.0) -> Float[Array, "*shape"]:
    """R = infinity: K is a polynomial.

    >>> float(constant())
    inf
    """
    return jnp.full_like(validate.finite(value, "value"), jnp.inf)
