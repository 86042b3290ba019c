"""Reads ``book/claims/CHAPTER.yml``: what the sources and the book claim, in a file that no measurement can see.

``schema.yml`` has the form of the file. The rules that connect fields are here, and everything that is wrong with a
file is said at once: file, line, claim, field, what was expected and what came.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from companion import manuscript
from companion.findings import Finding, Findings

KINDS = ("number", "figure", "formula", "order", "statement", "program", "own")
"""What is compared: see ``book/claims.md``. ``own`` is a result of the book and never counts among the source's."""
OWN = "own"
UNDECIDED = "undecided"
SOFTWARE_CHECK = "software-check"
"""An identity, a provenance or a test of code, which holds whatever is true of the subject; no total counts it."""
OWN_VERDICTS = ("result", "exploratory", SOFTWARE_CHECK)
"""Of the book's own claims: planned or derived beforehand, and repeated; unplanned; no result at all."""
VERDICTS = ("reproduced", "partly", "corrected", "not-reproduced", UNDECIDED, "not-attempted", *OWN_VERDICTS)
"""What is expected of a source's claim, and, last, of the book's own."""
WIDE = 0.1
"""A bound that is wider than this share of the printed value says why."""
ROUNDING = 1e-12
"""What double precision may lose in sums of some thousand numbers of order one; an accuracy beyond it says why."""
TARGETS = ("value", "below", "above", "between", "accuracy")
"""What a measured value should be, besides ``printed``. An accuracy is that of a deviation, which should be 0."""

Value = float | int | bool

_UNMEASURED = ("partly", "not-attempted")
_DISCRETE = ("statement", "program", OWN)
"""Kinds of which some are decided by a yes or no, where the fact is discrete."""
_DEVIATIONS = ("formula", "program", OWN)
"""Kinds that may be measured as a deviation from an independent route, which is zero if all is right."""


@dataclass(frozen=True)
class Claim:
    """One statement of a source, or of the book, as declared in ``book/claims/CHAPTER.yml``."""

    id: str
    says: str
    kind: str = ""
    verdict: str = ""
    source: Mapping[str, str] = field(default_factory=dict)
    equation: Sequence[str] = ()
    functions: Sequence[str] = ()
    expects: Mapping[str, Any] = field(default_factory=dict)
    sampled: bool | Mapping[str, int] = False
    rival: str = ""
    found: Mapping[str, Any] = field(default_factory=dict)
    because: str = ""
    tex: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[str] = ()
    history: Mapping[str, Any] = field(default_factory=dict)

    @property
    def chapter(self) -> str:
        """The chapter that measures the claim."""
        return self.id.partition(".")[0]

    @property
    def was(self) -> Sequence[str]:
        """Ids that the claim had before."""
        return self.history.get("was", ())

    @property
    def retired(self) -> str:
        """Why the claim is no claim any more; "" for one that is."""
        return self.history.get("retired", "")

    @property
    def is_measured(self) -> bool:
        """Whether a page has to measure the claim."""
        return bool(self.verdict) and not self.retired and self.verdict not in _UNMEASURED


@dataclass(frozen=True)
class Comparison:
    """A figure of ours beside the published one that it names as its source, in words; one of the two may be empty."""

    agrees: str
    differs: str
    claims: Sequence[str]


@dataclass(frozen=True)
class Item:
    """An item of a text: its section and kind, what it is, and where it is answered, or because of what it is not."""

    where: str
    kind: str
    says: str
    claims: Sequence[str]
    figures: Sequence[str]
    pages: Sequence[str]
    because: str


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


def figures(root: Path) -> dict[str, Comparison]:
    """How figures of ours differ from published ones, by the id of the figure."""
    return {
        id: Comparison(_plain(said.get("agrees", "")), _plain(said.get("differs", "")), said.get("claims", ()))
        for path in files(root)
        for id, said in _section(path, "figures").items()
    }


def items(root: Path, key: str) -> list[Item]:
    """The items of a text in their order; chapters that share a text follow each other by name."""
    return [
        Item(
            where=entry["where"],
            kind=entry["kind"],
            says=_plain(entry["says"]),
            claims=[name for name in entry.get("answered", ()) if "." in name.partition("#")[0]],
            figures=[name for name in entry.get("answered", ()) if name[0] != "/" and "." not in name],
            pages=[name[1:] for name in entry.get("answered", ()) if name[0] == "/"],
            because=_plain(entry.get("because", "")),
        )
        for path in files(root)
        for entry in _section(path, "items").get(key, ())
    ]


