"""Measures the smallest error that the book would notice, function by function.

A function that a claim names is multiplied by 1 + 1e-3 (see ``perturb``), and what the claim needs of its page runs
again: the statements behind its measurement and nothing else, with the committed parameters. If the value then moves by
``shift``, and may still move by ``room`` before the verdict is not confirmed any more, an error of

    epsilon = 1e-3 room / shift

in the function would be seen, where ``room`` is bound - gap. An error may have either sign; the room is that in the
direction where it ends first. Only claims that name the function are asked, so that the least of their epsilons is an
upper bound of what the book notices: others that rest on the function may see less. A claim that reads a record which
the function made is not asked, since what is recorded does not move; of a function that stands behind records alone
nothing is measured.

Each page also runs as it is, once before the others and once after them. A value that differs between the two moves by
itself and is not asked. Every job (one function on one page) leaves a result of its own under ``_build/epsilon``; what
was measured is kept in ``book/evidence/epsilon.json``.
"""

from __future__ import annotations

import ast
import importlib
import json
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from companion import claims
from companion.declaring import calls, equations, notebooks
from companion.declaring.judgement import allowed, expected, factor
from companion.evidence import observed, perturb, records, resumable
from companion.running import disk, environment, execution, freshness, kernel_startup

EVIDENCE = "epsilon"
FACTOR = 1e-3
LIMIT_SECONDS = 1_200.0
PLAIN, AGAIN = "as it is", "again"
_MEASURE = "claims.measure"


@dataclass(frozen=True)
class Job:
    """One function, multiplied, on one page; ``function`` may be PLAIN or AGAIN. ``ids`` are the claims to ask."""

    function: str
    page: str
    ids: tuple[str, ...]
    module: str
    definition: str
    key: str

    @property
    def name(self) -> str:
        """Its name in what is printed, and in what is kept."""
        return f"{self.function} | {self.page}"

    def folder(self, root: Path) -> Path:
        """Where its result lies."""
        return root / "_build" / "epsilon" / notebooks.slug(self.page) / self.function.replace(" ", "-")


class Study:
    """What there is to ask, read from a repository once: which claims name which functions, and where both stand."""

    def __init__(self, root: Path, *, keyed: bool = True) -> None:
        """Read the repository; without keys of the jobs, if nobody asks what a result is made of."""
        self.root = root.resolve()
        self.map = equations.Map(self.root)
        self._keyed = keyed
        self._keys: dict[str, str] = {}
        self._places: dict[str, tuple[str, str]] = {}

    @cached_property
    def naming(self) -> dict[str, dict[str, list[str]]]:
        """For every function that a measured claim names, its claims by page."""
        found: dict[str, dict[str, list[str]]] = {}
        for id, claim in self.map.claims.items():
            page = self.map.measured_on(id) if claim.is_measured and claim.functions else ""
            for name in map(self.map.public, claim.functions) if page else ():
                found.setdefault(name, {}).setdefault(page, []).append(id)
        return dict(sorted(found.items()))

    def place(self, name: str) -> tuple[str, str]:
        """The module and the definition of a function of the library, ("", "") for what is not called: a record."""
        if name not in self._places:
            self._places[name] = self._find(name)
        return self._places[name]

    def _find(self, name: str) -> tuple[str, str]:
        code = self.map.code
        resolved = code.resolve(name)
        if resolved is None:
            return "", ""
        module, _, local = resolved.rpartition(".")
        if code.resolve(name.rpartition(".")[0]) == resolved:
            local = f"{local}.{name.rpartition('.')[2]}"
        found = code.definition(name)
        assert found is not None
        return (module, local) if perturb.can_be_called(found.path.read_text(encoding="utf-8"), local) else ("", "")

    def jobs(self, pages: Sequence[str] = ()) -> list[Job]:
        """Everything there is to run, page by page, each first as it is; ``pages`` limits them."""
        by_page: dict[str, dict[str, list[str]]] = {}
        for name, mine in self.naming.items():
            if self.place(name)[0]:
                for page, ids in mine.items():
                    if run := [id for id in ids if self.map.relation(id, name) is not equations.Relation.RECORD]:
                        by_page.setdefault(page, {})[name] = run
        known = notebooks.names(self.root)
        if unknown := sorted(set(pages) - set(known)):
            raise ValueError(f"PAGE: expected some of {known}, got {unknown}")
        found = []
        for page in (page for page in known if page in by_page and (not pages or page in pages)):
            if page not in self._keys:
                self._keys[page] = observed.key(self.root, page) if self._keyed else ""
            every = sorted({id for ids in by_page[page].values() for id in ids})
            asked = {PLAIN: every, **by_page[page], AGAIN: every}
            for name, ids in asked.items():
                module, definition = ("", "") if name in (PLAIN, AGAIN) else self.place(name)
                parts = [self._keys[page], module, definition, FACTOR, perturb.FORM, sorted(ids)]
                own = freshness.digest(json.dumps(parts).encode())
                found.append(Job(name, page, tuple(sorted(ids)), module, definition, own))
        return found


