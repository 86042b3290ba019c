"""Runs tests and pages on other paths through the processor, and compares every claim with its value as published.

A path is a set of environment variables under which the numerical libraries take other instructions or another number
of threads, or an order of the tests. Every job (one chapter, or one folder of tests, on one path) leaves a result of
its own under ``_build/portability``, with the key of what it was made of: a run that was interrupted goes on where it
was. The table says for every path which tests fail, which claims no longer hold, and how much of a claim's bound the
largest move takes.

Three of the paths can move only what PyTorch computes. Of the packages in the lock it alone holds Intel's MKL
(``torch.__config__.show()`` says ``BLAS_INFO=mkl``); NumPy and SciPy say ``scipy-openblas`` in their
``show_config()``, and JAX takes SciPy's. These paths run the pages whose kernel had loaded PyTorch, and the files of
tests that name it.

``MKL_ENABLE_INSTRUCTIONS`` is for Intel's processors: on those of AMD it changes no digit. ``MKL_CBWR`` chooses the
instructions on both, so the path to SSE 4.2 has the two of them. AMD's processors take ``SSE4_2`` there for ``AUTO``
(with ``MKL_VERBOSE=1`` MKL says ``CNR:AUTO``): a path of its own, whose digits differ from those without the variable,
but that of ``AVX2`` and not that of an older processor.

Two paths have packages of their own, from the list of those that Colab has, which are also the oldest that the library
admits: its tests run with them, and so does every page as the packed notebook that the site offers, outside of the
project. They need `make colab`, and the pages a finished site.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from companion import claims, project
from companion.declaring import notebooks
from companion.evidence import records, rounding
from companion.running import disk, environment, execution, freshness, lifeline
from companion.site import packed

__all__ = [
    "AGAIN",
    "AS_IS",
    "EVIDENCE",
    "PATHS",
    "Job",
    "ProcessorPath",
    "Row",
    "beside",
    "jobs",
    "main",
    "name_of",
    "outcome",
    "record",
    "run",
    "table",
]

EVIDENCE = "portability"
AS_IS = "as is"
AGAIN = "again"
_JOBS = 2
_NOT_NUMERICAL = ("book", "chapters")
"""Folders of tests that hold no numbers of the library."""
_OUTCOME = "outcome.json"


@dataclass(frozen=True)
class ProcessorPath:
    """One path: variables, threads, and what it can move."""

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = 1
    # Only what this package computes can move; None: everything can.
    package: str | None = None
    chapters: bool = True
    tests: bool = True
    # Whether all that public functions of the library return is rounded to single precision (see ``rounding``).
    rounds: bool = False
    # The folder of another virtual environment, relative to the repository; without it the path is left out.
    environment: str | None = None
    # Whether a page runs as its packed notebook, alone in an empty folder, beside the packages of the environment.
    packed: bool = False


PATHS = (
    ProcessorPath(AS_IS),
    ProcessorPath("MKL, compatible", {"MKL_CBWR": "COMPATIBLE"}, package="torch"),
    ProcessorPath("MKL, SSE 4.2", {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "MKL_CBWR": "SSE4_2"}, package="torch"),
    ProcessorPath("PyTorch, plain loops", {"ATEN_CPU_CAPABILITY": "default"}, package="torch"),
    # XLA, OpenBLAS (NumPy, SciPy and JAX's linear algebra), NumPy and numba, all as on a processor of 2009.
    ProcessorPath(
        "JAX and NumPy, SSE 4.2",
        {
            "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2",
            "OPENBLAS_CORETYPE": "Nehalem",
            "NUMBA_CPU_NAME": "nehalem",
            "NUMBA_CPU_FEATURES": "",
        },
    ),
    ProcessorPath("four threads", threads=4),
    ProcessorPath("shuffled tests", {"COMPANION_SHUFFLE": "1"}, chapters=False),
    ProcessorPath(AGAIN, tests=False),
    ProcessorPath("single precision", tests=False, rounds=True),
    ProcessorPath("newest versions", environment="_build/newest"),
    # Both from the list of Colab's packages in tests/colab.txt, by `make colab`.
    ProcessorPath("oldest versions", environment="_build/oldest", chapters=False),
    ProcessorPath("Colab's image", environment="_build/colab", tests=False, packed=True),
)


@dataclass(frozen=True)
class Job:
    """One unit (a chapter, or a folder of tests) on one path."""

    path: ProcessorPath
    unit: str
    is_chapter: bool
    key: str

    def folder(self, root: Path) -> Path:
        """Where its result lies."""
        slug = "".join(letter if letter.isalnum() else "-" for letter in self.path.name.lower())
        return (
            root
            / "_build"
            / "portability"
            / slug
            / f"{'chapter' if self.is_chapter else 'tests'}-{notebooks.slug(self.unit)}"
        )


@dataclass(frozen=True)
class Row:
    """What one path did: counts, what failed, and the claims that moved, the farthest first."""

    path: str
    tests: int
    failed: list[str]
    claims: int
    equal: int
    moved: list[tuple[str, float, float]]
    broken: list[str]
    missing: list[str]


def jobs(root: Path, *, known: Mapping[str, Mapping[str, Any]] | None = None) -> list[Job]:
    """Everything there is to run, in this order; a path skips what it cannot move.

    ``known`` is what ``freshness.ingredients`` says of each page, if somebody has asked already.
    """
    chapters = notebooks.names(root)
    made_of = known or {name: freshness.ingredients(root, notebooks.load(root, name)) for name in chapters}
    keys = {name: freshness.evidence_key(made_of[name]) for name in chapters}
    imports = {name: made_of[name]["packages"] for name in chapters}
    code = freshness.tree_digest(*project.code(root), root / "tests")
    found = []
    for path in PATHS:
        if path.chapters:
            found += [
                Job(path, name, True, keys[name])
                for name in chapters
                if path.package is None or path.package in imports[name]
            ]
        if path.tests:
            found += [Job(path, unit, False, code) for unit in _test_units(root, path.package)]
    # Tests as they are were run before anybody asks this; everything else needs the reference first.
    return sorted(found, key=lambda job: (job.path.name == AS_IS) and not job.is_chapter)


def _test_units(root: Path, package: str | None) -> dict[str, list[Path]]:
    """Files of numerical tests by unit: a folder, the files beside the folders, and the examples of the library.

    Only those that name the package, unless that is None: a test that hands over tensors or awaits them has to.
    """
    tests = root / "tests"
    units = {
        folder.name: sorted(folder.rglob("test_*.py"))
        for folder in sorted(tests.iterdir())
        if folder.is_dir() and folder.name not in _NOT_NUMERICAL
    }
    units["single"] = sorted(tests.glob("test_*.py"))
    units["examples"] = [
        path for path in sorted((root / "src").rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")
    ]
    if package is not None:
        word = re.compile(rf"\b{re.escape(package)}\b")
        units = {
            name: [path for path in files if word.search(path.read_text(encoding="utf-8"))]
            for name, files in units.items()
        }
    return {name: files for name, files in units.items() if files}


def outcome(root: Path, job: Job) -> dict[str, object] | None:
    """The result of a job, if it is there and was made of what there is now."""
    try:
        found: dict[str, object] = json.loads((job.folder(root) / _OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found.get("key") == job.key else None


def run(root: Path, out: TextIO, *, only: Sequence[str] = ()) -> list[Row]:
    """Run what has no result yet, ``_JOBS`` at a time, and print the table.

    ``only`` names paths; all of them by default.

    Raises ``ValueError`` if ``only`` names a path that does not exist.
    """
    root = root.resolve()
    names = [path.name for path in PATHS]
    if unknown := sorted(set(only) - set(names)):
        raise ValueError(f"only: expected some of {names}, got {unknown}")
    everything = jobs(root)
    wanted = [job for job in everything if not only or job.path.name in (*only, AS_IS)]
    for path in PATHS:
        if not _interpreter(root, path).exists() and any(job.path == path for job in wanted):
            print(f"{path.name}: left out, there is no environment in {path.environment}", file=out)
            wanted = [job for job in wanted if job.path != path]
    waiting = [job for job in wanted if outcome(root, job) is None]
    print(f"{len(wanted)} jobs, {len(wanted) - len(waiting)} of them done before", file=out, flush=True)
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    free = [cpus[index % len(cpus)] for index in range(_JOBS)]
    with lifeline.orderly(), ThreadPoolExecutor(_JOBS) as pool:
        running: dict[Future[float], tuple[Job, int]] = {}
        try:
            while waiting or running:
                while waiting and free:
                    job = waiting.pop(0)
                    if not _concerned(root, job):
                        wanted.remove(job)
                        continue
                    cpu = free.pop(0)
                    running[pool.submit(_start, root, job, cpu)] = (job, cpu)
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job, cpu = running.pop(future)
                    free.append(cpu)
                    seconds = future.result()
                    left = len(waiting) + len(running)
                    print(f"{job.path.name}, {job.unit}: {seconds:.0f} s, {left} left", file=out, flush=True)
        finally:
            for future in running:
                future.cancel()
            for process in list(_PROCESSES):
                lifeline.stop(process)
    rows = table(root, wanted)
    _print(rows, out)
    disk.write(root / "_build" / "portability" / "table.json", json.dumps([row.__dict__ for row in rows], indent=1))
    return rows


def _concerned(root: Path, job: Job) -> bool:
    """Whether a chapter's run as it is had loaded the package that the path is about.

    The imports of the library name more than a run loads. Unknown before the run as it is: then it is concerned.
    """
    if job.path.package is None or not job.is_chapter:
        return True
    own = Job(next(path for path in PATHS if path.name == AS_IS), job.unit, True, job.key).folder(root) / "result"
    record = execution.read_record(own) or execution.read_record(execution.results_folder(root, job.unit))
    return record is None or record.key != _run_key(root, job) or job.path.package in record.packages


def _run_key(root: Path, job: Job) -> str:
    """The key that a run of the job's page has, which is more than that of its numbers."""
    return freshness.key(root, notebooks.load(root, job.unit))


