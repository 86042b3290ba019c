"""The tables that lessons read are those of the whole records."""

import pytest

from experiments.comparison import transient_record
from spinbook import records

TRAINED = {
    "1": "1 update",
    "2": "2 updates",
    "random": "1 to 8, drawn",
    "inf": "at rest",
    "inf, values in the field": "at rest, values in the field",
    "vanilla": "vanilla",
}


def test_losses_by_updates_are_those_of_the_record_and_all_of_them():
    table, record = records.table("losses_by_updates"), transient_record.recorded()
    found = dict(zip(zip(table["trained"], table["used"], table["seed"], strict=True), table["loss"], strict=True))
    expected = {}
    for row, name in TRAINED.items():
        for use in transient_record.find(record, row)["uses"]:
            for seed, loss in transient_record.losses(record, transient_record.Place(row, use)).items():
                expected[name, "at rest" if use == "inf" else use, seed] = loss
    assert found == pytest.approx(expected, abs=1e-9)
