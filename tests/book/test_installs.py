"""What every extra brings, and that it is enough."""

import doctest
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from companion.declaring import notebooks
from companion.running import freshness
from tests import test_imports

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
LOCK = (ROOT / "requirements.lock").read_text()


PLAIN = "plain"
FOLDERS = ("", "companion")
"""Where the projects of the repository lie, the library first."""


def projects():
    """What each project asks for, by the name of the project: of everybody, under `PLAIN`, and by extra."""
    found = {}
    for facts in (tomllib.loads((ROOT / one / "pyproject.toml").read_text())["project"] for one in FOLDERS):
        asked = {PLAIN: facts["dependencies"], **facts.get("optional-dependencies", {})}
        found[facts["name"]] = {extra: [Requirement(line) for line in lines] for extra, lines in asked.items()}
    return found


def extras():
    """What an install asks for: plain, by extra, and with the press as pip takes it from its folder."""
    library, press = projects().values()
    beside = {f"./companion[{extra}]": press[PLAIN] + asked for extra, asked in press.items() if extra != PLAIN}
    return library | {"./companion": press[PLAIN]} | beside


def distributions(extra):
    """What a plain install, or one with an extra, needs of other projects here, by name."""
    own, waiting, seen, found = projects(), extras()[PLAIN] + extras()[extra], set(), {}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (mark := (name, frozenset(requirement.extras))) in seen:
            continue
        seen.add(mark)
        if name in own:
            waiting += [line for more in (PLAIN, *requirement.extras) for line in own[name][more]]
            continue
        found[name] = metadata.distribution(name)
        waiting += freshness.required(name, frozenset(requirement.extras))
    return found


def test_the_readme_prints_what_it_says_and_lists_every_lesson():
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False) == (0, 4)
    listed = re.findall(r"^\| \[([^\]]+)\]\(notebooks/([a-z-]+)\.md\) \|", README, flags=re.MULTILINE)
    assert [name for _, name in listed] == notebooks.chapters(ROOT)
    assert [title for title, _ in listed] == [notebooks.load(ROOT, name).title for _, name in listed]


def test_an_extra_brings_what_it_says_and_a_plain_install_neither_torch_nor_the_book():
    found = {extra: set(distributions(extra)) for extra in extras()}
    plain = found[PLAIN]
    assert {"jax", "jaxlib", "numba", "scipy", "equinox", "xarray"} <= plain
    assert not {"torch", "scikit-learn", "matplotlib", "ipython", "pyyaml", "sphinx", "spinbook"} & plain
    assert all(plain <= packages for packages in found.values())
    assert found["torch"] - plain >= {"torch"}
    assert found["torch"] <= found["notebook"]
    assert found["./companion"] < found["./companion[book]"]
    assert {"matplotlib", "scikit-learn"} <= found["notebook"]
    assert {"matplotlib", "scour", "ipython"} <= found["./companion"]
    assert "distributed" in found["cluster"]


def test_the_lock_pins_what_every_extra_needs_here():
    pins = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", LOCK, flags=re.MULTILINE)}
    for extra in extras():
        unpinned = set(distributions(extra)) - pins
        # PyTorch's build, and what only that build needs, differ between machines.
        assert {name for name in unpinned if not name.startswith(("torch", "nvidia-", "triton"))} == set(), extra


def pinned(name):
    lines = (ROOT / "tests" / name).read_text().splitlines()
    found = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(package): version for package, version in found}


def test_the_lower_bounds_are_the_versions_of_the_environments_that_prove_them():
    pins = pinned("colab.txt") | pinned("oldest.txt")
    own, asked = projects(), extras()
    for lines in (asked[PLAIN], asked["torch"], asked["notebook"], own["companion-press"][PLAIN]):
        for requirement in lines:
            if requirement.name in own:
                continue
            (lower,) = (Version(one.version) for one in requirement.specifier if one.operator == ">=")
            assert lower == Version(pins[canonicalize_name(requirement.name)]), requirement


