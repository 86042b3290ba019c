"""Reads ``book/claims/CHAPTER.yml``, what the source of a chapter says, in a file that no measurement can see.

A file is a mapping with ``format: 2`` and ``claims``, a list. Every rule is checked when the file is read, and
everything that is wrong is said at once, each with its rule and its line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
STATES = ("standing", "mended in the successor", "withdrawn")
"""What became of a claim whose text was superseded."""
LONGEST_QUOTE = 15
"""Words of a source that a claim quotes at most."""
WIDE = 0.1
"""A bound that is wider than this share of the published value says why."""
ROUNDING = 1e-12
"""What double precision may lose in sums of some thousand numbers of order one; an accuracy beyond it says why."""

Value = float | int | bool

_EXPECTATIONS = ("value", "above", "below", "between")
_MEASURED = tuple(verdict for verdict in VERDICTS if verdict not in ("partly", "not-attempted"))
_DISCRETE = ("statement", "program", "own")
"""Kinds of which some are decided by a yes or no, where the fact is discrete."""
_DEVIATIONS = ("formula", "program", "own")
"""Kinds that may be measured as a deviation from an independent route, which is zero if all is right."""
_SLUG = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_ID = re.compile(rf"{_SLUG}\.{_SLUG}")


@dataclass(frozen=True)
class Claim:
    """One statement of a source, or of the book, as declared in ``book/claims/CHAPTER.yml``."""

    id: str
    says: str
    source: Mapping[str, str] = field(default_factory=dict)
    quote: str = ""
    verdict: str = ""
    published: Value | None = None
    corrected: Value | None = None
    reading_error: float = 0.0
    bound: Mapping[str, Any] | None = None
    because: str | None = None
    unit: str = ""
    kind: str | None = None
    equation: Sequence[str] = ()
    functions: Sequence[str] = ()
    expects: Mapping[str, Any] | None = None
    rival: str | None = None
    resolves: bool = True
    control: str | None = None
    found: Mapping[str, Any] | None = None
    parts: Sequence[str] = ()
    printed_tex: str | None = None
    corrected_tex: str | None = None
    route: str | None = None
    accuracy: float | None = None
    commit: str | None = None
    run_by: str | None = None
    error: str = "numerical"
    samples: int | None = None
    comparisons: int | None = None
    state: str | None = None
    was: Sequence[str] = ()
    retired: str | None = None

    @property
    def chapter(self) -> str:
        """The chapter that measures the claim."""
        return self.id.partition(".")[0]

    @property
    def is_measured(self) -> bool:
        """Whether a page has to measure the claim."""
        return not self.retired and self.verdict in _MEASURED

    @property
    def is_sampled(self) -> bool:
        """Whether the error of the measurement is one of sampling, so that k is larger."""
        return self.error == "sampled" or self.samples is not None or self.comparisons is not None


_FIELDS = set(Claim.__dataclass_fields__)


_Find = Callable[[int, str, str], None]
"""Takes line, rule and message of something that is wrong with a file."""


@dataclass(frozen=True)
class _Entry:
    """One claim as it stands in the file: its fields, and the line of each."""

    content: Mapping[str, Any]
    line: int
    lines: Mapping[str, int]

    def at(self, name: str) -> int:
        return self.lines.get(name, self.line)


def declared(path: Path) -> list[Claim]:
    """Read and check one file of claims; retired ones are among them.

    Raises ``ValueError`` with everything that is wrong, a line each: file, line, rule, claim and field.
    """
    claims, findings = check(path)
    if findings:
        raise Findings(findings)
    return claims


def of_book(root: Path) -> dict[str, Claim]:
    """The claims of all chapters by their ids; raises ``ValueError`` as ``declared`` does."""
    return {
        claim.id: claim for path in manuscript.listed(root / "book" / "claims", "*.yml") for claim in declared(path)
    }


def check(path: Path) -> tuple[list[Claim], list[Finding]]:
    """The claims of a file that break no rule, and everything that is wrong with the file."""
    findings: list[Finding] = []

    def find(line: int, rule: str, message: str) -> None:
        findings.append(Finding(path.name, line, rule, message))

    entries = _read(path, find)
    claims = []
    for entry in entries:
        before = len(findings)
        name = str(entry.content.get("id", "a claim without id"))
        for line, rule, message in _rules(entry, path.stem):
            find(line, rule, f"{name}: {message}")
        if len(findings) == before:
            claims.append(_claim(entry.content))
    _check_ids(entries, find)
    _check_parts(entries, find)
    return claims, findings


def lines(path: Path) -> dict[str, int]:
    """The line on which each claim of a file begins, by id."""
    entries = _read(path, lambda line, rule, message: None)
    return {str(entry.content.get("id")): entry.line for entry in entries}


def _claim(content: Mapping[str, Any]) -> Claim:
    given: dict[str, Any] = {name: value for name, value in content.items() if value is not None}
    listed: dict[str, Any] = {
        name: tuple(_listed(given[name])) for name in ("equation", "functions", "parts", "was") if name in given
    }
    given.update(listed)
    return Claim(**given)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _read(path: Path, find: _Find) -> list[_Entry]:
    """The entries of a file; `find` is told what is wrong with the file itself."""
    try:
        root, content = manuscript.parse(path)
    except manuscript.Unreadable as error:
        find(error.line, "unreadable", error.reason)
        return []
    if root is None:
        return []
    is_right = isinstance(content, Mapping) and set(content) == {"format", "claims"} and content["format"] == 2
    if not is_right or not isinstance(content["claims"], list):
        got = f"the fields {sorted(map(str, content))}" if isinstance(content, Mapping) else repr(content)[:80]
        find(1, "format", f"expected `format: 2` and `claims`, a list; got {got}")
        return []
    nodes = next(value.value for key, value in root.value if key.value == "claims")
    entries = []
    for node, one in zip(nodes, content["claims"], strict=True):
        line = node.start_mark.line + 1
        if not isinstance(one, Mapping):
            find(line, "format", f"expected a claim, a mapping of fields, got {one!r}")
            continue
        entries.append(_Entry(one, line, {key.value: key.start_mark.line + 1 for key, _ in node.value}))
    return entries


_Broken = Iterator[tuple[int, str, str]]
"""Line, rule and message of everything that is wrong with one entry."""


def _identity(entry: _Entry, chapter: str) -> _Broken:
    id = str(entry.content.get("id", ""))
    if id and not id.startswith(f"{chapter}."):
        yield entry.at("id"), "id", f"id: expected it to begin with '{chapter}.'"
    elif id and not _ID.fullmatch(id):
        yield entry.at("id"), "id", "id: expected CHAPTER.NAME in lower case, digits and hyphens"
    if "says" in entry.content and not _text(entry.content["says"]):
        yield entry.at("says"), "says", "says: expected a sentence"


def _allowances(entry: _Entry) -> _Broken:
    reading, bound = entry.content.get("reading_error"), entry.content.get("bound")
    if reading is not None and not _is_number(reading, least=0.0):
        yield entry.at("reading_error"), "reading-error", f"reading_error: expected a number >= 0, got {reading!r}"
    if bound is not None:
        wanted = ({"absolute", "why"}, {"relative", "why"})
        is_right = isinstance(bound, Mapping) and set(bound) in wanted and _text(bound["why"])
        if not is_right or not _is_number(next(value for name, value in bound.items() if name != "why"), least=0.0):
            yield (
                entry.at("bound"),
                "bound",
                f"bound: expected {{absolute or relative: NUMBER >= 0, why: TEXT}}, got {bound!r}",
            )


def _rules(entry: _Entry, chapter: str) -> _Broken:
    one, at = entry.content, entry.at
    if unknown := set(one) - _FIELDS:
        expected = f"expected some of {sorted(_FIELDS)}"
        yield entry.line, "unknown-field", f"unknown fields {sorted(map(str, unknown))}; {expected}"
        # What is missing else was probably misspelt.
        return
    yield from _identity(entry, chapter)
    yield from _lists(entry)
    if one.get("retired") is not None:
        if missing := {"id", "says"} - set(one):
            yield entry.line, "missing-field", f"missing fields {sorted(missing)}"
        if not _text(one["retired"]):
            yield at("retired"), "retired", "retired: expected the reason, in words"
        return
    kind, verdict = one.get("kind"), one.get("verdict")
    needed = {"id", "says", "kind", "verdict"} | (set() if kind == "own" else {"source"})
    if missing := needed - set(one):
        yield entry.line, "missing-field", f"missing fields {sorted(missing)}"
    if "kind" in one and kind not in KINDS:
        yield at("kind"), "kind", f"kind: expected one of {KINDS}, got {kind!r}"
    if "verdict" in one and verdict not in VERDICTS:
        yield at("verdict"), "verdict", f"verdict: expected one of {VERDICTS}, got {verdict!r}"
    if kind not in KINDS or verdict not in VERDICTS:
        # Every further rule asks for one of the two.
        return
    yield from _source(entry)
    for_both = (UNDECIDED, SOFTWARE_CHECK)
    if verdict not in for_both and (kind == OWN) != (verdict in OWN_VERDICTS):
        yield (
            at("verdict"),
            "own",
            f"verdict: {', '.join(OWN_VERDICTS)} are for the kind own, got {verdict!r} of {kind}",
        )
    if verdict != "reproduced" and not _text(one.get("because")):
        yield entry.line, "because", f"because: required for the verdict {verdict!r}"
    if verdict in _MEASURED:
        yield from _target(entry)
        yield from _allowances(entry)
        yield from _errors(entry)
    else:
        asked = ("expects", "rival", "control", "found", "corrected", "accuracy")
        if given := [name for name in asked if one.get(name) is not None]:
            yield at(given[0]), "not-measured", f"{', '.join(given)}: the verdict {verdict!r} measures nothing"
    yield from _power(entry)
    yield from _kind(entry)


def _lists(entry: _Entry) -> _Broken:
    for name, pattern, words in (
        ("equation", re.compile(r"eq:\S+"), "labels of equations, eq:..."),
        ("functions", re.compile(r"\w+(\.\w+)+"), "names of functions, with their module"),
        ("parts", _ID, "ids of claims"),
        ("was", _ID, "ids of claims"),
    ):
        value = entry.content.get(name)
        if value is not None and not all(isinstance(item, str) and pattern.fullmatch(item) for item in _listed(value)):
            yield entry.at(name), name, f"{name}: expected {words}, got {value!r}"


def _source(entry: _Entry) -> _Broken:
    one, at = entry.content, entry.at
    source, state = one.get("source"), one.get("state")
    if one["kind"] == "own":
        if source is not None:
            yield at("source"), "source", "source: a result of the book, kind own, has none"
        for name in ("state", "quote"):
            if one.get(name) is not None:
                yield at(name), name, f"{name}: a result of the book, kind own, has none"
        return
    quote = one.get("quote")
    if quote is not None and not (_text(quote) and len(quote.split()) <= LONGEST_QUOTE):
        yield at("quote"), "quote", f"quote: expected at most {LONGEST_QUOTE} words of the source, got {quote!r}"
    if source is not None:
        known = {"key", "where", "section", "sha256"}
        is_right = isinstance(source, Mapping) and {"key", "where"} <= set(source) <= known
        if not is_right or not all(_text(value) for value in source.values()):
            expected = "expected the fields key and where, and perhaps section and sha256"
            yield at("source"), "source", f"source: {expected}, got {source!r}"
    if state is not None and state not in STATES:
        yield at("state"), "state", f"state: expected one of {STATES}, got {state!r}"


def _target(entry: _Entry) -> _Broken:
    """What the measured value is compared with: something printed, or something expected, with a reason."""
    one, at = entry.content, entry.at
    kind, verdict = one["kind"], one["verdict"]
    published, expects, corrected = one.get("published"), one.get("expects"), one.get("corrected")
    for name, value in (("published", published), ("corrected", corrected)):
        if value is not None and not isinstance(value, bool) and not _is_number(value):
            yield at(name), name, f"{name}: expected a number or a boolean, got {value!r}"
        if isinstance(value, bool) and kind not in _DISCRETE:
            yield at(name), "discrete", f"{name}: a yes or no is for the kinds {', '.join(_DISCRETE)}, got {kind!r}"
    if expects is not None:
        yield from _expectation(entry, expects)
    if kind in ("formula", "own") and published is not None:
        reason = "a deviation is printed nowhere" if kind == "formula" else "a result of the book is printed nowhere"
        yield at("published"), "published", f"published: {reason}; leave it out"
    if kind == "number" and published is None:
        yield entry.line, "published", "published: a number is printed in the text; else the kind is another"
    if published is not None and expects is not None:
        yield at("expects"), "expects", "expects: only where nothing is printed"
    if corrected is not None and verdict != "corrected":
        yield at("corrected"), "corrected", f"corrected: only for the verdict corrected, got {verdict!r}"
    is_deviation = kind in _DEVIATIONS and not (one.get("accuracy") is None and one.get("bound") is None)
    if verdict == "corrected" and kind != "formula" and corrected is None and expects is None and not is_deviation:
        yield entry.line, "corrected", "corrected: required for the verdict corrected, the right value"
    elif verdict != "corrected" and kind != "formula" and published is None and expects is None and not is_deviation:
        yield entry.line, "target", "expected published, or expects where nothing is printed"


def _expectation(entry: _Entry, expects: Any) -> _Broken:
    at = entry.at("expects")
    named = [name for name in _EXPECTATIONS if isinstance(expects, Mapping) and name in expects]
    if len(named) != 1 or set(expects) - {*named, "why"}:
        yield at, "expects", f"expects: expected one of {_EXPECTATIONS}, and why, got {expects!r}"
        return
    name, value = named[0], expects[named[0]]
    if not _text(expects.get("why")):
        yield at, "expects", "expects: why: required, since the value or threshold is ours"
    if name == "between":
        if not isinstance(value, list) or len(value) != 2 or not all(map(_is_number, value)) or value[0] >= value[1]:
            yield at, "expects", f"expects: between: expected [A, B] with A < B, got {value!r}"
    elif isinstance(value, bool) and name == "value":
        if entry.content["kind"] not in _DISCRETE:
            yield at, "discrete", f"expects: a yes or no is for the kinds {', '.join(_DISCRETE)}"
    elif not _is_number(value):
        yield at, "expects", f"expects: {name}: expected a number, got {value!r}"


def _errors(entry: _Entry) -> _Broken:
    """The allowance, and where k comes from."""
    one, at = entry.content, entry.at
    published, bound = one.get("published"), one.get("bound")
    given = [name for name in ("reading_error", "accuracy", "bound") if one.get(name) is not None]
    if len(given) > 1:
        yield at(given[-1]), "allowance", f"{' and '.join(given)}: expected one allowance"
    if one.get("accuracy") is not None and not _is_number(one["accuracy"], least=0.0):
        yield at("accuracy"), "accuracy", f"accuracy: expected a number >= 0, got {one['accuracy']!r}"
    elif one.get("accuracy") is not None and one["accuracy"] > ROUNDING:
        wrong = f"accuracy: {one['accuracy']:g} is more than rounding, {ROUNDING:g}; give it as bound, with why"
        yield at("accuracy"), "rounding", wrong
    reading = one.get("reading_error")
    size = abs(published) if isinstance(published, int | float) and _is_number(published) else 0.0
    if bound is None and size > 0 and isinstance(reading, int | float) and reading > WIDE * size:
        yield (
            at("reading_error"),
            "wide-bound",
            f"reading_error: {reading:g} is over {WIDE:.0%} of the published value; give it as bound, with why",
        )
    if one.get("error", "numerical") not in ("numerical", "sampled"):
        yield at("error"), "error", f"error: expected numerical or sampled, got {one['error']!r}"
    for name in ("samples", "comparisons"):
        value = one.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 2):
            yield at(name), name, f"{name}: expected a whole number >= 2, got {value!r}"
        elif value is not None and one.get("error") == "numerical":
            yield at(name), "error", f"{name}: the error is then a sampled one"


def _power(entry: _Entry) -> _Broken:
    """What would fail if the claim were wrong: a rival, or a control of a refutation, or the parts of a whole."""
    one, at, verdict = entry.content, entry.at, entry.content["verdict"]
    for name in ("rival", "control"):
        if one.get(name) is not None and not _text(one[name]):
            yield at(name), name, f"{name}: expected it in words, got {one[name]!r}"
    if verdict == "reproduced" and one.get("rival") is None:
        yield entry.line, "rival", f"rival: required for the verdict {verdict!r}, a wrong answer that can be believed"
    if verdict == "not-reproduced":
        if one.get("rival") is not None:
            yield at("rival"), "rival", "rival: a claim that was not reproduced has a control in its place"
        if one.get("control") is None:
            yield entry.line, "control", "control: required for the verdict 'not-reproduced', a case where it is true"
        found = one.get("found")
        if (
            not isinstance(found, Mapping)
            or not {"value", "bound"} >= set(found) - {"why"}
            or not isinstance(found.get("value"), int | float)
            or not (isinstance(found.get("value"), bool) or _is_number(found.get("bound"), least=0.0))
        ):
            yield at("found"), "found", f"found: required, {{value: NUMBER, bound: NUMBER}}, got {found!r}"
    else:
        for name in ("control", "found"):
            if one.get(name) is not None and verdict in _MEASURED:
                yield at(name), name, f"{name}: only for the verdict not-reproduced, got {verdict!r}"
    if (verdict == "partly") != bool(one.get("parts")):
        yield at("parts"), "parts", "parts: ids of claims, for the verdict partly and only there"
    if one.get("resolves") not in (None, True, False):
        yield at("resolves"), "resolves", f"resolves: expected yes or no, got {one['resolves']!r}"


def _kind(entry: _Entry) -> _Broken:
    one, at, kind, verdict = entry.content, entry.at, entry.content["kind"], entry.content["verdict"]
    is_measured = verdict in _MEASURED
    for name in ("route", "run_by", "printed_tex", "corrected_tex"):
        if one.get(name) is not None and not _text(one[name]):
            yield at(name), name.replace("_", "-"), f"{name}: expected a text, got {one[name]!r}"
    if kind == "formula" and is_measured:
        for name in ("route", "accuracy"):
            if one.get(name) is None and (name == "route" or not (one.get("expects") or one.get("bound"))):
                yield entry.line, name, f"{name}: required for a formula"
    elif one.get("accuracy") is not None and kind not in _DEVIATIONS:
        yield at("accuracy"), "accuracy", f"accuracy: for the kinds {', '.join(_DEVIATIONS)}, got {kind!r}"
    elif kind == "own" and is_measured and one.get("expects") is None and one.get("route") is None:
        yield entry.line, "route", "route: required where a deviation is measured"
    for name in ("commit", "run_by"):
        if kind == "program" and is_measured and one.get(name) is None:
            yield entry.line, "program", f"{name}: required for a program"
        if kind != "program" and one.get(name) is not None:
            yield at(name), "program", f"{name}: only for a program, got {kind!r}"
    for name in ("printed_tex", "corrected_tex"):
        if verdict == "corrected" and kind == "formula" and one.get(name) is None:
            yield entry.line, "tex", f"{name}: required for a corrected formula"
        if verdict != "corrected" and one.get(name) is not None:
            yield at(name), "tex", f"{name}: only for the verdict corrected, got {verdict!r}"


def _check_ids(entries: Sequence[_Entry], find: _Find) -> None:
    """Every id once, those that claims had before among them: an old one leads to one claim."""
    seen: dict[str, int] = {}
    for entry in entries:
        was = entry.content.get("was")
        for name, ids in (("id", [entry.content.get("id")]), ("was", _listed(was) if was else [])):
            for id in filter(None, map(str, ids)):
                if id in seen:
                    find(entry.at(name), "repeated-id", f"{id}: declared more than once, first on line {seen[id]}")
                seen.setdefault(id, entry.at(name))


def _check_parts(entries: Sequence[_Entry], find: _Find) -> None:
    verdicts = {
        str(entry.content.get("id")): str(entry.content.get("verdict"))
        for entry in entries
        if entry.content.get("retired") is None
    }
    for entry in entries:
        if entry.content.get("verdict") != "partly" or not entry.content.get("parts"):
            continue
        id, parts = entry.content.get("id"), [str(part) for part in _listed(entry.content["parts"])]
        if strangers := [part for part in parts if part not in verdicts or verdicts[part] == "partly"]:
            message = f"{id}: parts: expected claims of this file that are no wholes themselves, got {strangers}"
            find(entry.at("parts"), "parts", message)
        elif len({verdicts[part] == "reproduced" for part in parts}) == 1:
            message = f"{id}: parts: expected some that are reproduced and some that are not"
            find(entry.at("parts"), "parts", message)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Any, least: float = -math.inf) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= least
