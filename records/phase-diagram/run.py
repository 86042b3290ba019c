"""Sampled order of kinetic vector spins beside that of naive mean field, by the plan of the phase diagram.

The record is the table ``phase-diagram`` of the library, made before, and to be remade at, the tag ``before-2.0``:
``git checkout before-2.0``, then ``python -m experiments.vector.phases``, some minutes on one core. This script samples
the same systems, or with ``--brief`` four small ones, and writes the table to the folder.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import scipy.special

import spinbook.records
from experiments import records
from spinbook import sphere, sweep
from spinbook.vector import phases, stochastic

SERIES = ((0.0, 4.0), (0.3, 3.0), (0.5, 4.5), (0.6, 8.0), (0.7, 16.0))
COLD = 8.0
ORDERS = (0.4, 0.3, 0.25, 0.2, 0.15, 0.1)


class Case(NamedTuple):
    """``scale``: g of normal couplings, the number of tokens that a row reads, the standard deviation of the logits."""

    couplings: str
    scale: float
    beta: float
    field: float


def couplings(key, N, kind, scale):
    """1/N + g z_ij / sqrt(N) with rows and columns of z that sum to zero; equal weights on some; or a softmax.

    In ``kind`` "regular" as many rows read each site, which are the sum of permutations.
    """
    z = np.asarray(jax.random.normal(key, (N, N), jnp.float32), float)
    if kind == "softmax":
        return scipy.special.softmax(scale * z, axis=1)
    if kind == "reads":
        return (z.argsort(axis=1).argsort(axis=1) < scale) / scale
    if kind == "regular":
        orders = z[: int(scale)].argsort(axis=1)
        return (orders[:, :, None] == np.arange(N)).mean(axis=0)
    z = z - z.mean(axis=0)
    z -= z.mean(axis=1, keepdims=True)
    return 1 / N + scale * z / np.sqrt(N)


def fields(key, N, D, length):
    """Vectors of length ``length`` times R in random directions, turned a little so that they sum to zero."""
    u = np.asarray(jax.random.normal(key, (N, D), jnp.float32), float)
    for _ in range(100):
        u = u - u.mean(axis=0)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
    return length * sphere.radius(D) * u


def lengths(g, beta):
    """x where the prediction has given orders, at its border, and half and all of the way to the naive border."""
    room = 1 - 2 / beta - g**2
    squares = [room - order * (1 - g**2) for order in ORDERS]
    naive = float(phases.border(beta, coupling_mean=1.0, coupling_std=g, naive=True)) ** 2
    squares += [room, (room + naive) / 2, naive] if g else [room, room + 0.05, room + 0.1]
    return [round(float(np.sqrt(square)), 4) for square in squares if square >= 0]


def cases():
    """Every system of the plan."""
    found = [Case("normal", g, beta, x) for g, beta in SERIES for x in lengths(g, beta)]
    for kind in ("reads", "regular"):
        found += [Case(kind, k, COLD, x) for k in (4, 10) for x in lengths(k**-0.5, COLD)]
    full = [("softmax", width, beta, 1.0) for width in (1.0, 3.0) for beta in (2.0, COLD, 64.0)]
    return [*found, *(Case(*each) for each in full), *(Case("softmax", width, COLD, 0.25) for width in (1.0, 3.0))]


def squared(spins):
    """|mean spin|^2 / R^2."""
    return jnp.sum(jnp.mean(spins, axis=-2) ** 2, axis=-1) / sphere.squared_radius(spins.shape[-1])


@jax.jit
def iterated(start, J, x, beta):
    """The naive equation, 400 times."""
    return jax.lax.fori_loop(0, 400, lambda _, m: sphere.exact(x + J @ m, beta), start)


def measure(case, num_sites=800, dim=64, steps=600):
    """A row of the table, with ``order`` averaged over the last two thirds of the steps."""
    seed = jax.random.fold_in(jax.random.key(61), sum(ord(c) * 31**k for k, c in enumerate(repr(case))) % 2**31)
    keys = jax.random.split(seed, 3)
    J = couplings(keys[0], num_sites, case.couplings, case.scale)
    x = fields(keys[1], num_sites, dim, case.field)
    start = np.zeros_like(x)
    start[:, 0] = sphere.radius(dim)
    single = [np.asarray(a, np.float32) for a in (start, J, x)]
    beta = np.float32(case.beta)
    run = stochastic.simulate(keys[2], *single, beta=beta, steps=steps, transient=steps // 3, observable=squared)
    order = np.asarray(run.observed, float)[steps // 3 :]
    g = np.sqrt(max(np.mean(np.sum(J**2, axis=1)) - 1 / num_sites, 0))
    return {"g": g, "order": order.mean(), "naive": squared(iterated(*(jnp.asarray(a) for a in single), beta))}


def of_small(case):
    """The same of few spins with few components."""
    return measure(case, num_sites=40, dim=8, steps=30)


if __name__ == "__main__":
    given = records.arguments(__doc__)
    chosen = cases()[::25] if given.brief else cases()
    found = dict(sweep.iterate(of_small if given.brief else measure, chosen))
    rows = []
    for k, case in enumerate(chosen):
        g, order, naive = (float(found[k][name]) for name in ("g", "order", "naive"))
        known = {"couplings": case.couplings, "beta": case.beta, "g": round(g, 4), "x": case.field}
        rows.append(known | {"order": round(order, 5), "naive": round(naive, 5)})
    about = spinbook.records.table("phase-diagram").attrs["about"]
    records.tabulate("phase-diagram", pd.DataFrame(rows), about, given.out)
