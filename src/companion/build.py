"""Builds the book or one chapter: runs what is stale, collects the results, renders the site, prints a summary."""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from companion import check, manuscript, project
from companion.declaring import compared, notebooks
from companion.findings import Findings
from companion.running import disk, environment, execution, freshness, ledger, lifeline, redrawing
from companion.site import catalogue, releases, rendering

AT_ONCE = 2
"""Chapters that run at the same time."""
_APART = ("chapter", "packages", "files", "colours")
"""What ``status.json`` leaves out of the record of a run."""

LONG = 120.0
"""So many seconds of audits are worth a first site of the lessons."""
_POLL_SECONDS = 0.2
_REPORT_SECONDS = 10.0


@dataclass
class Outcome:
    """What a build found. ``problems`` is empty exactly when the book may be published."""

    chapters: list[str]
    """Pages, in the order of the table of contents."""
    executed: list[str] = field(default_factory=list)
    failures: list[execution.Failure] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rendered: bool = False
    # A whole site of before was left in its place, because a chapter failed.
    kept: bool = False
    seconds: float = 0.0


def book(root: Path, *, only: str | None = None) -> Outcome:
    """Bring every chapter (or ``only`` one) up to date, check its claims, render the site, and print a summary.

    Nothing stops half way: a chapter that fails, a claim that does not hold and a page that breaks are all reported at
    the end, in ``Outcome.problems``. Every file of a finished chapter and of the site is compared with the digest
    recorded when it was made; what was lost or altered is named and made again.

    Raises ``ValueError`` if ``only`` is no chapter, or a chapter or a declaration of claims cannot be read,
    ``RuntimeError`` if another build is running in this tree, and ``OSError`` if ``_build`` cannot be written.
    """
    root = root.resolve()
    started = time.perf_counter()
    if findings := check.unreadable(root):
        raise Findings(findings)
    names = notebooks.names(root)
    known = notebooks.chapters(root)
    if only is not None and only not in known:
        raise ValueError(f"NAME: expected one of {known}, got {only!r}")
    with lifeline.orderly(), _lock(root):
        outcome = Outcome(names)
        chapters = {name: notebooks.load(root, name) for name in names}
        if findings := check.book(root, only=only):
            raise Findings(findings)
        keys = {name: freshness.key(root, chapter) for name, chapter in chapters.items()}
        wanted = names if only is None else [name for name in names if notebooks.chapter_of(name) == only]
        standing = {name: execution.standing(root, name, keys[name]) for name in names}
        for name in wanted:
            before = standing[name]
            standing[name] = redrawing.redraw(root, name, before)
            if standing[name].record not in (None, before.record):
                print(f"{name}: its figures are drawn again in other colours", flush=True)
        stale = [name for name in wanted if standing[name].record is None]
        for name in wanted:
            reason = standing[name].reason
            print(f"{name}: {f'{reason}: it runs' if name in stale else 'unchanged, its last run stands'}")
        outcome.executed = stale
        lessons = [name for name in names if not chapters[name].is_audit]
        reading = None if rendering.stands(root) or only else lambda: _first_site(root, chapters, keys, lessons)
        outcome.failures = _run(root, [chapters[name] for name in stale], reading)
        outcome.problems += [
            f"chapter {failure.chapter} failed in code cell {failure.cell}: {execution.plain(failure.error)}"
            for failure in outcome.failures
        ]
        outcome.problems += [
            f"notebooks/{name}.ipynb is out of sync with its text: run `make fix`"
            for name in notebooks.out_of_sync(root)
            if name in wanted
        ]
        standing |= {name: execution.standing(root, name, keys[name]) for name in stale}
        outcome.problems += [
            f"chapter {name}: its run does not stand, {standing[name].reason} meanwhile; build again"
            for name in stale
            if standing[name].record is None and name not in {failure.chapter for failure in outcome.failures}
        ]
        records = {name: one.record for name, one in standing.items() if one.record}
        results = {name: execution.results_folder(root, name) for name in records}
        outcome.problems += _collect(root, wanted, chapters, records, results, outcome.failures)
        print("Rendering the site", flush=True)
        built = rendering.render(root, results, outcome.failures)
        if built.damage:
            print(f"The site was damaged and is made again: {built.damage}")
        outcome.problems += built.problems
        outcome.rendered, outcome.kept = built.rendered, built.kept
    outcome.seconds = time.perf_counter() - started
    _summary(root, outcome, records)
    return outcome


