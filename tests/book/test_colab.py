"""Notebooks as Colab runs them: alone, in an empty folder, with nothing installed but what the first cell installs.

The environment is new and holds neither the library nor the machinery; the other packages are lent to it, as Colab
brings its own. The install cell is executed as it is committed; git is told to read this repository where the cell
names the public one.

A page is run with its quick parameters once, by `test_chapters`: in an empty folder too, and what it loads and opens of
the repository must lie in the wheel. What is left to find out here is the same for all pages, and is seen on one: that
the cell installs that wheel, and that claims, figures and their citations find the book in it when no pipeline has told
them where it is. Every page has the same install cell, and imports what it needs here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest
import yaml

from companion import claims, project
from companion.declaring import notebooks

ROOT = Path(__file__).resolve().parents[2]
PAGES = notebooks.names(ROOT)
PUBLIC = project.identity(ROOT).repository


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """A repository that holds the working tree as its main branch, uncommitted changes too."""
    copy = tmp_path_factory.mktemp("public") / "spinbook"
    if shutil.which("git") is None:
        pytest.skip("needs git")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("needs the git repository")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "--quiet", "-b", "main"], ["add", "--all"], [*who, "commit", "--quiet", "-m", "tree"]):
        subprocess.run(["git", *command], cwd=copy, check=True)
    if (ref := project.identity(ROOT).ref) != "main":
        subprocess.run(["git", "tag", ref], cwd=copy, check=True)
    return copy


@pytest.fixture(scope="session")
def colab(tmp_path_factory, repository):
    return stand_in(tmp_path_factory.mktemp("colab"), repository)


def stand_in(folder, repository):
    """An interpreter of its own, and the environment variables under which its kernel starts."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    python = folder / "env" / "bin" / "python"
    site = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    lent = folder / "lent"
    lent.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("companion", "_companion", "spinbook", "_spinbook")):
            (lent / entry.name).symlink_to(entry)
    (Path(site) / "lent.pth").write_text(f"{lent}\n")
    (Path(site) / "google" / "colab").mkdir(parents=True)
    (Path(site) / "google" / "colab" / "__init__.py").write_text("")
    kernel = folder / "jupyter" / "kernels" / "colab"
    kernel.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Colab", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMPANION", "SPINBOOK", "PYTHONPATH"))
    }
    # Only now: the tests install the library.
    code = "from importlib.util import find_spec; print(*map(bool, map(find_spec, ('spinbook', 'companion', 'jax'))))"
    bare = subprocess.run([str(python), "-c", code], capture_output=True, text=True, env=variables, cwd="/", check=True)
    assert bare.stdout.split() == ["False", "False", "True"], (
        "the environment lacks the library and has all that it needs"
    )
    variables |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{repository}.insteadOf",
        "GIT_CONFIG_VALUE_0": PUBLIC,
        # The build backend is lent, too. For this option pip takes "no" as consent.
        "PIP_NO_BUILD_ISOLATION": "no",
        "JUPYTER_PATH": str(folder / "jupyter"),
        "COLAB_RELEASE_TAG": "stand-in",
        "COMPANION_ROUGH": "1",
        # As the quick profiles among the fast tests, whose compiled functions are then loaded here.
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    return python, variables


def run(name, folder, colab):
    """Execute the committed notebook of a chapter with its quick parameters; returns the executed notebook."""
    folder.mkdir()
    quick = folder.with_name("quick.yml")
    quick.write_text(yaml.safe_dump(dict(notebooks.load(ROOT, name).quick)))
    out = folder.with_name(f"{notebooks.slug(name)}.ipynb")
    papermill(ROOT / "notebooks" / f"{name}.ipynb", out, folder, colab, "-f", str(quick))
    return nbformat.read(out, as_version=4)


