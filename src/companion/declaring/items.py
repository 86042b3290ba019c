"""Reads ``book/items/KEY.yml``: every item of a text, and where it is answered, for the table that closes an audit.

An item is a figure, equation, number, listing, testable statement or announced experiment. It is answered by a claim,
by a figure, at a place of a page, or not, for a reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion import manuscript
from companion.declaring import shapes
from companion.findings import Finding
from companion.manuscript import entries

FOLDER = "items"
ANSWERS = ("claim", "figure", "page", "reason")


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
        if not shapes.problems("item", entry)
    ]


def problems(root: Path, claim_ids: Collection[str], known: Collection[str]) -> list[Finding]:
    """Everything that is wrong with the lists; ``known`` are the keys of references.bib."""
    found = []
    for path in manuscript.listed(root / "book" / FOLDER, "*.yml"):
        name = f"{FOLDER}/{path.name}"
        if path.stem not in known:
            found.append(Finding(name, 0, "item", f"{path.stem!r} is not in references.bib"))
        for entry, line in entries(path):
            reasons = shapes.problems("item", entry)
            if not reasons:
                asked = list(map(str, _listed(entry["answered"].get("claim", []))))
                reasons = [f"answered: no such claim: {id}" for id in asked if id not in claim_ids]
            words = entry.get("item", "an item") if isinstance(entry, Mapping) else "an item"
            found += [Finding(name, line, "item", f"{words}: {reason}") for reason in reasons]
    return found


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]
