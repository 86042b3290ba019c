"""Time all benchmarks and print their table: ``python -m benchmarks``; ``--record`` writes it into the book.

Exits with 1 if a result is not that of its baseline.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import jax
import torch

from benchmarks import (
    Timing,
    adaptive_tap,
    entropy_production,
    free_energy,
    ising,
    lens,
    measure,
    rbm,
    self_attention,
    spin_transformer,
)

SUBJECTS = (rbm, ising, adaptive_tap, free_energy, spin_transformer, self_attention, entropy_production, lens)
PAGE = Path(__file__).resolve().parents[1] / "book" / "benchmarks.md"
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"


def table(rows: dict[str, Timing]) -> str:
    """The rows as a table in Markdown."""
    lines = ["| benchmark | ours, s | baseline, s | ratio | quartiles |", "|---|---:|---:|---:|---:|"]
    for name, timing in rows.items():
        quartiles = f"{timing.low:.3g} to {timing.high:.3g}"
        lines.append(f"| {name} | {timing.ours:.2g} | {timing.baseline:.2g} | {timing.ratio:.3g} | {quartiles} |")
    return "\n".join(lines)


def main() -> int:
    """Measure, print, and record if that is asked for; returns the status."""
    parser = argparse.ArgumentParser(description="Time the library against plain baselines.")
    parser.add_argument("--record", action="store_true", help="write the table into book/benchmarks.md")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    rows, failed = {}, False
    for subject in SUBJECTS:
        for make in subject.BENCHMARKS:
            benchmark = make()
            try:
                rows[benchmark.name] = measure(benchmark)
            except ValueError as error:
                print(error, file=sys.stderr)
                failed = True
            # Compiled programs of the last benchmark are of no use to the next one.
            jax.clear_caches()
    print(table(rows))
    if options.record and not failed:
        versions = f"jax {jax.__version__}, torch {torch.__version__}, {platform.machine()}"
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        content = f"{before}{BEGIN}\n\n{table(rows)}\n\nMeasured with {versions}.\n\n{END}{rest.partition(END)[2]}"
        PAGE.write_text(content, encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
