"""What importing a module loads besides it: no package that readers of other modules would have to install."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import spinbook

TORCH = tuple(f"spinbook.{name}" for name in ("adaptive_tap", "free_energy", "spread_attention", "tensors"))
NUMBA = ("spinbook.self_attention.kernel",)
HEAVY = {"torch", "numba", "sklearn", "matplotlib"}
LIBRARY = [info.name for info in pkgutil.walk_packages(spinbook.__path__, "spinbook.")]


def within(name, packages):
    return any(name == package or name.startswith(f"{package}.") for package in packages)


GROUPS = {
    "jax": ([name for name in LIBRARY if not within(name, (*TORCH, *NUMBA))], HEAVY),
    "torch": ([name for name in LIBRARY if within(name, TORCH)], HEAVY - {"torch"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_modules_loads_no_package_that_others_need(group):
    names, forbidden = GROUPS[group]
    code = (
        "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert names
    assert set(done.stdout.split()) & forbidden == set()


def test_the_first_line_of_every_module_is_a_sentence():
    # The reference and the README rely on it.
    files = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))
    assert len(files) > 100
    first = {file: (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0] for file in files}
    assert [str(file) for file, line in first.items() if not line.endswith((".", "?"))] == []