def _interpreter(root: Path, path: ProcessorPath) -> Path:
    """The Python of a path: this one, or that of its environment."""
    return Path(sys.executable) if path.environment is None else root / path.environment / "bin" / "python"


_PROCESSES: set[subprocess.Popen[bytes]] = set()


def _start(root: Path, job: Job, cpu: int) -> float:
    """Run a job in a process of its own and return its seconds."""
    began = time.perf_counter()
    folder = disk.folder(job.folder(root).parent)
    kind = "chapter" if job.is_chapter else "tests"
    module = "companion.evidence.portability"
    command = [
        sys.executable if job.path.packed else str(_interpreter(root, job.path)),
        "-m",
        module,
        str(root),
        job.path.name,
        kind,
        job.unit,
        job.key,
        str(cpu),
    ]
    with (folder / f"{notebooks.slug(job.unit)}.log").open("wb") as log:
        process = lifeline.start(command, output=log, environment=os.environ | {"PYTHONUTF8": "1"}, cwd=root)
        _PROCESSES.add(process)
        try:
            process.wait()
        finally:
            # Closes the line that the child listens to.
            lifeline.stop(process)
            _PROCESSES.discard(process)
    return time.perf_counter() - began


def _run_chapter(root: Path, job: Job) -> dict[str, object]:
    target = job.folder(root) / "result"
    if job.path.packed:
        return _run_packed(root, job, target)
    if job.path.name == AS_IS and execution.finished(root, job.unit, _run_key(root, job)):
        target, problem = execution.results_folder(root, job.unit), None
    else:
        # Without any variable a run of its own needs no other place, but the book's results must stay what they are.
        variables = dict(job.path.variables) or {"PYTHONHASHSEED": "0"}
        if job.path.rounds:
            folder = rounding.startup(disk.folder(job.folder(root) / "startup"), *project.packages(root))
            variables["PYTHONPATH"] = os.pathsep.join(map(str, [*project.code(root), folder]))
        problem = execution.publish(
            root, job.unit, threads=job.path.threads or 1, extra_environment=variables, target=target
        )
    if problem is not None:
        return {"key": job.key, "problem": f"cell {problem.cell}: {execution.plain(problem.error)}"}
    return {"key": job.key, "measured": _numbers(target)}


