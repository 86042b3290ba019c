"""Writes CITATION.cff from the book's identity and its sources."""

from __future__ import annotations

from pathlib import Path

import yaml

from companion import project

_NAME = "CITATION.cff"


def text(root: Path) -> str:
    """The content that ``CITATION.cff`` should have."""
    who = project.identity(root)
    references = project.references(root)
    content = {
        "cff-version": "1.2.0",
        "message": "If you use this book, please cite it, and the work that the chapter accompanies.",
        "type": "software",
        "title": who.title,
        "version": who.version,
        "authors": [{"name": who.author}],
        "license": "MIT",
        "repository-code": who.repository,
        "url": who.site,
        **({"doi": who.doi} if who.doi else {}),
        "references": [
            {
                "type": "article" if "journal" in references[key] else "generic",
                "title": title,
                "authors": [_person(name) for name in references[key]["author"].split(" and ")],
                "year": int(references[key]["year"]),
                **({"url": references[key]["url"]} if "url" in references[key] else {}),
            }
            for key, title in project.sources(root).items()
        ],
    }
    header = "# Written by `make fix` from _config.yml and book/references.bib.\n"
    return header + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


def _person(name: str) -> dict[str, str]:
    family, _, given = name.partition(", ")
    return {"family-names": family, "given-names": given} if given else {"name": family}


def out_of_sync(root: Path) -> list[str]:
    """``["CITATION.cff"]`` if the committed file is not what it should be."""
    path = root / _NAME
    return [] if path.is_file() and path.read_bytes() == text(root).encode() else [_NAME]


def sync(root: Path) -> list[Path]:
    """Write ``CITATION.cff`` if it is out of date. Returns what changed."""
    stale = out_of_sync(root)
    for name in stale:
        (root / name).write_text(text(root), encoding="utf-8")
    return [root / name for name in stale]
