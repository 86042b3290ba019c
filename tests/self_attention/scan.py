"""What ``lanes.run`` gathers, from the definition and by JAX on its default device: a second way to the same numbers.

All lanes advance together, tokens are computed anew at every step and tangents by automatic differentiation. On a CPU
``lanes.run`` is many times faster. Floating type: JAX's default, so switch x64 on; single precision is not to be
trusted on chaotic orbits.

Functions here take their arguments without checks; their callers have checked them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook.self_attention import mean_field
from spinbook.self_attention.lanes import FIELDS, Lanes, Numerics, Observation, Statistics, turning_steps
from spinbook.self_attention.mean_field import Couplings
from spinbook.self_attention.window import Window

__all__ = ["run"]


def _advance(couplings: Couplings, window: Window, tangents: Array) -> tuple[Window, Array, Array]:
    """One step of one lane: the window, the tangents (E, K, M), and the fields (5, M)."""

    def attention(A: Array) -> tuple[Array, tuple[Window, Any]]:
        after, new = mean_field.step(couplings, window._replace(attention=A))
        return after.attention, (after, new)

    _, push, (after, new) = jax.linearize(attention, window.attention, has_aux=True)
    return after, jax.vmap(push)(tangents), jnp.stack(new)


def _orthonormalised(tangents: Array) -> tuple[Array, Array]:
    """(E, K, M) and the logarithms of the lengths that went, (E,)."""
    E = len(tangents)
    Q, R = jnp.linalg.qr(tangents.reshape(E, -1).T)
    return Q.T.reshape(tangents.shape), jnp.log(jnp.abs(jnp.diagonal(R)))


@partial(jax.jit, static_argnames=("observation", "steps", "every", "observed", "num_tail"))
def _block(
    couplings: Couplings,
    windows: Window,
    tangents: Array,
    histogram: Array,
    crossings: Array,
    num_crossings: Array,
    *,
    observation: Observation,
    steps: int,
    every: int,
    observed: bool,
    num_tail: int,
) -> tuple[Any, ...]:
    n, _, M = windows.attention.shape
    lane = jnp.arange(n)
    axes = Window(0, None, None)

    def body(carry: Any, k: Array) -> tuple[Any, None]:
        windows, tangents, logs, low, high, histogram, crossings, num_crossings, tail = carry
        windows, tangents, fields = jax.vmap(_advance, (0, axes, 0), (axes, 0, 0))(couplings, windows, tangents)
        if tangents.shape[1]:
            due = ((k + 1) % every == 0) | (k + 1 == steps)
            tangents, grown = jax.lax.cond(
                due, jax.vmap(_orthonormalised), lambda t: (t, jnp.zeros(t.shape[:2], t.dtype)), tangents
            )
            logs = logs + grown
        if observed:
            field = fields[:, FIELDS.index(observation.field)]
            low, high = jnp.minimum(low, field), jnp.maximum(high, field)
            x = field[:, observation.component]
            bins = histogram.shape[1]
            index = ((x + 1) * (0.5 * bins)).astype(jnp.int32)
            histogram = histogram.at[lane, jnp.clip(index, 0, bins - 1)].add(1)
            crosses = jnp.abs(field[:, observation.plane]) < observation.tolerance
            # Out of bounds for a lane that does not cross, or has no room left; then nothing is written.
            place = jnp.where(crosses, num_crossings, crossings.shape[1])
            crossings = crossings.at[lane, place].set(x, mode="drop")
            num_crossings = num_crossings + crosses.astype(jnp.int32)
        if num_tail:
            row = k - (steps - num_tail)
            tail = tail.at[jnp.where(row >= 0, row, num_tail)].set(fields, mode="drop")
        return (windows, tangents, logs, low, high, histogram, crossings, num_crossings, tail), None

    dtype = windows.attention.dtype
    start = (
        windows,
        tangents,
        jnp.zeros(tangents.shape[:2], dtype),
        jnp.full((n, M), jnp.inf, dtype),
        jnp.full((n, M), -jnp.inf, dtype),
        histogram,
        crossings,
        num_crossings,
        jnp.zeros((num_tail, n, 5, M), dtype),
    )
    return jax.lax.scan(body, start, jnp.arange(steps))[0]


def run(lanes: Lanes, observation: Observation, numerics: Numerics) -> Statistics:
    """The same statistics as ``lanes.run`` of the same arguments, up to rounding.

    Exponents are measured in the window of attention vectors itself; ``lanes.run`` measures them in other coordinates
    of it and begins with other tangents, so that over T steps they differ by the logarithm of a bounded factor over T.
    """
    dtype = jnp.zeros(0).dtype
    n, K, M = lanes.windows.attention.shape
    E = numerics.num_exponents
    couplings = Couplings(*(jnp.asarray(x, dtype) for x in (*lanes.classes, lanes.betas, lanes.gammas)))
    windows = Window(jnp.asarray(lanes.windows.attention, dtype), *(jnp.asarray(int(x)) for x in lanes.windows[1:]))
    random = np.random.default_rng(numerics.seed).normal(size=(E, K, M))
    tangents = jnp.broadcast_to(jnp.asarray(random, dtype), (n, E, K, M))
    gathered = (
        jnp.zeros((n, observation.num_bins), jnp.int32),
        jnp.full((n, observation.max_crossings), jnp.nan, dtype),
        jnp.zeros(n, jnp.int32),
    )
    block = partial(_block, couplings, observation=observation, every=numerics.every)
    turning = turning_steps(numerics)
    # What would take no step is not compiled.
    if numerics.transient > turning:
        windows, *_ = block(
            windows, tangents[:, :0], *gathered, steps=numerics.transient - turning, observed=False, num_tail=0
        )
    if turning:
        windows, tangents, *_ = block(windows, tangents, *gathered, steps=turning, observed=False, num_tail=0)
    growth, minimum, maximum, tails = [], [], [], []
    bounds = numerics.bounds()
    for size, end in zip(np.diff(bounds), bounds[1:], strict=True):
        in_tail = int(np.clip(end - (numerics.steps - observation.num_tail), 0, size))
        windows, tangents, logs, low, high, *gathered, tail = block(
            windows, tangents, *gathered, steps=int(size), observed=observation.num_bins > 0, num_tail=in_tail
        )
        growth.append(np.asarray(logs) / size)
        minimum.append(np.asarray(low))
        maximum.append(np.asarray(high))
        tails.append(np.asarray(tail))
    histogram, crossings, num_crossings = map(np.asarray, gathered)
    period = couplings.positions.shape[1]
    return Statistics(
        growth=np.stack(growth, axis=1),
        minimum=np.stack(minimum, axis=1),
        maximum=np.stack(maximum, axis=1),
        histogram=histogram,
        crossings=crossings,
        num_crossings=num_crossings.astype(np.int64),
        tail=np.concatenate(tails).swapaxes(0, 1),
        windows=Window(
            np.asarray(windows.attention), np.int64(windows.length), np.int64(int(windows.position) % period)
        ),
    )
