"""Lyapunov exponents of any differentiable map, for many parameters and starts at once, with standard errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.replicas import mean_and_error

__all__ = ["Exponents", "exponents"]


class Exponents(NamedTuple):
    """Natural logarithms per step, in descending order; leading axes are those of parameters and starts.

    ``exponents`` (*batch, E); ``standard_errors`` (*batch, E) from the scatter of the means of ``blocks`` (*batch, B,
    E) of successive steps. ``end`` (*batch, n): where each orbit ended, to continue from. NaN where an orbit left the
    finite numbers.
    """

    exponents: Float[np.ndarray, "*batch E"]
    standard_errors: Float[np.ndarray, "*batch E"]
    blocks: Float[np.ndarray, "*batch B E"]
    end: Float[np.ndarray, "*batch n"]


def exponents(
    f: Callable[[Array, Any], Array],
    start: Float[ArrayLike, "*batch n"],
    parameters: Any = (),
    *,
    steps: int,
    transient: int,
    num_exponents: int | None = None,
    num_blocks: int = 20,
) -> Exponents:
    """lambda_k = 1/T sum_t log R_kk(t), with D <- df/dx D and D = Q R, D <- Q, along x <- f(x, parameters).

    ``f`` takes a state (n,) and the parameters of one orbit and returns the next state; JAX differentiates it.
    ``start`` (*batch, n). ``parameters``: a number, or a tuple or dictionary of numbers, each of which may be an
    array or a list; their shapes and the leading axes of ``start`` broadcast to those of the result, as in NumPy:
    starts (S, 1, n) with parameters (P,) give (S, P) orbits. Bind arguments that are not numbers to ``f`` by
    ``functools.partial``.

    ``transient`` steps are dropped; the tangents are carried along with the last 1000 of them, so that they have turned
    to their directions. ``steps`` are averaged in ``num_blocks`` blocks, all n exponents by default. Standard errors
    assume blocks that are longer than the memory of the orbit.

    In JAX's floating type (switch x64 on; in single precision chaotic orbits soon repeat) and on its default device;
    the orbits of a batch advance together. Cost per step: E derivatives of f, and 2 n E^2 for Q. Compiled for each
    f and size, once as long as ``f`` is the same object. The map of this book's attention layer has a faster routine
    of its own, ``spinbook.self_attention.lyapunov_exponents``. Raises ``ValueError`` for shapes that do not fit, an f
    that returns another shape or type, and counts out of range. Source: Benettin et al. (1980).

    >>> def henon(x, a):
    ...     return jnp.stack([1 - a * x[0] ** 2 + x[1], 0.3 * x[0]])
    >>> found = exponents(henon, [0.1, 0.1], 1.4, steps=4000, transient=100)
    >>> [round(float(x), 1) for x in found.exponents], round(float(found.exponents.sum()), 3)
    ([0.4, -1.6], -1.204)
    """
    state = validate.finite(start, "start", "*batch n")
    n = state.shape[-1]
    num_blocks = validate.count(num_blocks, "num_blocks", minimum=2)
    steps = validate.count(steps, "steps", minimum=num_blocks)
    transient = validate.count(transient, "transient")
    E = validate.count(n if num_exponents is None else num_exponents, "num_exponents", minimum=1, maximum=n)
    leaves, structure = jax.tree.flatten(parameters, is_leaf=lambda x: isinstance(x, list))
    leaves = [validate.finite(leaf, "parameters", dtype=state.dtype) for leaf in leaves]
    batch = np.broadcast_shapes(state.shape[:-1], *(leaf.shape for leaf in leaves))
    scalars = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct((), state.dtype)] * len(leaves))
    returned = jax.eval_shape(f, jax.ShapeDtypeStruct((n,), state.dtype), scalars)
    if (returned.shape, returned.dtype) != ((n,), state.dtype):
        got = f"shape {returned.shape} of {returned.dtype}"
        raise ValueError(f"f: expected a state of shape {(n,)} of {state.dtype}, got {got}")

    states = jnp.broadcast_to(state, (*batch, n)).reshape(-1, n)
    each = jax.tree.unflatten(structure, [jnp.broadcast_to(leaf, batch).reshape(-1) for leaf in leaves])
    tangents = jnp.asarray(np.linalg.qr(np.random.default_rng(0).normal(size=(n, E)))[0], state.dtype)
    D = jnp.broadcast_to(tangents, (len(states), *tangents.shape))
    turning = min(transient, 1000)
    states = _advance(f, states, each, D[..., :0], transient - turning)[0]
    states, D, _ = _advance(f, states, each, D, turning)
    growth = []
    for size in np.diff(np.linspace(0, steps, num_blocks + 1).astype(int)):
        states, D, logs = _advance(f, states, each, D, int(size))
        growth.append(np.asarray(logs) / size)
    # An orbit that became infinite has no exponent; a singular derivative gives minus infinity.
    blocks = np.moveaxis(np.where(~np.isfinite(np.asarray(states)).all(axis=-1)[:, None], np.nan, growth), 0, 1)
    order = np.argsort(-blocks.mean(axis=1), axis=-1, kind="stable")
    blocks = np.take_along_axis(blocks, order[:, None], axis=-1)
    mean, error = mean_and_error(blocks.swapaxes(-1, -2))
    mean, error, blocks, end = (np.reshape(x, (*batch, *x.shape[1:])) for x in (mean, error, blocks, states))
    return Exponents(mean, error, blocks, end)


@partial(jax.jit, static_argnames="f")
def _advance(f: Any, states: Array, parameters: Any, D: Array, steps: Any) -> tuple[Array, Array, Array]:
    """``steps`` steps of all orbits: states, orthonormal tangents (batch, n, E), and their growth (batch, E)."""

    def step(x: Array, p: Any, D: Array) -> tuple[Array, Array]:
        after, push = jax.linearize(lambda x: f(x, p), x)
        return after, jax.vmap(push, 1, 1)(D)

    def advance(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, D, logs = carry
        x, D = jax.vmap(step)(x, parameters, D)
        D, R = jnp.linalg.qr(D)
        return x, D, logs + jnp.log(jnp.abs(jnp.diagonal(R, axis1=-2, axis2=-1)))

    begun = states, D, jnp.zeros((D.shape[0], D.shape[2]), D.dtype)
    ended: tuple[Array, Array, Array] = jax.lax.fori_loop(0, steps, advance, begun)
    return ended
