"""Draws the figures of a finished run again in other colours of the book's style, without its kernel.

A run keeps its figures as matplotlib's objects beside their pictures (``figures.keep``), and its record says in which
colours they were drawn. The result is what a new run would leave.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import nbformat

from companion import figures, project
from companion.running import disk, environment, execution, freshness, lifeline


def redraw(root: Path, name: str, record: execution.Record) -> execution.Record | None:
    """The record of the run of a page, with its figures in the colours of today; None where one cannot be drawn again.

    The run with ``record`` stands; its folder is exchanged for the new one in one step.
    """
    now = freshness.colours(root)
    if list(record.colours) == now:
        return record
    with disk.owned(execution.work_folder(root), "redrawn") as work:
        folder = work / "run"
        shutil.copytree(execution.results_folder(root, name), folder)
        (folder / execution.RECORD).unlink()
        (work / "matplotlibrc").touch()
        settings = {
            "PYTHONPATH": os.pathsep.join(map(str, project.code(root))),
            "MATPLOTLIBRC": str(work / "matplotlibrc"),
            "COMPANION_ROOT": str(root),
        }
        command = [sys.executable, "-m", __name__, str(folder), name, ",".join(record.colours), ",".join(now)]
        with (work / "log.txt").open("wb") as log:
            process = lifeline.start(command, output=log, environment=environment.clean() | settings, cwd=work)
            try:
                status = process.wait()
            finally:
                lifeline.stop(process)
        if status:
            return None
        record = dataclasses.replace(record, colours=now, files=disk.digests(folder))
        execution.write_record(folder, record)
        disk.put(folder, execution.results_folder(root, name))
    return record


def _all(folder: Path, name: str, exchange: Mapping[str, str]) -> None:
    """Draw every figure of the run in ``folder`` again, and put it into the executed notebook."""
    pictures = {path.name: figures.redraw(path, exchange) for path in sorted((folder / "figures").glob("*"))}
    path = execution.notebook_file(folder, name)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if id := output.get("metadata", {}).get("companion", {}).get("figure"):
                output["data"]["image/png"] = pictures[id]
    nbformat.write(notebook, path)


def main() -> int:
    """Entry point of the process that ``redraw`` starts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("name")
    parser.add_argument("before")
    parser.add_argument("now")
    arguments = parser.parse_args()
    lifeline.tie()
    exchange = zip(arguments.before.split(","), arguments.now.split(","), strict=True)
    _all(arguments.folder, arguments.name, dict(exchange))
    return 0


if __name__ == "__main__":
    sys.exit(main())
