"""Computes one key of everything that a chapter's result depends on, without running or importing it.

The key covers the code of a page's cells, the modules of the library and of the machinery that it imports (directly
and through others) without their docstrings and the texts of their errors, the data files that lie beside the library,
the versions of the installed packages that these import and of what those require, the page's data files, its
parameters, the lock, the book's identity, the settings of kernels and the code that chooses them, the Python version,
and what Python runs of itself when it starts. A result whose recorded key differs is stale. Installed packages count
by their versions: who edits one by hand has to run the pages himself. Fonts of the system are in no key; the letters
of figures are those that Matplotlib brings.

Words and colours are no part of it. The prose of a page and the declarations of its claims enter when pages are made:
a cell emits what it measured and sees no declaration, so that changing one runs nothing. In other colours of the book's
style a figure is drawn again, by ``redrawing``.

What cannot be seen without running, ``execution`` finds out by running: modules imported by a computed name and files
of the repository that no key covers fail the run, and the versions of all packages that were loaded are in its record.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import os
import platform
import re
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.machinery import PathFinder
from itertools import accumulate
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from companion import manuscript, project
from companion.declaring import notebooks
from companion.declaring.notebooks import Chapter
from companion.running import environment

MACHINERY = project.MACHINERY
_LOCK_FILES = ("requirements.lock", "constraints.txt")
_RUNS = ("run", "_execute", "_environment")
"""The functions of ``execution`` that decide what a kernel gets."""
_CUSTOM = ("sitecustomize", "usercustomize")
_TAGS = ("parameters", "raises-exception", "skip-execution")
"""Tags that change what a cell does; all others say how it is shown."""
_SHOWS_WORDS = re.compile(r"\bexcept\b|__doc__|\bgetdoc\b|\bhelp\(")
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_PRESS = Path(__file__).resolve().parents[1]
_STARTUP = Path(__file__).with_name("kernel_startup.py")
_RUNNERS = ("ipykernel", "ipython", "nbclient", "nbformat", "papermill")
"""Packages that execute every chapter, whatever it imports."""
_GIT_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")


@dataclass(frozen=True)
class State:
    """The commit a tree stands at, and whether it differs from it."""

    commit: str
    dirty: bool
    # The day of the commit, as YYYY-MM-DD; "" where there is none.
    date: str = ""


def key(root: Path, chapter: Chapter) -> str:
    """Hexadecimal digest of everything that the chapter's result depends on."""
    return key_of(ingredients(root, chapter))


def key_of(made_of: Mapping[str, Any]) -> str:
    """The key of what ``ingredients`` says."""
    return digest(json.dumps(made_of, sort_keys=True).encode())


def evidence_key(made_of: Mapping[str, Any]) -> str:
    """The key of what numbers are made of: without the version and the address, which a release changes."""
    # The first cell installs the library of this version. Who customises Python differs from machine to machine.
    without = {name: made for name, made in made_of.items() if name != "customised"}
    return key_of(without | {"identity": "", "cells": made_of["cells"][1:]})


def ingredients(root: Path, chapter: Chapter) -> dict[str, Any]:
    """What the key is made of, by name: to see which part of two keys differs."""
    modules, own = library(root, chapter), own_packages(root)
    style = project.settings(root).style
    # A page that handles errors or asks for documentation may show these words.
    words = _SHOWS_WORDS.search(_code(root, chapter)) is not None or any(
        "raises-exception" in cell.metadata.get("tags", []) for cell in chapter.notebook.cells
    )
    data = [root / name for name in chapter.data]
    if absent := [str(path.relative_to(root)) for path in data if not path.is_file()]:
        raise ValueError(f"chapter {chapter.name!r}: data files not found: {absent}")
    return {
        "cells": [
            [cell.source, [tag for tag in cell.metadata.get("tags", []) if tag in _TAGS]]
            for cell in chapter.notebook.cells
            if cell.cell_type == "code"
        ],
        "library": {
            name: code_digest(_module(path), words=words, colours=name != style)
            for name, path in sorted(modules.items())
        },
        "beside the library": {_name(path, own): _file_digest(path) for path in _beside(modules.values())},
        "packages": packages(root, chapter),
        "data": {str(path.relative_to(root)): _file_digest(path) for path in data},
        "parameters": dict(chapter.parameters),
        "lock": [_file_digest(root / name) for name in _LOCK_FILES],
        "identity": key_of(dataclasses.asdict(project.identity(root))),
        "startup": _file_digest(_STARTUP),
        "environment": dict(environment.FIXED) | environment.compiler(),
        "runner": _runner(),
        "customised": _customised(),
        "python": platform.python_version(),
    }


