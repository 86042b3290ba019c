"""Measures how far delayed correlations and entropy production of mean-field theory are from those of sampled spins.

A ``Cell`` is one place on the map of Bal (2026): N spins whose couplings are a softmax of independent Gaussian logits,
in fields of one length and random directions, at the drive u = beta |x| / R, the inverse temperature beta and D
components. Delayed correlations D_il = <s_i(t) . s_l(t - 1)> - m_i . m_l and the entropy production sigma = beta
sum_il (J_il - J_li) D_il of several theories are held against sampled ones. A ``Noise`` measures what conditional means
are worth in the place of spins, and a ``fidelity.Case`` is a draw of the prediction from one shared fluctuation.
``records/calibration/run.py`` says how the record was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments import records
from experiments.vector import fidelity
from experiments.vector.fidelity import STEPS, Case, exact_gain, independent_correlations
from spinbook import sphere
from spinbook.annotations import Float
from spinbook.entropy_production.mean_field import vector_delayed_correlations
from spinbook.vector import mean_field

DRIVES = (0.25, 0.5, 1.0, 2.0, 4.0)
BETAS = (0.5, 1.0, 2.0, 4.0, 8.0)
DIMS = (3, 16, 64, 128)
"""The axes of the map; the source's three numbers of components and one more."""
MEANS = ("naive", "large D", "TAP", "spread")
"""The order of ``means`` in the measurement of a cell: steady states, the last as in ``fidelity.spread_means``."""
THEORIES = ("naive", "large D", "TAP", "linear", "spread", "spread, linear")
"""The order of ``delayed`` and ``sigma``: independent spins, with ``linear_response``, and ``spread_delayed``."""


class Cell(NamedTuple):
    """One place on the map, with the sizes of its sampling: ``replicas`` and ``steps`` of each half."""

    u: float
    beta: float
    dim: int
    num_sites: int = 32
    draw: int = 0
    replicas: int = 64
    steps: int = 100
    transient: int = 40


class Noise(NamedTuple):
    """Short runs of one replica each at a place on the map, for the scatter of two estimators on the same spins."""

    u: float
    beta: float
    dim: int
    num_sites: int = 32
    draw: int = 0
    runs: int = 128
    steps: int = 40
    transient: int = 20


def variances(m: np.ndarray) -> np.ndarray:
    """v_i = (R^2 - |m_i|^2) / D, the variance of a spin per component."""
    return (sphere.squared_radius(m.shape[1]) - np.sum(m**2, axis=1)) / m.shape[1]


def linear_response(J: Float[np.ndarray, "N N"], m: Float[np.ndarray, "N D"], beta: float) -> Float[np.ndarray, "N N"]:
    """A (C - C_0) with C = C_0 + A C A^T: what spins that answer to each other add to D_il of independent ones.

    A_il = beta v_i J_il, with v_i = (R^2 - |m_i|^2) / D the variance of a spin per component, says how a fluctuation of
    one spin goes over to the mean of another at the next step, and C_0 holds the D v_i of independent spins. Rows of J
    that sum to one keep the uniform vector, which is where the sum is largest. NaN where fluctuations do not die out,
    the spectral radius of A being one or more.

    >>> added = linear_response(np.full((4, 4), 0.25), np.zeros((4, 6)), 1.0)
    >>> np.allclose(added, 6 / 3 * 0.125 / 3 / 4)
    True
    """
    v = variances(m)
    return _answered(beta * v[:, None] * J, m.shape[1] * v)


def _answered(A: np.ndarray, own: np.ndarray) -> np.ndarray:
    """A (C - C_0) with C = C_0 + A C A^T and the diagonal ``own`` of C_0, summed by doubling."""
    if np.isnan(A).any() or np.max(np.abs(np.linalg.eigvals(A))) >= 1:
        return np.full_like(A, np.nan)
    C, power = np.diag(own), A
    for _ in range(16):
        C, power = C + power @ C @ power.T, power @ power
    return np.asarray(A @ (C - np.diag(own)))


