"""Running one chapter with papermill, in a process of its own. It decides nothing about freshness or claims.

A run writes to a work folder; only a run that finished is moved to the folder of results, so a half-written notebook is
never taken for a finished one.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from spinbook.pipeline import freshness, notebooks

VERSIONS = ("spinbook", "numpy", "jax", "torch", "matplotlib", "scikit-learn", "scipy")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NPROC",
)


@dataclass(frozen=True)
class Failure:
    """Where and why a chapter stopped. `cell` counts code cells from 1, the install cell included."""

    chapter: str
    cell: int
    error: str
    source: str


@dataclass(frozen=True)
class Record:
    """What a finished run leaves beside its notebook."""

    chapter: str
    key: str
    commit: str
    dirty: bool
    parameters: Mapping[str, Any]
    versions: Mapping[str, str]
    python: str
    threads: int
    seconds: float
    peak_bytes: int
    finished: str
    notebook_sha256: str


def results_folder(root: Path, name: str) -> Path:
    """Where the finished run of a chapter lies."""
    return root / "_build" / "chapters" / name


def finished(root: Path, name: str, key: str) -> Record | None:
    """The record of the finished run with this key, if there is one and its notebook is whole."""
    folder = results_folder(root, name)
    try:
        record = Record(**json.loads((folder / "record.json").read_text()))
        content = (folder / f"{name}.ipynb").read_bytes()
    except (OSError, TypeError, ValueError):
        return None
    return record if record.key == key and sha256(content).hexdigest() == record.notebook_sha256 else None


def start(root: Path, name: str, *, threads: int, cpus: Sequence[int] | None = None) -> subprocess.Popen[str]:
    """Start the published run of a chapter in a new process; its output goes to `_build/work/NAME/log.txt`."""
    work = root / "_build" / "work" / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    command = [sys.executable, "-m", "spinbook.pipeline.execution", str(root), name, f"--threads={threads}"]
    if cpus:
        command.append("--cpus=" + ",".join(map(str, cpus)))
    with (work / "log.txt").open("w") as log:
        return subprocess.Popen(command, cwd=root, stdout=log, stderr=subprocess.STDOUT, text=True)


def progress(root: Path, name: str) -> Mapping[str, Any]:
    """The last progress record of a running chapter: cell, peak_bytes, ... (empty before the first cell)."""
    try:
        content: Mapping[str, Any] = json.loads((root / "_build" / "work" / name / "progress.json").read_text())
    except (OSError, ValueError):
        return {}
    return content


def failure(root: Path, name: str) -> Failure:
    """Why a chapter's process ended without a result."""
    folder = root / "_build" / "failed" / name
    try:
        return Failure(**json.loads((folder / "failure.json").read_text()))
    except (OSError, TypeError, ValueError):
        log = root / "_build" / "work" / name / "log.txt"
        tail = log.read_text()[-2000:] if log.is_file() else "no log"
        cell = int(progress(root, name).get("cell", 0))
        return Failure(name, cell, f"the process ended without a result: {tail}", "")


