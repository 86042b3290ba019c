"""What a chapter's result depends on, as one key. Nothing is run and nothing is imported to find it out.

The key covers the chapter's cells and front matter, the modules of the library that it imports (directly and through
others), its claims and data files, its parameters, the lock, the book's identity and the Python version. A result
whose recorded key differs is stale.
"""

import ast
import dataclasses
import hashlib
import json
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from spinbook import project
from spinbook.pipeline.notebooks import Chapter

PACKAGE = "spinbook"
_LOCK_FILES = ("requirements.lock", "constraints.txt")
_STARTUP = Path(__file__).with_name("kernel_startup.py")


@dataclass(frozen=True)
class State:
    """The commit a tree stands at, and whether it differs from it."""

    commit: str
    dirty: bool


def key(root: Path, chapter: Chapter, parameters: dict[str, Any] | None = None) -> str:
    """Hexadecimal digest of everything that the chapter's result depends on."""
    return _digest(json.dumps(ingredients(root, chapter, parameters), sort_keys=True).encode())


def ingredients(root: Path, chapter: Chapter, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the key is made of, by name: to see which part of two keys differs."""
    python = TransformerManager().transform_cell
    code = "\n".join(python(cell.source) for cell in chapter.notebook.cells if cell.cell_type == "code")
    data = [root / name for name in chapter.data]
    if absent := [str(path.relative_to(root)) for path in data if not path.is_file()]:
        raise ValueError(f"chapter {chapter.name!r}: data files not found: {absent}")
    return {
        "cells": [[cell.cell_type, cell.source, cell.metadata.get("tags", [])] for cell in chapter.notebook.cells],
        "library": {name: _module_digest(path) for name, path in sorted(imported(root / "src", code).items())},
        "claims": _file_digest(root / "book" / "claims" / f"{chapter.name}.yml"),
        "data": {str(path.relative_to(root)): _file_digest(path) for path in data},
        "parameters": dict(chapter.parameters) | (parameters or {}),
        "lock": [_file_digest(root / name) for name in _LOCK_FILES],
        "identity": _identity_digest(root),
        "startup": _file_digest(_STARTUP),
        "python": platform.python_version(),
    }


def imported(source_folder: Path, code: str) -> dict[str, Path]:
    """Modules of the library that `code` imports, directly or through one another: name -> file.

    Imports are read from the syntax tree, those inside functions included; an import by a computed name is not seen,
    which `execution` guards against by comparing with the modules that a run really loaded.
    """
    found: dict[str, Path] = {}
    waiting = list(_mentioned(code, package=""))
    while waiting:
        for name in _with_parents(waiting.pop()):
            path = _module_file(source_folder, name)
            if path is not None and name not in found:
                found[name] = path
                package = name if path.name == "__init__.py" else name.rpartition(".")[0]
                waiting.extend(_mentioned(path.read_text(), package))
    return found


def _mentioned(code: str, package: str) -> Iterator[str]:
    """Dotted names that might be modules of the library."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    if parts[0] != PACKAGE:
        return []
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _module_file(source_folder: Path, name: str) -> Path | None:
    stem = source_folder.joinpath(*name.split("."))
    for candidate in (stem / "__init__.py", stem.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


def _module_digest(path: Path) -> str:
    """Digest of the syntax tree: comments and layout do not make a result stale."""
    return _digest(ast.dump(ast.parse(path.read_text())).encode())


def _identity_digest(root: Path) -> str:
    return _digest(json.dumps(dataclasses.asdict(project.identity(root)), sort_keys=True).encode())


def _file_digest(path: Path) -> str:
    return _digest(path.read_bytes()) if path.is_file() else ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tree_digest(*paths: Path) -> str:
    """Digest of the names and contents of all files in the given files and folders."""
    total = hashlib.sha256()
    for base in paths:
        files = [base] if base.is_file() else sorted(path for path in base.rglob("*") if path.is_file())
        for path in files:
            if "__pycache__" not in path.parts:
                total.update(str(path.relative_to(base.parent)).encode())
                total.update(path.read_bytes())
    return total.hexdigest()


def state(root: Path) -> State:
    """The commit of the tree, and whether tracked or new files differ from it ("unknown", True outside git)."""
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return State(commit, bool(_git(root, "status", "--porcelain")))
    except (OSError, subprocess.CalledProcessError):
        return State("unknown", True)


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()
