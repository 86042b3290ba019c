"""Says in words everything that one claim rests on, without a run: ``companion why CLAIM``.

Of a function of the library it says what rests on it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from companion import claims
from companion.declaring import declaration, equations, notebooks, texts
from companion.running import freshness
from companion.site import catalogue

_TESTS = 8
"""Most tests of one function that are named."""


def text(root: Path, id: str) -> str:
    """Source and version, equations, route, functions with their places and tests, data, rival, and the verdict.

    Of a function: its place, the tests that call it, and the claims whose cells run it. Raises ``ValueError`` if there
    is no such claim and no such function.
    """
    root = root.resolve()
    found = equations.Map(root)
    claim = next((one for one in found.claims.values() if id in (one.id, *one.was)), None)
    if claim is not None:
        page = found.measured_on(claim.id)
        head = f"{claim.id}\n  {' '.join(claim.says.split())}\n"
        facts = [
            *_declared(root, claim),
            *_equations(found, claim),
            *_measured(root, claim, page),
            *_functions(found, claim, page),
            *_data(root, page),
        ]
    elif found.place(id)[0]:
        head = f"{found.public(id)}\n"
        facts = list(_of_function(found, found.public(id)))
    else:
        near = difflib.get_close_matches(id, found.claims, n=5, cutoff=0.4) or sorted(found.claims)[:5]
        raise ValueError(
            f"CLAIM: expected an id of book/claims or a name of the library, as {', '.join(near)}; got {id!r}"
        )
    return "\n".join([head, *(f"  {name:11} {said}".rstrip() for name, said in facts)])


def _declared(root: Path, claim: claims.Claim) -> Iterator[tuple[str, str]]:
    path = root / "book" / "claims" / f"{claim.chapter}.yml"
    yield "declared", f"{path.relative_to(root)}:{declaration.lines(path)[claim.id]}, kind {claim.kind}"
    if key := claim.source.get("key"):
        read = texts.read(root).get(key)
        version = f", version {read.version}" if read else ""
        yield "source", f"{key}{version}: {claim.source['where']}"
    else:
        yield "source", "a result of this book"
    for name, said in (
        ("route", claim.route),
        ("expects", f"{claims.expectation_of(claim.expects)}. {claim.expects['why']}" if claim.expects else None),
        ("bound", claim.bound["why"] if claim.bound else None),
        ("rival", claim.rival),
        ("control", claim.control),
        ("because", claim.because),
    ):
        if said:
            yield name, " ".join(said.split())
    for part in claim.parts:
        yield "part", part


def _equations(found: equations.Map, claim: claims.Claim) -> Iterator[tuple[str, str]]:
    for row in found.rows:
        if claim.id in row.claims:
            place = f"{row.page}.md" if row.label else f"{row.source}, section {row.section}"
            yield "equation", f"{row.words} ({place})"


def _measured(root: Path, claim: claims.Claim, page: str) -> Iterator[tuple[str, str]]:
    if not page:
        yield "verdict", f"{claim.verdict}; no page measures it"
        return
    path = root / "notebooks" / f"{page}.md"
    before, _, _ = path.read_text(encoding="utf-8").partition(f'"{claim.id}"')
    line = before.count("\n") + 1
    yield "measured", f"{path.relative_to(root)}:{line}"
    try:
        entry = catalogue.by_id(catalogue.built(root, "claims.json")).get(claim.id)
    except (OSError, ValueError):
        entry = None
    if entry is None or entry["measured"] is None:
        yield "verdict", f"{claim.verdict} is declared; no build in this folder has measured it"
        return
    holds = "confirmed" if entry["holds"] else "NOT confirmed"
    value = claims.with_error(entry["measured"], entry["uncertainty"])
    bound = "" if entry["bound"] is None else f", gap {entry['gap']:.2g} of {entry['bound']:.2g} allowed"
    yield "verdict", f"{claim.verdict}, {holds} by the last build: {value}{bound}"


def _functions(found: equations.Map, claim: claims.Claim, page: str) -> Iterator[tuple[str, str]]:
    runs = (found.run_by(claim.id) if page else None) or []
    names = list(dict.fromkeys(found.public(name) for name in claim.functions))
    for name in [*names, *(one for one in runs if one not in names)]:
        one = found.functions.get(name) or found.function(name)
        beside = found.relation(claim.id, name).value if name in names else ", run by its cell"
        yield "function", f"{name} ({one.file}:{one.line}){beside}"
        for test in _tests(one):
            yield "", f"  {test}"


def _tests(function: equations.Function) -> Iterator[str]:
    for test in function.tests[:_TESTS]:
        yield f"{test.file}:{test.line} {test.name.rpartition('.')[2]}"
    if len(function.tests) > _TESTS:
        yield f"and {len(function.tests) - _TESTS} more tests"
    if not function.tests:
        yield "no test calls it by its name"


def _of_function(found: equations.Map, name: str) -> Iterator[tuple[str, str]]:
    """What a change of a function may move: its tests, and the claims whose cells run it, through whatever calls it."""
    one = found.function(name)
    resting = sorted(found.resting_on(one.file, one.line)) or ["no claim runs it"]
    yield "defined", f"{one.file}:{one.line}"
    for title, lines in (("tests", list(_tests(one))), ("claims", resting)):
        yield from zip([title] + [""] * len(lines), lines, strict=False)


def _data(root: Path, page: str) -> Iterator[tuple[str, str]]:
    if not page:
        return
    for path in sorted(freshness.covered_files(root, notebooks.load(root, page))):
        if path.suffix not in (".py", ".yml", ".typed") and path.is_relative_to(root):
            yield "data", f"{path.relative_to(root)}, which its page may read"
