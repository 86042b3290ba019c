"""Many replicas of a system stepped side by side, and the averages over them.

A replica has N sites, each with a number or a vector; the update is a function that the caller passes. Averages over
time are kept for every replica, and products of two sites, which need N^2 numbers, for at most 16 groups of replicas. A
trajectory is stored only on request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from spinbook import replicas, validate

__all__ = ["Simulation", "rows", "run"]


class Simulation(NamedTuple):
    """Averages over the steps after the transient. Attributes average over the R replicas.

    A state is (..., N) for binary and (..., N, D) for vector spins. ``spins``: the last state.
    ``replica_magnetizations``: the time average of s(t) in each replica, and ``replica_previous`` that of s(t - 1).
    ``group_products`` and ``group_delayed_products``: averages of s_i(t) . s_k(t) and s_i(t) . s_l(t - 1) over time and
    over the replicas of each of G groups (G, N, N), with as many replicas as ``group_sizes`` (G,) says; None if
    correlations were not requested. ``observed``: the observable after every step.

    Standard errors come from the scatter of the replicas, or for correlations of the G groups, at most 16,
    which are independent whatever the correlations in time; they are NaN for a single replica. Deviations in units of
    them follow Student's t with one degree of freedom less than there are replicas or groups: 15 for 16 groups.
    """

    spins: Float[Array, "..."]
    replica_magnetizations: Float[Array, " R N *D"]
    replica_previous: Float[Array, " R N *D"]
    group_products: Float[Array, "G N N"] | None
    group_delayed_products: Float[Array, "G N N"] | None
    group_sizes: Float[Array, " G"]
    observed: Any

    @property
    def weights(self) -> Float[Array, " G"]:
        """The part of the replicas that each group holds."""
        return self.group_sizes / jnp.sum(self.group_sizes)

    @property
    def magnetizations(self) -> Float[Array, " N *D"]:
        """m_i = <s_i>."""
        return jnp.mean(self.replica_magnetizations, axis=0)

    @property
    def magnetization_standard_errors(self) -> Float[Array, " N *D"]:
        """Of m_i, or of its components."""
        return replicas.standard_error(self.replica_magnetizations)

    @property
    def mean_magnetization(self) -> Float[Array, "*D"]:
        """The average of m_i over the spins."""
        return jnp.mean(self.replica_magnetizations, axis=(0, 1))

    @property
    def mean_magnetization_standard_error(self) -> Float[Array, "*D"]:
        """Of the average of m_i over the spins."""
        return replicas.standard_error(jnp.mean(self.replica_magnetizations, axis=1))

    @property
    def correlations(self) -> Float[Array, "N N"]:
        """C_ik = <s_i(t) . s_k(t)> - m_i . m_k."""
        return jnp.tensordot(self.weights, self._equal_time(), 1)

    @property
    def correlation_standard_errors(self) -> Float[Array, "N N"]:
        """Of C_ik, from G groups: Student's t with G - 1 degrees of freedom."""
        return replicas.standard_error(self._equal_time(), self.weights)

    @property
    def delayed_correlations(self) -> Float[Array, "N N"]:
        """D_il = <s_i(t) . s_l(t - 1)> - m_i . m'_l, with m' the average of s(t - 1)."""
        return jnp.tensordot(self.weights, self._delayed(), 1)

    @property
    def delayed_correlation_standard_errors(self) -> Float[Array, "N N"]:
        """Of D_il, from G groups: Student's t with G - 1 degrees of freedom."""
        return replicas.standard_error(self._delayed(), self.weights)

    def _equal_time(self) -> Array:
        return self._centred(self.group_products, self.replica_magnetizations)

    def _delayed(self) -> Array:
        return self._centred(self.group_delayed_products, self.replica_previous)

    def _centred(self, products: Array | None, second: Array) -> Array:
        """The average of (s_i - m_i) . (s'_l - m'_l) in each group, with the m and m' of all groups."""
        if products is None:
            raise ValueError("correlations: expected a simulation made with correlations=True, got one without")
        a, b = (replicas.group_means(_components(x)) for x in (self.replica_magnetizations, second))
        mean_a, mean_b = (jnp.tensordot(self.weights, x, 1) for x in (a, b))
        inner = partial(jnp.einsum, "...id,...ld->...il")
        return products - inner(a, mean_b) - inner(mean_a, b) + inner(mean_a, mean_b)[None]


