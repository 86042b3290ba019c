"""Self-attention with one-bit tokens as a dynamical system: mean fields, orbits, exponents, sweeps, attractors.

network             the four matrices of signs: the paper's, random ones, ones written by hand
sign_classes        the average over infinitely many units as a finite sum
window              where an orbit starts
mean_field          the map, in JAX: the definition
kernel, lanes       the same map for 32 orbits at once, compiled by numba
trajectories        one orbit, step by step, and its exponents with error bars
stochastic          the same network with finitely many units, sampled
bifurcations        sweeps over temperatures, networks and starts
attractors          fixed point, periodic, quasi-periodic or chaotic, decided by numbers

``kernel`` is imported when orbits first run, because numba takes a second to load.
"""

from __future__ import annotations

from spinbook.self_attention import lanes, mean_field
from spinbook.self_attention.attractors import REGIMES, classify_sweep
from spinbook.self_attention.bifurcations import DIAGRAM, EXPONENTS_ONLY, bifurcation
from spinbook.self_attention.lanes import Numerics, Observation
from spinbook.self_attention.mean_field import couplings
from spinbook.self_attention.network import Network, paper_network, positional_bits, random_network
from spinbook.self_attention.stochastic import sample_finite
from spinbook.self_attention.trajectories import lyapunov_exponents, simulate
from spinbook.self_attention.window import attention_window, token_window

__all__ = [
    "DIAGRAM",
    "EXPONENTS_ONLY",
    "REGIMES",
    "Network",
    "Numerics",
    "Observation",
    "attention_window",
    "bifurcation",
    "classify_sweep",
    "couplings",
    "lanes",
    "lyapunov_exponents",
    "mean_field",
    "paper_network",
    "positional_bits",
    "random_network",
    "sample_finite",
    "simulate",
    "token_window",
]
