"""Restricted Boltzmann machines with their hidden units integrated out, and softmax attention as a mixture of them.

energies                        the effective energy E(v)
cumulant_generating_functions   K(t) of six hidden priors, in closed form
exact                           all states of few visible units, and their effective interactions
mixture                         the modern Hopfield energy as a mixture of normal densities; softmax attention
"""

from __future__ import annotations

from spinbook.rbm import cumulant_generating_functions, exact, mixture
from spinbook.rbm.energies import effective_energy
from spinbook.rbm.mixture import (
    mixture_log_density,
    mixture_weights,
    modern_hopfield_energy,
    posterior_mean,
    responsibilities,
    retrieve,
)

__all__ = [
    "cumulant_generating_functions",
    "effective_energy",
    "exact",
    "mixture",
    "mixture_log_density",
    "mixture_weights",
    "modern_hopfield_energy",
    "posterior_mean",
    "responsibilities",
    "retrieve",
]
