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

from spinbook.adaptive_tap import exact, priors
from spinbook.adaptive_tap.attention import AdaptiveTAPAttention, MeanFieldAttention
from spinbook.adaptive_tap.ising import solve_ising

__all__ = ["AdaptiveTAPAttention", "MeanFieldAttention", "exact", "priors", "solve_ising"]
