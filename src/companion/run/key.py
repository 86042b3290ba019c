"""Computes the key of a page, a hash of everything that its result depends on: the page runs again when it changes.

The key covers the code of the cells, the expressions between them, the modules of the repository that the page and its
checks import (directly and through others, file by file) with the data beside them, the page's data files, the lock,
the Python version and what runs a page. Words are no part of it: editing prose or a caption runs nothing.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from companion import claims, manuscript, pages
from companion.run import kernel

_LOCK_FILES = ("requirements.lock", "constraints.txt")
_PRESS = Path(__file__).resolve().parents[1]
_RUNS = ("figures.py", "claims/measure.py", "run/engine.py", "run/kernel.py")
"""The modules of the press that decide what a page's result is."""
_EVAL = re.compile(r"\{eval\}(`+)(.+?)(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True)
class Checks:
    """``book/checks/NAME.py``: its file, and its functions by what they measure or hold."""

    path: Path
    claims: Mapping[str, str]
    """Id of a claim by the name of the function that measures it."""
    tests: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """The commit a tree is at, and whether it differs from it."""

    commit: str
    dirty: bool


def key(root: Path, chapter: pages.Chapter) -> str:
    """Hexadecimal digest of everything that the result of a page depends on.

    Raises ``ValueError`` if a data file of the page does not exist.
    """
    if absent := [name for name in chapter.data if not (root / name).is_file()]:
        raise ValueError(f"chapter {chapter.name!r}: data files not found: {absent}")
    of_page = checks(root, chapter)
    own = [of_page.path] if of_page else []
    needed = [*files(root, chapter, map(manuscript.text, own)), *own]
    made_of = {
        "cells": _cells(chapter),
        "claims": sorted(of_page.claims.items()) if of_page else [],
        "files": {path.relative_to(root).as_posix(): _file_digest(path) for path in sorted(set(needed))},
        "lock": [_file_digest(root / name) for name in _LOCK_FILES],
        "python": platform.python_version(),
        "press": [_file_digest(_PRESS / name) for name in _RUNS],
        "compiler": kernel.compiler(),
    }
    return _digest(json.dumps(made_of, sort_keys=True).encode())


def _cells(chapter: pages.Chapter) -> list[Any]:
    """What every code cell does, and the expressions below it, in no order; first those above all code."""
    first: list[Any] = ["", []]
    cells = [first]
    for cell in chapter.notebook.cells:
        if cell.cell_type == "code":
            does = {"parameters", "raises-exception"} & set(cell.metadata.get("tags", []))
            cells.append([[cell.source, sorted(does), figure_name(cell), cell.metadata.get("claim")], []])
        cells[-1][1] = sorted({*cells[-1][1], *expressions(cell)})
    return cells


def figure_name(cell: Any) -> str:
    """The name of the figure that a code cell draws; "" if it draws none."""
    return str((cell.metadata.get("mystnb") or {}).get("figure", {}).get("name") or "")


def words(cell: Any) -> str:
    """The text that a cell shows to readers: that of a Markdown cell; caption and alternative text of a figure."""
    if cell.cell_type == "markdown":
        return str(cell.source)
    shown = cell.metadata.get("mystnb") or {}
    return f"{shown.get('figure', {}).get('caption', '')}\n\n{shown.get('image', {}).get('alt', '')}"


def expressions(cell: Any) -> list[str]:
    """The expressions that the words of a cell ask for: {eval}`EXPRESSION`.

    >>> from nbformat.v4 import new_markdown_cell
    >>> expressions(new_markdown_cell("From {eval}`x[0]` to {eval}``f'`{x[1]}`'``, {eval}`x[0]`."))
    ['x[0]', "f'`{x[1]}`'"]
    """
    return list(dict.fromkeys(found[2].strip() for found in _EVAL.finditer(words(cell))))


def evaluated(text: str, values: Mapping[str, str]) -> str:
    """``text`` with the value of every expression in its place; an expression without one stays as it is."""
    return _EVAL.sub(lambda found: values.get(found[2].strip(), found[0]), text)


def checks(root: Path, chapter: pages.Chapter) -> Checks | None:
    """The checks of a page; None if it has none."""
    path = pages.checks_file(root, chapter.name)
    if not path.is_file():
        return None
    functions = [node.name for node in manuscript.code(path).body if isinstance(node, ast.FunctionDef)]
    by_name = {claim.check: id for id, claim in claims.of_book(root).items() if claim.chapter == chapter.chapter}
    measured = {name: by_name[name] for name in functions if name in by_name}
    return Checks(path, measured, tuple(name for name in functions if name.startswith("test_")))


def files(root: Path, chapter: pages.Chapter, more: Iterable[str] = ()) -> list[Path]:
    """The modules that a page, or ``more`` code, imports, the data of their packages, and those that the page names."""
    modules = imported(packages(root), [*map(pages.python, chapter.code), *more])
    return [*modules, *_beside(modules), *(root / name for name in chapter.data)]


def packages(root: Path) -> dict[str, Path]:
    """The packages of the repository, by name, without the press: what runs a page is covered by name."""
    found = sorted(path.parent for path in root.glob("src/*/__init__.py"))
    return {folder.name: folder for folder in found if folder.name != "companion"}


def imported(within: Mapping[str, Path], codes: Iterable[str]) -> list[Path]:
    """Files of the modules of ``within`` (package -> folder) that ``codes`` import, directly or through one another.

    Imports are read from the syntax tree, those inside functions included; an import by a computed name is not seen.
    """
    found: dict[str, Path] = {}
    waiting, seen = [name for code in codes for name in _mentioned(code, package="")], set[str]()
    while waiting:
        # A module is imported after the packages around it.
        for name in accumulate(waiting.pop().split("."), "{}.{}".format):
            if name not in seen and (path := _module_file(within, name)):
                found[name] = path
                package = name if path.name == "__init__.py" else name.rpartition(".")[0]
                try:
                    waiting += _mentioned(manuscript.text(path), package)
                except SyntaxError:
                    manuscript.code(path)  # which names the file
            seen.add(name)
    return list(found.values())


@cache
def _mentioned(code: str, package: str) -> list[str]:
    """Dotted names that might be modules; those of relative imports are names within ``package``, if there is one."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            base = node.module or ""
            if node.level:
                base = ".".join([package.rsplit(".", node.level - 1)[0], *([base] if base else [])])
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("style.use"):
            # A style "package.name" lies beside the modules of the package.
            found += [ast.literal_eval(name).rpartition(".")[0] for name in node.args if isinstance(name, ast.Constant)]
    return found


def _module_file(within: Mapping[str, Path], name: str) -> Path | None:
    package, *rest = name.split(".")
    if package not in within:
        return None
    stem = within[package].joinpath(*rest)
    return next((path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file()), None)


def _beside(modules: Iterable[Path]) -> list[Path]:
    """The data files of the packages among ``modules``: what lies in their folders and is neither code nor hidden."""
    found = []
    for package in (path.parent for path in modules if path.name == "__init__.py"):
        files = (path for path in manuscript.listed(package, "**/*") if path.is_file() and path.suffix != ".py")
        # A package of its own counts where it is imported.
        found += [
            path for path in files if package == next(one for one in path.parents if (one / "__init__.py").is_file())
        ]
    return found


def _file_digest(path: Path) -> str:
    return _digest(path.read_bytes()) if path.is_file() else ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def state(root: Path) -> State:
    """The commit of the tree, and whether tracked or new files differ from it.

    ("unknown", True) where the tree is not the root of a git repository, such as an export in that of something else.
    """
    try:
        if not Path(_git(root, "rev-parse", "--show-toplevel")).samefile(root):
            return State("unknown", True)
        return State(_git(root, "rev-parse", "HEAD"), bool(_git(root, "status", "--porcelain")))
    except (OSError, subprocess.CalledProcessError):
        return State("unknown", True)


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    return done.stdout.rstrip("\n")