def jobs(root: Path, pages: Sequence[str] = ()) -> list[Job]:
    """Everything there is to run.

    Raises ``ValueError`` if ``pages`` names one that does not exist.
    """
    return Study(root).jobs(pages)


@dataclass(frozen=True)
class _Page:
    """All jobs of one page: they share a process that has loaded what the page imports of other packages."""

    page: str
    jobs: tuple[Job, ...]

    @property
    def name(self) -> str:
        return self.page

    @property
    def key(self) -> str:
        return freshness.digest(" ".join(job.key for job in self.jobs).encode())

    def folder(self, root: Path) -> Path:
        return self.jobs[0].folder(root).parent / "_page"


def run(root: Path, out: TextIO, *, pages: Sequence[str] = (), at_once: int = resumable.AT_ONCE) -> None:
    """Run what has no result yet, ``at_once`` pages at a time; ``pages`` names pages, all by default."""
    root = root.resolve()
    by_page: dict[str, list[Job]] = {}
    for job in jobs(root, pages):
        by_page.setdefault(job.page, []).append(job)

    def start(one: _Page, children: resumable.Children) -> None:
        limit = LIMIT_SECONDS * sum(resumable.outcome(root, job) is None for job in one.jobs)
        task = {"key": one.key, "jobs": [vars(job) for job in one.jobs]}
        variables = _variables(root, one.page)
        children.run(__name__, root, one.folder(root), task, limit=limit, environment=variables)

    batches = [_Page(page, tuple(mine)) for page, mine in by_page.items()]
    resumable.run(root, batches, start, out, at_once=at_once, words=lambda found: f"{found['jobs']} runs are there")


def _variables(root: Path, page: str) -> dict[str, str]:
    """What a run of the page has as its environment, where nothing is drawn."""
    chapter = notebooks.load(root, page)
    passed = {name: os.environ[name] for name in ("JAX_COMPILATION_CACHE_DIR",) if name in os.environ}
    return {
        **environment.clean(),
        **passed,
        "MPLBACKEND": "agg",
        "COMPANION_ROOT": str(root),
        "COMPANION_CHAPTER": chapter.chapter,
        "COMPANION_PAGE": chapter.name,
        "COMPANION_PACKAGES": " ".join(sorted(freshness.own_packages(root))),
        "COMPANION_COMMIT": freshness.state(root).commit,
        "COMPANION_PARAMETERS": json.dumps(dict(chapter.parameters)),
        **dict.fromkeys(execution.THREAD_VARIABLES, "1"),
    }


def record(root: Path, out: TextIO) -> Path:
    """Keep what was measured here in ``book/evidence``, beside what was measured elsewhere and still stands there."""
    root = root.resolve()
    study = Study(root)
    kept = records.read(root, EVIDENCE)
    for job in study.jobs():
        if found := resumable.outcome(root, job):
            kept[job.name] = found
    print(f"{len(kept)} results", file=out)
    return records.write(root, EVIDENCE, kept, {job.name: job.key for job in study.jobs()})


@dataclass(frozen=True)
class Row:
    """What was found of one function.

    ``epsilon`` is None where nothing was measured; infinite where no claim moved; then ``state`` says why. ``claim``
    sees the error first. ``old`` says that it was carried over from a record before.
    """

    function: str
    epsilon: float | None
    claim: str
    state: str
    asked: tuple[str, ...]
    old: bool = False


