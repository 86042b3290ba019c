"""The depth experiment: a learning rate for each row, then its seeds, kept on disk as it goes.

A cell is one training of a row, with a learning rate, from a seed. From seed 0 the size of all stacks is chosen: the
first of a ladder at which vanilla is ahead of counting in validation by more than ``RESERVE``. Then short trials from
seed 0 choose the rate of each row in validation: from three rates, and from further ones beside the best as long as it
is the last on its side. What counts are the other seeds, in the test: first of the rows of the gate, and of the others
only if it opens.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from experiments import designs, records
from experiments.comparison import training, transient
from experiments.comparison.transient import Checkpoint
from experiments.datasets import moby_dick
from experiments.depth import cells, kneser_ney, questions, rows
from experiments.depth.cells import Cell
from spinbook import sweep, validate
from spinbook.precision import enable_x64

__all__ = [
    "LADDER",
    "REGULARISED",
    "RESERVE",
    "SMOKE",
    "Design",
    "Text",
    "collect",
    "count",
    "recorded",
    "text",
    "train",
]

_LADDER_RATE = 3e-3
RESERVE = 0.12
"""Nats per character by which a size is to pass in validation, for the gate to open in the test at its margin."""
_FEWEST_ORDERS = 6
_ARTIFACT = "depth.json.gz"
_COURSE = ("losses", "unsettled", "skipped")


def _probability(value: Any, name: str) -> float:
    return validate.number(value, name, least=0.0, below=1.0)


@designs.record(dropped=_probability, replaced=_probability)
class Design(NamedTuple):
    """Sizes of the stacks and of their training, and the seeds that count. Trials make ``trial_updates``.

    ``accelerator``: whether this size is for one only. In training each entry of a matrix of weights is ``dropped``
    with this probability, anew in each update, and each character that is read is ``replaced`` with this one.
    """

    name: str
    depth: int
    dim: int
    length: int
    updates: int
    trial_updates: int
    num_heads: int = 4
    batch: int = 16
    look_every: int = 250
    seeds: tuple[int, ...] = (1, 2, 3, 4)
    rows: tuple[str, ...] = rows.ROWS
    accelerator: bool = False
    sample: bool = False
    dropped: float = 0.0
    replaced: float = 0.0


LADDER = (
    Design("small", depth=2, dim=128, length=64, updates=8000, trial_updates=2000),
    Design("medium", depth=4, dim=128, length=64, updates=10000, trial_updates=2500),
    Design("large", depth=6, dim=256, length=128, updates=24000, trial_updates=6000, accelerator=True),
)
"""The sizes of the plan, in the order in which they are tried."""
REGULARISED = LADDER[2]._replace(
    name="regularised",
    updates=30000,
    trial_updates=4000,
    look_every=2000,
    seeds=(1, 2, 3),
    rows=("vanilla", "identity mixer", "pure normalisation"),
    dropped=0.2,
    replaced=0.05,
)
"""The large size with what keeps it from learning the text by heart, see the changes of the plan."""
SMOKE = Design(
    "smoke",
    depth=1,
    dim=16,
    length=8,
    updates=8,
    trial_updates=4,
    num_heads=2,
    batch=2,
    look_every=4,
    seeds=(1, 2),
    sample=True,
)


class Text(NamedTuple):
    """Characters to learn from, to choose by and to be judged by: 18, 1 and 1 twentieths of the text in its order."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


