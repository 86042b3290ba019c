"""The second law of kinetic Ising spins step by step, under any drive, by going through all states. At most 14 spins.

States and distributions as in ``spinbook.ising.exact``. Nothing here assumes a steady state: the drive may change at
every step, since only the couplings and fields of the step itself enter.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.entropy_production.steady import from_delayed_correlations
from spinbook.ising import exact

__all__ = ["EntropyBudget", "EntropyPath", "entropy_budget", "relax"]


class EntropyBudget(NamedTuple):
    """Of one step, in nats. ``total`` = ``system`` + ``environment`` >= 0.

    ``system``: the change S(p) - S(p') of the system's own entropy. ``environment``: the mean of
    log(P(s | s') / P(s' | s)). ``distribution``: p, after the step.
    """

    total: Float[Array, ""]
    system: Float[Array, ""]
    environment: Float[Array, ""]
    distribution: Float[Array, " states"]


def _entropy(p: Array) -> Array:
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1)), 0))


@validate.finite_result
def entropy_budget(
    distribution: Float[ArrayLike, " 2**N"],
    couplings: Float[ArrayLike, "N N"],
    fields: Float[ArrayLike, " #N"],
    *,
    beta: Float[ArrayLike, ""],
) -> EntropyBudget:
    """sigma_t = sum_{s, s'} p'(s') P(s | s') log[p'(s') P(s | s') / (p(s) P(s' | s))] = S(p) - S(p') + environment.

    The Kullback-Leibler divergence of a step from its reverse, which starts from where the step ended and uses the same
    couplings and fields: never negative, whatever the distribution p' = ``distribution`` before. In a steady state the
    system's part is zero, and the total is ``exact.entropy_production`` and beta sum_ij (J_ij - J_ji) D_ij.

    Cost: 4^N exponentials. Errors as for ``exact.step``. Source: Aguilera, Igarashi & Shimazaki (2023); this book for
    the split under a changing drive.

    >>> budget = entropy_budget([1.0, 0.0, 0.0, 0.0], [[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=0.7)
    >>> bool(budget.total > 0), bool(abs(budget.total - budget.system - budget.environment) < 1e-6)
    (True, True)
    """
    environment = exact.entropy_production(couplings, fields, beta=beta, distribution=distribution)
    after = exact.step(distribution, couplings, fields, beta=beta)
    before = jnp.asarray(distribution, after.dtype)
    system = _entropy(after) - _entropy(before)
    return EntropyBudget(system + environment, system, environment, after)


class EntropyPath(NamedTuple):
    """After a change of drive, at each step t = 1, ..., T.

    ``mismatch``: the divergence D(p(t) || p*) from the steady state p*. ``residual``: sum_s |p(t) - p(t-1)|.
    ``total``, ``system``, ``environment``: the entropy budget. ``identity``: beta sum_ij (J_ij - J_ji) D_ij with the
    true delayed correlations of the step, which is the entropy production in the steady state only. ``steady``: that
    of p*.
    """

    mismatch: Float[Array, " T"]
    residual: Float[Array, " T"]
    total: Float[Array, " T"]
    system: Float[Array, " T"]
    environment: Float[Array, " T"]
    identity: Float[Array, " T"]
    steady: Float[Array, ""]


def relax(
    distribution: Float[ArrayLike, " 2**N"],
    couplings: Float[ArrayLike, "N N"],
    fields: Float[ArrayLike, " #N"],
    *,
    beta: Float[ArrayLike, ""],
    steps: int,
) -> EntropyPath:
    """p(t) = P p(t-1) from p(0) = ``distribution``, with the entropy budget of every step.

    The mismatch D(p(t) || p*) never grows. Cost: ``steps`` times that of ``entropy_budget``. Errors as for
    ``exact.stationary_distribution``, and ``steps`` < 1.

    >>> start = exact.product_distribution([0.9, 0.9])
    >>> path = relax(start, [[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=0.7, steps=5)
    >>> path.mismatch.shape, bool((path.mismatch[1:] <= path.mismatch[:-1]).all())
    ((5,), True)
    """
    steps = validate.count(steps, "steps", minimum=1)
    stationary = exact.stationary_distribution(couplings, fields, beta=beta)
    rows = []
    p = validate.finite(distribution, "distribution", dtype=stationary.dtype)
    for _ in range(steps):
        budget = entropy_budget(p, couplings, fields, beta=beta)
        D = exact.delayed_correlations(couplings, fields, beta=beta, distribution=p)
        rows.append(
            (
                exact.kullback_leibler(budget.distribution, stationary),
                jnp.sum(jnp.abs(budget.distribution - p)),
                budget.total,
                budget.system,
                budget.environment,
                from_delayed_correlations(couplings, D, beta=beta),
            )
        )
        p = budget.distribution
    columns = [jnp.stack(column) for column in zip(*rows, strict=True)]
    steady = exact.entropy_production(couplings, fields, beta=beta, distribution=stationary)
    mismatch, residual, total, system, environment, identity = columns
    return EntropyPath(mismatch, residual, total, system, environment, identity, steady)
