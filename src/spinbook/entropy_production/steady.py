"""Entropy production of a steady state: from delayed correlations, exactly, and from samples.

In the kinetic model all spins are updated at once, each with a probability proportional to exp(beta s . H_i) where
H_i = h_i + sum_j J_ij s'_j. The identities hold for Ising spins and for vectors alike, but only in the steady state;
for other distributions see ``paths``.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from spinbook import replicas, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Positive, checked
from spinbook.simulation import Simulation

__all__ = ["NotSteadyWarning", "SampledProduction", "from_delayed_correlations", "from_simulation"]


class NotSteadyWarning(UserWarning):
    """An identity of the steady state was applied to a system that is not in its steady state."""


@checked(static=())
def from_delayed_correlations(
    couplings: Float[ArrayLike, "N N"], delayed_correlations: Float[ArrayLike, "*batch N N"], *, beta: Positive
) -> Float[Array, "*batch"]:
    """sigma = beta sum_ij (J_ij - J_ji) D_ij, in nats per step.

    Exact in the steady state of constant couplings and fields, with D_ij = <s_i(t) . s_j(t-1)> - m_i . m_j the later
    time first; vectors enter through their dot product. There it equals the mean log ratio of the probabilities of a
    step and of its reverse, is never negative, and vanishes for symmetric couplings, whatever the correlations. An
    estimate of D gives an estimate that can have either sign.

    Raises ``ValueError`` for couplings that are not square, correlations of another size, NaN and beta <= 0. Source:
    Bal (2026), section "Entropy production", whose formula lacks beta; Aguilera, Igarashi & Shimazaki (2023).

    >>> sigma = from_delayed_correlations([[0.0, 1.0], [-1.0, 0.0]], [[0.0, 0.6], [-0.6, 0.0]], beta=0.7)
    >>> round(float(sigma), 3)
    1.68
    """
    J = couplings
    return beta * jnp.einsum("ij,...ij->...", J - J.T, delayed_correlations)


class SampledProduction(NamedTuple):
    """``value`` and ``standard_error`` of sigma; ``drift``: the largest change of a magnetization from the first to the
    last measured step, in units of its standard error.
    """

    value: Float[Array, ""]
    standard_error: Float[Array, ""]
    drift: Float[Array, ""]


def from_simulation(simulation: Simulation, couplings: Float[ArrayLike, "N N"], *, beta: Positive) -> SampledProduction:
    """sigma = beta sum_ij (J_ij - J_ji) <s_i(t) s_j(t-1)>, from a simulation made with ``correlations=True``.

    The product m_i m_j of the means is symmetric in the steady state and drops out, which removes its noise. The
    standard error comes from the scatter of the simulation's groups of replicas; for a single group it is NaN. Warns
    with ``NotSteadyWarning`` where a magnetization drifts by more than six standard errors: then the transient was
    too short. Raises ``ValueError`` for a simulation without correlations, couplings of another size, NaN and
    beta <= 0. Source: Bal (2026), section "Entropy production", with its lost beta.

    >>> import jax
    >>> from spinbook.ising import stochastic
    >>> J, start = [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2000, 2))
    >>> run = stochastic.simulate(
    ...     jax.random.key(0), start, J, 0.0, beta=0.7, steps=60, transient=20, correlations=True
    ... )
    >>> estimate = from_simulation(run, J, beta=0.7)
    >>> bool(abs(estimate.value - 1.692) < 4 * estimate.standard_error)
    True
    """
    if simulation.group_delayed_products is None:
        raise ValueError("simulation: expected a simulation made with correlations=True, got one without")
    products = simulation.group_delayed_products
    values = from_delayed_correlations(couplings, products, beta=beta)
    mean = jnp.tensordot(simulation.weights, values, 1)
    error = replicas.standard_error(values, simulation.weights)
    change = simulation.replica_magnetizations - simulation.replica_previous
    several = len(change) > 1
    # A single replica has no scatter to compare with.
    scatter = replicas.standard_error(change) if several else jnp.zeros_like(change[0])
    floor = jnp.finfo(change.dtype).eps
    drift = jnp.max(jnp.abs(jnp.mean(change, axis=0)) / jnp.maximum(scatter, floor))
    if several and not validate.is_traced(drift) and float(drift) > 6:
        warnings.warn(
            f"simulation: expected a steady state, got a drift of {float(drift):.3g} standard errors; the result is an "
            "estimate that need not be the entropy production, nor positive",
            NotSteadyWarning,
            stacklevel=2,
        )
    return SampledProduction(mean, error, drift)