def _first_site(
    root: Path, chapters: Mapping[str, notebooks.Chapter], keys: Mapping[str, str], lessons: Sequence[str]
) -> None:
    """A site of the lessons, if all of them ran, to be read while the audits run."""
    records = {name: record for name in lessons if (record := execution.standing(root, name, keys[name]).record)}
    if len(records) < len(lessons):
        return
    results = {name: execution.results_folder(root, name) for name in records}
    try:
        _collect(root, [], chapters, records, results, [])
        reason = "" if rendering.first(root, results) else "it lacks pages"
    except Exception as error:  # it is no more than a first look: the whole site says what is wrong
        reason = repr(error)
    said = f"There is no first site, {reason}" if reason else "The lessons can be read: _build/html/index.html"
    print(f"{said}; the whole site comes when all pages ran", flush=True)


def _run(
    root: Path, chapters: Sequence[notebooks.Chapter], when_lessons_ran: Callable[[], None] | None
) -> list[execution.Failure]:
    """Run chapters, ``AT_ONCE`` at a time, each with its share of the processors: the lessons, then the longest audits.

    ``when_lessons_ran`` is called beside the audits, if some are left, and has returned when this returns.
    """
    waiting = sorted(chapters, key=lambda chapter: chapter.budget if chapter.is_audit else math.inf, reverse=True)
    running: list[execution.Running] = []
    failures: list[execution.Failure] = []
    processors, at_once = environment.processors(), min(AT_ONCE, len(chapters))
    shares = [processors[place::at_once] or processors for place in range(at_once)]
    reported: dict[str, float] = {}
    beside: threading.Thread | None = None
    try:
        while waiting or running:
            left = [*waiting, *(run.chapter for run in running)]
            ran = all(chapter.is_audit for chapter in left) and sum(chapter.budget for chapter in left) > LONG
            if when_lessons_ran and beside is None and ran:
                # It ends with this process, and so does what it has started.
                beside = threading.Thread(target=when_lessons_ran, daemon=True)
                beside.start()
            while waiting and shares:
                running.append(execution.start(root, waiting.pop(0), shares.pop(0)))
                print(f"{running[-1].chapter.name}: started", flush=True)
            time.sleep(_POLL_SECONDS)
            for run in list(running):
                name, elapsed = run.chapter.name, time.perf_counter() - run.began
                if run.process.poll() is None:
                    if elapsed - reported.get(name, 0.0) >= _REPORT_SECONDS:
                        reported[name] = elapsed
                        cell = execution.progress(run).get("cell", 0)
                        print(f"{name}: cell {cell}/{len(run.chapter.code)}, {elapsed:.0f} s", flush=True)
                    continue
                running.remove(run)
                shares.append(run.cpus)
                for line in execution.said(run):
                    print(line)
                if run.process.returncode == 0:
                    print(f"{name}: finished after {elapsed:.0f} s", flush=True)
                else:
                    failures.append(execution.failure(root, run))
                    print(f"{name}: FAILED after {elapsed:.0f} s: {failures[-1].error}", flush=True)
                execution.end(run)
        if beside:
            beside.join()
    finally:
        for run in running:
            execution.end(run)
    return failures


