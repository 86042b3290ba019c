"""What a fresh machine gets: one list of dependencies, one lock, and workflows that only call make."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from spinbook import project
from spinbook.pipeline import citation, notebooks

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", LOCK, flags=re.MULTILINE))


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements):
    return {canonical(re.match(r"[A-Za-z0-9._-]+", requirement)[0]) for requirement in requirements}


def test_the_lock_pins_every_direct_dependency():
    direct = names(PROJECT["dependencies"]).union(
        *(names(extra) for extra in PROJECT["optional-dependencies"].values())
    )
    assert direct <= {canonical(name) for name in PINS}


def test_the_lock_holds_no_cuda_package_no_address_and_no_local_version():
    assert not re.search(r"nvidia|cuda|triton", LOCK, flags=re.IGNORECASE)
    assert "://" not in LOCK
    assert "+" not in "".join(PINS.values())


def test_torch_is_pinned_alike_in_constraints_and_lock():
    constraints = (ROOT / "constraints.txt").read_text()
    assert re.search(r"^torch==(\S+)$", constraints, flags=re.MULTILINE)[1] == PINS["torch"]


def test_every_install_of_the_makefile_obeys_the_constraints():
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if re.search(r"pip install\b", line)]
    assert installs
    for line in installs:
        # The newest versions are the point of one target; the project itself is installed without dependencies.
        assert "-c constraints.txt" in line or "--no-deps" in line or "--upgrade-strategy eager" in line


def test_the_conda_environment_adds_nothing_to_the_project():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *plain, pip = environment["dependencies"]
    assert plain == [f"python{PROJECT['requires-python']}", "pip"]
    assert pip["pip"] == ["-c constraints.txt", "-e .[book,test]"]
    assert {"book", "test"} <= set(PROJECT["optional-dependencies"])


def test_the_workflows_call_make_and_nothing_else():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        jobs = yaml.safe_load(path.read_text())["jobs"]
        for job in jobs.values():
            commands = [step["run"] for step in job["steps"] if "run" in step]
            assert all(re.match(r"(make |bash \.ci/run|gh issue create )", command) for command in commands), path


def test_ci_runs_check_book_and_all_tests():
    script = (ROOT / ".ci" / "run").read_text()
    assert script.index("make check") < script.index("make book") < script.index("make test SLOW=1")


def test_make_alone_lists_every_target_in_one_line():
    shown = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True).stdout
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)[1].split()
    lines = [line for line in shown.splitlines() if line.startswith("make ") and "Entering" not in line]
    assert [line.split()[1] for line in lines] == targets


def test_the_repository_address_is_typed_in_one_file_only():
    address = project.identity(ROOT).repository
    tracked = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True).stdout
    derived = {"CITATION.cff", "tests/book/test_build.py"} | {
        f"notebooks/{name}.ipynb" for name in notebooks.names(ROOT)
    }
    holders = {
        name
        for name in tracked.splitlines()
        if "_static" not in name and (ROOT / name).is_file() and address in (ROOT / name).read_text(errors="ignore")
    }
    assert holders - derived == {"_config.yml"}


def test_committed_pairs_and_citation_are_in_sync():
    assert notebooks.out_of_sync(ROOT) == []
    assert citation.out_of_sync(ROOT) == []


@pytest.mark.slow
def test_the_wheel_carries_claims_and_references_and_works_in_an_empty_folder(tmp_path):
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    wheel = tmp_path / done.stdout.split()[-1]
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)], check=True
    )
    code = (
        "import spinbook.project as p; from spinbook import claims; assert 'site' in p.__file__, p.__file__; "
        "claims.measure('rbm-mixtures.convex-hull', 0.0)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Claim rbm-mixtures.convex-hull" in shown
    assert "no such claim" not in shown
