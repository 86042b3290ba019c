"""Plants faults one at a time in a copy of the book, and records which tests and claims notice.

``tests/faults.yml`` is a list of faults: a text that stands once in a file, and what stands there instead. For each of
them the tests of its subject run until the first one fails, and the pages that it would mislead run with their quick
or their committed parameters; a page notices by a claim that held without the fault and does not hold with it, or by
stopping. Every job (the tests, or one page, of one fault) leaves a result of its own under ``_build/faults`` with the
key of what it was made of, so that a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from companion import claims
from companion.declaring import equations, notebooks, shapes
from companion.evidence import observed, records, resumable
from companion.findings import Finding, Findings
from companion.manuscript import entries
from companion.running import disk, execution, freshness

EVIDENCE = "faults"
NAME = "faults.yml"
SIZES = ("gross", "1%", "0.1%")
LIMIT_SECONDS = 1_200.0
"""How long the tests or a page of one fault may take; what takes longer has not come to an end."""

TESTS = "tests"


@dataclass(frozen=True)
class Fault:
    """One fault: ``new`` stands in ``file`` where ``old`` stood; ``what`` says it in words, ``about`` its subject."""

    id: str
    file: str
    old: str
    new: str
    what: str
    about: str
    size: str
    tests: tuple[str, ...]
    pages: tuple[str, ...] = ()
    profile: str = "quick"


@dataclass(frozen=True)
class Job(resumable.Job):
    """The tests of a fault (``unit`` is "tests"), or one page with it; without a fault, the page as it is."""

    fault: Fault | None
    unit: str
    profile: str


def read(root: Path) -> list[Fault]:
    """The faults of ``tests/faults.yml``, in their order; none where there is no such file.

    Raises ``ValueError`` with everything that is wrong: a text that does not stand exactly once in its file, one in its
    place that is no Python, tests or pages that do not exist.
    """
    found, seen = [], set()
    wrong: list[Finding] = []
    for content, line in entries(root / "tests" / NAME):
        problems = list(_problems(root, content))
        if isinstance(content, Mapping) and content.get("id") in seen:
            problems.append(("id", f"{content['id']!r} is there twice"))
        name = content.get("id", "a fault") if isinstance(content, Mapping) else "a fault"
        wrong += [Finding(NAME, line, rule, f"{name}: {message}") for rule, message in problems]
        if not problems:
            listed = {field: tuple(content.get(field) or ()) for field in ("tests", "pages")}
            found.append(Fault(**{**content, **listed}))
            seen.add(content["id"])
    if wrong:
        raise Findings(wrong)
    return found


def _problems(root: Path, content: Any) -> Iterator[tuple[str, str]]:
    if wrong := shapes.problems("fault", content):
        yield from (("format", message) for message in wrong)
        return
    if not (root / content["file"]).is_file():
        yield "file", f"file: {content['file']} is not there"
        return
    text = (root / content["file"]).read_text(encoding="utf-8")
    if (count := text.count(content["old"])) != 1:
        yield "old", f"old: expected it once in {content['file']}, got it {count} times"
    elif content["old"] == content["new"]:
        yield "new", "new: expected another text than the old one"
    elif content["file"].endswith(".py"):
        try:
            ast.parse(text.replace(content["old"], content["new"]))
        except SyntaxError as error:
            yield "new", f"new: {content['file']} can then not be read: {error}"
    if not all((root / name).exists() for name in content["tests"]):
        yield "tests", f"tests: expected files or folders that are there, got {content.get('tests')!r}"
    if absent := [name for name in content.get("pages") or () if not (root / "notebooks" / f"{name}.md").is_file()]:
        yield "pages", f"pages: not in notebooks: {absent}"


def plant(root: Path, fault: Fault | None, folder: Path) -> None:
    """Copy the book into ``folder``, which does not exist, and put the fault into the copy.

    What is hidden, and what was built, stays behind. Files are copied and not linked, because tests may write.
    """
    shutil.copytree(root, folder, ignore=shutil.ignore_patterns(".*", "_build", "__pycache__"))
    if fault is not None:
        path = folder / fault.file
        path.write_text(path.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")


def jobs(root: Path, only: Sequence[str] = (), *, keyed: bool = True) -> list[Job]:
    """Everything there is to run, pages without a fault first; without keys, if nobody asks what a result is made of.

    Raises ``ValueError`` if ``only`` names a fault that does not exist.
    """
    faults = read(root)
    known = [fault.id for fault in faults]
    if unknown := sorted(set(only) - set(known)):
        raise ValueError(f"ID: expected some of {known}, got {unknown}")
    faults = [fault for fault in faults if not only or fault.id in only]
    pages = sorted({page for fault in faults for page in fault.pages})
    keys = {page: observed.key(root, page) if keyed else "" for page in pages}
    codes = {tests: _code_of(root, tests) if keyed else "" for tests in {fault.tests for fault in faults}}
    plain = sorted({(page, fault.profile) for fault in faults for page in fault.pages})
    found = [_job(None, page, profile, keys[page]) for page, profile in plain]
    for fault in faults:
        own = json.dumps(asdict(fault), sort_keys=True)
        code = f"{codes[fault.tests]} {freshness.tree_digest(root / fault.file)}"
        for unit, made_of in {TESTS: code, **{page: keys[page] for page in fault.pages}}.items():
            found.append(_job(fault, unit, fault.profile, freshness.digest(f"{made_of} {own}".encode())))
    return found


def _job(fault: Fault | None, unit: str, profile: str, key: str) -> Job:
    id, folder = (fault.id, fault.id) if fault else ("without a fault", "_as-it-is")
    place = f"{EVIDENCE}/{folder}/{notebooks.slug(unit)}" + ("" if unit == TESTS else f"-{profile}")
    return Job(f"{id}, {unit}", key, place, fault, unit, profile)


def _code_of(root: Path, tests: Sequence[str]) -> str:
    """Digest of tests, of their fixtures, and of what both import of the repository, directly or through others."""
    files = {*root.glob("conftest.py"), *(root / TESTS).glob("conftest.py")}
    for path in (root / name for name in tests):
        files |= {path, *path.parent.glob("conftest.py")} if path.is_file() else set(path.rglob("*.py"))
    beside = {found.parent.name: found.parent for name in tests for found in (root / name).parent.glob("*/__init__.py")}
    packages = {**beside, **freshness.own_packages(root), TESTS: root / TESTS}
    texts = [path.read_text(encoding="utf-8") for path in sorted(files)]
    modules = freshness.imported(packages, "\n".join(texts))
    texts += [path.read_text(encoding="utf-8") for path in modules.values()]
    return freshness.digest(" ".join(map(freshness.code_digest, texts)).encode())


def run(
    root: Path,
    *,
    only: Sequence[str] = (),
    at_once: int = resumable.AT_ONCE,
    tests_alone: bool = False,
) -> list[str]:
    """Run what has no result yet; returns, and prints, which jobs have none, and which gross faults no test sees.

    - ``only``: names faults; all by default.
    - ``at_once``: how many jobs share the machine.
    - ``tests_alone``: run the tests, which are cheap, and no page.
    """
    root = root.resolve()
    wanted = [job for job in jobs(root, only) if job.unit == TESTS or not tests_alone]
    # What a run that was killed left behind.
    disk.sweep_out(copies := root / "_build" / EVIDENCE / "_work")

    def start(job: Job, children: resumable.Children) -> None:
        with disk.owned(copies, notebooks.slug(job.unit)) as place:
            # A process of its own, in a copy of its own whose code it imports.
            plant(root, job.fault, place / "book")
            tests = job.fault.tests if job.fault else ()
            task = {"unit": job.unit, "profile": job.profile, "key": job.key, "tests": tests}
            if not children.run(__name__, place / "book", job.folder(root), task, limit=LIMIT_SECONDS):
                resumable.keep(job.folder(root), job.key, {"seconds": LIMIT_SECONDS, "late": True})

    resumable.run(root, wanted, start, at_once=at_once, words=_in_words)
    results = _results(root, wanted)
    problems = [f"{job.name}: no result" for job in wanted if job.fault and job not in results]
    for job, found in results.items():
        if job.unit == TESTS and job.fault and job.fault.size == "gross" and not seen_by_tests(found):
            problems.append(f"{job.name}: no test fails")
        for id in found.get("unforeseen", ()):
            print(f"{job.name}: {id} fails, and the map of equations does not say that it rests on this")
    print("\n".join(problems))
    return problems


def work(root: Path, folder: Path, task: Mapping[str, Any]) -> dict[str, Any]:
    """What the process of a job does in the copy of the book that has the fault."""
    if task["unit"] != TESTS:
        return _run_page(root, task["unit"], task["profile"], folder)
    found = observed.run_tests(task["tests"], folder, "-x", threads=1, variables={})
    if found is None:
        return {"failed": "pytest itself", "tests": 0}
    count, failed = found
    return {"failed": failed[0] if failed else "", "tests": count}


def _run_page(root: Path, page: str, profile: str, folder: Path) -> dict[str, Any]:
    chapter, target = notebooks.load(root, page), folder / "run"
    disk.remove(target)
    quick = chapter.quick if profile == "quick" else None
    # Quick parameters compile for longer than they compute, and most programs of a page do not hold the fault.
    variables = {
        "JAX_COMPILATION_CACHE_DIR": os.environ.get("JAX_COMPILATION_CACHE_DIR") or str(_compiled(folder)),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
    }
    variables |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"} if profile == "quick" else {}
    problem = execution.run(root, chapter, disk.folder(target), parameters=quick, extra_environment=variables)
    measured = observed.measured(target)
    stopped = f"cell {problem.cell}: {execution.plain(problem.error)}" if problem else ""
    disk.remove(target)
    return {"stopped": stopped, "measured": measured}


def _compiled(folder: Path) -> Path:
    """Where all pages of all faults share what they compile, beside the folder of the fault."""
    return disk.folder(folder.parent.parent / "_compiled")


def record(root: Path) -> Path:
    """Keep what was measured here in ``book/evidence``, beside what was measured elsewhere and still stands there."""
    root = root.resolve()
    wanted = jobs(root)
    found = {job.name: result for job, result in _results(root, wanted).items()}
    return records.keep(root, EVIDENCE, found, {job.name: job.key for job in wanted if job.fault})


def _results(root: Path, wanted: Sequence[Job]) -> dict[Job, dict[str, Any]]:
    """What is kept of every job that has a fault and a result.

    Of a page: the claims that its fault turned, those of them that the map of equations does not name, and why it
    stopped, if it did.
    """
    declared = claims.of_book(root)
    outcomes = {job: found for job in wanted if (found := resumable.outcome(root, job)) is not None}
    held = {(job.unit, job.profile): _held(found, declared) for job, found in outcomes.items() if job.fault is None}
    whole = functools.cache(lambda: equations.Map(root))
    results: dict[Job, dict[str, Any]] = {}
    for job, found in outcomes.items():
        if job.fault is None:
            continue
        if job.unit == TESTS:
            results[job] = {name: found[name] for name in ("key", "seconds", "failed", "late") if name in found}
            continue
        stopped = "no end" if found.get("late") else found["stopped"]
        before = set() if stopped else held.get((job.unit, job.profile), set())
        lost = sorted(before - _held(found, declared))
        named = whole().resting_on(*_place(root, job.fault)) if lost else set()
        unforeseen = [id for id in lost if id not in named]
        results[job] = {name: found[name] for name in ("key", "seconds")}
        results[job] |= {"stopped": stopped, "claims": lost, "unforeseen": unforeseen}
    return results


def seen_by_tests(found: Mapping[str, Any]) -> bool:
    """Whether a run of tests fails, or does not come to an end."""
    return bool(found.get("failed") or found.get("late"))


def _held(found: Mapping[str, Any], declared: Mapping[str, claims.Claim]) -> set[str]:
    """The claims that a run of a page confirms."""
    measured = {id: claims.Measurement(*given) for id, given in found.get("measured", {}).items()}
    return {id for id, one in measured.items() if id in declared and claims.judge(declared[id], one).holds}


def _place(root: Path, fault: Fault) -> tuple[str, int]:
    """The file and the line where the two texts begin to differ."""
    text = (root / fault.file).read_text(encoding="utf-8")
    both = zip(fault.old, fault.new, strict=False)
    same = next((index for index, (one, other) in enumerate(both) if one != other), len(fault.old) - 1)
    return fault.file, text.count("\n", 0, text.index(fault.old) + same) + 1


def _in_words(found: Mapping[str, Any]) -> str:
    if found.get("late"):
        return "no end"
    if "failed" in found:
        return f"{found['failed'] or 'no test fails'} ({found['tests']} tests)"
    return str(found["stopped"] or f"{len(found['measured'])} claims measured")
