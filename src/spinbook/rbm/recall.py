"""Associative recall, measured: corrupt stored patterns, retrieve, compare. Knows nothing of what the patterns show.

A corruption is a function ``corruption(key, pattern)`` from one pattern (dim,) to one query (dim,); the makers below
are three, and any other may be passed. Random numbers come from the key given and from the number of the query alone,
so that results do not depend on the size of the batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Bool, PRNGKeyArray

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.rbm.mixture import retrieve

__all__ = ["Recall", "corrupt", "erasure", "gaussian_noise", "measure", "overlap", "sign_flips", "trajectory"]

Corruption = Callable[[PRNGKeyArray, Array], Array]


class Recall(NamedTuple):
    """What became of each query.

    ``recovered``: no stored pattern is nearer to the retrieved query than the original (Euclidean distance).
    ``overlaps``: cosine of the angle between retrieved query and original. ``distances``: |retrieved - original|.
    """

    recovered: Bool[Array, " queries"]
    overlaps: Float[Array, " queries"]
    distances: Float[Array, " queries"]

    @property
    def fraction(self) -> float:
        """Fraction of the queries recovered."""
        return int(np.count_nonzero(self.recovered)) / self.recovered.size

    @property
    def fraction_standard_error(self) -> float:
        """sqrt(f (1 - f) / queries), as if queries were independent: 0 where all or none were recovered."""
        return math.sqrt(self.fraction * (1 - self.fraction) / self.recovered.size)

    @property
    def mean_overlap(self) -> float:
        """Mean of the overlaps."""
        return float(np.mean(self.overlaps, dtype=np.float64))


@validate.finite_result
def _add_noise(key: PRNGKeyArray, pattern: Array, *, std: Array) -> Array:
    noise = jax.random.normal(validate.key(key), pattern.shape, pattern.dtype)
    return pattern + std.astype(pattern.dtype) * noise


def gaussian_noise(std: Float[ArrayLike, ""]) -> Corruption:
    """q = x + std z, z standard normal in each entry; std >= 0.

    >>> import jax
    >>> gaussian_noise(0.0)(jax.random.key(0), jax.numpy.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """
    checked = validate.finite(std, "std", ndim=0)
    validate.require(lambda x: x >= 0, checked, "std", "a number >= 0")
    return Partial(_add_noise, std=checked)


def _fraction(fraction: Float[ArrayLike, ""]) -> Array:
    checked = validate.finite(fraction, "fraction", ndim=0)
    validate.require(lambda x: (x >= 0) & (x <= 1), checked, "fraction", "a number from 0 to 1")
    return checked


def _chosen(key: PRNGKeyArray, pattern: Array, fraction: Array) -> Array:
    """True in the given fraction of the entries, exactly (rounded), at random places."""
    rank = jax.random.permutation(validate.key(key), pattern.shape[-1])
    return rank.astype(fraction.dtype) < jnp.round(fraction * pattern.shape[-1])


def _erase(key: PRNGKeyArray, pattern: Array, *, fraction: Array, fill: Array) -> Array:
    return jnp.where(_chosen(key, pattern, fraction), fill.astype(pattern.dtype), pattern)


def erasure(fraction: Float[ArrayLike, ""], fill: Float[ArrayLike, ""] = 0.0) -> Corruption:
    """q_i = fill at a random fraction of the places, x_i elsewhere; 0 <= fraction <= 1.

    The number of places is the fraction of dim, rounded to an integer, the same for every query.

    >>> import jax
    >>> float(erasure(0.25)(jax.random.key(0), jax.numpy.ones(8)).sum())
    6.0
    """
    return Partial(_erase, fraction=_fraction(fraction), fill=validate.finite(fill, "fill", ndim=0))


def _flip(key: PRNGKeyArray, pattern: Array, *, fraction: Array) -> Array:
    return jnp.where(_chosen(key, pattern, fraction), -pattern, pattern)


def sign_flips(fraction: Float[ArrayLike, ""]) -> Corruption:
    """q_i = -x_i at a random fraction of the places, x_i elsewhere; 0 <= fraction <= 1.

    >>> import jax
    >>> float(sign_flips(0.25)(jax.random.key(0), jax.numpy.ones(8)).sum())
    4.0
    """
    return Partial(_flip, fraction=_fraction(fraction))


def _as_pytree(corruption: Corruption) -> Partial:
    """A function cannot be passed to compiled code; as a ``Partial`` it can, with its parameters left free."""
    return corruption if isinstance(corruption, Partial) else Partial(corruption)


@jax.jit
def _corrupted(key: PRNGKeyArray, numbers: Array, x: Array, corruption: Corruption) -> Array:
    q = jax.vmap(corruption)(jax.vmap(partial(jax.random.fold_in, key))(numbers), x)
    if q.shape != x.shape:
        raise ValueError(f"corruption: expected queries of shape {x.shape[1:]}, got {q.shape[1:]}")
    return q


@validate.finite_result
def corrupt(
    key: PRNGKeyArray, patterns: Float[ArrayLike, "num_patterns dim"], corruption: Corruption
) -> Float[Array, "num_patterns dim"]:
    """q_k = corruption(key_k, x_k) with key_k = fold_in(key, k): one query for each pattern, as in ``measure``.

    >>> import jax
    >>> corrupt(jax.random.key(0), [[1.0, -1.0], [1.0, 1.0]], sign_flips(1.0)).tolist()
    [[-1.0, 1.0], [-1.0, -1.0]]
    """
    key = validate.key(key)
    X = validate.matrix(patterns, "patterns")
    return _corrupted(key, jnp.arange(X.shape[0]), X, _as_pytree(corruption))


@validate.finite_result
def overlap(
    queries: Float[ArrayLike, "*#batch dim"], patterns: Float[ArrayLike, "*#batch dim"]
) -> Float[Array, "*batch"]:
    """q . x / (|q| |x|), the cosine of the angle between corresponding vectors (..., dim); 0 if either is zero.

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
    norms = jnp.sqrt(jnp.sum(q * q, axis=-1) * jnp.sum(x * x, axis=-1))
    return jnp.where(norms > 0, jnp.sum(q * x, axis=-1) / norms, 0)


@validate.finite_result
def trajectory(
    queries: Float[ArrayLike, "*batch dim"],
    patterns: Float[ArrayLike, "num_patterns dim"],
    *,
    beta: Float[ArrayLike, ""] = 1.0,
    steps: int,
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


@partial(jax.jit, static_argnames=("num_batches", "batch_size"))
def _measure(
    key: PRNGKeyArray, X: Array, corruption: Corruption, beta: Array, steps: Array, num_batches: int, batch_size: int
) -> Recall:
    half_squares = jnp.sum(X * X, axis=-1) / 2

    def batch(numbers: Array) -> Recall:
        originals = numbers % X.shape[0]
        x = X[originals]
        q = _corrupted(key, numbers, x, corruption)
        q = jax.lax.fori_loop(0, steps, lambda _, q: retrieve(q, X, beta=beta), q)
        # Half the squared distance to each pattern, but for |q|^2 / 2, which is the same for all of them.
        gaps = half_squares - q @ X.T
        recovered = jnp.take_along_axis(gaps, originals[:, None], axis=1)[:, 0] <= jnp.min(gaps, axis=1)
        return Recall(recovered, _overlap(q, x), jnp.sqrt(jnp.sum((q - x) ** 2, axis=-1)))

    return jax.lax.map(batch, jnp.arange(num_batches * batch_size).reshape(num_batches, batch_size))


@validate.finite_result
def measure(
    key: PRNGKeyArray,
    patterns: Float[ArrayLike, "num_patterns dim"],
    corruption: Corruption,
    *,
    beta: Float[ArrayLike, ""] = 1.0,
    steps: int = 1,
    num_queries: int | None = None,
    batch_size: int = 256,
) -> Recall:
    """Corrupt, retrieve ``steps`` times, compare: query k starts from pattern k mod num_patterns.

    By default every pattern is tried once; more queries take the patterns in turn, each with fresh corruption.
    ``steps=0`` measures the corrupted queries themselves: recall by nearest neighbour, the baseline.
    Cost: two products of (num_queries, dim) with the patterns per step. Memory: (batch_size, num_patterns).
    Raises ``ValueError`` as ``retrieve`` does, and for numbers of queries or steps that make no sense.

    >>> import jax
    >>> result = measure(jax.random.key(0), [[1.0, 1.0], [-1.0, 1.0]], gaussian_noise(0.1), beta=8.0, num_queries=10)
    >>> result.fraction, result.overlaps.shape
    (1.0, (10,))
    """
    key = validate.key(key)
    X = validate.matrix(patterns, "patterns")
    beta = validate.positive(beta, "beta", ndim=0, dtype=X.dtype)
    steps = validate.count(steps, "steps")
    total = X.shape[0] if num_queries is None else validate.count(num_queries, "num_queries", minimum=1)
    size = min(validate.count(batch_size, "batch_size", minimum=1), total)
    batches = _measure(key, X, _as_pytree(corruption), beta, jnp.asarray(steps), -(-total // size), size)
    return jax.tree.map(lambda x: x.reshape(-1)[:total], batches)
