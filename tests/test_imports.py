"""What importing a module loads besides it: no package that readers of other modules would have to install."""

import ast
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import chapters
import companion
import experiments
import spinbook

# In PyTorch, or both frameworks side by side.
TORCH = (
    "spinbook.adaptive_tap",
    "experiments.comparison.depths",
    "experiments.comparison.doubts",
    "experiments.comparison.experiment",
    "experiments.comparison.headline",
    "experiments.comparison.modules",
    "experiments.comparison.simplest",
    "experiments.comparison.torch_blocks",
    "experiments.comparison.training",
    "experiments.depth.experiment",
    "experiments.depth.mnist",
    "experiments.digit_network",
    "spinbook.free_energy",
    "spinbook.tensors",
    "spinbook.transforms",
)
# What is no figure in the chapters.
NUMBERS = (
    "chapters.attention_dynamics.spectrum",
    "chapters.collectives.response",
    "chapters.kinetic_ising.published",
    "chapters.nonequilibrium_dynamics.neqnn",
    "chapters.rbm_mixtures.random_features",
    "chapters.rbm_mixtures.stack",
    "chapters.spin_transformers.infinite",
    "chapters.spin_transformers.printed",
)
NUMBA = ("spinbook.self_attention.kernel", "chapters.attention_dynamics.extended")
ROOMS = {"spinbook", "experiments", "chapters"}
FOLDERS = ("chapters", *(info.name for info in pkgutil.iter_modules(chapters.__path__, "chapters.") if info.ispkg))
UNDRAWN = (*NUMBERS, *FOLDERS, "chapters.scripts")
HEAVY = {"torch", "numba", "sklearn", "matplotlib"}
BOOK = {"IPython", "jupyter_book", "nbformat", "papermill", "sphinx", "yaml"}


