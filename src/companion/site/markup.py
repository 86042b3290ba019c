"""Fills the templates of ``site/templates``, where the HTML of the book's directives stands; words are escaped there.
It holds the words of claims that several templates say.

A template is laid out for reading: a line break between two tags is none of the page, any other is a space. A file has
macros for one subject, which take the facts that ``fill`` is given; ``parts.html`` has what several files share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from companion import claims, plain
from companion.site import numbering

VERDICT_MARKS = {
    "reproduced": "✓",
    "partly": "◐",
    "corrected": "✎",
    "not-reproduced": "✗",
    "undecided": "?",
    "not-attempted": "–",
    "result": "■",
    "exploratory": "□",
    "software-check": "⚙",
}


class _Layout(Extension):
    """Takes the layout of a template away before it is read."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"\n\s*", " ", re.sub(r"(?<=[>}])\n\s*(?=[<{])", "", source.strip()))


def fill(place: str, *parts: Any, **facts: Any) -> Markup:
    """The HTML of the macro NAME of FILE.html, for a ``place`` FILE.NAME; a fact that is not given is an error."""
    file, _, name = place.partition(".")
    module = _environment().get_template(f"{file}.html").make_module(facts)
    made: Markup = getattr(module, name)(*parts)
    return made


@cache
def _environment() -> Environment:
    folder = Path(__file__).with_name("templates")
    made = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, extensions=[_Layout]
    )
    made.filters |= {
        "anchor": claims.anchor_of,
        "function_anchor": _function_anchor,
        "number": claims.format_value,
        "typeset": typeset,
    }
    made.globals |= {"count": count, "kinds_of_claims": claims.KINDS, "marks": VERDICT_MARKS, "place": numbering.place}
    made.globals |= {"expectation_of": claims.expectation_of, "with_error": claims.with_error}
    own = {"beside": beside, "evidence": evidence, "found_of": found_of, "quoted": quoted, "verdict_of": verdict_of}
    made.globals |= own | {"short": _short, "sortable": _sortable}
    return made


def typeset(words: str | None) -> Markup:
    """The words of a claim with their formulas set, as HTML; nothing for None."""
    return Markup(plain.typeset(words or ""))


def count(number: int, noun: str) -> str:
    """A number and its noun.

    >>> count(1, "test"), count(2, "test")
    ('1 test', '2 tests')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def enumerated(parts: Sequence[str]) -> str:
    """Parts as a sentence names them.

    >>> enumerated(["one", "two", "three"]), enumerated(["one"])
    ('one, two and three', 'one')
    """
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _function_anchor(name: str) -> str:
    return "function-" + name.replace(".", "-").replace("_", "-").lower()


def _short(value: float | None, kind: Any) -> str:
    return "–" if value is None or isinstance(kind, bool) else f"{value:.2g}"


def _sortable(value: float | bool | None) -> str:
    return "" if value is None else repr(float(value))


def verdict_of(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Kind, words and mark of a claim's verdict; a verdict that the measurement does not confirm is one of its own."""
    verdict = entry["verdict"] if entry["holds"] is not False else "failed"
    label = "not confirmed" if verdict == "failed" else verdict.replace("-", " ")
    return verdict, label, VERDICT_MARKS.get(verdict, "!")


def beside(counted: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """What stands beside the claims of the sources, in a sentence; ``counted`` is as ``claims.among`` has it."""
    parts, external, own, checks = (len(counted[name]) for name in ("parts", "external", "own", "checks"))
    results = sum(entry["verdict"] == "result" for entry in counted["own"])
    others = own - results
    stand = [
        f"{parts} {'part of one' if parts == 1 else 'parts of those'} that held in part" if parts else "",
        f"{external} {'claim of another work' if external == 1 else 'claims of other works'}" if external else "",
        f"{count(results, 'result')} of this book" if own else "",
        f"{others} that {'is' if others == 1 else 'are'} exploratory or undecided" if others else "",
        f"{count(checks, 'check')} of the software" if checks else "",
    ]
    return f"Beside them, in no total, stand {enumerated(list(filter(None, stand)))}." if any(stand) else ""


def quoted(entry: Mapping[str, Any]) -> str:
    """The words of the source between quotation marks, their formulas as letters, or nothing."""
    return f"“{plain.plain(entry['quote'])}”" if entry["quote"] else ""


def found_of(found: Mapping[str, Any]) -> str:
    """What was found in place of what a refuted claim says, in words."""
    bound = f" within {found['bound']:.2g}" if found.get("bound") else ""
    return f"{claims.format_value(found['value'])}{bound}. {found.get('why', '')}".strip()


def evidence(entry: Mapping[str, Any]) -> dict[str, Markup]:
    """What was measured and what it is compared with, in words that need nothing else of the ledger."""
    other = entry["rival"] or entry["control"]
    found = typeset(found_of(entry["found"])) if entry["found"] else None
    facts: dict[str, str | None]
    if entry["kind"] == "formula":
        is_corrected = entry["verdict"] == "corrected"
        right = "the corrected form" if is_corrected else "the statement"
        deviation = f"{right}: {claims.format_value(entry['measured'], 2)}"
        if other:
            name = "the printed form" if is_corrected else typeset(other["says"])
            far = "diverges" if other["diverges"] else claims.format_value(other["value"], 2)
            deviation += f"; {name}: {far}"
        facts = {"Checked by": typeset(entry["route"]), "Deviation": deviation, "Found": found}
    else:
        published, corrected, expects = entry["published"], entry["corrected"], entry["expects"]
        facts = {
            "Published": None if published is None else claims.format_value(published),
            "Right": None if corrected is None else claims.format_value(corrected),
            "Expected": typeset(f"{claims.expectation_of(expects)}. {expects['why']}") if expects else None,
            "Measured here": claims.with_error(entry["measured"], entry["uncertainty"]),
            "Found": found,
            "Rival" if entry["rival"] else "Control": fill("ledger.rival", entry) if other else None,
            "Shown by": typeset(entry["route"]) if entry["route"] else None,
        }
    return {name: Markup(fact) for name, fact in facts.items() if fact is not None}
