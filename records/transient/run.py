"""Language models of spins, trained and then used with different numbers of updates: the plan of the transient.

The records were made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then ``python
-m experiments run nonequilibrium-transient --out FOLDER`` (six hours on one core), ``nonequilibrium-heads`` for heads
of two of the models against sampled spins (``heads.json.gz``), and ``--quick`` for ``transient-sample.json.gz``.

This script trains the rows of the plan but for two, random numbers of updates and values in the field. With ``--brief``
it trains two rows, of one small layer on the sample of the text: two runs of ``transient-sample.json.gz``. What is done
is kept in the folder, and not done again.
"""

import time
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from experiments import records
from experiments.comparison.transient import causal, loss, made, train
from experiments.datasets import moby_dick
from spinbook import sphere, sweep
from spinbook.entropy_production import divergence
from spinbook.precision import enable_x64
from spinbook.spin_transformer import Relax, Unroll

USES = ["1", "2", "3", "4", "8", "inf"]
PLAN = records.of_book("transient")["design"]
BRIEF = records.of_book("transient", "transient-sample")["design"]
KEPT = np.array([1, 2, 4, 12])  # numbers of updates at which the paths of a layer are kept


@cache
def text(length, batch, num_batches, sample):
    """The first nine tenths to learn from, evenly spaced windows of the rest, and the loss of guessing on these."""
    characters = moby_dick.encode(moby_dick.sample() if sample else moby_dick.load()).astype(np.int32)
    learnt, rest = np.split(characters, [len(characters) * 9 // 10])
    # Neighbouring windows go to different batches.
    starts = np.linspace(0, len(rest) - length - 1, batch * num_batches).astype(int).reshape(batch, num_batches).T
    held_out = rest[starts[..., None] + np.arange(length + 1)]
    counts = np.bincount(learnt, minlength=len(moby_dick.ALPHABET)) + 1
    return learnt, held_out, float(-np.log(counts / counts.sum())[held_out[..., 1:]].mean())


@eqx.filter_jit
def paths(model, use, windows):
    """Of each layer at the inputs of its own use, by update and head: means over the windows."""
    stack = model.stack.under(Relax() if use == "inf" else Unroll(int(use)))
    arrays, rest = eqx.partition(stack.modules, eqx.is_array)

    def layer(x, arrays):
        module, mask = eqx.combine(arrays, rest), causal(len(x))
        squares, d = jnp.sum(module.couplings(x, mask) ** 2, axis=-1), module.dim // module.num_heads
        heads = len(x), module.num_heads, d

        def advance(state, _):
            reached = module.under(Unroll(1)).readout(x, mask, state=state)
            return reached.state, reached

        first = advance(None, None)[1]
        path = jax.lax.scan(advance, first.state, length=KEPT[-1] - 1)[1]
        path = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, path)
        end = module.under(Relax()).readout(x, mask, state=path.state[-1])
        fields, settled = (state.reshape(-1, *heads) for state in (path.state, end.state))
        mismatch = jnp.sum(divergence(fields, settled, beta=module.beta), axis=1)
        lengths = jnp.sum(end.magnetizations.reshape(heads) ** 2, axis=-1)
        away = jnp.sqrt(jnp.sum((path.magnetizations - end.magnetizations) ** 2, axis=(1, 2)))
        return module.steady_state(x, mask).value, {
            "distance": away / jnp.sqrt(jnp.sum(lengths)),
            "mismatch": mismatch[KEPT - 1],
            "irreversibility": path.entropy_production[KEPT - 1],
            "n_eff": jnp.mean(1 / squares, axis=-1),
            "q": len(x) * jnp.mean(squares, axis=-1),
            "chi": module.beta * jnp.mean(jnp.float32(sphere.squared_radius(d)) - lengths, axis=0) / d,
            "path_unsettled": 1.0 - end.converged.astype(x.dtype),
        }

    def of_window(characters):
        return jax.lax.scan(layer, model.bottom(characters), arrays)[1]

    return jax.tree.map(lambda a: jnp.mean(a, axis=0), jax.vmap(of_window)(windows[:, :-1]))


def run(task, sizes, uses):
    """The losses of a row on the way, and afterwards those of all its uses on the held-out windows."""
    row, beta, seed = task
    begin, own, stack = time.process_time(), *{"vanilla": ("once", "vanilla")}.get(row, (row, "spins"))
    learnt, held_out, _ = text(sizes["length"], sizes["batch"], sizes["held_out_batches"], sizes["sample"])
    size = sizes["updates"], sizes["batch"]
    starts = np.random.default_rng([seed, 1]).integers(len(learnt) - sizes["length"], size=size)
    batches = learnt[starts[..., None] + np.arange(sizes["length"] + 1)]
    probed = []

    def losses(model, use, batches):
        found = [loss(model, jnp.asarray(w[:, :-1]), jnp.asarray(w[:, 1:]), use) for w in batches]
        return np.array(found, float).T

    def look(model):
        if stack == "spins":
            probed.append(paths(model, own, jnp.asarray(held_out[0])))
        return losses(model, own, held_out[: sizes["look_batches"]])[0].mean()

    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        shape = sizes["depth"], sizes["dim"], sizes["num_heads"]
        model = made(stack, *shape, beta=beta, key=jax.random.key(seed))
        rates, options = np.full(size[0], sizes["learning_rate"]), {"clip": 10.0, "every": sizes["look_every"]}
        model, course = train(model, batches, rates, use=own, look=look, **options)
        ends = np.array([losses(model, use, held_out) for use in (uses if stack == "spins" else ["once"])])
    found = {name: np.array(values, float) for name, values in course.items()}
    found |= {"held_out": ends[:, 0], "held_out_unsettled": ends[:, 1]}
    found["seconds"] = np.array(time.process_time() - begin)
    found["parameters"] = np.array(sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))))
    return found | {name: np.stack([np.asarray(each[name]) for each in probed]) for name in (probed or [{}])[0]}


