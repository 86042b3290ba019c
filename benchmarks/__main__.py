"""Print the table of all benchmarks: ``python -m benchmarks``. Exits with 1 if a result is not the baseline's.

``--record`` also measures peers, memory and exponents, and writes the record and the page of the book. ``--guard``
measures a few rows and compares their ratios with the record.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import jax
import torch

from benchmarks import (
    adaptive_tap,
    comparison,
    entropy_production,
    free_energy,
    gpu,
    ising,
    lens,
    measure,
    peers,
    rbm,
    record,
    scaling,
    self_attention,
    spin_transformer,
    table,
    with_memory,
)

# One module for each subject.
SUBJECTS = (
    rbm,
    ising,
    adaptive_tap,
    free_energy,
    spin_transformer,
    self_attention,
    entropy_production,
    comparison,
    lens,
)

# Hot paths whose ratios the whole check holds: cheap to measure, and compiled in a second or two.
GUARDED = (
    rbm.retrieve,
    ising.simulate,
    ising.tap,
    adaptive_tap.gaussian_response,
    free_energy.mean_spins_and_gradient,
    spin_transformer.forward,
    self_attention.sweep,
    entropy_production.vector_mean_field,
)
# How much slower than its record a path may be: other machines, other versions, other work beside.
SLACK = 2.0
# Seconds after which three repeats are enough.
LIMIT = 2.5


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _measured(makers, problems, *, memory=False):
    """Rows of names and timings, ``None`` for what failed."""
    rows = []
    for make in makers:
        benchmark = make()
        _say(f"{time.strftime('%H:%M:%S')} {benchmark.name}")
        try:
            timing = measure(benchmark, limit=LIMIT)
        except ValueError as problem:
            rows.append((benchmark.name, None))
            problems.append(str(problem))
        else:
            rows.append((benchmark.name, with_memory(benchmark, timing) if memory else timing))
    return rows


def guard(recorded, makers=GUARDED):
    """What has become slower than the record by more than the slack: one sentence each.

    By the clock and by processor time: other work beside, and threads that wait at full speed, each spoil one of them.
    """
    known = {row["name"]: row for row in recorded["rows"]}
    slow = []
    for make in makers:
        benchmark = make()
        if (row := known.get(benchmark.name)) is None:
            slow.append(f"{benchmark.name}: expected a row of the record, got none; run make bench RECORD=1")
            continue
        timing = measure(benchmark, repeats=3)
        _say(
            f"{benchmark.name}: {timing.ratio:.3g}, recorded {row['ratio']:.3g}; in processor time "
            f"{timing.processor_ratio:.3g}, recorded {row['processor_ratio']:.3g}"
        )
        if not max(timing.ratio / row["ratio"], timing.processor_ratio / row["processor_ratio"]) >= 1 / SLACK:
            slow.append(
                f"{benchmark.name}: expected at least {row['ratio'] / SLACK:.3g} times the baseline's speed, the "
                f"record's by a factor of {SLACK:g}, got {timing.ratio:.3g}"
            )
    return slow


def _parts():
    """What a record is made of, by name: what measures each subject, the peers."""
    parts = {subject.__name__.rpartition(".")[2]: subject.BENCHMARKS for subject in SUBJECTS}
    return parts | {"peers": peers.installed()}


def _recorded(only, missing, problems):
    """Measure the parts of these names, or all, into the record; what was measured.

    The record is written after every row, so that ``missing`` can go on where a run was stopped.
    """
    everything = [*_parts(), "scaling"]
    made = record.read() if record.RECORD.exists() else {"format": 1}
    if not (only or missing):
        # What was measured on a GPU stays: this is measured without one.
        made |= {"rows": [], "scaling": []}
    loads = made["machine"]["loads"] if only or missing else {}
    made["machine"] = record.machine()
    chosen = [name for name in everything if not only or name in only]
    # What was told of a part of the peers goes with it.
    loads = {part: value for part, value in loads.items() if part in everything or "peers" not in chosen}
    made["machine"]["loads"] = loads | dict.fromkeys(chosen, record.load())
    known = {row["name"] for row in made["rows"]} if missing else set()
    measured = []
    for name, makers in _parts().items():
        if only and name not in only:
            continue
        benchmarks = [make() for make in makers]
        # Rows that no benchmark has any more go.
        kept = known & {benchmark.name for benchmark in benchmarks}
        made["rows"] = [row for row in made["rows"] if row["subject"] != name or row["name"] in kept]
        benchmarks = [benchmark for benchmark in benchmarks if benchmark.name not in kept]
        for benchmark in benchmarks:
            rows = _measured([lambda benchmark=benchmark: benchmark], problems, memory=True)
            measured += rows
            made["rows"] += [record.entry(name, *row) for row in rows if row[1] is not None]
            made["rows"].sort(key=lambda row: everything.index(row["subject"]))
            record.write(made)
    if not only or "spin_transformer" in only:
        made["module"] = spin_transformer.products()
        record.write(made)
    if not only or "scaling" in only:
        paths = {(path.name, path.of): path for path in scaling.PATHS}
        done = {
            (row["name"], row["of"]): row for row in made["scaling"] if missing and (row["name"], row["of"]) in paths
        }
        for key, path in paths.items():
            if key not in done:
                _say(f"{time.strftime('%H:%M:%S')} {path.name}, {path.of}")
                done[key] = record.scaled(path, scaling.slope(path))
                made["scaling"] = [done[key] for key in paths if key in done]
                record.write(made)
    return measured


def _recorded_on_a_gpu(problems):
    """Measure what runs on a GPU and put it into the record, beside what was measured without one."""
    made = record.read()
    made["gpu"] = {"machine": record.machine() | {"name": torch.cuda.get_device_name()}, "rows": []}
    measured = []
    for name, makers in (("processors", gpu.BENCHMARKS), ("block", gpu.BESIDE_A_BLOCK)):
        for make in makers:
            rows = _measured([make], problems)
            measured += rows
            made["gpu"]["rows"] += [record.entry(name, *row) for row in rows if row[1] is not None]
            record.write(made)
    return measured


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="the library against plain baselines")
    known = [*_parts(), "scaling"]
    parser.add_argument("only", nargs="*", metavar="PART", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--record", action="store_true", help="with peers, memory and exponents; write record and page")
    parser.add_argument("--missing", action="store_true", help="with --record: only what the record lacks")
    parser.add_argument("--guard", action="store_true", help="compare a few ratios with the record")
    parser.add_argument("--gpu", action="store_true", help="time a GPU beside the processors, into record and page")
    options = parser.parse_args([] if arguments is None else arguments)
    if unknown := sorted(set(options.only) - set(known)):
        parser.error(f"PART: expected some of {', '.join(known)}, got {', '.join(unknown)}")
    if options.gpu and not (torch.cuda.is_available() and jax.default_backend() == "gpu"):
        parser.error("--gpu: expected a GPU that JAX and PyTorch can use, got none")
    # The baselines are in double precision, and so must ours be for the times to compare.
    jax.config.update("jax_enable_x64", True)
    problems: list[str] = []
    if options.guard:
        problems = guard(record.read())
        print("\n".join(problems) or f"{len(GUARDED)} ratios are within a factor of {SLACK:g} of the record")
        return 1 if problems else 0
    if options.gpu:
        # Single precision, and not the fewer digits that JAX takes for products on a GPU unless it is told.
        with jax.default_matmul_precision("highest"):
            rows = _recorded_on_a_gpu(problems)
    elif options.record:
        rows = _recorded(options.only, options.missing, problems)
    else:
        parts = _parts()
        chosen = options.only or [name for name in parts if name != "peers"]
        rows = _measured([make for name in chosen for make in parts.get(name, ())], problems)
    if rows:
        print(table(rows))
    where = f"{jax.default_backend()}, {os.cpu_count()} cores, jax {jax.__version__}"
    print(f"\nfloat64 unless said, on {where}; ratio = baseline / ours")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
