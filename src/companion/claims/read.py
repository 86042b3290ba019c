"""Reads ``book/claims/CHAPTER.yml``, the claims of the sources and of the book, and reports every error in it.

``schema.yml`` has the form of a file. An error has the file, the line, the claim, the field, what was expected and what
came. No measurement reads these files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from companion import manuscript
from companion.claims.model import Claim, Item, broken_rules
from companion.manuscript import Finding, Findings, spaced

Works = Mapping[str, Mapping[str, str]]
"""The entries of ``references.bib`` by key, each with its fields."""
_Places = Iterator[tuple[Sequence[Any], str]]
"""Places in a file, as the keys and indices that lead there, and what was expected there."""


def files(root: Path) -> list[Path]:
    """The files of claims, one a chapter."""
    return manuscript.listed(root / "book" / "claims", "*.yml")


def declared(path: Path) -> list[Claim]:
    """The claims of one file, retired ones among them; raises ``ValueError`` with everything that is wrong with it."""
    claims, findings = check(path)
    if findings:
        raise Findings(findings)
    return claims


def of_book(root: Path) -> dict[str, Claim]:
    """The claims of all chapters by their ids; raises ``ValueError`` as ``declared`` does."""
    return {claim.id: claim for path in files(root) for claim in declared(path)}


def figures(root: Path) -> dict[str, Mapping[str, Any]]:
    """How figures of ours agree with published ones and differ, and the claims that judge them, by the figure's id."""
    sections = [_section(path, "figures").items() for path in files(root)]
    return {id: {"agrees": "", "differs": "", "claims": ()} | said for section in sections for id, said in section}


def items(root: Path, key: str) -> list[Item]:
    """The items of a text in their order; chapters that share a text follow each other by name."""
    return [
        Item(
            where=entry["where"],
            kind=entry["kind"],
            says=spaced(entry["says"]),
            claims=[name for name in entry.get("answered", ()) if "." in name.partition("#")[0]],
            figures=[name for name in entry.get("answered", ()) if name[0] != "/" and "." not in name],
            pages=[name[1:] for name in entry.get("answered", ()) if name[0] == "/"],
            because=spaced(entry.get("because", "")),
        )
        for path in files(root)
        for entry in _section(path, "items").get(key, ())
    ]


def _section(path: Path, name: str) -> Mapping[str, Any]:
    declared(path)
    return (manuscript.parse(path)[1] or {}).get(name, {})


def check(path: Path) -> tuple[list[Claim], list[Finding]]:
    """The claims of a file that break no rule, and everything that is wrong with the file."""
    try:
        manuscript.parse(path)
    except manuscript.Unreadable as error:
        return [], [Finding(path.name, error.line, "unreadable", error.reason)]
    claims, findings = _checked(path, manuscript.text(path))
    return list(claims), list(findings)


# The text is a part of the key, so that a file that changes is read again.
@lru_cache(maxsize=64)
def _checked(path: Path, text: str) -> tuple[Sequence[Claim], Sequence[Finding]]:
    content = manuscript.parse(path)[1]
    if content is None:
        return [], []
    wrong: list[tuple[Sequence[Any], str]] = [
        (list(error.absolute_path), _expected(error)) for error in _validator().iter_errors(content)
    ]
    if any(len(place) < 2 for place, _ in wrong):
        return [], _findings(path, wrong)
    claims = {}
    for at, entry in enumerate(content["claims"]):
        if ["claims", at] in (place[:2] for place, _ in wrong):
            continue
        claim = Claim(**entry)
        if broken := broken_rules(claim, path.stem):
            wrong += [(["claims", at, name], message) for name, message in broken]
        else:
            claims[at] = claim
    if not wrong:
        # What is wrong with one claim would look wrong with those that name it.
        wrong += [*_repeated(claims), *_wholes(claims)]
        figure = f"a figure of the chapter, {path.stem}-NAME"
        wrong += [
            (["figures", id], f"expected {figure}, got {id}")
            for id in content.get("figures", {})
            if not id.startswith(f"{path.stem}-")
        ]
    return list(claims.values()), _findings(path, wrong)


def _findings(path: Path, wrong: Iterable[tuple[Sequence[Any], str]]) -> list[Finding]:
    """What is wrong at places of a file, with their lines, the id of the claim there and the field."""
    node, content = manuscript.parse(path)
    found = []
    for place, message in wrong:
        whose, field = "", place
        if place[:1] == ["claims"] and len(place) > 1:
            entry, field = content["claims"][place[1]], place[2:]
            whose = entry.get("id", "a claim without id") if isinstance(entry, dict) else "a claim"
        said = ": ".join(filter(None, [str(whose), ".".join(map(str, field)), message]))
        rule = next((str(key) for key in place[2:] if isinstance(key, str)), "form")
        found.append(Finding(path.name, _line(node, place), rule, said))
    return found