RECORD = "a record"
NOT_RUN = "not run yet"
NOT_CALLED = "not called"
NOTHING = "nothing to multiply"
BLIND = "no claim moves"
STOPS = "the page stops"
SEEN = "seen"
UNSOUND = "other numbers without a fault"
"""The statements of the claim alone give another value than among those of the other claims: they were not all."""


def rows(study: Study, kept: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """One row for each function that a measured claim names, from what is kept."""
    by_name: dict[str, list[Job]] = {}
    plain: dict[str, dict[str, Any]] = {}
    for job in study.jobs():
        if job.function in (PLAIN, AGAIN):
            plain.setdefault(job.page, {})[job.function] = kept.get(job.name, {}).get("measured", {})
        else:
            by_name.setdefault(job.function, []).append(job)
    found = []
    for name, mine in study.naming.items():
        asked = tuple(sorted(id for ids in mine.values() for id in ids))
        if name not in by_name:
            found.append(Row(name, None, "", RECORD, asked))
            continue
        done = [job for job in by_name[name] if job.name in kept and PLAIN in plain.get(job.page, {})]
        if not done:
            found.append(Row(name, None, "", NOT_RUN, asked))
            continue
        results = [(_epsilon(study, job, kept[job.name], plain[job.page])) for job in done]
        epsilon, claim, state = min(results, key=lambda one: (one[0], _ORDER.index(one[2])))
        if math.isinf(epsilon) and len(done) < len(by_name[name]):
            # Another page may still notice.
            found.append(Row(name, None, "", NOT_RUN, asked))
            continue
        old = any(kept[job.name].get("older", False) for job in done)
        found.append(Row(name, epsilon, claim, state, asked, old))
    return found


_ORDER = (SEEN, STOPS, BLIND, NOTHING, NOT_CALLED, UNSOUND)


def _epsilon(
    study: Study, job: Job, found: Mapping[str, Any], plain: Mapping[str, Mapping[str, Any]]
) -> tuple[float, str, str]:
    """The least epsilon that a job gives, the claim that has it, and the state."""
    least, who = math.inf, ""
    for id, given in found["measured"].items():
        before, again = plain[PLAIN].get(id), plain.get(AGAIN, {}).get(id)
        if id not in study.map.claims or before is None or (again is not None and again[0] != before[0]):
            continue
        one = _of_claim(study.map.claims[id], claims.Measurement(*before), claims.Measurement(*given))
        if one is not None and one < least:
            least, who = one, id
    if not found["called"] and math.isfinite(least):
        return math.inf, "", UNSOUND
    if found["stopped"] and least > FACTOR:
        return FACTOR, "", STOPS
    if math.isfinite(least):
        return least, who, SEEN
    return least, "", BLIND if found["applied"] else NOTHING if found["called"] else NOT_CALLED


def _of_claim(claim: claims.Claim, before: claims.Measurement, after: claims.Measurement) -> float | None:
    """Epsilon of a claim; None where it did not hold before."""
    if not claims.judge(claim, before).holds:
        return None
    shift = abs(float(after.value) - float(before.value))
    epsilon = FACTOR * room(claim, before) / shift if shift and not isinstance(before.value, bool) else math.inf
    return epsilon if claims.judge(claim, after).holds else min(epsilon, FACTOR)


def room(claim: claims.Claim, measurement: claims.Measurement) -> float:
    """bound - gap: how far the value may move, in the direction where that ends first, until the verdict is another.

    From the value to the nearest end of what counts as right, widened by the bound; of a refuted statement to the ends
    of what was found, or to where the statement would be right.
    """
    wanted, value = expected(claim), float(measurement.value)
    bound = allowed(claim) + factor(claim) * measurement.uncertainty
    low, high = wanted.get("between", (wanted.get("value", -math.inf), wanted.get("value", math.inf)))
    low, high = float(wanted.get("above", low)) - bound, float(wanted.get("below", high)) + bound
    if claim.verdict == "not-reproduced" and claim.found is not None:
        outside = max(low - value, value - high, 0.0)
        limit = float(claim.found.get("bound") or 0.0) - abs(value - float(claim.found["value"]))
        return min(outside, limit)
    return max(min(value - low, high - value), 0.0)


def _statements(root: Path, job: Job) -> list[str]:
    """What the claims of a job need of their page."""
    cells = notebooks.load(root, job.page).notebook.cells
    return calls.Notebook(cell.source for cell in cells if cell.cell_type == "code").alone(_MEASURE, job.ids)


def _load(statements: Sequence[str], own: Sequence[str]) -> None:
    """Import what the statements import of packages that are not the repository's, which take the time."""
    for statement in statements:
        for node in ast.parse(statement).body:
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for name in named:
                if name.partition(".")[0] not in own:
                    importlib.import_module(name)


def _run(job: Job, folder: Path, factor: float | None) -> dict[str, Any]:
    """Run the statements of a job in this process, which is of no use afterwards."""
    warnings.resetwarnings()
    kernel_startup.be_strict()
    os.environ["COMPANION_OUT"] = str(folder)
    os.chdir(folder)
    stopped, statements = "", _statements(Path(os.environ["COMPANION_ROOT"]), job)
    try:
        if factor is not None and job.module:
            perturb.multiply(job.module, job.definition, factor)
        scope: dict[str, Any] = {"__name__": "__main__"}
        for statement in statements:
            exec(compile(statement, f"<{job.page}>", "exec"), scope)
    except Exception as error:  # whatever a page raises is what it says of the fault
        stopped = f"{type(error).__name__}: {error}"[:300]
    measured = observed.measured(folder)
    known = {id: measured[id] for id in job.ids if id in measured}
    return {"stopped": stopped, "measured": known, **perturb.noted(folder)}


def _forked(root: Path, job: Job, factor: float | None, *, keep: bool) -> dict[str, Any] | None:
    """What a run in a copy of this process finds; None if the copy died or did not come to an end."""
    folder = job.folder(root) / "run"
    disk.remove(folder)
    disk.folder(folder)
    child = os.fork()
    if child == 0:
        # The copy must not come back to what this process has still to do.
        try:
            found = _run(job, folder, factor)
            resumable.keep(job.folder(root) if keep and _whole(job, found) else folder, job.key, found)
            disk.write(folder / "found.json", json.dumps(found))
        finally:
            sys.stdout.flush()
            os._exit(0)
    until = time.monotonic() + LIMIT_SECONDS
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.1)
    path = folder / "found.json"
    content: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return content


