"""Runs one chapter with papermill, in a process of its own.

A run writes to a work folder of its own; only a run that finished is moved to the folder of results, with the digest of
every file, so that nothing half-written, lost or altered is ever taken for what was computed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import metadata, util
from pathlib import Path
from typing import Any

from companion import project
from companion.declaring import notebooks
from companion.running import compiled, disk, environment, freshness, lifeline

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NPROC",
)
RECORD = "record.json"
"""What a finished run says of itself, in its folder."""
_STARTS = 3
"""How often a kernel is started that ends before its first cell."""
_LONGEST_PATH = 90
"""Bytes of the folder of a kernel's sockets; the system allows some hundred for the path of each."""


@dataclass(frozen=True)
class Failure:
    """Where and why a chapter stopped. ``cell`` counts code cells from 1, the install cell included."""

    chapter: str
    cell: int
    error: str
    source: str


@dataclass(frozen=True)
class Record:
    """What a finished run leaves beside its notebook.

    ``packages`` are the versions of the installed packages that its kernel had loaded, ``files`` the sha256 of every
    file that it wrote, and ``colours`` those of the book's style in which its figures are drawn.
    """

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
    packages: Mapping[str, str]
    files: Mapping[str, str]
    colours: Sequence[str]


@dataclass(frozen=True)
class Standing:
    """The record of a finished run that stands, or None and the reason why the chapter has to run."""

    record: Record | None
    reason: str = ""


@dataclass(frozen=True)
class Running:
    """A chapter that runs in a process of its own, in a work folder that no other process uses."""

    chapter: notebooks.Chapter
    process: subprocess.Popen[bytes]
    folder: Path
    cpus: list[int]
    began: float


def results_folder(root: Path, name: str) -> Path:
    """Where the finished run of a chapter lies."""
    return root / "_build" / "chapters" / name


def work_folder(root: Path) -> Path:
    """Where the folders of what is being made lie; what no living process owns there is rubbish."""
    return root / "_build" / "work"


def _failed_folder(root: Path, name: str) -> Path:
    return root / "_build" / "failed" / name


def notebook_file(folder: Path, name: str) -> Path:
    """The executed notebook of a page in the folder of its run."""
    return folder / f"{notebooks.chapter_of(name)}.ipynb"


def standing(root: Path, name: str, key: str) -> Standing:
    """Whether the last run of a chapter stands: made with this key and these packages, every file as it was left."""
    folder = results_folder(root, name)
    if not folder.is_dir():
        return Standing(None, "it has no finished run")
    record = read_record(folder)
    if record is None:
        return Standing(None, f"its {RECORD} is missing or damaged")
    if record.key != key:
        return Standing(None, "what it is made of has changed")
    for package, then in record.packages.items():
        if (now := _version(package)) != then:
            return Standing(None, f"{package} was {then} when it ran and is {now} now")
    if damage := disk.damage(folder, {**record.files, RECORD: disk.digest(folder / RECORD)}):
        return Standing(None, f"its result is damaged, {damage}")
    return Standing(record)


def write_record(folder: Path, record: Record) -> None:
    """Write ``record`` to a folder of results, with a digest of itself."""
    content = asdict(record)
    disk.write(folder / RECORD, json.dumps({**content, "digest": _own_digest(content)}, indent=1) + "\n")


def read_record(folder: Path) -> Record | None:
    """The record in a folder of results, if it is there and nothing in it was altered."""
    try:
        content = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        digest = content.pop("digest")
        return Record(**content) if digest == _own_digest(content) else None
    except (OSError, TypeError, ValueError, KeyError, AttributeError):
        return None


