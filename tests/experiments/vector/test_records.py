"""Records of vector spins hold every case of the book, and what a quick run writes is read as they are."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from experiments import records
from experiments.vector import calibration, fidelity, shapes

PLANNED = {
    "calibration": (calibration, [calibration.cells(), calibration.noises(), calibration.draws()]),
    "fidelity": (fidelity, [fidelity.cases()]),
    "shapes": (shapes, [shapes.cases()]),
}
SLOW = {"calibration", "fidelity"}


def tables(module):
    """The tables of the record of a module, each a list of cases with what was found of them."""
    found = module.record()
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("name", PLANNED)
def test_a_record_holds_every_case(name):
    module, planned = PLANNED[name]
    assert [[case for case, _ in table] for table in tables(module)] == planned


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PLANNED]
)
def test_a_quick_run_writes_what_the_record_holds(name, tmp_path, monkeypatch):
    module, planned = PLANNED[name]
    wanted = [{frozenset(found) for _, found in table} for table in tables(module)]
    with ThreadPoolExecutor(1) as executor:
        module.compute(tmp_path, True, executor=executor, progress=False)
    monkeypatch.setattr(records.resources, "files", lambda _: tmp_path)
    written = tables(module)
    assert [{frozenset(found) for _, found in table} for table in written] == wanted
    assert all(0 < len(table) < len(cases) for table, cases in zip(written, planned, strict=True))
