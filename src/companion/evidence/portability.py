"""Runs tests and pages on other paths through the processor, and compares every claim with its value as published.

A path is a set of environment variables under which the numerical libraries take other instructions or another number
of threads, or an order of the tests. Every job (one chapter, or one folder of tests, on one path) leaves a result of
its own under ``_build/portability``, with the key of what it was made of: a run that was interrupted goes on where it
was. What is kept says for every path which tests fail, which claims no longer hold, and how far each claim moves.

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
project, with its own parameters: with the quick ones a claim about a large system need not hold. They need
`make colab`, and the pages a finished site.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from companion import claims, project
from companion.declaring import notebooks
from companion.evidence import observed, perturb, records, resumable
from companion.running import disk, environment, execution, freshness
from companion.site import packed

EVIDENCE = "portability"
AS_IS = "as is"
AGAIN = "again"
_NOT_NUMERICAL = ("book", "chapters")
"""Folders of tests whose files hold no numbers of the library; folders within them do."""


@dataclass(frozen=True)
class ProcessorPath:
    """One path: variables, threads, and what it can move."""

    name: str
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)
    threads: int | None = 1
    # Only what this package computes can move; None: everything can.
    package: str | None = None
    chapters: bool = True
    tests: bool = True
    # Whether all that public functions of the library return is rounded to single precision (see ``perturb``).
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
class Job(resumable.Job):
    """One unit (a chapter, or a folder of tests) on one path."""

    path: ProcessorPath
    unit: str
    is_chapter: bool

    @property
    def is_reference(self) -> bool:
        """Whether it is a page as it is, with which its other runs are compared."""
        return self.path.name == AS_IS and self.is_chapter


def _job(path: ProcessorPath, unit: str, is_chapter: bool, key: str) -> Job:
    slug = "".join(letter if letter.isalnum() else "-" for letter in path.name.lower())
    place = f"{EVIDENCE}/{slug}/{'chapter' if is_chapter else 'tests'}-{notebooks.slug(unit)}"
    return Job(f"{path.name} | {unit} | {'page' if is_chapter else 'tests'}", key, place, path, unit, is_chapter)


def jobs(root: Path, *, keyed: bool = True) -> list[Job]:
    """Everything there is to run, in this order; a path skips what it cannot move.

    Without keys, if nobody asks what a result is made of.
    """
    pages = notebooks.names(root)
    keys = {page: observed.key(root, page) if keyed else "" for page in pages}
    imports = {page: freshness.packages(root, notebooks.load(root, page)) for page in pages}
    code = freshness.tree_digest(*project.code(root), root / "tests")
    found = []
    for path in PATHS:
        if path.chapters:
            found += [_job(path, page, True, keys[page]) for page in pages if path.package in (None, *imports[page])]
        if path.tests:
            found += [_job(path, unit, False, code) for unit in _test_units(root, path.package)]
    # Tests as they are were run before anybody asks this; everything else needs the reference first.
    return sorted(found, key=lambda job: (job.path.name == AS_IS) and not job.is_chapter)


def _test_units(root: Path, package: str | None) -> dict[str, list[Path]]:
    """Files of numerical tests by unit: a folder, the files beside the folders, and the examples of the library.

    In place of a folder that holds no numbers there are the folders within it.

    Only those that name the package, unless that is None: a test that hands over tensors or awaits them has to.
    """
    tests = root / "tests"
    folders = [folder for folder in tests.iterdir() if folder.is_dir() and folder.name not in _NOT_NUMERICAL]
    folders += [folder for name in _NOT_NUMERICAL for folder in tests.glob(f"{name}/*") if folder.is_dir()]
    units = {folder.name: sorted(folder.rglob("test_*.py")) for folder in sorted(folders)}
    units["single"] = sorted(tests.glob("test_*.py"))
    units["examples"] = [
        path for path in sorted((root / "src").rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")
    ]
    word = re.compile(rf"\b{re.escape(package)}\b" if package else "")
    named = {
        name: [path for path in files if word.search(path.read_text(encoding="utf-8"))] for name, files in units.items()
    }
    return {name: files for name, files in named.items() if files}


def run(root: Path, *, only: Sequence[str] = ()) -> list[str]:
    """Run what has no result yet, some jobs at a time; returns, and prints, what failed, stopped or does not hold.

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
            print(f"{path.name}: left out, there is no environment in {path.environment}")
            wanted = [job for job in wanted if job.path != path]
    cpus = environment.processors()
    free: SimpleQueue[int] = SimpleQueue()
    for index in range(resumable.AT_ONCE):
        free.put(cpus[index % len(cpus)])

    def start(job: Job, children: resumable.Children) -> None:
        cpu = free.get()
        try:
            # The press is no part of the environments in which packed pages and tests run.
            own = job.path.packed or not job.is_chapter
            python = Path(sys.executable) if own else _interpreter(root, job.path)
            task = vars(job) | {"path": job.path.name, "cpu": cpu}
            children.run(__name__, root, job.folder(root), task, python=python)
        finally:
            free.put(cpu)

    # Which packages a page loads is known when it has run as it is.
    first = [job for job in wanted if job.is_reference]
    run_all = partial(resumable.run, words=lambda found: str(found.get("problem") or "done"))
    run_all(root, first, start)
    wanted = [job for job in wanted if concerned(root, job)]
    run_all(root, [job for job in wanted if job not in first], start)
    outcomes = {job: resumable.outcome(root, job) or {"problem": "no result"} for job in wanted}
    problems = [f"{job.name}: {found['problem']}" for job, found in outcomes.items() if "problem" in found]
    for job, found in _results(root, outcomes).items():
        problems += [f"{job.name}: {name} fails" for name in found.get("failed", ())]
        problems += [f"{job.name}: {id} does not hold" for id in found.get("broken", ())]
    print("\n".join(problems))
    return problems


