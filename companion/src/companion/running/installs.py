"""What an install of the library brings: for every extra the distributions that it needs here, and their size.

What is read is the environment that this runs in. Nothing is installed or imported, but for the time that an import
takes, which a new interpreter measures.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from companion import project
from companion.running import freshness

PLAIN = "plain"


def projects(root: Path) -> dict[str, dict[str, list[Requirement]]]:
    """What every ``pyproject.toml`` of the repository asks for, by the name of its project; that of the library first.

    Of everybody, under ``PLAIN``, and by extra.
    """
    found: dict[str, dict[str, list[Requirement]]] = {}
    for path in (folder.parent / "pyproject.toml" for folder in project.code(root)):
        facts = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        asked = {PLAIN: facts.get("dependencies", []), **facts.get("optional-dependencies", {})}
        by_extra = {extra: [Requirement(line) for line in lines] for extra, lines in asked.items()}
        found[canonicalize_name(facts["name"])] = by_extra
    return found


def extras(root: Path) -> dict[str, list[Requirement]]:
    """What an install asks for: under ``PLAIN``, by extra, and with each of the other projects beside the library.

    These are named as pip takes them from their folders, with the extras of each.
    """
    library, *others = projects(root).values()
    folders = [folder.parent.name for folder in project.code(root)[1:]]
    for folder, asked in zip(folders, others, strict=True):
        library[f"./{folder}"] = asked[PLAIN]
        for extra in sorted(asked.keys() - {PLAIN}):
            library[f"./{folder}[{extra}]"] = asked[PLAIN] + asked[extra]
    return library


def distributions(root: Path, extra: str = PLAIN) -> dict[str, metadata.Distribution]:
    """What a plain install, or one with an extra, needs of other projects here, by name.

    Raises ``ValueError`` if something that is needed is not installed.
    """
    asked, own = extras(root), projects(root)
    waiting, seen = [*asked[PLAIN], *asked[extra]], set()
    found: dict[str, metadata.Distribution] = {}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (mark := (name, frozenset(requirement.extras))) in seen:
            continue
        seen.add(mark)
        if name in own:
            waiting += [line for more in (PLAIN, *requirement.extras) for line in own[name][more]]
            continue
        if (distribution := freshness.installed().get(name)) is None:
            raise ValueError(f"{extra}: expected {requirement} to be installed, it is not")
        found[name] = distribution
        waiting += freshness.required(name, frozenset(requirement.extras))
    return dict(sorted(found.items()))


def megabytes(found: Iterable[metadata.Distribution]) -> float:
    """The size of all files of some distributions."""
    paths = (Path(str(file.locate())) for distribution in found for file in distribution.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def import_seconds(module: str) -> float:
    """Processor seconds of a new interpreter that imports ``module``, less those of one that imports nothing."""
    code = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
    done = subprocess.run(
        [sys.executable, "-c", code.format(module)], capture_output=True, encoding="utf-8", check=True
    )
    return float(done.stdout)


def table(root: Path, modules: Iterable[str] = ()) -> str:
    """The Markdown tables that a README shows: packages and megabytes by extra, seconds by module."""
    lines = ["| install | packages | MB |", "|---|---|---|"]
    for extra in extras(root):
        found = distributions(root, extra)
        size = megabytes(found.values())
        name = extra if extra == PLAIN else f"`{extra}`" if extra.startswith("./") else f"`[{extra}]`"
        lines.append(f"| {name} | {len(found)} | {size:.0f} |")
    if rows := [f"| `import {module}` | {import_seconds(module):.1f} |" for module in modules]:
        lines += ["", "| import | processor seconds |", "|---|---|", *rows]
    return "\n".join(lines)
