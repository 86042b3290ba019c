"""Checks of couplings, fields and states that all kinetic Ising modules share. Nothing is computed here."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spinbook import validate

__all__ = ["magnetizations", "model", "spins"]


def model(
    couplings: Any, fields: Any, beta: Any, *, dtype: Any
) -> tuple[Float[Array, "N N"], Float[Array, "*batch N"], Float[Array, ""]]:
    """A square matrix of couplings, vectors of fields of its size (a number counts for all spins), and beta > 0."""
    J = validate.finite(couplings, "couplings", dtype=dtype)
    if J.ndim != 2 or J.shape[0] != J.shape[1] or J.size == 0:
        raise ValueError(f"couplings: expected a square matrix (N, N), got shape {J.shape}")
    h = validate.finite(fields, "fields", dtype=dtype)
    h = jnp.broadcast_to(h, J.shape[:1]) if h.ndim == 0 else validate.vectors(h, "fields", dim=J.shape[0])
    beta = validate.positive(beta, "beta", ndim=0, dtype=dtype)
    _require_finite_drive(J, h, beta)
    return J, h, beta


def _require_finite_drive(J: Array, h: Array, beta: Array) -> None:
    """Raise unless 2 beta (|h_i| + sum_j |J_ij|) is finite in the dtype; silent under a trace.

    A drive that overflows to infinity minus infinity compares as false, and would be taken for a spin that is down.
    """
    if validate.is_traced((J, h, beta)):
        return
    largest = float(jnp.finfo(J.dtype).max) / (4 * max(1.0, float(beta)))
    with np.errstate(over="ignore"):
        received = np.abs(np.asarray(J, np.float64)).sum(axis=1)
    for value, name in ((received, "couplings"), (np.abs(np.asarray(h, np.float64)), "fields")):
        expected = f"effective fields below {largest:.3g}, which fit into {J.dtype} times 2 beta"
        validate.require(lambda x: x <= largest, value, name, expected)


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
