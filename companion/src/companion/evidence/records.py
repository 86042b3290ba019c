"""What long runs have measured, kept in the repository: ``book/evidence/NAME.json``, one entry a job, by its name.

Every entry has the ``key`` of what it was made of, so that a page can say that the code has changed since.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from companion import manuscript
from companion.running import disk

__all__ = ["FOLDER", "read", "write"]

FOLDER = "book/evidence"


def read(root: Path, name: str) -> dict[str, dict[str, Any]]:
    """The entries; none where nothing is kept.

    Raises ``ValueError`` if an entry is none.
    """
    path = root / FOLDER / f"{name}.json"
    found = manuscript.data(path) if path.is_file() else {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise ValueError(f"{FOLDER}/{name}.json: expected results by the names of their jobs, got something else")
    return found


def write(root: Path, name: str, entries: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write all entries in the order of their names, a line each, so that a change is a change of lines."""
    lines = [f"{json.dumps(one)}: {json.dumps(entries[one], sort_keys=True)}" for one in sorted(entries)]
    path = disk.folder(root / FOLDER) / f"{name}.json"
    disk.write(path, "{\n" + ",\n".join(lines) + "\n}\n")
    return path