# The loops in it would be compiled anew at every call.
_exact_gains = jax.jit(sphere.exact.gains_at, static_argnums=1)


def spread_delayed(
    J: Float[np.ndarray, "N N"], x: Float[np.ndarray, "N D"], m: Float[np.ndarray, "N D"], beta: float
) -> tuple[Float[np.ndarray, "N N"], Float[np.ndarray, "N N"]]:
    """D_il = J_il tr(<phi'(h_i)> Var_l), and the same with what spins add that answer to each other.

    The response of spin i is averaged over the spread of its field, as in ``fidelity.spread_means``, whose ``m`` it
    needs: phi'(h) = f 1 + f1 h h^T at the squared length |h_i|^2 + w_i with h_i = x_i + sum_j J_ij m_j and w_i = sum_j
    J_ij^2 (R^2 - |m_j|^2), and <h h^T> = h_i h_i^T + (w_i / D) 1. The second is with A_il = J_il tr<phi'(h_i)> / D in
    ``linear_response``, and NaN where fluctuations do not die out.

    >>> alone = spread_delayed(np.zeros((2, 2)), np.ones((2, 4)), np.zeros((2, 4)), 1.0)
    >>> float(np.abs(alone).max())
    0.0
    """
    dim = m.shape[1]
    h = x + J @ m
    w = J**2 @ (dim * variances(m))
    found = _exact_gains(jnp.asarray(np.sum(h**2, axis=1) + w), dim, jnp.asarray(beta))
    f1 = np.asarray(found.f1)
    across = np.asarray(found.f) + f1 * w / dim
    Var = np.asarray(sphere.covariance(sphere.field(m, beta=beta), beta=beta))
    own = np.trace(Var, axis1=1, axis2=2)
    D = J * (across[:, None] * own + f1[:, None] * np.einsum("ia,lab,ib->il", h, Var, h, optimize=True))
    return D, D + _answered((across + f1 * np.sum(h**2, axis=1) / dim)[:, None] * J, own)


def settled(J: np.ndarray, x: np.ndarray, beta: float, gain: Callable[..., Any] = exact_gain) -> np.ndarray:
    """Where naive steps come to rest from the answer to the fields alone, NaN if they do not.

    A solver would also find states that the steps run away from, of which there is one in the cold if fields are weak.
    """
    m = np.zeros_like(x)
    for _ in range(20_000):
        h = x + J @ m
        before, m = m, np.asarray(gain(np.sum(h**2, axis=1), x.shape[1], beta))[:, None] * h
        if np.max(np.abs(m - before)) < 1e-9 * sphere.radius(x.shape[1]):
            return m
    return np.full_like(m, np.nan)


