"""The depth experiment: a learning rate for each row, then its seeds, kept on disk as it goes. Judges nothing.

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
from spinbook import sweep
from spinbook.precision import enable_x64

__all__ = [
    "LADDER",
    "RESERVE",
    "SMOKE",
    "Design",
    "Text",
    "collect",
    "count",
    "text",
    "train",
]

_LADDER_RATE = 3e-3
RESERVE = 0.12
"""Nats per character by which a size is to pass in validation, for the gate to open in the test at its margin."""
_ORDERS = (1, 2, 3, 4, 5, 6)
_ARTIFACT = "depth.json.gz"
_COURSE = ("losses", "unsettled", "skipped")


@designs.record()
class Design(NamedTuple):
    """Sizes of the stacks and of their training, and the seeds that count. Trials make ``trial_updates``.

    ``accelerator``: whether this size is for one only.
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


LADDER = (
    Design("small", depth=2, dim=128, length=64, updates=8000, trial_updates=2000),
    Design("medium", depth=4, dim=128, length=64, updates=10000, trial_updates=2500),
    Design("large", depth=6, dim=256, length=128, updates=24000, trial_updates=6000, accelerator=True),
)
"""The sizes of the plan, in the order in which they are tried."""
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

    >>> [found["order"] for found in count(SMOKE)]
    [1, 2, 3, 4, 5, 6]
    """
    parts, found = text(design), []
    for order in _ORDERS:
        model = kneser_ney.counted(parts.train, order, num_symbols=len(moby_dick.ALPHABET))
        losses = {}
        for name in ("validation", "test"):
            held_out = getattr(parts, name)
            # The first window has nothing before its second half but its first, and the last ends with its targets.
            first, last = design.length - design.length // 2, _starts(design, held_out)[-1] + design.length
            scored = held_out[first + 2 - order : last + 1]
            losses[name] = float(kneser_ney.losses(model, scored).mean())
        found.append({"order": order, **losses})
    return found


class _Programs(NamedTuple):
    """Compiled once for a row of a design, and shared by all rates and seeds."""

    begin: Callable[[Any], Any]
    advance: Callable[..., Any]
    evaluate: Callable[..., Any]


def _model(row: str, design: Design, seed: int) -> transient.LanguageModel:
    return rows.made(row, design.depth, design.dim, design.num_heads, key=jax.random.key(seed))


@cache
def _programs(row: str, design: Design) -> _Programs:
    rest = eqx.partition(_model(row, design, 0), eqx.is_inexact_array)[1]
    clip, adam = optax.clip_by_global_norm(1.0), optax.scale_by_adam(b1=0.9, b2=0.99)
    optimizer = optax.chain(clip, adam, optax.add_decayed_weights(0.01))
    use, half = rows.use(row), design.length - design.length // 2

    def logits(params: Any, windows: Array) -> tuple[Array, Array]:
        return jax.vmap(partial(eqx.combine(params, rest), use=use))(windows[:, :-1])

    def loss(params: Any, windows: Array, first: int) -> tuple[Array, Array]:
        found, unsettled = logits(params, windows)
        losses = optax.softmax_cross_entropy_with_integer_labels(found[:, first:], windows[:, 1 + first :])
        return jnp.mean(losses), jnp.mean(unsettled.astype(jnp.float32))

    @jax.jit
    def advance(start: Any, batches: Array, sizes: Array) -> Any:
        def update(carried: Any, now: tuple[Array, Array]) -> Any:
            params, state = carried
            windows, size = now
            (value, unsettled), gradient = jax.value_and_grad(partial(loss, first=0), has_aux=True)(params, windows)
            change, new_state = optimizer.update(gradient, state, params)
            new = jax.tree.map(lambda a, b: a - size * b, params, change), new_state
            fine = jnp.isfinite(optax.global_norm(gradient))
            return jax.tree.map(partial(jnp.where, fine), new, carried), (value, unsettled, ~fine)

        return jax.lax.scan(update, start, (batches, sizes))

    @jax.jit
    def evaluate(params: Any, batches: Array) -> Any:
        return jax.lax.map(partial(loss, params, first=half), batches)

    return _Programs(jax.jit(optimizer.init), advance, evaluate)


def train(cell: Cell, design: Design, *, checkpoint: Checkpoint | None = None) -> dict[str, np.ndarray]:
    """One training from its seed, and its losses on the held-out parts.

    ``losses``, ``unsettled`` and ``skipped`` (updates,) as in ``transient.train``; ``looks``, the loss of the first
    batches in validation, before the first update and after every ``look_every``; ``validation`` and, of runs, ``test``
    (batches,), and the parts ``validation_unsettled`` and ``test_unsettled`` of (window, layer) that were left without
    a steady state; ``seconds`` and ``parameters``. The weights of seed 1 are there as ``weight.0`` and so on.

    Windows and their order are those of the seed, for every row the same. With a ``checkpoint`` it goes on from there,
    and writes it after every look.
    """
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        parts, programs = text(design), _programs(cell.row, design)
        updates = design.trial_updates if cell.stage == "trial" else design.updates
        rng = np.random.default_rng([cell.seed, 1])
        starts = rng.integers(len(parts.train) - design.length, size=(updates, design.batch))
        sizes = np.float32(cell.rate) * training.rate_profile(updates)
        # Nothing is chosen by the test, and so nothing but runs sees it.
        names = ("validation", "test")[: 1 + (cell.stage == "run")]
        held_out = {name: jnp.asarray(_windows(design, getattr(parts, name))) for name in names}
        few = held_out["validation"][:16]

        def advance(carried: Any, stretch: slice) -> tuple[Any, dict[str, Any]]:
            batches = parts.train[starts[stretch][..., None] + np.arange(design.length + 1)]
            carried, course = programs.advance(carried, jnp.asarray(batches), jnp.asarray(sizes[stretch]))
            return carried, dict(zip(_COURSE, course, strict=True))

        def look(carried: Any) -> dict[str, Any]:
            return {"looks": float(jnp.mean(programs.evaluate(carried[0], few)[0]))}

        params = eqx.filter(_model(cell.row, design, cell.seed), eqx.is_inexact_array)
        numerics: dict[str, Any] = {"updates": updates, "every": design.look_every, "checkpoint": checkpoint}
        (params, _), found = transient.resumed((params, programs.begin(params)), advance, look, **numerics)
        for name, batches in held_out.items():
            losses, unsettled = programs.evaluate(params, batches)
            found |= {name: np.asarray(losses), f"{name}_unsettled": np.asarray(unsettled)}
        leaves = jax.tree.leaves(params)
        found["parameters"] = np.array(sum(leaf.size for leaf in leaves))
        if cell.seed == 1:
            found |= {f"weight.{k}": np.asarray(leaf) for k, leaf in enumerate(leaves)}
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


def _task(cell: Cell, design: Design, place: Path | None, identity: str) -> dict[str, np.ndarray]:
    return train(cell, design, checkpoint=None if place is None else Checkpoint(_unfinished(place, cell), identity))


def collect(
    ladder: Sequence[Design] = (SMOKE,), *, plan: str | os.PathLike[str], folder: Path | None = None, **options: Any
) -> dict[str, Any]:
    """The record, which is also written to ``depth.json.gz`` in ``folder``, anew with each cell that is done.

    A record that lies there is gone on with, at the last look of the cell that it was at if that was here. Every cell
    gets the SHA-256 of the file ``plan`` up to its heading "Changes" as it is trained. Sizes for an accelerator are
    left out where there is none, and if no size passes, the record ends with the ladder; it ends after the rows of the
    gate if that does not open. A ladder of one size is taken as it is, and with the sample of the text the gate is,
    too. The weights of seed 1 are kept in the folder ``weights``. ``options`` are those of ``spinbook.sweep.iterate``.
    Raises ``ValueError`` for a record of another plan or ladder, and ``FileNotFoundError`` without plan or text.
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
        for k, arrays in sweep.iterate(task, missing, label=f"{design.name} {name}", **options):
            keep(missing[k], arrays, design)

    def passed(design: Design) -> bool:
        if design.name not in [entry["size"] for entry in climbed]:
            stage(design, "ladder", [Cell("ladder", "vanilla", _LADDER_RATE, 0)])
        ahead = next(entry["ahead"] for entry in climbed if entry["size"] == design.name)
        return ahead is not None and bool(ahead > RESERVE)

    usable = [size for size in ladder if not size.accelerator or jax.default_backend() != "cpu"]
    design = usable[0] if len(ladder) == 1 else next((size for size in usable if passed(size)), None)
    if design is None:
        return written(usable[-1], complete=True)

    def part(name: str, names: Sequence[str]) -> None:
        cells.tuned(lambda step, its: stage(design, f"{name}-{step}", its), found, names, seeds=design.seeds)

    part("gate", [row for row in design.rows if row in questions.GATE])
    others = [row for row in design.rows if row not in questions.GATE]
    if others and (design.sample or questions.gate(written(design, complete=False)).opened == "yes"):
        part("rows", others)
    return written(design, complete=True)
