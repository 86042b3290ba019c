"""How a mean-field system of vector spins settles after its drive has changed. Naive mean field; samples nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

from spinbook import sphere, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.entropy_production import mean_field
from spinbook.fixed_point import spectral_radii
from spinbook.sphere import Response
from spinbook.vector import mean_field as vector_mean_field

__all__ = ["Relaxation", "contraction_factor", "divergence", "relax"]


class Relaxation(NamedTuple):
    """At each step t = 1, ..., T after the change.

    ``magnetizations`` (T, N, D) and effective ``fields`` (T, N, D). ``mismatch``: the divergence of the independent
    spins of that time from those of the new steady state, in nats. ``residual``: max_i |m_i(t) - m_i(t-1)| / R.
    ``entropy_production``: the proxy ``vector_mean_field`` between t - 1 and t. ``steady``: its value in the new steady
    state, and ``converged`` whether that was found.
    """

    magnetizations: Float[Array, "T N D"]
    fields: Float[Array, "T N D"]
    mismatch: Float[Array, " T"]
    residual: Float[Array, " T"]
    entropy_production: Float[Array, " T"]
    steady: Float[Array, ""]
    converged: Bool[Array, ""]


@validate.finite_result
def divergence(
    fields: Float[ArrayLike, "*#batch D"], other: Float[ArrayLike, "*#batch D"], *, beta: Float[ArrayLike, ""]
) -> Float[Array, "*batch"]:
    """D(p || q) = beta (h - g) . m(h) - log Z(h) + log Z(g), with h = ``fields`` and g = ``other``.

    Of a spin in the field h from one in g, in nats, at any D and not only to leading order; never negative, zero for
    h = g. Raises ``ValueError`` for D <= 2, fields that do not fit, NaN and beta <= 0. Source: this book.

    >>> round(float(divergence([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], beta=1.0)), 3)
    0.079
    """
    dtype = validate.common_dtype(fields, other)
    h = validate.vectors(fields, "fields", dtype=dtype)
    g = validate.vectors(other, "other", dim=h.shape[-1], dtype=dtype)
    validate.same_batch(g, "other", h, "fields")
    beta = validate.positive(beta, "beta", ndim=0, dtype=dtype)
    work = beta * jnp.sum((h - g) * sphere.magnetization(h, beta=beta), axis=-1)
    return work - sphere.log_partition(h, beta=beta) + sphere.log_partition(g, beta=beta)


@cache
def _naive_step(response: Response) -> Callable[..., Array]:
    """The same function for the same response, so that a solver compiled for it is found again."""
    return partial(vector_mean_field.naive_step, response=response)


@partial(jax.jit, static_argnames=("response", "steps"))
def _path(J: Array, x: Array, m: Array, theta: Array, beta: Array, response: Response, steps: int) -> Any:
    def advance(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Any]:
        m, before = state
        now = x + jnp.einsum("ij,jd->id", J, m)
        new = response(now, beta)
        residual = jnp.max(jnp.linalg.norm(new - m, axis=-1)) / sphere.radius(now.shape[-1])
        sigma = mean_field.vector_mean_field(J, now, before, beta=beta, response=response)
        return (new, now), (new, now, residual, sigma)

    return jax.lax.scan(advance, (m, theta), length=steps)[1]


def relax(
    magnetizations: Float[ArrayLike, "N D"],
    couplings: Float[ArrayLike, "N N"],
    fields: Float[ArrayLike, "N D"],
    *,
    beta: Float[ArrayLike, ""],
    steps: int,
    response: Response = sphere.large_d,
) -> Relaxation:
    """m_i(t) = phi(theta_i(t)), theta_i(t) = x_i + sum_j J_ij m_j(t-1), from m(0) = ``magnetizations``.

    They are usually the steady state of the old drive, and ``couplings`` and ``fields`` are the new ones. The fields
    before the first step are those of which they are the means. Arguments and errors as for
    ``spinbook.vector.mean_field.naive_step``, and ``steps`` < 1. Source: this book, for Bal (2026), section "Background
    and intuitions".

    >>> import numpy as np
    >>> path = relax(np.zeros((2, 4)), np.full((2, 2), 0.1), np.eye(2, 4), beta=1.0, steps=20)
    >>> path.mismatch.shape, bool(path.residual[-1] < 1e-5)
    ((20,), True)
    """
    steps = validate.count(steps, "steps", minimum=1)
    dtype = validate.common_dtype(magnetizations, couplings, fields)
    J = validate.finite(couplings, "couplings", ndim=2, dtype=dtype)
    x = validate.finite(fields, "fields", ndim=2, dtype=dtype)
    # One step, for its checks of the arguments.
    vector_mean_field.naive_step(magnetizations, J, x, beta=beta, response=response)
    m = jnp.asarray(magnetizations, dtype)
    b = validate.positive(beta, "beta", ndim=0, dtype=dtype)
    theta = response.inverse(m, b)
    end = vector_mean_field.steady_state(J, x, beta=b, step=_naive_step(response))
    final = x + J @ end.value
    means, thetas, residual, sigma = _path(J, x, m, theta, b, response, steps)
    mismatch = jnp.sum(divergence(thetas, final, beta=b), axis=-1)
    steady = mean_field.vector_mean_field(J, final, final, beta=b, response=response)
    return Relaxation(means, thetas, mismatch, residual, sigma, steady, end.converged)


def contraction_factor(step: Callable[[Array], Array], state: Float[ArrayLike, "*shape"]) -> float:
    """max |lambda| of the Jacobian of ``step`` at ``state``, by Arnoldi iteration on Jacobian-vector products.

    At a fixed point errors shrink by this factor per step in the long run; at 1 the fixed point loses its stability.
    Cost: some tens of steps. Raises ``ValueError`` where ``step`` changes the shape, and ``RuntimeError`` where the
    iteration did not converge. Source: this book.

    >>> round(contraction_factor(lambda m: jax.numpy.array([0.5, -0.8, 0.1]) * m, jax.numpy.ones(3)), 6)
    0.8
    """
    m = validate.finite(state, "state")
    if m.size == 0 or validate.is_traced(m):
        got = "a tracer, whose values are unknown" if m.size else f"shape {m.shape}"
        raise ValueError(f"state: expected numbers that are known, at least one, got {got}")
    out = jax.eval_shape(step, m)
    if out.shape != m.shape:
        raise ValueError(f"step: expected a result of the shape of state, {m.shape}, got {out.shape}")
    pushforward = jax.jit(lambda v: jax.jvp(step, (m,), (v,))[1])
    if m.size <= 64:
        jacobian = jax.vmap(lambda v: pushforward(v).ravel())(jnp.eye(m.size, dtype=m.dtype).reshape(-1, *m.shape)).T
        return float(spectral_radii(np.asarray(jacobian, np.float64)[None])[0])

    def product(v: np.ndarray) -> np.ndarray:
        return np.asarray(pushforward(jnp.asarray(v.reshape(m.shape), m.dtype)), dtype=float).ravel()

    operator = LinearOperator((m.size, m.size), matvec=product, dtype=float)
    start = np.random.default_rng(0).normal(size=m.size)
    try:
        leading = eigs(operator, k=1, which="LM", return_eigenvectors=False, v0=start, ncv=20, tol=1e-6)
    except ArpackNoConvergence as error:
        raise RuntimeError("contraction factor: expected the Arnoldi iteration to converge, it did not") from error
    return float(np.abs(leading[0]))
