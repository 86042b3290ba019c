"""What a fresh machine gets: one lock, workflows that call make, a Makefile that runs nothing that was typed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+) \\$", LOCK, flags=re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_lock_has_checksums_and_neither_a_cuda_package_nor_an_address():
    assert not re.search(r"nvidia|cuda|triton", LOCK, flags=re.IGNORECASE)
    assert "://" not in LOCK
    assert "+" not in "".join(PINS.values())
    entries = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "torch" not in PINS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_commits_and_no_job_that_runs_the_code_can_write(path):
    text = path.read_text()
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action) for action in re.findall(r"uses: (\S+)", text))
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        if any("make" in step.get("run", "") or ".ci/run" in step.get("run", "") for step in job["steps"]):
            assert job["permissions"] == {"contents": "read"}, name
            assert "github.token" not in str(job["steps"]), name


@pytest.fixture
def clone(tmp_path):
    """The part of a fresh clone that `make` reads before it installs anything."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "probe.md").touch()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("name", ["", "Probe", "../probe", "$(shell touch broken)", "`touch broken`", "nothing"])
def test_a_wrong_chapter_is_refused_before_anything_is_installed_or_run(clone, name):
    command = ["make", "-C", str(clone), "chapter", f"NAME={name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "make chapter: NAME" in done.stderr
    assert not (clone / "broken").exists()
    assert not (clone / ".venv").exists()


def test_a_variable_reaches_the_command_as_it_was_typed(clone):
    python = clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" > given\n")
    python.chmod(0o755)
    (clone / ".venv" / ".installed").write_text(str(clone.resolve()))
    # The tests themselves may be run by a make that was given this variable.
    outside = {name: text for name, text in os.environ.items() if name != "WORKERS" and not name.startswith("M")}
    typed = "$(shell touch broken)`touch broken`"
    subprocess.run(["make", "-C", str(clone), "test", f"WORKERS={typed}"], check=True, capture_output=True, env=outside)
    assert not (clone / "broken").exists()
    assert typed in (clone / "given").read_text()
