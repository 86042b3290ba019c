"""Delayed correlations and entropy production of mean-field theory against sampled spins: 105 places on the map of Bal
(2026), the noise of two estimators at five of them, and 135 draws of the prediction from one shared fluctuation.

The record was made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then ``python -m
experiments run nonequilibrium-calibration --out FOLDER``, ten minutes on one core. This script measures the same
places and draws, or with ``--brief`` a small one of each. The rows of kind "noise" are left to the tag.
"""

from hashlib import sha256

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from experiments import records
from experiments.vector import calibration, fidelity
from experiments.vector.calibration import BETAS, DIMS, DRIVES, MEANS, THEORIES, Cell, settled, theories
from experiments.vector.fidelity import Case, independent_correlations, jackknife, squared_error
from spinbook import sphere
from spinbook.precision import enable_x64
from spinbook.vector import mean_field

REPLICAS = {3: (256, 200), 16: (256, 100), 64: (64, 100), 128: (64, 60)}


def cells():
    """The map, then five draws of (u, beta) = (1, 1) with 64 sites and 128 components."""
    sizes = [dict(zip(("replicas", "steps"), REPLICAS[dim], strict=True)) for dim in DIMS]
    found = [Cell(u, beta, d, **size) for d, size in zip(DIMS, sizes, strict=True) for beta in BETAS for u in DRIVES]
    return found + [Cell(1.0, 1.0, 128, num_sites=64, draw=draw, replicas=64, steps=60) for draw in range(5)]


def draws():
    """Twenty draws at each of six settings, and five at each of three where the prediction was seen to fail."""
    settings = [(beta, 1.0, False, num_sites, 20) for beta in (1.0, 2.0, 4.0) for num_sites in (32, 128)]
    settings += [(2.0, 2.0, False, 64, 5), (2.0, 4.0, False, 64, 5), (2.0, 1.0, True, 64, 5)]
    return [Case("collective", *case, 32, k, replicas=32, steps=50) for *case, count in settings for k in range(count)]


def system(cell):
    """The same softmax at all places of one draw; fields u R / beta long, in the same directions for one dimension."""
    N, D = cell.num_sites, cell.dim
    J = scipy.special.softmax(np.random.default_rng([N, cell.draw]).normal(size=(N, N)), axis=1)
    directions = np.random.default_rng([N, D, cell.draw]).normal(size=(N, D))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return J, cell.u / cell.beta * sphere.radius(D) * directions


def seeded(case):
    """The random key of a case, from all that it says."""
    return jax.random.key(int.from_bytes(sha256(repr(case).encode()).digest()[:4], "big"))


def floor(values):
    """The standard error of the average of both halves, (2, groups, ...), over its length."""
    scatter = np.sum(np.var(values, axis=1, ddof=1)) / (4 * values.shape[1])
    return np.sqrt(scatter) / np.linalg.norm(values.mean((0, 1)))


def mode(J, m, beta):
    """chi, r and q of one shared fluctuation, and the error of naive delayed correlations that they predict."""
    chi, r, q = mean_field.collective_mode(J, m, beta=beta)
    return np.array([chi, r, q]), r / np.sqrt(q + 2 * r + r**2)


def measure(cell):
    """Errors of means, delayed correlations and sigma of a cell, with standard errors; the noise; the predictions."""
    with enable_x64(True):
        (J, x), beta = system(cell), cell.beta
        sizes = {"replicas": cell.replicas, "steps": cell.steps, "transient": cell.transient}
        m, D = (np.asarray(a, float) for a in fidelity.sampled(seeded(cell), J, x, beta=beta, delayed=True, **sizes))
        means, delayed = theories(J, x, beta)
        K = J - J.T
        flow, naive, closed = beta * np.sum(K * D, axis=(-2, -1)), delayed["naive"], delayed["linear"]
        of_mode, from_mode = mode(J, means["naive"], beta)

    def shares(a, b):
        # Of the squared error: the symmetric part, along the uniform direction, along J - J^T.
        first, second = naive - a, naive - b
        uniform, odd = first.sum() * second.sum() / len(J) ** 2, np.sum(K * first) * np.sum(K * second) / np.sum(K**2)
        symmetric = np.sum((first + first.T) * (second + second.T)) / 4
        return np.array([symmetric, uniform, odd]) / np.sum(first * second)

    of_sigma = [lambda a, b, D=D: beta * np.sum(K * D) / np.mean([a, b]) - 1 for D in map(delayed.get, THEORIES)]
    from_linear = np.linalg.norm(closed - naive) / np.linalg.norm(closed)
    return {
        "means": np.array([jackknife(squared_error(means[name]), m) for name in MEANS]),
        "delayed": np.array([jackknife(squared_error(delayed[name]), D) for name in THEORIES]),
        "sigma": np.array([jackknife(produced, flow) for produced in of_sigma]),
        "shares": np.transpose(jackknife(shares, D)),
        "floor": np.array([floor(m), floor(D), floor(flow)]),
        "forgotten": np.array(fidelity.forgotten(m)),
        "mode": of_mode,
        "predicted": np.array([from_mode, from_linear, np.sum(K * naive) / np.sum(K * closed) - 1]),
    }


def tried(case):
    """The relative error of naive delayed correlations in a draw, and what was predicted for it."""
    with enable_x64(True):
        (J, x), beta = fidelity.system(case), case.beta
        m, means = settled(J, x, beta), fidelity.spread_means(J, x, beta=beta, updates=1000)
        naive = independent_correlations(J, m, beta)
        closed = naive + calibration.linear_response(J, m, beta)
        averaged = calibration.spread_delayed(J, x, means, beta)[1]
        single = [jnp.asarray(a, jnp.float32) for a in (J, x, beta)]
        found = fidelity.sampled_halves(seeded(case), *single, case.replicas, case.steps, transient=30, delayed=True)
        halves = [jnp.asarray(part, float) for part in found]
        own, D = (np.asarray(estimate(*halves)) for estimate in (fidelity.own_means_apart, fidelity.delayed_estimate))
        of_mode, from_mode = mode(J, m, beta)
    predicted = [np.linalg.norm(theory - naive) / np.linalg.norm(theory) for theory in (closed, averaged)]
    return {
        "delayed": np.array([jackknife(squared_error(theory), D) for theory in (naive, closed, averaged)]),
        "own_means": np.array(jackknife(squared_error(naive), own)),
        "mode": of_mode,
        "predicted": np.array([from_mode, *predicted]),
    }


if __name__ == "__main__":
    given = records.arguments(__doc__)
    chosen = [cells(), draws()]
    if given.brief:
        # The sizes of records/shapes: the tests run all records in one process, where one compilation does for both.
        cell = chosen[0][50]._replace(num_sites=6, dim=6, replicas=8, steps=4, transient=40)
        chosen = [[cell], [chosen[1][-1]._replace(num_sites=6, dim=6, replicas=8, steps=4)]]
    kinds = {"cell": (measure, chosen[0]), "draw": (tried, chosen[1])}
    content = {"command": "records/calibration/run.py", "rows": records.measured(kinds)}
    records.write(given.out / "calibration.json.gz", content)
