"""Reads and writes what long runs have measured: ``book/evidence/NAME.json``, an entry for each job, by its name.

The first line says of which version, commit and day of the book the record speaks. Whether a result belongs to that
commit is decided once, when it is recorded, by the ``key`` of what it was made of: one that was carried over from a
record before is ``older``. What is edited after that changes no word of it, until the next release is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from companion import manuscript, project
from companion.running import disk, freshness

FOLDER = "book/evidence"
_OF = "of"
"""The name of the first line; no job has it."""


def read(root: Path, name: str) -> dict[str, dict[str, Any]]:
    """The results by the names of their jobs; an empty dictionary where nothing is kept.

    Raises ``ValueError`` if a result is not a mapping.
    """
    return {job: result for job, result in _content(root, name).items() if job != _OF}


def origin(root: Path, name: str) -> dict[str, Any]:
    """``version``, ``commit`` and ``date`` of the code that was measured; empty where it is not known."""
    return _content(root, name).get(_OF, {})


def _content(root: Path, name: str) -> dict[str, dict[str, Any]]:
    path = root / FOLDER / f"{name}.json"
    content = manuscript.data(path) if path.is_file() else {}
    if not isinstance(content, dict) or not all(isinstance(result, dict) for result in content.values()):
        raise ValueError(f"{FOLDER}/{name}.json: expected results by the names of their jobs, got something else")
    return content


def keep(root: Path, name: str, found: Mapping[str, Mapping[str, Any]], keys: Mapping[str, str]) -> Path:
    """Keep what was found in the order of its names, a line each, so that a change is a change of lines.

    ``keys`` are those of the jobs as the code is now. A result that was kept before stays if its job is among them and
    was not found anew. Where no result has its key, nothing was measured with this code, and the record speaks of the
    same commit as before.
    """
    results = {job: result for job, result in {**read(root, name), **found}.items() if job in keys}
    measured = {job for job, result in results.items() if result["key"] == keys[job]}
    of, state = origin(root, name), freshness.state(root)
    if measured:
        of = {"version": project.identity(root).version, "commit": state.commit, "date": state.date}
    lines = [f"{json.dumps(_OF)}: {json.dumps(of)}"] if of else []
    for job in sorted(results):
        is_older = job not in measured if measured or not of else results[job].get("older", False)
        result = {field: value for field, value in results[job].items() if field != "older"}
        lines.append(f"{json.dumps(job)}: {json.dumps(result | ({'older': True} if is_older else {}), sort_keys=True)}")
    path = disk.folder(root / FOLDER) / f"{name}.json"
    disk.write(path, "{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(results)} results of {len(keys)}")
    return path


def check(root: Path) -> None:
    """Raise ``ValueError`` if what is kept was not measured for the release whose ledger is to be frozen.

    A release that only mends, as 1.0.1, keeps what was measured for 1.0.0.
    """
    version = Version(project.identity(root).version)
    for path in manuscript.listed(root / FOLDER, "*.json"):
        of = origin(root, path.stem).get("version", "unknown")
        older = sum(result.get("older", False) for result in read(root, path.stem).values())
        if of == "unknown" or Version(of).release[:2] != version.release[:2] or older:
            raise ValueError(
                f"{FOLDER}/{path.name}: expected results of version {version.base_version}, got version {of} and "
                f"{older} results of a record before; `companion {path.stem}` measures again"
            )
