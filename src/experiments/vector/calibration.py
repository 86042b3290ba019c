"""How far are the delayed correlations and the entropy production of mean-field theory from those of sampled spins?

A ``Cell`` is one place on the map of Bal (2026): N spins whose couplings are a softmax of independent Gaussian logits,
in fields of one length and random directions, at the drive u = beta |x| / R, the inverse temperature beta and D
components. Means, delayed correlations D_il = <s_i(t) . s_l(t - 1)> - m_i . m_l and the entropy production sigma = beta
sum_il (J_il - J_li) D_il of several theories are held against sampled ones. The average is taken of conditional means
in the place of spins, in two halves that share nothing, as in ``vector.fidelity``; a ``Noise`` measures what
the conditional means are worth, and a ``fidelity.Case`` is a draw of the prediction from one shared fluctuation.
Judges nothing.

``python -m experiments run nonequilibrium-calibration --out FOLDER`` computes all of ``cells()``, ``noises()`` and
``draws()`` and writes ``calibration.json.gz``; the one beside this module is the record of the book, see ``record``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array

from experiments import designs, records
from experiments.vector import fidelity
from experiments.vector.fidelity import (
    STEPS,
    Case,
    exact_gain,
    forgotten,
    independent_correlations,
    jackknife,
    squared_error,
    steady_means,
)
from spinbook import sphere, validate
from spinbook.annotations import Float
from spinbook.entropy_production.mean_field import vector_delayed_correlations
from spinbook.precision import enable_x64
from spinbook.vector import mean_field, stochastic

__all__ = [
    "BETAS",
    "DIMS",
    "DRIVES",
    "MEANS",
    "SHARES",
    "THEORIES",
    "Cell",
    "Noise",
    "Record",
    "cells",
    "compute",
    "draws",
    "gains",
    "linear_response",
    "measure",
    "noises",
    "over_prediction",
    "predicted_gains",
    "record",
    "root",
    "seeded",
    "spread_delayed",
    "system",
    "table",
    "tried",
]

DRIVES = (0.25, 0.5, 1.0, 2.0, 4.0)
BETAS = (0.5, 1.0, 2.0, 4.0, 8.0)
DIMS = (3, 16, 64, 128)
"""The axes of the map; the source's three numbers of components and one more."""
MEANS = ("naive", "large D", "TAP", "spread")
"""The order of ``means`` in the measurement of a cell: steady states, the last as in ``fidelity.spread_means``."""
THEORIES = ("naive", "large D", "TAP", "linear", "spread", "spread, linear")
"""The order of ``delayed`` and ``sigma``: independent spins, with ``linear_response``, and ``spread_delayed``."""
SHARES = ("symmetric", "uniform", "along J - J^T")
"""The order of ``shares``: where the squared error of the naive delayed correlations lies."""
_ARTIFACT = "calibration.json.gz"
_UPDATES = 1000
"""Updates of the means that count the spread of the field; naive steps are at most twenty times as many."""
_SETTLED = 1e-9
"""Change of the last step, over R, of means that have come to rest."""
_REPLICAS = {3: (256, 200), 16: (256, 100), 64: (64, 100), 128: (64, 60)}


@designs.record(draw=validate.count, transient=validate.count)
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


@designs.record(draw=validate.count, transient=validate.count)
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


def cells() -> list[Cell]:
    """Every cell of the record: the map, then five draws of (u, beta) = (1, 1) with 64 sites and 128 components.

    >>> len(cells()), cells()[0]
    (105, Cell(u=0.25, beta=0.5, dim=3, num_sites=32, draw=0, replicas=256, steps=200, transient=40))
    """
    found = []
    for dim in DIMS:
        replicas, steps = _REPLICAS[dim]
        found += [Cell(u, beta, dim, replicas=replicas, steps=steps) for beta in BETAS for u in DRIVES]
    return found + [Cell(1.0, 1.0, 128, num_sites=64, draw=draw, replicas=64, steps=60) for draw in range(5)]


def noises() -> list[Noise]:
    """Where the scatter is measured: three numbers of components at (1, 1), and two other places.

    >>> len(noises())
    5
    """
    return [Noise(1.0, 1.0, dim) for dim in (16, 64, 128)] + [Noise(2.0, 2.0, 64), Noise(4.0, 1.0, 64)]