def _run_packed(root: Path, job: Job, target: Path) -> dict[str, object]:
    """Run the packed notebook of a page where neither the book nor the library is; what it asks for is installed."""
    disk.remove(target)
    python = beside(_interpreter(root, job.path), target / "environment")
    empty, out, kernel = target / "content", target / "out", target / "jupyter" / "kernels" / "alone"
    for folder in (empty, out, kernel):
        folder.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "alone", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    try:
        page = packed.write(root, job.unit, target / "page.ipynb")
    except ValueError as error:
        return {"key": job.key, "problem": str(error)}
    threads = {name: str(job.path.threads) for name in execution.THREAD_VARIABLES}
    variables = {"JUPYTER_PATH": str(target / "jupyter"), "COMPANION_OUT": str(out), "COMPANION_ROUGH": "1"}
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    command = [sys.executable, "-m", "papermill", str(page), str(target / "done.ipynb"), "--kernel", "alone"]
    done = subprocess.run(
        [*command, "--cwd", str(empty), "--no-progress-bar"],
        env=environment.clean() | pip | threads | variables,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    disk.remove(python.parents[1])
    if done.returncode:
        return {"key": job.key, "problem": execution.plain(done.stderr)[-2000:]}
    return {"key": job.key, "measured": _numbers(out)}


def _numbers(folder: Path) -> dict[str, list[object]]:
    return {id: [found.value, found.uncertainty, found.rival, found.control] for id, found in claims.recorded(folder)}


def beside(python: Path, folder: Path) -> Path:
    """The interpreter of a new environment that sees the packages of another one, and changes none of them."""
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(folder)], check=True)
    new = folder / "bin" / "python"

    def said(interpreter: Path, code: str) -> str:
        command = [str(interpreter), "-c", f"import sys, sysconfig; {code}"]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True, cwd=folder).stdout

    lent = said(python, "print(*(path for path in sys.path if path.endswith('-packages')), sep=chr(10))")
    (Path(said(new, "print(sysconfig.get_path('purelib'))").strip()) / "lent.pth").write_text(lent, encoding="utf-8")
    return new


