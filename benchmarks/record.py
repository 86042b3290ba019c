"""The record of a run of all benchmarks, ``record.json`` beside this file, and the page that is made of it.

What counts are ratios and exponents; seconds stand for the kind of machine that the record names in general words.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from benchmarks import Timing, middle
from benchmarks.scaling import Path as Scaled
from benchmarks.scaling import Slope

__all__ = ["GOALS", "PAGE", "RECORD", "RECORDED_RATES", "entry", "load", "machine", "page", "read", "scaled", "write"]

RECORD = Path(__file__).parent / "record.json"
PAGE = Path(__file__).parents[1] / "book" / "benchmarks.md"

# Measured with the authors' public code on two cores of 2.5 GHz, another machine than that of the record: seconds, or
# where it is said, rates. With the row to read beside it.
RECORDED_RATES = (
    ("self-attention map, no exponents", "2,200 steps a second", "bifurcation, 64 betas x 600 steps"),
    ("self-attention map, any exponents", "50 steps a second", "all 12 exponents, 32 betas"),
    ("spin transformer (1, 512, 512), 8 heads, forward", "0.304 s", "SpinTransformerModule, (1, 512, 512)"),
    ("the same with backward", "1.96 s", "SpinTransformerModule, (1, 512, 512)"),
    ("depth 6, forward and backward", "11.9 s", "SpinTransformer, depth 6"),
    ("approximate free energy (8, 64, 64), both ways", "0.110 s", "mean spins and gradient, 8 x 64 spins x 64"),
    ("adaptive TAP, Gaussian (4, 16, 8), both ways", "0.1185 s", "Gaussian response and gradient, 4 x 16 spins x 8"),
    ("kinetic Ising, 512 spins, 1024 replicas", "54,000 to 65,000 replica-steps a second", "ising.stochastic.simulate"),
)


# What the library is meant to reach: rows whose name holds the first, and how many times as fast they should be.
GOALS = (
    ("exponents of one orbit", 2.0),
    ("exponents of 64 orbits", 10.0),
    ("SpinTransformerModule, (1, 512, 512), 8 heads, forward, float32", 1 / 1.5),
    ("neqnn", 1.0),
)


_AUTHORS_MODULE = """

For `relaxation` the module of the authors' package `neqnn` (commit 647554e), with the same weights, a learned start,
rotary positions, a feed-forward network and a causal mask, after $K$ updates or in its steady state; values and
gradients agree."""


def _round(x: float, digits: int = 3) -> float:
    return float(f"{x:.{digits}g}")


def entry(subject: str, name: str, timing: Timing) -> dict[str, Any]:
    """One row of the record."""
    least, most = middle(timing.ratios)
    row: dict[str, Any] = {
        "subject": subject,
        "name": name,
        "ratio": _round(timing.ratio),
        "least": _round(least),
        "most": _round(most),
        "processor_ratio": _round(timing.processor_ratio),
        "seconds": [_round(timing.ours, 2), _round(timing.baseline, 2)],
    }
    return row | ({} if timing.memory is None else {"megabytes": [round(x / 1e6, 1) for x in timing.memory]})


def scaled(path: Scaled, slope: Slope) -> dict[str, Any]:
    """One measured exponent of the record."""
    row: dict[str, Any] = {"name": path.name, "of": path.of, "sizes": list(path.sizes), "expected": path.expected}
    exponents = {key: round(getattr(slope, key), 2) for key in ("exponent", "least", "most")}
    return row | exponents | {"seconds": [_round(x, 2) for x in slope.seconds]}


def load() -> float:
    """How many processors were busy in the last minute."""
    return round(os.getloadavg()[0], 1)


def machine() -> dict[str, Any]:
    """The kind of machine in general words, and the versions that matter."""
    versions = {name: importlib.metadata.version(name) for name in ("jax", "numba", "numpy", "torch")}
    for name in ("chaotax", "lyapax", "neqnn"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "processors": os.cpu_count(),
        "architecture": platform.machine(),
        "device": jax.default_backend(),
        "versions": versions,
    }


def write(record: Mapping[str, Any]) -> None:
    """The record, and the page from it."""
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")


def read() -> dict[str, Any]:
    """The committed record."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def _seconds(x: float) -> str:
    value, unit = (x, "s") if x >= 1 else (1e3 * x, "ms") if x >= 1e-3 else (1e6 * x, "µs")
    return f"{float(f'{value:.2g}'):g} {unit}"


