"""How far a mean-field system of vector spins is from rest, and how fast it settles."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

from spinbook import sphere, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.fixed_point import spectral_radii

__all__ = ["contraction_factor", "divergence"]


def divergence(
    fields: Float[ArrayLike, "*#batch D"], other: Float[ArrayLike, "*#batch D"], *, beta: Number
) -> Float[Array, "*batch"]:
    """D(p || q) = beta (h - g) . m(h) - log Z(h) + log Z(g), with h = ``fields`` and g = ``other``.

    Between a spin in the field h and a spin in the field g, in nats; exact for any D, never negative, zero for h = g.
    Raises ``ValueError`` for D <= 2, fields that do not fit, NaN and beta <= 0. Source: this book.

    >>> round(float(divergence([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], beta=1.0)), 3)
    0.079
    """
    dtype = validate.common_dtype(fields, other)
    h = validate.vectors(fields, "fields", dtype=dtype)
    g = validate.vectors(other, "other", dim=h.shape[-1], dtype=dtype)
    validate.same_batch(g, "other", h, "fields")
    h, g = jnp.broadcast_arrays(h, g)
    beta = validate.positive(beta, "beta", ndim=0, dtype=dtype)
    work = beta * jnp.sum((h - g) * sphere.magnetization(h, beta=beta), axis=-1)
    return work - sphere.log_partition(h, beta=beta) + sphere.log_partition(g, beta=beta)


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
