"""Irreversibility of driven spin systems: exact, sampled, in mean field, along relaxations, and as a loss.

steady       sigma = beta sum_ij (J_ij - J_ji) D_ij, and its estimate from a simulation
paths        path probabilities: the entropy budget of every step, under any drive
mean_field   Ising and vector spins, never negative
relaxation   how far a mean-field system is from where it will rest

The exact value for few Ising spins is ``spinbook.ising.exact.entropy_production``, and that of the infinite asymmetric
Sherrington-Kirkpatrick model is in ``spinbook.ising.sherrington_kirkpatrick.order_parameters``.
"""

from __future__ import annotations

from spinbook.entropy_production import mean_field, paths, relaxation, steady
from spinbook.entropy_production.mean_field import ising_mean_field, vector_delayed_correlations, vector_mean_field
from spinbook.entropy_production.paths import entropy_budget
from spinbook.entropy_production.relaxation import divergence
from spinbook.entropy_production.steady import NotSteadyWarning, from_delayed_correlations, from_simulation

__all__ = [
    "NotSteadyWarning",
    "divergence",
    "entropy_budget",
    "from_delayed_correlations",
    "from_simulation",
    "ising_mean_field",
    "mean_field",
    "paths",
    "relaxation",
    "steady",
    "vector_delayed_correlations",
    "vector_mean_field",
]
