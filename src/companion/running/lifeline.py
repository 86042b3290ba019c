"""Child processes that end with the process that started them, however that one ends, and leave nothing running.

The parent holds one end of a pipe and never writes to it. When the parent is gone, killed or not, the child reads the
end of the file, kills its own children and ends. POSIX only.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

_PATIENCE_SECONDS = 5.0
"""How long a child may take to end in good order."""


def start(command: Sequence[str], *, log: Path, environment: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes]:
    """Start a command that calls ``tie``; what it prints goes to the file ``log``.

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


def calling(function: str, *arguments: Any, python: Path = Path(sys.executable)) -> list[str]:
    """The command of a process that calls MODULE:FUNCTION, which returns its status, with arguments as JSON has them.

    The process is tied to the one that starts the command.
    """
    return [str(python), "-m", __name__, function, json.dumps(arguments, ensure_ascii=False)]


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child and wait until it is gone; nothing happens to one that has ended."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdin:
        process.stdin.close()


@contextmanager
def orderly() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt(number), so that children are ended.

    What runs at that moment may turn the interruption into another error, as an import does that it stops halfway, or
    may drop it, as a destructor does. ``KeyboardInterrupt(number)`` then leaves the block all the same.
    In a thread that is not the main one signals stay as they are, and a signal that is ignored, as nohup has it, stays
    ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        raise KeyboardInterrupt(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    except Exception as error:
        if asked:
            raise KeyboardInterrupt(asked[0]) from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if asked:
        raise KeyboardInterrupt(asked[0])


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


if __name__ == "__main__":
    tie()
    module, _, name = sys.argv[1].partition(":")
    sys.exit(getattr(importlib.import_module(module), name)(*json.loads(sys.argv[2])))