def _components(rows: Array) -> Array:
    """(R, N) or (R, N, D) as (R, N, D): a number is a vector of one component."""
    return rows.reshape(*rows.shape[:2], -1)


def rows(spins: Array, fields: Array, axes: int) -> tuple[Array, Array]:
    """The replicas in one axis, with the fields of each, or those of all; ``axes`` is that of one state."""
    flat = spins.reshape(-1, *spins.shape[-axes:])
    return flat, fields if fields.ndim <= axes else jnp.broadcast_to(fields, spins.shape).reshape(flat.shape)


def run(
    key: PRNGKeyArray,
    start: Float[Array, " R N *D"],
    advance: Callable[[PRNGKeyArray, Array], Array],
    *,
    shape: tuple[int, ...],
    sum_dtype: Any,
    steps: int,
    transient: int = 0,
    correlations: bool = False,
    observable: Callable[[Array], Any] | None = None,
) -> Simulation:
    """s(t) = advance(fold_in(key, t - 1), s(t - 1)) from ``start``, averaged over all steps after ``transient`` ones.

    Replicas are rows; ``shape`` is that of a state as it was given, which the observable and the result have. Sums of
    spins over time are kept in ``sum_dtype``.
    """
    steps = validate.count(steps, "steps", minimum=1)
    transient = validate.count(transient, "transient", maximum=steps - 1)
    groups, size = replicas.grouped(start).shape[:2]

    def step(state: tuple[Array, ...], t: Array) -> tuple[tuple[Array, ...], Any]:
        old, first, total = state
        new = advance(jax.random.fold_in(key, t), old)
        # Without the condition XLA would compute the new state twice, the second time for its sum.
        first, total = jax.lax.cond(t < transient, lambda: (new, total), lambda: (first, total + new.astype(sum_dtype)))
        return (new, first, total), None if observable is None else observable(new.reshape(shape))

    def measure(state: tuple[Any, ...], t: Array) -> tuple[tuple[Any, ...], Any]:
        old, equal_time, delayed = state
        new, observed = step(old, t)
        now, before = (replicas.grouped(_components(rows)) for rows in (new[0], old[0]))
        equal_time += jnp.einsum("grid,grkd->gik", now, now)
        delayed += jnp.einsum("grid,grld->gil", now, before)
        return (new, equal_time, delayed), observed

    dtype, num_sites = start.dtype, start.shape[1]
    times, products = jnp.arange(steps), list[Array]()
    state: tuple[Array, ...] = (start, start, jnp.zeros(start.shape, sum_dtype))
    if correlations:
        nothing = jnp.zeros((groups, num_sites, num_sites), dtype)
        state, early = jax.lax.scan(step, state, times[:transient])
        averaged: tuple[Any, ...] = (state, nothing, nothing)
        averaged, late = jax.lax.scan(measure, averaged, times[transient:])
        state, *products = averaged
        observed = jax.tree.map(lambda *parts: jnp.concatenate(parts), early, late)
    else:
        state, observed = jax.lax.scan(step, state, times)
    last, first, total = state

    count = steps - transient
    group_sizes = jnp.minimum(size, start.shape[0] - size * jnp.arange(groups)).astype(dtype)
    # The sum of the states one step earlier differs by the first and the last state only.
    previous = total + first.astype(sum_dtype) - last.astype(sum_dtype)
    normalised = [product / (count * group_sizes[:, None, None]) for product in products]
    equal_time, delayed = normalised if correlations else (None, None)
    return Simulation(
        last.reshape(shape),
        total.astype(dtype) / count,
        previous.astype(dtype) / count,
        equal_time,
        delayed,
        group_sizes,
        observed,
    )
