"""Sampling of vector spins that are all updated at once, many replicas side by side. Stores no trajectory unless asked.

Given the state s' before, spin i has a density proportional to exp(beta s . h_i) on the sphere of radius R, R^2 = D/2
- 1, in the field h_i = x_i + sum_j J_ij s'_j. Leading axes of the spins are independent replicas. States and fields are
(..., N, D), couplings (N, N) or, for slices of the components, (H, N, N). Mean-field theory of the same model is in
``spinbook.vector.mean_field``.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import simulation, sphere, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Key, Positive, checked
from spinbook.simulation import Simulation
from spinbook.vector.heads import by_heads, from_heads

__all__ = ["simulate", "step"]


def _on_the_sphere(spins: Array | np.ndarray, name: str) -> None:
    sphere.has_radius(spins, name)
    if not validate.is_traced(spins):
        radius = sphere.radius(spins.shape[-1])
        # A length in single precision is off by a few units in the last place, and a few thousand steps do not add up.
        with np.errstate(over="ignore"):
            off = np.abs(np.linalg.norm(np.asarray(spins, np.float64), axis=-1) / radius - 1)
        validate.require(lambda r: r < 1e-4, off, name, f"vectors of length {radius:g}, to 1e-4 of it")


Spins = Annotated[Float[ArrayLike, "*batch N D"], _on_the_sphere]
Couplings = Float[ArrayLike, "*heads N N"]
Fields = Float[ArrayLike, "*#batch N D"]


def _received(rows: Array, couplings: Array) -> Array:
    """sum_j J_ij s_j of each replica."""
    J = couplings.reshape(-1, *couplings.shape[-2:])
    if rows.shape[-1] % len(J):
        raise ValueError(
            f"couplings: expected a number of heads that divides {rows.shape[-1]} components, got {len(J)}"
        )
    return from_heads(jnp.einsum("hij,rhjd->rhid", J, by_heads(rows, len(J))))


def _advanced(key: Key, rows: Array, couplings: Array, fields: Array, beta: Array) -> Array:
    return sphere.sample(key, jnp.broadcast_to(fields, rows.shape) + _received(rows, couplings), beta=beta)


@checked(static=())
def step(key: Key, spins: Spins, couplings: Couplings, fields: Fields, *, beta: Positive) -> Float[Array, "*batch N D"]:
    """s_i with |s_i| = R and density proportional to exp(beta s . h_i), h_i = x_i + sum_j J_ij s'_j; s' = ``spins``.

    ``spins`` is (..., N, D) with D > 2, vectors of length R = sqrt(D/2 - 1), leading axes being independent replicas;
    ``couplings`` (N, N) or (H, N, N) may have any symmetry and a diagonal; ``fields`` is (N, D) or (..., N, D). Raises
    ``ValueError`` for couplings that are not square, shapes that do not fit, NaN, spins off the sphere, D <= 2 and
    beta <= 0. Cost: N^2 D for each replica, and D + 8 random numbers for each spin.
    Source: Bal (2023), labels pcondaltvector and pcondsinglesitevector.

    >>> import jax
    >>> start = jax.numpy.zeros((100, 2, 4)).at[..., 0].set(1.0)
    >>> step(jax.random.key(0), start, [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0).shape
    (100, 2, 4)
    """
    rows, x = simulation.rows(spins, fields, 2)
    return _advanced(key, rows, couplings, x, beta).reshape(spins.shape)


@checked(static=("steps", "transient", "correlations", "observable"))
def simulate(
    key: Key, spins: Spins, couplings: Couplings, fields: Fields, *, beta: Positive, **options: Any
) -> Simulation:
    """s(1), ..., s(steps) from s(0) = ``spins``: averages over all steps after the first ``transient`` ones.

    Step t is ``step`` with the key fold_in(key, t - 1). The options are ``steps``, ``transient``, ``correlations`` and
    ``observable``, as for ``spinbook.ising.stochastic.simulate``. The result is a ``Simulation`` with the last state
    and, as attributes, the means ``magnetizations`` (N, D) and, if asked for, ``correlations`` and
    ``delayed_correlations`` (N, N) of scalar products, each with standard errors. Cost: R N^2 D a step; correlations
    twice that again.

    >>> import jax
    >>> start = jax.numpy.zeros((200, 2, 4)).at[..., 0].set(1.0)
    >>> x = jax.numpy.ones((2, 4))
    >>> result = simulate(jax.random.key(0), start, [[0.0, 0.5], [-0.5, 0.0]], x, beta=1.0, steps=30, transient=10)
    >>> result.spins.shape, result.magnetizations.shape
    ((200, 2, 4), (2, 4))
    """
    rows, x = simulation.rows(spins, fields, 2)

    def advance(key: Key, rows: Array) -> Array:
        return _advanced(key, rows, couplings, x, beta)

    return simulation.run(key, rows, advance, shape=spins.shape, sum_dtype=spins.dtype, **options)
