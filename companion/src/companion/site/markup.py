"""Fills the templates of ``site/templates``, where the HTML of the book's directives stands; words are escaped there.

A template is laid out for reading: a line break between two tags is none of the page, any other is a space. A file has
macros for one subject, which take the facts that ``fill`` is given; ``parts.html`` has what several files share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    made.globals |= {"count": count, "marks": VERDICT_MARKS, "place": numbering.place, "verdict_of": verdict_of}
    made.globals |= {"with_error": claims.with_error, "expectation_of": claims.expectation_of}
    made.globals |= {"short": _short, "sortable": _sortable}
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