def publish(root: Path, name: str, *, threads: int) -> Failure | None:
    """Run a chapter with its committed parameters and keep the result, or the failure."""
    chapter = notebooks.load(root, name)
    key = freshness.key(root, chapter)
    state = freshness.state(root)
    work = root / "_build" / "work" / name
    failed = root / "_build" / "failed" / name
    shutil.rmtree(failed, ignore_errors=True)
    started = time.perf_counter()
    problem = run(root, chapter, work, threads=threads, state=state)
    if problem is None:
        problem = _unseen_modules(root, chapter, work)
    if problem is not None:
        (work / "failure.json").write_text(json.dumps(asdict(problem)))
        failed.parent.mkdir(parents=True, exist_ok=True)
        work.rename(failed)
        return problem
    record = Record(
        chapter=name,
        key=key,
        commit=state.commit,
        dirty=state.dirty,
        parameters=chapter.parameters,
        versions={package: _version(package) for package in VERSIONS},
        python=platform.python_version(),
        threads=threads,
        seconds=round(time.perf_counter() - started, 2),
        peak_bytes=json.loads((work / "progress.json").read_text())["peak_bytes"],
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        notebook_sha256=sha256((work / f"{name}.ipynb").read_bytes()).hexdigest(),
    )
    (work / "record.json").write_text(json.dumps(asdict(record), indent=1) + "\n")
    target = results_folder(root, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    work.rename(target)
    return None


def run(
    root: Path,
    chapter: notebooks.Chapter,
    folder: Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    threads: int = 1,
    state: freshness.State | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Failure | None:
    """Execute a chapter into `folder`: NAME.ipynb, `figures/` and `measured.jsonl`.

    `parameters` override the committed ones (the quick profile of the tests); the pictures are then rough. Returns the
    failure, or None.
    """
    import papermill

    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / "cwd"
    scratch.mkdir(exist_ok=True)
    given = folder / "input.ipynb"
    given.write_text(notebooks.serialise(chapter.notebook))
    output = folder / f"{chapter.name}.ipynb"
    environment = _environment(root, chapter, folder, parameters or {}, threads, state or freshness.state(root))
    if parameters is not None:
        environment["SPINBOOK_ROUGH"] = "1"
    saved = dict(os.environ)
    os.environ.update(environment)
    try:
        papermill.execute_notebook(
            str(given),
            str(output),
            parameters=dict(parameters or {}),
            kernel_name="python3",
            cwd=str(scratch),
            progress_bar=False,
            log_output=False,
        )
    except papermill.PapermillExecutionError as error:
        # papermill's count includes the cell of injected parameters and markdown cells; the kernel's is exact.
        count = int(json.loads((folder / "progress.json").read_text())["cell"])
        return Failure(chapter.name, count, f"{error.ename}: {error.evalue}", error.source)
    except Exception as error:  # the kernel died, or never started: still one chapter's failure, not the book's
        return Failure(chapter.name, int(_read(folder / "progress.json").get("cell", 0)), repr(error), "")
    finally:
        os.environ.clear()
        os.environ.update(saved)
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(folder / "ipython", ignore_errors=True)
        given.unlink(missing_ok=True)
    return None


def _environment(
    root: Path,
    chapter: notebooks.Chapter,
    folder: Path,
    parameters: Mapping[str, Any],
    threads: int,
    state: freshness.State,
) -> dict[str, str]:
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("kernel_startup.py"), startup / "00-spinbook.py")
    path = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH", "")]))
    return {
        # The library in the tree is the one whose modules the key covers.
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "0",
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "SPINBOOK_ROOT": str(root),
        "SPINBOOK_OUT": str(folder),
        "SPINBOOK_CHAPTER": chapter.name,
        "SPINBOOK_COMMIT": state.commit + ("+dirty" if state.dirty else ""),
        "SPINBOOK_PARAMETERS": json.dumps(dict(chapter.parameters) | dict(parameters)),
        **{variable: str(threads) for variable in _THREAD_VARIABLES},
    }


def _unseen_modules(root: Path, chapter: notebooks.Chapter, work: Path) -> Failure | None:
    """A module that the run loaded but the key does not cover would leave stale pages behind."""
    loaded = set(json.loads((work / "progress.json").read_text())["modules"])
    covered = set(freshness.ingredients(root, chapter)["library"])
    if unseen := sorted(loaded - covered):
        message = f"modules loaded but not covered by the freshness key (imported by a computed name?): {unseen}"
        return Failure(chapter.name, 0, message, "")
    return None


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content: Mapping[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content


def plain(text: str) -> str:
    """Text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def main() -> int:
    """Entry point of the process that `start` starts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("name")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpus", default="")
    arguments = parser.parse_args()
    if arguments.cpus and hasattr(os, "sched_setaffinity"):
        # JAX sizes its thread pool by the processors that it may use, not by OMP_NUM_THREADS.
        os.sched_setaffinity(0, {int(cpu) for cpu in arguments.cpus.split(",")})
    return 0 if publish(arguments.root, arguments.name, threads=arguments.threads) is None else 1


if __name__ == "__main__":
    sys.exit(main())
