"""Print the table of all benchmarks: ``python -m benchmarks``. Exits with 1 if a result is not the baseline's."""

from __future__ import annotations

import os
import sys

import jax

from benchmarks import (
    adaptive_tap,
    comparison,
    entropy_production,
    free_energy,
    ising,
    measure,
    rbm,
    self_attention,
    spin_transformer,
    table,
)

# One module for each subject.
SUBJECTS = (rbm, ising, adaptive_tap, free_energy, spin_transformer, self_attention, entropy_production, comparison)


def main() -> int:
    # The baselines are in double precision, and so must ours be for the times to compare.
    jax.config.update("jax_enable_x64", True)
    rows, problems = [], []
    for make in (make for subject in SUBJECTS for make in subject.BENCHMARKS):
        benchmark = make()
        try:
            rows.append((benchmark.name, measure(benchmark)))
        except ValueError as problem:
            rows.append((benchmark.name, None))
            problems.append(str(problem))
    print(table(rows))
    where = f"{jax.default_backend()}, {os.cpu_count()} cores, jax {jax.__version__}"
    print(f"\nfloat64 unless said, on {where}; ratio = baseline / ours")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
