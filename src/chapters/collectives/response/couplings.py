"""Couplings as functions of the fields, J(h): fixed, softmax, symmetrised.

Each is a pytree, so that compiled functions can take it as an argument, and is called with fields (N, D).

Functions here take their arguments without checks; their callers have checked them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["Fixed", "Softmax", "symmetric"]


class Fixed(NamedTuple):
    """J(h) = J.

    >>> Fixed(jnp.zeros((2, 2)))(jnp.ones((2, 3))).shape
    (2, 2)
    """

    couplings: Float[Array, "N N"]

    def __call__(self, fields: Float[Array, "N D"]) -> Float[Array, "N N"]:
        return self.couplings


class Softmax(NamedTuple):
    """J(h)_ij = softmax_j(h_i W_Q . h_j W_K / sqrt(d)) with d the columns of W_Q: each row sums to one.

    ``query_weights`` and ``key_weights`` are (D, d). Neither symmetric nor without diagonal. Source: Bal (2021),
    Collectives, label softmaxcouplings.

    >>> J = Softmax(jnp.eye(3), jnp.eye(3))(jnp.ones((2, 3)))
    >>> J.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    query_weights: Float[Array, "D d"]
    key_weights: Float[Array, "D d"]

    def __call__(self, fields: Float[Array, "N D"]) -> Float[Array, "N N"]:
        queries, keys = fields @ self.query_weights, fields @ self.key_weights
        return jax.nn.softmax(queries @ keys.T / self.query_weights.shape[1] ** 0.5, axis=-1)


def symmetric(couplings: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """J(h) -> (J + J^T) / 2 without its diagonal: the part on which the probabilities of spins of fixed length depend.

    >>> symmetric(Fixed(jnp.array([[1.0, 2.0], [0.0, 1.0]])))(jnp.ones((2, 1))).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    def of(fields: Array) -> Array:
        J = couplings(fields)
        return (J + J.T) / 2 * (1 - jnp.eye(len(J), dtype=J.dtype))

    return of
