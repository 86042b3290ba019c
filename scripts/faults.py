"""Plant the faults of tests/faults.yml one at a time in a copy of the repository, and run the tests named for each.

``python scripts/faults.py [ID ...]``: all faults, or some. A fault is a text that stands once in a file, and the text
that stands there instead. Prints a line for each, and ends with status 1 if a fault was seen by no test, or its text is
not there any more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 2
"""Copies that are tested side by side, one for each core."""
LIMIT_SECONDS = 1_200


def planted(fault: Mapping[str, Any]) -> str:
    """The file of a fault with the fault in it; raises ``ValueError`` if its text does not stand there once."""
    path = ROOT / fault["file"]
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if (count := text.count(fault["old"])) != 1:
        raise ValueError(f"old: expected it once in {fault['file']}, got it {count} times")
    return text.replace(fault["old"], fault["new"])


def outcome(fault: Mapping[str, Any]) -> str:
    """``seen``, ``NOT SEEN``, or what is wrong with the fault."""
    try:
        text = planted(fault)
    except ValueError as error:
        return f"NOT PLANTED: {error}"
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        copy = Path(folder) / "book"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "_build", "__pycache__"))
        (copy / fault["file"]).write_text(text, encoding="utf-8")
        tests = [name for name in fault["tests"] if (copy / name).exists()]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "slow or not slow",
            *tests,
        ]
        # The packages of the copy come before those that are installed.
        environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return "seen: the tests do not end"
    if not tests or done.returncode not in (0, 1, 2):
        return f"NOT PLANTED: pytest ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"seen: {failed[0][:100] if failed else 'pytest could not collect'}" if done.returncode else "NOT SEEN"


def main(ids: list[str]) -> int:
    """Plant the faults of these ids, or all; returns the status."""
    faults = yaml.safe_load((ROOT / "tests" / "faults.yml").read_text(encoding="utf-8"))
    known = [fault["id"] for fault in faults]
    if unknown := sorted(set(ids) - set(known)):
        print(f"ID: expected some of {known}, got {unknown}", file=sys.stderr)
        return 2
    wanted = [fault for fault in faults if not ids or fault["id"] in ids]
    missed = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for fault, said in zip(wanted, pool.map(outcome, wanted), strict=True):
            missed += not said.startswith("seen")
            print(f"{fault['id']}: {said}", flush=True)
    print(f"{len(wanted) - missed} of {len(wanted)} faults are seen")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
