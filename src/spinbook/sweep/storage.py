"""The folder of a sweep: one description, and one sealed file for each result.

A result is an ordinary ``.npz`` file that ``numpy.load`` reads. Its seal, a SHA-256 of every other byte, of the sweep
and of the number of the task, is the comment of the archive: a file with a single flipped bit, cut short, renamed or
taken from another sweep does not count as a result.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import socket
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Store", "decoded", "encoded", "plain"]

_DESCRIPTION = "sweep.json"
_UNFINISHED = ".unfinished-"
_FORMAT = 2
_SEAL_LENGTH = 64
# Nobody writes a single result for so long, on this machine or another.
_ABANDONED_SECONDS = 3600.0


def _dtype_survives(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy's file format gives this very dtype back, without pickling."""
    if dtype.hasobject or dtype.isbuiltin == 2 or dtype.kind not in "?biufcmMSUV":
        return False
    return np.lib.format.descr_to_dtype(np.lib.format.dtype_to_descr(dtype)) == dtype


def _checked_name(name: Any) -> str:
    expected = "result: expected names that are text of at most 1000 characters without NUL"
    if not isinstance(name, str):
        raise TypeError(f"{expected}, got {name!r}")
    try:
        survives = len(name) <= 1000 and zipfile.ZipInfo(name + ".npy").filename == name + ".npy" and name.encode()
    except UnicodeEncodeError:
        survives = False
    if survives is False:
        raise ValueError(f"{expected}, got {name[:50]!r}")
    return str(name)


def plain(result: Any) -> dict[str, np.ndarray]:
    """Copies as NumPy arrays of the dtype that they have, laid out in C order: what a file gives back.

    Raises ``TypeError`` or ``ValueError`` for what a file cannot hold: objects, masked arrays, dtypes of other
    libraries, names that are not text.

    >>> plain({"x": 1.5})
    {'x': array(1.5)}
    """
    if not isinstance(result, Mapping):
        raise TypeError(f"result: expected arrays by name, got {type(result).__name__}")
    arrays = {}
    for name, value in result.items():
        name = _checked_name(name)
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"result {name!r}: expected an array without a mask, got a masked one")
        try:
            array = np.array(np.asarray(value), order="C")
        except Exception as error:
            kind = type(value).__name__
            raise TypeError(f"result {name!r}: expected an array, got {kind} ({error})") from error
        if not _dtype_survives(array.dtype):
            raise TypeError(
                f"result {name!r}: expected numbers, booleans, times or text of NumPy, "
                f"got {type(value).__name__} of dtype {array.dtype}"
            )
        arrays[name] = array
    return arrays


def encoded(arrays: Mapping[str, np.ndarray], sealed_for: str) -> bytes:
    """Arrays as a file with a seal, which fits no other purpose than ``sealed_for``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            # Without a date, so that equal results are equal files.
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, version=(3, 0), allow_pickle=False)
        archive.comment = bytes(_SEAL_LENGTH)
    body = buffer.getbuffer()[:-_SEAL_LENGTH]
    return b"".join([body, _seal(body, sealed_for)])


def _seal(body: Any, sealed_for: str) -> bytes:
    digest = hashlib.sha256(sealed_for.encode())
    digest.update(body)
    return digest.hexdigest().encode()


def decoded(data: bytes, sealed_for: str) -> dict[str, np.ndarray] | None:
    """The arrays of such a file; None if it is damaged, or sealed for another purpose."""
    body, seal = memoryview(data)[:-_SEAL_LENGTH], data[-_SEAL_LENGTH:]
    if len(data) < _SEAL_LENGTH or seal != _seal(body, sealed_for):
        return None
    arrays = {}
    # Not by numpy.load, which mixes up the names "a" and "a.npy".
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                arrays[member.filename.removesuffix(".npy")] = np.lib.format.read_array(
                    file, allow_pickle=False, max_header_size=sys.maxsize
                )
    return arrays


def _content(path: Path) -> bytes:
    """Of an ordinary file: to read a pipe might never end."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is no file")
    return path.read_bytes()


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())