def _collect(
    root: Path,
    wanted: Sequence[str],
    chapters: Mapping[str, notebooks.Chapter],
    records: Mapping[str, execution.Record],
    results: Mapping[str, Path],
    failures: Sequence[execution.Failure],
) -> list[str]:
    """Write ``figures/``, ``claims.json``, ``figures.json``, ``status.json`` from the results; returns the problems."""
    build = root / "_build"
    disk.remove(build / "figures")
    problems = []
    for name, folder in results.items():
        for figure in sorted((folder / "figures").glob("*/figure.json")):
            if (target := build / "figures" / figure.parent.name).exists():
                problems.append(f"figure {figure.parent.name}: published on two pages, the second is {name}")
                continue
            shutil.copytree(figure.parent, target)
    by_chapter = {chapter.chapter: chapter.source for chapter in chapters.values() if not chapter.is_audit}
    figures = catalogue.with_sources(root, rendering.figures_index(build / "figures"), by_chapter)
    disk.write(build / "figures.json", json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    entries, retired, of_claims = ledger.collect(root, list(by_chapter), results)
    disk.write(build / "claims.json", json.dumps(entries, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    of_claims += releases.problems(root, entries, retired)
    concerned = {notebooks.chapter_of(name) for name in wanted}
    ours = tuple(f"claim {name}." for name in concerned)
    problems += [problem for problem in of_claims if problem.startswith(ours)]
    ids = {figure["id"] for figure in figures}
    problems += [
        f"chapter {name}: its thumbnail {chapter.thumbnail!r} is not among its published figures"
        for name, chapter in chapters.items()
        if name in results and not chapter.is_audit and chapter.thumbnail not in ids
    ]
    problems += catalogue.unresolved(figure for figure in figures if figure["chapter"] in concerned)
    whole = {
        name for name in by_chapter if all(page in results for page in chapters if notebooks.chapter_of(page) == name)
    }
    problems += compared.problems(root, figures, list(by_chapter), sorted(concerned), whole)
    broken = {failure.chapter: failure for failure in failures}
    pages = [
        _page(chapter, records.get(name), broken.get(name), entries, figures) for name, chapter in chapters.items()
    ]
    who, state = project.identity(root), freshness.state(root)
    status = {
        "book": who.title,
        "version": who.version,
        "commit": state.commit,
        "dirty": state.dirty,
        "chapters": pages,
        "retired": retired,
    }
    disk.write(build / "status.json", json.dumps(status, indent=1) + "\n")
    return problems


def _page(
    chapter: notebooks.Chapter,
    record: execution.Record | None,
    failure: execution.Failure | None,
    entries: ledger.Entries,
    figures: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What ``status.json`` says of a page."""
    own = [entry for entry in entries if entry["page"] == chapter.name]
    page: dict[str, Any] = {
        "chapter": chapter.chapter,
        "page": chapter.name,
        "title": chapter.title,
        "summary": " ".join(chapter.summary.split()),
        "source": chapter.source,
        "prerequisites": chapter.prerequisites,
        "thumbnail": chapter.thumbnail,
        "budget_seconds": chapter.budget,
        "state": "finished" if record else "failed" if failure else "not run",
        "claims": len([entry for entry in own if entry["holds"] is not None]),
        "claims_held": len([entry for entry in own if entry["holds"]]),
        "figures": len([figure for figure in figures if figure["page"] == chapter.name]),
    }
    if record:
        page |= {name: value for name, value in vars(record).items() if name not in _APART}
    if failure:
        page["failure"] = {"cell": failure.cell, "error": execution.plain(failure.error)}
    return page


def _summary(root: Path, outcome: Outcome, records: Mapping[str, execution.Record]) -> None:
    status = json.loads((root / "_build" / "status.json").read_text(encoding="utf-8"))
    rows = [("chapter", "seconds", "peak MB", "claims", "figures", "")]
    for page in status["chapters"]:
        if page["state"] == "finished":
            said = "" if page["page"] in outcome.executed else "unchanged"
            if page["seconds"] > page["budget_seconds"]:
                said = f"over its budget of {page['budget_seconds']:.0f} s"
            spent = f"{page['seconds']:.1f}", f"{page['peak_bytes'] / 1e6:.0f}"
            rows.append((page["page"], *spent, f"{page['claims_held']}/{page['claims']}", str(page["figures"]), said))
        else:
            rows.append((page["page"], "-", "-", f"0/{page['claims']}", "-", page["state"]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, 5)), row[5]]
        print("  ".join(cells).rstrip())
    print(f"\nSite: {(root / '_build' / 'html' / 'index.html').relative_to(root)}", end="")
    left = "of the last whole build, since a chapter failed" if outcome.kept else "unchanged"
    print("" if outcome.rendered else f" ({left})")
    if any(record.dirty for record in records.values()):
        print("Some chapters were run from a tree with uncommitted changes; their pages say so.")
    if outcome.problems:
        print(f"\n{len(outcome.problems)} problem(s):")
        for problem in outcome.problems:
            print(f"  - {problem}")
    print(f"{'FAILED' if outcome.problems else 'OK'} after {outcome.seconds:.1f} s", flush=True)


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    """Two builds in one tree would overwrite each other's work; the second one says so and ends."""
    if (other := manuscript.kind(root / "_build")) not in ("a folder", "nothing"):
        raise ValueError(f"_build: expected a folder, or nothing, got {other or 'a file'}")
    (root / "_build").mkdir(exist_ok=True)
    path = root / "_build" / ".lock"
    if path.is_dir() or path.is_symlink():
        disk.remove(path)
    with path.open("a+", encoding="utf-8") as handle:
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
        disk.sweep_out(execution.work_folder(root))
        yield
