"""Tables of recorded runs that took hours, each read in one line; they come with the package.

A table is a CSV file beside this module. Its first lines, after ``#``, say what a row is and how it was made; they come
back as ``table(name).attrs["about"]``. The runs themselves, and what writes the tables from them, are in the
repository of the book, under ``records``.
"""

from __future__ import annotations

import io
import itertools
from importlib import resources

import pandas as pd

__all__ = ["names", "table"]


def names() -> list[str]:
    """The names of all tables, in alphabetical order."""
    files = (file.name.partition(".") for file in resources.files(__name__).iterdir())
    return sorted(name for name, _, kind in files if kind == "csv")


def table(name: str) -> pd.DataFrame:
    """The table of that name, such as ``table("comparison")``.

    Raises ``ValueError``, with the names that there are, if there is no such table.
    """
    if name not in names():
        raise ValueError(f"name: expected one of {', '.join(names())}, got {name!r}")
    lines = resources.files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8").splitlines()
    about = list(itertools.takewhile(lambda line: line.startswith("#"), lines))
    # By default a name such as "none" or "NA" would be read as a missing number.
    frame = pd.read_csv(io.StringIO("\n".join(lines[len(about) :])), keep_default_na=False, na_values=[""])
    frame.attrs["about"] = " ".join(line.removeprefix("#").strip() for line in about)
    return frame
