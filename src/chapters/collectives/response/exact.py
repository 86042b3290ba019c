"""Few spins of one, two or three components, exactly: sums over all configurations, or a product of Gauss rules.

A rule for one spin of length sqrt(D) is multiplied over the spins: both signs for D = 1 (Ising), equal angles for D = 2
(XY), Gauss-Legendre nodes times equal angles for D = 3 (Heisenberg). Couplings (N, N) may have any symmetry and a
diagonal. More components, and more configurations than fit in memory, are a ``ValueError``.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp, softmax
from jaxtyping import Array

from chapters.collectives.response.terms import Moments
from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Number

__all__ = ["Configurations", "configurations", "energy", "free_energy", "moments"]

Couplings = Float[ArrayLike, "N N"]
Fields = Float[ArrayLike, "N D"]

_MAX_NUMBERS = 2**24


class Configurations(NamedTuple):
    """``spins`` (K, N, D), each of length sqrt(D), and ``log_weights`` (K,) of the measure, which sum to one."""

    spins: Float[Array, "K N D"]
    log_weights: Float[Array, " K"]


def _one_spin(dim: int, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    if dim == 1:
        return np.array([[1.0], [-1.0]]), np.full(2, 0.5)
    angles = 2 * np.pi * np.arange(num_nodes) / num_nodes
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    if dim == 2:
        return math.sqrt(2) * circle, np.full(num_nodes, 1 / num_nodes)
    # Half as many heights as angles integrate polynomials of the same degree.
    heights, weights = np.polynomial.legendre.leggauss((num_nodes + 1) // 2)
    across = np.sqrt(1 - heights**2)[:, None, None] * circle
    along = np.broadcast_to(heights[:, None, None], (*across.shape[:2], 1))
    points = np.concatenate([across, along], axis=-1).reshape(-1, 3)
    return math.sqrt(3) * points, np.repeat(weights / 2, num_nodes) / num_nodes


def configurations(num_spins: int, dim: int = 1, *, num_nodes: int = 16) -> Configurations:
    """All configurations of ``num_spins`` = N spins of ``dim`` = D = 1, 2 or 3 components, with their weights.

    For D = 1 the sum over the 2^N states is exact. For D = 2 the rule has ``num_nodes`` angles for each spin and
    integrates trigonometric polynomials below that degree exactly, for D = 3 spherical polynomials of degree
    ``num_nodes`` - 1; for exp(-beta E) the error falls faster than any power, once num_nodes exceeds the largest beta
    |field at a spin| sqrt(D). Check it by another num_nodes. Cost: N D numbers for each of 2^N, num_nodes^N or
    (num_nodes^2 / 2)^N configurations. Raises ``ValueError`` for more than 2^24 numbers, D > 3, num_nodes < 2.

    >>> configurations(3).spins.shape, configurations(2, 3, num_nodes=8).spins.shape
    ((8, 3, 1), (1024, 2, 3))
    """
    n = validate.count(num_spins, "num_spins", minimum=1)
    d = validate.count(dim, "dim", minimum=1, maximum=3)
    validate.count(num_nodes, "num_nodes", minimum=2)
    points, weights = _one_spin(d, num_nodes)
    if n * math.log2(len(points)) + math.log2(n * d) > math.log2(_MAX_NUMBERS):
        raise ValueError(f"num_spins: expected at most 2^24 numbers, got {len(points)}^{n} configurations of {n * d}")
    index = np.array(list(itertools.product(range(len(points)), repeat=n)))
    dtype = validate.common_dtype()
    return Configurations(jnp.asarray(points[index], dtype), jnp.asarray(np.log(weights)[index].sum(axis=1), dtype))


def _model(configurations: Configurations, couplings: Any, fields: Any, beta: Any) -> tuple[Array, Array, Array]:
    n, d = configurations.spins.shape[1:]
    dtype = configurations.spins.dtype
    J = validate.matrix(couplings, "couplings", rows=n, columns=n, dtype=dtype)
    h = validate.matrix(fields, "fields", rows=n, columns=d, dtype=dtype)
    return J, h, validate.positive(beta, "beta", ndim=0, dtype=dtype)


def energy(spins: Float[ArrayLike, "*batch N D"], couplings: Couplings, fields: Fields) -> Float[Array, "*batch"]:
    """E = -sum_ij J_ij s_i . s_j - sum_i h_i . s_i, over all ordered pairs, i = j included.

    ``spins`` (..., N, D) of any length. Only (J + J^T) / 2 counts, and J_ii adds the constant -J_ii |s_i|^2.
    Source: Bal (2021), Collectives, labels binaryrandomising and vectorrandomising.

    >>> round(float(energy([[1.0], [-1.0]], [[0.0, 0.5], [0.5, 0.0]], [[0.1], [0.0]])), 3)
    0.9
    """
    dtype = validate.common_dtype(spins, couplings, fields)
    h = validate.matrix(fields, "fields", dtype=dtype)
    J = validate.matrix(couplings, "couplings", rows=h.shape[0], columns=h.shape[0], dtype=dtype)
    s = validate.vectors(spins, "spins", dim=h.shape[1], dtype=dtype)
    if s.ndim < 2 or s.shape[-2] != h.shape[0]:
        raise ValueError(f"spins: expected shape (..., {h.shape[0]}, {h.shape[1]}), got shape {s.shape}")
    return _energy(s, J, h)


@jax.jit
def _energy(s: Array, J: Array, h: Array) -> Array:
    return -jnp.sum(s * (h + J @ s), axis=(-2, -1))


@jax.jit
def _free_energy(s: Array, w: Array, J: Array, h: Array, beta: Array) -> Array:
    return -logsumexp(w - beta * _energy(s, J, h)) / beta


@jax.jit
def _moments(s: Array, w: Array, J: Array, h: Array, beta: Array) -> Moments:
    p = softmax(w - beta * _energy(s, J, h))
    n, d = h.shape
    flat = s.reshape(len(s), -1)
    pairs = (flat * p[:, None]).T @ flat
    return Moments((p @ flat).reshape(n, d), jnp.einsum("iaja->ij", pairs.reshape(n, d, n, d)))


def free_energy(
    configurations: Configurations, couplings: Couplings, fields: Fields, *, beta: Number
) -> Float[Array, ""]:
    """F = -(1 / beta) ln Z, with Z = <exp(-beta E)> over independent, uniform directions.

    Zero without energy; for binary spins the sum over states gives N ln(2) / beta less. Differentiable in couplings,
    fields and beta. Cost: N^2 D for each configuration. Source: Bal (2021), Collectives, label partfun.

    >>> two = configurations(2)
    >>> float(free_energy(two, [[0.0, 0.5], [0.5, 0.0]], [[0.0], [0.0]], beta=1.0)) < 0
    True
    """
    return _free_energy(*configurations, *_model(configurations, couplings, fields, beta))


def moments(configurations: Configurations, couplings: Couplings, fields: Fields, *, beta: Number) -> Moments:
    """<s_i> and <s_i . s_j>, as averages over the configurations with their Boltzmann weights.

    No differentiation is used: an independent route to the derivatives of ``free_energy``.

    >>> round(float(moments(configurations(1), [[0.0]], [[1.0]], beta=1.0).magnetizations[0, 0]), 4)  # tanh
    0.7616
    """
    return _moments(*configurations, *_model(configurations, couplings, fields, beta))
