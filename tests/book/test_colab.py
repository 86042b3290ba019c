"""Every notebook as Colab runs it: alone, in an empty folder, with nothing installed but what its first cell installs.

The environment is new and holds neither the library nor the machinery; the other packages are lent to it, as Colab
brings its own. The install cell is executed as it is committed; git is told to read this repository where the cell
names the public one.
"""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest
import yaml

from companion import project
from companion.pipeline import notebooks

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = project.identity(ROOT).repository


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """A repository that holds the working tree as its main branch, uncommitted changes too."""
    copy = tmp_path_factory.mktemp("public") / "spinbook"
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
    """An interpreter of its own, and the environment variables under which its kernel starts."""
    folder = tmp_path_factory.mktemp("colab")
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
        if not entry.name.startswith(("companion", "spinbook", "_spinbook")):
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
    _, variables = colab
    folder.mkdir()
    quick = folder.with_name("quick.yml")
    quick.write_text(yaml.safe_dump(dict(notebooks.load(ROOT, name).quick)))
    out = folder.with_name(f"{notebooks.slug(name)}.ipynb")
    command = [sys.executable, "-m", "papermill", str(ROOT / "notebooks" / f"{name}.ipynb"), str(out)]
    command += ["--kernel", "colab", "--cwd", str(folder), "-f", str(quick), "--no-progress-bar"]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return nbformat.read(out, as_version=4)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", notebooks.names(ROOT))
def test_the_committed_notebook_runs_in_an_empty_folder(name, tmp_path, colab):
    executed = run(name, tmp_path / "content", colab)
    python, variables = colab
    where = subprocess.run(
        [str(python), "-c", "import spinbook; print(spinbook.__file__)"],
        capture_output=True,
        text=True,
        env=variables,
        cwd=tmp_path,
        check=True,
    ).stdout
    assert str(python.parent.parent) in where, "the library came from the install cell"
    assert not [cell for cell in executed.cells if "undeclared" in json.dumps(cell.get("outputs", []))]