def _unfinished(folder: Path) -> Path:
    """A new name that says who writes."""
    return folder / f"{_UNFINISHED}{_host()}-{os.getpid()}-{secrets.token_hex(4)}"


def _write(path: Path, data: bytes) -> None:
    """The whole file or none: it gets its name only when it is complete and on the disk."""
    unfinished = _unfinished(path.parent)
    try:
        with unfinished.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _is_abandoned(path: Path) -> bool:
    """Whether the process that wrote this file is gone; of another machine, or unknown, whether the file is old."""
    writer = re.fullmatch(r"(.+)-(\d+)-[0-9a-f]+", path.name.removeprefix(_UNFINISHED))
    if os.name == "posix" and writer is not None and writer[1] == _host():
        try:
            os.kill(int(writer[2]), 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass
    try:
        return time.time() - path.stat().st_mtime > _ABANDONED_SECONDS
    except FileNotFoundError:
        return False


def _checksum(described: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


class Store(NamedTuple):
    """A folder and the one sweep that may be kept in it; made by ``Store.opened``, and cheap to send to a worker."""

    folder: Path
    description: str

    @classmethod
    def opened(cls, folder: str | os.PathLike[str], about: Mapping[str, Any]) -> Store:
        """The folder for the sweep that is described by ``about``, made if needed, rid of what was never finished.

        Raises ``ValueError`` if it holds another sweep, results without a description, or a damaged description.
        """
        folder = Path(folder)
        described = {"format": _FORMAT} | dict(about)
        store = cls(folder.absolute(), json.dumps(described | {"checksum": _checksum(described)}, indent=1) + "\n")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ValueError(f"folder: expected a folder, got the file {folder}") from None
        if not (folder / _DESCRIPTION).exists():
            if next(folder.glob("task-*.npz"), None) is not None:
                raise ValueError(
                    "folder: expected an empty one or one with this very sweep, got results without the "
                    f"{_DESCRIPTION} that says what they are of, in {folder}"
                )
            _write(folder / _DESCRIPTION, store.description.encode())
        # Read back, because another process may have begun another sweep here at the same moment.
        store._compare(described)
        for path in folder.glob(_UNFINISHED + "*"):
            if _is_abandoned(path):
                path.unlink(missing_ok=True)
        return store

    def _compare(self, described: Mapping[str, Any]) -> None:
        try:
            text = _content(self.folder / _DESCRIPTION).decode("utf-8")
            if text == self.description:
                return
            found = json.loads(text)
            if not isinstance(found, dict):
                raise ValueError("it describes no sweep")
            checksum = found.pop("checksum", None)
            # The first format had neither a number nor a checksum.
            if found == described or (("format" in found or checksum) and checksum != _checksum(found)):
                raise ValueError("it does not fit its checksum")
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(
                f"folder: expected a {_DESCRIPTION} that can be read in {self.folder}, got a damaged one ({error}); "
                "restore it, or move the folder away to compute everything anew"
            ) from error
        names = [name for name in sorted({*found, *described}) if found.get(name) != described.get(name)]
        raise ValueError(
            f"folder: expected an empty one or one with this very sweep, got another sweep in {self.folder} "
            f"(it differs in {', '.join(names)})"
        )

    def _path(self, k: int) -> Path:
        return self.folder / f"task-{k:06d}.npz"

    def is_here(self) -> bool:
        """Whether this machine sees the folder, with this sweep in it."""
        try:
            return _content(self.folder / _DESCRIPTION).decode("utf-8") == self.description
        except (OSError, ValueError):
            return False

    def read(self, k: int) -> dict[str, np.ndarray] | None:
        """The result of task k, or nothing if there is none that is whole."""
        try:
            data = _content(self._path(k))
        except OSError:
            return None
        return decoded(data, self._sealed_for(k))

    def write(self, k: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep the result of task k."""
        data = encoded(arrays, self._sealed_for(k))
        try:
            _write(self._path(k), data)
        except FileNotFoundError:
            # Another machine, which cannot see that this process is alive, may have swept the unfinished file away.
            _write(self._path(k), data)

    def _sealed_for(self, k: int) -> str:
        return f"{hashlib.sha256(self.description.encode()).hexdigest()} {k} "
