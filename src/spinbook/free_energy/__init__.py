"""Vector spins on spheres of radius sqrt(D) by steepest descent: free energy, mean spins, attention (PyTorch).

model       VectorSpinModel: phi, its saddle, and thermodynamics there; the next order in 1/D
saddle      phi, gradient, Hessian, and the minimum with evidence and derivatives of any order
couplings   matrices drawn, projected, or computed from inputs by queries and keys
attention   VectorSpinAttention, and V^-1 as an attention matrix
exact       one or two spins at any D, by quadrature
sampling    any number of spins, by Gibbs sampling

Each pair counts twice here, as in the source: couplings J are the couplings 2 J of the rest of the book.
"""

from __future__ import annotations

from spinbook.free_energy import attention, couplings, exact, model, saddle, sampling
from spinbook.free_energy.attention import VectorSpinAttention, neumann_terms
from spinbook.free_energy.couplings import QueryKeyCouplings, symmetric_traceless
from spinbook.free_energy.model import VectorSpinModel

__all__ = [
    "QueryKeyCouplings",
    "VectorSpinAttention",
    "VectorSpinModel",
    "attention",
    "couplings",
    "exact",
    "model",
    "neumann_terms",
    "saddle",
    "sampling",
    "symmetric_traceless",
]
