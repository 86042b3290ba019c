"""Shows what long runs have measured, from what is kept in ``book/evidence``; an extension of Sphinx.

Three tables: the smallest error that would be seen, function by function; the planted faults and who noticed; and how
far each claim moves on other paths through the processor. Each begins with the version, the commit and the day that it
speaks of. What has not been run is said in its row, and so is what was carried over from a record before.
"""

from __future__ import annotations

import html
import math
import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from companion import claims, project
from companion.declaring import equations, notebooks
from companion.evidence import epsilon, faults, portability, records
from companion.running import freshness
from companion.site import directives

__all__ = ["Parity", "PlantedFaults", "SmallestErrors", "of_epsilon", "of_faults", "of_paths", "setup"]

_OLD = "of a record before"
_CLAIMS = "book/claims.html"
_EQUATIONS_SHOWN = 1
_BLIND = 0.1
"""An error of a tenth that nobody notices makes a function one that the book is blind for."""


class SmallestErrors(directives.Directive):
    """``{smallest-errors}``: for every function that a claim names, the smallest error that its claims would notice."""

    def run(self) -> list[nodes.Node]:
        """The table."""
        kept = records.read(self.root, epsilon.EVIDENCE)
        said = of_epsilon(_study(self.root), kept, self.to_root())
        return [self.raw(_origin(self.root, epsilon.EVIDENCE) + said)]


class PlantedFaults(directives.Directive):
    """``{planted-faults}``: every fault of the list, the first test that failed, and the claims that did not hold."""

    def run(self) -> list[nodes.Node]:
        """The table."""
        said = of_faults(self.root, records.read(self.root, faults.EVIDENCE), self.to_root())
        return [self.raw(_origin(self.root, faults.EVIDENCE) + said)]


class Parity(directives.Directive):
    """``{parity}``: for every path through the processor what failed, what moved, and how much of its bound it took."""

    def run(self) -> list[nodes.Node]:
        """The tables."""
        said = of_paths(self.root, records.read(self.root, portability.EVIDENCE), self.to_root())
        return [self.raw(_origin(self.root, portability.EVIDENCE) + said)]


def _origin(root: Path, name: str) -> str:
    """The release, or the version in the making, of which a record speaks; empty where nothing is recorded."""
    of = records.origin(root, name)
    if not of:
        return ""
    place = f"commit {of['commit'][:7]} of {of['date']}" if of["date"] else "outside of a repository"
    return f'<p class="book-record">Measured with version {html.escape(of["version"])}, {html.escape(place)}.</p>'


@cache
def _made_of(root: Path) -> dict[str, dict[str, Any]]:
    """What every page is made of: asked once for the three pages."""
    return {name: freshness.ingredients(root, notebooks.load(root, name)) for name in notebooks.names(root)}


@cache
def _keys(root: Path) -> dict[str, str]:
    return {name: freshness.evidence_key(one) for name, one in _made_of(root).items()}


@cache
def _study(root: Path) -> epsilon.Study:
    return epsilon.Study(root, equations.Map(root), _keys(root))


