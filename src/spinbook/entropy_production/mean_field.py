"""Entropy production in mean field, for Ising and for vector spins, in a form that is never negative.

To first order in the couplings D_ij = beta J_ij T_ij, where T_ij = tr(Var_i(t) Var_j(t-1)) is the overlap of the
fluctuations of two spins. In a steady state T is symmetric and sigma = (beta^2 / 2) sum_ij (J_ij - J_ji)^2 T_ij. Here T
is always symmetrised. Between times with different fields the result is a proxy for irreversibility and not the entropy
production; but it is never negative, so that minimising it leads to zero and not beyond.

Vector spins have D > 2 components and R^2 = D/2 - 1. Couplings are (N, N), or (H, N, N) where ``couplings[h]`` couples
only the h-th of H equal slices of the components.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from spinbook import arguments, sphere, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.entropy_production.steady import warn_of_drift
from spinbook.sphere import Response, squared_length, squared_radius
from spinbook.vector.heads import by_heads

__all__ = [
    "angle_estimate",
    "driven_production",
    "ising_mean_field",
    "leading_order",
    "source_delayed_correlations",
    "vector_delayed_correlations",
    "vector_mean_field",
]

Couplings = Float[ArrayLike, "N N"]
CouplingsByHeads = Float[ArrayLike, "*heads N N"]
Fields = Float[ArrayLike, "N D"]

# Two times count as one steady state while no magnetization moves by more than this part of its largest length.
_ALLOWED_DRIFT = 1e-3


@jax.jit
def _ising(m: Array, previous: Array, J: Array, beta: Array) -> Array:
    now, before = jnp.broadcast_arrays(1 - m * m, 1 - previous * previous)
    overlap = now[..., :, None] * before[..., None, :]
    symmetric = (overlap + jnp.swapaxes(overlap, -1, -2)) / 2
    return beta**2 / 2 * jnp.sum(jnp.broadcast_to((J - J.T) ** 2, symmetric.shape) * symmetric, axis=(-2, -1))


def ising_mean_field(
    magnetizations: Float[ArrayLike, "*#batch N"],
    previous: Float[ArrayLike, "*#batch N"],
    couplings: Couplings,
    *,
    beta: Number,
) -> Float[Array, "*batch"]:
    """sigma = (beta^2 / 2) sum_ij (J_ij - J_ji)^2 (1 - m_i^2) (1 - m'_j^2), never negative.

    In the steady state this is beta sum_ij (J_ij - J_ji) D_ij with the first-order delayed correlations
    D_ij = beta J_ij (1 - m_i^2) (1 - m'_j^2). Its relative error is of first order in J with fields and of second order
    without fields. It overestimates for strong couplings, by a factor of about two at a standard deviation
    of 1 / sqrt(N) and beta = 1.4. The second-order D of TAP is better for weak couplings and no better for strong ones.
    Warns with ``NotSteadyWarning`` where ``magnetizations`` and ``previous`` differ by more than 0.001.

    Raises ``ValueError`` for magnetizations beyond 1, shapes that do not fit, NaN and beta <= 0. Source: Bal (2026),
    section "Entropy production", with the naive mean field of Roudi & Hertz (2011).

    >>> round(float(ising_mean_field([0.0, 0.0], [0.0, 0.0], [[0.0, 1.0], [-1.0, 0.0]], beta=0.7)), 3)
    1.96
    """
    dtype = validate.common_dtype(magnetizations, previous, couplings)
    J, _, beta = arguments.ising_model(couplings, 0.0, beta, dtype=dtype)
    m = arguments.magnetizations(magnetizations, "magnetizations", J.shape[0], dtype=dtype)
    old = arguments.magnetizations(previous, "previous", J.shape[0], dtype=dtype)
    validate.same_batch(old, "previous", m, "magnetizations")
    warn_of_drift(jnp.max(jnp.abs(m - old)), _ALLOWED_DRIFT, "magnetizations")
    return _ising(m, old, J, beta)


def _arguments_of_vectors(
    couplings: Any, fields: Any, previous_fields: Any, beta: Any
) -> tuple[Array, Array, Array, Array]:
    dtype = validate.common_dtype(couplings, fields, previous_fields)
    J = arguments.couplings_by_heads(couplings, dtype=dtype)
    thetas = []
    for value, name in ((fields, "fields"), (previous_fields, "previous_fields")):
        theta = validate.matrix(value, name, rows=J.shape[-1], dtype=dtype)
        if theta.shape[1] <= 2:
            raise ValueError(f"{name}: expected more than 2 components, got {theta.shape[1]}")
        thetas.append(theta)
    now, before = thetas
    if before.shape != now.shape:
        raise ValueError(f"previous_fields: expected the shape of fields, {now.shape}, got {before.shape}")
    if now.shape[1] % len(J):
        raise ValueError(f"couplings: expected a number of heads that divides {now.shape[1]} components, got {len(J)}")
    return J, now, before, validate.positive(beta, "beta", ndim=0, dtype=dtype)


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


@partial(jax.jit, static_argnames="response")
def _vector(J: Array, now: Array, before: Array, beta: Array, response: Response) -> Array:
    # Linear in J for given fields, and a positive quadratic form with its antisymmetric part. There the two orders of
    # the times give the same sum, since i and j change places with them.
    odd = (J - jnp.swapaxes(J, -1, -2)) / 2
    return 2 * beta * jnp.sum(odd * _delayed(odd, now, before, beta, response))


def _drift(now: Array, before: Array, beta: Array) -> Array:
    change = sphere.magnetization_large_d(now, beta=beta) - sphere.magnetization_large_d(before, beta=beta)
    return jnp.max(jnp.linalg.norm(change, axis=-1)) / sphere.radius(now.shape[-1])


def vector_mean_field(
    couplings: CouplingsByHeads,
    fields: Fields,
    previous_fields: Fields,
    *,
    beta: Number,
    response: Response = sphere.exact,
) -> Float[Array, ""]:
    """sigma = (beta^2 / 2) sum_ij (J_ij - J_ji)^2 T_ij, 2 T_ij = tr(Var_i Var'_j) + tr(Var_j Var'_i).

    Never negative. Var_i is the covariance of a spin in its effective field ``fields[i]`` = x_i + sum_j J_ij m_j at
    time t, and Var'_i in that of time t - 1. In the steady state both are the same, and this is
    beta sum_ij (J_ij - J_ji) D_ij with D_ij = beta J_ij tr(Var_i Var_j). With heads J_ij becomes a diagonal matrix, and
    the squared difference the trace tr(dJ_ij Var_j dJ_ij Var_i). The first order in the couplings overestimates where
    they are strong. With ``sphere.exact`` the covariances are those of any D; ``sphere.large_d`` costs no Bessel
    functions.

    Differentiable in all arrays, and its gradient is right at zero as well. Cost: N^2 D; no (N, D, D) array is made.
    Under ``jax.jit`` or a gradient there is no warning; otherwise ``NotSteadyWarning`` is given if a magnetization
    changed by more than a thousandth of R between the two times.

    Raises ``ValueError`` for couplings that are not square, fields of another size, D <= 2, heads that do not divide D,
    NaN and beta <= 0. Source: Bal (2026), section "Entropy production", without its large-D mixture that can turn
    negative, and with its lost beta.

    >>> J = [[0.0, 1.0], [-1.0, 0.0]]
    >>> theta = [[0.1, 0.2, 0.0, 0.0], [0.0, 0.3, 0.1, 0.0]]
    >>> round(float(vector_mean_field(J, theta, theta, beta=1.0)), 3)
    0.991
    """
    J, now, before, beta = _arguments_of_vectors(couplings, fields, previous_fields, beta)
    if not validate.is_traced((now, before, beta)):
        warn_of_drift(_drift(now, before, beta), _ALLOWED_DRIFT, "previous_fields")
    return _vector(J, now, before, beta, response)


def driven_production(
    couplings: Float[Array, "*heads N N"],
    fields: Float[Array, "N D"],
    previous_fields: Float[Array, "N D"],
    beta: Array,
    response: Response = sphere.large_d,
) -> Float[Array, ""]:
    """``vector_mean_field`` of a system known to be driven: no checks, no warnings.

    Takes its arguments without checks; its callers have checked them.
    """
    J = couplings[None] if couplings.ndim == 2 else couplings
    return _vector(J, fields, previous_fields, beta, response)


@partial(jax.jit, static_argnames="response")
def _public_delayed(J: Array, now: Array, before: Array, beta: Array, response: Response) -> Array:
    return jnp.sum(_delayed(J, now, before, beta, response), axis=0)


def vector_delayed_correlations(
    couplings: Couplings, fields: Fields, previous_fields: Fields, *, beta: Number, response: Response = sphere.exact
) -> Float[Array, "N N"]:
    """D_ij = beta J_ij tr(Var_i(t) Var_j(t-1)), the later time first.

    The first order in the couplings of <s_i(t) . s_j(t-1)> - m_i . m_j, with independent spins before and effective
    fields ``fields`` and ``previous_fields``. Arguments and errors as for ``vector_mean_field``, without heads. Source:
    Bal (2026), section "Entropy production", in the form before its large-D approximation.

    >>> vector_delayed_correlations([[0.0, 0.1], [0.2, 0.0]], [[0.1, 0, 0]] * 2, [[0.1, 0, 0]] * 2, beta=1.0).shape
    (2, 2)
    """
    J, now, before, beta = _arguments_of_vectors(couplings, fields, previous_fields, beta)
    if len(J) != 1:
        raise ValueError(f"couplings: expected shape (N, N), got {len(J)} heads")
    return _public_delayed(J, now, before, beta, response)


def _gamma(theta: Array, beta: Array) -> Array:
    return jnp.sqrt(1 + beta**2 * squared_length(theta) / squared_radius(theta.shape[-1]))


@jax.jit
def _source_delayed(J: Array, now: Array, before: Array, beta: Array) -> Array:
    R2 = squared_radius(now.shape[-1])
    gamma, gamma_old = _gamma(now, beta)[:, None], _gamma(before, beta)[None]
    m, old = beta * now / (1 + gamma), beta * before / (1 + gamma_old.T)
    squares, squares_old = squared_length(m)[:, None], squared_length(old)[None]
    bracket = (
        (R2 - squares_old) / (1 + gamma)
        - squares / (R2 * gamma * (1 + gamma_old))
        + (m @ old.T) ** 2 / (R2**2 * gamma * gamma_old)
    )
    return beta * J[0] * bracket


def source_delayed_correlations(
    couplings: Couplings, fields: Fields, previous_fields: Fields, *, beta: Number
) -> Float[Array, "N N"]:
    """D_ij = beta J_ij [(R^2 - m'_j^2) / (1 + g_i) - m_i^2 / (R^2 g_i (1 + g'_j)) + (m_i . m'_j)^2 / (R^4 g_i g'_j)].

    As printed in the source, for its erratum: the trace of Var'_j is taken as R^2 - m'_j^2 but its parts in the large-D
    form, so that the bracket is not symmetric in i and j even in the steady state, and the entropy production made of
    it can be negative. Here g = sqrt(1 + beta^2 |theta|^2 / R^2) and m = beta theta / (1 + g). Arguments and errors as
    for ``vector_delayed_correlations``. Source: Bal (2026), section "Entropy production", the formula of three terms.

    >>> source_delayed_correlations([[0.0, 0.1], [0.2, 0.0]], [[0.1, 0, 0]] * 2, [[0.1, 0, 0]] * 2, beta=1.0).shape
    (2, 2)
    """
    J, now, before, beta = _arguments_of_vectors(couplings, fields, previous_fields, beta)
    return _source_delayed(J, now, before, beta)


@jax.jit
def _leading(J: Array, theta: Array, beta: Array) -> Array:
    free = 1 / (1 + _gamma(theta, beta))
    R2 = squared_radius(theta.shape[-1])
    return beta**2 * R2 * jnp.sum((J[0] - J[0].T) ** 2 * free[:, None] * free[None])


def leading_order(couplings: Couplings, fields: Fields, *, beta: Number) -> Float[Array, ""]:
    """sigma = beta^2 R^2 sum_ij (J_ij - J_ji)^2 / ((1 + g_i) (1 + g_j)), g = sqrt(1 + beta^2 |theta|^2 / R^2).

    ``vector_mean_field`` in the steady state, to the leading order in 1/D: only the lengths of the effective fields
    matter, and no angle. Arguments and errors as for ``vector_mean_field``, without heads. Source: this book, in place
    of the estimate of Bal (2026), section "Vibe check".

    >>> round(float(leading_order([[0.0, 1.0], [-1.0, 0.0]], [[0.0] * 4] * 2, beta=1.0)), 6)
    2.0
    """
    J, theta, _, beta = _arguments_of_vectors(couplings, fields, fields, beta)
    return _leading(J, theta, beta)


def angle_estimate(couplings: Couplings, fields: Fields) -> Float[Array, ""]:
    """sum_ij (J_ij^2 - J_ij J_ji) cos^2(theta_i, theta_j), the source's rough estimate, for its erratum.

    The cosine of the angle between effective fields is that between magnetizations. In units of its own: the source
    gives no prefactor. Arguments and errors as for ``vector_mean_field``; also refused are fields of length zero, which
    have no direction. Source: Bal (2026), section "Vibe check".

    >>> round(float(angle_estimate([[0.0, 1.0], [-1.0, 0.0]], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])), 6)
    4.0
    """
    J, theta, _, _ = _arguments_of_vectors(couplings, fields, fields, 1.0)
    theta = sphere.balanced(theta)
    length = jnp.linalg.norm(theta, axis=-1)
    validate.require(lambda x: x > 0, length, "fields", "vectors that are not zero")
    cosine = theta @ theta.T / (length[:, None] * length[None])
    return jnp.sum((J[0] ** 2 - J[0] * J[0].T) * cosine**2)
