"""Approximate free energies of binary spins, naive and TAP, at their own stationary points.

The energy counts ordered pairs, so each pair has the coupling K = J + J^T, without a diagonal. Fields are (N, 1), as
for the other free energies of this package. Functions return a scalar, NaN where no stationary point was found. At a
stationary point the derivative of F with respect to the magnetizations vanishes, so that responses are partial
derivatives. The points are the steady states of ``spinbook.ising.mean_field`` with the couplings K.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.fixed_point import FixedPoint
from spinbook.ising.mean_field import Step, flat_tap_step, naive_step, steady_state

__all__ = ["naive_free_energy", "naive_solve", "tap_free_energy", "tap_solve"]

Couplings = Float[ArrayLike, "N N"]
Fields = Float[ArrayLike, "N 1"]


def _model(couplings: Any, fields: Any, beta: Any) -> tuple[Array, Array, Array]:
    dtype = validate.common_dtype(couplings, fields)
    h = validate.matrix(fields, "fields", columns=1, dtype=dtype)
    J = validate.matrix(couplings, "couplings", rows=h.shape[0], columns=h.shape[0], dtype=dtype)
    return J, h[:, 0], validate.positive(beta, "beta", ndim=0, dtype=dtype)


def _pairs(J: Array) -> Array:
    return (J + J.T) * (1 - jnp.eye(len(J), dtype=J.dtype))


def _entropy(m: Array) -> Array:
    return -jnp.sum(jax.scipy.special.xlogy((1 + m) / 2, 1 + m) + jax.scipy.special.xlogy((1 - m) / 2, 1 - m))


def _naive_gibbs(m: Array, J: Array, h: Array, beta: Array) -> Array:
    return -m @ _pairs(J) @ m / 2 - jnp.trace(J) - h @ m - _entropy(m) / beta


def _tap_gibbs(m: Array, J: Array, h: Array, beta: Array) -> Array:
    spread = 1 - m**2
    return _naive_gibbs(m, J, h, beta) - beta / 4 * spread @ _pairs(J) ** 2 @ spread


def _solution(couplings: Any, fields: Any, beta: Any, step: Step, **options: Any) -> FixedPoint:
    J, h, b = _model(couplings, fields, beta)
    return steady_state(_pairs(J), h, beta=b, step=step, start=jnp.tanh(b * h), **options)


def _free_energy(couplings: Any, fields: Any, beta: Any, step: Step, gibbs: Callable[..., Array]) -> Array:
    found = _solution(couplings, fields, beta, step)
    return jnp.where(found.converged, gibbs(found.value, *_model(couplings, fields, beta)), jnp.nan)


def naive_solve(
    couplings: Couplings, fields: Fields, *, beta: Number, tol: Number = 1e-10, max_steps: int = 1000
) -> FixedPoint:
    """m_i = tanh(beta (h_i + sum_j K_ij m_j)), searched from tanh(beta h), as (N,) with evidence.

    Raises ``ValueError`` for couplings that are not (N, N), fields that are not (N, 1), NaN, beta <= 0.

    >>> solution = naive_solve([[0.0, 0.1], [0.1, 0.0]], [[0.3], [-0.1]], beta=1.0)
    >>> solution.value.shape, bool(solution.converged)
    ((2,), True)
    """
    return _solution(couplings, fields, beta, naive_step, tol=tol, max_steps=max_steps)


def tap_solve(
    couplings: Couplings, fields: Fields, *, beta: Number, tol: Number = 1e-10, max_steps: int = 1000
) -> FixedPoint:
    """m_i = tanh(beta (h_i + sum_j K_ij m_j - beta m_i sum_j K_ij^2 (1 - m_j^2))). Arguments of ``naive_solve``.

    The last term is the Onsager reaction: it removes the response of the other spins to spin i itself.

    >>> solution = tap_solve([[0.0, 0.1], [0.1, 0.0]], [[0.3], [-0.1]], beta=1.0)
    >>> solution.value.shape, bool(solution.converged)
    ((2,), True)
    """
    return _solution(couplings, fields, beta, flat_tap_step, tol=tol, max_steps=max_steps)


def naive_free_energy(couplings: Couplings, fields: Fields, *, beta: Number) -> Float[Array, ""]:
    """F = -m K m / 2 - tr J - h . m - S(m) / beta at the m of ``naive_solve``: the first order in the couplings.

    S is the entropy of independent spins, zero for m = 0. -dF/dJ_ij = m_i m_j: two-point functions without
    correlations. The error is proportional to the square of the couplings. Arguments and errors as for ``naive_solve``.

    >>> naive_free_energy([[0.0, 0.1], [0.1, 0.0]], [[0.3], [-0.1]], beta=1.0).shape
    ()
    """
    return _free_energy(couplings, fields, beta, naive_step, _naive_gibbs)


def tap_free_energy(couplings: Couplings, fields: Fields, *, beta: Number) -> Float[Array, ""]:
    """F = F_naive(m) - (beta / 2) sum_{i<j} K_ij^2 (1 - m_i^2)(1 - m_j^2) at the m of ``tap_solve``.

    -dF/dJ_ij = m_i m_j + beta K_ij (1 - m_i^2)(1 - m_j^2): two-point functions to first order in the couplings. The
    error is proportional to their third power. Arguments and errors as for ``naive_solve``.

    >>> tap_free_energy([[0.0, 0.1], [0.1, 0.0]], [[0.3], [-0.1]], beta=1.0).shape
    ()
    """
    return _free_energy(couplings, fields, beta, flat_tap_step, _tap_gibbs)