def draws() -> list[Case]:
    """Twenty draws at each of six settings, for the prediction, and five at each of three where it was seen to fail.

    Logits have standard deviation 1 at beta = 1, 2, 4 with 32 or 128 sites. The others, at beta = 2 with 64 sites: a
    standard deviation of 2, of 4, and of 1 under a causal mask. Fields have length R, all have 32 components.

    >>> len(draws()), draws()[0].beta
    (135, 1.0)
    """
    settings = [(beta, 1.0, False, num_sites, 20) for beta in (1.0, 2.0, 4.0) for num_sites in (32, 128)]
    settings += [(2.0, 2.0, False, 64, 5), (2.0, 4.0, False, 64, 5), (2.0, 1.0, True, 64, 5)]
    return [
        Case("collective", beta, scale, causal, num_sites, 32, draw, replicas=32, steps=50)
        for beta, scale, causal, num_sites, count in settings
        for draw in range(count)
    ]


def system(cell: Cell | Noise) -> tuple[np.ndarray, np.ndarray]:
    """J (N, N), softmax of Gaussian logits by rows, and x (N, D) of length u R / beta in random directions.

    The couplings are the same at all places of one ``draw``, the directions at all of one dimension.

    >>> J, x = system(Cell(2.0, 4.0, 6, num_sites=5))
    >>> J.sum(axis=1).round(6).tolist(), np.linalg.norm(x, axis=1).round(6).tolist()
    ([1.0, 1.0, 1.0, 1.0, 1.0], [0.707107, 0.707107, 0.707107, 0.707107, 0.707107])
    """
    N, D = cell.num_sites, cell.dim
    J = scipy.special.softmax(np.random.default_rng([N, cell.draw]).normal(size=(N, N)), axis=1)
    directions = np.random.default_rng([N, D, cell.draw]).normal(size=(N, D))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return J, cell.u / cell.beta * sphere.radius(D) * directions


def seeded(case: tuple[Any, ...]) -> Array:
    """The random key of a case, from all that it says.

    >>> bool(jax.numpy.all(seeded(Cell(1.0, 1.0, 8)) == seeded(Cell(1.0, 1.0, 8))))  # exact
    True
    """
    return jax.random.key(int.from_bytes(sha256(repr(case).encode()).digest()[:4], "big"))