def packages(root: Path, chapter: Chapter) -> dict[str, str]:
    """Versions of what the page, and the library behind it, import of other projects."""
    texts = [_code(root, chapter), *map(_module, library(root, chapter).values())]
    names = {name.partition(".")[0] for text in texts for name in _mentioned(text, package="")}
    return versions(names - set(sys.stdlib_module_names) - own_packages(root).keys())


def library(root: Path, chapter: Chapter) -> dict[str, Path]:
    """The modules of the repository and of the machinery that the page imports, directly or not: name -> file."""
    return imported(own_packages(root), _code(root, chapter))


def colours(root: Path) -> list[str]:
    """The colours that the book's style names, in their order; none if it has no style.

    They are no part of a key: a figure is drawn again in other ones without its kernel, by ``redrawing``.
    """
    style = project.settings(root).style
    finder = _Colourless()
    if style and (path := _module_file(own_packages(root), style)):
        finder.visit(ast.parse(_module(path)))
    return finder.found


def _runner() -> list[str]:
    """What the machinery gives a kernel: the code that chooses its variables, its places and its settings."""
    body = ast.parse(Path(__file__).with_name("execution.py").read_text(encoding="utf-8")).body
    chosen = [ast.unparse(node) for node in body if isinstance(node, ast.FunctionDef) and node.name in _RUNS]
    return [code_digest(code, words=False) for code in chosen]


@cache
def _customised() -> list[str]:
    """What Python runs in this environment before anything is asked of it: ``sitecustomize``, and code in ``.pth``."""
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    specs = [PathFinder.find_spec(name, [sysconfig.get_path("stdlib"), *folders]) for name in _CUSTOM]
    files = [Path(spec.origin) for spec in specs if spec and spec.origin]
    lines = [
        line.strip()
        for folder in map(Path, folders)
        for path in folder.glob("*.pth")
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.startswith(("import ", "import\t"))
    ]
    return [*map(_file_digest, files), *sorted(lines)]


def covered_files(root: Path, chapter: Chapter) -> set[Path]:
    """The files of the repository that a run may read, because the key covers them."""
    modules = library(root, chapter).values()
    data = [root / name for name in chapter.data]
    identity = [root / "_config.yml", project.version_file(root, project.settings(root).library)]
    return {*modules, *_beside(modules), *data, *identity}


def own_packages(root: Path) -> dict[str, Path]:
    """The packages whose modules the key covers one by one, by name: those of the repository, and the machinery."""
    modules = sorted(path for folder in project.code(root) for path in folder.glob("*/__init__.py"))
    found = {path.parent.name: path.parent for path in modules}
    return {MACHINERY: _PRESS} | found


def _code(root: Path, chapter: Chapter) -> str:
    """The code of all cells, and an import of the style, which the machinery imports by its name."""
    cells = [notebooks.python(cell.source) for cell in chapter.notebook.cells if cell.cell_type == "code"]
    style = project.settings(root).style
    return "\n".join([*cells, *([f"import {style}"] if style else [])])


