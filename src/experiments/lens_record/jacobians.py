"""Measures how a layer answers small changes of its states, by derivatives along random directions.

A layer is a function of JAX, of states (N, D) and of its parameters, and returns states.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from spinbook.annotations import ArrayLike, Float


@partial(jax.jit, static_argnames="layer")
def _both_ways(layer: Any, x: Array, parameters: Any, z: Array) -> tuple[Array, Array]:
    def f(x: Array) -> Array:
        return layer(x, *parameters)

    def one(z: Array) -> tuple[Array, Array]:
        forward, backward = jax.jvp(f, (x,), (z,))[1], jax.vjp(f, x)[1](z)[0]
        # |J z|^2 and |J^T z|^2 have the same mean; both together scatter less.
        return jnp.sum((forward - backward) ** 2) / 4, (jnp.sum(forward**2) + jnp.sum(backward**2)) / 2

    return jax.lax.map(one, z)


def antisymmetric_share(
    key: PRNGKeyArray,
    layer: Callable[..., Array],
    states: Float[ArrayLike, "N D"],
    parameters: Any = (),
    *,
    num_probes: int = 8,
) -> tuple[float, float]:
    """|(J - J^T) / 2|^2 / |J|^2 with J = df/dx over all tokens and components, and its standard error over the probes.

    Zero where the layer is the gradient of an energy, one half for a matrix of independent numbers, one for a field of
    rotations. J is never formed: for random signs z the mean of |J z|^2 is |J|^2. One forward and one backward
    derivative a probe, compiled once for the same function. A residual is a gradient and hides what is added to it;
    give the layer without. NaN for one that does not depend on its states.

    >>> turn = jnp.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> round(antisymmetric_share(jax.random.key(0), lambda x: x @ turn, np.ones((3, 2)))[0], 5)
    1.0
    """
    x = jnp.asarray(states)
    z = jax.random.rademacher(key, (num_probes, *x.shape), x.dtype)
    odd, whole = (np.asarray(a, float) for a in _both_ways(layer, x, parameters, z))
    with np.errstate(invalid="ignore"):
        share = odd.sum() / whole.sum()
        error = np.std(odd - share * whole, ddof=1) / np.sqrt(num_probes) / whole.mean()
    return float(share), float(error)