def test_what_colab_has_lies_within_the_bounds():
    asked = [line for extras in projects().values() for lines in extras.values() for line in lines]
    later = {"numpy": "2.1.3", "numba": "0.61.2", "torch": "2.11.0"}
    runs = {"ipykernel", "psutil"}  # Of the machinery, which does not run there.
    for requirement in asked:
        name = canonicalize_name(requirement.name)
        for version in {pinned("colab.txt").get(name), later.get(name)} - {None}:
            assert name in runs or requirement.specifier.contains(version), requirement


def environment(wheel, folder, *extras):
    """A search path that holds the wheels and what extras declare, lent from this environment, and nothing else."""
    folder.mkdir()
    for distribution in (one for extra in extras for one in distributions(extra).values()):
        for name in {file.parts[0] for file in distribution.files if file.parts[0] not in ("..", "__pycache__")}:
            if not (folder / name).exists():
                (folder / name).symlink_to(distribution.locate_file(name))
    return os.pathsep.join(map(str, (wheel, folder)))


def python(path, cwd, code, *arguments):
    """Run code in an interpreter that sees the standard library and `path`."""
    return subprocess.run(
        [sys.executable, "-S", "-c", code, *arguments],
        cwd=cwd,
        env={"PYTHONPATH": path, "PATH": "", "HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=False,
    )


IMPORT = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
COMPUTE = """
from spinbook import self_attention as sa, sphere
assert sa.simulate(sa.paper_network(), beta=1.3, steps=3).attention.shape[0] == 3
assert sphere.magnetization([1.0, 0.0, 0.0], beta=1.0).shape == (3,)
"""
PUBLISH = """
from companion import claims, figures, project
import matplotlib.pyplot as plt
claims.measure("rbm-mixtures.convex-hull", 0.0)
figure, ax = plt.subplots()
figures.publish(figure, "probe-line", data={"x": [1]}, caption="A line.", alt="A line " * 10, source="this book")
assert project.root().name == "_book", project.root()
"""


@pytest.mark.slow
def test_a_plain_install_of_the_wheel_imports_and_computes_the_physics_in_jax(wheel, tmp_path):
    """Shown is that the wheel and its declared requirements suffice; that pip would fetch them is not."""
    path = environment(wheel, tmp_path / "lent", PLAIN)
    done = python(path, tmp_path, IMPORT + COMPUTE, *test_imports.TABLE["the physics in JAX"][0])
    assert done.returncode == 0, done.stderr
    for absent in ("torch", "matplotlib", "sklearn", "IPython", "yaml"):
        assert f"No module named '{absent}'" in python(path, tmp_path, f"import {absent}").stderr
    shown = python(path, tmp_path, "from companion.__main__ import main; main(['--help'])")
    assert shown.returncode == 0, shown.stderr
    assert "usage: companion" in shown.stdout


@pytest.mark.slow
def test_the_extra_notebook_is_enough_for_every_module_that_a_notebook_imports(wheel, tmp_path):
    cells = "\n".join(path.read_text() for path in sorted((ROOT / "notebooks").glob("*.md")))
    names = set(re.findall(r"^(?:from|import) ([\w.]+) ?(?:import|as|$)", cells, flags=re.MULTILINE))
    assert {"companion", "spinbook", "companion.numbers", "spinbook.free_energy", "torch"} <= names
    plots = test_imports.TABLE["what draws the figures"][0]
    path = environment(wheel, tmp_path / "lent", "notebook", "./companion")
    done = python(path, tmp_path, IMPORT + PUBLISH, *sorted(names), *plots)
    assert done.returncode == 0, done.stderr
    assert "Claim rbm-mixtures.convex-hull" in done.stdout
    assert "no such claim" not in done.stdout
    assert (tmp_path / "_build" / "figures" / "probe-line" / "probe-line.svg").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["torch", "./companion[book]", "cluster", "lens"])
def test_an_extra_is_enough_for_what_it_is_for(wheel, tmp_path, extra):
    names = {
        "torch": test_imports.TABLE["the physics in PyTorch"][0],
        "./companion[book]": test_imports.TABLE["the whole machinery"][0],
        "cluster": ["distributed", "spinbook.sweep"],
        "lens": ["safetensors.numpy", "tokenizers", "experiments.encoder"],
    }
    done = python(environment(wheel, tmp_path / "lent", extra), tmp_path, IMPORT, *names[extra])
    assert done.returncode == 0, done.stderr