def papermill(given, out, folder, colab, *options):
    """Execute a notebook as it is in the folder, with the stand-in's kernel."""
    command = [sys.executable, "-m", "papermill", str(given), str(out), "--kernel", "colab", "--cwd", str(folder)]
    done = subprocess.run(
        [*command, "--no-progress-bar", *options], capture_output=True, text=True, env=colab[1], check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


LIGHT = "comparison"
"""The lesson that is run in whole: one of the lightest, and one that reads files of the library."""


@pytest.mark.slow
@pytest.mark.long
def test_the_committed_notebook_runs_in_an_empty_folder(tmp_path, colab):
    executed = run(LIGHT, tmp_path / "content", colab)
    assert where_installed(colab, tmp_path) == ["spinbook", "companion"], "the library came from the install cell"
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    marked = [output for output in outputs if "companion" in output.get("metadata", {})]
    shown = [output for output in marked if "claim" in output.metadata["companion"]]
    declared = {claim.id: claim for claim in claims.declared(ROOT / "book" / "claims" / f"{LIGHT}.yml")}
    assert shown, "the page shows claims"
    for output in shown:
        claim = declared[output.metadata["companion"]["claim"]]
        assert " ".join(claim.says.split()) in output.data["text/plain"], "the wheel brings what was declared"
    figures = [output.metadata["companion"]["figure"] for output in marked if output not in shown]
    assert figures
    for figure in figures:
        record = json.loads((tmp_path / "content" / "_build" / "figures" / figure / "figure.json").read_text())
        assert record["chapter"] == LIGHT
        assert figure in record["bibtex"], "the citation is made from what the wheel says of the book"


def where_installed(colab, folder):
    """Paths of the library and of the machinery below the stand-in's environment; an error if they lie elsewhere."""
    python, variables = colab
    code = "import companion, spinbook; print(spinbook.__file__, companion.__file__)"
    done = subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, env=variables, cwd=folder, check=True
    )
    places = [Path(path).relative_to(python.parent.parent) for path in done.stdout.split()]
    return [place.parent.name for place in places]


def said_first(colab, folder):
    """What the install cell says of itself in the folder."""
    cell = next(cell for cell in nbformat.read(ROOT / "notebooks" / f"{LIGHT}.ipynb", as_version=4).cells)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.source)]), folder / "first.ipynb")
    papermill(folder / "first.ipynb", folder / "done.ipynb", folder, colab)
    (cell,) = nbformat.read(folder / "done.ipynb", as_version=4).cells
    return "".join(output.get("text", "") for output in cell.outputs).splitlines()[-1]


@pytest.mark.slow
def test_the_install_cell_takes_a_wheel_beside_the_notebook_before_the_public_address(tmp_path, repository, wheel):
    alone = stand_in(tmp_path, repository)
    for path in wheel.parent.glob("*.whl"):
        shutil.copy(path, tmp_path)
    # Nothing is to come from there.
    variables = {**alone[1], "GIT_CONFIG_VALUE_0": "nowhere", "GIT_CONFIG_KEY_0": "url.file:///nowhere.insteadOf"}
    uses = f"This notebook uses spinbook {project.identity(ROOT).version} from "
    assert said_first((alone[0], variables), tmp_path) == f"{uses}the wheel beside this notebook."
    assert said_first((alone[0], variables), tmp_path) == f"{uses}this environment, where it was already."


@pytest.mark.slow
@pytest.mark.parametrize("page", ["probe", "audits/probe"])
def test_a_packed_notebook_runs_in_an_empty_folder_with_nothing_installed(page, tmp_path, two_pages, colab):
    folder = tmp_path / "content"
    folder.mkdir()
    packed = two_pages[0].root / "_build" / "html" / "_sources" / "notebooks" / f"{page}.ipynb"
    (tmp_path / "temporary").mkdir()
    papermill(packed, tmp_path / "done.ipynb", folder, (colab[0], {**colab[1], "TMPDIR": str(tmp_path / "temporary")}))
    assert not list((tmp_path / "temporary").glob("walks-*"))
    text = (tmp_path / "done.ipynb").read_text()
    assert "This notebook uses the walks 0.1.0.dev0 that it carries; no package was missing." in text
    assert "Claim probe.top: The parabola reaches one." in text or "Claim probe.slope: The slope is x." in text


IMPORTS = """
import ast, json, sys
for name, source in json.load(sys.stdin):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([node], []), name, "exec"))
    print(name)
"""


@pytest.mark.slow
def test_every_notebook_installs_alike_and_imports_what_it_needs(tmp_path, colab):
    python, variables = colab
    committed = {name: nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4) for name in PAGES}
    cells = {name: [cell.source for cell in book.cells if cell.cell_type == "code"] for name, book in committed.items()}
    assert len({sources[0] for sources in cells.values()}) == 1
    first = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cells[LIGHT][0])])
    nbformat.write(first, tmp_path / "first.ipynb")
    papermill(tmp_path / "first.ipynb", tmp_path / "done.ipynb", tmp_path, colab)
    assert where_installed(colab, tmp_path) == ["spinbook", "companion"]
    assert not any(re.search(r"^\s*[%!]", source, re.MULTILINE) for sources in cells.values() for source in sources[1:])
    pages = [(name, "\n".join(sources[1:])) for name, sources in cells.items()]
    done = subprocess.run(
        [str(python), "-c", IMPORTS],
        input=json.dumps(pages),
        capture_output=True,
        text=True,
        env=variables,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == PAGES
