"""Reads ``book/compared.yml``, which says in words how our figures differ from the published ones.

A figure that names a published one as its source has an entry there: what agrees, what differs, and the claims that
judge it. Nothing is measured or drawn here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion import manuscript
from companion.declaring import shapes
from companion.findings import Finding

NAME = "compared.yml"
OWN = "this book"
"""The source of a figure that has nothing published beside it."""


@dataclass(frozen=True)
class Comparison:
    """A figure beside the published one; at least one of ``agrees`` and ``differs`` says something."""

    agrees: str
    differs: str
    claims: tuple[str, ...]


def read(root: Path) -> dict[str, Comparison]:
    """The entries by figure, without those that say nothing usable (see ``findings``)."""
    return {
        figure: Comparison(
            agrees=" ".join(entry.get("agrees", "").split()),
            differs=" ".join(entry.get("differs", "").split()),
            claims=tuple(entry.get("claims", ())),
        )
        for figure, entry in _entries(root).items()
        if not shapes.problems("comparison", entry)
    }


def findings(root: Path, claim_ids: Collection[str]) -> Iterator[Finding]:
    """The entries that say nothing usable, and the claims that they name and that are none of ``claim_ids``."""
    path, entries = root / "book" / NAME, _entries(root)
    lines = {key.value: key.start_mark.line + 1 for key, _ in manuscript.parse(path)[0].value} if entries else {}
    for figure, entry in entries.items():
        if wrong := shapes.problems("comparison", entry):
            yield Finding(NAME, lines[figure], "comparison", f"{figure}: {'; '.join(wrong)}")
            continue
        for claim in entry.get("claims", ()):
            if claim not in claim_ids:
                message = f"{figure}: claims: unknown claim {claim!r}"
                yield Finding(NAME, lines[figure], "comparison", message)


def _entries(root: Path) -> dict[str, Any]:
    return manuscript.mapping(root / "book" / NAME, "ids of figures with what agrees and differs")


def problems(
    root: Path,
    figures: Iterable[Mapping[str, Any]],
    chapters: Sequence[str],
    wanted: Sequence[str],
    finished: Collection[str],
) -> list[str]:
    """The figures that lack an entry and the entries that lack a figure, of the ``wanted`` among all ``chapters``.

    ``figures`` are the records of the ``finished`` chapters. What another chapter publishes is not known, so that its
    entries are not missed and not refused. An entry that belongs to no chapter is always refused.
    """
    entries, found = _entries(root), []
    records = {record["id"]: record for record in figures}
    for id in entries:
        chapter = max((name for name in chapters if id.startswith(f"{name}-")), key=len, default="")
        if not chapter or (chapter in wanted and chapter in finished and id not in records):
            found.append(f"{NAME}: {id}: no such figure is published")
    return found + [
        f"{NAME}: {id}: no entry, but its source is {record['source']!r}"
        for id, record in records.items()
        if record["chapter"] in wanted and id not in entries and record["source"].strip() != OWN
    ]