def _beside(modules: Iterable[Path]) -> list[Path]:
    """The data files of the packages among ``modules``: what lies in their folders and is neither code nor hidden.

    Not those of the machinery: style sheets and scripts are for the site, and no kernel reads them.
    """
    found: list[Path] = []
    waiting = [path.parent for path in modules if path.name == "__init__.py" and path.parent != _PRESS]
    while waiting:
        for path in manuscript.listed(waiting.pop(), "*"):
            if path.is_dir():
                # A package of its own counts where it is imported.
                waiting += [] if (path / "__init__.py").is_file() else [path]
            elif path.suffix != ".py":
                found.append(path)
    return sorted(found)


def _name(path: Path, packages: Mapping[str, Path]) -> str:
    """What a file of one of ``packages`` is called wherever they lie."""
    name, folder = next((name, folder) for name, folder in packages.items() if path.is_relative_to(folder))
    return f"{name}/{path.relative_to(folder).as_posix()}"


def imported(packages: Mapping[str, Path], code: str) -> dict[str, Path]:
    """Modules of ``packages`` (name -> folder) that ``code`` imports, directly or through one another: name -> file.

    Imports are read from the syntax tree, those inside functions included; an import by a computed name is not seen,
    which ``execution`` guards against by comparing with the modules that a run really loaded.
    """
    found: dict[str, Path] = {}
    waiting, seen = list(_mentioned(code, package="")), set[str]()
    while waiting:
        # A module is imported after the packages around it.
        for name in accumulate(waiting.pop().split("."), "{}.{}".format):
            if name in seen:
                continue
            seen.add(name)
            path = _module_file(packages, name)
            if path is not None:
                found[name] = path
                package = name if path.name == "__init__.py" else name.rpartition(".")[0]
                waiting.extend(_mentioned(_module(path), package))
    return found


def _module(path: Path) -> str:
    """The code of a module. Raises ``ValueError`` with the name of the file where it is no Python."""
    text = manuscript.text(path)
    try:
        _imports(text)
    except (MemoryError, RecursionError, SyntaxError):
        manuscript.code(path)
    return text


def versions(modules: Iterable[str]) -> dict[str, str]:
    """Versions of the installed distributions that hold ``modules``, of all that these require, and of the runners."""
    found = {name: _version(name) for name in _RUNNERS if name in installed()}
    waiting = set[str](loaded_versions(modules))
    while waiting:
        name = waiting.pop()
        found[name] = _version(name)
        needed = {canonicalize_name(requirement.name) for requirement in required(name)}
        waiting |= needed & installed().keys() - found.keys()
    return dict(sorted(found.items()))


def loaded_versions(modules: Iterable[str]) -> dict[str, str]:
    """Versions of the installed distributions that hold ``modules``, and of nothing else."""
    names = {canonicalize_name(name) for module in modules for name in _holders().get(module, ())}
    return {name: _version(name) for name in sorted(names) if name in installed()}


@cache
def _holders() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


@cache
def installed() -> Mapping[str, metadata.Distribution]:
    """The distributions that an import would find, by name: of two with one name, the first on the path."""
    found: dict[str, metadata.Distribution] = {}
    for distribution in metadata.distributions():
        found.setdefault(canonicalize_name(distribution.metadata["Name"] or ""), distribution)
    return found


@cache
def _version(name: str) -> str:
    """Read once: the metadata of a distribution are parsed whenever they are asked for."""
    return installed()[name].version


@cache
def required(name: str, extras: frozenset[str] = frozenset()) -> list[Requirement]:
    """What a distribution needs here, plainly and for some of its extras."""
    needed = []
    for line in installed()[name].requires or ():
        with suppress(InvalidRequirement):
            needed.append(Requirement(line))
    wanted = ["", *extras]
    return [one for one in needed if not one.marker or any(one.marker.evaluate({"extra": extra}) for extra in wanted)]


@cache
def _mentioned(code: str, package: str) -> tuple[str, ...]:
    """Dotted names that might be modules; those of relative imports are names within ``package``, if there is one."""
    found = []
    for level, base, names in _imports(code):
        if level and not package:
            continue
        if level:
            parent = package.rsplit(".", level - 1)[0]
            base = f"{parent}.{base}" if base else parent
        found += [base, *(f"{base}.{name}" for name in names)] if base else names
    return tuple(dict.fromkeys(found))


