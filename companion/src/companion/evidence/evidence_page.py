"""Shows what long runs have measured, from what is kept in ``book/evidence``; an extension of Sphinx.

Three tables: the smallest error that would be seen, function by function; the planted faults and who noticed; and how
far each claim moves on other paths through the processor. Each begins with the version, the commit and the day that it
speaks of. What has not been run is said in its row, and so is what was carried over from a record before.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from markupsafe import Markup
from sphinx.application import Sphinx

from companion import project
from companion.declaring import equations
from companion.evidence import epsilon, faults, portability, records
from companion.site import directives
from companion.site.markup import count, fill

_OLD = "of a record before"
_EQUATIONS_SHOWN = 1
_REASONS = {
    epsilon.SEEN: "",
    epsilon.RECORD: "holds results and computes nothing when it is called",
    epsilon.NOT_RUN: "not run yet",
    epsilon.NOT_CALLED: "the cells of its claims do not call it",
    epsilon.NOTHING: "it is called and returns no floating number",
    epsilon.BLIND: "it is multiplied and no claim moves",
    epsilon.STOPS: "the page stops at an error of a thousandth, or does not measure the claim",
    epsilon.UNSOUND: "no result: the statements of its claims alone give other numbers than the page",
}
_BLIND = 0.1
"""An error of a tenth that nobody notices makes a function one that the book is blind for."""


class Evidence(directives.Directive):
    """The table of one record, under the version, the commit and the day that it speaks of.

    - ``{smallest-errors}``: for every function that a claim names, the smallest error that its claims would notice.
    - ``{planted-faults}``: every fault of the list, the first test that failed, and the claims that did not hold.
    - ``{parity}``: for every path through the processor what failed, what moved, and how much of its bound it took.
    """

    def run(self) -> list[nodes.Node]:
        """Nothing stands above the table where the release is not known, as where nothing is recorded."""
        if waits := self.waits():
            return waits
        name, said = TABLES[self.name]
        of = records.origin(self.root, name)
        head = fill("evidence.of_record", of=of) if of else ""
        return [self.raw(head + said(self.root, records.read(self.root, name), self.to_root()))]


def of_epsilon(study: epsilon.Study, kept: Mapping[str, Mapping[str, Any]], to_root: str) -> str:
    """Totals, the functions for which the book is blind, all that were run, the least noticed first, and the others."""
    rows = epsilon.rows(study, kept)
    seen = [row.epsilon for row in rows if row.epsilon is not None]
    counts = {state: sum(row.state == state for row in rows) for state in dict.fromkeys(row.state for row in rows)}
    asked = len(rows) - counts.get(epsilon.RECORD, 0)
    totals = f"{count(asked, 'function')} that claims name; {len(seen)} of them measured"
    if seen:
        totals += (
            f", with a median of {_power(statistics.median(seen))}; "
            f"{sum(one <= epsilon.FACTOR for one in seen)} at {_power(epsilon.FACTOR)} or less, "
            f"{sum(one > _BLIND for one in seen)} above a tenth"
        )
    totals += f"; {counts.get(epsilon.NOT_RUN, 0)} not run yet."
    by_function: dict[str, list[equations.Row]] = {}
    for one in study.map.rows:
        for name in one.functions:
            by_function.setdefault(name, []).append(one)
    works, package = project.references(study.root), study.map.packages[0]

    def named(row: equations.Row) -> str:
        source = project.names_and_year(works[row.source]) if row.source in works else row.source
        return row.label or f"{source}, {row.words}"

    run = [row for row in rows if row.state != epsilon.NOT_RUN]
    return fill(
        "evidence.epsilon",
        totals=Markup(totals),
        blind=[row for row in rows if row.epsilon is not None and row.epsilon > _BLIND],
        rows=sorted(run, key=lambda row: -1.0 if row.epsilon is None else row.epsilon, reverse=True),
        waiting=[row.function for row in rows if row.state == epsilon.NOT_RUN],
        reasons=_REASONS,
        equations=by_function,
        most=_EQUATIONS_SHOWN,
        named=named,
        short_name=lambda name: name.removeprefix(f"{package}."),
        linked=equations.wanted(study.root),
        power=_power,
        old=_OLD,
        to_root=to_root,
    )


def of_faults(root: Path, kept: Mapping[str, Mapping[str, Any]], to_root: str) -> str:
    """Totals by size, the faults that nobody noticed, all that were planted, and the others."""
    by_fault: dict[faults.Fault, list[faults.Job]] = {}
    for job in faults.jobs(root, keyed=False):
        if job.fault is not None:
            by_fault.setdefault(job.fault, []).append(job)
    sizes, missed, planted, left = [], [], [], []
    for size in faults.SIZES:
        mine = [fault for fault in by_fault if fault.size == size]
        tested = [one for fault in mine if (one := _tests_of(by_fault[fault], kept)) is not None]
        read = [fault for fault in mine if fault.pages and not _missing(by_fault[fault], kept)]
        by_page = sum(any(map(_notices, _pages_of(by_fault[fault], kept))) for fault in read)
        pages = [page for fault in mine for page in _pages_of(by_fault[fault], kept)]
        failed = [one for one in tested if _failed(one)]
        tests_said = (len(tested), len(failed), _median_seconds(failed))
        sizes.append((size, len(mine), *tests_said, len(read), by_page, _median_seconds(pages)))
    for fault, jobs in by_fault.items():
        tests, pages, waiting = _tests_of(jobs, kept), _pages_of(jobs, kept), _missing(jobs, kept)
        if tests is None and not pages:
            left.append(f"{fault.what.rstrip('.')} ({fault.about})")
            continue
        by_page = any(map(_notices, pages))
        if tests is not None and not _failed(tests) and not by_page:
            missed.append({"fault": fault, "waiting": waiting})
        found = {"fault": fault, "tests": tests, "pages": pages, "waiting": waiting, "seen_by_page": by_page}
        planted.append(found | {"old": any(kept.get(job.name, {}).get("older") for job in jobs)})
    facts = {"sizes": sizes, "missed": missed, "planted": planted, "left": left}
    return fill("evidence.faults", **facts, old=_OLD, to_root=to_root)


def _median_seconds(runs: Sequence[Mapping[str, Any]]) -> str:
    """Of processor time, to start Python and import included."""
    return f"{statistics.median(float(one['seconds']) for one in runs):.0f}" if runs else "–"


def _tests_of(jobs: Sequence[faults.Job], kept: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((kept[job.name] for job in jobs if job.unit == faults.TESTS and job.name in kept), None)


def _pages_of(jobs: Sequence[faults.Job], kept: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [kept[job.name] for job in jobs if job.unit != faults.TESTS and job.name in kept]


def _missing(jobs: Sequence[faults.Job], kept: Mapping[str, Mapping[str, Any]]) -> list[faults.Job]:
    return [job for job in jobs if job.unit != faults.TESTS and job.name not in kept]


def _failed(tests: Mapping[str, Any]) -> bool:
    return bool(tests.get("failed") or tests.get("late"))


def _notices(page: Mapping[str, Any]) -> bool:
    return bool(page["claims"] or page["stopped"])


def of_paths(root: Path, kept: Mapping[str, Mapping[str, Any]], to_root: str) -> str:
    """A row for each path, and the claims that move by more than a tenth of their bound."""
    jobs = [job for job in portability.jobs(root, keyed=False) if job.path.name != portability.AS_IS]
    lines, far = [], []
    for path in dict.fromkeys(job.path.name for job in jobs):
        mine = {job.name: job for job in jobs if job.path.name == path}
        done = {name: kept[name] for name in mine if name in kept}
        pages = [one for name, one in done.items() if mine[name].is_chapter]
        tests = [one for name, one in done.items() if not mine[name].is_chapter]
        shares = [(share, id) for one in pages for id, (_, share) in one["moved"].items() if share is not None]
        share, farthest = max(shares, default=(0.0, ""))
        claimed, moved = sum(one["claims"] for one in pages), sum(len(one["moved"]) for one in pages)
        left, old = sum(name not in kept for name in mine), sum(one.get("older", False) for one in done.values())
        stopped = sum("stopped" in one for one in pages)
        state = [
            *([f"{left} of {count(len(mine), 'run')} not run yet"] if left else []),
            *([f"{old} {_OLD}"] if old else []),
            *([f"{count(stopped, 'page')} stopped"] if stopped else []),
        ]
        lines.append(
            {
                "path": path,
                "tests": sum(one["tests"] for one in tests),
                "red": sum(len(one["failed"]) for one in tests),
                "claims": claimed,
                "equal": claimed - moved,
                "broken": [id for one in pages for id in one["broken"]],
                "share": share,
                "farthest": farthest,
                "state": ", ".join(state),
            }
        )
        far += [(share, id, path) for share, id in shares if share > _BLIND]
    red = [
        (name.partition(" | ")[0], test.rpartition("::")[2], one.get("older", False))
        for name, one in kept.items()
        for test in one.get("failed", ())
    ]
    return fill("evidence.paths", lines=lines, far=sorted(far, reverse=True), red=red, old=_OLD, to_root=to_root)


def _power(value: float) -> str:
    """A positive number with two digits, as a reader writes it."""
    if math.isinf(value) or value >= 1.0:
        return "over 1"
    if value >= _BLIND / 100:
        return f"{value:.2g}"
    exponent = math.floor(math.log10(value)) if value > 0 else 0
    digits = f"{value / 10.0**exponent:.1f}"
    if digits == "10.0":
        digits, exponent = "1.0", exponent + 1
    return f"{digits} × 10<sup>−{-exponent}</sup>" if value > 0 else "0"


TABLES: Mapping[str, tuple[str, Callable[[Path, Mapping[str, Mapping[str, Any]], str], str]]] = {
    "smallest-errors": (
        epsilon.EVIDENCE,
        lambda root, kept, to_root: of_epsilon(epsilon.Study(root, keyed=False), kept, to_root),
    ),
    "planted-faults": (faults.EVIDENCE, of_faults),
    "parity": (portability.EVIDENCE, of_paths),
}
"""The record and the table of each directive."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives. This room builds on that of the site, which knows nothing of it."""
    for name in TABLES:
        app.add_directive(name, Evidence)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
