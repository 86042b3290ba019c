"""Checks of couplings, fields and states that the modules of vector spins share. Nothing is computed here."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Array, Float

from spinbook import sphere, validate

__all__ = ["model", "sites", "strongest"]


def _couplings(couplings: Any, dtype: Any) -> Array:
    """Couplings by heads, (H, N, N)."""
    J = validate.finite(couplings, "couplings", dtype=dtype)
    if J.ndim not in (2, 3) or J.shape[-1] != J.shape[-2] or J.size == 0:
        raise ValueError(f"couplings: expected shape (N, N) or (heads, N, N), got shape {J.shape}")
    return J[None] if J.ndim == 2 else J


def sites(value: Any, name: str, num_sites: int, *, dtype: Any, dim: int | None = None) -> Float[Array, "... N D"]:
    """One vector for each site, (..., N, D)."""
    a = validate.vectors(value, name, dim=dim, dtype=dtype)
    if a.ndim < 2 or a.shape[-2] != num_sites:
        raise ValueError(f"{name}: expected shape (..., {num_sites}, {dim or 'D'}), got shape {a.shape}")
    return a


def model(
    couplings: Any, fields: Any, beta: Any, *, dtype: Any
) -> tuple[Float[Array, "H N N"], Float[Array, "*batch N D"], Float[Array, ""]]:
    """Couplings by heads, one field of D > 2 components for each site, and beta > 0."""
    J = _couplings(couplings, dtype)
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


def strongest(couplings: Float[Array, "H N M"]) -> float:
    """max_i sum_j |J_ij|, the largest of all heads: a bound on what neighbours of length one add to a field."""
    with np.errstate(over="ignore"):
        return float(np.abs(np.asarray(couplings, np.float64)).sum(axis=-1).max())