def of_epsilon(study: epsilon.Study, kept: Mapping[str, Mapping[str, Any]], to_root: str) -> str:
    """Totals, the functions for which the book is blind, all that were run, the least noticed first, and the others."""
    rows = epsilon.rows(study, kept)
    seen = [row.epsilon for row in rows if row.epsilon is not None]
    counts = {state: sum(row.state == state for row in rows) for state in dict.fromkeys(row.state for row in rows)}
    asked = len(rows) - counts.get(epsilon.RECORD, 0)
    totals = f"{_count(asked, 'function')} that claims name; {len(seen)} of them measured"
    if seen:
        totals += (
            f", with a median of {_power(statistics.median(seen))}; "
            f"{sum(one <= epsilon.FACTOR for one in seen)} at {_power(epsilon.FACTOR)} or less, "
            f"{sum(one > _BLIND for one in seen)} above a tenth"
        )
    totals += f"; {counts.get(epsilon.NOT_RUN, 0)} not run yet."
    blind = [row for row in rows if row.epsilon is not None and row.epsilon > _BLIND]
    missed = "".join(
        f"<li>{_function(study, row.function, to_root)}: {html.escape(_reason(row))}; "
        f"asked: {', '.join(_claim(id, to_root) for id in row.asked)}</li>"
        for row in blind
    )
    listed = f'<h2 id="blind">Errors of a tenth that no claim would notice</h2><ul>{missed}</ul>' if blind else ""
    by_function: dict[str, list[equations.Row]] = {}
    for one in study.map.rows:
        for name in one.functions:
            by_function.setdefault(name, []).append(one)
    inside = []
    waiting = [row.function for row in rows if row.state == epsilon.NOT_RUN]
    run = [row for row in rows if row.state != epsilon.NOT_RUN]
    for row in sorted(run, key=lambda row: -1.0 if row.epsilon is None else row.epsilon, reverse=True):
        about = by_function.get(row.function, [])
        links = "".join(f"<li>{_equation(study, one, to_root)}</li>" for one in about[:_EQUATIONS_SHOWN])
        more = f"<li>and {len(about) - _EQUATIONS_SHOWN} more</li>" if len(about) > _EQUATIONS_SHOWN else ""
        value = -1.0 if row.epsilon is None else min(row.epsilon, 1e300)
        number = "–" if row.epsilon is None else _power(row.epsilon)
        note = html.escape(_reason(row)) + (f" ({_OLD})" if row.old else "")
        inside.append(
            f"<tr><td>{_function(study, row.function, to_root)}</td><td>{f'<ul>{links}{more}</ul>' if links else '–'}"
            f'</td><td data-value="{value:.3g}">{number}</td>'
            f"<td>{_claim(row.claim, to_root) if row.claim else ''}<p>{note}</p></td></tr>"
        )
    table = _table(("Function", "Equations", "Smallest error", "Seen by"), inside)
    return (
        f'<p class="book-totals">{totals}</p>{listed}'
        + (f'<h2 id="functions">Function by function</h2>{table}' if inside else "")
        + _not_run([_function(study, name, to_root) for name in waiting])
    )


def _reason(row: epsilon.Row) -> str:
    if row.state == epsilon.SEEN:
        return ""
    return {
        epsilon.RECORD: "holds results and computes nothing when it is called",
        epsilon.NOT_RUN: "not run yet",
        epsilon.NOT_CALLED: "the cells of its claims do not call it",
        epsilon.NOTHING: "it is called and returns no floating number",
        epsilon.BLIND: "it is multiplied and no claim moves",
        epsilon.STOPS: "the page stops at an error of a thousandth, or does not measure the claim",
        epsilon.UNSOUND: "no result: the statements of its claims alone give other numbers than the page",
    }[row.state]


