"""Reads ``book/compared.yml``, which says in words how our figures differ from the published ones.

A figure that names a published one as its source has an entry there: what agrees, what differs, and the claims that
judge it. Nothing is measured or drawn here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion import manuscript
from companion.declaring import shapes

NAME = "compared.yml"
OWN = "this book"
"""The source of a figure that has nothing published beside it."""


@dataclass(frozen=True)
class Comparison:
    """A figure beside the published one; at least one of ``agrees`` and ``differs`` says something."""

    agrees: str
    differs: str
    claims: tuple[str, ...]


def read(root: Path) -> tuple[dict[str, Comparison], list[str]]:
    """The entries by figure, and what is wrong with those that are left out because they say nothing usable."""
    entries = manuscript.mapping(root / "book" / NAME, "ids of figures with what agrees and differs")
    found, problems = {}, []
    for figure, entry in entries.items():
        if reasons := shapes.problems("comparison", entry):
            problems.append(f"{NAME}: {figure}: {'; '.join(reasons)}")
        else:
            words = {key: " ".join(entry.get(key, "").split()) for key in ("agrees", "differs")}
            found[str(figure)] = Comparison(**words, claims=tuple(entry.get("claims", ())))
    return found, problems


def problems(
    root: Path,
    figures: Iterable[Mapping[str, Any]],
    claim_ids: Collection[str],
    chapters: Sequence[str],
    wanted: Sequence[str],
    finished: Collection[str],
) -> list[str]:
    """Every reason why the comparisons of the ``wanted`` among all ``chapters`` are not whole.

    ``figures`` are the records of the ``finished`` chapters. What another chapter publishes is not known, so that its
    entries are not missed and not refused. An entry that belongs to no chapter is always refused.
    """
    entries, found = read(root)
    records = {record["id"]: record for record in figures}
    for id, entry in entries.items():
        chapter = max((name for name in chapters if id.startswith(f"{name}-")), key=len, default="")
        if not chapter or (chapter in wanted and chapter in finished and id not in records):
            found.append(f"{NAME}: {id}: no such figure is published")
        if not chapter or chapter in wanted:
            found += [f"{NAME}: {id}: claims: unknown claim {one!r}" for one in entry.claims if one not in claim_ids]
    return found + [
        f"{NAME}: {id}: no entry, but its source is {record['source']!r}"
        for id, record in records.items()
        if record["chapter"] in wanted and id not in entries and record["source"].strip() != OWN
    ]