@cache
def text(design: Design) -> Text:
    """The text of a design. Raises ``FileNotFoundError`` where it is missing.

    >>> len(text(SMOKE).validation)
    989
    """
    characters = moby_dick.encode(moby_dick.sample() if design.sample else moby_dick.load()).astype(np.int32)
    ends = [len(characters) * part // 20 for part in (18, 19)]
    return Text(*np.split(characters, ends))


def _starts(design: Design, held_out: np.ndarray) -> np.ndarray:
    """Of windows that overlap by half, in whole batches: what is scored is the second half of each."""
    starts = np.arange(0, len(held_out) - design.length, design.length // 2)
    return starts[: len(starts) // design.batch * design.batch]


def _windows(design: Design, held_out: np.ndarray) -> np.ndarray:
    found: np.ndarray = held_out[_starts(design, held_out)[:, None] + np.arange(design.length + 1)]
    return found.reshape(-1, design.batch, design.length + 1)


@cache
def count(design: Design) -> list[dict[str, float | int]]:
    """Nats per character of modified Kneser-Ney, order by order, on the characters of which stacks are scored.

    To order 6, and on as long as the last is the best in validation: a best one at the edge need not be the best.

    >>> [found["order"] for found in count(SMOKE)]
    [1, 2, 3, 4, 5, 6]
    """
    parts, found = text(design), list[dict[str, float | int]]()
    # The first window has nothing before its second half but its first, and the last ends with its targets.
    first = design.length - design.length // 2

    def wanted() -> bool:
        best = min(found, key=lambda each: each["validation"], default=None)
        return len(found) < min(_FEWEST_ORDERS, first + 2) or (found[-1] is best and len(found) < first + 2)

    while wanted():
        order = len(found) + 1
        model = kneser_ney.counted(parts.train, order, num_symbols=len(moby_dick.ALPHABET))
        losses = {}
        for name in ("validation", "test"):
            held_out = getattr(parts, name)
            scored = held_out[first + 2 - order : _starts(design, held_out)[-1] + design.length + 1]
            losses[name] = float(kneser_ney.losses(model, scored).mean())
        found.append({"order": order, **losses})
    return found


class _Programs(NamedTuple):
    """Compiled for a row of a design, and shared by all rates and seeds. Each takes several trainings side by side."""

    begin: Callable[[Any], Any]
    advance: Callable[..., Any]
    evaluate: Callable[..., Any]


def _model(row: str, design: Design, seed: int) -> transient.LanguageModel:
    return rows.made(row, design.depth, design.dim, design.num_heads, key=jax.random.key(seed))


def _thinned(params: Any, probability: float, key: Array) -> Any:
    """Weights of matrices, each zero with this probability and else larger, so that its mean is what it was."""

    def thinned(k: int, leaf: Array) -> Array:
        # Gains and scales stand in rows of two.
        if leaf.ndim < 2 or min(leaf.shape[-2:]) <= 2:
            return leaf
        kept = jax.random.bernoulli(jax.random.fold_in(key, k), 1 - probability, leaf.shape)
        return jnp.where(kept, leaf / np.float32(1 - probability), 0)

    leaves, structure = jax.tree.flatten(params)
    return jax.tree.unflatten(structure, [thinned(k, leaf) for k, leaf in enumerate(leaves)])


def _blurred(windows: Array, probability: float, key: Array) -> Array:
    """Characters, each of them any of the alphabet with this probability."""
    drawn = jax.random.randint(jax.random.fold_in(key, 0), windows.shape, 0, len(moby_dick.ALPHABET))
    return jnp.where(jax.random.bernoulli(jax.random.fold_in(key, 1), probability, windows.shape), drawn, windows)


@cache
def _programs(row: str, design: Design) -> _Programs:
    rest = eqx.partition(_model(row, design, 0), eqx.is_inexact_array)[1]
    clip, adam = optax.clip_by_global_norm(1.0), optax.scale_by_adam(b1=0.9, b2=0.99)
    optimizer = optax.chain(clip, adam, optax.add_decayed_weights(0.01))
    use, half = rows.use(row), design.length - design.length // 2

    def loss(params: Any, read: Array, targets: Array) -> tuple[Array, Array]:
        found, unsettled = jax.vmap(partial(eqx.combine(params, rest), use=use))(read)
        first = read.shape[1] - targets.shape[1]
        losses = optax.softmax_cross_entropy_with_integer_labels(found[:, first:], targets)
        return jnp.mean(losses), jnp.mean(unsettled.astype(jnp.float32))

    def disturbed(params: Any, windows: Array, key: Array) -> tuple[Array, Array]:
        read = windows[:, :-1]
        if design.dropped:
            params = _thinned(params, design.dropped, jax.random.fold_in(key, 0))
        if design.replaced:
            read = _blurred(read, design.replaced, jax.random.fold_in(key, 1))
        return loss(params, read, windows[:, 1:])

    @jax.jit
    @partial(jax.vmap, in_axes=(0, 0, 0, 0, None), out_axes=(0, 1))
    def advance(start: Any, batches: Array, sizes: Array, key: Array, numbers: Array) -> Any:
        def update(carried: Any, now: tuple[Array, Array, Array]) -> Any:
            params, state = carried
            windows, size, number = now
            slope_at = jax.value_and_grad(disturbed, has_aux=True)
            (value, unsettled), gradient = slope_at(params, windows, jax.random.fold_in(key, number))
            change, new_state = optimizer.update(gradient, state, params)
            new = jax.tree.map(lambda a, b: a - size * b, params, change), new_state
            fine = jnp.isfinite(optax.global_norm(gradient))
            return jax.tree.map(partial(jnp.where, fine), new, carried), (value, unsettled, ~fine)

        return jax.lax.scan(update, start, (batches, sizes, numbers))

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None))
    def evaluate(params: Any, batches: Array) -> Any:
        return jax.lax.map(lambda windows: loss(params, windows[:, :-1], windows[:, 1 + half :]), batches)

    return _Programs(jax.jit(jax.vmap(optimizer.init)), advance, evaluate)


def train(its: Sequence[Cell], design: Design, *, checkpoint: Checkpoint | None = None) -> list[dict[str, np.ndarray]]:
    """Trainings of one row in one stage, side by side in one program, and their losses on the held-out parts.

    Of each cell: ``losses``, ``unsettled`` and ``skipped`` (updates,) as in ``transient.train``; ``looks``, the loss of
    the first batches in validation, before the first update and after every ``look_every``; ``validation`` and, of
    runs, ``test`` (batches,), and the parts ``validation_unsettled`` and ``test_unsettled`` of (window, layer) that
    were left without a steady state; ``seconds``, its part of those of all, and ``parameters``. The weights of seed 1
    are there as ``weight.0`` and so on.

    Windows and their order are those of the seed, for every row the same. With a ``checkpoint`` it goes on from there,
    and writes it after every look. Raises ``ValueError`` for cells of several rows or stages.
    """
    if len({(cell.stage, cell.row) for cell in its}) != 1:
        raise ValueError(f"its: expected cells of one row in one stage, got {list(its)}")
    row, stage = its[0].row, its[0].stage
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        parts, programs = text(design), _programs(row, design)
        updates = design.trial_updates if stage == "trial" else design.updates
        drawn = [np.random.default_rng([cell.seed, 1]) for cell in its]
        latest = len(parts.train) - design.length
        starts = np.stack([rng.integers(latest, size=(updates, design.batch)) for rng in drawn])
        sizes = np.array([cell.rate for cell in its], np.float32)[:, None] * training.rate_profile(updates)
        keys = jnp.stack([jax.random.fold_in(jax.random.key(cell.seed), 2) for cell in its])
        # Nothing is chosen by the test, and so nothing but runs sees it.
        names = ("validation", "test")[: 1 + (stage == "run")]
        held_out = {name: jnp.asarray(_windows(design, getattr(parts, name))) for name in names}
        few = held_out["validation"][:16]

        def advance(carried: Any, stretch: slice) -> tuple[Any, dict[str, Any]]:
            batches = parts.train[starts[:, stretch, :, None] + np.arange(design.length + 1)]
            steps = [jnp.asarray(batches), jnp.asarray(sizes[:, stretch]), keys, jnp.arange(updates)[stretch]]
            carried, course = programs.advance(carried, *steps)
            return carried, dict(zip(_COURSE, course, strict=True))

        def look(carried: Any) -> dict[str, Any]:
            return {"looks": np.asarray(programs.evaluate(carried[0], few)[0]).mean(axis=1)}

        began = [eqx.filter(_model(row, design, cell.seed), eqx.is_inexact_array) for cell in its]
        params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *began)
        numerics: dict[str, Any] = {"updates": updates, "every": design.look_every, "checkpoint": checkpoint}
        (params, _), course = transient.resumed((params, programs.begin(params)), advance, look, **numerics)
        course["seconds"] = np.repeat(course["seconds"][:, None] / len(its), len(its), axis=1)
        ends = {name: programs.evaluate(params, batches) for name, batches in held_out.items()}
        leaves = jax.tree.leaves(params)
        found: list[dict[str, np.ndarray]] = []
        for k, cell in enumerate(its):
            arrays = {name: values[:, k] for name, values in course.items()}
            for name, (losses, unsettled) in ends.items():
                arrays |= {name: np.asarray(losses[k]), f"{name}_unsettled": np.asarray(unsettled[k])}
            arrays["parameters"] = np.array(sum(leaf[k].size for leaf in leaves))
            if cell.seed == 1:
                arrays |= {f"weight.{j}": np.asarray(leaf[k]) for j, leaf in enumerate(leaves)}
            found.append(arrays)
        return found


