"""Five figures of the book are drawn again from their archives alone: in a new environment, offline, from wheels."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from companion.site import again

ROOT = Path(__file__).resolve().parents[2]
ARCHIVES = ROOT / "_build" / "html" / "figures"
FIGURES = (
    "rbm-mixtures-landscape",
    "collectives-live",
    "adaptive-tap-cavity",
    "free-energy-live",
    "kinetic-ising-live",
)
"""Of five chapters, in JAX and in PyTorch, drawn and sampled."""


def _run(*command, cwd, **variables):
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def archives():
    """The archives of the last build; without one there is nothing to draw again."""
    found = {id: path for id in FIGURES if (path := ARCHIVES / id / f"{id}.zip").is_file()}
    if not found:
        pytest.skip("no figure was built: `make book` first")
    return found


@pytest.fixture(scope="module")
def reader(archives, tmp_path_factory):
    """The Python of a new environment, made without an index from a folder of wheels, far from the repository."""
    folder = tmp_path_factory.mktemp("reader")
    wheels, listed = folder / "wheels", folder / again.REQUIREMENTS
    with zipfile.ZipFile(next(iter(archives.values()))) as archive:
        name = next(name for name in archive.namelist() if name.endswith(again.REQUIREMENTS))
        lines = archive.read(name).decode().splitlines()
    # The library comes from a wheel that was kept, in place of its repository.
    kept = [line.partition(" @ ")[0] for line in lines if not line.startswith("#")]
    listed.write_text("\n".join(kept) + "\n", encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "-w", wheels)
    made = _run(*pip, "wheel", *options, ROOT / "companion", ROOT, cwd=folder)
    assert made.returncode == 0, made.stderr
    # Builds the wheel of a package that its index has as source alone.
    fetch = (*pip, "wheel", "--quiet", "--prefer-binary", "--no-build-isolation", "-w", wheels, "--find-links", wheels)
    fetched = _run(*fetch, "-c", ROOT / "constraints.txt", "-r", listed, cwd=folder)
    if fetched.returncode:
        pytest.skip(f"no wheels: {fetched.stderr.strip().splitlines()[-1]}")
    python = folder / "environment" / "bin" / "python"
    assert _run(sys.executable, "-m", "venv", folder / "environment", cwd=folder).returncode == 0
    # Most modules are never imported; the first figure compiles those that are.
    given = ("-m", "pip", "install", "--quiet", "--no-compile", "--no-index", "--find-links", wheels, "-r", listed)
    installed = _run(python, *given, cwd=folder, PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert installed.returncode == 0, installed.stderr
    shutil.rmtree(wheels)
    return python


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("id", FIGURES)
def test_a_figure_of_the_book_is_drawn_again_from_its_archive_alone(id, archives, reader, tmp_path):
    if id not in archives:
        pytest.skip(f"{id} was not built")
    with zipfile.ZipFile(archives[id]) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / id
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("COMPANION", "PYTHON", "JAX"))}
    # A network of its own, in which nothing can be reached, where the system lets a process have one.
    alone = ("unshare", "--map-root-user", "--net")
    apart = alone if shutil.which("unshare") and not _run(*alone, "true", cwd=folder).returncode else ()
    done = subprocess.run(
        [*apart, str(reader), again.SCRIPT], cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    compared, verdict = done.stdout.splitlines()[:-1], done.stdout.splitlines()[-1]
    assert verdict.startswith("the same numbers")
    assert len(compared) >= 2