def _section(path: Path, name: str) -> Mapping[str, Any]:
    declared(path)
    section: Mapping[str, Any] = (manuscript.parse(path)[1] or {}).get(name, {})
    return section


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
    node, content = manuscript.parse(path)
    if content is None:
        return [], []
    findings = []
    broken: set[Any] = set()

    def find(place: Sequence[Any], message: str) -> None:
        """Note what is wrong at a place, the keys and indices that lead to it."""
        broken.add(tuple(place[:2]))
        named = ".".join(map(str, place[2 if place[:1] == ["claims"] else 0 :]))
        rule = next((str(key) for key in place[2:] if isinstance(key, str)), "form")
        said = f"{named}: {message}" if named else message
        findings.append(Finding(path.name, _line(node, place), rule, f"{_name(content, place)}{said}"))

    for error in _validator().iter_errors(content):
        find(list(error.absolute_path), _expected(error))
    if any(len(place) < 2 for place in broken):
        return [], findings
    claims = {}
    for at, entry in enumerate(content["claims"]):
        if ("claims", at) not in broken:
            claim = Claim(**entry)
            for name, message in _rules(claim, path.stem):
                find(["claims", at, name], message)
            if ("claims", at) not in broken:
                claims[at] = claim
    if not findings:
        # What is wrong with one claim would look wrong with those that name it.
        for place, message in (*_repeated(claims), *_wholes(claims), *_strangers(content, path.stem)):
            find(place, message)
    return list(claims.values()), findings


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


def _name(content: Any, place: Sequence[Any]) -> str:
    """The id of the claim that a place belongs to, for the beginning of a message."""
    if len(place) < 2 or place[0] != "claims":
        return ""
    entry = content["claims"][place[1]]
    return f"{entry.get('id', 'a claim without id') if isinstance(entry, dict) else 'a claim'}: "


def _rules(claim: Claim, chapter: str) -> list[tuple[str, str]]:
    """Fields that do not go together with others of the same claim, each with what was expected."""
    broken: list[tuple[str, str]] = []

    def want(right: Any, name: str, wanted: str, came: Any = "nothing") -> None:
        if not right:
            broken.append((name, f"expected {wanted}, got {came}"))

    kind, verdict, source, expects, found = claim.kind, claim.verdict, claim.source, claim.expects, claim.found
    want(claim.chapter == chapter, "id", f"it to begin with '{chapter}.'", claim.id)
    if claim.retired:
        return broken
    want(kind, "kind", f"one of {', '.join(KINDS)}")
    want(verdict, "verdict", f"one of {', '.join(VERDICTS)}")
    if not (kind and verdict):
        return broken
    measured, corrected, refuted = claim.is_measured, verdict == "corrected", verdict == "not-reproduced"

    want(
        source if kind != OWN else not source,
        "source",
        f"{'none' if kind == OWN else 'one'} for the kind {kind}",
        source,
    )
    of_either = verdict in (UNDECIDED, SOFTWARE_CHECK)
    ours = f"{', '.join(OWN_VERDICTS)} for the kind own and no other"
    want(of_either or (kind == OWN) == (verdict in OWN_VERDICTS), "verdict", ours, f"{verdict} for {kind}")
    want(claim.because or verdict == "reproduced", "because", f"the reason of the verdict {verdict}")
    want(claim.because or kind != "formula" or not measured, "because", "the independent route to a formula")
    want(
        "commit" in source or kind != "program" or not measured, "source", "commit, the version of the program", source
    )
    want("commit" not in source or kind == "program", "source", f"no commit for the kind {kind}", source)
    want(claim.tex or kind != "formula" or not corrected, "tex", "printed and corrected for a corrected formula")
    want(corrected or not claim.tex, "tex", f"none for the verdict {verdict}", "formulas")
    want(
        bool(claim.parts) == (verdict == "partly"),
        "parts",
        "ids for the verdict partly and no other",
        list(claim.parts),
    )

    targets, printed, within = (
        [name for name in TARGETS if name in expects],
        expects.get("printed"),
        expects.get("within"),
    )
    right = "the right value" if corrected else f"printed or one of {', '.join(TARGETS)}"
    want(targets or (printed is not None and not corrected) or not measured, "expects", right, expects or "nothing")
    want(len(targets) < 2, "expects", f"one of {', '.join(TARGETS)}", " and ".join(targets))
    beside = corrected and targets == ["value"]
    want(
        printed is None or not targets or beside,
        "expects",
        "printed alone, or value beside it in a correction",
        expects,
    )
    want(printed is not None or kind != "number", "expects", "printed, the number in the text", expects or "nothing")
    want(printed is None or kind not in ("formula", OWN), "expects", f"nothing printed for the kind {kind}", printed)
    discrete = any(isinstance(expects.get(name), bool) for name in ("printed", "value"))
    want(not discrete or kind in _DISCRETE, "expects", f"a number for the kind {kind}", "a yes or no")
    want("accuracy" not in expects or kind in _DEVIATIONS, "expects", f"no accuracy for the kind {kind}", expects)
    want("accuracy" not in expects or within is None, "expects", "accuracy or within", "both")
    low, high = expects.get("between", (0, 1))
    want(low < high, "expects", "between: [A, B] with A < B", [low, high])
    narrow = (
        WIDE * abs(printed) if printed is not None and not discrete and printed else math.inf if printed == 0 else 0.0
    )
    is_wide = (within or 0.0) > narrow or expects.get("accuracy", 0.0) > ROUNDING
    want(claim.because or not is_wide, "because", "the reason of so wide a bound")

    believable = "a wrong answer that a reader could believe"
    want(claim.rival or refuted or not measured or (corrected and printed is not None), "rival", believable)
    want(not claim.rival or not refuted, "rival", "a control, under found, in its place", "a rival")
    want(found or not refuted, "found", "value, within and control")
    want(refuted or not found, "found", f"none for the verdict {verdict}", found)
    want(not found or "within" in found or isinstance(found["value"], bool), "found", "within beside a number", found)
    idle = [name for name in ("rival", "sampled") if getattr(claim, name)]
    idle += ["expects"] if set(expects) - {"printed"} else []
    want(measured or not idle, (idle or [""])[0], f"none, since the verdict {verdict} measures nothing", "one")
    return broken


