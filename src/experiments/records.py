"""Records of runs: a resumable sweep, and its results as compressed JSON with a checksum, small enough to commit."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
import pandas as pd

import spinbook.records
from spinbook import sweep

__all__ = [
    "LARGEST_BYTES",
    "Growing",
    "arguments",
    "beside",
    "circumstances",
    "commit",
    "measure",
    "measured",
    "numbers",
    "of_book",
    "place",
    "read",
    "runs",
    "tabulate",
    "write",
]

_Task = TypeVar("_Task")

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


def _machine() -> str:
    """Cores, memory and accelerator of this machine in words, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    device = jax.devices()[0]
    accelerator = "no accelerator" if device.platform == "cpu" else f"one {device.device_kind}"
    return f"{usable} of {os.cpu_count()} cores, {platform.machine()}, {memory:.0f} GiB, {accelerator}"


def commit() -> str:
    """The commit of the checkout, marked where files of the library differ from it, or "unknown"."""
    folder = Path(__file__).parent
    try:
        # A copy inside another repository is no part of that repository's commit.
        tracked = ["git", "ls-files", "--error-unmatch", "--", __file__]
        subprocess.run(tracked, cwd=folder, capture_output=True, check=True)
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, encoding="utf-8", check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", str(folder.parent)],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}, with changes" if changed else commit


def circumstances(begin: float, code: str) -> dict[str, Any]:
    """Date, versions and machine of a record, its ``commit``, and the minutes since ``begin`` by ``perf_counter``.

    >>> sorted(circumstances(0.0, commit()))
    ['commit', 'date', 'machine', 'minutes_of_this_process', 'versions']
    """
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": code,
        "versions": {"python": platform.python_version()}
        | {library: importlib.metadata.version(library) for library in _LIBRARIES},
        "machine": _machine(),
        "minutes_of_this_process": round((time.perf_counter() - begin) / 60, 1),
    }


def _sealed(record: Mapping[str, Any]) -> str:
    body = {name: value for name, value in record.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def write(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """The record as compressed JSON with a SHA-256 of its content, whole or not at all.

    Raises ``ValueError`` for a record of more than ``LARGEST_BYTES``, which is too large to be committed.
    """
    text = json.dumps({**record, "sha256": _sealed(record)}, separators=(",", ":"))
    data = gzip.compress(text.encode(), 9, mtime=0)
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"record: expected at most {LARGEST_BYTES} bytes, got {len(data)}")
    unfinished = Path(path).with_name(f".{Path(path).name}.unfinished")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A record that was written, complete or not. Raises ``ValueError`` if its checksum is wrong."""
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


def arguments(about: str | None) -> argparse.Namespace:
    """What a script ``records/NAME/run.py`` is told: the folder ``out``, which is made, and whether it is ``brief``."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of what is written")
    parser.add_argument("--brief", action="store_true", help="few small cases, to see that everything works")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    return given


def beside(package: str, name: str) -> dict[str, Any]:
    """A record of the book, from the file beside the module that makes it; ``FileNotFoundError`` if it is missing."""
    with resources.as_file(resources.files(package) / name) as path:
        return read(path)


def tabulate(name: str, frame: pd.DataFrame, about: str) -> Path:
    """Write ``frame`` as the table ``name`` that the library carries, and ``about``, a sentence or more, above it.

    ``spinbook.records.table(name)`` reads it back. The path of the file is returned.
    """
    path = Path(spinbook.records.__file__).with_name(f"{name}.csv")
    above = "".join(f"# {line}\n" for line in textwrap.wrap(about, 110))
    path.write_text(above + frame.to_csv(index=False, lineterminator="\n"), encoding="utf-8")
    return path


class Growing(NamedTuple):
    """A record that is rewritten to ``path`` whenever it grows; in memory only if ``path`` is None."""

    path: Path | None
    begin: float
    code: str

    @classmethod
    def at(cls, folder: str | os.PathLike[str] | None, name: str) -> Growing:
        """A record that begins now, in the given folder, which is made if necessary."""
        path = None if folder is None else Path(folder) / name
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        return cls(path, time.perf_counter(), commit())

    def beside(self, name: str) -> Path | None:
        """The folder of this name beside the file, for the results that the record is made of."""
        return None if self.path is None else self.path.with_name(name)

    def write(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Write the content with its ``circumstances``, and return both together."""
        record = {**content, **circumstances(self.begin, self.code)}
        if self.path is not None:
            write(self.path, record)
        return record


def runs(
    function: Callable[[_Task], Mapping[str, Any]], tasks: Sequence[_Task], *described: Any, **options: Any
) -> Iterator[tuple[_Task, dict[str, np.ndarray]]]:
    """Yield every task with its arrays as soon as they are computed; ``options`` as for ``spinbook.sweep.iterate``.

    ``described``: what says which sweep this is, beside the code of the function. One task after another unless there
    is an executor, so that times can be compared: tasks that run side by side give the same results, but slower.

    >>> [(task, int(arrays["square"])) for task, arrays in runs(lambda k: {"square": k * k}, [2, 3], "squares")]
    [(2, 4), (3, 9)]
    """
    identity = sweep.fingerprint(*described, sweep.code_version(getattr(function, "func", function)))
    threads = None if options.get("executor") else 1
    for k, arrays in sweep.iterate(function, tasks, identity=identity, **options | {"num_threads": threads}):
        yield tasks[k], arrays


def measure(
    out: str | os.PathLike[str], name: str, file: str, kinds: Mapping[str, Any], *, digits: int = 4, **options: Any
) -> None:
    """Measure cases, keep each below ``out / name``, and write them to ``file`` in ``out`` with ``digits`` digits.

    ``kinds``: a function and its cases, by the name of their kind. Options are those of ``spinbook.sweep.iterate``.
    """
    rows: list[Any] = []
    for kind, (function, cases) in kinds.items():
        identity = sweep.fingerprint(name, kind, sweep.code_version(function))
        arrays = dict(sweep.iterate(function, cases, identity=identity, folder=Path(out) / name / kind, **options))
        for k, case in enumerate(cases):
            values = {key: numbers(value, digits) for key, value in arrays[k].items()}
            rows.append({"kind": kind, "case": case._asdict()} | values)
    write(Path(out) / file, {"command": f"python -m experiments run {name}", "rows": rows})


def measured(package: str, file: str, **kinds: Any) -> list[list[tuple[Any, dict[str, np.ndarray]]]]:
    """What ``measure`` has written to a file beside a module: cases of each of the ``kinds`` with their arrays.

    ``kinds`` gives the class of the cases of each kind. Entries that are not numbers are NaN.
    """
    cases: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for row in beside(package, file)["rows"]:
        kind, case = row.pop("kind"), row.pop("case")
        cases[kind].append((kinds[kind](**case), {name: np.array(value, float) for name, value in row.items()}))
    return list(cases.values())
