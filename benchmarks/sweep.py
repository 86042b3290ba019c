"""What the engine of sweeps costs: ``python -m benchmarks.sweep``. Wants an idle machine; takes some four minutes.

Two numbers for each kind of executor. How many times faster two workers are than one, with the orbits of a diagram, in
turns: the results have to be the same to the last bit. And what a task costs beside its own time, in processor seconds
of the process that calls, which is the only place where a sweep of many workers queues; for dask that process holds
the scheduler too. W workers stay busy as long as a task takes at least W times that.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spinbook import sweep
from spinbook.self_attention import bifurcation, paper_network
from spinbook.self_attention.bifurcations import EXPONENTS_ONLY

__all__ = ["KINDS", "efficiency", "overhead"]


@contextmanager
def threads(number: int) -> Iterator[dict[str, Any]]:
    """Options of a sweep in the threads of this process."""
    yield {"num_threads": number}


@contextmanager
def processes(number: int) -> Iterator[dict[str, Any]]:
    """Options of a sweep in processes that may die."""
    with sweep.Processes(number) as executor:
        yield {"executor": executor}


@contextmanager
def dask(number: int) -> Iterator[dict[str, Any]]:
    """Options of a sweep on a cluster of processes; its scheduler runs in a thread of this one."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=number, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        executor: Executor = client.get_executor()
        yield {"executor": executor}


KINDS: dict[str, Callable[[int], Any]] = {"threads": threads, "processes": processes, "dask": dask}


def _diagram(size: int, steps: int, **options: Any) -> Any:
    return bifurcation(
        paper_network(),
        np.linspace(1.2, 4.0, size),
        start=None,
        steps=steps,
        transient=100,
        num_exponents=1,
        observation=EXPONENTS_ONLY,
        lanes_per_task=32,
        **options,
    )


def efficiency(kind: str, *, size: int = 640, steps: int = 200_000, repeats: int = 5) -> list[float]:
    """Seconds of one worker over those of two, of the same ``size`` orbits, once for every repeat.

    Both sets of workers are there all the time and take turns, so that a busy machine slows both.

    Raises
    ------
    ValueError
        if two workers find other numbers than one.
    """
    with ExitStack() as stack:
        options = [stack.enter_context(KINDS[kind](number)) for number in (1, 2)]
        run = partial(_diagram, size, steps)
        # The first round starts the processes and loads the library in each.
        first = [run(**one) for one in options]
        if not first[0].identical(first[1]):
            raise ValueError(f"{kind}: expected the same bits of one worker and of two, got others")
        ratios = []
        for _ in range(repeats):
            seconds = []
            for one in options:
                begun = time.perf_counter()
                run(**one)
                seconds.append(time.perf_counter() - begun)
            ratios.append(seconds[0] / seconds[1])
    return ratios


def nothing(size: int, task: int) -> dict[str, np.ndarray]:
    """``size`` bytes that cost nothing; the task is in them."""
    return {"x": np.full(max(size // 8, 1), task, np.float64)}


def overhead(kind: str, *, num_bytes: int, num_tasks: int = 1000) -> float:
    """Processor seconds of this process for a task that computes nothing and is kept in a folder."""
    with KINDS[kind](2) as options, tempfile.TemporaryDirectory() as folder:
        function = partial(nothing, num_bytes)
        sweep.run(function, range(100), identity="first", folder=Path(folder) / "first", **options)
        begun = time.process_time()
        results = sweep.run(function, range(num_tasks), identity="measured", folder=Path(folder) / "second", **options)
        seconds = time.process_time() - begun
        if any(result["x"][0] != k for k, result in enumerate(results)):
            raise ValueError(f"{kind}: expected the result of each task in its place, got another")
    return seconds / num_tasks


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description="what the engine of sweeps costs")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--steps", type=int, default=200_000, help="of each orbit: how long the tasks are")
    parser.add_argument("--tasks", type=int, default=1000, help="that compute nothing")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.kinds) - set(KINDS)):
        parser.error(f"KIND: expected some of {', '.join(KINDS)}, got {', '.join(unknown)}")
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors; {load:.1f} were busy in the last minute{', too many' * (load > 0.3)}\n")
    row = "{:<12}{:>28}{:>14}{:>14}{:>24}".format
    print(row("executor", "two workers / one", "ms, 8 kB", "ms, 480 kB", "1000 workers need tasks"))
    for kind in options.kinds:
        ratios = efficiency(kind, steps=options.steps)
        small, large = (overhead(kind, num_bytes=size, num_tasks=options.tasks) for size in (8_000, 480_000))
        print(
            row(
                kind,
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                f"{1e3 * small:.2f}",
                f"{1e3 * large:.2f}",
                f"of {1000 * small:.1f} to {1000 * large:.1f} s",
            ),
            flush=True,
        )
    return 0


if __name__ == "__main__":
    # Under its own name, so that other processes find the functions.
    from benchmarks.sweep import main as run

    sys.exit(run())
