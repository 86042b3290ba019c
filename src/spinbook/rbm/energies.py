"""The energy of a restricted Boltzmann machine with its hidden units integrated out.

Convention of this package: p(v, h) is proportional to exp(-E(v, h)); every term of E carries a minus sign, and
``weights[i, mu]`` couples visible unit i to hidden unit mu. Visible units have no couplings among each other, nor have
hidden ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from spinbook.annotations import ArrayLike, Float
from spinbook.checked import checked

__all__ = ["effective_energy"]


@checked()
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
    Cost: one product with the weights, no sum over hidden states. Raises ``ValueError`` for shapes that do not fit and
    for NaN. Source: Bal (2020), section 2, the effective energy in terms of cumulants.

    >>> from spinbook.rbm import cumulant_generating_functions as K
    >>> float(effective_energy([1.0, 1.0], [[0.5], [1.5]], K.gaussian))
    -2.0
    """
    v, t = visible, visible @ weights
    K = jnp.asarray(cumulant_generating_function(t))
    if K.shape != t.shape:
        raise ValueError(f"cumulant_generating_function: expected values of shape {t.shape}, got {K.shape}")
    own = jnp.zeros_like(v) if visible_term is None else jnp.asarray(visible_term(v))
    return -(jnp.sum(own, axis=-1) if own.shape == v.shape else own) - jnp.sum(K, axis=-1)