def _entry(cell: Cell, arrays: Mapping[str, np.ndarray], design: Design) -> dict[str, Any]:
    """What the record says of a cell; a loss that is no number is None."""
    every = design.look_every
    losses = [arrays["losses"][k : k + every].astype(float).mean() for k in range(0, len(arrays["losses"]), every)]
    entry = cell._asdict() | {
        "validation": records.numbers(arrays["validation"].astype(float).mean(), 6),
        "skipped": records.numbers(arrays["skipped"].mean(), 4),
        "unsettled": records.numbers(arrays["validation_unsettled"].mean(), 4),
        "losses": records.numbers(losses, 4),
        "looks": records.numbers(arrays["looks"], 5),
        "seconds": records.numbers(np.median(arrays["seconds"]), 3),
        "parameters": int(arrays["parameters"]),
    }
    if cell.stage == "run":
        test = arrays["test"].astype(float)
        entry["test"] = records.numbers(test.mean(), 6)
        entry["test_error"] = records.numbers(test.std(ddof=1) / math.sqrt(len(test)), 3)
        entry["unsettled"] = records.numbers(arrays["test_unsettled"].mean(), 4)
    return entry


def _label(cell: Cell) -> str:
    return f"{cell.stage}-{cell.row.replace(' ', '-')}-{cell.rate:g}-{cell.seed}"