def _megabytes(x: float) -> str:
    return f"{x:.0f}" if x >= 1 else "< 1"


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| What, at which size | times faster | from, to | processor time | ours, baseline | memory |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        memory = ", ".join(map(_megabytes, row["megabytes"])) + " MB" if "megabytes" in row else ""
        spread = f"{row['least']:.3g}, {row['most']:.3g}"
        ours, baseline = map(_seconds, row["seconds"])
        lines.append(
            f"| {row['name']} | {row['ratio']:.3g} | {spread} | {row['processor_ratio']:.3g} | {ours}, {baseline} | "
            f"{memory} |"
        )
    return "\n".join(lines)


def _exponents(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| What | number of | sizes | exponent | from, to | expected | processor time at these sizes |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        sizes = ", ".join(map(str, row["sizes"]))
        spread = f"{row['least']:.2f}, {row['most']:.2f}"
        seconds = ", ".join(map(_seconds, row["seconds"]))
        lines.append(
            f"| {row['name']} | {row['of']} | {sizes} | {row['exponent']:.2f} | {spread} | {row['expected']:g} | "
            f"{seconds} |"
        )
    return "\n".join(lines)


def _listed(rows: Sequence[Mapping[str, Any]], none: str) -> str:
    if not rows:
        return none
    return "\n".join(
        f"- {row['name']}: {row['ratio']:.3g} times as fast ({row['least']:.3g} to {row['most']:.3g})" for row in rows
    )


def _goals(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| What | goal | by the clock | processor time | |", "|---|---:|---:|---:|---|"]
    for part, goal in GOALS:
        for row in rows:
            if part in row["name"]:
                ratios = row["ratio"], row["processor_ratio"]
                reached = "reached" if min(ratios) >= goal else "not reached"
                lines.append(f"| {row['name']} | {goal:.2g} | {ratios[0]:.3g} | {ratios[1]:.3g} | {reached} |")
    return "\n".join(lines)


def _floor(record: Mapping[str, Any]) -> str:
    """Why a module of spins takes longer than a block, from the count of its products and its measured ratio."""
    forward = next((row for row in record["rows"] if GOALS[2][0] in row["name"]), None)
    if forward is None or "module" not in record:
        # A record that is being made, of which the page shows what is there.
        return ""
    evaluations, (ours, block) = record["module"]["evaluations"], record["module"]["products"]
    return rf"""A module of spins at second order cannot be as fast as a vanilla block. At this size its solver
evaluates the right side of the equation {evaluations} times, each time with three products of $N^2 D$ multiplications:
what the spins receive, the overlaps $\sum_k J^k_{{ij}} \theta^k_i \cdot m^k_j$, and what these send. With queries,
keys and logits these are {ours / 1e9:.2f} billion multiplications; those of the block are {block / 1e9:.2f} billion. If
nothing but products took time, the module would take {ours / block:.2f} blocks. It took {1 / forward["ratio"]:.2f}: the
rest goes to passes over the couplings of all heads, 8 MB, between those products, and to the solver's own vectors."""


def _busy(loads: Mapping[str, float]) -> str:
    """How many processors had other work when the parts of the record were measured."""
    groups: dict[float, list[str]] = {}
    for part, value in loads.items():
        groups.setdefault(value, []).append(part)
    usual = max(groups, key=lambda value: len(groups[value]))
    others = [f"{value} for {', '.join(parts)}" for value, parts in groups.items() if value != usual]
    return f"{usual}" + (f" ({'; '.join(others)})" if others else "")


def _on_a_gpu(gpu: Mapping[str, Any] | None) -> str:
    if gpu is None:
        return "\nNo GPU has been measured: what runs on one is tested there against the CPU, but not timed.\n"
    where, kinds = gpu["machine"], ("processors", "block")
    versions = ", ".join(f"{name} {where['versions'][name]}" for name in ("jax", "torch"))
    beside, block = ([row for row in gpu["rows"] if row["subject"] == kind] for kind in kinds)
    return f"""
## On a GPU

The same functions on a GPU ({where["name"]}) and on the {where["processors"]} processors beside it, in turns as above
({versions}). Products of single precision keep all of its digits, where JAX by itself takes fewer on such a GPU.
Results agree within what rounding allows.

{_pairs(beside, "GPU, processors")}

A GPU pays where products are large. The steps of one orbit of the self-attention map are small and wait for each other,
and a processor takes them faster.

One input alone gains less, and a module of spins less than a vanilla block: the module evaluates its equation several
times, one after the other. Beside a block, both on the GPU, it is further behind than on the processors of the rows
above:

{_pairs(block, "module, block")}
"""


def _pairs(rows: Sequence[Mapping[str, Any]], sides: str) -> str:
    lines = [f"| What, at which size | times faster | from, to | {sides} |", "|---|---:|---:|---:|"]
    for row in rows:
        ours, baseline = map(_seconds, row["seconds"])
        spread = f"{row['least']:.3g}, {row['most']:.3g}"
        lines.append(f"| {row['name']} | {row['ratio']:.3g} | {spread} | {ours}, {baseline} |")
    return "\n".join(lines)


def page(record: Mapping[str, Any]) -> str:
    """The page of the book, as MyST Markdown."""
    where = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    cpu = where["device"] == "cpu"
    kind = "without a GPU" if cpu else f"computing on its {where['device']}"
    theirs = _AUTHORS_MODULE if any(row["name"].endswith("neqnn") for row in record["rows"]) else ""
    recorded = "\n".join(f"| {what} | {rate} | {row} |" for what, rate, row in RECORDED_RATES)
    peers = [row for row in record["rows"] if row["subject"] == "peers"]
    plain = [row for row in record["rows"] if row["subject"] != "peers"]
    slower = [row for row in record["rows"] if row["most"] < 1]
    even = [row for row in record["rows"] if row["least"] <= 1 <= row["most"]]
    return f"""(benchmarks)=
# Benchmarks

How fast the library is beside plain programs that compute the same numbers, beside other packages, and beside the
authors' own code. This page is made of a record, `benchmarks/record.json`, by `make bench RECORD=1`, which measures
everything anew but the rows on a GPU; `python -m benchmarks --gpu` measures those where there is one. Each pair runs in
one process and in turns, so that a busy machine slows both, and is only timed if the two results agree; what is
compiled is compiled before. Each runs 25 times, or as often as two and a half seconds allow but at least three times,
and the ratio of the medians counts. Seconds depend on the machine: here
{where["processors"]} processors ({where["architecture"]}), {kind}; {versions}.
The load before a measurement began, which is the number of other processes that wanted a processor, was
{_busy(where["loads"])}.

## Where the library is not faster

Slower by the clock, with *from* and *to* as below:

{_listed(slower, "Nothing.")}

Not to be told from the baseline's speed:

{_listed(even, "Nothing.")}

The rows of `SpinTransformerModule` and `SpinTransformer` compare two models and not two programs, see below.

What was to be reached, as ratios that count by the clock and in processor time:

{_goals(record["rows"])}

{_floor(record)}

## Beside plain programs

A ratio above one says that the library is faster. The baselines are loops in NumPy, SciPy or PyTorch, or the library's
own readable definition in JAX, as the names say. For `spin_transformer.SpinTransformerModule` and `SpinTransformer` the
comparison is with a vanilla transformer block of the same sites, components and heads, which is another and cheaper
model: a ratio of one half means that the physical module takes two blocks' time. Between *from* and *to* lies the true
median in 15 of 16 cases; where only three repeats were possible, in three of four. *Processor time* is the
ratio in seconds of all processors together, and *memory* is by how much one call raises the memory of the process, ours
and the baseline's, in megabytes; it is empty where it was not measured.

{_rows(plain)}

## Beside other packages

For the exponents the same map, the same number of steps $T$ and the same interval between orthonormalisations, so that
the error is the same too: the spectra agree within $20 / T$, where both are off by a bounded factor's logarithm over
$T$ because they start with other tangents. For the module PyTorch's own encoder layer, which is another model.{theirs}

{_rows(peers)}
{_on_a_gpu(record.get("gpu"))}
## How time grows

The slope of the logarithm of processor time against that of a size, fitted to the medians of five rounds, beside the
exponent that the number of operations has for large sizes. *From, to* are the extremes of the slopes of single rounds.
Slopes lie below the expected one where parts of lower order, or the cost of a call, still count at these sizes: where
the slope is one short, the growing part is not yet what takes the time.

{_exponents(record["scaling"])}

## What the authors' code took

Measured in preparation of this book with the authors' public programs, on a shared machine with two cores of 2.5 GHz.
These seconds are not of the machine above; only orders of magnitude should be compared with the rows named.

| What | recorded | row above |
|---|---|---|
{recorded}

## Compiling

The first call of a function with new shapes compiles it: seconds with JAX, a few seconds for the numba kernel of the
self-attention map and each combination of features, window and sign classes. The library logs the latter under the name
`spinbook` at level INFO. What JAX compiles can be kept between processes by its persistent cache:

```bash
export JAX_COMPILATION_CACHE_DIR=~/.cache/jax
```

## What is guarded

`python -m benchmarks --guard` measures a few of these rows again, and fails if a ratio has fallen below half of what
the record says, by the clock and in processor time; the whole check runs it.
"""
