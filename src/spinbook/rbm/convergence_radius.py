"""Radius of convergence of the cumulant series of Bernoulli units: distance from 0 to the nearest singularity of K.

That of exponential units is ``rate`` and that of Laplace units 1 / ``scale``, where K itself ends; the series of the
other priors converge everywhere. The sum itself is ``cumulants.series``.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["bernoulli"]


def bernoulli(probability: Float[ArrayLike, "*units"] = 0.5) -> Float[Array, "*shape"]:
    """R = |log(q / p) + i pi| with q = 1 - p, where q + p e^t = 0. Never smaller than pi.

    >>> round(float(bernoulli(0.3)), 3)
    3.254
    """
    p = validate.probability(probability, "probability")
    return jnp.hypot(jnp.log1p(-p) - jnp.log(p), jnp.pi)