@cache
def _imports(code: str) -> list[tuple[int, str, list[str]]]:
    """Level, module and names of every import in ``code``."""
    found = []
    for node in _statements(ast.parse(code)):
        if isinstance(node, ast.Import):
            found.append((0, "", [alias.name for alias in node.names]))
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module or "", [alias.name for alias in node.names]))
    return found


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Everything in ``tree`` that holds statements, or is one: expressions, which are most of a tree, hold none."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(inner := getattr(node, part, None), list):
                waiting += inner


@cache
def code_digest(code: str, *, words: bool = True, colours: bool = True) -> str:
    """Digest of the syntax tree of ``code``: comments, layout and ``__version__``, part of the identity, do not count.

    Without ``words`` neither docstrings nor the texts of the errors that it raises count. Without ``colours`` it counts
    where they stand and which are the same, and not which they are.
    """
    tree = ast.parse(code)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.Assign) and _names_version(node))]
    if not colours:
        tree = _Colourless().visit(tree)
    if not words:
        _without_words(tree)
    return digest(ast.dump(tree).encode())


def _without_words(tree: ast.AST) -> None:
    """Take docstrings away, and the texts in what is raised with what these texts compute."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in list(_statements(tree)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]
        elif isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.JoinedStr):
                    part.values = []
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    part.value = ""


class _Colourless(ast.NodeTransformer):
    """Puts the place where a colour, as #1b1f24, stands first in the place of the colour."""

    def __init__(self) -> None:
        self.found: list[str] = []
        """The different colours, by the places where they stand first."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, str) or not _COLOUR.fullmatch(node.value):
            return node
        if node.value not in self.found:
            self.found.append(node.value)
        return ast.copy_location(ast.Constant(f"colour {self.found.index(node.value)}"), node)


def _names_version(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "__version__" for target in node.targets)


def _module_file(packages: Mapping[str, Path], name: str) -> Path | None:
    package, *rest = name.split(".")
    if package not in packages:
        return None
    stem = packages[package].joinpath(*rest)
    for candidate in (stem / "__init__.py", stem.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


def _file_digest(path: Path) -> str:
    return digest(path.read_bytes()) if path.is_file() else ""


def digest(content: bytes) -> str:
    """Hexadecimal sha256."""
    return hashlib.sha256(content).hexdigest()


def tree_digest(*paths: Path) -> str:
    """Digest of the names and contents of all files in the given files and folders."""
    total = hashlib.sha256()
    for base in paths:
        for path in [base] if base.is_file() else manuscript.listed(base, "**/*"):
            if path.is_file():
                total.update(str(path.relative_to(base.parent)).encode(errors="surrogateescape"))
                total.update(path.read_bytes())
    return total.hexdigest()


def state(root: Path) -> State:
    """The commit of the tree, and whether tracked or new files differ from it.

    ("unknown", True) where the tree is not the root of a git repository whose commit holds this book, such as an export
    inside the repository of something else.
    """
    try:
        if not Path(_git(root, "rev-parse", "--show-toplevel")).samefile(root):
            return State("unknown", True)
        commit = _git(root, "rev-parse", "HEAD")
        _git(root, "cat-file", "-e", f"{commit}:_toc.yml")
        return State(
            commit, bool(_git(root, "status", "--porcelain")), _git(root, "show", "-s", "--format=%cs", "HEAD")
        )
    except (OSError, subprocess.CalledProcessError):
        return State("unknown", True)


def archive(root: Path, target: Path) -> None:
    """Write every file of the commit that stands in ``root`` to the archive ``target``, whose suffix says its form."""
    _git(root, "archive", "--output", str(target), "HEAD")


def _git(root: Path, *arguments: str) -> str:
    # A build that a git hook starts would otherwise be told of the hook's repository.
    environment = {name: value for name, value in os.environ.items() if name not in _GIT_PLACES}
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, encoding="utf-8", errors="surrogateescape", env=environment
    ).stdout.rstrip("\n")
