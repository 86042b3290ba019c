"""Checks of couplings, fields and states, of binary and of vector spins, in JAX.

Checks that do not depend on the model are in ``spinbook.validate``, those of PyTorch's tensors in
``spinbook.tensors``.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spinbook import sphere, validate

__all__ = [
    "couplings_by_heads",
    "ising_model",
    "magnetizations",
    "one_matrix",
    "sites",
    "spins",
    "strongest",
    "vector_model",
]


def one_matrix(couplings: Any, *, dtype: Any) -> Float[Array, "N N"]:
    """A square matrix of couplings."""
    J = validate.finite(couplings, "couplings", dtype=dtype)
    if J.ndim != 2 or J.shape[0] != J.shape[1] or J.size == 0:
        raise ValueError(f"couplings: expected a square matrix (N, N), got shape {J.shape}")
    return J


def couplings_by_heads(couplings: Any, *, dtype: Any) -> Float[Array, "H N N"]:
    """Square couplings, one matrix or one for each head, as (heads, N, N)."""
    J = validate.finite(couplings, "couplings", dtype=dtype)
    if J.ndim not in (2, 3) or J.shape[-1] != J.shape[-2] or J.size == 0:
        raise ValueError(f"couplings: expected shape (N, N) or (heads, N, N), got shape {J.shape}")
    return J[None] if J.ndim == 2 else J


def strongest(couplings: Float[Array, "*heads N M"]) -> float:
    """max_i sum_j |J_ij|, the largest of all heads: a bound on the field of neighbours of length 1."""
    with np.errstate(over="ignore"):
        return float(np.abs(np.asarray(couplings, np.float64)).sum(axis=-1).max())


def ising_model(
    couplings: Any, fields: Any, beta: Any, *, dtype: Any
) -> tuple[Float[Array, "N N"], Float[Array, "*batch N"], Float[Array, ""]]:
    """A square matrix of couplings, vectors of fields of its size (a number is used for all spins), and beta > 0."""
    J = one_matrix(couplings, dtype=dtype)
    h = validate.finite(fields, "fields", dtype=dtype)
    h = jnp.broadcast_to(h, J.shape[:1]) if h.ndim == 0 else validate.vectors(h, "fields", dim=J.shape[0])
    beta = validate.positive(beta, "beta", ndim=0, dtype=dtype)
    return J, h, beta


def magnetizations(value: Any, name: str, num_spins: int, *, dtype: Any) -> Float[Array, "*batch N"]:
    """One magnetization for each spin, from -1 to 1."""
    m = validate.vectors(value, name, dim=num_spins, dtype=dtype)
    # An average of spins that all agree may round to a little more than 1.
    largest = 1 + 64 * float(jnp.finfo(m.dtype).eps)
    validate.require(lambda x: abs(x) <= largest, m, name, "magnetizations from -1 to 1")
    return m


def spins(value: Any, name: str, num_spins: int, *, dtype: Any) -> Float[Array, "*batch N"]:
    """One spin for each place, -1 or 1."""
    s = validate.vectors(value, name, dim=num_spins, dtype=dtype)
    validate.require(lambda x: abs(x) == 1, s, name, "spins that are -1 or 1")
    return s


def sites(value: Any, name: str, num_sites: int, *, dtype: Any, dim: int | None = None) -> Float[Array, "*batch N D"]:
    """One vector for each site, (..., N, D)."""
    a = validate.vectors(value, name, dim=dim, dtype=dtype)
    if a.ndim < 2 or a.shape[-2] != num_sites:
        raise ValueError(f"{name}: expected shape (..., {num_sites}, {dim or 'D'}), got shape {a.shape}")
    return a


def vector_model(
    couplings: Any, fields: Any, beta: Any, *, dtype: Any
) -> tuple[Float[Array, "H N N"], Float[Array, "*batch N D"], Float[Array, ""]]:
    """Couplings by heads, one field of D > 2 components for each site, and beta > 0."""
    J = couplings_by_heads(couplings, dtype=dtype)
    x = sites(fields, "fields", J.shape[-1], dtype=dtype)
    dim = x.shape[-1]
    sphere.radius(dim)
    if dim % len(J):
        raise ValueError(f"couplings: expected a number of heads that divides {dim} components, got {len(J)}")
    beta = validate.positive(beta, "beta", ndim=0, dtype=dtype)
    sphere.in_range(x, "fields", beta)
    if not validate.is_traced(J):
        reach = sphere.radius(dim) * strongest(J)
        sphere.in_range(np.zeros(dim, J.dtype), "couplings", beta, reach=reach)
    return J, x, beta