def theories(J: np.ndarray, x: np.ndarray, beta: float) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Means by ``MEANS``, delayed correlations by ``THEORIES``; NaN where a theory has no steady state."""
    means = {"naive": settled(J, x, beta)}
    means["large D"] = settled(J, x, beta, lambda s, D, b: b / (1 + np.sqrt(1 + b**2 * s / sphere.squared_radius(D))))
    tap = mean_field.steady_state(
        J, x, beta=beta, step=STEPS["TAP"], start=np.nan_to_num(means["naive"]), max_steps=300
    )
    means["TAP"] = np.where(tap.converged, np.asarray(tap.value), np.nan) + 0 * means["naive"]
    means["spread"] = fidelity.spread_means(J, x, beta=beta, updates=1000)
    found, finite = {}, {name: np.nan_to_num(m) for name, m in means.items()}
    for name in ("naive", "TAP"):
        found[name] = independent_correlations(J, finite[name], beta) + 0 * means[name].sum()
    h = x + J @ finite["large D"]
    large = vector_delayed_correlations(J, h, h, beta=beta, response=sphere.large_d)
    found["large D"] = np.asarray(large) + 0 * means["large D"].sum()
    found["linear"] = found["naive"] + linear_response(J, means["naive"], beta)
    found["spread"], found["spread, linear"] = spread_delayed(J, x, means["spread"], beta)
    return means, found


def predicted_gains(
    J: Float[np.ndarray, "N N"], m: Float[np.ndarray, "N D"], beta: float
) -> tuple[Float[np.ndarray, " N"], float]:
    """g_i = 1 / (beta sqrt(v_i sum_j J_ij^2 v_j)), and the same for sigma: how much less noise conditional means have.

    The fluctuating part of s_i(t+1) . s_l(t) has variance D v_i v_l to leading order in D and in the couplings. With
    the mean of s_i given its field in the place of s_i, the first factor is beta v_i times the fluctuation of the
    field, whose variance is sum_j J_ij^2 v_j. For equal spins g_i = sqrt(n_eff) / chi, with n_eff = 1 / sum_j J_ij^2
    and chi = beta v. Both estimates of sigma are sums of products: with K = J - J^T, the raw one of independent
    K_il s_i(t+1) . s_l(t), the other of Q_jl s_j . s_l at one time, Q = J^T diag(beta v) K, in which jl and lj are the
    same product. Products of a spin with itself hardly fluctuate and are left out. The second is NaN for symmetric
    couplings, which produce nothing.

    >>> g, of_sigma = predicted_gains(np.full((4, 4), 0.25), np.zeros((4, 6)), 1.5)
    >>> np.allclose(g, 4.0)
    True
    """
    v = variances(m)
    K = J - J.T
    Q = J.T @ (beta * v[:, None] * K)
    weights = np.outer(v, v)
    quiet = np.sum(np.triu((Q + Q.T) ** 2 * weights, 1))
    rows = 1 / (beta * np.sqrt(v * (J**2 @ v)))
    return rows, float(np.sqrt(np.sum(K**2 * weights) / quiet)) if quiet > 0 else np.nan


class Record(NamedTuple):
    """The rows of the record, each a case with what was measured."""

    cells: list[tuple[Cell, dict[str, np.ndarray]]]
    noises: list[tuple[Noise, dict[str, np.ndarray]]]
    draws: list[tuple[Case, dict[str, np.ndarray]]]


def record() -> Record:
    """The book's record; NaN where a theory found no steady state. ``records/calibration/run.py`` says what is what.

    >>> [len(part) for part in record()]
    [105, 5, 135]
    """
    return Record(*records.rows("calibration", cell=Cell, noise=Noise, draw=Case))


def root(squared: np.ndarray) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """sqrt of a square (..., 2) that has a standard error, with its own; NaN where it is not two of them above zero.

    >>> [round(float(part), 6) for part in root(np.array([0.04, 0.004]))]
    [0.2, 0.01]
    """
    value, error = np.moveaxis(np.asarray(squared, float), -1, 0)
    seen = value > 2 * error
    size = np.sqrt(np.where(seen, value, np.nan))
    return np.asarray(size), np.asarray(error / (2 * size))


def table(
    rows: Sequence[tuple[Cell, dict[str, np.ndarray]]], dim: int, quantity: str, place: int | None = None
) -> Float[np.ndarray, "betas drives *values"]:
    """One quantity of all cells of the map with ``dim`` components, in the order of ``BETAS`` and ``DRIVES``.

    ``place`` chooses a theory or a share by its place; without it all are returned.
    """
    by_place = {(c.beta, c.u): found[quantity] for c, found in rows if c.dim == dim and c.num_sites == 32}
    chosen = np.array([[by_place[beta, u] for u in DRIVES] for beta in BETAS])
    return chosen if place is None else chosen[:, :, place]


def over_prediction(
    rows: Sequence[tuple[Case, dict[str, np.ndarray]]], beta: float, num_sites: int
) -> Float[np.ndarray, " draws"]:
    """Measured over predicted relative error of naive delayed correlations, every draw with logits of deviation 1.

    The prediction is r / sqrt(q + 2 r + r^2).
    """
    wanted = (beta, 1.0, False, num_sites)
    chosen = [f for c, f in rows if (c.beta, c.scale, c.causal, c.num_sites) == wanted]
    return np.array([np.sqrt(f["delayed"][0, 0]) / f["predicted"][0] for f in chosen])
