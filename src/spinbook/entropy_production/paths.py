"""The second law of kinetic Ising spins step by step, under any drive, by going through all states. At most 14 spins.

States and distributions as in ``spinbook.ising.exact``. No steady state is needed: only the couplings and fields of
the step itself enter, so the drive may change at every step.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Positive
from spinbook.ising import exact

__all__ = ["EntropyBudget", "entropy_budget"]


class EntropyBudget(NamedTuple):
    """The entropy production of one step, in nats. ``total`` = ``system`` + ``environment`` >= 0.

    ``system``: the change S(p) - S(p') of the system's own entropy. ``environment``: the mean of
    log(P(s | s') / P(s' | s)). ``distribution``: p, after the step.
    """

    total: Float[Array, ""]
    system: Float[Array, ""]
    environment: Float[Array, ""]
    distribution: Float[Array, " states"]


def _entropy(p: Array) -> Array:
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1)), 0))


def entropy_budget(
    distribution: Float[ArrayLike, " 2**N"],
    couplings: Float[ArrayLike, "N N"],
    fields: Float[ArrayLike, " #N"],
    *,
    beta: Positive,
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
