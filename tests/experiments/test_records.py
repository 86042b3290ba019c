"""Records are whole, small and sealed, and what is measured comes back as it was."""

import gzip
from typing import NamedTuple

import numpy as np
import pytest

from experiments import records


class Case(NamedTuple):
    size: int


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


def third(case):
    return {"third": np.array([case.size / 3, np.nan])}


@pytest.mark.parametrize(("digits", "value"), [(2, 0.67), (17, 2 / 3)])
def test_cases_of_all_kinds_come_back_with_so_many_digits(digits, value, tmp_path, monkeypatch):
    kinds = {"some": (third, [Case(1), Case(2)]), "others": (third, [Case(4)])}
    records.measure(tmp_path, "cases", "cases.json.gz", kinds, digits=digits)
    monkeypatch.setattr(records.resources, "files", lambda _: tmp_path)
    some, others = records.measured("experiments", "cases.json.gz", some=Case, others=Case)
    assert [case for case, _ in (*some, *others)] == [Case(1), Case(2), Case(4)]
    np.testing.assert_array_equal(some[1][1]["third"], [value, np.nan])
