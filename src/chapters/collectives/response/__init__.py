"""Responses of a spin system whose couplings may depend on the fields that probe it: -dF/dh and its two terms.

terms        -dF/dh of any free energy, split into the mean spin and the force through the couplings
couplings    couplings as functions of the fields: fixed, softmax, symmetrised
exact        free energy and moments of few spins of one, two or three components, over all their configurations
mean_field   naive and TAP free energies of binary spins, whose responses approximate the exact ones
block        the output of a spin-transformer module, taken apart into the terms of a transformer block

The energy counts every ordered pair, E = -sum_ij J_ij s_i . s_j - sum_i h_i . s_i, diagonal included, and spins of D
components have length sqrt(D): binary spins are D = 1.
"""

from __future__ import annotations

from chapters.collectives.response import block, couplings, exact, mean_field
from chapters.collectives.response.terms import Moments, Terms, of_free_energy, of_moments

__all__ = ["Moments", "Terms", "block", "couplings", "exact", "mean_field", "of_free_energy", "of_moments"]