def _whole(job: Job, found: Mapping[str, Any]) -> bool:
    return not found["stopped"] and len(found["measured"]) == len(job.ids)


def work(root: Path, folder: Path, task: Mapping[str, Any]) -> dict[str, Any] | None:
    """Run the jobs of one page that have no result yet; None unless all have one then."""
    mine = [Job(**{**job, "ids": tuple(job["ids"])}) for job in task["jobs"]]
    left = [job for job in mine if resumable.outcome(root, job) is None]
    for job in left[:1]:
        _load(_statements(root, job), os.environ["COMPANION_PACKAGES"].split())
    for job in left:
        print(f"{job.name}: {_measured(root, job)}", flush=True)
        disk.remove(job.folder(root) / "run")
    return {"jobs": len(mine)} if all(resumable.outcome(root, job) for job in mine) else None


def _measured(root: Path, job: Job) -> str:
    """Run a job, keep what it found, and say it in words; where the statements stop as they are, nothing is kept."""
    found = _forked(root, job, 1.0 + FACTOR, keep=True)
    if found is not None and _whole(job, found):
        return f"{len(found['measured'])} claims measured" + ("" if found["applied"] else ", nothing multiplied")
    # Is it the function, or are these statements not all that the page needs?
    plain = _forked(root, job, None, keep=False) if job.module else found
    if plain is None or not _whole(job, plain):
        return f"no result, it stops as it is: {plain and (plain['stopped'] or sorted(plain['measured']))}"
    found = found or {"stopped": "the process died", "measured": {}, "called": True, "applied": True}
    found["stopped"] = found["stopped"] or "not all claims are measured"
    resumable.keep(job.folder(root), job.key, found)
    return str(found["stopped"])
