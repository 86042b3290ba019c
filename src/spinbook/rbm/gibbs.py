"""Block Gibbs sampling of restricted Boltzmann machines with binary visible units.

Given the visible units all hidden ones are independent, and vice versa, so that each half is drawn at once. The hidden
half is a function ``sampler(key, t)``: see ``hidden_given_visible``, one for each prior.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, PRNGKeyArray

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.rbm import hidden_given_visible

__all__ = ["hidden_given_visible", "simulate", "step"]


def _arguments(
    visible: Float[ArrayLike, "*batch V"], weights: Float[ArrayLike, "V H"], bias: Float[ArrayLike, "*units"]
) -> tuple[Array, Array, Array]:
    dtype = validate.common_dtype(visible, weights)
    W = validate.matrix(weights, "weights", dtype=dtype)
    v = validate.vectors(visible, "visible", dim=W.shape[0], dtype=dtype)
    validate.require(lambda x: (x == 0) | (x == 1), v, "visible", "units that are 0 or 1")
    a = validate.finite(bias, "bias", dtype=dtype)
    validate.broadcastable(a, "bias", (W.shape[0],))
    return v, W, a


def _step(key: PRNGKeyArray, v: Array, W: Array, sampler: Callable[[PRNGKeyArray, Any], Array], a: Array) -> Array:
    key_hidden, key_visible = jax.random.split(key)
    h = sampler(key_hidden, v @ W)
    return jax.random.bernoulli(key_visible, jax.nn.sigmoid(jnp.broadcast_to(a, v.shape) + h @ W.T)).astype(v.dtype)


def step(
    key: PRNGKeyArray,
    visible: Float[ArrayLike, "*batch V"],
    weights: Float[ArrayLike, "V H"],
    hidden_sampler: Callable[[PRNGKeyArray, Any], Array],
    bias: Float[ArrayLike, "*units"] = 0.0,
) -> Float[Array, "*batch V"]:
    """h ~ p(h | v), then v ~ p(v | h) with P(v_i = 1 | h) = 1 / (1 + exp(-bias_i - sum_mu W_{i mu} h_mu)).

    ``visible`` is (..., V) of zeros and ones, leading axes being independent chains; ``weights`` (V, H); ``bias`` a
    number or (V,), the visible term ``visible_terms.linear(bias)``. The step leaves p(v), proportional to
    exp(-effective_energy), unchanged. Raises ``ValueError`` for shapes that do not fit, NaN and states other than 0, 1.
    Source: Bal (2020), section 2, on block Gibbs sampling.

    >>> import jax
    >>> step(jax.random.key(0), [[0, 1], [1, 1]], [[0.5], [1.0]], hidden_given_visible.gaussian).shape
    (2, 2)
    """
    key = validate.key(key)
    v, W, a = _arguments(visible, weights, bias)
    return _step(key, v, W, hidden_sampler, a)


def simulate(
    key: PRNGKeyArray,
    visible: Float[ArrayLike, "*batch V"],
    weights: Float[ArrayLike, "V H"],
    hidden_sampler: Callable[[PRNGKeyArray, Any], Array],
    bias: Float[ArrayLike, "*units"] = 0.0,
    *,
    steps: int,
) -> Float[Array, "steps *batch V"]:
    """v_1, ..., v_steps from v_0 = ``visible`` by repeated ``step``; the start is not included.

    Arguments as for ``step``. Memory: all states, steps times the size of ``visible``.
    Compiled once for each shape, sampler and number of steps: pass the same sampler again, not a new one.

    >>> import jax
    >>> simulate(jax.random.key(0), [0, 1], [[0.5], [1.0]], hidden_given_visible.bernoulli(0.3), steps=7).shape
    (7, 2)
    """
    key = validate.key(key)
    v, W, a = _arguments(visible, weights, bias)
    # A function cannot be passed to compiled code; as a ``Partial`` it can, with its parameters left free.
    sampler = hidden_sampler if isinstance(hidden_sampler, Partial) else Partial(hidden_sampler)
    return _simulate(key, v, W, sampler, a, validate.count(steps, "steps", minimum=1))


@partial(jax.jit, static_argnames="steps")
def _simulate(key: PRNGKeyArray, v: Array, W: Array, sampler: Partial, a: Array, steps: int) -> Array:
    def advance(v: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        v = _step(key, v, W, sampler, a)
        return v, v

    return jax.lax.scan(advance, v, jax.random.split(key, steps))[1]
