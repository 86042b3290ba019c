"""The map that infinitely many units obey exactly: from the last K attention vectors to the next one.

This is the definition, written plainly in JAX: it recomputes every token of the window at every step, and it can be
differentiated, batched and run on a GPU. The fast sweeps use ``kernel``, which is tested against it step by step.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from spinbook.annotations import Float
from spinbook.checked import NonNegative, checked
from spinbook.self_attention.network import Network
from spinbook.self_attention.sign_classes import sign_classes
from spinbook.self_attention.window import Window, token_window

__all__ = ["Couplings", "Overlaps", "Window", "couplings", "overlaps", "simulate", "step", "token_window"]


class Couplings(NamedTuple):
    """What the map needs of a network at one temperature; arrays, so that ``vmap`` runs over networks and temperatures.

    ``class_signs`` (C, M): the signs s of the output patterns that occur, up to a global one. ``weights`` (4, M, C):
    (1 - epsilon) c^alpha_{s,a}. ``positions`` (R, 4, M): what the positional bits add, for each of R = 2^P positions.
    """

    class_signs: Float[Array, "C M"]
    weights: Float[Array, "4 M C"]
    positions: Float[Array, "R 4 M"]
    beta: Float[Array, ""]
    gamma: Float[Array, ""]


class Overlaps(NamedTuple):
    """What one step computes: mean fields of the new token and its attention, (M,) each.

    ``output_semantic`` is (1 - epsilon) <W^o_a tanh(...)>, without the positional term: the variable that the paper
    plots.
    """

    output_semantic: Float[Array, " M"]
    values: Float[Array, " M"]
    queries: Float[Array, " M"]
    keys: Float[Array, " M"]
    attention: Float[Array, " M"]


@checked()
def couplings(network: Network, *, beta: NonNegative) -> Couplings:
    """(1 - epsilon) c^alpha_{s,a}, eps W^alpha p / P, beta, gamma: the arrays that ``step`` takes.

    ``beta`` >= 0 is a number, which may be traced and sets the dtype.

    >>> from spinbook.self_attention import paper_network
    >>> couplings(paper_network(), beta=1.27).weights.shape
    (4, 3, 3)
    """
    arrays = (*sign_classes(network), network.gamma)
    signs, weights, positions, gamma = (jnp.asarray(x, beta.dtype) for x in arrays)
    return Couplings(signs, weights, positions, beta, gamma)


def overlaps(
    couplings: Couplings, attention: Float[Array, " M"], position: int | Int[Array, ""]
) -> Float[Array, "4 M"]:
    """m^alpha_a = (1 - epsilon) <W^alpha_a tanh(beta W^o . A)> + epsilon / P sum_p W^alpha_{a,p} p_p, all four alpha.

    Mean fields of the token that the attention A makes and that carries the given position, modulo R. Source: Poc-Lopez
    and Aguilera (2024), equations (15) and (16).

    Takes its arguments without checks; its callers have checked them.

    >>> from spinbook.self_attention import paper_network
    >>> overlaps(couplings(paper_network(), beta=1.27), jnp.zeros(3), 0).shape
    (4, 3)
    """
    average = couplings.weights @ jnp.tanh(couplings.beta * couplings.class_signs @ attention)
    return average + couplings.positions[position % len(couplings.positions)]


def step(couplings: Couplings, window: Window) -> tuple[Window, Overlaps]:
    """A_t = sum_tau softmax_tau(gamma m^q_t . m^k_tau) m^v_tau over the new token t and the K - 1 before it.

    Token t is made by A_{t-1}, the newest attention of the window, and carries position t; its neighbours are made anew
    from the older ones. Entries of the window beyond its length are ignored. Source: Poc-Lopez and Aguilera (2024),
    equations (13) to (15).

    Takes its arguments without checks; its callers have checked them.

    >>> from spinbook.self_attention import paper_network
    >>> network = paper_network()
    >>> after, new = step(couplings(network, beta=1.27), token_window(network))
    >>> int(after.length), int(after.position), new.attention.shape
    (2, 1, (3,))
    """
    K = len(window.attention)
    age = jnp.arange(K)
    m = jax.vmap(overlaps, (None, 0, 0))(couplings, window.attention, window.position - age)
    values, queries, keys = m[:, 1], m[:, 2], m[:, 3]
    logits = couplings.gamma * keys @ queries[0]
    weights = jax.nn.softmax(jnp.where(age < window.length, logits, -jnp.inf))
    attention = weights @ values
    after = Window(
        jnp.concatenate([attention[None], window.attention[:-1]]),
        jnp.minimum(window.length + 1, K),
        window.position + 1,
    )
    semantic = m[0, 0] - couplings.positions[window.position % len(couplings.positions), 0]
    return after, Overlaps(semantic, values[0], queries[0], keys[0], attention)


@partial(jax.jit, static_argnames="steps")
def simulate(couplings: Couplings, window: Window, *, steps: int) -> tuple[Window, Overlaps]:
    """``steps`` repetitions of ``step``: the window after them, and what each computed, (steps, M).

    Compiled once for each shape and number of steps.

    >>> from spinbook.self_attention import paper_network
    >>> network = paper_network()
    >>> simulate(couplings(network, beta=1.27), token_window(network), steps=7)[1].attention.shape
    (7, 3)
    """
    return jax.lax.scan(lambda w, _: step(couplings, w), window, length=steps)
