"""Delayed correlations of attention of many shapes, sampled and by theory: two draws or more of each, at three betas.

The record was made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then ``python -m
experiments run attention-shapes --out FOLDER``, ten minutes on one core. The shapes, the ranges and the draws were
committed, with the declarations of the claims, before the sweep ran; trials before that had other draws and heads. This
script measures the same cases, or with ``--brief`` two small ones.
"""

from hashlib import sha256

import jax
import numpy as np

from experiments import records
from experiments.vector import fidelity
from experiments.vector.fidelity import jackknife, squared_error
from experiments.vector.shapes import SHAPES, Case, system
from spinbook import lens
from spinbook.precision import enable_x64
from spinbook.vector import closure


def cases():
    """Two draws of each shape at beta = 1, 2 and 4, and four of learned attention, which has 64 tokens."""
    draws = {shape: range(100, 104 if shape.startswith("learned") else 102) for shape in SHAPES}
    return [Case(shape, beta, draw) for shape in SHAPES for beta in (1.0, 2.0, 4.0) for draw in draws[shape]]


def measure(case):
    """What sampling says of a case, and what was foreseen; NaN where no state was found.

    ``delayed``: the squared relative error of naive delayed correlations, with its standard error; ``left``: the same
    of the closure's; ``means``: the squared error of the closure's means over that of naive ones; ``predicted``: the
    relative error by ``LAWS``; ``uniform``: the share of the squared error along the uniform matrix; ``attention``: P,
    the second eigenvalue and the mean number of attended tokens; ``forgotten``: the squared distance of the two halves
    over what their scatter lets expect.
    """
    with enable_x64(True):
        J, x = system(case)
        key = jax.random.key(int.from_bytes(sha256(repr(case).encode()).digest()[:4], "big"))
        sizes = {"beta": case.beta, "replicas": case.replicas, "steps": case.steps, "transient": 40}
        halves = fidelity.sampled(key, J, x, delayed=True, **sizes)
        means, delayed = (np.asarray(part, float) for part in halves)
        m = fidelity.steady_means(J, x, case.beta, fidelity.STEPS["naive"])
        naive = fidelity.independent_correlations(J, m, case.beta)
        law = lens.sink_law(J, m, beta=case.beta)
        found = closure.steady_state(J, x, beta=case.beta)
        lost = 0.0 if found.converged else np.nan
        closed, closed_means = (np.asarray(a) + lost for a in (found.delayed_correlations, found.magnetizations))

    def uniform(a, b):
        first, second = naive - a, naive - b
        return first.sum() * second.sum() / len(J) ** 2 / np.sum(first * second)

    def of_means(a, b):
        return np.sum((closed_means - a) * (closed_means - b)) / np.sum((m - a) * (m - b))

    foreseen = np.linalg.norm(closed - naive) / np.linalg.norm(closed)
    return {
        "delayed": np.array(jackknife(squared_error(naive), delayed)),
        "left": np.array(jackknife(squared_error(closed), delayed)),
        "means": np.array(jackknife(of_means, means)),
        "predicted": np.array([law.uniform, law.with_sinks, law.linear, foreseen]),
        "uniform": np.array(jackknife(uniform, delayed)),
        "attention": np.array([law.concentration, lens.second_eigenvalue(J), lens.attended(J)]),
        "forgotten": np.array(fidelity.forgotten(means)),
    }


if __name__ == "__main__":
    given = records.arguments(__doc__)
    chosen = cases()
    if given.brief:
        chosen = [case._replace(num_sites=6, dim=6, replicas=8, steps=4) for case in (chosen[0], chosen[50])]
    found = records.measured({"case": (measure, chosen)})
    records.write(given.out / "shapes.json.gz", {"command": "records/shapes/run.py", "rows": found})
