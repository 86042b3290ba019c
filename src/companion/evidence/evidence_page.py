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
from sphinx.application import Sphinx

from companion import project
from companion.declaring import equations
from companion.evidence import epsilon, faults, portability, records
from companion.site import directives
from companion.site.markup import count, fill

Results = Mapping[str, Mapping[str, Any]]
"""What is kept of jobs, by their names."""
_OLD = "of a record before"
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


def of_epsilon(root: Path, kept: Results, to_root: str) -> str:
    """Totals, the functions for which the book is blind, all that were run, the least noticed first, and the others."""
    study = epsilon.Study(root, keyed=False)
    rows = epsilon.rows(study, kept)
    seen = [row.epsilon for row in rows if row.epsilon is not None]
    blind = [row for row in rows if row.epsilon is not None and row.epsilon > _BLIND]
    by_function: dict[str, list[equations.Row]] = {}
    for one in study.map.rows:
        for name in one.functions:
            by_function.setdefault(name, []).append(one)
    works, package = project.references(study.root), study.map.packages[0]

    def named(row: equations.Row) -> str:
        source = project.names_and_year(works[row.source]) if row.source in works else row.source
        return row.label or f"{source}, {row.words}"

    run = [row for row in rows if row.state != epsilon.State.NOT_RUN]
    return fill(
        "evidence.epsilon",
        asked=sum(row.state != epsilon.State.RECORD for row in rows),
        measured=len(seen),
        median=statistics.median(seen) if seen else None,
        least=epsilon.FACTOR,
        seen=sum(one <= epsilon.FACTOR for one in seen),
        blind=blind,
        rows=sorted(run, key=lambda row: -1.0 if row.epsilon is None else row.epsilon, reverse=True),
        waiting=[row.function for row in rows if row.state == epsilon.State.NOT_RUN],
        equations=by_function,
        named=named,
        short_name=lambda name: name.removeprefix(f"{package}."),
        linked=equations.wanted(study.root),
        power=_power,
        old=_OLD,
        to_root=to_root,
    )


def of_faults(root: Path, kept: Results, to_root: str) -> str:
    """Totals by size, the faults that nobody noticed, all that were planted, and the others."""
    whole: dict[faults.Fault, dict[str, Any]] = {}
    for job in faults.jobs(root, keyed=False):
        if job.fault is None:
            continue
        row = whole.setdefault(job.fault, {"fault": job.fault, "tests": None, "pages": [], "waiting": 0, "old": False})
        result = kept.get(job.name)
        if result is None:
            row["waiting"] += job.unit != faults.TESTS
            continue
        row["old"] |= result.get("older", False)
        if job.unit == faults.TESTS:
            row["tests"] = result
        else:
            row["pages"].append(result)
    for row in whole.values():
        row["seen_by_test"] = row["tests"] is not None and faults.seen_by_tests(row["tests"])
        row["seen_by_page"] = any(page["claims"] or page["stopped"] for page in row["pages"])
    sizes = []
    for size in faults.SIZES:
        mine = [row for row in whole.values() if row["fault"].size == size]
        read = [row for row in mine if row["pages"] and not row["waiting"]]
        failed = [row["tests"] for row in mine if row["seen_by_test"]]
        tests = (sum(row["tests"] is not None for row in mine), len(failed), _median_seconds(failed))
        by_page = sum(row["seen_by_page"] for row in read)
        pages = [page for row in mine for page in row["pages"]]
        sizes.append((size, len(mine), *tests, len(read), by_page, _median_seconds(pages)))
    planted = [row for row in whole.values() if row["tests"] is not None or row["pages"]]
    missed = [row for row in planted if row["tests"] is not None and not (row["seen_by_test"] or row["seen_by_page"])]
    left = [f"{row['fault'].what.rstrip('.')} ({row['fault'].about})" for row in whole.values() if row not in planted]
    facts = {"sizes": sizes, "missed": missed, "planted": planted, "left": left}
    return fill("evidence.faults", **facts, old=_OLD, to_root=to_root)


def _median_seconds(runs: Sequence[Mapping[str, Any]]) -> str:
    """Of processor time, to start Python and import included."""
    return f"{statistics.median(float(one['seconds']) for one in runs):.0f}" if runs else "–"


def of_paths(root: Path, kept: Results, to_root: str) -> str:
    """A row for each path, and the claims that move by more than a tenth of their bound."""
    jobs = [job for job in portability.jobs(root, keyed=False) if job.path.name != portability.AS_IS]
    lines, far = [], []
    for path in dict.fromkeys(job.path.name for job in jobs):
        of_path = (job for job in jobs if job.path.name == path)
        mine = {job.name: job for job in of_path if job.name in kept or portability.concerned(root, job)}
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
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits} × 10<sup>−{-int(exponent)}</sup>" if value > 0 else "0"


TABLES: Mapping[str, tuple[str, Callable[[Path, Results, str], str]]] = {
    "smallest-errors": (epsilon.EVIDENCE, of_epsilon),
    "planted-faults": (faults.EVIDENCE, of_faults),
    "parity": (portability.EVIDENCE, of_paths),
}
"""The record and the table of each directive."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives. This room builds on that of the site, which knows nothing of it."""
    for name in TABLES:
        app.add_directive(name, Evidence)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