def of_faults(root: Path, kept: Mapping[str, Mapping[str, Any]], to_root: str) -> str:
    """Totals by size, the faults that nobody noticed, all that were planted, and the others."""
    by_fault: dict[faults.Fault, list[faults.Job]] = {}
    for job in faults.jobs(root, keys=_keys(root)):
        if job.fault is not None:
            by_fault.setdefault(job.fault, []).append(job)
    lines, missed, inside, left = [], [], [], []
    for size in faults.SIZES:
        mine = [fault for fault in by_fault if fault.size == size]
        tested = [one for fault in mine if (one := _tests_of(by_fault[fault], kept)) is not None]
        read = [fault for fault in mine if fault.pages and not _missing(by_fault[fault], kept)]
        by_page = sum(any(map(_notices, _pages_of(by_fault[fault], kept))) for fault in read)
        pages = [page for fault in mine for page in _pages_of(by_fault[fault], kept)]
        lines.append(
            f"<tr><td>{size}</td><td>{len(mine)}</td><td>{len(tested)}</td><td>{sum(map(_failed, tested))}</td>"
            f"<td>{_median_seconds([one for one in tested if _failed(one)])}</td>"
            f"<td>{len(read)}</td><td>{by_page}</td><td>{_median_seconds(pages)}</td></tr>"
        )
    for fault, jobs in by_fault.items():
        tests, pages = _tests_of(jobs, kept), _pages_of(jobs, kept)
        if tests is None and not pages:
            left.append(f"{html.escape(fault.what.rstrip('.'))} ({html.escape(fault.about)})")
            continue
        old = any(kept.get(job.name, {}).get("older") for job in jobs)
        seen = (tests is not None and _failed(tests)) or any(map(_notices, pages))
        if tests is not None and not seen:
            waiting = _missing(jobs, kept)
            missed.append(
                f"<li><code>{html.escape(fault.id)}</code>: {html.escape(fault.what)} "
                f"{'No test fails; its pages are not run yet.' if waiting else 'Nobody notices.'}</li>"
            )
        inside.append(
            f"<tr><td>{html.escape(fault.what)}<p>{html.escape(fault.about)}; <code>{html.escape(fault.file)}</code>"
            f"{f' ({_OLD})' if old else ''}</p></td><td>{fault.size}</td>"
            f"<td>{_by_test(tests)}</td><td>{_by_pages(fault, jobs, kept, to_root)}</td></tr>"
        )
    head = (
        *("Size", "Faults", "Tests run", "Seen by a test", "Seconds until then"),
        *("Pages run", "Seen by a page", "Seconds of a page"),
    )
    listed = f'<h2 id="unseen">Not seen so far</h2><ul>{"".join(missed)}</ul>' if missed else ""
    return (
        _table(head, lines, sortable=False)
        + listed
        + (
            '<h2 id="faults">Fault by fault</h2>' + _table(("Fault", "Size", "Test", "Claims"), inside)
            if inside
            else ""
        )
        + _not_run(left)
    )


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


def _by_test(tests: Mapping[str, Any] | None) -> str:
    if tests is None:
        return "not run yet"
    if tests.get("late"):
        return "no end"
    if not tests["failed"]:
        return "<strong>no test fails</strong>"
    return html.escape(tests["failed"].rpartition("::")[2].removeprefix("test_").replace("_", " "))


def _by_pages(
    fault: faults.Fault, jobs: Sequence[faults.Job], kept: Mapping[str, Mapping[str, Any]], to_root: str
) -> str:
    if not fault.pages:
        return "none is concerned"
    done, waiting = _pages_of(jobs, kept), _missing(jobs, kept)
    parts = [_claim(id, to_root) for page in done for id in page["claims"]]
    parts += [html.escape(f"stops: {page['stopped'][:80]}") for page in done if page["stopped"]]
    if done and not parts:
        parts = ["<strong>no claim notices</strong>"]
    if waiting:
        parts.append("not run yet" if not done else f"{_count(len(waiting), 'page')} not run yet")
    return f"<ul>{''.join(f'<li>{part}</li>' for part in parts)}</ul>"