def _unfinished(folder: Path, cell: Cell) -> Path:
    return folder / "unfinished" / f"{_label(cell)}.npz"


def _together(its: Sequence[Cell], design: Design) -> list[list[Cell]]:
    """On an accelerator the cells of a row, which fill it; else every cell for itself."""
    if not design.accelerator:
        return [[cell] for cell in its]
    return [[cell for cell in its if cell.row == row] for row in dict.fromkeys(cell.row for cell in its)]


def _task(its: Sequence[Cell], design: Design, place: Path | None, identity: str) -> dict[str, np.ndarray]:
    where = None if place is None else Checkpoint(_unfinished(place, its[0]), f"{identity} {list(its)}")
    # As many as there are seeds, whatever is asked for, so that one compiled program serves trials and runs.
    width = len(design.seeds) if design.accelerator else 1
    padded = [*its, *[its[-1]] * (width - len(its))]
    found = train(padded, design, checkpoint=where)[: len(its)]
    return {f"{k}.{name}": values for k, arrays in enumerate(found) for name, values in arrays.items()}


def collect(
    ladder: Sequence[Design] = (SMOKE,), *, plan: str | os.PathLike[str], folder: Path | None = None, **options: Any
) -> dict[str, Any]:
    """The record, which is also written to ``depth.json.gz`` in ``folder``, anew with each cell that is done.

    A record that lies there is gone on with, at the last look of the cell that it was at if that was here. Every cell
    gets the SHA-256 of the file ``plan`` up to its heading "Changes" as it is trained. Sizes for an accelerator are
    left out where there is none, and if no size passes, the record ends with the ladder; it ends after the rows of the
    gate if that does not open. A ladder of one size is taken as it is. With the sample of the text, and on an
    accelerator, which is not to wait, rows are trained whatever the gate says. The weights of seed 1 are kept in the
    folder ``weights``. ``options`` are those of ``spinbook.sweep.iterate``. Raises ``ValueError`` for a record of
    another plan or ladder and for sizes that all need an accelerator where there is none, and ``FileNotFoundError``
    without plan or text.
    """
    begin, code, digest = time.perf_counter(), records.commit(), cells.digest(plan)
    if options.get("executor") is None:
        options["num_threads"] = 1
    version = sweep.code_version(train)
    head = {
        "format": 2,
        "plan": digest,
        "sizes": [size._asdict() for size in ladder],
        "data": {} if ladder[0].sample else {moby_dick.FILE.name: moby_dick.FILE.sha256},
    }
    before, found = ({}, {}) if folder is None else cells.begun(folder / _ARTIFACT, head)
    climbed: list[dict[str, Any]] = before.get("ladder", [])

    def written(design: Design, complete: bool) -> dict[str, Any]:
        guesses = np.bincount(text(design).train, minlength=len(moby_dick.ALPHABET)) + 1
        record = head | {
            "complete": complete,
            "ladder": climbed,
            "design": design._asdict(),
            "counting": count(design),
            "blind": float(-np.log(guesses / guesses.sum())[text(design).test].mean()),
            "runs": [found[cell] for cell in sorted(found)],
        }
        record |= records.circumstances(begin, code)
        if folder is not None:
            records.write(folder / _ARTIFACT, record)
        return record

    def keep(cell: Cell, arrays: Mapping[str, np.ndarray], design: Design) -> None:
        entry = _entry(cell, arrays, design) | {"plan": digest, "commit": code}
        if cell.stage == "ladder":
            behind = min(order["validation"] for order in count(design))
            ahead = None if entry["validation"] is None else behind - entry["validation"]
            climbed.append({"size": design.name, "ahead": ahead} | entry)
        else:
            found[cell] = entry
        if folder is not None:
            _unfinished(folder, cell).unlink(missing_ok=True)
            if cell.stage == "run" and cell.seed == 1:
                (folder / "weights").mkdir(exist_ok=True)
                weights = {name: value for name, value in arrays.items() if name.startswith("weight.")}
                np.savez(folder / "weights" / _label(cell), allow_pickle=False, **weights)
        written(design, complete=False)

    def stage(design: Design, name: str, its: Sequence[Cell]) -> None:
        missing = [cell for cell in its if cell not in found]
        identity = sweep.fingerprint([str(value) for value in design], version)
        task = partial(_task, design=design, place=folder, identity=identity)
        groups = _together(missing, design)
        threads = {"num_threads": 2} if design.accelerator and options.get("executor") is None else {}
        for k, arrays in sweep.iterate(task, groups, label=f"{design.name} {name}", **options | threads):
            for at, cell in enumerate(groups[k]):
                own = {key.split(".", 1)[1]: values for key, values in arrays.items() if key.startswith(f"{at}.")}
                keep(cell, own, design)

    def passed(design: Design) -> bool:
        if design.name not in [entry["size"] for entry in climbed]:
            stage(design, "ladder", [Cell("ladder", "vanilla", _LADDER_RATE, 0)])
        ahead = next(entry["ahead"] for entry in climbed if entry["size"] == design.name)
        return ahead is not None and bool(ahead > RESERVE)

    usable = [size for size in ladder if not size.accelerator or jax.default_backend() != "cpu"]
    if not usable:
        raise ValueError(f"ladder: expected a size for processors, or an accelerator, got {ladder[0].name} without one")
    design = usable[0] if len(ladder) == 1 else next((size for size in usable if passed(size)), None)
    if design is None:
        return written(usable[-1], complete=True)

    def part(name: str, names: Sequence[str]) -> None:
        cells.tuned(lambda step, its: stage(design, f"{name}-{step}", its), found, names, seeds=design.seeds)

    if design.accelerator:
        part("all", design.rows)
        return written(design, complete=True)
    part("gate", [row for row in design.rows if row in questions.GATE])
    others = [row for row in design.rows if row not in questions.GATE]
    if others and (design.sample or questions.gate(written(design, complete=False)).opened == "yes"):
        part("rows", others)
    return written(design, complete=True)


def recorded() -> dict[str, Any]:
    """The record as it was made on an accelerator, from the file beside this module; not complete, see the plan.

    Its ladder is that of the large size alone, and its runs are those of ``REGULARISED``.

    >>> recorded()["ladder"][0]["size"]
    'large'
    """
    return records.beside("experiments.depth", _ARTIFACT)
