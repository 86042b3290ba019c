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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from companion import project
from companion.running import disk, lifeline

AT_ONCE = 2
"""How many jobs run beside one another unless another number is asked for."""
_OUTCOME = "outcome.json"


@dataclass(frozen=True)
class Job:
    """One job: its ``name`` in what is printed and kept, the ``key`` of its result, and the ``place`` of that.

    The place is a folder below ``_build``.
    """

    name: str
    key: str
    place: str

    def folder(self, root: Path) -> Path:
        """Where its result lies."""
        return root / "_build" / self.place


_Job = TypeVar("_Job", bound=Job)


def outcome(root: Path, job: Job) -> dict[str, Any] | None:
    """The result of a job, if it is there and was made of what there is now."""
    found = read(job.folder(root))
    return found if found and found.get("key") == job.key else None


def read(folder: Path) -> dict[str, Any] | None:
    """The result in a folder, whatever it was made of."""
    try:
        found: dict[str, Any] = json.loads((folder / _OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def keep(folder: Path, key: str, content: Mapping[str, Any]) -> None:
    """Write the result of a job, with the processor seconds that this process and its children have spent."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = round(sum(one.ru_utime + one.ru_stime for one in spent), 1)
    disk.write(disk.folder(folder) / _OUTCOME, json.dumps({"key": key, "seconds": seconds, **content}, indent=1))


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
        process = lifeline.start(command, log=disk.folder(folder) / "log.txt", environment=given, cwd=source)
        self._processes.add(process)
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            return False
        finally:
            lifeline.stop(process)
            self._processes.discard(process)
        return True

    def end(self) -> None:
        """End all of them."""
        for process in list(self._processes):
            lifeline.stop(process)


def run(
    root: Path,
    jobs: Sequence[_Job],
    start: Callable[[_Job, Children], None],
    *,
    at_once: int = AT_ONCE,
    words: Callable[[Mapping[str, Any]], str],
) -> None:
    """Start every job that has no result yet, ``at_once`` at a time and in their order, and say what came of it.

    ``words`` says it of a result.
    """
    left = [job for job in jobs if outcome(root, job) is None]
    print(f"{len(jobs)} jobs, {len(jobs) - len(left)} of them done before", flush=True)
    children = Children()
    with lifeline.orderly(), ThreadPoolExecutor(at_once) as pool:
        running: dict[Future[None], _Job] = {pool.submit(start, job, children): job for job in left}
        try:
            for future in as_completed(running):
                future.result()
                job = running[future]
                left.remove(job)
                found = outcome(root, job)
                said = f"{words(found)}, {found['seconds']:.0f} s" if found else "no result, see its log"
                print(f"{job.name}: {said}; {len(left)} left", flush=True)
        finally:
            # Nothing of them runs any more when this is left, however it is left.
            pool.shutdown(wait=False, cancel_futures=True)
            children.end()
