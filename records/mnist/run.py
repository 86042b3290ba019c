"""Stacks of two blocks on MNIST, trained until more updates hardly help: the plan of MNIST, in full or in brief.

``python records/mnist/run.py --out FOLDER`` runs the plan, some 40 minutes on one core, with the images in
``$SPINBOOK_DATA``; ``--brief`` trains two rows on 300 images. Each training is kept in the folder as it is done, and
none is made again: the same command goes on where it was. ``mnist.json.gz`` was made before, and can be remade exactly
at, the tag ``before-2.0``: ``git checkout before-2.0``, then ``python -m experiments mnist --out FOLDER --plan
book/plan-of-mnist.md``.
"""

import dataclasses
import math
import time
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import records
from experiments.comparison import judging, modules, tasks, training
from experiments.datasets import mnist
from spinbook import sweep
from spinbook.precision import enable_x64

LINEAR, MARGIN, LEVEL = "linear classifier", 0.005, 0.05
ASKED = ("identity mixer", "no residual", "no normalisation", "no feed-forward", "local pooling")
ASKED += ("naive spins, one step, 4 heads",)
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
PLAN = {"name": "all", "depth": 2, "updates": 16000, "trial_updates": 4000, "batch": 32, "trials": (101, 102)}
PLAN |= {"seeds": (1, 2, 3, 4, 5), "rows": ("vanilla", LINEAR, *ASKED), "sample": False}
BRIEF = {"name": "brief", "depth": 1, "updates": 2, "trial_updates": 2, "batch": 8, "trials": (101,)}
BRIEF |= {"seeds": (1, 2), "rows": (ASKED[0], LINEAR), "sample": True}


@cache
def images(sample):
    """Pixels of unit variance, divided by the root of the number of those of a patch."""
    task = tasks.classify_mnist(mnist.sample() if sample else None)
    scale = np.float32(task.num_features**-0.5)
    parts = {name: getattr(task, name) for name in ("train", "validation", "test")}
    scaled = {name: part._replace(features=part.features * scale) for name, part in parts.items()}
    return dataclasses.replace(task, **scaled)


def linear(task, recipe, rate, seed):
    """Scores in the test and in validation of softmax(W x + b), trained from W = 0 as every other row."""
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(0.9, 0.999, 1e-8))

    def logits(weights, features):
        return features.reshape(len(features), -1) @ weights[:-1] + weights[-1]

    def loss(weights, chosen):
        found = logits(weights, features[chosen])
        return optax.softmax_cross_entropy_with_integer_labels(found, labels[chosen]).mean()

    def update(state, now):
        change, moments = optimizer.update(jax.grad(loss)(state[0], now[0]), state[1])
        return (state[0] - now[1] * change, moments), None

    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        features, labels = jnp.asarray(task.train.features), jnp.asarray(task.train.labels[:, 0])
        start = jnp.zeros((features[0].size + 1, task.num_classes), jnp.float32)
        plan = training.batches(len(labels), recipe, seed=seed), rate * training.rate_profile(recipe.num_updates)
        weights = jax.lax.scan(update, (start, optimizer.init(start)), tuple(map(jnp.asarray, plan)))[0][0]
        found = []
        for part in (task.test, task.validation):
            answers = np.asarray(logits(weights, jnp.asarray(part.features)))[:, None]
            found.append(training.scored(answers, np.ones(len(answers), bool), part.labels))
    return found


def train(cell, design):
    """Shares of wrong answers of one training, in validation and, of runs, in the test, and ten times on the way."""
    stage, row, rate, seed = cell
    task, begin = images(design["sample"]), time.process_time()
    recipe = training.Recipe(design["trial_updates" if stage == "trial" else "updates"], design["batch"])
    if row == LINEAR:
        test, validation = linear(task, recipe, rate, seed)
        found = {"skipped": 0.0, "unsettled": 0.0, "looks": []}
    else:
        module = modules.stacked(row, design["depth"], task.grid)
        course = training.follow(module, task, learning_rate=rate, seed=seed, recipe=recipe, repeats=0)
        test, validation, outcome = course.test, course.validation, course.outcome
        found = {"skipped": outcome.skipped, "unsettled": outcome.unsolved, "looks": 1 - course.looks[1]}
    found |= {"validation": 1 - validation.accuracy, "seconds": time.process_time() - begin}
    found |= {"test": 1 - test.accuracy} if stage == "run" else {}
    return {name: np.asarray(value, float) for name, value in found.items()}