def entry(task, arrays, uses):
    """What the record says of a run."""
    row, beta, seed = task
    own, uses = ("once", ["once"]) if row == "vanilla" else (row, uses)
    found = {"row": row, "beta": beta, "seed": seed, "own_use": own, "uses": uses}
    found["parameters"] = int(arrays["parameters"])
    held_out = arrays["held_out"]
    error = held_out.std(axis=1, ddof=1) / np.sqrt(held_out.shape[1])
    found |= {"held_out": records.numbers(held_out.mean(axis=1), 6), "held_out_error": records.numbers(error, 3)}
    found["held_out_unsettled"] = records.numbers(arrays["held_out_unsettled"].mean(axis=1), 4)
    found["skipped"] = records.numbers(arrays["skipped"].mean(), 4)
    found |= {name: records.numbers(arrays[name], 5) for name in ("losses", "unsettled", "looks", "seconds")}
    if "distance" in arrays:
        found["distance"] = records.numbers(arrays["distance"][[0, -1]], 4)
        followed = ("mismatch", "irreversibility", "n_eff", "q", "chi", "path_unsettled") if seed == 1 else ()
        found |= {name: records.numbers(arrays[name], 4) for name in followed}
    return found


def main(brief, out):
    begin, sizes, uses = time.perf_counter(), *((BRIEF, USES[:1]) if brief else (PLAN, USES))
    tasks = [("1", 1.0, 1), ("vanilla", 1.0, 1)]
    if not brief:
        tasks = [(row, 1.0, seed) for seed in range(1, 6) for row in ("1", "2", "inf")]
        tasks += [(*row, seed) for seed in range(1, 4) for row in (("1", 3.0), ("inf", 3.0), ("vanilla", 1.0))]
    work, identity = partial(run, sizes=sizes, uses=uses), sweep.fingerprint(list(map(str, sizes.items())))
    runs = {}
    for k, arrays in sweep.iterate(work, tasks, identity=identity, folder=out / "runs", num_threads=1, progress=True):
        runs[k] = entry(tasks[k], arrays, uses)
        blind = text(sizes["length"], sizes["batch"], sizes["held_out_batches"], sizes["sample"])[-1]
        record = {"format": 1, "complete": len(runs) == len(tasks), "design": sizes, "blind": blind}
        record |= {"data": {} if brief else {moby_dick.FILE.name: moby_dick.FILE.sha256}, "kept_updates": KEPT.tolist()}
        record |= {"whole": None, "runs": [runs[k] for k in sorted(runs)]}
        records.write(out / "transient.json.gz", record | records.circumstances(begin, records.commit()))


if __name__ == "__main__":
    given = records.arguments(__doc__)
    main(given.brief, given.out)
