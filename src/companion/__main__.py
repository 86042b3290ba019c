"""Reads the command line and runs one command; the Makefile calls it.

Nothing of the pipeline is imported before a command is chosen, so that the help is there without the packages that
build the book.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

_FILES = ("_config.yml", "_toc.yml")
"""What makes a folder the repository of the book."""

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
        if options.command != "new":
            _check_root(options.root)
        return _run(options)
    except ModuleNotFoundError as error:
        # A module of the machinery or of the book's library that is missing is a fault, not a package to install.
        package = (error.name or __package__).partition(".")[0]
        if package == __package__ or (options.root / "src" / package).exists():
            raise
        reason = (
            f"`companion {options.command}` needs the package {error.name!r}, which is not installed; "
            "the extra `book` has everything that builds the book: pip install './companion[book]' in the repository"
        )
    except (ValueError, RuntimeError) as error:
        reason = str(error)
    except OSError as error:
        from companion.running import disk

        reason = disk.sentence(error)
    except KeyboardInterrupt as stopped:
        number = stopped.args[0] if stopped.args else signal.SIGINT
        print(f"stopped by {signal.Signals(number).name}: what was finished is kept", file=sys.stderr)
        return _SIGNALLED + int(number)
    print(f"error: {reason}", file=sys.stderr)
    return 2


def _check_root(root: Path) -> None:
    """Raise ``ValueError`` if ``root`` is no repository of a book that this machinery can build."""
    if missing := [name for name in _FILES if not (root / name).is_file()]:
        raise ValueError(
            f"--root: expected the repository of the book, got {root}, which has no {missing[0]}; "
            "run the command there, or name the folder with --root"
        )
    try:
        os.fsencode(root.resolve()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"--root: expected a path in UTF-8, got {root}; rename the folder") from error
    here, own = Path(__file__).resolve().parent, (root / str(__package__) / "src" / str(__package__)).resolve()
    if own.is_dir() and own != here:
        # As in a copied folder, whose environment still leads to the folder that it was copied from.
        raise ValueError(
            f"{__package__}: expected the package of this repository, {own}, got {here}; "
            "remove .venv and run make again"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="companion",
        description="Build a book that checks its claims, in the repository that holds it.",
        epilog="The commands need the packages of the extra `book`; the library alone needs none of them.",
    )
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the repository (default: this folder)")
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("new", help="the first files of a book, one page for one paper, in the folder NAME")
    made.add_argument("name", metavar="NAME")
    commands.add_parser("book", help="run what changed, check the claims, build the site")
    chapter = commands.add_parser("chapter", help="the same for one chapter and its page")
    chapter.add_argument("name")
    check = commands.add_parser(
        "check", help="every rule of a chapter's claims and pages that needs no run, in seconds"
    )
    check.add_argument("name")
    pack = commands.add_parser("pack", help="one page as a notebook that runs alone, in _build/packed")
    pack.add_argument("name")
    why = commands.add_parser("why", help="everything that a claim rests on, or that rests on a function")
    why.add_argument("claim", metavar="CLAIM|FUNCTION", help="the id of a claim, or the name of a function")
    sources = commands.add_parser("sources", help="newer copies of the texts against what was read, by section")
    sources.add_argument("folder", type=Path, help="the folder of the copies, under the names in book/sources.yml")
    sources.add_argument("--record", action="store_true", help="write their digests into book/sources.yml instead")
    commands.add_parser("audit", help="the accessibility audit of the finished site, in a browser")
    commands.add_parser(
        "pdf", help="print the lessons to _build/book.pdf and the audits to _build/audits.pdf, in a browser"
    )
    paths = commands.add_parser("portability", help="tests and claims on other paths through the processor, resumable")
    paths.add_argument("only", nargs="*", metavar="PATH", help="names of paths (default: all of them)")
    paths.add_argument("--results", type=Path, help="with --record: the _build/portability of another clone")
    planted = commands.add_parser("faults", help="plant the faults of tests/faults.yml one by one, and say who notices")
    planted.add_argument("only", nargs="*", metavar="ID", help="ids of faults (default: all of them)")
    planted.add_argument("--tests", action="store_true", help="the tests of each fault, which are cheap, and no page")
    least = commands.add_parser(
        "epsilon", help="the smallest error of every function that its claims would notice, resumable"
    )
    least.add_argument("only", nargs="*", metavar="PAGE", help="names of pages (default: all of them)")
    for command in (paths, planted, least):
        command.add_argument(
            "--record", action="store_true", help="run nothing; keep what was measured, in book/evidence"
        )
    for command in (planted, least):
        command.add_argument(
            "--at-once", type=int, default=2, metavar="N", help="how many jobs run at once (default: 2)"
        )
    commands.add_parser("deposit", help="what an archive takes: site, sources, metadata, in _build/deposit")
    kept = commands.add_parser(
        "freeze", help="keep the ledger of the finished site as that of its version, in book/releases"
    )
    kept.add_argument(
        "--candidate", type=int, default=0, metavar="N", help="as that of the Nth candidate for the release to come"
    )
    synced = commands.add_parser("sync", help="write the paired .ipynb files and CITATION.cff")
    synced.add_argument(
        "--adopt", action="store_true", help="take over first what a formatter has changed in cells of .ipynb files"
    )
    commands.add_parser("check-sync", help="fail if a generated file that is committed is out of date")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.command == "new":
        from companion import new

        for path in new.book(options.root, options.name):
            print(f"wrote {path.relative_to(options.root)}")
        return 0
    if options.command in ("book", "chapter"):
        from companion import build

        only = options.name if options.command == "chapter" else None
        return 1 if build.book(options.root, only=only).problems else 0
    if options.command == "pack":
        from companion.site import packed

        written = packed.write(options.root, options.name, options.root / "_build" / "packed" / f"{options.name}.ipynb")
        print(f"{written.relative_to(options.root)}: {written.stat().st_size / 1e6:.2f} MB")
        return 0
    if options.command == "check":
        from companion import check
        from companion.declaring import notebooks

        if options.name not in (known := notebooks.chapters(options.root)):
            raise ValueError(f"NAME: expected one of {known}, got {options.name!r}")
        found = check.book(options.root, only=options.name)
        print("\n".join(map(str, found)) or f"{options.name}: no rule is broken")
        return 1 if found else 0
    if options.command == "why":
        from companion.evidence import why

        print(why.text(options.root, options.claim))
        return 0
    if options.command == "sources":
        from companion.declaring import texts

        if not options.folder.is_dir():
            raise ValueError(f"FOLDER: expected a folder, got {options.folder}")
        if options.record:
            print(f"recorded {', '.join(texts.record(options.root, options.folder)) or 'nothing'}")
            return 0
        changes, absent = texts.compare(options.root, options.folder)
        print(texts.report(changes, absent))
        return 1 if any(changes) else 0
    if options.command == "audit":
        from companion.site import audit

        return 1 if audit.site(options.root, sys.stdout) else 0
    if options.command in ("portability", "faults", "epsilon"):
        return _long_run(options)
    if options.command == "deposit":
        from companion.site import deposit

        for path in deposit.write(options.root):
            print(f"{path.relative_to(options.root)}, {path.stat().st_size / 1e6:.1f} MB")
        return 0
    if options.command == "freeze":
        from companion.evidence import records
        from companion.site import releases

        if not options.candidate:
            records.check(options.root)
        print(releases.freeze(options.root, options.candidate).relative_to(options.root))
        return 0
    if options.command == "pdf":
        from companion.site import browser, single_page

        names = {single_page.LESSONS: "book.pdf", single_page.AUDITS: "audits.pdf"}
        for page, source in single_page.to_print(options.root).items():
            target = options.root / "_build" / names[page]
            browser.pdf(source, target)
            print(f"wrote {target.relative_to(options.root)}, {target.stat().st_size / 1e6:.1f} MB")
        return 0
    from companion.declaring import notebooks
    from companion.site import citation

    if options.command == "sync":
        adopted = notebooks.adopt(options.root) if options.adopt else []
        for path in [*adopted, *notebooks.sync(options.root), *citation.sync(options.root)]:
            print(f"wrote {path.relative_to(options.root)}")
        return 0
    stale = [f"notebooks/{name}.ipynb" for name in notebooks.out_of_sync(options.root)]
    stale += citation.out_of_sync(options.root)
    for name in stale:
        print(f"{name} is out of date: run `make fix`", file=sys.stderr)
    return 1 if stale else 0


def _long_run(options: argparse.Namespace) -> int:
    """What takes hours, is resumable, and keeps what it measured in the repository."""
    from companion.evidence import epsilon, faults, portability

    problems: list[str] = []
    if options.command == "portability":
        problems = [] if options.record else portability.run(options.root, only=options.only)
        path = portability.record(options.root, results=options.results)
    elif options.command == "faults":
        named = {"only": options.only, "at_once": options.at_once, "tests_alone": options.tests}
        problems = [] if options.record else faults.run(options.root, **named)
        path = faults.record(options.root)
    else:
        if not options.record:
            epsilon.run(options.root, pages=options.only, at_once=options.at_once)
        path = epsilon.record(options.root)
    print(f"kept in {path.relative_to(options.root.resolve())}")
    return int(bool(problems))


def end(status: int) -> NoReturn:
    """Leave with this status, also after an interruption.

    Python notes when a KeyboardInterrupt passes through code that is executed from a text, as every dataclass is when a
    module is imported, and on its way out dies of SIGINT, whatever was made of the exception since.
    """
    if status <= _SIGNALLED:
        sys.exit(status)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    end(main())
