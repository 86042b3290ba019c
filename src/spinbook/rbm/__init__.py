"""Restricted Boltzmann machines with their hidden units integrated out, and softmax attention as a mixture of them.

energies                        E(v, h) and the effective energy E(v)
visible_terms                   single-unit terms a(v): linear, gaussian
cumulant_generating_functions   K(t) of each hidden prior, in closed form
cumulants                       its power series, and convergence_radius of that of binary units
hidden_sum                      K(t) again, by summing over the hidden states
hidden_given_visible, gibbs     sampling
exact                           enumeration of few visible units, and their effective interactions
mixture                         the modern Hopfield energy as a mixture of normal densities; softmax attention
recall                          the path of a query that is retrieved, and its overlaps
"""

from __future__ import annotations

from spinbook.rbm import (
    convergence_radius,
    cumulant_generating_functions,
    cumulants,
    energies,
    exact,
    gibbs,
    hidden_given_visible,
    hidden_sum,
    mixture,
    recall,
    visible_terms,
)
from spinbook.rbm.energies import effective_energy, joint_energy
from spinbook.rbm.mixture import (
    mixture_log_density,
    mixture_log_partition,
    mixture_weights,
    modern_hopfield_energy,
    posterior_mean,
    responsibilities,
    retrieve,
)

__all__ = [
    "convergence_radius",
    "cumulant_generating_functions",
    "cumulants",
    "effective_energy",
    "energies",
    "exact",
    "gibbs",
    "hidden_given_visible",
    "hidden_sum",
    "joint_energy",
    "mixture",
    "mixture_log_density",
    "mixture_log_partition",
    "mixture_weights",
    "modern_hopfield_energy",
    "posterior_mean",
    "recall",
    "responsibilities",
    "retrieve",
    "visible_terms",
]
