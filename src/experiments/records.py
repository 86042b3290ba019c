"""Records of runs as sealed, compressed JSON, small enough to be committed. Knows not what was run."""

from __future__ import annotations

import datetime
import gzip
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

__all__ = ["LARGEST_BYTES", "circumstances", "commit", "numbers", "read", "write"]

LARGEST_BYTES = 2_000_000
_LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "torch", "numpy", "scipy")


def numbers(values: Any, digits: int) -> Any:
    """Lists of JSON: as many digits, and null for what is not a number.

    >>> numbers([1 / 3, float("nan")], 2)
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
    """In words, and without a name."""
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

    Raises ``ValueError`` for one that is larger than ``LARGEST_BYTES``, which is too large to be committed.
    """
    text = json.dumps({**record, "sha256": _sealed(record)}, separators=(",", ":"))
    data = gzip.compress(text.encode(), 9, mtime=0)
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"record: expected at most {LARGEST_BYTES} bytes, got {len(data)}")
    unfinished = Path(path).with_name(f".{Path(path).name}.unfinished")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A record that was written, complete or not. Raises ``ValueError`` for one that does not fit its checksum."""
    try:
        record: dict[str, Any] = json.loads(gzip.decompress(Path(path).read_bytes()))
    except (EOFError, ValueError, gzip.BadGzipFile) as error:
        raise ValueError(f"path: expected a whole record, got a damaged file ({error})") from error
    if record.get("sha256") != _sealed(record):
        raise ValueError(f"path: expected a record that fits its checksum, got another content in {os.fspath(path)}")
    return record