def _own_digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def start(root: Path, chapter: notebooks.Chapter, cpus: list[int]) -> Running:
    """Start the published run of a chapter in a new process, on these processors, which ends when this one ends.

    Its output goes to ``log.txt`` in its work folder.
    """
    disk.remove(_failed_folder(root, chapter.name))
    folder = Path(tempfile.mkdtemp(prefix=f"{notebooks.slug(chapter.name)}-", dir=disk.folder(work_folder(root))))
    command = lifeline.calling(f"{__name__}:work", str(root), chapter.name, str(folder), cpus)
    process = lifeline.start(command, log=folder / "log.txt", environment=os.environ | {"PYTHONUTF8": "1"}, cwd=root)
    return Running(chapter, process, folder, cpus, time.perf_counter())


def progress(running: Running) -> Mapping[str, Any]:
    """The last progress record of a running chapter: cell, peak_bytes, ... (empty before the first cell)."""
    return _read(running.folder / "run" / "progress.json")


def said(running: Running) -> list[str]:
    """The lines that a chapter's process has printed about itself."""
    return [line for line in _log(running).splitlines() if line.startswith(f"{running.chapter.name}: ")]


def _log(running: Running) -> str:
    try:
        return (running.folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def end(running: Running) -> None:
    """End a chapter's process, if it still runs, and remove its work folder."""
    lifeline.stop(running.process)
    shutil.rmtree(running.folder, ignore_errors=True)


def failure(root: Path, running: Running) -> Failure:
    """Why a chapter's process ended without a result."""
    name = running.chapter.name
    try:
        return Failure(**_read(_failed_folder(root, name) / "failure.json"))
    except TypeError:
        status = running.process.returncode or 0
        number = -status if status < 0 else status - 128
        known = number in set(signal.Signals)
        how = f"was ended by {signal.Signals(number).name}" if known else "ended without a result"
        tail = _log(running)[-2000:].strip()
        return Failure(name, int(progress(running).get("cell", 0)), f"the process {how}: {tail or 'no log'}", "")


def publish(
    root: Path,
    name: str,
    *,
    threads: int,
    folder: Path | None = None,
    extra_environment: Mapping[str, str] | None = None,
    target: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Failure | None:
    """Run a chapter with its committed parameters and keep the result, or the failure.

    - ``folder``: the work folder, which exists; one of its own is made, and removed, unless given.
    - ``extra_environment``: variables for the kernel beside the clean environment, to compare machines and libraries.
      Such a run is part of nothing published: it needs a ``target``.
    - ``target``: where the result goes; by default to the results that the book is made of.
    - ``report``: told in a line when a kernel that did not start is started again.

    Raises ``ValueError`` if there is an ``extra_environment`` and no ``target``.
    """
    if extra_environment and target is None:
        raise ValueError(
            "target: expected a folder for a run with an extra_environment, which is not part of the book, got None"
        )
    with disk.own(folder) if folder else disk.owned(work_folder(root), notebooks.slug(name)) as owned:
        work = owned / "run"
        chapter = notebooks.load(root, name)
        key = freshness.key(root, chapter)
        state = freshness.state(root)
        failed = _failed_folder(root, name) if target is None else target.with_name(f"{target.name}.failed")
        disk.remove(failed)
        started = time.perf_counter()
        problem = run(
            root, chapter, work, threads=threads, state=state, extra_environment=extra_environment, report=report
        )
        if problem is None and (unseen := _unseen(root, chapter, work)):
            problem = Failure(name, 0, unseen, "")
        if problem is not None:
            disk.write(disk.folder(work) / "failure.json", json.dumps(asdict(problem)))
            disk.put(work, failed)
            return problem
        progress = _read(work / "progress.json")
        record = Record(
            chapter=name,
            key=key,
            commit=state.commit,
            dirty=state.dirty,
            parameters=chapter.parameters,
            versions=_versions(root),
            python=platform.python_version(),
            threads=threads,
            seconds=round(time.perf_counter() - started, 2),
            peak_bytes=progress["peak_bytes"],
            finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            packages=freshness.loaded_versions(progress["others"]),
            files=disk.digests(work),
            colours=freshness.colours(root),
        )
        write_record(work, record)
        disk.put(work, target or results_folder(root, name))
    return None


def run(
    root: Path,
    chapter: notebooks.Chapter,
    folder: Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    threads: int = 1,
    state: freshness.State | None = None,
    extra_environment: Mapping[str, str] | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Failure | None:
    """Execute a chapter into ``folder``: NAME.ipynb, ``figures/`` and ``measured.jsonl``.

    ``parameters`` override the committed ones (the quick profile of the tests); the pictures are then rough. The kernel
    gets a clean environment (see ``environment``), and of its own accord nobody's settings; ``extra_environment`` adds
    to it. A kernel that ends before its first cell is started again, and ``report`` is told. Returns the failure, or
    None.
    """
    private = folder / "kernel"
    disk.remove(private)
    scratch = private / "cwd"
    scratch.mkdir(parents=True)
    given = private / "input.ipynb"
    given.write_text(notebooks.serialise(chapter.notebook), encoding="utf-8")
    output = notebook_file(folder, chapter.name)
    variables = _environment(root, chapter, folder, parameters or {}, threads, state or freshness.state(root))
    if parameters is not None:
        variables["COMPANION_ROUGH"] = "1"
    variables |= dict(extra_environment or {})
    shared = variables["JAX_COMPILATION_CACHE_DIR"] == str(private / "compiled")
    if shared:
        compiled.lend(compiled.store(root), private / "compiled")
    for attempt in range(1, _STARTS + 1):
        problem = _execute(given, output, dict(parameters or {}), scratch, variables)
        if problem is None or _read(folder / "progress.json") or attempt == _STARTS:
            break
        report(f"{chapter.name}: its kernel did not start ({problem[0]}); it is started again")
    if shared:
        compiled.keep(private / "compiled", compiled.store(root))
    shutil.rmtree(private, ignore_errors=True)
    if problem is None:
        return None
    # papermill's count includes the cell of injected parameters and markdown cells; the kernel's is exact.
    return Failure(chapter.name, int(_read(folder / "progress.json").get("cell", 0)), *problem)


def _execute(
    given: Path, output: Path, parameters: dict[str, Any], scratch: Path, variables: Mapping[str, str]
) -> tuple[str, str] | None:
    """Execute a notebook in a kernel with these environment variables; returns its error and the failing code."""
    import papermill
    from papermill.engines import NBClientEngine, papermill_engines
    from traitlets.config import Config

    class SavingOnce(NBClientEngine):  # type: ignore[misc]
        """Writes the notebook when it starts and when it ends, however it ends; papermill does around each cell."""

        @classmethod
        def execute_managed_notebook(cls, notebook: Any, *arguments: Any, **options: Any) -> None:
            target, notebook.output_path = notebook.output_path, None
            try:
                super().execute_managed_notebook(notebook, *arguments, **options)
            finally:
                notebook.output_path = target

    papermill_engines.register(__package__, SavingOnce)
    saved = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="kernel-") as sockets:
        # A kernel binds ports that were free a moment before, and dies if another program has taken one meanwhile.
        # Sockets in a folder of its own are nobody else's.
        own = {"transport": "ipc", "ip": f"{sockets}/k"} if len(os.fsencode(sockets)) < _LONGEST_PATH else {}
        os.environ.clear()
        os.environ.update(variables)
        try:
            papermill.execute_notebook(
                # papermill formats them.
                *(str(path).replace("{", "{{").replace("}", "}}") for path in (given, output)),
                parameters=parameters,
                engine_name=__package__,
                kernel_name="python3",
                cwd=str(scratch),
                progress_bar=False,
                log_output=False,
                config=Config({"KernelManager": own}),
            )
        except papermill.PapermillExecutionError as error:
            return f"{error.ename}: {error.evalue}", error.source
        except Exception as error:  # the kernel died, or never started: still one chapter's failure, not the book's
            return repr(error), ""
        finally:
            os.environ.clear()
            os.environ.update(saved)
    return None


def _environment(
    root: Path,
    chapter: notebooks.Chapter,
    folder: Path,
    parameters: Mapping[str, Any],
    threads: int,
    state: freshness.State,
) -> dict[str, str]:
    private = folder / "kernel"
    startup = private / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("kernel_startup.py"), startup / "00-companion.py")
    (private / "matplotlibrc").touch()
    return {
        **environment.clean(),
        # The packages in the tree are those whose modules the key covers.
        "PYTHONPATH": os.pathsep.join(map(str, project.code(root))),
        "COMPANION_CODE": os.pathsep.join(map(str, project.code(root))),
        # Empty places where a user may keep settings.
        "IPYTHONDIR": str(private / "ipython"),
        "MATPLOTLIBRC": str(private / "matplotlibrc"),
        "JUPYTER_CONFIG_DIR": str(private / "jupyter"),
        "JUPYTER_DATA_DIR": str(private / "jupyter"),
        "JUPYTER_RUNTIME_DIR": str(private / "jupyter"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        # What numba and JAX keep has no checksum.
        "NUMBA_CACHE_DIR": str(private / "numba"),
        "JAX_COMPILATION_CACHE_DIR": str(private / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
        "COMPANION_ROOT": str(root),
        "COMPANION_OUT": str(folder),
        "COMPANION_CHAPTER": chapter.chapter,
        "COMPANION_PAGE": chapter.name,
        "COMPANION_PACKAGES": " ".join(sorted(freshness.own_packages(root))),
        "COMPANION_COMMIT": state.commit + ("+dirty" if state.dirty else ""),
        "COMPANION_PARAMETERS": json.dumps(dict(chapter.parameters) | dict(parameters)),
        **{variable: str(threads) for variable in THREAD_VARIABLES},
    }


def _unseen(root: Path, chapter: notebooks.Chapter, work: Path) -> str:
    """A module that the run loaded, or a file that it opened, and the key does not cover would leave stale pages."""
    progress = _read(work / "progress.json")
    if unseen := sorted(set(progress["modules"]) - freshness.library(root, chapter).keys()):
        return f"modules loaded but not covered by the freshness key (imported by a computed name?): {unseen}"
    if progress["settings"]:
        return f"settings of IPython read but not covered by the freshness key: {progress['settings']}; remove them"
    known = {os.path.realpath(path) for path in freshness.covered_files(root, chapter)}
    opened = {source for path in progress["opened"] if (source := _source(path)) is not None}
    if unseen := sorted(os.path.relpath(path, root) for path in opened if os.path.realpath(path) not in known):
        return (
            f"files of the repository opened but not covered by the freshness key: {unseen}; name in the front "
            "matter, companion: data, what the chapter reads"
        )
    return ""


def _source(path: str) -> str | None:
    """The file that an opened one stands for: the source of compiled Python; None for folders and other caches."""
    if os.path.basename(os.path.dirname(path)) == "__pycache__":
        return (
            util.source_from_cache(path)
            if re.fullmatch(r"[^.]+\.[^.]+(\.opt-\w+)?\.pyc", os.path.basename(path))
            else None
        )
    return None if os.path.isdir(path) else path


def _versions(root: Path) -> dict[str, str]:
    """What a page says that it was made with: the library, and the packages that the book's settings name."""
    who = project.identity(root)
    return {who.library: who.version} | {package: _version(package) for package in project.settings(root).versions}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content


def plain(text: str) -> str:
    """Text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def work(root: str, name: str, folder: str, cpus: Sequence[int]) -> int:
    """What the process does that ``start`` starts; returns its status."""
    if hasattr(os, "sched_setaffinity"):
        # JAX sizes its thread pool by the processors that it may use, not by OMP_NUM_THREADS.
        os.sched_setaffinity(0, cpus)
    try:
        problem = publish(Path(root), name, threads=len(cpus), folder=Path(folder), report=print)
    except OSError as error:
        print(disk.sentence(error), file=sys.stderr)
        return 2
    return 0 if problem is None else 1
