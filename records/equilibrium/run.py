"""Does a block that is trained at its rest come to rest? Trains the rows of ``plan.md``: ``equilibrium.json.gz``.

``python records/equilibrium/run.py --out FOLDER`` runs the whole plan, one training after another, and goes on from
what it finds in the folder; ``--brief`` is two rows for a moment. The record beside this file was made at the commit
that it names.
"""

from __future__ import annotations

import hashlib
import time
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from experiments import records
from experiments.comparison import blocks, modules, training
from experiments.comparison.modules import Module
from experiments.comparison.tasks import Examples, Task
from experiments.comparison.training import Recipe
from spinbook import fixed_point, sweep
from spinbook.precision import enable_x64

# Untied blocks, or passes of one block and whether the input is added before each; 0 passes go to rest.
ROWS: dict[str, int | tuple[int, bool]] = {
    "vanilla": 2,
    "one pass": (1, True),
    "two passes": (2, True),
    "six passes": (6, True),
    "equilibrium": (0, True),
    "six passes, input at the start only": (6, False),
    "four blocks": 4,
}
SEEDS, RATE = (1, 2, 3), 0.003
# Relative change of a pass at rest; relative distance of states that are one; what is kept of the sequences' numbers.
AT_REST, ALIKE, QUANTILES = 1e-4, 1e-3, (0.5, 0.95, 1.0)


class Sizes(NamedTuple):
    """Chains, their sites in training and in the longer test, values, sequences, updates, passes that are watched."""

    chains: int = 4
    length: int = 4
    longer: int = 8
    values: int = 8
    train: int = 40000
    test: int = 500
    updates: int = 400
    passes: int = 200


BRIEF = Sizes(2, 2, 4, 2, train=64, test=8, updates=2, passes=4)


class Repeated(eqx.Module):
    """z = the standardised block of z + x, so many times from z = 0, or solved; or of z alone, from z = x."""

    block: blocks.Stack
    passes: int = eqx.field(static=True)
    injected: bool = eqx.field(static=True)

    def step(self, z: jax.Array, x: jax.Array) -> jax.Array:
        """One pass."""
        return blocks.standardized(self.block(z + x if self.injected else z).value)

    def solved(self, x: jax.Array, z: jax.Array, tol: float = 1e-3, steps: int = 100) -> fixed_point.FixedPoint:
        """A state of rest, sought from z."""
        return fixed_point.solve(lambda z: self.step(z, x), z, tol=tol, max_steps=steps)

    def start(self, x: jax.Array) -> jax.Array:
        """The state before the first pass."""
        return jnp.zeros_like(x) if self.injected else x

    def __call__(self, x: jax.Array) -> blocks.Settled:
        if not self.passes:
            found = self.solved(x, self.start(x))
            return blocks.Settled(found.value, found.converged)
        z = self.start(x)
        for _ in range(self.passes):
            z = self.step(z, x)
        return blocks.Settled(z, jnp.asarray(True))


@cache
def row(name: str) -> Module:
    """The row of this name, all with as many weights as two blocks of the vanilla transformer."""
    one, how = modules.stacked("vanilla", 1), ROWS[name]
    if isinstance(how, int):
        return modules.stacked("vanilla", how)._replace(depth=2)
    return one._replace(name=name, depth=2, make=lambda *sizes: Repeated(one.make(*sizes), *how))


