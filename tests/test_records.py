"""Recorded runs: every record is whole, and the script beside it still makes one of the same form."""

import gzip
import math
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


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_brief_run_writes_what_is_recorded(name, tmp_path):
    command = [sys.executable, FOLDER / name / "run.py", "--brief", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    written = list(tmp_path.glob("*.json.gz"))
    for path in written:
        new, old = records.read(path), records.of_book(name, path.name.removesuffix(".json.gz"))
        assert new.keys() == old.keys()
        agree(new, old)
        assert len(numbers(new)) > 10
        assert all(map(math.isfinite, numbers(new)))
    tables = list(tmp_path.glob("*.csv"))
    for path in tables:
        new, old = pd.read_csv(path, comment="#"), spinbook.records.table(path.stem)
        assert list(new) == list(old)
        assert np.isfinite(new.select_dtypes(float)).any().all()
    assert written or tables


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
