"""Averages over independent replicas, and their standard errors.

Replicas are rows, (replicas, ...), of any quantity. Products that need much memory are kept for at most 16 groups of
replicas.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook.annotations import ArrayLike, Float

__all__ = ["group_means", "grouped", "mean_and_error", "standard_error"]

# Enough for a standard error that is itself known to a fifth, and few enough to keep N^2 numbers for each.
_MAX_GROUPS = 16


def grouped(rows: Float[Array, " R *shape"]) -> Float[Array, "G size *shape"]:
    """Replicas in groups of equal size; the last group is filled up with zeros, which add nothing to a sum.

    >>> grouped(jnp.ones((40, 5))).shape
    (14, 3, 5)
    """
    size = -(-len(rows) // _MAX_GROUPS)
    return jnp.pad(rows, ((0, -len(rows) % size), *((0, 0),) * (rows.ndim - 1))).reshape(-1, size, *rows.shape[1:])


def group_means(rows: Float[Array, " R *shape"]) -> Float[Array, " G *shape"]:
    """The mean of each group.

    >>> group_means(jnp.arange(40.0)).tolist()[-2:]
    [37.0, 39.0]
    """
    groups = grouped(rows)
    number, size = groups.shape[:2]
    counts = np.minimum(size, len(rows) - size * np.arange(number)).reshape(-1, *(1,) * (rows.ndim - 1))
    return jnp.sum(groups, axis=1) / jnp.asarray(counts, rows.dtype)


def standard_error(
    samples: Float[Array, " G *shape"], weights: Float[Array, " G"] | None = None
) -> Float[Array, "*shape"]:
    """The error of sum_g w_g x_g, for independent x_g with variances proportional to 1 / w_g; NaN for a single x_g.

    It is itself an estimate: from G samples, deviations in units of it follow Student's t with G - 1 degrees of freedom
    rather than a normal distribution. For the 16 groups of many replicas these are 15, a spread of sqrt(15/13) = 1.07,
    and 99.7 % of the deviations are within 3.6 units, not 3.

    >>> float(standard_error(jnp.array([1.0, 3.0])))
    1.0
    """
    count = samples.shape[0]
    if count == 1:
        return jnp.full(samples.shape[1:], jnp.nan, samples.dtype)
    weights = jnp.full(count, 1 / count, samples.dtype) if weights is None else weights
    squares = (samples - jnp.tensordot(weights, samples, 1)[None]) ** 2
    return jnp.sqrt(jnp.tensordot(weights, squares, 1) / (count - 1))


def mean_and_error(values: Float[ArrayLike, "... n"]) -> tuple[Any, Any]:
    """The mean of n independent values and its standard error, s / sqrt(n), in NumPy's double precision.

    The error is NaN where values are not finite.

    >>> [round(float(number), 6) for number in mean_and_error([1.0, 2.0, 3.0, 2.0])]
    [2.0, 0.408248]
    """
    x = np.asarray(values, dtype=float)
    with np.errstate(invalid="ignore"):
        return x.mean(axis=-1), x.std(axis=-1, ddof=1) / np.sqrt(x.shape[-1])
