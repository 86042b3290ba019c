"""The command of the recorded run of the lens."""

from __future__ import annotations

import argparse

from experiments import lens_record
from experiments.lens_record import causal, metric, reaction, runs, spins

__all__: list[str] = []


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.lens_record", description=lens_record.__doc__)
    parser.add_argument(
        "--network",
        choices=["encoder", "causal", "spins", "order", "reaction", "metric"],
        default="encoder",
        help="causal is trained first",
    )
    parser.add_argument("--out", required=True, help="folder of the record and of its tasks")
    parser.add_argument("--plan", help="file whose SHA-256 is kept, book/plan-of-the-lens.md")
    parser.add_argument("--weights", help="folder of the encoder's files; else $SPINBOOK_DATA")
    parser.add_argument("--text", help="file of the text for the encoder; else $SPINBOOK_DATA")
    parser.add_argument("--quick", action="store_true", help="few windows and steps, to see that everything works")
    given = parser.parse_args()
    sizes = runs.QUICK if given.quick else runs.FULL
    if given.network == "causal":
        causal.collect(given.out, sizes=sizes, plan=given.plan)
    elif given.network == "order":
        spins.collect_order(given.out, path=given.weights, text=given.text, plan=given.plan)
    elif given.network in (others := {"spins": spins, "reaction": reaction, "metric": metric}):
        others[given.network].collect(given.out, path=given.weights, text=given.text, plan=given.plan)
    else:
        runs.collect(given.out, sizes=sizes, path=given.weights, text=given.text, plan=given.plan)


if __name__ == "__main__":
    _main()
