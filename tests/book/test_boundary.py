"""The library knows nothing of books, the machinery nothing of what a book is about, and no room of those above it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("spinbook", "experiments", "chapters")
"""Each may import those before it, and none after it."""
SOURCE = {name: ROOT / "src" / name for name in ROOMS} | {"companion": ROOT / "companion" / "src" / "companion"}
MODULES = {name: sorted(folder.rglob("*.py")) for name, folder in SOURCE.items()}
PRESS = {"declaring": set(), "running": {"declaring"}, "site": {"declaring", "running"}}
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


@pytest.mark.parametrize("room", ROOMS)
def test_neither_the_machinery_nor_a_room_imports_the_other(room):
    assert len(MODULES[room]) > 10
    assert [path.name for path in MODULES["companion"] if room in packages_imported(path)] == []
    assert [path.name for path in MODULES[room] if "companion" in packages_imported(path)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_those_before_it(room):
    after = {"spinbook": {"experiments", "chapters"}, "experiments": {"chapters"}, "chapters": set()}[room]
    upwards = [str(path.relative_to(ROOT)) for path in MODULES[room] if after & packages_imported(path)]
    assert upwards == []


@pytest.mark.parametrize("room", PRESS)
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
    assert rooms & {*PRESS, "build", "check", "evidence"} <= {room, *PRESS[room]}


def lines_with(pattern, paths):
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if pattern.search(line)
    ]


def test_the_machinery_does_not_name_the_library_or_its_subject():
    everything = [path for path in SOURCE["companion"].rglob("*") if path.suffix in (".py", ".js", ".css", ".json")]
    # Somebody else's library, as it is distributed.
    everything = [path for path in everything if "mathjax" not in path.parts]
    assert lines_with(SUBJECT, everything) == []


def test_no_room_names_a_part_of_the_machinery():
    machinery = re.compile(r"\bcompanion\.|COMPANION_|\bpapermill|\bjupyter|\bsphinx", re.I)
    assert lines_with(machinery, [path for room in ROOMS for path in MODULES[room]]) == []