def concerned(root: Path, job: Job) -> bool:
    """Whether a run of a chapter as it is, here or for the book, had loaded the package that the path is about.

    The imports of the library name more than a run loads. Unknown before any run: then it is concerned.
    """
    if job.path.package is None or not job.is_chapter:
        return True
    own = _job(PATHS[0], job.unit, True, job.key).folder(root) / "result"
    read = (execution.read_record(folder) for folder in (own, execution.results_folder(root, job.unit)))
    loaded = [record.packages for record in read if record is not None]
    return not loaded or any(job.path.package in packages for packages in loaded)


def _interpreter(root: Path, path: ProcessorPath) -> Path:
    """The Python of a path: this one, or that of its environment."""
    return Path(sys.executable) if path.environment is None else root / path.environment / "bin" / "python"


def _run_chapter(root: Path, job: Job) -> dict[str, Any]:
    target = job.folder(root) / "result"
    if job.path.packed:
        return _run_packed(root, job, target)
    # The key of a run, which is more than that of its numbers.
    key = freshness.key(root, notebooks.load(root, job.unit))
    if job.path.name == AS_IS and execution.standing(root, job.unit, key).record:
        target, problem = execution.results_folder(root, job.unit), None
    else:
        # Without any variable a run of its own needs no other place, but the book's results must stay what they are.
        variables = dict(job.path.variables) or {"PYTHONHASHSEED": "0"}
        # Outside of the repository: what a page opens there belongs to its key.
        with tempfile.TemporaryDirectory() as folder:
            if job.path.rounds:
                perturb.startup(Path(folder), *project.packages(root))
                variables["PYTHONPATH"] = os.pathsep.join(map(str, [*project.code(root), folder]))
            problem = execution.publish(
                root, job.unit, threads=job.path.threads or 1, extra_environment=variables, target=target
            )
    if problem is not None:
        return {"problem": f"cell {problem.cell}: {execution.plain(problem.error)}"}
    return {"measured": observed.measured(target)}


def _run_packed(root: Path, job: Job, target: Path) -> dict[str, Any]:
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
        return {"problem": str(error)}
    threads = {name: str(job.path.threads) for name in execution.THREAD_VARIABLES}
    variables = {"JUPYTER_PATH": str(target / "jupyter"), "COMPANION_OUT": str(out), "COMPANION_ROUGH": "1"}
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    # Another version of XLA may not know the settings of the compiler, and a reader does not have them.
    plain = {name: value for name, value in environment.clean().items() if name not in environment.compiler()}
    command = [sys.executable, "-m", "papermill", str(page), str(target / "done.ipynb"), "--kernel", "alone"]
    done = subprocess.run(
        [*command, "--cwd", str(empty), "--no-progress-bar"],
        env=plain | pip | threads | variables,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    disk.remove(python.parents[1])
    if done.returncode:
        return {"problem": execution.plain(done.stderr)[-2000:]}
    return {"measured": observed.measured(out)}


def beside(python: Path, folder: Path) -> Path:
    """The interpreter of a new environment that sees the packages of another one, and changes none of them."""
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(folder)], check=True)
    code = "import sys; print(*(path for path in sys.path if path.endswith('-packages')), sep=chr(10))"
    lent = subprocess.run([str(python), "-c", code], capture_output=True, check=True, cwd=folder).stdout
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_bytes(lent)
    return folder / "bin" / "python"


