"""Self-attention with one-bit tokens as a dynamical system: mean fields, orbits, exponents, sweeps, attractors.

network             the four matrices of signs: the paper's, random ones, ones written by hand; their correlations
sign_classes        the average over infinitely many units as a finite sum
window              where an orbit starts
mean_field          the map, in JAX: the definition
kernel, lanes       the same map for many orbits at once, compiled by numba
trajectories        one orbit, step by step
stochastic          the same network with finitely many units, sampled
lyapunov            exponents with error bars, the check of their sum, the Kaplan-Yorke dimension
bifurcations        sweeps over temperatures, networks and starts
attractors          fixed point, periodic, quasi-periodic or chaotic, decided by numbers

``kernel`` is imported when orbits first run, because numba takes a second to load.

"""

from __future__ import annotations

from spinbook.self_attention import (
    attractors,
    bifurcations,
    lanes,
    lyapunov,
    mean_field,
    network,
    sign_classes,
    stochastic,
    trajectories,
    window,
)
from spinbook.self_attention.attractors import REGIMES, Verdicts, classify_sweep, shortest_period, verdicts
from spinbook.self_attention.bifurcations import DIAGRAM, EXPONENTS_ONLY, MEASURED, bifurcation
from spinbook.self_attention.lanes import Numerics, Observation
from spinbook.self_attention.lyapunov import (
    LogDeterminant,
    LyapunovExponents,
    kaplan_yorke_dimension,
    lyapunov_exponents,
    mean_log_determinant,
)
from spinbook.self_attention.mean_field import couplings
from spinbook.self_attention.network import (
    Network,
    pair_correlations,
    paper_network,
    positional_bits,
    quad_correlations,
    random_network,
)
from spinbook.self_attention.stochastic import sample_finite
from spinbook.self_attention.trajectories import Trajectory, simulate
from spinbook.self_attention.window import Window, attention_window, random_windows, token_window

__all__ = [
    "DIAGRAM",
    "EXPONENTS_ONLY",
    "MEASURED",
    "REGIMES",
    "LogDeterminant",
    "LyapunovExponents",
    "Network",
    "Numerics",
    "Observation",
    "Trajectory",
    "Verdicts",
    "Window",
    "attention_window",
    "attractors",
    "bifurcation",
    "bifurcations",
    "classify_sweep",
    "couplings",
    "kaplan_yorke_dimension",
    "lanes",
    "lyapunov",
    "lyapunov_exponents",
    "mean_field",
    "mean_log_determinant",
    "network",
    "pair_correlations",
    "paper_network",
    "positional_bits",
    "quad_correlations",
    "random_network",
    "random_windows",
    "sample_finite",
    "shortest_period",
    "sign_classes",
    "simulate",
    "stochastic",
    "token_window",
    "trajectories",
    "verdicts",
    "window",
]
