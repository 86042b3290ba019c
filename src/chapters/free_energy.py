"""An unguarded solver, exact magnets and trainings for the audit of approximate free energies."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import product

import numpy as np
import scipy
import torch
from scipy.special import gammaln, ive
from torch import Tensor, nn

from spinbook.free_energy import QueryKeyCouplings, VectorSpinModel, saddle, sampling
from spinbook.free_energy.couplings import sample

DOUBLE = torch.float64


def _inverse(matrix: np.ndarray) -> np.ndarray | None:
    """The inverse, or None for a matrix that is not finite or singular to rounding."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None
    condition = np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1)
    return inverse if condition < 1e15 else None


def newton(
    couplings: np.ndarray,
    fields: np.ndarray,
    hessian: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    steps: int = 100,
) -> tuple[np.ndarray, str]:
    """Full steps -(d^2 phi)^-1 d phi at beta = 1, without any guard: where t ends, and how.

    ``start`` has one entry for all sites or one for each; ``hessian`` of V^-1 and H H^T is summed over the sites for
    one. The end is "arrived", at the minimum; "elsewhere", at rest where V is not positive definite; or "lost", with
    NaN for t: numbers that are not finite, a matrix that is singular to rounding, or no rest.
    """
    t, G = np.array(start, dtype=float), fields @ fields.T
    lost = np.full_like(t, np.nan), "lost"
    with np.errstate(all="ignore"):
        for _ in range(steps):
            V = np.diag(np.broadcast_to(t, len(couplings))) - couplings
            if (P := _inverse(V)) is None:
                return lost
            slope, curvature = 1 - np.diag(P) / 2 - np.diag(P @ G @ P) / 4, hessian(P, G)
            if len(t) == 1:
                slope, curvature = slope.sum()[None], curvature.sum()[None, None]
            if np.abs(slope).max() < 1e-10:
                return t, "arrived" if np.linalg.eigvalsh(V)[0] > 0 else "elsewhere"
            if (back := _inverse(curvature)) is None:
                return lost
            t = t - back @ slope
    return lost


def _log_mean(k: np.ndarray, dim: int) -> np.ndarray:
    """ln <exp(k u)> over one component u of a random unit vector."""
    k = np.maximum(k, 1e-9)
    return np.asarray(gammaln(dim / 2) + (dim / 2 - 1) * np.log(2 / k) + np.log(ive(dim / 2 - 1, k)) + k)


_MAGNET = 0.4, 0.3
"""The coupling j and the field h of the magnet below."""


def complete_magnet(num_spins: int, dim: int) -> float:
    """f per spin, exactly, of a magnet with all pairs coupled by j / N in a uniform field of length h, at beta = 1.

    The square of the total spin is split by a Gaussian integral over one vector, of which radius and angle remain.
    """
    j, h = _MAGNET
    a, angle = dim * j / num_spins, np.linspace(0, np.pi, 301)[:, None]
    r = np.linspace(1e-6, 6 * dim * j, 1501)
    felt = np.sqrt(r**2 + (dim * h) ** 2 + 2 * r * dim * h * np.cos(angle))
    exponent = num_spins * _log_mean(felt, dim) - r**2 / (4 * a) + (dim - 1) * np.log(r)
    exponent += (dim - 2) * np.log(np.sin(angle) + 1e-300)
    top = exponent.max()
    inner = scipy.integrate.simpson(np.exp(exponent - top), x=r, axis=1)
    total = math.log(scipy.integrate.simpson(inner, x=angle[:, 0])) + top
    total += math.log(2) + (dim - 1) / 2 * math.log(math.pi) - gammaln((dim - 1) / 2)
    total -= dim / 2 * math.log(4 * math.pi * a) + dim * j
    return float(-total / (dim * num_spins))


def at_saddle(num_spins: int, dim: int) -> float:
    """f per spin of the same magnet by the saddle."""
    j, h = _MAGNET
    J = torch.full((num_spins, num_spins), j / num_spins, dtype=DOUBLE).fill_diagonal_(0)
    fields = h * torch.eye(1, dim, dtype=DOUBLE).expand(num_spins, dim)
    return float(VectorSpinModel(num_spins, dim, couplings=J).free_energy(fields)) / num_spins


def many_spins(dim: int) -> float:
    """f per spin of the same magnet for infinitely many spins: one spin in the mean of the others."""
    j, h = _MAGNET

    def at(m: float) -> float:
        return float(j * m**2 - _log_mean(np.array(dim * (h + 2 * j * m)), dim) / dim)

    return float(scipy.optimize.minimize_scalar(at, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).fun)


