"""Draws the figures of a finished run again in other colours of the book's style, without its kernel.

A run keeps its figures as matplotlib's objects beside their pictures (``figures.keep``), and its record says in which
colours they were drawn. The result is what a new run would leave.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import nbformat

from companion import figures, project
from companion.running import disk, environment, execution, freshness, lifeline


def redraw(root: Path, name: str, standing: execution.Standing) -> execution.Standing:
    """The run of a page that stands, if one does, with its figures in the colours of today.

    Its folder is exchanged for the new one in one step. It stands no more where a figure cannot be drawn again.
    """
    record, now = standing.record, freshness.colours(root)
    if record is None or list(record.colours) == now:
        return standing
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
        exchange = dict(zip(record.colours, now, strict=True))
        command = lifeline.calling(f"{__name__}:work", str(folder), name, exchange)
        if lifeline.run(command, log=work / "log.txt", environment=environment.clean() | settings, cwd=work):
            reason = "the colours of the style have changed, and not all of its figures can be drawn again"
            return execution.Standing(None, reason)
        record = dataclasses.replace(record, colours=now, files=disk.digests(folder))
        execution.write_record(folder, record)
        disk.put(folder, execution.results_folder(root, name))
    return execution.Standing(record)


def work(folder: str, name: str, exchange: Mapping[str, str]) -> int:
    """Draw every figure of the run in ``folder`` again, and put it into the executed notebook; returns the status."""
    pictures = {path.name: figures.redraw(path, exchange) for path in sorted((Path(folder) / "figures").glob("*"))}
    path = execution.notebook_file(Path(folder), name)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if id := output.get("metadata", {}).get("companion", {}).get("figure"):
                output["data"]["image/png"] = pictures[id]
    nbformat.write(notebook, path)
    return 0
