"""Runs one command of ``python -m companion``: builds the book or a chapter, or checks its rules."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

_FILES = ("_config.yml", "_toc.yml")
"""What makes a folder the repository of a book."""
_SIGNALLED = 128
"""A status above it says which signal ended the run."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command in the current folder; returns the exit status."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A letter that the terminal cannot show must not end a build.
            stream.reconfigure(errors="backslashreplace")
    try:
        if missing := [name for name in _FILES if not (options.root / name).is_file()]:
            raise ValueError(f"--root: expected the repository of the book, got {options.root}, without {missing[0]}")
        return _run(options)
    except (ValueError, RuntimeError) as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename or 'a file'}: {error.strerror}" if error.strerror else str(error)
    except KeyboardInterrupt as stopped:
        number = stopped.args[0] if stopped.args else signal.SIGINT
        print(f"stopped by {signal.Signals(number).name}: what was finished is kept", file=sys.stderr)
        return _SIGNALLED + int(number)
    print(f"error: {reason}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="companion", description="Build a book that checks its claims, in the repository that holds it."
    )
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the repository (default: this folder)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("book", help="run what changed, check the claims, build the site")
    chapter = commands.add_parser("chapter", help="the same for one chapter and its page")
    chapter.add_argument("name")
    check = commands.add_parser("check", help="every rule that needs no run, in seconds")
    check.add_argument("name", nargs="?", help="a chapter (default: all)")
    return parser


def _run(options: argparse.Namespace) -> int:
    from companion import check, pages

    if options.command in ("book", "chapter"):
        from companion.run import build

        only = options.name if options.command == "chapter" else None
        return 1 if build.book(options.root, only=only).problems else 0
    if options.name is not None and options.name not in (known := pages.chapters(options.root)):
        raise ValueError(f"NAME: expected one of {known}, got {options.name!r}")
    findings = check.book(options.root, only=options.name)
    print("\n".join(map(str, findings)) or f"{options.name or 'the book'}: no rule is broken")
    return 1 if findings else 0


def end(status: int) -> NoReturn:
    """Leave with this status, also after an interruption, of which Python would otherwise die once more."""
    if status <= _SIGNALLED:
        sys.exit(status)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
