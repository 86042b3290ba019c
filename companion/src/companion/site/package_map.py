"""Writes the map of the packages in ``README.md`` from the first lines of the modules' docstrings.

It stands between two comments, ``BEGIN`` and ``END``; a README without them has no map.
"""

from __future__ import annotations

import ast
from pathlib import Path

from companion import manuscript, project

BEGIN = "<!-- The map: written by `make fix` from the first lines of the modules. -->"
END = "<!-- The end of the map. -->"
_NAME = "README.md"


def text(root: Path) -> str:
    """One table for each package of the repository: its modules, what they hold, and the parts of its packages."""
    tables = []
    for package in sorted(path for folder in project.code(root) for path in folder.glob("*/__init__.py")):
        rows = [
            f"| [`{path.stem if path.suffix else path.name}`]({_file(path).relative_to(root).as_posix()}) "
            f"| {_first_line(_file(path))} | {', '.join(_parts(path))} |"
            for path in sorted(package.parent.iterdir())
            if _is_public(path) and _file(path).is_file()
        ]
        heading = f"**`{package.parent.name}`**: {_first_line(package)}"
        tables.append("\n".join([heading, "", "| module | what it holds | parts |", "|---|---|---|", *rows]))
    return "\n\n".join(tables)


def _is_public(path: Path) -> bool:
    return not path.name.startswith(("_", ".")) and path.suffix in ("", ".py")


def _file(path: Path) -> Path:
    return path if path.suffix else path / "__init__.py"


def _parts(path: Path) -> list[str]:
    if path.suffix:
        return []
    return [f"`{part.stem}`" for part in manuscript.listed(path, "*.py") if not part.name.startswith("_")]


def _first_line(path: Path) -> str:
    """The first line of a module's docstring.

    Raises ``ValueError`` if there is none, or it does not end a sentence.
    """
    line = (ast.get_docstring(manuscript.code(path)) or "").partition("\n")[0]
    if not line.endswith("."):
        raise ValueError(f"{path}: expected a docstring whose first line ends a sentence, got {line!r}")
    return line.replace("|", "\\|")


def _halves(root: Path) -> tuple[str, str, str] | None:
    """What stands before, in and after the map; None without one."""
    path = root / _NAME
    content = manuscript.text(path) if path.is_file() else ""
    if BEGIN not in content or END not in content:
        return None
    before, _, rest = content.partition(BEGIN)
    inside, _, after = rest.partition(END)
    return before, inside, after


def out_of_sync(root: Path) -> list[str]:
    """``["README.md"]`` if it has a map that is not what the modules say."""
    halves = _halves(root)
    return [] if halves is None or halves[1].strip() == text(root) else [_NAME]


def sync(root: Path) -> list[Path]:
    """Write the map if it is out of date. Returns what changed."""
    halves = _halves(root)
    if halves is None or not out_of_sync(root):
        return []
    before, _, after = halves
    path = root / _NAME
    path.write_text(f"{before}{BEGIN}\n\n{text(root)}\n\n{END}{after}", encoding="utf-8")
    return [path]
