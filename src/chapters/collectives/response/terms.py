"""-dF/dh of a free energy F(J(h), h), split into its two terms by differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["Moments", "Terms", "of_free_energy", "of_moments"]

FreeEnergy = Callable[[Array, Array], Array]
Couplings = Callable[[Array], Array]


class Moments(NamedTuple):
    """Means of spins and of their products: ``magnetizations`` <s_i> (N, D), ``correlations`` <s_i . s_j> (N, N)."""

    magnetizations: Float[Array, "N D"]
    correlations: Float[Array, "N N"]


class Terms(NamedTuple):
    """-dF/dh_i = ``expectation``_i + ``induced``_i, each (N, D).

    ``expectation``: <s_i>, the derivative at fixed couplings. ``induced``: sum_mn <s_m . s_n> dJ_mn/dh_i, the
    derivative through the couplings.
    """

    expectation: Float[Array, "N D"]
    induced: Float[Array, "N D"]

    @property
    def response(self) -> Float[Array, "N D"]:
        """-dF/dh, the sum of both.

        >>> Terms(jax.numpy.ones((2, 1)), jax.numpy.ones((2, 1))).response.tolist()
        [[2.0], [2.0]]
        """
        return self.expectation + self.induced


def _through(couplings: Couplings, fields: Array, weights: Array) -> Array:
    """sum_mn weights_mn dJ_mn/dh."""
    J, pull = jax.vjp(couplings, fields)
    if J.shape != weights.shape:
        raise ValueError(f"couplings: expected a function that returns shape {weights.shape}, got {J.shape}")
    (force,) = pull(weights.astype(J.dtype))
    return force


def of_free_energy(free_energy: FreeEnergy, couplings: Couplings, fields: Float[ArrayLike, "N D"]) -> Terms:
    """-dF/dh_i = -dF(J, h)/dh_i at fixed J, plus sum_mn (-dF/dJ_mn) dJ_mn/dh_i.

    ``free_energy(J, h)`` is a differentiable scalar function of couplings (N, N) and fields (N, D); ``couplings(h)``
    returns (N, N). For the exact F = -ln Z / beta of spins whose energy contains -sum_mn J_mn s_m . s_n - sum_i h_i .
    s_i the two terms are the mean spin and the term weighted by two-point functions; beta does not appear, and every
    ordered pair counts, m = n included. For an approximate F they are approximations that are consistent with each
    other. Cost: two gradients. Source: Bal (2021), Collectives, labels sigmaweird and magnetization.

    >>> import jax.numpy as jnp
    >>> found = of_free_energy(lambda J, h: -jnp.sum(J * (h @ h.T)), lambda h: h @ h.T, jnp.ones((2, 1)))
    >>> found.expectation[0].tolist(), found.induced[0].tolist()
    ([4.0], [4.0])
    """
    h = validate.matrix(fields, "fields")
    by_couplings, by_fields = jax.grad(free_energy, argnums=(0, 1))(couplings(h), h)
    return Terms(-by_fields, _through(couplings, h, -by_couplings))


def of_moments(moments: Moments, couplings: Couplings, fields: Float[ArrayLike, "N D"]) -> Terms:
    """-dF/dh_i = <s_i> + sum_mn <s_m . s_n> dJ_mn/dh_i, from given moments.

    ``moments`` are those of the spins with couplings ``couplings(fields)``: enumerated, sampled or approximate. The
    response is linear in them, so that averages of moments give averages of the response. Cost: one gradient.
    Source: Bal (2021), Collectives, label sigmaweird.

    >>> import jax.numpy as jnp
    >>> moments = Moments(jnp.zeros((2, 1)), jnp.eye(2))
    >>> of_moments(moments, lambda h: h @ h.T, jnp.ones((2, 1))).induced.tolist()
    [[2.0], [2.0]]
    """
    h = validate.matrix(fields, "fields")
    m = validate.matrix(moments.magnetizations, "magnetizations", rows=h.shape[0], columns=h.shape[1], dtype=h.dtype)
    C = validate.matrix(moments.correlations, "correlations", rows=h.shape[0], columns=h.shape[0], dtype=h.dtype)
    return Terms(m, _through(couplings, h, C))
