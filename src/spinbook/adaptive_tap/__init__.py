"""Spins in equilibrium by adaptive TAP: binary and vector spins, and attention as their response (PyTorch).

ising       binary spins: adaptive TAP, plain TAP and naive mean field, with evidence
exact       the same by enumeration
vector      vector spins: adaptive TAP, as a linear system for a Gaussian prior
priors      Gaussian, binary and spherical distributions of one spin
couplings   tensors of couplings: symmetries, draws, counts
implicit    fixed points with implicit gradients
attention   the responses as modules; softmax couplings; a transformer block

p(S) ~ exp(+ sum_{i<j} S_i J_ij S_j + sum_i h_i S_i): every pair counted once.
"""

from __future__ import annotations

from spinbook.adaptive_tap import attention, couplings, exact, implicit, ising, priors, vector
from spinbook.adaptive_tap.attention import (
    AdaptiveTAPAttention,
    EquilibriumAttention,
    FeedForward,
    MeanFieldAttention,
    SoftmaxCouplings,
    transformer_block,
)
from spinbook.adaptive_tap.ising import IsingResponse, solve_ising, solve_naive_ising, solve_tap_ising
from spinbook.adaptive_tap.priors import Binary, Gaussian, Spherical
from spinbook.adaptive_tap.vector import VectorResponse

__all__ = [
    "AdaptiveTAPAttention",
    "Binary",
    "EquilibriumAttention",
    "FeedForward",
    "Gaussian",
    "IsingResponse",
    "MeanFieldAttention",
    "SoftmaxCouplings",
    "Spherical",
    "VectorResponse",
    "attention",
    "couplings",
    "exact",
    "implicit",
    "ising",
    "priors",
    "solve_ising",
    "solve_naive_ising",
    "solve_tap_ising",
    "transformer_block",
    "vector",
]
