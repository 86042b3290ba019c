"""Means and correlations of vector spins in a steady state, closed by the length of a spin.

The field of a spin is h_i + dh_i, with dh_i what its neighbours fluctuate. In many dimensions dh_i lies across h_i and
has a length that hardly fluctuates: it makes the field longer and does not turn it. So a spin answers linearly, with a
gain that is smaller the longer the field, and correlations obey a linear equation. Its noise is not free: every spin
has the length R, so that the sum of its mean square and of its variance is R^2.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from spinbook import sphere
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Positive, PositiveCount, checked

__all__ = ["Closure", "steady_state"]


class Closure(NamedTuple):
    """``magnetizations`` (N, D), ``correlations`` and ``delayed_correlations`` (N, N), and the evidence for them.

    Correlations are <s_i . s_l> - m_i . m_l at one time, delayed ones those of s_i with s_l one step before.
    ``residual`` is the largest change of a correlation, or of a mean times R, in the last update, over R^2;
    ``converged`` that it was at most the tolerance, or what rounding allows.
    """

    magnetizations: Float[Array, "N D"]
    correlations: Float[Array, "N N"]
    delayed_correlations: Float[Array, "N N"]
    residual: Float[Array, ""]
    num_steps: Array
    converged: Array


@checked(static=("max_steps",))
def steady_state(
    couplings: Float[ArrayLike, "N N"],
    fields: Annotated[Float[ArrayLike, "N D"], sphere.has_radius],
    *,
    beta: Positive,
    tol: Positive = 1e-10,
    max_steps: PositiveCount = 1000,
) -> Closure:
    """m_i = f(s_i) h_i and C = A C A^T off the diagonal, C_ii = R^2 - |m_i|^2; the delayed correlations are A C.

    h_i = x_i + sum_j J_ij m_j; s_i = |h_i|^2 + sum_jk J_ij C_jk J_ik, the mean squared length of the field; phi(h) =
    f(|h|^2) h the exact response; and A_il = J_il tr<phi'(h_i)> / D its mean slope. In A C the part of each neighbour's
    own fluctuations, A_il C_ll, is J_il tr[phi'(h_i) cov(s_l)] with their directions. The couplings may have any
    symmetry and a diagonal, and no gap in their spectrum is assumed. What is left out is of order 1/D: the scatter of
    |h|^2, and that what two spins share may lie along their means. It is largest where a spin hears one other. Plain
    updates from the answer to the fields alone, D N + N^3 each; where they do not settle, ``converged`` is false.
    Raises ``ValueError`` for arguments of other shapes, NaN, D <= 2 and beta <= 0. Derived in the audit of
    spin-transformers; for the attention of a head, in double precision, ``lens.closure``.

    >>> found = steady_state([[0.0, 1.0], [-1.0, 0.0]], jnp.ones((2, 4)), beta=1.0)
    >>> found.delayed_correlations.shape, bool(found.converged)
    ((2, 2), True)
    """
    J, x = couplings, fields
    dim = x.shape[1]
    R = jnp.sqrt(jnp.asarray(sphere.squared_radius(dim), x.dtype))
    diagonal = jnp.arange(len(J))

    def answered(m: Array, C: Array) -> tuple[Array, Array, sphere.Gains, Array]:
        h = x + J @ m
        spread = jnp.sum((J @ C) * J, axis=1)
        squared = jnp.sum(h * h, axis=1) + spread
        gains = sphere.exact.gains_at(squared, dim, beta)
        return h, spread, gains, (gains.f + gains.f1 * squared / dim)[:, None] * J

    def free(m: Array) -> Array:
        return R**2 - jnp.sum(m * m, axis=1)

    def update(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        m, C, _, step = state
        h, _, gains, A = answered(m, C)
        new = gains.f[:, None] * h
        correlations = (A @ C @ A.T).at[diagonal, diagonal].set(free(new))
        change = jnp.maximum(jnp.max(jnp.abs(correlations - C)) / R**2, jnp.max(jnp.abs(new - m)) / R)
        return new, correlations, change, step + 1

    enough = jnp.maximum(tol, 64 * jnp.finfo(x.dtype).eps)
    start = sphere.exact(x, beta)
    begin = start, jnp.diag(free(start)), jnp.asarray(jnp.inf, x.dtype), jnp.asarray(0)
    m, C, residual, num_steps = jax.lax.while_loop(lambda s: (s[2] > enough) & (s[3] < max_steps), update, begin)
    h, spread, gains, A = answered(m, C)
    # The answer to each neighbour's own fluctuations as it is, along and across the mean; to all others on average.
    theta = sphere.exact.inverse(m, beta)
    f, f1 = sphere.exact.slopes(theta, beta)
    along = (f[None] * jnp.sum(h * h, axis=1, keepdims=True) + f1[None] * (h @ theta.T) ** 2) / beta
    own = J * ((gains.f + gains.f1 * spread / dim)[:, None] * free(m)[None] + gains.f1[:, None] * along)
    delayed = own + A @ (C - jnp.diag(jnp.diag(C)))
    return Closure(m, C, delayed, residual, num_steps, residual <= enough)