def best(row, found):
    """The rate of a row with the least mean over its trials, and one to try beside it if it is the last on its side."""
    losses = {}
    for (stage, name, rate, _), arrays in found.items():
        if (stage, name) == ("trial", row):
            losses.setdefault(rate, []).append(np.nan_to_num(float(arrays["validation"]), nan=math.inf))
    means = {rate: math.fsum(its) / len(its) for rate, its in sorted(losses.items())}
    rate = min(means, key=means.get)
    at = RATES.index(rate)
    beside = [RATES[k] for k in (at - 1, at + 1) if 0 <= k < len(RATES) and RATES[k] not in means]
    return rate, beside[0] if beside else None


def failed(run):
    return run["test"] is None or run["skipped"] > 0.1 or run["unsettled"] > 0.01


def side(d):
    verdict = judging.above(d, MARGIN, level=LEVEL)
    return verdict, "yes" if verdict.p_yes < verdict.p_no else "no"


def judge(record, pairs):
    """Is a row behind another by more than the margin? (row, other, mean difference, p, decision), by Holm's method."""
    runs = {(run["row"], run["seed"]): run for run in record["runs"] if run["stage"] == "run"}
    seeds, answers = record["design"]["seeds"], []
    for pair in pairs:
        both = [[runs[row, seed] for row in pair] for seed in seeds]
        scores = [[record["blind"] if run["test"] is None else run["test"] for run in its] for its in both]
        d, lost = -np.diff(scores)[:, 0], np.array([any(map(failed, its)) for its in both])
        verdict, decision = side(d)
        if lost.any() and ((~lost).sum() < 2 or side(d[~lost])[1] != decision):
            decision = "undecided"
        answers.append((*pair, d.mean(), min(1.0, 2 * min(verdict.p_yes, verdict.p_no)), decision))
    holds = judging.holm([answer[3] for answer in answers], level=LEVEL)
    return [(*answer[:4], answer[4] if h else "undecided") for answer, h in zip(answers, holds, strict=True)]


def main(brief, out):
    begin, code, design = time.perf_counter(), records.commit(), BRIEF if brief else PLAN
    head = {"format": 1, "plan": records.plan("mnist"), "design": design}
    head |= {"blind": 1 - images(design["sample"]).blind.accuracy}
    head |= {"data": {} if brief else {file.name: file.sha256 for file in mnist.FILES}}
    found, identity = {}, sweep.fingerprint(head["plan"], list(map(str, design.items())))

    def written(complete):
        runs = []
        for cell, arrays in sorted(found.items(), key=lambda its: its[0]):
            numbers = {name: records.numbers(values, 4) for name, values in arrays.items()}
            made = {"plan": head["plan"], "commit": code}
            runs.append(dict(zip(("stage", "row", "rate", "seed"), cell, strict=True)) | numbers | made)
        record = head | {"complete": complete, "runs": runs} | records.circumstances(begin, code)
        records.write(out / "mnist.json.gz", record)
        return record

    def stage(name, cells):
        options = {"identity": identity, "folder": out / name, "num_threads": 1, "label": name, "progress": True}
        for k, arrays in sweep.iterate(partial(train, design=design), cells, **options):
            found[cells[k]] = arrays
            written(complete=False)

    # Vanilla and the linear classifier come first, so that the gate can be judged before the others are trained.
    for part, rows in (("gate", design["rows"][:2]), ("rows", design["rows"][2:])):
        if not rows:
            continue
        tried, k = [(row, rate) for row in rows for rate in RATES[2:5]], 0
        while tried:
            stage(f"{part}-trials-{k}", [("trial", *its, seed) for its in tried for seed in design["trials"]])
            tried, k = [(row, rate) for row in rows if (rate := best(row, found)[1]) is not None], k + 1
        # All rows of a seed before the next.
        stage(f"{part}-runs", [("run", row, best(row, found)[0], seed) for seed in design["seeds"] for row in rows])
    record = written(complete=True)
    if not brief:
        gate = judge(record, [(LINEAR, "vanilla")])
        rest = judge(record, [(row, "vanilla") for row in ASKED]) if gate[0][-1] == "yes" else []
        for row, other, difference, p, decision in gate + rest:
            print(f"{row} behind {other}: {decision} ({difference:+.4f}, p = {p:.2g})")


if __name__ == "__main__":
    given = records.arguments(__doc__)
    main(given.brief, given.out)
