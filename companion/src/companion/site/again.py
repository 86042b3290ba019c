"""Writes what a figure's archive holds to make the figure again from it alone: code, versions, and a comparison.

The code is that of the page up to the cell that publishes the figure, with the committed parameters; the library comes
from its repository, at the commit of the run, or from a wheel that somebody kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from companion import project
from companion.declaring import notebooks

__all__ = ["CODE", "REQUIREMENTS", "SCRIPT", "files", "instructions"]

CODE = "page.py"
SCRIPT = "draw_again.py"
REQUIREMENTS = "requirements.txt"

_SCRIPT = '''\
"""Make this figure again from what lies beside this script, and compare every number with the published ones.

    python -m pip install -r requirements.txt
    python draw_again.py

Pictures and numbers of the new run are in the folder `again`. Instructions of other processors round differently, so
that numbers agree to rounding; those of a chaotic orbit or of a sampled one on another machine may not, and the table
says which. The published numbers are rounded to 16 binary digits where an array is long.
"""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np

CLOSE = 1e-4
"""Of the largest value of an array: far above rounding, and below what a picture shows."""


def numbers(folder, name):
    """Arrays of one figure by name, from its table or its archive."""
    if (table := folder / f"{name}.csv").is_file():
        import csv

        with table.open(newline="", encoding="utf-8") as lines:
            header, *rows = csv.reader(lines)
        return {column: np.array([row[place] for row in rows]) for place, column in enumerate(header)}
    with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
        return {column: stored[column] for column in stored}


def distance(published, found):
    """Largest difference over largest value; infinite where shapes or missing values differ."""
    if published.shape != found.shape:
        return np.inf
    try:
        a, b = published.astype(complex), found.astype(complex)
    except ValueError:
        return 0.0 if (published == found).all() else np.inf
    if (np.isfinite(a) != np.isfinite(b)).any():
        return np.inf
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    return float(np.abs(a - b).max() / (np.abs(a).max() or 1.0)) if a.size else 0.0


def main():
    here = Path(__file__).resolve().parent
    record = json.loads((here / "figure.json").read_text(encoding="utf-8"))
    name, again = record["id"], here / "again"
    shutil.rmtree(again, ignore_errors=True)
    again.mkdir()
    os.environ["COMPANION_OUT"] = str(again)
    os.environ.setdefault("MPLBACKEND", "agg")
    # As in the run that made it.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    code = (here / "page.py").read_text(encoding="utf-8")
    with (again / "printed.txt").open("w", encoding="utf-8") as printed, contextlib.redirect_stdout(printed):
        exec(compile(code, "page.py", "exec"), {"__name__": "__main__"})
    published, found = numbers(here, name), numbers(again / "figures" / name, name)
    if published.keys() != found.keys():
        print(f"other arrays: {sorted(published)} were published, {sorted(found)} were found")
        return 1
    apart = {column: distance(published[column], found[column]) for column in published}
    for column, far in apart.items():
        print(f"{far:10.1e}  {column}")
    print("the same numbers" if max(apart.values()) <= CLOSE else "other numbers", f"(limit {CLOSE:g})")
    return int(max(apart.values()) > CLOSE)


if __name__ == "__main__":
    sys.exit(main())
'''


def instructions(root: Path, record: Mapping[str, Any]) -> str:
    """How a reader makes the figure again, with and without the public address, and how long it takes."""
    press = [folder.parent.relative_to(root).as_posix() for folder in project.code(root)[1:]]
    packages = " ".join([*(f"./{folder}" for folder in press), '".[notebook]"'])
    clone = f"install from a clone of the repository, as by\n    python -m pip install {packages}\n"
    if not (root / "pyproject.toml").is_file():
        clone = (
            f"run the script where {project.MACHINERY} is installed, with the folder src of a clone in PYTHONPATH,\n"
        )
    return (
        f"Make it again (the whole page took {_page(root, record)['seconds']:.0f} seconds):\n"
        f"    python -m pip install -r {REQUIREMENTS}\n    python {SCRIPT}\n"
        f"If the address in {REQUIREMENTS} does not answer, {clone}"
        "or take the notebook that the page offers for download: it carries the library and draws the figure too.\n"
        f"In the repository: make chapter NAME={record['chapter']}\n"
    )


def _page(root: Path, record: Mapping[str, Any]) -> Mapping[str, Any]:
    status = json.loads((root / "_build" / "status.json").read_text(encoding="utf-8"))
    found: Mapping[str, Any] = next(page for page in status["chapters"] if page["page"] == record["page"])
    return found


def files(root: Path, record: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a figure's archive that make it again, by name."""
    who = project.identity(root)
    ref = record["commit"] if re.fullmatch(r"[0-9a-f]{40}", record["commit"]) else who.ref
    page = _page(root, record)
    required = project.install_requirements(root, ref)
    required += _pins(page["versions"], who.library)
    head = f"# The run was on Python {page['python']}.\n"
    return {
        CODE: _code(root, record).encode(),
        SCRIPT: _SCRIPT.encode(),
        REQUIREMENTS: (head + "\n".join(required) + "\n").encode(),
    }


def _pins(versions: Mapping[str, str], library: str) -> list[str]:
    """Every package at the version of the run, but the library, which the first line names by its commit.

    Without what a version says of its build, such as "+cpu": no index has that, and any build will do.
    """
    return [f"{name}=={version.partition('+')[0]}" for name, version in sorted(versions.items()) if name != library]


def _code(root: Path, record: Mapping[str, Any]) -> str:
    """The cells of the page in their order, up to the one that publishes the figure."""
    cells = []
    # Without the first cell, which installs the library where a notebook is alone.
    for cell in notebooks.load(root, record["page"]).notebook.cells[1:]:
        if cell.cell_type == "code":
            cells.append(cell.source.rstrip())
            if f'"{record["id"]}"' in cell.source and "publish(" in cell.source:
                break
    head = (
        f'"""{record["csl"]["title"].partition(":")[0]}: the code of its page up to the cell that draws it.\n\n'
        f'{project.identity(root).chapter_url(record["page"], record["id"])}\n"""\n'
    )
    return head + "".join(f"\n# %%\n{cell}\n" for cell in cells)
