"""Recorded runs: every record is whole, and the script beside it still makes one of the same form."""

import gzip
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spinbook.records
from experiments import records

FOLDER = Path(__file__).resolve().parents[1] / "records"
RUNS = sorted(path.parent.name for path in FOLDER.glob("*/run.py"))


def numbers(value):
    """All numbers in a value of JSON."""
    if isinstance(value, dict | list):
        return [number for part in (value.values() if isinstance(value, dict) else value) for number in numbers(part)]
    return [float(value)] if isinstance(value, int | float) else []


def agree(new, old, where=""):
    """What a brief run writes has no entry that the record lacks; rows have all entries of rows of their kind."""
    if isinstance(new, dict) and isinstance(old, dict):
        assert new.keys() <= old.keys(), (where, new.keys() - old.keys())
        for name in new:
            agree(new[name], old[name], f"{where}.{name}")
    elif isinstance(new, list) and new and isinstance(new[0], dict):
        forms = {frozenset(row) for row in old}
        assert {frozenset(row) for row in new} <= forms, where


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.json.gz")), ids=lambda path: path.name)
def test_a_record_reads_whole(path):
    record = records.of_book(path.parent.name, path.name.removesuffix(".json.gz"))
    assert all(map(math.isfinite, numbers(record)))
    assert len(numbers(record)) > 10


ALL_IN_TURN = """
import runpy, sys
for script, out in zip(sys.argv[1::2], sys.argv[2::2]):
    sys.argv = [script, "--brief", "--out", out]
    runpy.run_path(script, run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.long
def test_brief_runs_write_what_is_recorded(tmp_path):
    # One process imports the frameworks once, and compiles once what several runs call.
    arguments = [path for name in RUNS for path in (FOLDER / name / "run.py", tmp_path / name)]
    quickly = os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"}
    command = [sys.executable, "-c", ALL_IN_TURN, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quickly)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in RUNS:
        written = list((tmp_path / name).glob("*.json.gz"))
        for path in written:
            new, old = records.read(path), records.of_book(name, path.name.removesuffix(".json.gz"))
            agree(new, old, path.name)
            assert new.keys() == old.keys(), path
            assert len(numbers(new)) > 10, path
            assert all(map(math.isfinite, numbers(new))), path
        tables = list((tmp_path / name).glob("*.csv"))
        for path in tables:
            new, old = pd.read_csv(path, comment="#"), spinbook.records.table(path.stem)
            assert list(new) == list(old), path
            assert np.isfinite(new.select_dtypes(float)).any().all(), path
        assert written or tables, name


def test_a_record_that_is_too_large_or_changed_is_refused(tmp_path):
    with pytest.raises(ValueError, match="record: expected at most 2000000 bytes, got"):
        records.write(tmp_path / "large", {"noise": np.random.default_rng(0).bytes(2_000_000).hex()})
    assert not list(tmp_path.iterdir())
    records.write(tmp_path / "record", {"accuracy": 0.5})
    assert records.read(tmp_path / "record")["accuracy"] == 0.5
    text = gzip.decompress((tmp_path / "record").read_bytes())
    (tmp_path / "record").write_bytes(gzip.compress(text.replace(b"0.5", b"0.6")))
    with pytest.raises(ValueError, match="path: expected a record that fits its checksum"):
        records.read(tmp_path / "record")
    (tmp_path / "record").write_bytes(text[:5])
    with pytest.raises(ValueError, match="path: expected a whole record, got a damaged file"):
        records.read(tmp_path / "record")
    with pytest.raises(FileNotFoundError, match=r"records/looped/unheard\.json\.gz: expected a file"):
        records.of_book("looped", "unheard")
