"""The library knows nothing of books, and the machinery nothing of what a book is about."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = {"companion": ROOT / "companion" / "src" / "companion", "spinbook": ROOT / "src" / "spinbook"}
MODULES = {name: sorted(folder.rglob("*.py")) for name, folder in SOURCE.items()}
ROOMS = {"declaring": set(), "running": {"declaring"}, "site": {"declaring", "running"}}
"""Of the press, the rooms that each may import beside itself; ``evidence`` may import all."""
SUBJECT = re.compile(
    r"spin|physic|magneti[sz]|boltzmann|hopfield|lyapunov|entropy|temperature|attention|\btransformer(?!Manager)|\bising\b|\brbm\b|"
    r"\bbal\b|aguilera",
    re.IGNORECASE,
)


def packages_imported(path):
    """First names of everything that a module imports, inside functions too, and by a name given as text."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "import_module",
            "__import__",
        ):
            found |= {str(part.value).partition(".")[0] for part in node.args if isinstance(part, ast.Constant)}
    return found


@pytest.mark.parametrize(("package", "other"), [("companion", "spinbook"), ("spinbook", "companion")])
def test_neither_package_imports_the_other(package, other):
    assert len(MODULES[package]) > 20
    assert [path.name for path in MODULES[package] if other in packages_imported(path)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_rooms_of_the_press_follow_one_another_as_the_data_do(room):
    paths = sorted((SOURCE["companion"] / room).rglob("*.py"))
    assert len(paths) > 8
    modules = {
        node.module
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    rooms = {name.split(".")[1] for name in modules if name.startswith("companion.")}
    assert rooms & {*ROOMS, "build", "check", "evidence"} <= {room, *ROOMS[room]}


def lines_with(pattern, paths):
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if pattern.search(line)
    ]


def test_the_machinery_does_not_name_the_library_or_its_subject():
    everything = [path for path in SOURCE["companion"].rglob("*") if path.suffix in (".py", ".js", ".css", ".json")]
    assert lines_with(SUBJECT, everything) == []


def test_the_library_names_no_part_of_the_machinery():
    assert (
        lines_with(re.compile(r"\bcompanion\.|COMPANION_|\bpapermill|\bjupyter|\bsphinx", re.I), MODULES["spinbook"])
        == []
    )
