"""A stack trained on a text until attention pays, beside counting: the plan of depth.

The record was made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then ``python -m
experiments depth --regularised --out FOLDER --plan book/plan-of-depth.md``, a quarter of an hour on an accelerator; the
rows of the plan that were never run are there too. This script trains the two rows of the gate at the size
*regularised*, at the rates that the trials of the record chose; with ``--brief`` one small layer without attention on
the sample of the text. It counts on the same characters. What is done is kept in the folder, and not done again.
"""

import time
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from experiments import kneser_ney, records
from experiments.comparison.training import rate_profile
from experiments.comparison.transient import loss, made, train
from experiments.datasets import moby_dick
from spinbook import sweep
from spinbook.precision import enable_x64

SYMBOLS = len(moby_dick.ALPHABET)
RATES = {"vanilla": 1e-3, "identity mixer": 3e-3}
PLAN = records.of_book("depth")["design"]
BRIEF = PLAN | {"name": "brief", "depth": 1, "dim": 16, "num_heads": 2, "length": 8, "batch": 2, "updates": 8}
BRIEF |= {"look_every": 4, "seeds": (1,), "accelerator": False, "sample": True}


@cache
def text(sample):
    """Characters to learn from, to choose by and to be judged by: 18, 1 and 1 twentieths of the text in its order."""
    characters = moby_dick.encode(moby_dick.sample() if sample else moby_dick.load()).astype(np.int64)
    return np.split(characters, [len(characters) * part // 20 for part in (18, 19)])


def starts(sizes, held_out):
    """Of windows that overlap by half, in whole batches: what is scored is the second half of each."""
    found = np.arange(0, len(held_out) - sizes["length"], sizes["length"] // 2)
    return found[: len(found) // sizes["batch"] * sizes["batch"]].reshape(-1, sizes["batch"])


def counting(sizes):
    """Losses of counting on the characters that are scored, order by order, as long as the last is the best."""
    learnt, *held_out = text(sizes["sample"])
    # The first window has nothing before its second half but its first, and the last ends with its targets.
    first, found = sizes["length"] - sizes["length"] // 2, []
    while len(found) < first + 2 and (len(found) < 6 or found[-1] is min(found, key=lambda its: its["validation"])):
        order, losses = len(found) + 1, []
        model = kneser_ney.counted(learnt, order, num_symbols=SYMBOLS)
        for part in held_out:
            scored = part[first + 2 - order : starts(sizes, part)[-1, -1] + sizes["length"] + 1]
            losses.append(float(kneser_ney.losses(model, scored, num_symbols=SYMBOLS).mean()))
        found.append({"order": order, "validation": losses[0], "test": losses[1]})
    return found


def disturb(model, read, number, *, sizes, seed):
    """Entries of matrices of weights are dropped, and characters that are read replaced, anew in each update."""
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 2), number)
    weights_key, drawn_key, replaced_key = (jax.random.fold_in(key, part) for part in range(3))
    params, rest = eqx.partition(model, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(params)
    for k, leaf in enumerate(leaves):
        # Gains stand in rows of two.
        if leaf.ndim > 1 and min(leaf.shape[-2:]) > 2:
            kept = jax.random.bernoulli(jax.random.fold_in(weights_key, k), 1 - sizes["dropped"], leaf.shape)
            leaves[k] = jnp.where(kept, leaf / np.float32(1 - sizes["dropped"]), 0)
    drawn = jax.random.randint(drawn_key, read.shape, 0, SYMBOLS)
    read = jnp.where(jax.random.bernoulli(replaced_key, sizes["replaced"], read.shape), drawn, read)
    return eqx.combine(jax.tree.unflatten(structure, leaves), rest), read


def run(task, sizes):
    """The losses of a row in training, in validation and in the test."""
    (row, seed), begin, (learnt, *held_out) = task, time.process_time(), text(sizes["sample"])
    width, half = np.arange(sizes["length"] + 1), sizes["length"] - sizes["length"] // 2
    size = sizes["updates"], sizes["batch"]
    batches = learnt[
        np.random.default_rng([seed, 1]).integers(len(learnt) - sizes["length"], size=size)[..., None] + width
    ]

    def losses(model, part, number=None):
        windows = (part[batch[:, None] + width] for batch in starts(sizes, part)[:number])
        return np.array(
            [loss(model, jnp.asarray(w[:, :-1]), jnp.asarray(w[:, 1 + half :]), "once")[0] for w in windows]
        )

    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        model = made(row, sizes["depth"], sizes["dim"], sizes["num_heads"], key=jax.random.key(seed))
        options = {"use": "once", "clip": 1.0, "every": sizes["look_every"]}
        options["disturb"] = partial(disturb, sizes=sizes, seed=seed)
        rates = RATES[row] * rate_profile(sizes["updates"])
        model, found = train(model, batches, rates, look=lambda m: losses(m, held_out[0], 16).mean(), **options)
        ends = {name: losses(model, part) for name, part in zip(("validation", "test"), held_out, strict=True)}
    weights = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))
    found |= ends | {"parameters": weights, "seconds": (time.process_time() - begin) / sizes["updates"]}
    return {name: np.array(values, float) for name, values in found.items()}


def entry(task, arrays, made):
    """What the record says of a run, with the plan and the code that made it."""
    found = made | {"stage": "run", "row": task[0], "rate": RATES[task[0]], "seed": task[1]}
    found |= {"parameters": int(arrays["parameters"]), "seconds": records.numbers(arrays["seconds"], 3)}
    for name in ("validation", "test", "skipped", "unsettled"):
        found[name] = records.numbers(arrays[name].mean(), 6)
    error = arrays["test"].std(ddof=1) / np.sqrt(arrays["test"].size)
    found["test_error"] = records.numbers(error, 3)
    return found | {name: records.numbers(arrays[name], 5) for name in ("losses", "looks")}


def main(brief, out):
    begin, code, sizes = time.perf_counter(), records.commit(), BRIEF if brief else PLAN
    learnt, _, test = text(sizes["sample"])
    guesses = np.bincount(learnt, minlength=SYMBOLS) + 1
    head = {"format": 2, "plan": records.plan("depth"), "sizes": [sizes], "ladder": []}
    head |= {"data": {} if brief else {moby_dick.FILE.name: moby_dick.FILE.sha256}, "design": sizes}
    head |= {"counting": counting(sizes), "blind": float(-np.log(guesses / guesses.sum())[test].mean())}
    rows = ["identity mixer"] if brief else list(RATES)
    tasks, runs = [(row, seed) for seed in sizes["seeds"] for row in rows], {}
    work, identity = partial(run, sizes=sizes), sweep.fingerprint(list(map(str, sizes.items())))
    for k, arrays in sweep.iterate(work, tasks, identity=identity, folder=out / "runs", num_threads=1, progress=True):
        runs[k] = entry(tasks[k], arrays, {"plan": head["plan"], "commit": code})
        record = head | {"complete": len(runs) == len(tasks), "runs": [runs[k] for k in sorted(runs)]}
        records.write(out / "depth.json.gz", record | records.circumstances(begin, code))


if __name__ == "__main__":
    given = records.arguments(__doc__)
    main(given.brief, given.out)
