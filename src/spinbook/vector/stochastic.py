"""Sampling of vector spins that are all updated at once, many replicas side by side. Stores no trajectory unless asked.

Given the state s' before, spin i has a density proportional to exp(beta s . h_i) on the sphere of radius R, R^2 = D/2
- 1, in the field h_i = x_i + sum_j J_ij s'_j. Leading axes of the spins are independent replicas. States and fields are
(..., N, D), couplings (N, N) or, for slices of the components, (H, N, N). Mean-field theory of the same model is in
``spinbook.vector.mean_field``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from spinbook import replicas, sphere, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.vector import _arguments
from spinbook.vector.heads import by_heads, from_heads

__all__ = ["Simulation", "simulate", "step"]


def _state(spins: Any, couplings: Any, fields: Any, beta: Any) -> tuple[Array, Array, Array, Array]:
    dtype = validate.common_dtype(spins, couplings, fields)
    J, x, beta = _arguments.model(couplings, fields, beta, dtype=dtype)
    s = _arguments.sites(spins, "spins", J.shape[-1], dtype=dtype, dim=x.shape[-1])
    radius = sphere.radius(s.shape[-1])
    if not validate.is_traced(s):
        # A length in single precision is off by a few units in the last place, and a few thousand steps do not add up.
        with np.errstate(over="ignore"):
            off = np.abs(np.linalg.norm(np.asarray(s, np.float64), axis=-1) / radius - 1)
        validate.require(lambda r: r < 1e-4, off, "spins", f"vectors of length {radius:g}, to 1e-4 of it")
    validate.broadcastable(x, "fields", s.shape)
    return s, J, x, beta


def _fields(rows: Array, J: Array, x: Array) -> Array:
    received = from_heads(jnp.einsum("hij,rhjd->rhid", J, by_heads(rows, len(J))))
    return x + received


def _rows(s: Array, x: Array) -> tuple[Array, Array]:
    """The replicas in one axis, with the fields of each, or those of all."""
    rows = s.reshape(-1, *s.shape[-2:])
    return rows, x if x.ndim == 2 else jnp.broadcast_to(x, s.shape).reshape(rows.shape)


@jax.jit
def _step(key: PRNGKeyArray, s: Array, J: Array, x: Array, beta: Array) -> Array:
    rows, fields = _rows(s, x)
    return sphere.sample(key, _fields(rows, J, fields), beta=beta).reshape(s.shape)


@validate.finite_result
def step(
    key: PRNGKeyArray,
    spins: Float[ArrayLike, "*batch N D"],
    couplings: Float[ArrayLike, "*heads N N"],
    fields: Float[ArrayLike, "*#batch N D"],
    *,
    beta: Float[ArrayLike, ""],
) -> Float[Array, "*batch N D"]:
    """s_i with |s_i| = R and density proportional to exp(beta s . h_i), h_i = x_i + sum_j J_ij s'_j; s' = ``spins``.

    ``spins`` is (..., N, D) with D > 2, vectors of length R = sqrt(D/2 - 1), leading axes being independent replicas;
    ``couplings`` (N, N) or (H, N, N) may have any symmetry and a diagonal; ``fields`` is (N, D) or (..., N, D). Raises
    ``ValueError`` for couplings that are not square, shapes that do not fit, NaN, spins off the sphere, D <= 2 and
    beta <= 0. Cost: N^2 D for each replica, and D + 8 random numbers for each spin.
    Source: Bal (2023), labels pcondvector and pcondsinglesitevector.

    >>> import jax
    >>> start = jax.numpy.zeros((100, 2, 4)).at[..., 0].set(1.0)
    >>> step(jax.random.key(0), start, [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0).shape
    (100, 2, 4)
    """
    key = validate.key(key)
    return _step(key, *_state(spins, couplings, fields, beta))


class Simulation(NamedTuple):
    """What was averaged over the steps after the transient. Averages over the R replicas are taken when asked for.

    ``spins``: the last state (..., N, D). ``replica_magnetizations``: the time average of s(t) in each replica (R, N,
    D), and ``replica_previous`` that of s(t - 1). ``group_products`` and ``group_delayed_products``: averages of the
    scalar products s_i(t) . s_k(t) and s_i(t) . s_l(t - 1) over time and over the replicas of each of G groups (G, N,
    N), with as many replicas as ``group_sizes`` (G,) says; None if correlations were not asked for. ``observed``: the
    observable after every step.

    Standard errors come from the scatter of the replicas, or for correlations of the ``num_groups`` groups, at most 16,
    which are independent whatever the correlations in time; of a single replica they are NaN. Deviations in units of
    them follow Student's t with one degree of freedom less than there are replicas or groups: 15 for 16 groups.
    """

    spins: Float[Array, "*batch N D"]
    replica_magnetizations: Float[Array, "R N D"]
    replica_previous: Float[Array, "R N D"]
    group_products: Float[Array, "G N N"] | None
    group_delayed_products: Float[Array, "G N N"] | None
    group_sizes: Float[Array, " G"]
    observed: Any

    @property
    def num_groups(self) -> int:
        """G, the number of groups behind the standard errors of correlations."""
        return len(self.group_sizes)

    @property
    def magnetizations(self) -> Float[Array, "N D"]:
        """m_i = <s_i>."""
        return jnp.mean(self.replica_magnetizations, axis=0)

    @property
    def magnetization_standard_errors(self) -> Float[Array, "N D"]:
        """Of the components of m_i."""
        return replicas.standard_error(self.replica_magnetizations)

    @property
    def correlations(self) -> Float[Array, "N N"]:
        """C_ik = <s_i(t) . s_k(t)> - m_i . m_k."""
        return replicas.weighted_mean(self._equal_time(), self._weights())

    @property
    def correlation_standard_errors(self) -> Float[Array, "N N"]:
        """Of C_ik, from ``num_groups`` groups: Student's t with ``num_groups - 1`` degrees of freedom."""
        return replicas.standard_error(self._equal_time(), self._weights())

    @property
    def delayed_correlations(self) -> Float[Array, "N N"]:
        """D_il = <s_i(t) . s_l(t - 1)> - m_i . m'_l, with m' the average of s(t - 1)."""
        return replicas.weighted_mean(self._delayed(), self._weights())

    @property
    def delayed_correlation_standard_errors(self) -> Float[Array, "N N"]:
        """Of D_il, from ``num_groups`` groups: Student's t with ``num_groups - 1`` degrees of freedom."""
        return replicas.standard_error(self._delayed(), self._weights())

    def _weights(self) -> Array:
        return self.group_sizes / jnp.sum(self.group_sizes)

    def _equal_time(self) -> Array:
        return self._centred(self.group_products, self.replica_magnetizations)

    def _delayed(self) -> Array:
        return self._centred(self.group_delayed_products, self.replica_previous)

    def _centred(self, products: Array | None, second: Array) -> Array:
        """The average of (s_i - m_i) . (s'_l - m'_l) in each group, with the m and m' of all groups."""
        if products is None:
            raise ValueError("correlations: expected a simulation made with correlations=True, got one without")
        a, b = (replicas.group_means(x, self.num_groups) for x in (self.replica_magnetizations, second))
        mean_a, mean_b = replicas.weighted_mean(a, self._weights()), replicas.weighted_mean(b, self._weights())
        inner = partial(jnp.einsum, "...id,...ld->...il")
        return products - inner(a, mean_b) - inner(mean_a, b) + inner(mean_a, mean_b)


@partial(jax.jit, static_argnames=("steps", "transient", "correlations", "observable"))
def _simulate(
    key: PRNGKeyArray,
    s: Array,
    J: Array,
    x: Array,
    beta: Array,
    steps: int,
    transient: int,
    correlations: bool,
    observable: Callable[[Array], Any] | None,
) -> Simulation:
    start, fields = _rows(s, x)
    groups, size = replicas.grouped(start).shape[0], replicas.group_size(start.shape[0])

    def advance(rows: Array, t: Array) -> tuple[Array, Any]:
        rows = sphere.sample(jax.random.fold_in(key, t), _fields(rows, J, fields), beta=beta)
        return rows, None if observable is None else observable(rows.reshape(s.shape))

    def measure(state: tuple[Array, ...], t: Array) -> tuple[tuple[Array, ...], Any]:
        old, total, *products = state
        new, observed = advance(old, t)
        if correlations:
            now, before = replicas.grouped(new), replicas.grouped(old)
            products[0] += jnp.einsum("grid,grkd->gik", now, now)
            products[1] += jnp.einsum("grid,grld->gil", now, before)
        return (new, total + new, *products), observed

    times = jnp.arange(steps)
    first, early = jax.lax.scan(advance, start, times[:transient])
    nothing = [jnp.zeros((groups, s.shape[-2], s.shape[-2]), s.dtype)] * (2 * correlations)
    (last, total, *products), late = jax.lax.scan(measure, (first, jnp.zeros_like(start), *nothing), times[transient:])

    count = steps - transient
    group_sizes = jnp.minimum(size, start.shape[0] - size * jnp.arange(groups)).astype(s.dtype)
    normalised = [product / (count * group_sizes[:, None, None]) for product in products]
    equal_time, delayed = normalised if correlations else (None, None)
    return Simulation(
        last.reshape(s.shape),
        total / count,
        # The states one step earlier are the same but for both ends.
        (total + first - last) / count,
        equal_time,
        delayed,
        group_sizes,
        jax.tree.map(lambda *parts: jnp.concatenate(parts), early, late),
    )


@validate.finite_result
def simulate(
    key: PRNGKeyArray,
    spins: Float[ArrayLike, "*batch N D"],
    couplings: Float[ArrayLike, "*heads N N"],
    fields: Float[ArrayLike, "*#batch N D"],
    *,
    beta: Float[ArrayLike, ""],
    steps: int,
    transient: int = 0,
    correlations: bool = False,
    observable: Callable[[Array], Any] | None = None,
) -> Simulation:
    """s(1), ..., s(steps) from s(0) = ``spins``: averages over all steps after the first ``transient`` ones.

    Step t is ``step`` with the key fold_in(key, t - 1). The result is a ``Simulation`` with the last state and, as
    attributes, the means ``magnetizations`` (N, D) and, if asked for, ``correlations`` and ``delayed_correlations``
    (N, N) of scalar products, each with standard errors. With transient = steps - 1 they are those at one time, over
    replicas only. ``observable``, a function of one state (..., N, D), is recorded after every step, the transient
    included.

    Arguments and errors as for ``step``; ``steps`` > ``transient`` >= 0. Cost: R N^2 D a step; correlations twice that
    again. Memory: a few times the spins, 2 N^2 for each of at most 16 groups of replicas for correlations, and what is
    observed. Compiled once for each shape and observable: pass the same function again, not a new lambda.

    >>> import jax
    >>> start = jax.numpy.zeros((200, 2, 4)).at[..., 0].set(1.0)
    >>> x = jax.numpy.ones((2, 4))
    >>> result = simulate(jax.random.key(0), start, [[0.0, 0.5], [-0.5, 0.0]], x, beta=1.0, steps=30, transient=10)
    >>> result.spins.shape, result.magnetizations.shape
    ((200, 2, 4), (2, 4))
    """
    key = validate.key(key)
    s, J, x, beta = _state(spins, couplings, fields, beta)
    steps = validate.count(steps, "steps", minimum=1)
    transient = validate.count(transient, "transient", maximum=steps - 1)
    return _simulate(key, s, J, x, beta, steps, transient, bool(correlations), observable)
