"""Writes, exchanges, digests and removes files and folders so that they are whole or absent."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_OWNER = ".owner"
_NAMED = 3
"""Damaged files that a message names; of the others it says how many there are."""


def sentence(error: OSError) -> str:
    """What went wrong with which file, in words; of what went wrong while a folder was copied, the first."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        (_, target, reason), *others = error.args[0]
        return f"{target}: it cannot be copied ({reason})" + (f", and {len(others)} more" if others else "")
    place = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{place}there is no space left ({error.strerror})"
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{place}it may not be written or read ({error.strerror})"
    return f"{place}{error.strerror or error}"


def remove(path: Path) -> None:
    """Remove what stands at ``path``: a file, a folder, a link (not what it leads to), or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        # Where a folder on the way is a file, nothing stands at `path` either.
        with suppress(NotADirectoryError):
            path.unlink(missing_ok=True)


def folder(path: Path) -> Path:
    """``path`` as a folder, made if there is none; a file or a dead link in its place goes. Several may ask at once."""
    if path.is_symlink() or path.exists():
        # Asked last, as somebody else may make the folder between two questions.
        if path.is_dir():
            return path
        remove(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def write(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8; at every moment ``path`` has either its old content or all of the new one."""
    draft = path.with_name(f".{path.name}.draft")
    remove(draft)
    draft.write_text(text, encoding="utf-8")
    if path.is_dir():
        remove(path)
    draft.replace(path)


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(base: Path) -> dict[str, str]:
    """The sha256 of every file below ``base``, by its path relative to ``base``."""
    return {path.relative_to(base).as_posix(): digest(path) for path in sorted(base.rglob("*")) if path.is_file()}


def damage(base: Path, expected: Mapping[str, str]) -> str:
    """How the files below ``base`` differ from the ``expected`` digests, in words; empty if they do not."""
    try:
        found = digests(base)
    except OSError as error:
        return f"{error.filename or base} cannot be read ({error.strerror})"
    reasons = [f"{name} is missing" for name in sorted(expected.keys() - found.keys())]
    reasons += [f"{name} was altered" for name in sorted(expected) if found.get(name, expected[name]) != expected[name]]
    reasons += [f"{name} does not belong there" for name in sorted(found.keys() - expected.keys())]
    more = f" and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
    return ", ".join(reasons[:_NAMED]) + more


def put(new: Path, target: Path) -> None:
    """Put the folder ``new`` in the place of ``target``: whoever looks sees the old one or the new one, whole.

    Where the system cannot exchange two folders in one step there is a moment without ``target``; ``recover`` brings
    the old one back if the process is killed in it.
    """
    folder(target.parent)
    if not target.exists() and not target.is_symlink():
        new.rename(target)
    elif _exchange(new, target):
        remove(new)
    else:
        aside = _aside(target)
        remove(aside)
        target.rename(aside)
        new.rename(target)
        remove(aside)


def recover(target: Path) -> None:
    """Bring back what ``put`` had moved aside when its process was killed."""
    if not target.exists() and _aside(target).is_dir():
        _aside(target).rename(target)


def _aside(target: Path) -> Path:
    return target.with_name(f"{target.name}.old")


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two paths in one step; False where the system or the file system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    exchange = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        here = -100  # AT_FDCWD: relative names are relative to the current folder
        return bool(library.renameat2(here, names[0], here, names[1], exchange) == 0)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return bool(library.renamex_np(*names, exchange) == 0)
    return False


@contextmanager
def owned(parent: Path, name: str) -> Iterator[Path]:
    """A new folder ``parent/NAME-...`` that belongs to this process; it is removed at the end.

    It is locked as long as the process lives, however that ends, so that ``sweep_out`` knows what nobody needs any
    more.
    """
    path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder(parent)))
    try:
        with own(path):
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def own(path: Path) -> Iterator[Path]:
    """Lock an existing folder as this process's own."""
    with (path / _OWNER).open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield path


def sweep_out(parent: Path) -> None:
    """Remove everything in ``parent`` that no living process owns."""
    for path in list(folder(parent).iterdir()):
        with suppress(OSError):
            if path.is_symlink() or not path.is_dir():
                remove(path)
                continue
            with (path / _OWNER).open("a", encoding="utf-8") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
