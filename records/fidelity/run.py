"""Mean-field means against sampled spins with softmax couplings: 48 cases by row of attention, 80 of correlations.

The record was made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then ``python -m
experiments run spin-transformers-fidelity --out FOLDER``, six minutes on one core. This script measures the cases with
random logits, or with ``--brief`` two small ones, and writes the library's table ``attention-rows`` from the record.
"""

import jax
import numpy as np
import pandas as pd

import spinbook.records
from experiments import records
from experiments.vector import calibration, fidelity
from experiments.vector.fidelity import BY_ROW, STEPS, THEORIES, Case, jackknife, squared_error
from spinbook import sphere
from spinbook.precision import enable_x64
from spinbook.vector import mean_field


def cases():
    """Every case of the record with random logits; eight more have those of a trained module."""
    found = []
    for causal in (False, True):
        for beta in (0.5, 1.0, 2.0, 4.0):
            scales = (1 / 3, 1.0, float(np.sqrt(128)) / 6, 4.0)
            found += [Case("rows", beta, scale, causal, 64, 128, 0) for scale in scales]
            found.append(Case("rows", beta, 1.0, causal, 64, 128, 0, field=0.25))
    for beta, scale in ((1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (2.0, 4.0)):
        for num_sites in (32, 64, 128, 256):
            options = {"replicas": 32, "steps": 50}
            found += [Case("collective", beta, scale, False, num_sites, 32, draw, **options) for draw in range(5)]
    return found


def measure(case):
    """By row: errors of ``THEORIES`` over the effect of attention, in squares. Collective: of delayed correlations."""
    J, x = fidelity.system(case)
    with enable_x64(True):
        key = jax.random.key(sum(ord(c) * 31**k for k, c in enumerate(repr(case))) % 2**31)
        sizes = {"beta": case.beta, "replicas": case.replicas, "steps": case.steps, "transient": 30}
        halves = fidelity.sampled(key, J, x, delayed=case.kind == "collective", **sizes)
        means = np.asarray(halves.means, float)
        found = {name: fidelity.steady_means(J, x, case.beta, step) for name, step in STEPS.items()}
        naive, spread = found["naive"], fidelity.spread_means(J, x, beta=case.beta)
        alone = np.asarray(sphere.magnetization(x, beta=case.beta))
        update = np.asarray(sphere.magnetization(x + J @ alone, beta=case.beta))
        found |= {"spread": spread, "phi(x)": alone, "one update": update}
        if case.kind == "rows":
            scale = np.sum((naive - alone) ** 2, axis=1)
            products = {k: lambda a, b, m=m: np.sum((m - a) * (m - b), axis=1) for k, m in found.items()}
            shares = [lambda a, b, k=k: products[k](a, b).sum() / scale.sum() for k in THEORIES]
            return {
                "squared": np.array([jackknife(share, means) for share in shares]),
                "n_eff": 1 / np.sum(J**2, axis=1),
                "by_row": np.array([products[k](*means.mean(1)) / scale for k in BY_ROW]),
                "size": np.sqrt(scale.mean()) / sphere.radius(case.dim),
                "forgotten": fidelity.forgotten(means),
            }
        # A C with C = C_0 + A C A^T: what independent spins of equal variance have, and what answers add to it.
        v = calibration.variances(naive)
        linear = case.beta * J * np.outer(v, case.dim * v) + calibration.linear_response(J, naive, case.beta)
        independent = fidelity.independent_correlations(J, naive, case.beta)
        whole = len(J) * sphere.squared_radius(case.dim)
        errors = [lambda a, b, m=m: np.sum((m - a) * (m - b)) / whole for m in (naive, found["TAP"], spread)]
        mode = np.array(mean_field.collective_mode(J, naive, beta=case.beta))

    def uniform(a, b):
        return (independent - a).mean() * (independent - b).mean() * len(J) ** 2 / np.sum(a * b)

    theories = squared_error(independent), squared_error(linear), uniform
    return {
        "delayed": np.array([jackknife(f, np.asarray(halves.delayed, float)) for f in theories]),
        "means": np.array([jackknife(error, means) for error in errors]),
        "mode": mode,
    }


def table():
    """The rows of the record as the table ``attention-rows`` of the library; its head says what columns are."""
    frames = []
    for case, found in fidelity.record():
        if case.kind == "rows" and case.field == 1:
            errors = dict(zip(("naive", "tap", "spread"), np.sqrt(np.maximum(found["by_row"], 0)), strict=True))
            known = {"beta": case.beta, "masked": int(case.causal), "trained": int(case.scale == 0)}
            rounded = {name: records.numbers(value, 2) for name, value in errors.items()}
            rounded["n_eff"] = records.numbers(found["n_eff"], 3)
            frames.append(pd.DataFrame(known | rounded, dtype=float))
    whole = pd.concat(frames, ignore_index=True).astype({"masked": int, "trained": int})
    return whole[list(spinbook.records.table("attention-rows"))]


if __name__ == "__main__":
    given = records.arguments(__doc__)
    chosen = cases()
    if given.brief:
        chosen = [case._replace(num_sites=6, dim=6, replicas=8, steps=4) for case in (chosen[0], chosen[-1])]
    found = records.measured({"case": (measure, chosen)})
    records.write(given.out / "fidelity.json.gz", {"command": "records/fidelity/run.py", "rows": found})
    records.tabulate("attention-rows", table(), spinbook.records.table("attention-rows").attrs["about"], given.out)
