"""What a fresh machine gets: one list of dependencies, one lock, and workflows that only call make."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from companion import project
from companion.declaring import notebooks
from companion.site import citation

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+) \\$", LOCK, flags=re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_lock_holds_no_cuda_package_no_address_and_no_local_version():
    assert not re.search(r"nvidia|cuda|triton", LOCK, flags=re.IGNORECASE)
    assert "://" not in LOCK
    assert "+" not in "".join(PINS.values())


def test_the_lock_gives_checksums_of_every_package_and_leaves_torch_to_the_constraints():
    entries = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) == len(PINS)
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry.splitlines()[0]
    assert "torch" not in PINS
    assert re.search(r"^torch==\d[\d.]*$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)
    assert "--require-hashes --no-deps -r requirements.lock" in (ROOT / "Makefile").read_text()


def test_every_install_of_the_makefile_obeys_the_constraints():
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if re.search(r"pip install\b", line)]
    assert installs
    for line in installs:
        # The newest versions are the point of one target; the project itself is installed without dependencies.
        # So are Colab's own for two.
        assert any(how in line for how in ("-c constraints.txt", "--no-deps", "--upgrade-strategy eager", "colab.txt"))


def test_the_conda_environment_adds_nothing_to_the_project():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *plain, pip = environment["dependencies"]
    assert plain == [f"python{PROJECT['requires-python'].replace('>=', '=')}", "pip"]
    assert pip["pip"] == ["-c constraints.txt", "-e ./companion[book]", "-e .[notebook,test]"]
    assert {"notebook", "test"} <= set(PROJECT["optional-dependencies"])


def test_the_workflows_call_make_and_nothing_else():
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text())["jobs"]
        for job in jobs.values():
            commands = [step["run"] for step in job["steps"] if "run" in step]
            assert all(re.match(r"(make |bash \.ci/run|gh issue create )", command) for command in commands), path


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_commits_and_no_job_that_runs_code_can_write(path):
    text = path.read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    for action, release in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", release), f"{action} does not say which release it is"
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["group"]
    for name, job in workflow["jobs"].items():
        steps = job["steps"]
        if any("make" in step.get("run", "") or ".ci/run" in step.get("run", "") for step in steps):
            assert job["permissions"] == {"contents": "read"}, name
            assert "github.token" not in str(steps), name
        for step in steps:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, name
                assert "write" not in job["permissions"].values(), name


def test_ci_runs_check_book_and_all_tests():
    script = (ROOT / ".ci" / "run").read_text()
    assert script.index("make check") < script.index("make book") < script.index("make test SLOW=1")


def test_make_alone_lists_every_target_in_one_line():
    shown = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True).stdout
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)[1].split()
    lines = [line for line in shown.splitlines() if line.startswith("make ") and "Entering" not in line]
    assert [line.split()[1] for line in lines] == targets


@pytest.fixture
def clone(tmp_path):
    """The part of a fresh clone that `make chapter` reads before it installs anything."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "probe.md").touch()
    (tmp_path / "companion").mkdir()
    for name in ("Makefile", "pyproject.toml", "companion/pyproject.toml", "constraints.txt", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


NAMES = {
    "": "NAME is missing",
    "Probe": "NAME: expected lower-case letters, digits and hyphens",
    "../probe": "NAME: expected lower-case letters, digits and hyphens",
    "probe; touch broken": "NAME: expected lower-case letters, digits and hyphens",
    '"; touch broken; "': "NAME: expected lower-case letters, digits and hyphens",
    "$(shell touch broken)": "NAME: expected lower-case letters, digits and hyphens",
    "$$(touch broken)": "NAME: expected lower-case letters, digits and hyphens",
    "`touch broken`": "NAME: expected lower-case letters, digits and hyphens",
    "nothing": "NAME: expected a chapter, a file of notebooks/, got nothing",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_chapter_is_refused_before_anything_is_installed_or_run(clone, name):
    done = subprocess.run(
        ["make", "-C", str(clone), "chapter", f"NAME={name}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"make chapter: {NAMES[name]}" in done.stderr
    assert "Installing" not in done.stdout
    assert not (clone / "broken").exists()
    assert not (clone / ".venv").exists()


def test_a_right_chapter_is_installed_for_then_run(clone):
    # An interpreter that fails ends the installation at once.
    done = subprocess.run(
        ["make", "-C", str(clone), "chapter", "NAME=probe", "PYTHON=false"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Installing" in done.stdout
    assert "make chapter:" not in done.stderr


PYTEST = ["-m", "pytest", "-n", "2", "--dist", "worksteal", "-m"]
TYPED = {
    "FOLDER": ("sources", ["-m", "companion", "sources", "{}"]),
    "CANDIDATE": ("freeze", ["-m", "companion", "freeze", "--candidate", "{}"]),
    "LIMIT": ("test", [*PYTEST, "not slow", "--longest-fast-test", "{}"]),
    "WORKERS": ("test", [*(part.replace("2", "{}") for part in PYTEST), "not slow"]),
    "SLOW": ("test", [*PYTEST, "slow or not slow", "tests", "companion/tests", "companion/src"]),
    "RECORD": ("bench", ["-m", "benchmarks", "--record"]),
}
"""Variables of the Makefile, a target that reads each, and what the command of the target is given."""


@pytest.mark.parametrize("variable", TYPED)
@pytest.mark.parametrize("value", ["$(shell touch broken)", "$$(touch broken)", "`touch broken`", '"; touch broken; "'])
def test_a_variable_reaches_the_command_as_it_was_typed(clone, variable, value):
    target, expected = TYPED[variable]
    python = clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" > given\n")
    python.chmod(0o755)
    (clone / ".venv" / ".installed").write_text(str(clone.resolve()))
    # The tests themselves may be run by a make that was given these variables.
    outside = {name: text for name, text in os.environ.items() if name not in TYPED and not name.startswith("M")}
    command = ["make", "-C", str(clone), target, f"{variable}={value}"]
    subprocess.run(command, check=True, capture_output=True, env=outside)
    assert not (clone / "broken").exists()
    assert (clone / "given").read_text().splitlines() == [part.replace("{}", value) for part in expected]


ALONE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"companion"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

sys.meta_path.insert(0, Missing())
from companion.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def command(*arguments, folder):
    """Run the command where the library is installed and no other package is."""
    return subprocess.run(
        [sys.executable, "-c", ALONE, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "companion" / "src"), "PATH": ""},
    )


def test_the_command_helps_without_the_packages_of_the_book_and_outside_the_repository(tmp_path):
    shown = command("--help", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "check-sync" in shown.stdout
    assert "the extra `book`" in " ".join(shown.stdout.split())
    refused = command("book", folder=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: --root: expected the repository of the book, got ")
    assert "Traceback" not in refused.stderr
    lacking = command("--root", str(ROOT), "check-sync", folder=tmp_path)
    assert lacking.returncode == 2
    assert re.match(r"error: `companion check-sync` needs the package '\w+', which is not installed;", lacking.stderr)
    assert "extra `book`" in lacking.stderr
    assert len(lacking.stderr.splitlines()) == 1


def test_the_repository_address_is_typed_in_one_file_only():
    address = project.identity(ROOT).repository
    derived = {"CITATION.cff", "companion/tests/test_build.py"} | {
        f"notebooks/{name}.ipynb" for name in notebooks.names(ROOT)
    }
    holders = set()
    for folder, inside, names in os.walk(ROOT):
        # Without `_build`, `_static`, environments and caches.
        inside[:] = [name for name in inside if not name.startswith((".", "_")) or name in {".ci", ".github"}]
        files = [Path(folder, name) for name in names if not name.startswith(".")]
        holders |= {path.relative_to(ROOT).as_posix() for path in files if address in path.read_text(errors="ignore")}
    assert holders - derived == {"_config.yml"}


def test_committed_pairs_and_citation_are_in_sync():
    assert notebooks.out_of_sync(ROOT) == []
    assert citation.out_of_sync(ROOT) == []


def test_jupyterlab_changes_nothing_in_the_environment_of_the_lock():
    """JupyterLab asks for a jsonschema that cffconvert, which `make check` runs, refuses."""
    recipe = (ROOT / "Makefile").read_text().partition("\nlab:")[2].partition("\n\n")[0]
    assert "_build/lab/bin/pip install" in recipe
    assert not re.search(r"\$\(BIN\)/(?:pip|python -m pip) install", recipe)
