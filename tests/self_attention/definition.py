"""Orbits and Lyapunov exponents by their definition, in few lines and slowly: the reference of the compiled ones."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spinbook.self_attention import mean_field
from spinbook.self_attention.network import Network
from spinbook.self_attention.window import Window, start_window

in_jax = jax.jit(mean_field.simulate, static_argnames="steps")


def orbit_by_definition(network: Network, *, beta: float, steps: int, start: Any = None) -> mean_field.Overlaps:
    """What ``simulate`` computes, all fields of so many steps, by ``mean_field.step`` in JAX."""
    return in_jax(mean_field.couplings(network, beta=beta), start_window(network, start), steps=steps)[1]


def exponents_by_definition(
    network: Network, *, beta: float, steps: int, num_exponents: int = 1, start: Any = None
) -> Float[np.ndarray, " E"]:
    """lambda_k = 1/T sum_t log R_kk(t), with D <- dA(t+1)/dA(t) D and D = Q R, D <- Q at every step.

    The readable reference of ``lyapunov_exponents``: the derivative of ``mean_field.step`` by JAX, in JAX's floating
    type, from random tangents. Over T steps the two differ by the logarithm of a bounded factor over T.
    """
    couplings = mean_field.couplings(network, beta=jnp.asarray(np.float64(beta)))
    window = Window(*map(jnp.asarray, start_window(network, start)))
    size = network.context * network.num_features
    tangents = jnp.asarray(np.random.default_rng(0).normal(size=(size, num_exponents)), couplings.beta.dtype)
    window = window._replace(attention=window.attention.astype(tangents.dtype))
    return np.sort(np.asarray(_mean_growth(couplings, window, tangents, steps)))[::-1]


@partial(jax.jit, static_argnames="steps")
def _mean_growth(couplings: mean_field.Couplings, window: Window, tangents: Array, steps: int) -> Array:
    def advance(carry: tuple[Window, Array], _: None) -> tuple[tuple[Window, Array], Array]:
        window, D = carry

        def attention(A: Array) -> tuple[Array, Window]:
            after = mean_field.step(couplings, window._replace(attention=A.reshape(window.attention.shape)))[0]
            return after.attention.ravel(), after

        _, push, after = jax.linearize(attention, window.attention.ravel(), has_aux=True)
        Q, R = jnp.linalg.qr(jax.vmap(push, 1, 1)(D))
        return (after, Q), jnp.log(jnp.abs(jnp.diagonal(R)))

    return jnp.mean(jax.lax.scan(advance, (window, tangents), length=steps)[1], axis=0)
