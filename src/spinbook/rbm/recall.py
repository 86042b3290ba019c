"""Associative recall: how queries move when they are retrieved, and how near they come to a pattern."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from spinbook import sphere, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.rbm.mixture import Patterns, Queries, retrieve

__all__ = ["overlap", "trajectory"]


def overlap(
    queries: Float[ArrayLike, "*#batch dim"], patterns: Float[ArrayLike, "*#batch dim"]
) -> Float[Array, "*batch"]:
    """q . x / (|q| |x|), the cosine of the angle between corresponding vectors (..., dim); 0 if either is zero.

    However long or short they are: only directions count.

    >>> float(overlap([3.0, 0.0], [1.0, 0.0]))
    1.0
    """
    dtype = validate.common_dtype(queries, patterns)
    x = validate.vectors(patterns, "patterns", dtype=dtype)
    q = validate.vectors(queries, "queries", dim=x.shape[-1], dtype=dtype)
    validate.same_batch(q, "queries", x, "patterns")
    return _overlap(q, x)


@jax.jit
def _overlap(q: Array, x: Array) -> Array:
    q, x = jnp.broadcast_arrays(sphere.balanced(q), sphere.balanced(x))
    norms = jnp.sqrt(jnp.sum(q * q, axis=-1) * jnp.sum(x * x, axis=-1))
    return jnp.where(norms > 0, jnp.sum(q * x, axis=-1) / norms, 0)


def trajectory(
    queries: Queries, patterns: Patterns, *, beta: Number = 1.0, steps: int
) -> Float[Array, "states *batch dim"]:
    """q_0, q_1, ..., q_steps with q_{n+1} = softmax(beta q_n X^T) X, the start included.

    Arguments as for ``retrieve``. Memory: all states. Compiled once for each shape and number of steps.

    >>> trajectory([[0.5, 0.0]], [[1.0, 0.0], [-1.0, 0.0]], beta=4.0, steps=3).shape
    (4, 1, 2)
    """
    dtype = validate.common_dtype(queries, patterns)
    X = validate.matrix(patterns, "patterns", dtype=dtype)
    q = validate.vectors(queries, "queries", dim=X.shape[1], dtype=dtype)
    beta = validate.positive(beta, "beta", ndim=0, dtype=dtype)
    return _trajectory(q, X, beta, validate.count(steps, "steps"))


@partial(jax.jit, static_argnames="steps")
def _trajectory(q: Array, X: Array, beta: Array, steps: int) -> Array:
    def advance(q: Array, _: None) -> tuple[Array, Array]:
        q = retrieve(q, X, beta=beta)
        return q, q

    return jnp.concatenate([q[None], jax.lax.scan(advance, q, None, length=steps)[1]])