def _run_tests(root: Path, job: Job) -> dict[str, Any] | None:
    files = [str(path.relative_to(root)) for path in _test_units(root, job.path.package)[job.unit]]
    python, threads = _interpreter(root, job.path), job.path.threads
    found = observed.run_tests(files, job.folder(root), python=python, threads=threads, variables=job.path.variables)
    return None if found is None else {"tests": found[0], "failed": found[1]}


def record(root: Path, *, results: Path | None = None) -> Path:
    """Keep what was measured in ``book/evidence``: of every job what failed, and the claims that moved.

    ``results`` is the ``_build/portability`` of another clone; by default that of this one. A result of older code is
    kept with its key, unless one of this code is there.
    """
    root = root.resolve()
    wanted, before = jobs(root), records.read(root, EVIDENCE)
    outcomes = {}
    for job in wanted:
        folder = (results or root / "_build" / EVIDENCE) / Path(job.place).relative_to(EVIDENCE)
        found = resumable.read(folder)
        if found and (found["key"] == job.key or before.get(job.name, {}).get("key") != job.key):
            outcomes[job] = found
    new = {job.name: found for job, found in _results(root, outcomes).items() if not job.is_reference}
    keys = {job.name: job.key for job in wanted if not job.is_reference}
    return records.keep(root, EVIDENCE, new, keys)


def _results(root: Path, outcomes: Mapping[Job, Mapping[str, Any]]) -> dict[Job, dict[str, Any]]:
    """What is kept of the outcomes of jobs. A page counts where its run as it is was made of the same."""
    declared = claims.of_book(root)
    as_it_is = {job.unit: found for job, found in outcomes.items() if job.is_reference}
    results: dict[Job, dict[str, Any]] = {}
    for job, found in outcomes.items():
        before = as_it_is.get(job.unit, {})
        if "problem" in found:
            if job.path.rounds:
                # Rounded, a solver may refuse, which says something of the page; elsewhere it is a failure to mend.
                nothing = {"claims": 0, "broken": [], "moved": {}}
                results[job] = {"key": found["key"], "stopped": found["problem"], **nothing}
        elif not job.is_chapter:
            results[job] = {name: found[name] for name in ("key", "tests", "failed")}
        elif before.get("key") == found["key"] and "problem" not in before:
            results[job] = {"key": found["key"], **_compared(declared, before["measured"], found["measured"])}
    return results


def _compared(
    declared: Mapping[str, claims.Claim], before: Mapping[str, Sequence[Any]], after: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """How many claims a run measures, which moved, by how much and how much of their bounds, and which do not hold."""
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
        if move > 0 or type(other.value) is not type(one.value):
            room = _room(declared[id], judgement, float(one.value))
            moved[id] = [float(f"{move:.4g}"), float(f"{move / room:.4g}") if room else None]
    return {"claims": count, "moved": moved, "broken": broken}


def _room(claim: claims.Claim, judgement: claims.Judgement, value: float) -> float:
    """How far a value may move: its bound, or what parts it from the ends of what the claim expects or has found."""
    if judgement.bound:
        return judgement.bound
    if claim.found is not None and claim.found.get("bound"):
        return float(claim.found["bound"])
    expected = claim.expects or {}
    ends = [expected[side] for side in ("above", "below") if side in expected] + list(expected.get("between", ()))
    return min((abs(value - float(end)) for end in ends), default=0.0)


def work(root: Path, _folder: Path, task: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the process of a job does, on its processor where the path has one thread."""
    path = next(path for path in PATHS if path.name == task["path"])
    job = _job(path, task["unit"], task["is_chapter"], task["key"])
    if path.threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {task["cpu"]})
    return _run_chapter(root, job) if job.is_chapter else _run_tests(root, job)