@cache
def _validator() -> Any:
    # A kernel that measures needs neither the schema nor the package that reads it.
    from jsonschema import Draft7Validator, validators

    def is_number(_: Any, value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

    schema = yaml.safe_load(Path(__file__).with_name("schema.yml").read_text(encoding="utf-8"))
    checker = Draft7Validator.TYPE_CHECKER.redefine("number", is_number)
    return validators.extend(Draft7Validator, type_checker=checker)(schema)


def _expected(error: Any) -> str:
    """What the schema expected and what came, in words."""
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"{missing}: expected {_described(error.schema['properties'][missing])}, got nothing"
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        unknown = ", ".join(repr(name) for name in error.instance if name not in known)
        return f"expected some of {', '.join(known)}; got {unknown}"
    came = repr(error.instance)
    return f"expected {_described(error.schema)}, got {came if len(came) < 120 else came[:117] + '...'}"


def _described(schema: Mapping[str, Any]) -> str:
    definition = _validator().schema["definitions"].get(schema.get("$ref", "").rpartition("/")[2], schema)
    return str(definition["description"])


def _line(node: Any, place: Iterable[Any]) -> int:
    """The line of a place in a file; that of what is around it where the place is not there."""
    line = node.start_mark.line
    for key in place:
        if isinstance(node, yaml.MappingNode):
            found = next(((name, value) for name, value in node.value if name.value == key), None)
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        else:
            node = node.value[key]
            line = node.start_mark.line
    return int(line) + 1


def _repeated(claims: Mapping[int, Claim]) -> _Places:
    """Ids that are given twice, those of before among them: an old one leads to one claim."""
    seen: dict[str, str] = {}
    for at, claim in claims.items():
        for id in (claim.id, *claim.was):
            if id in seen:
                yield ["claims", at, "id"], f"expected every id once, got {id} again, which is of {seen[id]} too"
            seen.setdefault(id, claim.id)


def _wholes(claims: Mapping[int, Claim]) -> _Places:
    verdicts = {claim.id: claim.verdict for claim in claims.values() if not claim.retired}
    for at, claim in claims.items():
        if strangers := [part for part in claim.parts if verdicts.get(part, "partly") == "partly"]:
            wanted = "claims of this file that have no parts themselves"
            yield ["claims", at, "parts"], f"expected {wanted}, got {', '.join(strangers)}"
        elif claim.parts and len({verdicts[part] == "reproduced" for part in claim.parts}) == 1:
            yield ["claims", at, "parts"], "expected some that are reproduced and some that are not"


def check_book(root: Path, works: Works, names: Callable[[Claim], _Places] = lambda _: iter(())) -> list[Finding]:
    """Everything that is wrong with all files together, and what ``names`` finds at places of a claim.

    A work that has a ``version`` was read, so that claims quote it; one that is ``superseded`` has claims with a state.
    """
    found: list[Finding] = []
    claims = {path: check(path)[0] for path in files(root)}
    known = {id for listed in claims.values() for claim in listed for id in (claim.id, *claim.was)}
    standing = {id for listed in claims.values() for one in listed if not one.retired for id in (one.id, *one.was)}
    for path, listed in claims.items():
        found += check(path)[1]
        if not check(path)[1]:
            wrong = [*_about_works(listed, works), *_about_answers(path, known, standing, works)]
            for at, claim in enumerate(listed):
                wrong += [(["claims", at, *place], message) for place, message in names(claim)]
            found += _findings(path, wrong)
    return sorted({replace(finding, file=f"book/claims/{finding.file}") for finding in found})


def _about_works(claims: Sequence[Claim], works: Works) -> _Places:
    for at, claim in enumerate(claims):
        key, place = claim.source.get("key"), ["claims", at, "source"]
        if key is None:
            continue
        work = works.get(key, {})
        if key not in works:
            yield [*place, "key"], f"expected a key of references.bib, got {key}"
        if "version" in work and "quote" not in claim.source:
            yield [*place, "quote"], "expected words of the text, got nothing"
        if claim.source.get("state", "standing") != "standing" and "superseded" not in work:
            yield [*place, "state"], f"expected none, since {key} is not superseded, got {claim.source['state']}"


def _about_answers(path: Path, known: Collection[str], standing: Collection[str], works: Works) -> _Places:
    """Claims that figures and items name and that are not there."""
    content = manuscript.parse(path)[1] or {}
    for id, said in content.get("figures", {}).items():
        for name in said.get("claims", ()):
            if name not in standing:
                yield ["figures", id, "claims"], f"expected a claim, got {name}"
    for key, entries in content.get("items", {}).items():
        if key not in works:
            yield ["items", key], f"expected a key of references.bib, got {key}"
        for at, entry in enumerate(entries):
            for name in entry.get("answered", ()):
                if name[0] != "/" and "." in name and name not in known:
                    yield ["items", key, at, "answered"], f"{entry['says']}: expected a claim, got {name}"
