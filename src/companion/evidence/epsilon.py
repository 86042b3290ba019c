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
import multiprocessing
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

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
class Job(resumable.Job):
    """One function, multiplied, on one page; ``function`` may be PLAIN or AGAIN. ``ids`` are the claims to ask."""

    function: str
    page: str
    ids: tuple[str, ...]
    module: str
    definition: str


class Study:
    """What there is to ask, read from a repository once: which claims name which functions, and where both stand."""

    def __init__(self, root: Path, *, keyed: bool = True) -> None:
        """Read the repository; without keys of the jobs, if nobody asks what a result is made of."""
        self.root = root.resolve()
        self.map = equations.Map(self.root)
        self._keyed = keyed

    @cached_property
    def naming(self) -> dict[str, dict[str, list[str]]]:
        """For every function that a measured claim names, its claims by page."""
        found: dict[str, dict[str, list[str]]] = {}
        for id, claim in self.map.claims.items():
            page = self.map.measured_on(id) if claim.is_measured and claim.functions else ""
            for name in map(self.map.public, claim.functions) if page else ():
                found.setdefault(name, {}).setdefault(page, []).append(id)
        return dict(sorted(found.items()))

    @cached_property
    def jobs(self) -> list[Job]:
        """Everything there is to run, page by page, each first as it is."""
        places = {name: place for name in self.naming if (place := self._place(name))}
        by_page: dict[str, dict[str, list[str]]] = {}
        for name in places:
            for page, ids in self.naming[name].items():
                if run := [id for id in ids if self.map.relation(id, name) is not equations.Relation.RECORD]:
                    by_page.setdefault(page, {})[name] = run
        found = []
        for page in (page for page in notebooks.names(self.root) if page in by_page):
            key = observed.key(self.root, page) if self._keyed else ""
            every = [id for ids in by_page[page].values() for id in ids]
            for name, ids in {PLAIN: every, **by_page[page], AGAIN: every}.items():
                asked, (module, definition) = sorted(set(ids)), places.get(name, ("", ""))
                made_of = json.dumps([key, module, definition, FACTOR, perturb.FORM, asked])
                own = freshness.digest(made_of.encode())
                folder = f"{EVIDENCE}/{notebooks.slug(page)}/{name.replace(' ', '-')}"
                found.append(Job(f"{name} | {page}", own, folder, name, page, tuple(asked), module, definition))
        return found

    def _place(self, name: str) -> tuple[str, str] | None:
        """The module and the definition of a function of the library; None for what is not called: a record."""
        found = self.map.code.definition(name)
        if found is None:
            return None
        module = found.name.rpartition(".")[0]
        local = self.map.resolved(name).removeprefix(f"{module}.")
        return (module, local) if perturb.can_be_called(found.path.read_text(encoding="utf-8"), local) else None


def jobs(root: Path, pages: Sequence[str] = ()) -> list[Job]:
    """Everything there is to run; ``pages`` limits it.

    Raises ``ValueError`` if ``pages`` names one that does not exist.
    """
    known = notebooks.names(root)
    if unknown := sorted(set(pages) - set(known)):
        raise ValueError(f"PAGE: expected some of {known}, got {unknown}")
    return [job for job in Study(root).jobs if not pages or job.page in pages]


def run(root: Path, *, pages: Sequence[str] = (), at_once: int = resumable.AT_ONCE) -> None:
    """Run what has no result yet, ``at_once`` pages at a time; ``pages`` names pages, all by default.

    All jobs of one page share a process that has loaded what the page imports of other packages.
    """
    root = root.resolve()
    by_page: dict[str, list[Job]] = {}
    for job in jobs(root, pages):
        by_page.setdefault(job.page, []).append(job)
    compiled = "JAX_COMPILATION_CACHE_DIR"
    variables = {
        **environment.clean(),
        **({compiled: os.environ[compiled]} if compiled in os.environ else {}),
        "MPLBACKEND": "agg",
        "COMPANION_ROOT": str(root),
        **dict.fromkeys(execution.THREAD_VARIABLES, "1"),
    }

    def start(whole: resumable.Job, children: resumable.Children) -> None:
        mine = by_page[whole.name]
        limit = LIMIT_SECONDS * sum(resumable.outcome(root, job) is None for job in mine)
        task = {"key": whole.key, "jobs": [vars(job) for job in mine]}
        children.run(__name__, root, whole.folder(root), task, limit=limit, environment=variables)

    batches = []
    for page, mine in by_page.items():
        key = freshness.digest(" ".join(job.key for job in mine).encode())
        batches.append(resumable.Job(page, key, f"{EVIDENCE}/{notebooks.slug(page)}/_page"))
    resumable.run(root, batches, start, at_once=at_once, words=lambda found: f"{found['jobs']} runs are there")


def record(root: Path) -> Path:
    """Keep what was measured here in ``book/evidence``, beside what was measured elsewhere and still stands there."""
    root = root.resolve()
    wanted = jobs(root)
    found = {job.name: result for job in wanted if (result := resumable.outcome(root, job))}
    return records.keep(root, EVIDENCE, found, {job.name: job.key for job in wanted})


class State(Enum):
    """How the measurement of a function ended, the best end first; the value is what a page says of it."""

    SEEN = ""
    STOPS = "the page stops at an error of a thousandth, or does not measure the claim"
    BLIND = "it is multiplied and no claim moves"
    NOTHING = "it is called and returns no floating number"
    NOT_CALLED = "the cells of its claims do not call it"
    # The statements of the claim alone give another value than among those of the other claims.
    UNSOUND = "no result: the statements of its claims alone give other numbers than the page"
    RECORD = "holds results and computes nothing when it is called"
    NOT_RUN = "not run yet"


