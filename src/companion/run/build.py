"""Builds the book or one chapter: runs what is stale, collects the results, renders the site, prints a summary."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from companion import check, claims, pages, project
from companion.claims import ledger
from companion.manuscript import Findings
from companion.run import execute, kernel, key, process
from companion.site import onpage, render

_AT_ONCE = 2
"""Pages that run at the same time."""
_LONG = 120.0
"""So many seconds of audits are worth a first site of the lessons."""
_POLL_SECONDS, _REPORT_SECONDS = 0.2, 10.0
_MOST_COMPILED = 500_000_000
"""Bytes of programs that XLA has compiled; beyond them all are forgotten, as those of earlier code are not needed."""
_MEASURED = re.compile(r"\{measured\}`([^`]+)`")


@dataclass
class Outcome:
    """What a build did. ``problems`` is empty exactly when the book may be published."""

    executed: list[str] = field(default_factory=list)
    failures: list[execute.Failure] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rendered: bool = False
    kept: bool = False
    """A whole site of before was left in its place, because a page failed."""
    seconds: float = 0.0


@dataclass(frozen=True)
class _Running:
    """A page that runs in a process of its own, in a work folder of its own."""

    chapter: pages.Chapter
    process: subprocess.Popen[bytes]
    folder: Path
    log: Path
    cpus: Sequence[int]
    began: float


def book(root: Path, only: str | None = None) -> Outcome:
    """Bring every page (or those of ``only`` one chapter) up to date, judge the claims, render the site, say how it is.

    Nothing stops half way: a page that fails, a claim that does not hold and a page that breaks are all reported at the
    end, in ``Outcome.problems``.

    Raises ``ValueError`` if ``only`` is no chapter, or something that is written by hand cannot be read, and
    ``RuntimeError`` if another build is running in this tree.
    """
    root, began = root.resolve(), time.perf_counter()
    if findings := check.book(root, only=only):
        raise Findings(findings)
    with _lock(root):
        chapters = {name: pages.load(root, name) for name in pages.names(root)}
        keys = {name: key.key(root, chapter) for name, chapter in chapters.items()}
        records = {name: execute.standing(root, name, keys[name]) for name in chapters}
        wanted = [name for name in chapters if only in (None, pages.chapter_of(name))]
        outcome = Outcome(executed=[name for name in wanted if records[name] is None])
        for name in wanted:
            print(f"{name}: {'it runs' if name in outcome.executed else 'unchanged, its last run stands'}")

        def finished() -> dict[str, execute.Record]:
            return {name: record for name in chapters if (record := execute.standing(root, name, keys[name]))}

        def first_site() -> None:
            lessons = {name: record for name, record in finished().items() if not chapters[name].is_audit}
            if all(name in lessons for name, chapter in chapters.items() if not chapter.is_audit):
                _collect(root, chapters, lessons, [])
                if render.first(root, _folders(root, lessons)):
                    print("The lessons can be read: _build/html/index.html; the audits come when they ran", flush=True)

        early = None if only or render.stands(root) else first_site
        outcome.failures = _run(root, [chapters[name] for name in outcome.executed], early)
        outcome.problems = [
            f"chapter {failure.chapter} failed {failure.where}: {process.colourless(failure.error)}"
            for failure in outcome.failures
        ]
        done, failed = finished(), {failure.chapter for failure in outcome.failures}
        outcome.problems += [
            f"chapter {name}: what it is made of changed while it ran; build again"
            for name in outcome.executed
            if name not in done and name not in failed
        ]
        concerned = sorted({pages.chapter_of(name) for name in wanted})
        outcome.problems += _collect(root, chapters, done, outcome.failures, concerned)
        print("Rendering the site", flush=True)
        site = render.render(root, _folders(root, done), outcome.failures)
        outcome.problems += site.problems
        outcome.rendered, outcome.kept = site.rendered, site.kept
    outcome.seconds = time.perf_counter() - began
    _summary(root, outcome)
    return outcome


def _folders(root: Path, names: Mapping[str, Any]) -> dict[str, Path]:
    return {name: execute.results_folder(root, name) for name in names}


def _run(
    root: Path, chapters: Sequence[pages.Chapter], when_lessons_ran: Callable[[], None] | None
) -> list[execute.Failure]:
    """Run pages, some at a time, each with its share of the processors: the lessons first, then the longest audits.

    ``when_lessons_ran`` is called beside the audits, if many are left, and has returned when this returns.
    """
    waiting = sorted(chapters, key=lambda chapter: chapter.budget if chapter.is_audit else math.inf, reverse=True)
    running: list[_Running] = []
    failures: list[execute.Failure] = []
    processors, at_once = process.processors(), min(_AT_ONCE, len(chapters))
    shares = [processors[place::at_once] or processors for place in range(at_once)]
    reported: dict[str, float] = {}
    beside: threading.Thread | None = None
    try:
        while waiting or running:
            left = [*waiting, *(one.chapter for one in running)]
            audits = all(chapter.is_audit for chapter in left) and sum(chapter.budget for chapter in left) > _LONG
            if when_lessons_ran and beside is None and audits:
                # It ends with this process, and so does what it has started.
                beside = threading.Thread(target=when_lessons_ran, daemon=True)
                beside.start()
            while waiting and shares:
                running.append(_start(root, waiting.pop(0), shares.pop(0)))
                print(f"{running[-1].chapter.name}: started", flush=True)
            time.sleep(_POLL_SECONDS)
            for one in list(running):
                name, elapsed = one.chapter.name, time.perf_counter() - one.began
                if one.process.poll() is None:
                    if elapsed - reported.get(name, 0.0) >= _REPORT_SECONDS:
                        reported[name] = elapsed
                        print(f"{name}: cell {_progress(one)}/{len(one.chapter.code)}, {elapsed:.0f} s", flush=True)
                    continue
                running.remove(one)
                shares.append(list(one.cpus))
                if one.process.returncode == 0:
                    print(f"{name}: finished after {elapsed:.0f} s", flush=True)
                else:
                    failures.append(_failure(root, one))
                    print(f"{name}: FAILED after {elapsed:.0f} s: {failures[-1].error}", flush=True)
                process.stop(one.process)
        if beside:
            beside.join()
    finally:
        for one in running:
            process.stop(one.process)
    return failures


def _start(root: Path, chapter: pages.Chapter, cpus: Sequence[int]) -> _Running:
    process.remove(execute.failure_file(root, chapter.name).parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{pages.slug(chapter.name)}-", dir=root / "_build" / "work"))
    log = folder.with_suffix(".log")
    command = process.calling(f"{execute.__name__}:work", str(root), chapter.name, str(folder), cpus)
    press = {"PYTHONPATH": str(Path(__file__).parents[2])}
    child = process.start(command, log=log, environment=kernel.clean() | press, cwd=root)
    return _Running(chapter, child, folder, log, cpus, time.perf_counter())


def _progress(running: _Running) -> int:
    try:
        return int((running.folder / "progress").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0


def _failure(root: Path, running: _Running) -> execute.Failure:
    """Why a page's process ended without a result."""
    name, status = running.chapter.name, running.process.returncode or 0
    try:
        return execute.Failure(**json.loads(execute.failure_file(root, name).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        number = -status if status < 0 else status - 128
        how = f"was ended by {signal.Signals(number).name}" if number in set(signal.Signals) else "left no result"
        said = running.log.read_text(encoding="utf-8", errors="replace")[-2000:].strip()
        return execute.Failure(name, _progress(running), f"its process {how}: {said or 'it said nothing'}")


def _collect(
    root: Path,
    chapters: Mapping[str, pages.Chapter],
    records: Mapping[str, execute.Record],
    failures: Sequence[execute.Failure],
    concerned: Sequence[str] = (),
) -> list[str]:
    """Write ``figures/``, ``claims.json``, ``figures.json``, ``status.json`` from the results of ``records``.

    Returns the problems of the chapters that are ``concerned``.
    """
    build, results = root / "_build", _folders(root, records)
    entries = ledger.collect(root, results)
    figures = _figures(root, [chapters[name] for name in records], ledger.by_id(entries))
    failed = {failure.chapter: failure for failure in failures}
    at, who = key.state(root), project.identity(root)
    status = {
        "book": who.title,
        "version": who.version,
        "commit": at.commit,
        "dirty": at.dirty,
        "chapters": [
            _status(chapter, records.get(name), failed.get(name), entries, figures)
            for name, chapter in chapters.items()
        ],
        "retired": ledger.retired(root),
    }
    for name, content in {"claims": entries, "figures": figures, "status": status}.items():
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        process.write(build / f"{name}.json", text)
    # Of a page that failed nothing is measured, which its failure says.
    stopped = {pages.chapter_of(name) for name in failed}
    said = [entry for entry in entries if entry["chapter"] not in stopped or entry["measured"] is not None]
    return ledger.problems(said, concerned)


def _figures(root: Path, finished: Sequence[pages.Chapter], entries: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Copy the figures of the pages to ``_build/figures``; returns their records, with the words of today."""
    target, sources, found = root / "_build" / "figures", _sources(root), []
    process.remove(target)
    for chapter in finished:
        folder = execute.results_folder(root, chapter.name)
        words = _words(chapter, nbformat.read(execute.notebook_file(folder, chapter.name), as_version=4), entries)
        for path in sorted((folder / "figures").glob("*/figure.json")):
            id = path.parent.name
            record = {"source": sources.get(id, "this book"), **json.loads(path.read_text(encoding="utf-8"))}
            record |= words.get(id, {})
            shutil.copytree(path.parent, target / id, dirs_exist_ok=True)
            process.write(target / id / path.name, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
            found.append(record)
    return sorted(found, key=lambda record: str(record["id"]))


def _sources(root: Path) -> dict[str, str]:
    """The published figure that a figure makes again, by id: the first item of a source that names it as its answer."""
    found: dict[str, str] = {}
    for text in project.sources(root):
        work = project.names_and_year(project.references(root)[text])
        for item in claims.items(root, text):
            for id in item.figures if item.kind == "figure" else ():
                found.setdefault(id, f"after {work}, section {item.where}: {item.says}")
    return found


def _words(chapter: pages.Chapter, executed: Any, entries: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Caption and alternative text of the figures of a page, by id, with the numbers in place of the expressions.

    In a caption Sphinx reads the roles; an alternative text has plain words only.
    """
    values, found = onpage.expressions(executed), {}
    code = [cell for cell in chapter.notebook.cells if cell.cell_type == "code"]
    for place, cell in enumerate(code, start=1):
        if id := key.figure_name(cell):
            said = cell.metadata["mystnb"]
            caption, alt = (
                " ".join(key.evaluated(str(text), values[place]).split())
                for text in (said["figure"].get("caption", ""), said.get("image", {}).get("alt", ""))
            )
            found[id] = {"caption": caption, "alt": _MEASURED.sub(lambda one: ledger.quoted(one[1], entries)[0], alt)}
    return found


def _status(
    chapter: pages.Chapter,
    record: execute.Record | None,
    failure: execute.Failure | None,
    entries: Sequence[Mapping[str, Any]],
    figures: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What ``status.json`` says of a page."""
    own = [entry for entry in entries if entry["page"] == chapter.name]
    return {
        "chapter": chapter.chapter,
        "page": chapter.name,
        "title": chapter.title,
        "summary": " ".join(chapter.summary.split()),
        "source": chapter.source,
        "prerequisites": chapter.prerequisites,
        "budget_seconds": chapter.budget,
        "state": "finished" if record else "failed" if failure else "not run",
        "claims": sum(entry["holds"] is not None for entry in own),
        "claims_held": sum(bool(entry["holds"]) for entry in own),
        "figures": sum(figure["page"] == chapter.name for figure in figures),
        **({name: value for name, value in asdict(record).items() if name != "chapter"} if record else {}),
        **({"failure": {"cell": failure.cell, "error": process.colourless(failure.error)}} if failure else {}),
    }


def _summary(root: Path, outcome: Outcome) -> None:
    status = json.loads((root / "_build" / "status.json").read_text(encoding="utf-8"))
    rows = [("chapter", "seconds", "peak MB", "claims", "figures", "")]
    for page in status["chapters"]:
        spent, said = ("-", "-"), str(page["state"])
        if said == "finished":
            spent = f"{page['seconds']:.1f}", f"{page['peak_bytes'] / 1e6:.0f}"
            said = "" if page["page"] in outcome.executed else "unchanged"
            if page["seconds"] > page["budget_seconds"]:
                said = f"over its budget of {page['budget_seconds']:.0f} s, which is no failure"
        rows.append((page["page"], *spent, f"{page['claims_held']}/{page['claims']}", str(page["figures"]), said))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, 5)), row[5]]
        print("  ".join(cells).rstrip())
    left = "of the last whole build, since a chapter failed" if outcome.kept else "unchanged"
    print("\nSite: _build/html/index.html" + ("" if outcome.rendered else f" ({left})"))
    if any(page.get("dirty") for page in status["chapters"]):
        print("Some chapters were run from a tree with uncommitted changes; their pages say so.")
    if outcome.problems:
        print(f"\n{len(outcome.problems)} problem(s):", *(f"  - {problem}" for problem in outcome.problems), sep="\n")
    print(f"{'FAILED' if outcome.problems else 'OK'} after {outcome.seconds:.1f} s", flush=True)


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    """Two builds in one tree would overwrite each other's work; the second says so and ends."""
    build = root / "_build"
    build.mkdir(exist_ok=True)
    with (build / ".lock").open("a+", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            raise RuntimeError(
                f"another build is running in this tree (process {holder} holds _build/.lock)"
            ) from error
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        process.remove(build / "work")
        (build / "work").mkdir()
        compiled = build / "compiled"
        if sum(path.stat().st_size for path in compiled.rglob("*") if path.is_file()) > _MOST_COMPILED:
            process.remove(compiled)
        yield