def ring(degree: int, fixed: str, rng: np.random.Generator) -> np.ndarray:
    """Twelve spins coupled to their ``degree`` nearest on a ring, with a ``fixed`` "sum" or, with signs, "squares"."""
    J, i = np.zeros((12, 12)), np.arange(12)
    strength = 0.3 / (degree if fixed == "sum" else degree**0.5)
    for k in range(1, degree // 2 + 1):
        signs = 1.0 if fixed == "sum" else rng.choice([-1.0, 1.0], 12)
        J[i, (i + k) % 12] = strength * signs
    return J + J.T


def sparse_over_dense(fixed: str, graphs: int, rng: np.random.Generator) -> tuple[float, float]:
    """Error of naive mean field on rings of degree 2 over that of degree 10, and its standard error over graphs.

    Root mean square over twelve Ising spins in normal fields of spread one half, against enumeration; the ratio is that
    of geometric means. ``fixed`` is as for ``ring``.
    """
    states, logs = np.array(list(product([1.0, -1.0], repeat=12))), np.empty((2, graphs))
    for k, degree in enumerate((2, 10)):
        for graph in range(graphs):
            J, h = ring(degree, fixed, rng), 0.5 * rng.normal(size=12)
            weight = np.exp(((states @ J) * states).sum(1) / 2 + states @ h)
            m = np.tanh(h)
            for _ in range(200):
                m = (m + np.tanh(h + J @ m)) / 2
            logs[k, graph] = np.log(np.mean((m - weight @ states / weight.sum()) ** 2)) / 2
    ratio = math.exp(logs[0].mean() - logs[1].mean())
    return ratio, ratio * float(np.hypot(*logs.std(axis=1, ddof=1))) / graphs**0.5


def coupling_energies(num_spins: int, dim: int) -> list[float]:
    """Root mean square of sum_ij J_ij sigma_i . sigma_j over thirty draws of J: spins at random, aligned, and relaxed.

    Relaxed spins follow their local field a hundred times, for the first three draws only.
    """
    generator = torch.Generator().manual_seed(0)
    squares: tuple[list[Tensor], ...] = ([], [], [])
    push = 0.3 * (2 / dim) ** 0.5
    for k in range(30):
        J = sample(num_spins, dim, generator=generator, dtype=DOUBLE)
        s = sampling.uniform(num_spins, dim, generator=generator, dtype=DOUBLE)
        squares[0].append((s * (J @ s)).sum() ** 2)
        squares[1].append(J.sum() ** 2)
        if k < 3:
            for _ in range(100):
                s = nn.functional.normalize(J @ s + push * s, dim=-1)
            squares[2].append((s * (J @ s)).sum() ** 2)
    return [dim * float(torch.stack(each).mean() ** 0.5) for each in squares]


def by_differences(couplings: Tensor, fields: Tensor, way: Tensor) -> float:
    """d sum |m|^2 along ``way``, of the fourth order in the step: the saddle is solved anew at four points."""
    (num_spins, dim), step = fields.shape, 1e-4
    spins = VectorSpinModel(num_spins, dim, 1.0, couplings)

    def loss(x: float) -> float:
        return float(spins.magnetizations(fields + x * way).square().sum())

    return (8 * (loss(step) - loss(-step)) - loss(2 * step) + loss(-2 * step)) / (12 * step)


def seconds(couplings: Tensor, fields: Tensor, *, repeats: int = 2) -> float:
    """Processor seconds of a start and one Newton step of the library at beta = 1, the best of a few runs."""
    best = math.inf
    for _ in range(repeats):
        begin = time.process_time()
        saddle.minimum(couplings, fields @ fields.mT, torch.tensor(1.0, dtype=couplings.dtype), max_steps=1)
        best = min(best, time.process_time() - begin)
    return best


def query_key(num_spins: int, dim: int, scale: float = 1.0, seed: int = 0) -> QueryKeyCouplings:
    """Couplings computed from inputs, with default weights times ``scale``."""
    torch.manual_seed(seed)
    maps = QueryKeyCouplings(num_spins, dim).double()
    with torch.no_grad():
        for weight in maps.parameters():
            weight.mul_(scale)
    return maps


@torch.no_grad()
def channel_terms(num_spins: int, dim: int, seed: int, tokens: int) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs and their channel-mixing terms, (tokens, dim) each for about so many tokens, and W = W_Q^T W_K."""
    maps = query_key(num_spins, dim, 0.5, seed)
    H = torch.randn(max(tokens // num_spins, 2), num_spins, dim, dtype=DOUBLE) / dim**0.5
    terms = maps.channel_mixing(H, VectorSpinModel(num_spins, dim, 1.0, maps).correlations(H))
    return H.reshape(-1, dim), terms.reshape(-1, dim), maps.to_queries.weight.T @ maps.to_keys.weight


def learned(num_spins: int, dim: int, tokens: int, updates: int, *, shuffled: bool = False, seed: int = 0) -> float:
    """Share of the variance of channel-mixing terms that a trained feed-forward network explains on new inputs.

    One hidden layer of four times the width; ``shuffled`` gives each term the input of another token.
    """
    H, terms, _ = channel_terms(num_spins, dim, seed, tokens)
    half, terms, seen = len(H) // 2, terms / terms.square().mean().sqrt(), H * dim**0.5
    if shuffled:
        seen = seen[torch.randperm(len(seen))]
    network = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)).double()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(updates):
        some = torch.randint(half, (256,))
        optimizer.zero_grad()
        (network(seen[some]) - terms[some]).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        left = (network(seen[half:]) - terms[half:]).square().mean()
    return float(1 - left / terms[half:].square().mean())
