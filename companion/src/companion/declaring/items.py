"""Reads ``book/items/KEY.yml``: every item of a text, and where it is answered, for the table that closes an audit.

An item is a figure, equation, number, listing, testable statement or announced experiment. It is answered by a claim,
by a figure, at a place of a page, or not, for a reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion import manuscript
from companion.findings import Finding
from companion.manuscript import entries

__all__ = ["ANSWERS", "FOLDER", "KINDS", "Item", "problems", "read"]

FOLDER = "items"
KINDS = ("figure", "equation", "number", "listing", "statement", "experiment")
ANSWERS = ("claim", "figure", "page", "reason")
_FIELDS = {"item", "kind", "section", "answered"}


@dataclass(frozen=True)
class Item:
    """One item of a text: what it is in words, its section, and its answers by their kind."""

    item: str
    kind: str
    section: str
    answered: Mapping[str, Sequence[str]]


def read(root: Path, key: str) -> list[Item]:
    """The items of a text that break no rule, in their order; [] where nothing lists them."""
    return [
        Item(
            item=" ".join(str(entry["item"]).split()),
            kind=entry["kind"],
            section=str(entry["section"]),
            answered={kind: list(map(str, _listed(given))) for kind, given in entry["answered"].items()},
        )
        for entry, _ in entries(root / "book" / FOLDER / f"{key}.yml")
        if not _broken(entry)
    ]


def problems(root: Path, claim_ids: Collection[str], known: Collection[str]) -> list[Finding]:
    """Everything that is wrong with the lists; ``known`` are the keys of references.bib."""
    found = []
    for path in manuscript.listed(root / "book" / FOLDER, "*.yml"):
        name = f"{FOLDER}/{path.name}"
        if path.stem not in known:
            found.append(Finding(name, 0, "item", f"{path.stem!r} is not in references.bib"))
        for entry, line in entries(path):
            reasons = _broken(entry)
            if not reasons:
                asked = list(map(str, _listed(entry["answered"].get("claim", []))))
                reasons = [f"answered: no such claim: {id}" for id in asked if id not in claim_ids]
            words = entry.get("item", "an item") if isinstance(entry, Mapping) else "an item"
            found += [Finding(name, line, "item", f"{words}: {reason}") for reason in reasons]
    return found


def _broken(entry: Any) -> list[str]:
    if not isinstance(entry, Mapping):
        return [f"expected the fields {sorted(_FIELDS)}, got {entry!r}"]
    if set(entry) != _FIELDS:
        return [f"expected the fields {sorted(_FIELDS)}, got {sorted(map(str, entry))}"]
    reasons = []
    if not str(entry["item"]).strip() or not str(entry["section"]).strip():
        reasons.append("item, section: expected words")
    if entry["kind"] not in KINDS:
        reasons.append(f"kind: expected one of {KINDS}, got {entry['kind']!r}")
    answered = entry["answered"]
    if not isinstance(answered, Mapping) or not answered or set(answered) - set(ANSWERS):
        reasons.append(f"answered: expected some of {ANSWERS}, got {answered!r}")
    else:
        empty = [kind for kind, given in answered.items() if not all(map(_text, _listed(given))) or not _listed(given)]
        reasons += [f"answered: {kind}: expected words" for kind in empty]
        pages = map(str, _listed(answered.get("page", [])))
        reasons += [
            f"answered: page: expected NAME#ANCHOR, below notebooks or book, got {page!r}"
            for page in pages
            if not re.fullmatch(r"[a-z0-9/-]+(#[\w:.-]+)?", page)
        ]
    return reasons


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _text(given: Any) -> bool:
    return isinstance(given, str) and bool(given.strip())
