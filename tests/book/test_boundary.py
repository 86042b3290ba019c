"""Arrows between the rooms point one way: library, experiments, chapters; the press knows none of them, nor they it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
ALLOWED = {
    "spinbook": set(),
    "experiments": {"spinbook"},
    "chapters": {"spinbook", "experiments"},
    "companion": set(),
}
"""What each room may import beside itself."""


def packages_imported(path):
    """First names of everything that a module imports, inside functions too."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(node.module.partition(".")[0])
    return imported


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_only_those_below_it(room):
    modules = sorted((SOURCE / room).rglob("*.py"))
    assert len(modules) > 10
    forbidden = ALLOWED.keys() - ALLOWED[room] - {room}
    assert [str(path) for path in modules if forbidden & packages_imported(path)] == []