def _run_tests(root: Path, job: Job) -> dict[str, object]:
    folder = disk.folder(job.folder(root))
    report = folder / "report.xml"
    threads = {} if job.path.threads is None else {name: str(job.path.threads) for name in execution.THREAD_VARIABLES}
    files = [str(path.relative_to(root)) for path in _test_units(root, job.path.package)[job.unit]]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow"]
    # The settings of all tests lie beside them, where examples in the library do not find them.
    command += ["-p", "tests.conftest"] if job.unit == "examples" else []
    command += [f"--junitxml={report}", *files]
    subprocess.run(command, cwd=root, env=os.environ | threads | dict(job.path.variables), check=False)
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [
        f"{case.get('classname', '')}::{case.get('name', '')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return {"key": job.key, "tests": len(cases), "failed": failed}


def table(root: Path, wanted: Sequence[Job]) -> list[Row]:
    """One row for each path, from the results that are there."""
    declared = claims.of_book(root)
    reference = {id: measurement.value for id, measurement in _measured(root, wanted, AS_IS)}
    rows = []
    for path in PATHS:
        mine = [job for job in wanted if job.path.name == path.name]
        if not mine:
            continue
        missing = [job.unit for job in mine if (found := outcome(root, job)) is None or "problem" in found]
        tests = [found for job in mine if not job.is_chapter and (found := outcome(root, job)) is not None]
        moved, broken, count = [], [], 0
        for id, measurement in _measured(root, wanted, path.name):
            if id not in declared or id not in reference or not declared[id].is_measured:
                continue
            count += 1
            value = measurement.value
            judgement = claims.judge(declared[id], measurement)
            if judgement.holds is False:
                broken.append(id)
            move = abs(float(value) - float(reference[id]))
            if move > 0 or type(value) is not type(reference[id]):
                room = _room(declared[id], judgement, float(reference[id]))
                moved.append((id, move, move / room if room else math.inf))
        rows.append(
            Row(
                path.name,
                sum(int(str(found["tests"])) for found in tests),
                [str(test) for found in tests for test in _list(found["failed"])],
                count,
                count - len(moved),
                sorted(moved, key=lambda entry: -entry[2]),
                broken,
                missing,
            )
        )
    return rows


def record(root: Path, out: TextIO, *, results: Path | None = None) -> Path:
    """Keep what was measured in ``book/evidence``: of every job what failed, and the claims that moved.

    ``results`` is the ``_build/portability`` of another clone; by default that of this one. A result of older code is
    kept with its key, unless one of this code is there. A page counts where its run as it is was made of the same.
    """
    root = root.resolve()
    kept = records.read(root, EVIDENCE)
    declared = claims.of_book(root)
    folder = results or root / "_build" / "portability"
    reference: dict[str, Mapping[str, object]] = {}
    wanted = jobs(root)
    for job in wanted:
        path = folder / job.folder(root).relative_to(root / "_build" / "portability") / _OUTCOME
        if not path.is_file():
            continue
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["key"] != job.key and kept.get(name_of(job), {}).get("key") == job.key:
            continue
        if "problem" in found:
            if job.path.rounds:
                # Rounded, a solver may refuse, which says something of the page; elsewhere it is a failure to mend.
                nothing: dict[str, object] = {"claims": 0, "broken": [], "moved": {}}
                kept[name_of(job)] = {"key": found["key"], "stopped": found["problem"], **nothing}
        elif job.path.name == AS_IS and job.is_chapter:
            reference[job.unit] = found
        elif not job.is_chapter:
            kept[name_of(job)] = {name: found[name] for name in ("key", "tests", "failed")}
        elif reference.get(job.unit, {}).get("key") == found["key"]:
            kept[name_of(job)] = {"key": found["key"], **_compared(declared, reference[job.unit], found)}
    print(f"{len(kept)} results", file=out)
    return records.write(root, EVIDENCE, kept, {name_of(job): job.key for job in wanted})


def _compared(
    declared: Mapping[str, claims.Claim], reference: Mapping[str, object], found: Mapping[str, object]
) -> dict[str, object]:
    """How many claims a run measures, which moved, by how much and how much of their bounds, and which do not hold."""
    before, after = reference["measured"], found["measured"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    moved, broken, count = {}, [], 0
    for id, given in after.items():
        if id not in before or id not in declared or not declared[id].is_measured:
            continue
        count += 1
        one, other = claims.Measurement(*before[id]), claims.Measurement(*given)
        judgement = claims.judge(declared[id], other)
        if judgement.holds is False:
            broken.append(id)
        move = abs(float(other.value) - float(one.value))
        if move > 0:
            room = _room(declared[id], judgement, float(one.value))
            moved[id] = [float(f"{move:.4g}"), float(f"{move / room:.4g}") if room else None]
    return {"claims": count, "moved": moved, "broken": broken}


def name_of(job: Job) -> str:
    """Its name in what is kept."""
    return f"{job.path.name} | {job.unit} | {'page' if job.is_chapter else 'tests'}"


def _room(claim: claims.Claim, judgement: claims.Judgement, value: float) -> float:
    """How far a value may move: its bound, or what parts it from the ends of what the claim expects or has found."""
    if judgement.bound:
        return judgement.bound
    if claim.found is not None and claim.found.get("bound"):
        return float(claim.found["bound"])
    expected = claim.expects or {}
    ends = [expected[side] for side in ("above", "below") if side in expected] + list(expected.get("between", ()))
    return min((abs(value - float(end)) for end in ends), default=0.0)


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _measured(root: Path, wanted: Sequence[Job], path: str) -> Iterator[tuple[str, claims.Measurement]]:
    for job in wanted:
        if job.path.name == path and job.is_chapter:
            found = outcome(root, job) or {}
            measured = found.get("measured", {})
            assert isinstance(measured, dict)
            for id, numbers in measured.items():
                yield id, claims.Measurement(*numbers)


def _print(rows: Sequence[Row], out: TextIO) -> None:
    print(
        f"\n{'path':26}{'tests':>7}{'failed':>8}{'claims':>8}{'equal':>7}{'fail':>6}   largest move, in bounds",
        file=out,
    )
    for row in rows:
        far = f"{row.moved[0][2]:.2g} ({row.moved[0][0]})" if row.moved else "none"
        print(
            f"{row.path:26}{row.tests:>7}{len(row.failed):>8}{row.claims:>8}{row.equal:>7}{len(row.broken):>6}   {far}",
            file=out,
        )
    for row in rows:
        for kind, entries in (("fails", row.failed), ("does not hold", row.broken), ("has no result", row.missing)):
            for entry in entries:
                print(f"  {row.path}: {entry} {kind}", file=out)
        for id, move, share in row.moved[:8]:
            if share > 0.1:
                print(f"  {row.path}: {id} moves by {move:.2g}, {share:.2g} of its bound", file=out)


def main() -> int:
    """Entry point of the process that runs one job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("path")
    parser.add_argument("kind", choices=("chapter", "tests"))
    parser.add_argument("unit")
    parser.add_argument("key")
    parser.add_argument("cpu", type=int)
    options = parser.parse_args()
    lifeline.tie()
    path = next(path for path in PATHS if path.name == options.path)
    job = Job(path, options.unit, options.kind == "chapter", options.key)
    if path.threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.cpu})
    content = (_run_chapter if job.is_chapter else _run_tests)(options.root, job)
    disk.write(disk.folder(job.folder(options.root)) / _OUTCOME, json.dumps(content, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
