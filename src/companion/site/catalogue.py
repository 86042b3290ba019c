"""The records that programs read, as a whole: which files there are, of which version, and what their sources are.

``claims.json``, ``figures.json`` and ``status.json`` are lists of facts; ``book.json`` says what they belong to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from companion import project
from companion.declaring import compared, shapes

FILES = ("claims.json", "figures.json", "status.json")
INDEX = "book.json"


def built(root: Path, name: str) -> Any:
    """A record of the last build, as ``claims.json``; what is returned is kept, and must not be changed."""
    return _decoded((root / "_build" / name).read_text(encoding="utf-8"))


# Hundreds of directives and roles ask for the same few.
_decoded = lru_cache(maxsize=8)(json.loads)


def by_id(entries: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Claims by their ids, and by those that they had before."""
    return {id: entry for entry in entries for id in (*entry["was"], entry["id"])}


def write_index(root: Path, html: Path) -> None:
    """Write ``book.json``: version, commit, addresses, checksums of the records beside it, and the sources by key."""
    who = project.identity(root)
    status = json.loads((html / "status.json").read_text(encoding="utf-8"))
    index = {
        "title": who.title,
        "version": status["version"],
        "commit": status["commit"],
        "dirty": status["dirty"],
        "repository": who.repository,
        "site": who.site,
        "licences": {"code": "MIT", "prose, figures and data": "CC-BY-4.0"},
        "files": {
            name: {
                "sha256": hashlib.sha256((html / name).read_bytes()).hexdigest(),
                "schema": f"schemas/{Path(name).stem}.schema.json",
            }
            for name in FILES
        },
        "references": "references.bib",
        "sources": sources(root),
    }
    (html / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_schemas(folder: Path) -> None:
    """Write the JSON Schema of every record as NAME.schema.json, from ``schemas.yml``, where they stand in short."""
    short = yaml.safe_load(Path(__file__).with_name("schemas.yml").read_text(encoding="utf-8"))
    folder.mkdir()
    for name, schema in short.items():
        whole = {"$schema": "http://json-schema.org/draft-07/schema#"} | shapes.whole(schema)
        text = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")


def sources(root: Path) -> dict[str, dict[str, Any]]:
    """What every key of ``references.bib`` stands for, in the order of the keys."""
    accompanied = project.sources(root)
    return {
        key: {
            "title": work["title"],
            "authors": work["author"].split(" and "),
            "year": int(work["year"]),
            "address": address(work),
            "accompanied": key in accompanied,
        }
        for key, work in sorted(project.references(root).items())
    }


def address(work: Mapping[str, str]) -> str | None:
    """Where a work of ``references.bib`` is to be read, if it says so."""
    if "url" in work:
        return work["url"]
    if "doi" in work:
        return f"https://doi.org/{work['doi']}"
    return f"https://arxiv.org/abs/{work['eprint']}" if "eprint" in work else None


def with_sources(
    root: Path, figures: Sequence[Mapping[str, Any]], sources_of_chapters: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The records of figures with ``source_keys``: the works of ``references.bib`` that their ``source`` names."""
    works = project.references(root)
    return [
        {**record, "source_keys": _named(record["source"], works, sources_of_chapters.get(record["chapter"], ""))}
        for record in figures
    ]


def _named(text: str, works: Mapping[str, Mapping[str, str]], own: str) -> list[str]:
    """Keys of the works that ``text`` names by family names and year, as in "Figure 1 of Author (2000)".

    Works of the same names and year are told apart by a word of the title after a comma ("Author (2000), Waves");
    without one the work that the chapter accompanies, ``own``, is meant.
    """
    found: list[str] = []
    for keys, titled in project.mentioned(text, works):
        meant = keys if len(keys) == 1 else titled if len(titled) == 1 else [own] if own in keys else keys
        found += [key for key in meant if key not in found]
    return found


def unresolved(figures: Iterable[Mapping[str, Any]]) -> list[str]:
    """One line for every figure whose source is another work and names none of ``references.bib``."""
    return [
        f"figure {record['id']}: its source {record['source']!r} names no work of references.bib; expected one as in "
        '"Figure 1 of Author (2000)"'
        for record in figures
        if record["source"].strip() != compared.OWN and not record["source_keys"]
    ]