_Places = Iterator[tuple[list[Any], str]]
"""Places in a file, and what was expected there."""


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


def _strangers(content: Mapping[str, Any], chapter: str) -> _Places:
    for id in content.get("figures", {}):
        if not id.startswith(f"{chapter}-"):
            yield ["figures", id], f"expected a figure of the chapter, {chapter}-NAME"


def check_book(root: Path, works: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    """Everything that is wrong with all files together; ``works`` are the entries of ``references.bib`` by key.

    A work that has a ``version`` was read, so that claims quote it; one that is ``superseded`` has claims with a state.
    """
    found: list[Finding] = []
    known: dict[str, str] = {}
    standing: set[str] = set()
    for path in files(root):
        claims, findings = check(path)
        found += findings
        node = manuscript.parse(path)[0] if claims else None
        at = {claim["id"]: place for place, claim in enumerate(manuscript.parse(path)[1]["claims"])} if claims else {}
        for claim in claims:
            standing |= set() if claim.retired else {claim.id, *claim.was}
            for id in (claim.id, *claim.was):
                if known.setdefault(id, path.name) != path.name:
                    line = _line(node, ["claims", at[claim.id], "id"])
                    found.append(Finding(path.name, line, "id", f"{claim.id}: id: {id} is in {known[id]} too"))
            for name, message in _about_work(claim, works):
                line = _line(node, ["claims", at[claim.id], "source", name])
                found.append(Finding(path.name, line, "source", f"{claim.id}: source.{name}: {message}"))
    for path in files(root):
        if not check(path)[1]:
            found += _about_answers(path, known, standing, works)
    return sorted(set(found))


def _about_work(claim: Claim, works: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    key = claim.source.get("key")
    if key is None or claim.retired:
        return
    work = works.get(key)
    if work is None:
        yield "key", f"expected a key of references.bib, got {key!r}"
    elif "version" in work and "quote" not in claim.source:
        yield "quote", "expected words of the text, got nothing"
    if claim.source.get("state", "standing") != "standing" and "superseded" not in (work or {}):
        yield "state", f"expected none, since {key} is not superseded, got {claim.source['state']!r}"


def _about_answers(
    path: Path, known: Collection[str], standing: Collection[str], works: Collection[str]
) -> Iterator[Finding]:
    """Claims that figures and items name and that are not there."""
    node, content = manuscript.parse(path)
    places: list[tuple[list[Any], str]] = []
    for id, said in (content or {}).get("figures", {}).items():
        wrong = [claim for claim in said.get("claims", ()) if claim not in standing]
        places += [(["figures", id, "claims"], f"{id}: expected claims, got {claim}") for claim in wrong]
    for key, entries in (content or {}).get("items", {}).items():
        if key not in works:
            places.append((["items", key], f"expected a key of references.bib, got {key!r}"))
        for at, entry in enumerate(entries):
            named = [name for name in entry.get("answered", ()) if name[0] != "/" and "." in name]
            places += [
                (["items", key, at, "answered"], f"{entry['says']}: answered: expected a claim, got {name}")
                for name in named
                if name not in known
            ]
    for place, message in places:
        yield Finding(path.name, _line(node, place), str(place[0]), message)


def lines(path: Path) -> dict[str, int]:
    """The line on which each claim of a file begins, by id; {} for a file that cannot be read as one of claims."""
    try:
        node, content = manuscript.parse(path)
    except manuscript.Unreadable:
        return {}
    entries = content.get("claims") if isinstance(content, dict) else None
    return {
        str(entry["id"]): _line(node, ["claims", at])
        for at, entry in enumerate(entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and "id" in entry
    }


def _plain(text: str) -> str:
    return " ".join(text.split())
