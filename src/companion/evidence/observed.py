"""What faults, epsilon and portability observe alike: claims that a page's run measured, and tests that fail."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from companion import claims
from companion.declaring import notebooks
from companion.running import disk, execution, freshness


def key(root: Path, page: str) -> str:
    """What the numbers of a page are made of."""
    return freshness.evidence_key(freshness.ingredients(root, notebooks.load(root, page)))


def measured(folder: Path) -> dict[str, list[Any]]:
    """What a run in ``folder`` measured, as ``claims.Measurement`` takes it, by the ids of the claims."""
    return {id: [found.value, found.uncertainty, found.rival, found.control] for id, found in claims.recorded(folder)}


def run_tests(
    files: Sequence[str],
    folder: Path,
    *options: str,
    threads: int | None,
    variables: Mapping[str, str],
    python: Path = Path(sys.executable),
) -> tuple[int, list[str]] | None:
    """Run the tests in ``files`` that are not slow: how many there are, and the names of those that fail.

    None where pytest ended before it had a report, as it does when a module cannot be imported at all.
    """
    report = folder / "report.xml"
    disk.remove(report)
    given = {} if threads is None else dict.fromkeys(execution.THREAD_VARIABLES, str(threads))
    command = [str(python), "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow", *options]
    environment = {**os.environ, **given, **variables}
    subprocess.run([*command, f"--junitxml={report}", *files], env=environment, check=False)
    if not report.is_file():
        return None
    cases = list(ElementTree.parse(report).iter("testcase"))
    red = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return len(cases), [f"{case.get('classname', '')}::{case.get('name', '')}" for case in red]
