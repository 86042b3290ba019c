"""Files of known content: find them where the caller says, and compare them with their checksums."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ENVIRONMENT = "SPINBOOK_DATA"


class Known(NamedTuple):
    """A file by its name, its length in bytes and its SHA-256, both of the content when it is not compressed."""

    name: str
    num_bytes: int
    sha256: str


def _holds(folder: Path, name: str) -> bool:
    return (folder / name).is_file() or (folder / f"{name}.gz").is_file()


def located(
    given: str | os.PathLike[str] | None, known: Sequence[Known], places: Sequence[str], *, argument: str, how: str
) -> Path:
    """The folder with all the files: ``given``, or the first of ``places`` in ``$SPINBOOK_DATA`` that has them.

    A file may also be there as NAME.gz. Raises ``FileNotFoundError``, which names the files that are missing and says
    ``how`` to get them, and where it looked.

    >>> located(".", [Known("no-such-file", 0, "")], ["."], argument="folder", how="Write it.")
    Traceback (most recent call last):
        ...
    FileNotFoundError: folder: expected a folder with no-such-file, got '.', which lacks no-such-file. Write it.
    """
    names = [file.name for file in known]
    if given is not None:
        root, tried = os.fspath(given), [Path(given)]
    elif root := os.environ.get(ENVIRONMENT, ""):
        tried = [Path(root) / place for place in places]
    else:
        raise FileNotFoundError(
            f"{argument}: expected a path, or the environment variable {ENVIRONMENT}, to a folder with "
            f"{', '.join(names)}; got neither. {how}"
        )
    for folder in tried:
        if all(_holds(folder, name) for name in names):
            return folder
    nearest = max(tried, key=lambda folder: sum(_holds(folder, name) for name in names))
    lacking = [name for name in names if not _holds(nearest, name)]
    seen = f"{root!r}, which lacks" if nearest.is_dir() else f"{root!r}, which is no folder; missing are"
    raise FileNotFoundError(
        f"{argument}: expected a folder with {', '.join(names)}, got {seen} {', '.join(lacking)}. {how}"
    )


def content(folder: Path, known: Known) -> bytes:
    """The bytes of the file, or of NAME.gz without its compression, after comparison with the known checksum.

    Raises ``ValueError`` for a file that is cut short, damaged, or different.
    """
    path = folder / known.name
    if path.is_file():
        data = path.read_bytes()
    else:
        path = folder / f"{known.name}.gz"
        try:
            data = gzip.decompress(path.read_bytes())
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise ValueError(f"{path}: expected a whole file in gzip's format, got a damaged one ({error})") from error
    check(data, known, str(path))
    return data


def check(data: bytes, known: Known, label: str) -> None:
    """Raises ``ValueError`` unless ``data`` is the content of the file that is known, and says what is wrong with it.

    >>> check(b"", Known("empty", 0, hashlib.sha256().hexdigest()), "here")
    """
    if len(data) != known.num_bytes:
        what = "cut short" if len(data) < known.num_bytes else "too long"
        raise ValueError(f"{label}: expected {known.num_bytes} bytes, got {len(data)}: it is {what}")
    digest = hashlib.sha256(data).hexdigest()
    if digest != known.sha256:
        raise ValueError(f"{label}: expected the SHA-256 {known.sha256}, got {digest}: it has another content")