def within(name, packages):
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def modules(package):
    """Every module but the commands, which import nothing before a command is chosen."""
    found = [info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [name for name in found if not name.endswith("__main__")]


OURS = (spinbook, experiments, chapters)
LIBRARY = [name for package in OURS for name in modules(package) if not within(name, ["chapters"])]
CHAPTERS = [name for name in modules(chapters) if not within(name, (*NUMBERS, *NUMBA))]
TABLE = {
    "the physics in JAX": (
        [name for name in LIBRARY if not within(name, (*TORCH, *NUMBA))] + list(NUMBERS),
        HEAVY | BOOK | {"companion"},
    ),
    "the physics in PyTorch": (
        [name for name in LIBRARY if within(name, TORCH)],
        HEAVY - {"torch"} | BOOK | {"companion"},
    ),
    # numba reads its settings with yaml.
    "what numba compiles": (list(NUMBA), HEAVY - {"numba"} | BOOK - {"yaml"} | {"companion"}),
    "what draws the figures": (
        CHAPTERS,
        HEAVY - {"matplotlib"} | BOOK | {"companion", "jax"},
    ),
    "numbers and claims": (
        ["companion.numbers", "companion.claims"],
        {*HEAVY, *ROOMS, "jax", "numpy", "sphinx", "papermill"},
    ),
    "figures": (["companion.figures"], HEAVY - {"matplotlib"} | {*ROOMS, "jax", "sphinx", "papermill"}),
    "the whole machinery": (
        [name for name in modules(companion) if not name.endswith("kernel_startup")],
        HEAVY - {"matplotlib"} | {*ROOMS, "jax"},
    ),
}


def loaded_by(names):
    """First names of all modules in a new interpreter that has imported `names`."""
    code = (
        "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("group", TABLE)
def test_a_group_of_modules_loads_no_package_that_others_need(group):
    names, forbidden = TABLE[group]
    if group == "the whole machinery":
        pytest.importorskip("jupytext", reason="needs what the press asks for")
    loaded = loaded_by(names)
    assert names
    assert {name.partition(".")[0] for name in names} <= loaded
    assert loaded & forbidden == set()


def test_the_first_line_of_every_module_says_what_it_holds():
    # In a whole sentence: the Reference and the README rely on it.
    files = [file for package in (*OURS, companion) for file in Path(package.__path__[0]).rglob("*.py")]
    assert len(files) > 150
    first = {file: (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0] for file in files}
    assert [
        str(file) for file, line in first.items() if not line.endswith((".", "?")) and "template" not in file.parts
    ] == []


@pytest.mark.parametrize("package", [*sorted(ROOMS), "companion"])
def test_importing_a_package_loads_nothing_else(package):
    code = (
        f"import sys; before = set(sys.modules); import {package}; "
        f"new = {{name.partition('.')[0] for name in set(sys.modules) - before}}; "
        f"print(sorted(new - set(sys.stdlib_module_names) - {{'spinbook'}}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str([package] if package != "spinbook" else [])


WITHOUT = """
import importlib.util, sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] == sys.argv[1] else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
import spinbook
for code in sys.argv[2:]:
    try:
        exec(code)
    except (ModuleNotFoundError, ValueError) as error:
        print(error)
    else:
        print(code, "needs nothing that is missing")
"""
NEEDS = {
    "torch": [f"import {name}" for name in LIBRARY if within(name, TORCH)],
    "matplotlib": [f"import {name}" for name in CHAPTERS if name not in UNDRAWN],
    "safetensors": ["from experiments import encoder; encoder.load()"],
    "sklearn": [
        "from experiments.datasets import digits; digits.load()",
        "from experiments.datasets import mnist; mnist.from_openml()",
    ],
    "tokenizers": ["from experiments import encoder; encoder.tokenizer()"],
    "distributed": ["from experiments import __main__ as it; it._executor(None, 'tcp://host:1').__enter__()"],
}


@pytest.mark.parametrize("missing", spinbook.EXTRAS)
def test_what_needs_a_package_that_is_missing_names_the_extra_that_brings_it(missing):
    asked = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    distribution = {"sklearn": "scikit-learn"}.get(missing, missing)
    extra = spinbook.EXTRAS[missing]
    assert any(line.startswith(distribution) for line in asked["optional-dependencies"][extra])
    # Code that is not the library's is told what Python says, and may ask whether the package is there.
    others = [f"import {missing}", f"print(importlib.util.find_spec('{missing}'))"]
    command = [sys.executable, "-c", WITHOUT, missing, *NEEDS[missing], *others]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    *mine, outside, found, _ = shown.stdout.splitlines()
    said = f'{missing}: expected to be installed, as by pip install "spinbook[{extra}]", got none'
    # A command says before it which option needs the package.
    assert [line.removeprefix("--scheduler: ") for line in mine] == [said] * len(NEEDS[missing]), shown.stderr
    assert (outside, found) == (f"No module named '{missing}'", "None")


def offered(tree):
    """The names in a module's ``__all__``; None where it has none."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            return ast.literal_eval(node.value)
    return None


def defined(tree):
    """The public functions and classes that a module defines itself."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


@pytest.mark.parametrize("package", [companion, *OURS], ids=lambda package: package.__name__)
def test_every_module_says_what_it_offers(package):
    # The template is of books that are yet to be written.
    files = [path for path in sorted(Path(package.__file__).parent.rglob("*.py")) if "template" not in path.parts]
    # IPython runs it before a chapter's first cell; it is no module.
    trees = {str(file): ast.parse(file.read_text("utf-8")) for file in files if file.name != "kernel_startup.py"}
    assert len(trees) > 10
    for name, tree in trees.items():
        # From the press nobody takes names: what is private there begins with an underscore.
        if package is not companion:
            names = offered(tree)
            assert names is not None, f"{name}: no __all__"
            assert set(names) >= defined(tree), f"{name}: __all__ lacks {defined(tree) - set(names)}"
        future = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
        assert future, f"{name}: no import of annotations from __future__"
