"""Energies of restricted Boltzmann machines, joint and with the hidden units integrated out.

Convention of this package: p(v, h) is proportional to exp(-E(v, h)); every term of E carries a minus sign, and
``weights[i, mu]`` couples visible unit i to hidden unit mu. Visible units have no couplings among each other, nor have
hidden ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["effective_energy", "joint_energy"]


def _term(term: Callable[[Any], Array] | None, name: str, units: Array) -> Array:
    """The single-unit terms, one for each unit or summed already, whichever ``term`` returns."""
    if term is None:
        return jnp.zeros_like(units)
    values = jnp.asarray(term(units))
    if values.shape not in (units.shape, units.shape[:-1]):
        raise ValueError(
            f"{name}: expected values of shape {units.shape} (per unit) or {units.shape[:-1]} (summed), "
            f"got {values.shape}"
        )
    return values


def _summed(values: Array, units: Array) -> Array:
    return jnp.sum(values, axis=-1) if values.shape == units.shape else values


@jax.jit
def _joint(v: Array, h: Array, W: Array, a: Array, b: Array) -> Array:
    own = _summed(b, h)
    received, h = jnp.broadcast_arrays(v @ W, h)
    pairs = jnp.sum(received * h, axis=-1)
    return -jnp.broadcast_to(_summed(a, v), pairs.shape) - jnp.broadcast_to(own, pairs.shape) - pairs


@jax.jit
def _effective(v: Array, a: Array, K: Array) -> Array:
    return -_summed(a, v) - jnp.sum(K, axis=-1)


def joint_energy(
    visible: Float[ArrayLike, "*#batch V"],
    hidden: Float[ArrayLike, "*#batch H"],
    weights: Float[ArrayLike, "V H"],
    visible_term: Callable[[Any], Array] | None = None,
    hidden_term: Callable[[Any], Array] | None = None,
) -> Float[Array, "*batch"]:
    """E(v, h) = -sum_i a_i(v_i) - sum_mu b_mu(h_mu) - sum_{i mu} W_{i mu} v_i h_mu.

    ``visible`` is (..., V), ``hidden`` (..., H) with leading axes that broadcast, ``weights`` (V, H); the result has
    the broadcast leading axes. ``visible_term`` and ``hidden_term`` are functions such as those of ``visible_terms``
    and may return a value per unit or their sum; by default the term is zero. Cost: one product with the weights.
    Raises ``ValueError`` for shapes that do not fit and for NaN. Source: Bal (2020), section 2, the energy of a
    restricted Boltzmann machine.

    >>> float(joint_energy([1.0, 1.0], [2.0], [[0.5], [0.25]]))
    -1.5
    """
    dtype = validate.common_dtype(visible, hidden, weights)
    W = validate.matrix(weights, "weights", dtype=dtype)
    v = validate.vectors(visible, "visible", dim=W.shape[0], dtype=dtype)
    h = validate.vectors(hidden, "hidden", dim=W.shape[1], dtype=dtype)
    validate.same_batch(h, "hidden", v, "visible")
    return _joint(v, h, W, _term(visible_term, "visible_term", v), _term(hidden_term, "hidden_term", h))


def effective_energy(
    visible: Float[ArrayLike, "*batch V"],
    weights: Float[ArrayLike, "V H"],
    cumulant_generating_function: Callable[[Any], Array],
    visible_term: Callable[[Any], Array] | None = None,
) -> Float[Array, "*batch"]:
    """E(v) = -sum_i a_i(v_i) - sum_mu K_mu(sum_i W_{i mu} v_i), with K(t) = log E[exp(t h)] over the prior of h.

    This is -log of the integral of exp(-E(v, h)) over h when the hidden term is the logarithm of a normalised prior.
    With an unnormalised term b the integral differs by the constant -sum_mu log Z_mu, Z_mu = integral of exp(b_mu).

    ``visible`` is (..., V), ``weights`` (V, H); the result is (...). ``cumulant_generating_function`` acts entry by
    entry on arrays (..., H) (parameters per hidden unit broadcast); see ``cumulant_generating_functions``.
    ``visible_term`` maps ``visible`` to a value per unit or to their sum; by default the term is zero.
    Cost: one product with the weights, no sum over hidden states. Raises ``ValueError`` for shapes that do not fit, for
    NaN, and where the prior has no K. Source: Bal (2020), section 2, the effective energy in terms of cumulants.

    >>> from spinbook.rbm import cumulant_generating_functions as K
    >>> float(effective_energy([1.0, 1.0], [[0.5], [1.5]], K.gaussian))
    -2.0
    """
    dtype = validate.common_dtype(visible, weights)
    W = validate.matrix(weights, "weights", dtype=dtype)
    v = validate.vectors(visible, "visible", dim=W.shape[0], dtype=dtype)
    t = v @ W
    K = jnp.asarray(cumulant_generating_function(t))
    if K.shape != t.shape:
        raise ValueError(f"cumulant_generating_function: expected values of shape {t.shape}, got {K.shape}")
    return _effective(v, _term(visible_term, "visible_term", v), K)