def of_paths(root: Path, kept: Mapping[str, Mapping[str, Any]], to_root: str) -> str:
    """A row for each path, and the claims that move by more than a tenth of their bound."""
    jobs = [job for job in portability.jobs(root, known=_made_of(root)) if job.path.name != portability.AS_IS]
    lines, far = [], []
    for path in dict.fromkeys(job.path.name for job in jobs):
        mine = {portability.name_of(job): job for job in jobs if job.path.name == path}
        done = {name: kept[name] for name in mine if name in kept}
        pages = [one for name, one in done.items() if mine[name].is_chapter]
        tests = [one for name, one in done.items() if not mine[name].is_chapter]
        old = sum(one.get("older", False) for one in done.values())
        shares = [(share, id) for one in pages for id, (_, share) in one["moved"].items() if share is not None]
        largest = max(shares, default=(0.0, ""))
        claimed, moved = sum(one["claims"] for one in pages), sum(len(one["moved"]) for one in pages)
        broken = [id for one in pages for id in one["broken"]]
        left = sum(name not in kept for name in mine)
        stopped = sum("stopped" in one for one in pages)
        state = ", ".join(
            [
                *([f"{left} of {_count(len(mine), 'run')} not run yet"] if left else []),
                *([f"{old} {_OLD}"] if old else []),
                *([f"{_count(stopped, 'page')} stopped"] if stopped else []),
            ]
        )
        lines.append(
            f"<tr><td>{html.escape(path)}</td><td>{sum(one['tests'] for one in tests)}</td>"
            f"<td>{sum(len(one['failed']) for one in tests)}</td><td>{claimed}</td><td>{claimed - moved}</td>"
            f"<td>{''.join(_claim(id, to_root) for id in broken) or 0}</td>"
            f"<td>{f'{largest[0]:.2g} of its bound, {_claim(largest[1], to_root)}' if largest[1] else '–'}</td>"
            f"<td>{state or 'whole'}</td></tr>"
        )
        far += [(share, id, path) for share, id in shares if share > _BLIND]
    head = (
        "Path",
        "Tests",
        "Red",
        "Claims",
        "Equal to the last digit",
        "Do not hold",
        "Largest move",
        "How much was run",
    )
    moves = [
        f"<tr><td>{_claim(id, to_root)}</td><td>{html.escape(path)}</td>"
        f'<td data-value="{share:.3g}">{share:.2g}</td></tr>'
        for share, id, path in sorted(far, reverse=True)
    ]
    farthest = (
        '<h2 id="moves">Claims that move by more than a tenth of their bound</h2>'
        + _table(("Claim", "Path", "Share of its bound"), moves)
        if moves
        else ""
    )
    red = [
        f"<li>{html.escape(name.partition(' | ')[0])}: {html.escape(test.rpartition('::')[2])}"
        f"{f' ({_OLD})' if one.get('older') else ''}</li>"
        for name, one in kept.items()
        for test in one.get("failed", ())
    ]
    listed = f'<h2 id="red">Tests that fail</h2><ul>{"".join(red)}</ul>' if red else ""
    return _table(head, lines, sortable=False) + farthest + listed


def _function(study: epsilon.Study, name: str, to_root: str) -> str:
    anchor = "function-" + name.replace(".", "-").replace("_", "-").lower()
    short = html.escape(name.removeprefix(f"{study.map.packages[0]}."))
    link = equations.wanted(study.root)
    return (
        f'<a href="{to_root}book/equations.html#{anchor}"><code>{short}</code></a>' if link else f"<code>{short}</code>"
    )


def _equation(study: epsilon.Study, row: equations.Row, to_root: str) -> str:
    works = project.references(study.root)
    words = (
        row.label or f"{project.names_and_year(works[row.source]) if row.source in works else row.source}, {row.words}"
    )
    words = html.escape(words if len(words) <= 60 else words[:57].rstrip() + "...")
    return f'<a href="{to_root}book/equations.html#{row.anchor}">{words}</a>' if equations.wanted(study.root) else words


def _claim(id: str, to_root: str) -> str:
    return f'<a href="{to_root}{_CLAIMS}#ledger-{claims.anchor_of(id)}">{html.escape(id)}</a>'


def _table(headings: Sequence[str], rows: Sequence[str], *, sortable: bool = True) -> str:
    sort = ' aria-sort="none"' if sortable else ""
    head = "".join(f'<th scope="col"{sort}>{heading}</th>' for heading in headings)
    css = "book-sortable table" if sortable else "table"
    return (
        f'<div class="book-table book-evidence"><table class="{css}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _not_run(names: Sequence[str]) -> str:
    return f'<h2 id="not-run">Not run yet</h2><p class="book-names">{"; ".join(names)}.</p>' if names else ""


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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("smallest-errors", SmallestErrors)
    app.add_directive("planted-faults", PlantedFaults)
    app.add_directive("parity", Parity)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
