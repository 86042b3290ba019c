"""``python -m experiments``: list the sweeps of the book, or run some, on threads, processes or a cluster."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from experiments.published import SWEEPS, compute

__all__ = ["main"]


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number > 0, got {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected an integer >= 1, got {text}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("list", help="the sweeps of the book (also what happens without a command)")
    run = commands.add_parser(
        "run",
        help="run some of them",
        description="Run sweeps. What was interrupted goes on when the same command is given again.",
    )
    run.add_argument("names", nargs="+", metavar="NAME", help="as listed; paper: the paper's diagrams; all: everything")
    run.add_argument("--out", type=Path, required=True, help="folder of the results and of the tasks that are done")
    run.add_argument("--quick", action="store_true", help="few values and few steps, to try it")
    run.add_argument("--time-limit", type=_positive, metavar="SECONDS", help="a task that takes longer has failed")
    where = run.add_mutually_exclusive_group()
    where.add_argument("--threads", type=_count, metavar="N", help="threads (default: one per processor)")
    where.add_argument("--processes", type=_count, metavar="N", help="processes")
    where.add_argument("--scheduler", metavar="ADDRESS", help="a dask scheduler, such as tcp://host:8786")
    for name, what in (("depth", "the plan of depth"), ("mnist", "the plan of MNIST")):
        planned = commands.add_parser(
            name,
            help=f"run the experiment of {what}",
            description=f"Train the stacks of {what}. What was interrupted goes on with the same command.",
        )
        planned.add_argument("--out", type=Path, required=True, help="folder of the record and of the cells")
        planned.add_argument(
            "--plan", type=Path, required=True, metavar="FILE", help=f"whose SHA-256 is kept: book/plan-of-{name}.md"
        )
        planned.add_argument("--quick", action="store_true", help="small stacks on a sample of the data, to try it")
        if name == "depth":
            planned.add_argument("--processes", type=_count, metavar="N", help="as many cells side by side")
            planned.add_argument(
                "--regularised", action="store_true", help="the large size with dropped weights, on an accelerator"
            )
    return parser


@contextlib.contextmanager
def _executor(processes: int | None, scheduler: str | None) -> Iterator[Executor | None]:
    if processes is not None:
        from spinbook.sweep import Processes

        with Processes(processes) as executor:
            yield executor
    elif scheduler is not None:
        try:
            from distributed import Client
        except ModuleNotFoundError as error:
            raise ValueError(f"--scheduler: {error}") from None
        with Client(scheduler) as client:
            yield client.get_executor()
    else:
        yield None


def _depth(options: argparse.Namespace) -> None:
    from experiments.depth import experiment, questions

    ladder = (experiment.SMOKE,) if options.quick else experiment.LADDER
    if options.regularised:
        full = experiment.REGULARISED
        quick = experiment.SMOKE._replace(dropped=full.dropped, replaced=full.replaced)
        ladder = (quick if options.quick else full,)
    options.out.mkdir(parents=True, exist_ok=True)
    with _executor(options.processes, None) as executor:
        record = experiment.collect(ladder, plan=options.plan, folder=options.out, executor=executor, progress=True)
    print(f"plan: SHA-256 {record['plan']}")
    if not record["runs"]:
        print("no size passed")
        return
    print(f"gate: {questions.gate(record).opened}")
    _answer(questions.answers(record), "nats")


def _mnist(options: argparse.Namespace) -> None:
    from experiments.depth import mnist

    options.out.mkdir(parents=True, exist_ok=True)
    design = mnist.SMOKE if options.quick else mnist.ALL
    record = mnist.collect(design, plan=options.plan, folder=options.out, progress=True)
    print(f"plan: SHA-256 {record['plan']}")
    if not options.quick:
        _answer(mnist.answers(record), "of the images")


def _answer(findings: Iterable[Any], unit: str) -> None:
    for answer in findings:
        difference = f"{answer.difference.mean:+.4f} {unit}"
        print(f"{answer.row}, {answer.question}: {answer.decision} ({difference}, p = {answer.p:.2g})")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments and list or run; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.command not in ("run", "depth", "mnist"):
        for sweep in SWEEPS:
            print(f"{sweep.name:45} {sweep.minutes:5.1f} min  {sweep.summary}")
        print("\nMinutes are those of one core, roughly. python -m experiments run NAME --out FOLDER")
        return 0
    try:
        if options.command in ("depth", "mnist"):
            {"depth": _depth, "mnist": _mnist}[options.command](options)
            return 0
        with _executor(options.processes, options.scheduler) as executor:
            compute(
                options.names,
                options.out,
                quick=options.quick,
                executor=executor,
                num_threads=options.threads,
                time_limit=options.time_limit,
            )
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    except ExceptionGroup as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
