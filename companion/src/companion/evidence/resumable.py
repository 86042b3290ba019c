"""Runs jobs of minutes each, every one in a process of its own, and goes on where it was interrupted.

A job has a folder, where its result lies, and a key of everything that the result is made of. A result whose key
differs is ignored. The modules of faults, epsilon and portability say what a job does.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from companion import project
from companion.running import disk, lifeline

AT_ONCE = 2
"""How many jobs run beside one another unless another number is asked for."""
OUTCOME = "outcome.json"


class Job(Protocol):
    """What ``run`` needs to know of a job."""

    @property
    def name(self) -> str:
        """Its name in what is printed."""

    @property
    def key(self) -> str:
        """What its result is made of."""

    def folder(self, root: Path) -> Path:
        """Where its result lies."""


_Job = TypeVar("_Job", bound=Job)


def outcome(root: Path, job: Job) -> dict[str, Any] | None:
    """The result of a job, if it is there and was made of what there is now."""
    try:
        found: dict[str, Any] = json.loads((job.folder(root) / OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found.get("key") == job.key else None


def keep(folder: Path, key: str, content: Mapping[str, Any]) -> None:
    """Write the result of a job, with the processor seconds that this process and its children have spent."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = round(sum(one.ru_utime + one.ru_stime for one in spent), 1)
    disk.write(disk.folder(folder) / OUTCOME, json.dumps({"key": key, "seconds": seconds, **content}, indent=1))


def child(module: str, root: str, folder: str, task: dict[str, Any]) -> int:
    """What a process of ``Children.run`` does: the function ``work`` of a module gets the two folders and the task.

    What it returns is kept as the result of the job, unless it is None.
    """
    content = importlib.import_module(module).work(Path(root), Path(folder), task)
    if content is not None:
        keep(Path(folder), task["key"], content)
    return 0


class Children:
    """The processes of the jobs that run now."""

    def __init__(self) -> None:
        self._processes: set[subprocess.Popen[bytes]] = set()

    def run(
        self,
        module: str,
        source: Path,
        folder: Path,
        task: Mapping[str, Any],
        *,
        limit: float | None = None,
        environment: Mapping[str, str] | None = None,
        python: Path = Path(sys.executable),
    ) -> bool:
        """Run a module in ``source``, whose code it imports, until it ends; whether it did so in ``limit`` seconds.

        Its function ``work`` gets ``source``, ``folder`` and the ``task``, with the key of the result.
        What it prints goes to ``log.txt`` in ``folder``. It has the variables of this process, or those of
        ``environment`` instead.
        """
        given = dict(os.environ if environment is None else environment)
        if environment is None:
            given.pop("COMPANION_ROOT", None)
        given["PYTHONPATH"] = os.pathsep.join(map(str, project.code(source)))
        given |= {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = lifeline.calling(f"{__name__}:child", module, str(source), str(folder), task, python=python)
        with (disk.folder(folder) / "log.txt").open("wb") as log:
            process = lifeline.start(command, output=log, environment=given, cwd=source)
            self._processes.add(process)
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                return False
            finally:
                lifeline.stop(process)
                self._processes.discard(process)
        return True

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Nothing of them runs any more when this is left, however it is left."""
        try:
            yield
        finally:
            for process in list(self._processes):
                lifeline.stop(process)


def run(
    root: Path,
    jobs: Sequence[_Job],
    start: Callable[[_Job, Children], None],
    out: TextIO,
    *,
    at_once: int = AT_ONCE,
    words: Callable[[Mapping[str, Any]], str],
) -> None:
    """Start every job that has no result yet, ``at_once`` at a time and in their order, and say what came of it.

    ``words`` says it of a result.
    """
    left = [job for job in jobs if outcome(root, job) is None]
    print(f"{len(jobs)} jobs, {len(jobs) - len(left)} of them done before", file=out, flush=True)
    children = Children()
    with lifeline.orderly(), ThreadPoolExecutor(at_once) as pool, children.ended():
        running: dict[Future[None], _Job] = {}
        try:
            while left or running:
                while left and len(running) < at_once:
                    job = left.pop(0)
                    running[pool.submit(start, job, children)] = job
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job = running.pop(future)
                    future.result()
                    found = outcome(root, job)
                    said = f"{words(found)}, {found['seconds']:.0f} s" if found else "no result, see its log"
                    print(f"{job.name}: {said}; {len(left) + len(running)} left", file=out, flush=True)
        finally:
            for future in running:
                future.cancel()
