"""Runs a page and writes its results into a folder: the executed notebook, its figures and its measurements.

A run writes to a work folder of its own, and only a run that finished is moved to the folder of results. A result
without a readable record of the same key is run again; there is no other recovery.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat

from companion import pages, project
from companion.run import kernel, process
from companion.run.key import checks, key, state

RECORD = "record.json"
"""What a finished run says of itself, in its folder."""


@dataclass(frozen=True)
class Failure:
    """Where and why a page stopped; ``cell`` counts code cells from 1, and is 0 outside of them, as in its checks."""

    chapter: str
    cell: int
    error: str

    @property
    def where(self) -> str:
        """The place in words."""
        return f"in code cell {self.cell}" if self.cell else "outside of its cells"


@dataclass(frozen=True)
class Record:
    """What a finished run leaves beside its notebook; ``packages`` are those that its kernel had loaded."""

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


def results_folder(root: Path, name: str) -> Path:
    """Where the finished run of a page is."""
    return root / "_build" / "chapters" / pages.slug(name)


def notebook_file(folder: Path, name: str) -> Path:
    """The executed notebook of a page in the folder of its run."""
    return folder / f"{pages.slug(name)}.ipynb"


def failure_file(root: Path, name: str) -> Path:
    """What the last run of a page left if it failed."""
    return root / "_build" / "failed" / pages.slug(name) / "failure.json"


def standing(root: Path, name: str, key: str) -> Record | None:
    """The record of the finished run of a page, if it was made with this key."""
    try:
        content = json.loads((results_folder(root, name) / RECORD).read_text(encoding="utf-8"))
        record = Record(**content)
    except (OSError, TypeError, ValueError):
        return None
    return record if record.key == key else None


def publish(root: Path, name: str, folder: Path, threads: int) -> Failure | None:
    """Run a page with its committed parameters, in the work folder ``folder``, and keep the result or the failure."""
    chapter, failed = pages.load(root, name), failure_file(root, name)
    made_of, at, began = key(root, chapter), state(root), time.perf_counter()
    facts: dict[str, Any] = {}
    problem = run(root, chapter, folder, threads=threads, facts=facts)
    process.remove(failed.parent)
    if problem is not None:
        (folder / failed.name).write_text(json.dumps(asdict(problem)), encoding="utf-8")
        process.put(folder, failed.parent)
        return problem
    record = Record(
        chapter=name,
        key=made_of,
        commit=at.commit,
        dirty=at.dirty,
        parameters=chapter.parameters,
        versions=_versions(root),
        python=platform.python_version(),
        threads=threads,
        seconds=round(time.perf_counter() - began, 2),
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **facts,
    )
    (folder / RECORD).write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
    process.put(folder, results_folder(root, name))
    return None


def run(
    root: Path,
    chapter: pages.Chapter,
    folder: Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    threads: int = 1,
    extra_environment: Mapping[str, str] | None = None,
    facts: dict[str, Any] | None = None,
) -> Failure | None:
    """Execute a page into ``folder``: its notebook, ``figures/`` and ``measured.jsonl``. Returns the failure, or None.

    ``parameters`` override the committed ones (the quick profile of the tests); the pictures are then rough. The kernel
    has a clean environment, and ``extra_environment`` beside it. ``facts`` takes what the kernel says at its end:
    ``peak_bytes`` and ``packages``.
    """
    from companion.run import engine

    folder.mkdir(parents=True, exist_ok=True)
    at = state(root)
    with tempfile.TemporaryDirectory(prefix="kernel-") as private:
        Path(private, "cwd").mkdir()
        variables = {
            **kernel.environment(root, Path(private), threads),
            "COMPANION_ROOT": str(root),
            "COMPANION_OUT": str(folder),
            "COMPANION_CHAPTER": chapter.chapter,
            "COMPANION_PAGE": chapter.name,
            "COMPANION_COMMIT": at.commit + "+dirty" * at.dirty,
            "COMPANION_PARAMETERS": json.dumps({**chapter.parameters, **(parameters or {})}),
            **({} if parameters is None else {"COMPANION_ROUGH": "1"}),
            **(extra_environment or {}),
        }
        page = engine.Page(
            folder=folder,
            limit=chapter.limit or max(10 * chapter.budget, 300.0),
            checks=checks(root, chapter),
            variables=variables,
            private=Path(private),
        )
        try:
            engine.execute(chapter.notebook, parameters or {}, page)
        except engine.Stopped as stopped:
            return Failure(chapter.name, page.cell, str(stopped))
        except Exception as error:  # the kernel never started: still one page's failure, not the book's
            return Failure(chapter.name, page.cell, repr(error))
        finally:
            (folder / "progress").unlink(missing_ok=True)
            if page.notebook is not None:
                nbformat.write(page.notebook, notebook_file(folder, chapter.name))
    if facts is not None:
        facts.update(page.facts)
    return None


def _versions(root: Path) -> dict[str, str]:
    """What a page says that it was made with: the library, and the packages that the book's settings name."""
    who, found = project.identity(root), {}
    for package in who.versions:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {who.library: who.version} | found


def work(root: str, name: str, folder: str, cpus: Sequence[int]) -> int:
    """What the process of a page does, on these processors; returns its status."""
    if hasattr(os, "sched_setaffinity"):
        # JAX sizes its thread pool by the processors that it may use, not by OMP_NUM_THREADS.
        os.sched_setaffinity(0, cpus)
    try:
        return 0 if publish(Path(root), name, Path(folder), len(cpus)) is None else 1
    except OSError as error:
        print(error, file=sys.stderr)  # such as a disk that is full
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
