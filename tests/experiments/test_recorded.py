"""The tables that lessons read are those of the whole records, and plans are as they were when records were made."""

import pytest

import spinbook.records
from experiments import records
from experiments.comparison import transient_record

TRAINED = {
    "1": "1 update",
    "2": "2 updates",
    "random": "1 to 8, drawn",
    "inf": "at rest",
    "inf, values in the field": "at rest, values in the field",
    "vanilla": "vanilla",
}


def test_losses_by_updates_are_those_of_the_record_and_all_of_them():
    table, record = spinbook.records.table("losses_by_updates"), records.of_book("transient")
    found = dict(zip(zip(table["trained"], table["used"], table["seed"], strict=True), table["loss"], strict=True))
    expected = {}
    for row, name in TRAINED.items():
        for use in transient_record.find(record, row)["uses"]:
            for seed, loss in transient_record.losses(record, row, use).items():
                expected[name, "at rest" if use == "inf" else use, seed] = loss
    assert found == pytest.approx(expected, abs=1e-9)


def test_accuracies_on_mnist_are_those_of_the_record_and_all_of_them():
    table = spinbook.records.table("comparison").query("task == 'MNIST'")
    found = dict(zip(zip(table["module"], table["seed"], strict=True), table["accuracy"], strict=True))
    runs = [run for run in records.of_book("mnist")["runs"] if run["stage"] == "run"]
    assert found == pytest.approx({(run["row"], run["seed"]): 1 - run["test"] for run in runs}, abs=1e-6)


@pytest.mark.parametrize("name", ["depth", "mnist"])
def test_the_words_of_a_plan_are_those_that_its_runs_were_made_by(name):
    record = records.of_book(name)
    assert {record["plan"], *(run["plan"] for run in record["runs"])} == {records.plan(name)}