@dataclass(frozen=True)
class Row:
    """What was found of one function, about which the claims ``asked`` were asked.

    ``epsilon`` is None where nothing was measured; infinite where no claim moved; then ``state`` says why. ``claim``
    sees the error first. ``old`` says that it was carried over from a record before.
    """

    function: str
    asked: tuple[str, ...]
    state: State
    epsilon: float | None = None
    claim: str = ""
    old: bool = False


def rows(study: Study, kept: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """One row for each function that a measured claim names, from what is kept."""
    by_name: dict[str, list[Job]] = {}
    for job in study.jobs:
        by_name.setdefault(job.function, []).append(job)
    plain, again = (
        {job.page: kept[job.name]["measured"] for job in by_name.get(name, ()) if job.name in kept}
        for name in (PLAIN, AGAIN)
    )
    found, ends = [], list(State)
    for name, naming in study.naming.items():
        asked = tuple(sorted(id for ids in naming.values() for id in ids))
        mine = by_name.get(name, [])
        done = [job for job in mine if job.name in kept and job.page in plain]
        results = [_epsilon(study.map.claims, kept[job.name], plain[job.page], again.get(job.page, {})) for job in done]
        epsilon, claim, state = min(
            results, key=lambda one: (one[0], ends.index(one[2])), default=(math.inf, "", State.NOT_RUN)
        )
        if not mine:
            found.append(Row(name, asked, State.RECORD))
        elif math.isinf(epsilon) and len(done) < len(mine):
            # Another page may still notice.
            found.append(Row(name, asked, State.NOT_RUN))
        else:
            old = any(kept[job.name].get("older", False) for job in done)
            found.append(Row(name, asked, state, epsilon, claim, old))
    return found


def _epsilon(
    declared: Mapping[str, claims.Claim],
    found: Mapping[str, Any],
    plain: Mapping[str, Sequence[Any]],
    again: Mapping[str, Sequence[Any]],
) -> tuple[float, str, State]:
    """The least epsilon that a job gives, the claim that has it, and the state."""
    least, who = math.inf, ""
    for id, given in found["measured"].items():
        before = plain.get(id)
        if id not in declared or before is None or again.get(id, before)[0] != before[0]:
            continue
        one = _of_claim(declared[id], claims.Measurement(*before), claims.Measurement(*given))
        if one is not None and one < least:
            least, who = one, id
    if not found["called"] and math.isfinite(least):
        return math.inf, "", State.UNSOUND
    if found["stopped"] and least > FACTOR:
        return FACTOR, "", State.STOPS
    if math.isfinite(least):
        return least, who, State.SEEN
    return least, "", State.BLIND if found["applied"] else State.NOTHING if found["called"] else State.NOT_CALLED


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
    return calls.Notebook(notebooks.load(root, job.page).code).alone(_MEASURE, job.ids)


def _load(statements: Sequence[str], own: Collection[str]) -> None:
    """Import what the statements import of packages that are not the repository's, which take the time."""
    for node in ast.parse("\n".join(statements)).body:
        named = [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        named += [one.name for one in node.names] if isinstance(node, ast.Import) else []
        for name in named:
            if name.partition(".")[0] not in own:
                importlib.import_module(name)


def _run(job: Job, folder: Path, factor: float | None) -> None:
    """Run the statements of a job in this process, which is of no use afterwards, and keep what it finds."""
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
    resumable.keep(folder, job.key, {"stopped": stopped, "measured": known, **perturb.noted(folder)})


def _forked(root: Path, job: Job, factor: float | None) -> dict[str, Any] | None:
    """What a run in a copy of this process finds; None if the copy died or did not come to an end."""
    folder = job.folder(root) / "run"
    disk.remove(folder)
    copy = multiprocessing.get_context("fork").Process(target=_run, args=(job, disk.folder(folder), factor))
    copy.start()
    copy.join(LIMIT_SECONDS)
    copy.kill()
    copy.join()
    return resumable.read(folder)


def _whole(job: Job, found: Mapping[str, Any]) -> bool:
    return not found["stopped"] and len(found["measured"]) == len(job.ids)


def work(root: Path, folder: Path, task: Mapping[str, Any]) -> dict[str, Any] | None:
    """Run the jobs of one page that have no result yet; None unless all have one then."""
    mine = [Job(**{**job, "ids": tuple(job["ids"])}) for job in task["jobs"]]
    left = [job for job in mine if resumable.outcome(root, job) is None]
    for job in left[:1]:
        _load(_statements(root, job), freshness.own_packages(root))
    for job in left:
        print(f"{job.name}: {_measured(root, job)}", flush=True)
        disk.remove(job.folder(root) / "run")
    return {"jobs": len(mine)} if all(resumable.outcome(root, job) for job in mine) else None


def _measured(root: Path, job: Job) -> str:
    """Run a job, keep what it found, and say it in words; where the statements stop as they are, nothing is kept."""
    found = _forked(root, job, 1.0 + FACTOR)
    if found is not None and _whole(job, found):
        resumable.keep(job.folder(root), job.key, found)
        return f"{len(found['measured'])} claims measured" + ("" if found["applied"] else ", nothing multiplied")
    # Is it the function, or are these statements not all that the page needs?
    plain = _forked(root, job, None) if job.module else found
    if plain is None or not _whole(job, plain):
        return f"no result, it stops as it is: {plain and (plain['stopped'] or sorted(plain['measured']))}"
    found = found or {"stopped": "the process died", "measured": {}, "called": True, "applied": True}
    found["stopped"] = found["stopped"] or "not all claims are measured"
    resumable.keep(job.folder(root), job.key, found)
    return str(found["stopped"])
