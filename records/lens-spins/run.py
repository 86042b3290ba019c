"""Every head of two trained networks as vector spins: what the closure and its rivals foresee, and sampled spins.

``spins.json.gz`` has all heads at three betas, ``order.json.gz`` six heads of the encoder with other numbers of
components. Both were made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then
``python -m experiments.lens_record --network spins --out FOLDER --plan book/plan-of-the-lens.md``, and the same with
``--network order``, in a few minutes each, with the weights as ``records/lens/plan.md`` says. This script measures some
heads of a small untrained encoder, or with ``--brief`` the same with one number of components.
"""

import time

import jax
import numpy as np

from experiments import encoder, records
from experiments.lens_record import networks, spins
from spinbook.precision import enable_x64

BETAS, DIMS = (1.0, 4.0), (4, 8)
HEADS = ((1, 3), (2, 9))
"""Layer and head, counted from one."""

if __name__ == "__main__":
    given, begin = records.arguments(__doc__), time.perf_counter()
    # The first is the size of the heads themselves, for which the functions are compiled already.
    dims = DIMS[:1] if given.brief else DIMS
    sizes = spins.Sizes(replicas=8, steps=6, transient=2)
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        traces = encoder.run(np.arange(12), networks.small())
    heads = {(k + 1, h + 1): spins.head(t.attention[h], t.values[h]) for k, t in enumerate(traces) for h in range(12)}
    known = {"format": 1, "plan": None, "sizes": sizes._asdict(), "complete": False}
    with enable_x64(True):
        rows = [[spins.measure(jax.random.key(0), *heads[place], beta, sizes) for place in HEADS] for beta in BETAS]
        left = [spins.order(*heads[place], 2.0, dims, sizes, seed=0) for place in HEADS]
    both = {name: records.numbers([[head[name] for head in row] for row in rows], 4) for name in rows[0][0]}
    body = {"betas": list(BETAS), "networks": {"encoder": both}}
    records.write(given.out / "spins.json.gz", known | body | records.circumstances(begin))
    body = {"dims": list(dims), "heads": [list(place) for place in HEADS], "left": records.numbers(left, 4)}
    records.write(given.out / "order.json.gz", known | body | records.circumstances(begin))
