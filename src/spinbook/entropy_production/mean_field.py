"""Entropy production in mean field, for Ising and for vector spins, in a form that is never negative.

To first order in the couplings D_ij = beta J_ij T_ij, where T_ij = tr(Var_i(t) Var_j(t-1)) is the overlap of the
fluctuations of two spins. In a steady state T is symmetric and sigma = (beta^2 / 2) sum_ij (J_ij - J_ji)^2 T_ij. Here T
is always symmetrised. Between times with different fields the result is a proxy for irreversibility and not the entropy
production; but it is never negative, so that minimising it leads to zero and not beyond.

Vector spins have D > 2 components and R^2 = D/2 - 1. Couplings are (N, N), or (H, N, N) where ``couplings[h]`` couples
only the h-th of H equal slices of the components.
"""

from __future__ import annotations

from typing import Annotated

import jax.numpy as jnp
from jaxtyping import Array

from spinbook import sphere
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Positive, checked
from spinbook.ising.mean_field import Means
from spinbook.sphere import Response, squared_length
from spinbook.vector.heads import by_heads

__all__ = ["ising_mean_field", "vector_delayed_correlations", "vector_mean_field"]

Couplings = Float[ArrayLike, "N N"]
Fields = Annotated[Float[ArrayLike, "N D"], sphere.has_radius]


@checked(static=())
def ising_mean_field(
    magnetizations: Means, previous: Means, couplings: Couplings, *, beta: Positive
) -> Float[Array, "*batch"]:
    """sigma = (beta^2 / 2) sum_ij (J_ij - J_ji)^2 (1 - m_i^2) (1 - m'_j^2), never negative.

    In the steady state this is beta sum_ij (J_ij - J_ji) D_ij with the first-order delayed correlations
    D_ij = beta J_ij (1 - m_i^2) (1 - m'_j^2). Its relative error is of first order in J with fields and of second order
    without fields. It overestimates for strong couplings, by a factor of about two at a standard deviation
    of 1 / sqrt(N) and beta = 1.4. The second-order D of TAP is better for weak couplings and no better for strong ones.
    Raises ``ValueError`` for magnetizations beyond 1, shapes that do not fit, NaN and beta <= 0. Source: Bal (2026),
    section "Entropy production", with the naive mean field of Roudi & Hertz (2011).

    >>> round(float(ising_mean_field([0.0, 0.0], [0.0, 0.0], [[0.0, 1.0], [-1.0, 0.0]], beta=0.7)), 3)
    1.96
    """
    J = couplings
    now, before = jnp.broadcast_arrays(1 - magnetizations**2, 1 - previous**2)
    overlap = now[..., :, None] * before[..., None, :]
    symmetric = (overlap + jnp.swapaxes(overlap, -1, -2)) / 2
    return beta**2 / 2 * jnp.sum(jnp.broadcast_to((J - J.T) ** 2, symmetric.shape) * symmetric, axis=(-2, -1))


def _spread(theta: Array, beta: Array, response: Response) -> tuple[Array, Array]:
    """a_i and b_i with Var_i = a_i 1 + b_i theta_i theta_i^T, each (N,)."""
    f, f1 = response.slopes(theta, beta)
    return f / beta, f1 / beta


def _delayed(J: Array, now: Array, before: Array, beta: Array, response: Response) -> Float[Array, "H N N"]:
    """D^h_ij = beta tr_h(Var_i J_ij Var_j), where J_ij is diagonal with J^k_ij for the components of head k."""
    heads = len(J)
    a, b = _spread(now, beta, response)
    a_old, b_old = _spread(before, beta, response)
    x, y = by_heads(now, heads), by_heads(before, heads)
    overlaps = x @ jnp.swapaxes(y, -1, -2)
    squares, squares_old = squared_length(x), squared_length(y)
    own = (
        x.shape[-1] * a[None, :, None] * a_old[None, None]
        + a[None, :, None] * (b_old[None] * squares_old)[:, None, :]
        + (b[None] * squares)[:, :, None] * a_old[None, None]
    )
    mixed = b[:, None] * b_old[None] * jnp.sum(J * overlaps, axis=0)
    return beta * (J * own + overlaps * mixed[None])


@checked(static=("response",))
def vector_mean_field(
    couplings: Float[ArrayLike, "*heads N N"],
    fields: Fields,
    previous_fields: Fields,
    *,
    beta: Positive,
    response: Response = sphere.exact,
) -> Float[Array, ""]:
    """sigma = (beta^2 / 2) sum_ij (J_ij - J_ji)^2 T_ij, 2 T_ij = tr(Var_i Var'_j) + tr(Var_j Var'_i).

    Never negative. Var_i is the covariance of a spin in its effective field ``fields[i]`` = x_i + sum_j J_ij m_j at
    time t, and Var'_i in that of time t - 1. In the steady state both are the same, and this is
    beta sum_ij (J_ij - J_ji) D_ij with D_ij = beta J_ij tr(Var_i Var_j). With heads J_ij becomes a diagonal matrix, and
    the squared difference the trace tr(dJ_ij Var_j dJ_ij Var_i). The first order in the couplings overestimates where
    they are strong. Differentiable in all arrays, also at zero. Cost: N^2 D; no (N, D, D) array is made.

    Raises ``ValueError`` for couplings that are not square, fields of another size, D <= 2, heads that do not divide D,
    NaN and beta <= 0. Source: Bal (2026), section "Entropy production", without its large-D mixture that can turn
    negative, and with its lost beta.

    >>> J = [[0.0, 1.0], [-1.0, 0.0]]
    >>> theta = [[0.1, 0.2, 0.0, 0.0], [0.0, 0.3, 0.1, 0.0]]
    >>> round(float(vector_mean_field(J, theta, theta, beta=1.0)), 3)
    0.991
    """
    # Linear in J for given fields, and a positive quadratic form with its antisymmetric part. There the two orders of
    # the times give the same sum, since i and j change places with them.
    J = couplings.reshape(-1, *couplings.shape[-2:])
    odd = (J - jnp.swapaxes(J, -1, -2)) / 2
    return 2 * beta * jnp.sum(odd * _delayed(odd, fields, previous_fields, beta, response))


@checked(static=("response",))
def vector_delayed_correlations(
    couplings: Couplings, fields: Fields, previous_fields: Fields, *, beta: Positive, response: Response = sphere.exact
) -> Float[Array, "N N"]:
    """D_ij = beta J_ij tr(Var_i(t) Var_j(t-1)), the later time first.

    The first order in the couplings of <s_i(t) . s_j(t-1)> - m_i . m_j, with independent spins before and effective
    fields ``fields`` and ``previous_fields``. Arguments and errors as for ``vector_mean_field``, without heads. Source:
    Bal (2026), section "Entropy production", in the form before its large-D approximation.

    >>> vector_delayed_correlations([[0.0, 0.1], [0.2, 0.0]], [[0.1, 0, 0]] * 2, [[0.1, 0, 0]] * 2, beta=1.0).shape
    (2, 2)
    """
    return _delayed(couplings[None], fields, previous_fields, beta, response)[0]
