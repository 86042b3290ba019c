"""``python -m experiments.comparison``: a quick comparison in minutes, or with ``--full`` or ``--longer`` a record."""

from __future__ import annotations

import argparse
import os

import torch

from experiments.comparison.experiment import FULL, LONGER, QUICK, compare

__all__ = ["main"]


def main() -> None:
    """Parse the arguments and run; an interrupted run goes on where it was when called again."""
    parser = argparse.ArgumentParser(prog="python -m experiments.comparison", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all seeds and all updates: about an hour on one core")
    parser.add_argument(
        "--longer", action="store_true", help="some modules on digits, five times as long: a quarter of an hour"
    )
    parser.add_argument(
        "--out", required=True, help="folder of the cells and of comparison.json.gz; resumed if it exists"
    )
    parser.add_argument("--module", action="append", help="this module only; may be given again")
    arguments = parser.parse_args()
    # One core for both frameworks: what is compared is work, not how it is spread, and sums that are spread round
    # differently, so that a record can be repeated to the last digit on one core only.
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    plan = LONGER if arguments.longer else FULL if arguments.full else QUICK
    plan = plan._replace(modules=tuple(arguments.module)) if arguments.module else plan
    compare(plan, folder=arguments.out, progress=True)


if __name__ == "__main__":
    main()
