"""Runs one command of ``python -m companion``: builds the book or a chapter, or checks its rules."""

from __future__ import annotations

import argparse
import io
import signal
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run one command in the current folder; returns the exit status."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A letter that the terminal cannot show must not end a build.
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run(options)
    except (ValueError, RuntimeError) as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename or 'a file'}: {error.strerror}" if error.strerror else str(error)
    except KeyboardInterrupt:
        print("stopped: what was finished is kept", file=sys.stderr)
        return 128 + signal.SIGINT
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
    commands.add_parser("check", help="every rule that needs no run, in seconds")
    return parser


def _run(options: argparse.Namespace) -> int:
    from companion import check

    if options.command != "check":
        from companion.run import build

        only = options.name if options.command == "chapter" else None
        return 1 if build.book(options.root, only=only).problems else 0
    findings = check.book(options.root)
    print("\n".join(map(str, findings)) or "the book: no rule is broken")
    return 1 if findings else 0
