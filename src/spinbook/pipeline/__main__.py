"""Command line of the pipeline; the Makefile calls it."""

import argparse
import io
import signal
import sys
from pathlib import Path

import yaml

from spinbook.pipeline import audit, browser, build, citation, disk, notebooks, portability, single_page


def main(arguments: list[str] | None = None) -> int:
    """Run one command in the current folder; returns the exit status."""
    parser = argparse.ArgumentParser(prog="spinbook", description="Build the book Transformers as Spin Systems.")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the repository (default: this folder)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("book", help="run what changed, check the claims, build the site")
    chapter = commands.add_parser("chapter", help="the same for one chapter and its page")
    chapter.add_argument("name")
    commands.add_parser("audit", help="the accessibility audit of the finished site, in a browser")
    commands.add_parser("pdf", help="print the book to _build/book.pdf, in a browser")
    paths = commands.add_parser("portability", help="tests and claims on other paths through the processor, resumable")
    paths.add_argument("only", nargs="*", metavar="PATH", help="names of paths (default: all of them)")
    commands.add_parser("sync", help="write the paired .ipynb files and CITATION.cff from their sources")
    commands.add_parser("check-sync", help="fail if a generated file that is committed is out of date")
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A letter that the terminal cannot show must not end a build.
            stream.reconfigure(errors="backslashreplace")
    try:
        if options.command in ("book", "chapter"):
            only = options.name if options.command == "chapter" else None
            return 1 if build.book(options.root, only=only).problems else 0
        if options.command == "audit":
            return 1 if audit.site(options.root, sys.stdout) else 0
        if options.command == "portability":
            rows = portability.run(options.root, sys.stdout, only=options.only)
            return 1 if any(row.failed or row.broken or row.missing for row in rows) else 0
        if options.command == "pdf":
            target = options.root / "_build" / "book.pdf"
            browser.pdf(options.root / "_build" / "html" / single_page.NAME, target)
            print(f"wrote {target.relative_to(options.root)}, {target.stat().st_size / 1e6:.1f} MB")
            return 0
        if options.command == "sync":
            for path in [*notebooks.sync(options.root), *citation.sync(options.root)]:
                print(f"wrote {path.relative_to(options.root)}")
            return 0
        stale = [f"notebooks/{name}.ipynb" for name in notebooks.out_of_sync(options.root)]
        stale += citation.out_of_sync(options.root)
        for name in stale:
            print(f"{name} is out of date: run `make fix`", file=sys.stderr)
        return 1 if stale else 0
    except (ValueError, RuntimeError, yaml.YAMLError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {disk.sentence(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        number = stopped.args[0] if stopped.args else signal.SIGINT
        print(f"stopped by {signal.Signals(number).name}: what was finished is kept", file=sys.stderr)
        return 128 + int(number)


if __name__ == "__main__":
    sys.exit(main())
