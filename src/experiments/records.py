"""Reads and writes recorded runs, folders ``records/NAME`` with results in compressed JSON and their checksum."""

from __future__ import annotations

import argparse
import datetime
import gzip
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spinbook.records
from spinbook import sweep

LARGEST_BYTES = 2_000_000
_BOOK = Path(__file__).resolve().parents[2] / "records"
_LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "torch", "numpy", "scipy")


def numbers(values: Any, digits: int) -> Any:
    """Lists of numbers for JSON, rounded to so many digits, with null for NaN.

    >>> numbers([1 / 3, float("nan")], 2)  # exact
    [0.33, None]
    """
    array = np.asarray(values)
    if array.ndim:
        return [numbers(value, digits) for value in array]
    if array.dtype.kind in "US":
        return str(array)
    number = float(array)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


def commit() -> str:
    """The commit of the checkout, marked where files of it differ, or "unknown"."""
    root = str(_BOOK.parent)
    try:
        asked = [["git", "-C", root, *words] for words in (("rev-parse", "HEAD"), ("status", "--porcelain"))]
        said = [subprocess.run(words, capture_output=True, encoding="utf-8", check=True).stdout for words in asked]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said[0].strip() + (", with changes" if said[1].strip() else "")


def circumstances(begin: float, code: str | None = None) -> dict[str, Any]:
    """Date, versions and machine of a record, its ``commit``, and the minutes since ``begin`` by ``perf_counter``.

    >>> sorted(circumstances(0.0))
    ['commit', 'date', 'machine', 'minutes_of_this_process', 'versions']
    """
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": code or commit(),
        "versions": {"python": platform.python_version()}
        | {library: importlib.metadata.version(library) for library in _LIBRARIES},
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "minutes_of_this_process": round((time.perf_counter() - begin) / 60, 1),
    }


def _sealed(record: Mapping[str, Any]) -> str:
    body = {name: value for name, value in record.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def write(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """The record as compressed JSON with a SHA-256 of its content.

    Raises ``ValueError`` for a record of more than ``LARGEST_BYTES``, which is too large to be committed.
    """
    text = json.dumps({**record, "sha256": _sealed(record)}, separators=(",", ":"))
    data = gzip.compress(text.encode(), 9, mtime=0)
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"record: expected at most {LARGEST_BYTES} bytes, got {len(data)}")
    Path(path).write_bytes(data)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A record that was written. Raises ``ValueError`` if it is damaged or its checksum is wrong."""
    try:
        record: dict[str, Any] = json.loads(gzip.decompress(Path(path).read_bytes()))
    except (EOFError, ValueError, gzip.BadGzipFile) as error:
        raise ValueError(f"path: expected a whole record, got a damaged file ({error})") from error
    if record.get("sha256") != _sealed(record):
        raise ValueError(f"path: expected a record that fits its checksum, got another content in {os.fspath(path)}")
    return record


def place(name: str, file: str) -> Path:
    """The path of ``records/NAME/FILE``; raises ``FileNotFoundError`` where there is no such file."""
    path = _BOOK / name / file
    if not path.is_file():
        raise FileNotFoundError(f"records/{name}/{file}: expected a file of the repository, got none")
    return path


def of_book(name: str, file: str | None = None) -> dict[str, Any]:
    """A record of the book, ``records/NAME/FILE.json.gz``, where FILE is NAME unless it is given.

    Raises ``FileNotFoundError`` where there is no such file, and ``ValueError`` if its checksum is wrong.
    """
    return read(place(name, f"{file or name}.json.gz"))


def rows(name: str, **kinds: Any) -> list[list[tuple[Any, dict[str, np.ndarray]]]]:
    """The rows of a record by ``kinds``, classes of named tuples: lists of cases with their arrays, NaN for null."""
    cases: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for row in of_book(name)["rows"]:
        kind, case = row.pop("kind"), row.pop("case")
        cases[kind].append((kinds[kind](**case), {key: np.array(value, float) for key, value in row.items()}))
    return list(cases.values())


def measured(kinds: Mapping[str, tuple[Callable[[Any], Mapping[str, Any]], Sequence[Any]]]) -> list[dict[str, Any]]:
    """The rows of a record as ``rows`` reads them: of each kind a function, and its cases, which are measured."""
    found: list[dict[str, Any]] = []
    for kind, (function, cases) in kinds.items():
        arrays = dict(sweep.iterate(function, cases))
        for k, case in enumerate(cases):
            values = {key: numbers(value, 4) for key, value in arrays[k].items()}
            found.append({"kind": kind, "case": case._asdict()} | values)
    return found


def kept(
    work: Callable[[Any], Mapping[str, Any]], cases: Sequence[Any], folder: Path, *, identity: str, digits: int = 6
) -> dict[Any, dict[str, Any]]:
    """What a function makes of each case, as numbers for JSON; each is kept in ``folder``, and not made again."""
    done = sweep.iterate(work, cases, identity=identity, folder=folder, num_threads=1, progress=True)
    return {cases[k]: {name: numbers(value, digits) for name, value in found.items()} for k, found in done}


def plan(name: str) -> str:
    """The SHA-256 of ``records/NAME/plan.md``, but for its changes."""
    words = place(name, "plan.md").read_text(encoding="utf-8").split("\n## Changes\n")[0]
    return hashlib.sha256(words.encode()).hexdigest()


def tabulate(name: str, frame: pd.DataFrame, about: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Write a table, ``about`` above it: to ``folder``, or to where ``spinbook.records.table(name)`` reads it."""
    path = Path(folder or Path(spinbook.records.__file__).parent) / f"{name}.csv"
    above = "".join(f"# {line}\n" for line in textwrap.wrap(about, 110))
    path.write_text(above + frame.to_csv(index=False, lineterminator="\n"), encoding="utf-8")
    return path


def arguments(about: str | None) -> argparse.Namespace:
    """What a script ``records/NAME/run.py`` is told: the folder ``out``, which is made, and whether it is ``brief``."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of what is written")
    parser.add_argument("--brief", action="store_true", help="few small cases, to see that everything works")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    return given