def chained(sizes: Sizes, length: int, number: int, seed: int) -> tuple[Examples, np.ndarray]:
    """Sequences of chains in which each site names the next and the last has a value, and how far that is."""
    sites = sizes.chains * sizes.length
    rng, hop = np.random.default_rng(seed), np.tile(np.arange(length), sites // length)
    names = np.eye(sites, dtype=np.float32)[np.argsort(rng.random((number, sites)), axis=1)]
    value = np.repeat(rng.integers(0, sizes.values, (number, sites // length)), length, axis=1)
    last = (hop == 0)[:, None]
    shown = np.where(last, np.eye(sizes.values, dtype=np.float32)[value], 0)
    features = np.concatenate([names, np.where(last, 0, np.roll(names, 1, axis=1)), shown], axis=-1)
    mixed = np.argsort(rng.random((number, sites)), axis=1)
    labels = np.take_along_axis(value, mixed, axis=1).astype(np.int32)
    return Examples(np.take_along_axis(features, mixed[..., None], axis=1), labels), hop[mixed]


@cache
def task(sizes: Sizes) -> Task:
    """Every site asks for the value at the end of its chain."""
    parts = [chained(sizes, sizes.length, n, k)[0] for k, n in enumerate((sizes.train, sizes.test, sizes.test))]
    return Task("chains", *parts, tuple(range(sizes.chains * sizes.length)), sizes.values)


def watched(network: Any, examples: Examples, passes: int) -> dict[str, Any]:
    """What repetition does: by pass the relative change and the share of right answers, then rest from two starts."""
    block, x = network.block, jnp.asarray(examples.features) @ network.embedding.T + network.positions
    labels = jnp.asarray(examples.labels)

    def size(z: jax.Array) -> jax.Array:
        return jnp.sqrt(jnp.sum(z * z, axis=(-1, -2)))

    def right(z: jax.Array) -> jax.Array:
        return jnp.mean(jnp.argmax(blocks.standardized(z) @ network.readout.T + network.bias, axis=-1) == labels)

    @jax.jit
    def iterated() -> tuple[jax.Array, jax.Array]:
        def go(z: jax.Array, _: None) -> Any:
            new = jax.vmap(block.step)(z, x)
            return new, (size(new - z) / size(new), right(new))

        return jax.lax.scan(go, jax.vmap(block.start)(x), None, passes)[1]

    @jax.jit
    def rest(z: jax.Array) -> Any:
        found = jax.vmap(partial(block.solved, tol=1e-5, steps=200))(x, z)
        return found, size(jax.vmap(block.step)(found.value, x) - found.value) / size(found.value), right(found.value)

    change, share = iterated()
    (found, residual, right_at_rest), (other, *_) = (
        rest(z) for z in (jnp.zeros_like(x), jax.random.normal(jax.random.key(0), x.shape))
    )
    return {
        "change": np.mean(change, axis=1),
        "right": share,
        "resting": np.mean(change[-1] < AT_REST),
        "solved": np.mean(found.converged),
        "evaluations": np.quantile(found.num_steps + 1, QUANTILES),
        "residual": np.quantile(residual, QUANTILES),
        "right_at_rest": right_at_rest,
        "alike": np.mean(size(other.value - found.value) < ALIKE * size(found.value)),
    }


def train(cell: tuple[str, int], sizes: Sizes) -> dict[str, Any]:
    """Right answers as the network is read, by how far the value is, in chains as trained and in longer ones."""
    (name, seed), begin, examples = cell, time.process_time(), task(sizes)
    recipe = Recipe(sizes.updates, min(32, sizes.train))
    course = training.follow(row(name), examples, learning_rate=RATE, seed=seed, recipe=recipe, repeats=0)
    found: dict[str, Any] = {"validation": course.validation.accuracy, "unsolved": course.outcome.unsolved_training}
    found |= {"skipped": course.outcome.skipped, "width": modules.width(row(name), examples)}
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        for kind, length in (("trained", sizes.length), ("longer", sizes.longer)):
            tested, hop = chained(sizes, length, sizes.test, 2)
            read = np.argmax(jax.jit(jax.vmap(course.network))(tested.features)[0], axis=-1) == tested.labels
            found[f"{kind} by distance"] = [read[hop == k].mean() for k in range(length)]
            if isinstance(ROWS[name], tuple):
                seen = watched(course.network, tested, sizes.passes)
                found |= {f"{kind} {key}": value for key, value in seen.items()}
    return found | {"seconds": time.process_time() - begin}


def main() -> None:
    """Train every row from every seed; a training is kept in the folder as soon as it is done."""
    options = records.arguments(__doc__)
    sizes, *first, last = Sizes(), *ROWS
    cells = [(name, seed) for names in (first, [last]) for seed in SEEDS for name in names]
    if options.brief:
        sizes, cells = BRIEF, [("vanilla", 1), ("equilibrium", 1)]
        ROWS["vanilla"] = 1  # block, because two take twice as long to compile
    plan, begin = Path(__file__).with_name("plan.md").read_bytes(), time.perf_counter()
    kept = {"identity": f"equilibrium {sizes}", "folder": options.out / "runs", "num_threads": 1, "progress": True}
    found = dict(sweep.iterate(partial(train, sizes=sizes), cells, **kept))
    runs = [
        {"row": name, "seed": seed} | {key: records.numbers(value, 4) for key, value in found[k].items()}
        for k, (name, seed) in enumerate(cells)
    ]
    head = {"plan": hashlib.sha256(plan.partition(b"\n## Changes")[0]).hexdigest(), "sizes": sizes._asdict()}
    records.write(options.out / "equilibrium.json.gz", head | {"runs": runs} | records.circumstances(begin))
    for run in runs:
        print(run["row"], run["seed"], run["trained by distance"], run["longer by distance"], run["seconds"])


if __name__ == "__main__":
    main()
