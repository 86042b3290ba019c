"""The command of the recorded run of the lens."""

from __future__ import annotations

import argparse

from experiments import lens_record

__all__: list[str] = []


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.lens_record", description=lens_record.__doc__)
    parser.add_argument("--out", required=True, help="folder of the record and of its tasks")
    parser.add_argument("--plan", help="file whose SHA-256 is kept, book/plan-of-the-lens.md")
    parser.add_argument("--weights", help="folder of the network's files; else $SPINBOOK_DATA")
    parser.add_argument("--text", help="file of the text; else $SPINBOOK_DATA")
    parser.add_argument("--quick", action="store_true", help="few windows and steps, to see that everything works")
    given = parser.parse_args()
    sizes = lens_record.QUICK if given.quick else lens_record.FULL
    lens_record.collect(given.out, sizes=sizes, path=given.weights, text=given.text, plan=given.plan)


if __name__ == "__main__":
    _main()
