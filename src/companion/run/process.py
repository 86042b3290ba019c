"""Starts processes that end when the build ends, and writes files and folders so that each is whole or absent.

The parent of a child holds one end of a pipe and never writes to it. When the parent is gone, killed or not, the child
reads the end of the file, kills its own children and ends. POSIX only.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

_PATIENCE_SECONDS = 5.0
"""How long a child may take to end in good order."""


def calling(function: str, *arguments: Any) -> list[str]:
    """The command of a child that calls MODULE:FUNCTION, which returns its status, with arguments as JSON has them."""
    return [sys.executable, "-m", __name__, function, json.dumps(arguments, ensure_ascii=False)]


def start(command: Sequence[str], *, log: Path, environment: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes]:
    """Start a command of ``calling``; what it prints goes to the file ``log``.

    It has a session of its own: Ctrl-C in a terminal reaches the parent only, which then stops it.
    """
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def run(command: Sequence[str], *, log: Path, environment: Mapping[str, str], cwd: Path) -> int:
    """Start a command and return its status when it has ended; however this is left, nothing of it runs any more."""
    process = start(command, log=log, environment=environment, cwd=cwd)
    try:
        return process.wait()
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child and wait until it is gone; nothing happens to a child that has ended."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdin:
        process.stdin.close()


def tie() -> None:
    """In a child that ``start`` started: end, and end its own children, when the parent is gone or asks for it."""
    line = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: _end(128 + number))
    threading.Thread(target=_hold, args=(line,), daemon=True).start()


def _hold(line: int) -> None:
    with suppress(OSError):
        while os.read(line, 1024):
            pass
    _end(128 + signal.SIGHUP)


def _end(status: int) -> None:
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child.kill()
    os._exit(status)


def processors() -> list[int]:
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def remove(path: Path) -> None:
    """Remove a file, a folder, a link (not what it leads to), or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def colourless(text: str) -> str:
    """Text without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def write(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8; at every moment ``path`` has either its old content or all of the new one."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def put(new: Path, target: Path) -> None:
    """Put the folder ``new`` in the place of ``target``: a reader sees the old folder or the new one, whole.

    Where the system cannot exchange two folders in one step there is a moment without ``target``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir() and not target.is_symlink() and _exchange(new, target):
        remove(new)
    else:
        remove(target)
        new.rename(target)


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


if __name__ == "__main__":
    tie()
    module, _, name = sys.argv[1].partition(":")
    sys.exit(getattr(importlib.import_module(module), name)(*json.loads(sys.argv[2])))
