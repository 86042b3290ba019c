"""Sampled order of kinetic vector spins beside that of naive mean field: the table "phase-diagram" of the library.

``python -m experiments.vector.phases`` samples all systems of book/plan-of-the-phase-diagram.md, some minutes on one
core, and writes the table.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import scipy.special
from jaxtyping import Array

from experiments import designs, records
from spinbook import sphere, validate
from spinbook.annotations import Float
from spinbook.vector import phases, stochastic

__all__ = ["ABOUT", "Case", "cases", "couplings", "fields", "measure"]

ABOUT = (
    "A row is one system of 800 spins with 64 components, all aligned at first: rows of couplings that sum to one, and "
    "inputs of length x R that sum to zero. couplings: normal numbers around 1/N; equal weights on k tokens, chosen at "
    "random (reads) or so that k read each token (regular); a softmax of independent logits. g^2 is the sum of a row's "
    "squares, less 1/N. order is |mean spin|^2 / R^2, averaged over 400 steps after 200; naive, that of the naive "
    "equation with the exact response, iterated. Made by experiments.vector.phases, by the plan of the phase diagram."
)
_SERIES = ((0.0, 4.0), (0.3, 3.0), (0.5, 4.5), (0.6, 8.0), (0.7, 16.0))
_COLD = 8.0
_ORDERS = (0.4, 0.3, 0.25, 0.2, 0.15, 0.1)


@designs.record(couplings=("normal", "reads", "regular", "softmax"), scale=partial(validate.number, least=0))
class Case(NamedTuple):
    """``scale``: g of normal couplings, the number of tokens that a row reads, the standard deviation of the logits.

    ``field`` is x.
    """

    couplings: str
    scale: float
    beta: float
    field: float


def couplings(key: Array, num_sites: int, *, kind: str, scale: float) -> Float[np.ndarray, "N N"]:
    """1/N + g z_ij / sqrt(N) with rows and columns of z that sum to zero; equal weights on some; or a softmax.

    In ``kind`` "regular" as many rows read each site, which are the sum of permutations.

    >>> couplings(jax.random.key(0), 5, kind="reads", scale=2).sum(axis=1).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    N = validate.count(num_sites, "num_sites", minimum=2)
    z = np.asarray(jax.random.normal(validate.key(key), (N, N), jnp.float32), float)
    if kind == "softmax":
        found: np.ndarray = scipy.special.softmax(scale * z, axis=1)
        return found
    if kind == "reads":
        return (z.argsort(axis=1).argsort(axis=1) < scale) / scale
    if kind == "regular":
        orders = z[: int(scale)].argsort(axis=1)
        return (orders[:, :, None] == np.arange(N)).mean(axis=0)
    if kind != "normal":
        raise ValueError(f"kind: expected normal, reads, regular or softmax, got {kind!r}")
    z = z - z.mean(axis=0)
    z -= z.mean(axis=1, keepdims=True)
    return 1 / N + scale * z / np.sqrt(N)


def fields(key: Array, num_sites: int, dim: int, *, length: float) -> Float[np.ndarray, "N D"]:
    """Vectors of length ``length`` times R in random directions, turned a little so that they sum to zero.

    >>> fields(jax.random.key(0), 50, 8, length=0.5).sum(axis=0).round(6).tolist()[:2]
    [0.0, 0.0]
    """
    N, D = validate.count(num_sites, "num_sites", minimum=2), validate.count(dim, "dim", minimum=3)
    u = np.asarray(jax.random.normal(validate.key(key), (N, D), jnp.float32), float)
    for _ in range(100):
        u = u - u.mean(axis=0)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
    return length * sphere.radius(D) * u


def _lengths(g: float, beta: float) -> list[float]:
    """x where the prediction has given orders, at its border, and half and all of the way to the naive border."""
    room = 1 - 2 / beta - g**2
    squares = [room - order * (1 - g**2) for order in _ORDERS]
    naive = float(phases.naive_border(beta, coupling_mean=1.0, coupling_std=g)) ** 2
    squares += [room, (room + naive) / 2, naive] if g else [room, room + 0.05, room + 0.1]
    return [round(float(np.sqrt(square)), 4) for square in squares if square >= 0]


def cases() -> list[Case]:
    """Every system of the plan.

    >>> len(cases()), cases()[0]._fields
    (87, ('couplings', 'scale', 'beta', 'field'))
    """
    found = [Case("normal", g, beta, x) for g, beta in _SERIES for x in _lengths(g, beta)]
    for kind in ("reads", "regular"):
        found += [Case(kind, k, _COLD, x) for k in (4, 10) for x in _lengths(k**-0.5, _COLD)]
    full = [("softmax", width, beta, 1.0) for width in (1.0, 3.0) for beta in (2.0, _COLD, 64.0)]
    return [*found, *(Case(*each) for each in full), *(Case("softmax", width, _COLD, 0.25) for width in (1.0, 3.0))]


def _squared(spins: Array) -> Array:
    return jnp.sum(jnp.mean(spins, axis=-2) ** 2, axis=-1) / sphere.squared_radius(spins.shape[-1])


@jax.jit
def _iterated(start: Array, J: Array, x: Array, beta: Array) -> Array:
    def update(_: int, m: Array) -> Array:
        return sphere.exact(x + J @ m, beta)

    return jax.lax.fori_loop(0, 400, update, start)


def measure(case: Case, *, num_sites: int = 800, dim: int = 64, steps: int = 600) -> dict[str, Any]:
    """A row of the table: what ``ABOUT`` says of a system.

    >>> found = measure(Case("normal", 0.3, 8.0, 0.1), num_sites=40, dim=8, steps=30)
    >>> found["order"] > 0.3
    True
    """
    seed = jax.random.fold_in(jax.random.key(61), sum(ord(c) * 31**k for k, c in enumerate(repr(case))) % 2**31)
    keys = jax.random.split(seed, 3)
    J = couplings(keys[0], num_sites, kind=case.couplings, scale=case.scale)
    x = fields(keys[1], num_sites, dim, length=case.field)
    start = np.zeros_like(x)
    start[:, 0] = sphere.radius(dim)
    single = [np.asarray(a, np.float32) for a in (start, J, x)]
    beta = np.float32(case.beta)
    run = stochastic.simulate(keys[2], *single, beta=beta, steps=steps, transient=steps // 3, observable=_squared)
    order = np.asarray(run.observed, float)[steps // 3 :]
    g = np.sqrt(max(np.mean(np.sum(J**2, axis=1)) - 1 / num_sites, 0))
    naive = float(_squared(_iterated(*(jnp.asarray(a) for a in single), beta)))
    known = {"couplings": case.couplings, "beta": case.beta, "g": round(float(g), 4), "x": case.field}
    return known | {"order": round(float(order.mean()), 5), "naive": round(naive, 5)}


def _tabulate() -> None:
    found = []
    for case in cases():
        found.append(measure(case))
        print(found[-1], flush=True)
    records.tabulate("phase-diagram", pd.DataFrame(found), ABOUT)


if __name__ == "__main__":
    _tabulate()