def _system(J: Any, m: Any, beta: Any, x: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Square couplings, means and fields (N, D) inside the ball and beta > 0, all in double precision."""
    J, m = validate.known_numbers(J, "J"), validate.known_numbers(m, "m")
    if J.ndim != 2 or J.shape[0] != J.shape[1] or J.size == 0:
        raise ValueError(f"J: expected a square matrix (N, N), got shape {J.shape}")
    x = np.zeros_like(m) if x is None else validate.known_numbers(x, "x")
    for value, name in ((J, "J"), (x, "x")):
        validate.require(lambda a: np.isfinite(J.size * a * a), value, name, "numbers with finite squares")
    for value, name in ((m, "m"), (x, "x")):
        if value.ndim != 2 or len(value) != len(J) or value.shape[1] < 3 or value.shape != m.shape:
            raise ValueError(f"{name}: expected shape ({len(J)}, D) with D > 2, got shape {value.shape}")
    sphere.inside_ball(m, "m")
    return J, m, x, validate.number(beta, "beta", above=0)


def _variances(m: np.ndarray) -> np.ndarray:
    """v_i, the variance of a spin per component."""
    return (sphere.squared_radius(m.shape[1]) - np.sum(m**2, axis=1)) / m.shape[1]


def linear_response(J: Float[np.ndarray, "N N"], m: Float[np.ndarray, "N D"], beta: float) -> Float[np.ndarray, "N N"]:
    """A (C - C_0) with C = C_0 + A C A^T: what spins that answer to each other add to D_il of independent ones.

    A_il = beta v_i J_il, with v_i = (R^2 - |m_i|^2) / D the variance of a spin per component, says how a fluctuation of
    one spin goes over to the mean of another at the next step, and C_0 holds the D v_i of independent spins. Rows of J
    that sum to one keep the uniform vector, which is where the sum is largest. NaN where fluctuations do not die out,
    the spectral radius of A being one or more. Raises ``ValueError`` for shapes that do not fit, means outside of the
    ball and beta <= 0.

    >>> added = linear_response(np.full((4, 4), 0.25), np.zeros((4, 6)), 1.0)
    >>> np.allclose(added, 6 / 3 * 0.125 / 3 / 4)
    True
    """
    J, m, _, beta = _system(J, m, beta)
    return _linear_response(J, m, beta)


def _linear_response(J: np.ndarray, m: np.ndarray, beta: float) -> np.ndarray:
    v = _variances(m)
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
    ``linear_response``, and NaN where fluctuations do not die out. Raises ``ValueError`` as ``linear_response`` does.

    >>> alone = spread_delayed(np.zeros((2, 2)), np.ones((2, 4)), np.zeros((2, 4)), 1.0)
    >>> float(np.abs(alone).max())
    0.0
    """
    J, m, x, beta = _system(J, m, beta, x)
    return _spread_delayed(J, x, m, beta)


def _spread_delayed(J: np.ndarray, x: np.ndarray, m: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    dim = m.shape[1]
    h = x + J @ m
    w = J**2 @ (dim * _variances(m))
    found = _exact_gains(jnp.asarray(np.sum(h**2, axis=1) + w), dim, jnp.asarray(beta))
    f1 = np.asarray(found.f1)
    across = np.asarray(found.f) + f1 * w / dim
    Var = np.asarray(sphere.covariance(sphere.field(m, beta=beta), beta=beta))
    own = np.trace(Var, axis1=1, axis2=2)
    D = J * (across[:, None] * own + f1[:, None] * np.einsum("ia,lab,ib->il", h, Var, h, optimize=True))
    return D, D + _answered((across + f1 * np.sum(h**2, axis=1) / dim)[:, None] * J, own)


def _odd(J: np.ndarray) -> np.ndarray:
    return J - J.T


def measure(cell: Cell) -> dict[str, np.ndarray]:
    """What sampling says of a cell, every value with its standard error, from leaving out groups of replicas.

    ``means`` (4, 2) and ``delayed`` (6, 2): squared relative errors, in which sampling noise cancels on average, of the
    means of ``MEANS`` and the delayed correlations of ``THEORIES``; ``sigma`` (6, 2): their entropy production over the
    sampled one, less one; ``shares`` (3, 2): of the squared error of naive delayed correlations, what lies in the
    symmetric part, in the uniform direction 1 1^T and along J - J^T; ``floor`` (3,): standard errors of the sampled
    means, delayed correlations and entropy production, relative to them; ``forgotten``: the squared distance of the
    halves' means over what their scatter lets expect, one if both starts are forgotten; ``mode``: chi, r and q of
    ``mean_field.collective_mode``; ``predicted`` (3,): the relative error of naive delayed correlations from these
    three and from ``linear_response``, and of sigma from ``linear_response``. NaN where a theory found no steady state.
    """
    with enable_x64(True):
        J, x = system(cell)
        sizes = {"replicas": cell.replicas, "steps": cell.steps, "transient": cell.transient}
        halves = fidelity.sampled(seeded(cell), jnp.asarray(J), jnp.asarray(x), beta=cell.beta, delayed=True, **sizes)
        m, D = (np.asarray(part, dtype=float) for part in halves)
        return _compared(J, x, cell.beta, m, D)


def _large_d_gain(squared: np.ndarray, dim: int, beta: float) -> np.ndarray:
    return beta / (1 + np.sqrt(1 + beta**2 * squared / sphere.squared_radius(dim)))


def _settled(J: np.ndarray, x: np.ndarray, beta: float, gain: Callable[..., Any]) -> np.ndarray:
    """Where naive steps come to rest from the answer to the fields alone, NaN if they do not.

    A solver would also find states that the steps run away from, of which there is one in the cold if fields are weak.
    """
    dim = x.shape[1]
    m = np.zeros_like(x)
    for _ in range(20 * _UPDATES):
        h = x + J @ m
        before, m = m, np.asarray(gain(np.sum(h**2, axis=1), dim, beta))[:, None] * h
        if np.max(np.abs(m - before)) < _SETTLED * sphere.radius(dim):
            return m
    return np.full_like(m, np.nan)


def _polished(J: np.ndarray, x: np.ndarray, beta: float, start: np.ndarray) -> np.ndarray:
    """The steady state of TAP that a solver finds from ``start``, NaN if it finds none."""
    if np.isnan(start).any():
        return start
    found = mean_field.steady_state(J, x, beta=beta, step=STEPS["TAP"], start=start, max_steps=300)
    return np.where(found.converged, np.asarray(found.value), np.nan)


def _theories(J: np.ndarray, x: np.ndarray, beta: float) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Means by ``MEANS``, delayed correlations by ``THEORIES``."""
    means = {name: _settled(J, x, beta, gain) for name, gain in (("naive", exact_gain), ("large D", _large_d_gain))}
    means["TAP"] = _polished(J, x, beta, means["naive"])
    means["spread"] = fidelity.spread_means(J, x, beta=beta, updates=_UPDATES)
    delayed = {}
    for name in ("naive", "TAP"):
        lost = np.isnan(means[name]).any()
        delayed[name] = np.full_like(J, np.nan) if lost else independent_correlations(J, means[name], beta)
    fields = x + J @ means["large D"]
    delayed["large D"] = (
        np.full_like(J, np.nan)
        if np.isnan(fields).any()
        else np.asarray(vector_delayed_correlations(J, fields, fields, beta=beta, response=sphere.large_d))
    )
    delayed["linear"] = delayed["naive"] + _linear_response(J, means["naive"], beta)
    delayed["spread"], delayed["spread, linear"] = _spread_delayed(J, x, means["spread"], beta)
    return means, delayed


def _floor(values: np.ndarray) -> float:
    """The standard error of the average of both halves, (2, groups, ...), over its length."""
    groups = values.shape[1]
    scatter = np.sum(np.var(values, axis=1, ddof=1)) / (4 * groups)
    return float(np.sqrt(scatter) / np.linalg.norm(values.mean((0, 1))))


def _compared(J: np.ndarray, x: np.ndarray, beta: float, m: np.ndarray, D: np.ndarray) -> dict[str, np.ndarray]:
    """The measurement of a cell from two halves of means (2, G, N, D) and delayed correlations (2, G, N, N)."""
    means, delayed = _theories(J, x, beta)
    K = _odd(J)
    flow = beta * np.sum(K * D, axis=(-2, -1))
    naive, closed = delayed["naive"], delayed["linear"]

    def produced(theory: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
        return lambda a, b: float(beta * np.sum(K * theory) / np.mean([a, b]) - 1)

    def shares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        first, second = naive - a, naive - b
        parts = [
            np.sum((first + first.T) * (second + second.T)) / 4,
            first.sum() * second.sum() / len(J) ** 2,
            np.sum(K * first) * np.sum(K * second) / np.sum(K**2),
        ]
        return np.array(parts) / np.sum(first * second)

    lost = np.isnan(means["naive"]).any()
    chi, r, q = (np.nan, np.nan, np.nan) if lost else mean_field.collective_mode(J, means["naive"], beta=beta)
    from_linear = np.linalg.norm(closed - naive) / np.linalg.norm(closed)
    of_sigma = np.sum(K * naive) / np.sum(K * closed) - 1
    return {
        "means": np.array([jackknife(squared_error(means[name]), m) for name in MEANS]),
        "delayed": np.array([jackknife(squared_error(delayed[name]), D) for name in THEORIES]),
        "sigma": np.array([jackknife(produced(delayed[name]), flow) for name in THEORIES]),
        "shares": np.transpose(jackknife(shares, D)),
        "floor": np.array([_floor(m), _floor(D), _floor(flow)]),
        "forgotten": np.array(forgotten(m)),
        "mode": np.array([chi, r, q]),
        "predicted": np.array([r / np.sqrt(q + 2 * r + r**2), from_linear, of_sigma]),
    }


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
    couplings, which produce nothing. Raises ``ValueError`` as ``linear_response`` does, and for a spin that hears of no
    other.

    >>> g, of_sigma = predicted_gains(np.full((4, 4), 0.25), np.zeros((4, 6)), 1.5)
    >>> np.allclose(g, 4.0)
    True
    """
    J, m, _, beta = _system(J, m, beta)
    v = _variances(m)
    K = _odd(J)
    Q = J.T @ (beta * v[:, None] * K)
    weights = np.outer(v, v)
    quiet = np.sum(np.triu((Q + Q.T) ** 2 * weights, 1))
    heard = v * (J**2 @ v)
    validate.require(lambda a: a > 0, heard, "J", "couplings of every spin to others")
    rows = 1 / (beta * np.sqrt(heard))
    return rows, float(np.sqrt(np.sum(K**2 * weights) / quiet)) if quiet > 0 else np.nan


def _whole(spins: Array) -> Array:
    return spins


def gains(case: Noise) -> dict[str, np.ndarray]:
    """The scatter over short runs of raw spins over that of conditional means, measured and as ``predicted_gains``.

    ``rows`` (2, N): predicted and measured gain in the delayed correlations of each row, root mean square over its
    entries; ``n_eff`` and ``chi`` (N,); ``ratio`` (2,): measured over predicted, root mean square over rows, with its
    standard error from leaving out sixteenths of the runs; ``sigma`` (3,): predicted gain for the entropy production,
    measured, and its standard error.
    """
    with enable_x64(True):
        J, x = system(case)
        m = steady_means(J, x, case.beta, STEPS["naive"])
        single = [jnp.asarray(a, jnp.float32) for a in (J, x)]
        first, later = jax.random.split(seeded(case))
        start = sphere.sample(first, jnp.zeros((case.runs, *x.shape), jnp.float32), beta=1.0)
        total = case.transient + case.steps
        path = stochastic.simulate(later, start, *single, beta=case.beta, steps=total, observable=_whole).observed
        s = np.asarray(path)[case.transient :]
        quiet = np.asarray(sphere.magnetization(single[1] + jnp.einsum("ij,trjd->trid", single[0], s), beta=case.beta))
    predicted, of_sigma = predicted_gains(J, m, case.beta)
    K = _odd(J)

    def estimates(after: np.ndarray) -> np.ndarray:
        before = s[: len(after)]
        products = np.einsum("trid,trld->ril", after, before, optimize=True) / len(after)
        return np.asarray(products - np.einsum("rid,rld->ril", after.mean(0), before.mean(0), optimize=True), float)

    raw, conditional = estimates(s[1:]), estimates(quiet[:-1])
    flows = [np.sum(K * D, axis=(1, 2)) for D in (raw, conditional)]

    def measured(kept: np.ndarray) -> np.ndarray:
        scatter = [np.var(D[kept], axis=0, ddof=1).mean(1) for D in (raw, conditional)]
        rows = np.sqrt(scatter[0] / scatter[1])
        sigma = np.std(flows[0][kept], ddof=1) / np.std(flows[1][kept], ddof=1)
        return np.array([*rows, np.sqrt(np.mean((rows / predicted) ** 2)), sigma])

    every = np.arange(case.runs)
    whole = measured(every >= 0)
    left = np.array([measured(every % _PARTS != k) for k in range(_PARTS)])
    error = np.sqrt((_PARTS - 1) * np.var(left, axis=0))
    return {
        "rows": np.stack([predicted, whole[:-2]]),
        "n_eff": 1 / np.sum(J**2, axis=1),
        "chi": case.beta * _variances(m),
        "ratio": np.array([whole[-2], error[-2]]),
        "sigma": np.array([of_sigma, whole[-1], error[-1]]),
    }


_PARTS = 16
"""Parts of the runs that are left out in turn."""


def tried(case: Case) -> dict[str, np.ndarray]:
    """The relative error of naive delayed correlations in a collective case of ``fidelity``, and its predictions.

    ``delayed`` (3, 2): squared relative errors of naive delayed correlations, with ``linear_response``, and of
    ``spread_delayed`` closed, as in ``measure``; ``own_means`` (2,): the first if each group's own means are
    subtracted, which is biased, see ``fidelity.sampled``; ``mode``: chi, r and q; ``predicted`` (3,): the relative
    error of naive delayed correlations from chi, r and q, from ``linear_response``, which takes the variance and the
    couplings of every row for itself, and from ``spread_delayed``, which averages the response too.
    """
    with enable_x64(True):
        J, x = fidelity.system(case)
        m, means = _settled(J, x, case.beta, exact_gain), fidelity.spread_means(J, x, beta=case.beta, updates=_UPDATES)
        naive = independent_correlations(J, m, case.beta)
        closed = naive + _linear_response(J, m, case.beta)
        averaged = _spread_delayed(J, x, means, case.beta)[1]
        key = seeded(case)
        couplings, fields, beta = (jnp.asarray(a, jnp.float32) for a in (J, x, case.beta))
        found = fidelity.sampled_halves(
            key, couplings, fields, beta, case.replicas, case.steps, transient=30, delayed=True
        )
        halves = [jnp.asarray(part, float) for part in found]
        own, D = (np.asarray(estimate(*halves)) for estimate in (fidelity.own_means_apart, fidelity.delayed_estimate))
    chi, r, q = mean_field.collective_mode(J, m, beta=case.beta)
    predicted = [np.linalg.norm(theory - naive) / np.linalg.norm(theory) for theory in (closed, averaged)]
    return {
        "delayed": np.array([jackknife(squared_error(theory), D) for theory in (naive, closed, averaged)]),
        "own_means": np.array(jackknife(squared_error(naive), own)),
        "mode": np.array([chi, r, q]),
        "predicted": np.array([r / np.sqrt(q + 2 * r + r**2), *predicted]),
    }


def compute(out: Path, quick: bool, **options: Any) -> None:
    """Measure every case, see ``records.measure``; ``quick`` takes a small one of each kind."""
    chosen: tuple[Any, ...] = cells(), noises(), draws()
    if quick:
        small: dict[str, Any] = {"num_sites": 6, "dim": 6}
        chosen = (
            [chosen[0][50]._replace(replicas=8, steps=4, transient=2, **small)],
            [chosen[1][0]._replace(runs=32, steps=3, transient=1, **small)],
            [chosen[2][-1]._replace(replicas=16, steps=8, **small)],
        )
    kinds = zip(("cell", "noise", "draw"), zip((measure, gains, tried), chosen, strict=True), strict=True)
    records.measure(out, "nonequilibrium-calibration", _ARTIFACT, dict(kinds), **options)


class Record(NamedTuple):
    """The rows of the record, each a case with what was measured."""

    cells: list[tuple[Cell, dict[str, np.ndarray]]]
    noises: list[tuple[Noise, dict[str, np.ndarray]]]
    draws: list[tuple[Case, dict[str, np.ndarray]]]


def record() -> Record:
    """The book's record; NaN where a theory found no steady state.

    >>> [case for case, _ in record().cells] == cells()  # exact
    True
    """
    return Record(*records.measured("experiments.vector", _ARTIFACT, cell=Cell, noise=Noise, draw=Case))


def root(squared: np.ndarray) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """sqrt of a square (..., 2) that has a standard error, with its own; NaN where it is not two of them above zero.

    Raises ``ValueError`` for another shape, and for standard errors below zero.

    >>> [round(float(part), 6) for part in root(np.array([0.04, 0.004]))]
    [0.2, 0.01]
    """
    known = validate.known_numbers(squared, "squared", finite=False)
    if known.ndim == 0 or known.shape[-1] != 2:
        raise ValueError(f"squared: expected shape (..., 2), got shape {known.shape}")
    value, error = np.moveaxis(known, -1, 0)
    validate.require(lambda e: ~(e < 0), error, "squared", "standard errors >= 0")
    seen = value > 2 * error
    size = np.sqrt(np.where(seen, value, np.nan))
    return np.asarray(size), np.asarray(error / (2 * size))


def table(
    rows: Sequence[tuple[Cell, dict[str, np.ndarray]]], dim: int, quantity: str, place: int | None = None
) -> Float[np.ndarray, "betas drives *values"]:
    """One quantity of all cells of the map with ``dim`` components, in the order of ``BETAS`` and ``DRIVES``.

    ``place`` chooses a theory or a share by its place; without it all are returned. NaN where there is no such cell.
    """
    validate.choice(dim, DIMS, "dim")
    by_place = {(c.beta, c.u): found[quantity] for c, found in rows if c.dim == dim and c.num_sites == 32}
    values = [[by_place[beta, u] for u in DRIVES] for beta in BETAS]
    chosen = np.array(values)
    return chosen if place is None else chosen[:, :, place]


def over_prediction(
    rows: Sequence[tuple[Case, dict[str, np.ndarray]]],
    beta: float,
    num_sites: int,
    *,
    linear: bool = False,
    averaged: bool = False,
) -> Float[np.ndarray, " draws"]:
    """Measured over predicted relative error of naive delayed correlations, every draw with logits of deviation 1.

    The prediction is r / sqrt(q + 2 r + r^2), that of ``linear_response`` if ``linear``, or that of ``spread_delayed``
    if ``averaged``.
    """
    wanted = (beta, 1.0, False, num_sites)
    chosen = [f for c, f in rows if (c.beta, c.scale, c.causal, c.num_sites) == wanted]
    return np.array([np.sqrt(f["delayed"][0, 0]) / f["predicted"][2 if averaged else int(linear)] for f in chosen])
