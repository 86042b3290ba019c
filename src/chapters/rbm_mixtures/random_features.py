"""Softmax attention, approximated by positive random features: the sums over patterns serve all queries.

exp(q . x) is the mean over random directions w of exp(w . q - |q|^2 / 2) exp(w . x - |x|^2 / 2). With m of
these directions, attention costs m products for each query instead of one for each pattern. The estimate is unbiased
before it is normalised; its variance grows like exp(|q + x|^2). The exact function is ``spinbook.rbm.retrieve``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, PRNGKeyArray

from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Number

__all__ = ["directions", "retrieve"]


def directions(key: PRNGKeyArray, num_features: int, dim: int, *, dtype: Any = None) -> Float[Array, "features dim"]:
    """w_k, each standard normal, orthogonal to each other within blocks of ``dim``.

    Each block is a random rotation whose rows get the lengths of independent normal vectors. Orthogonal directions do
    not repeat each other, so that the variance is smaller than that of independent ones.

    >>> import jax
    >>> directions(jax.random.key(0), 5, 3).shape
    (5, 3)
    """
    key = validate.key(key)
    m = validate.count(num_features, "num_features", minimum=1)
    n = validate.count(dim, "dim", minimum=1)
    dtype = validate.common_dtype() if dtype is None else dtype
    key_rotation, key_length = jax.random.split(key)
    blocks = -(-m // n)
    rotation, triangle = jnp.linalg.qr(jax.random.normal(key_rotation, (blocks, n, n), dtype))
    # The sign makes the rotation uniform; without it the algorithm's convention shows.
    rotation = rotation * jnp.sign(jnp.diagonal(triangle, axis1=-2, axis2=-1))[:, None, :]
    lengths = jnp.linalg.norm(jax.random.normal(key_length, (blocks, n, n), dtype), axis=-1, keepdims=True)
    return (lengths * rotation).reshape(blocks * n, n)[:m]


@jax.jit
def _log_features(w: Array, x: Array) -> Array:
    return x @ w.T - jnp.sum(x * x, axis=-1, keepdims=True) / 2


@jax.jit
def _retrieve(q: Array, X: Array, w: Array, beta: Array) -> Array:
    root = jnp.sqrt(beta)
    # Largest entries are divided out: a common factor of a query, and of all patterns, cancels in the mean.
    of_q, of_x = _log_features(w, root * q), _log_features(w, root * X)
    of_q = jnp.exp(of_q - jnp.max(of_q, axis=-1, keepdims=True))
    total = logsumexp(of_x, axis=0)
    mean = jax.nn.softmax(of_x, axis=0).T @ X
    share = of_q * jnp.exp(total - jnp.max(total))
    return (share @ mean) / jnp.sum(share, axis=-1, keepdims=True)


def retrieve(
    queries: Float[ArrayLike, "*batch dim"],
    patterns: Float[ArrayLike, "num_patterns dim"],
    directions: Float[ArrayLike, "features dim"],
    *,
    beta: Number = 1.0,
) -> Float[Array, "*batch dim"]:
    """q' = sum_k f_k(q) (sum_mu f_k(x_mu) x_mu) / sum_k f_k(q) sum_mu f_k(x_mu), f_k(x) = exp(w_k . x - |x|^2 / 2).

    With x and q multiplied by sqrt(beta) first: ``spinbook.rbm.retrieve`` with one exponential for each of the random
    ``directions`` w_k in place of the exact ones. The error falls like (number of directions)^(-1/2), from a size that
    grows exponentially with beta |q + x|^2. Cost: one product a direction for a query, whatever the number of patterns.
    Source: Choromanski et al. (2020), on which Bal (2020), section 3, builds.

    >>> import jax
    >>> w = directions(jax.random.key(0), 8, 2)
    >>> retrieve([[0.0, 0.0]], [[1.0, 0.0], [3.0, 4.0]], w).shape
    (1, 2)
    """
    dtype = validate.common_dtype(queries, patterns, directions)
    X = validate.matrix(patterns, "patterns", dtype=dtype)
    q = validate.vectors(queries, "queries", dim=X.shape[1], dtype=dtype)
    w = validate.matrix(directions, "directions", dtype=dtype)
    if w.shape[1] != X.shape[1]:
        raise ValueError(f"directions: expected shape (features, {X.shape[1]}), got {w.shape}")
    return _retrieve(q, X, w, validate.positive(beta, "beta", ndim=0, dtype=dtype))
