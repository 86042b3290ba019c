"""What the engine costs is measured of results that are right, and wrong ones are refused."""

import numpy as np
import pytest

from benchmarks import sweep as bench


@pytest.mark.slow
def test_workers_take_turns_at_the_same_orbits():
    ratios = bench.efficiency("threads", size=64, steps=40, repeats=3)
    assert len(ratios) == 3
    assert min(ratios) > 0


def test_other_numbers_from_two_workers_are_noticed(monkeypatch):
    good = bench._diagram

    def other(size, steps, *, num_threads):
        diagram = good(size, steps, num_threads=num_threads)
        return diagram if num_threads == 1 else diagram.assign(exponents=diagram.exponents + 1e-15)

    monkeypatch.setattr(bench, "_diagram", other)
    with pytest.raises(ValueError, match="threads: expected the same bits"):
        bench.efficiency("threads", size=64, steps=40, repeats=1)


def test_what_a_task_costs_is_that_of_every_one_of_them_in_its_place(monkeypatch):
    few, many = (bench.overhead("threads", num_bytes=8, num_tasks=number) for number in (50, 400))
    assert 0 < many < 10 * few
    monkeypatch.setattr(bench, "nothing", lambda size, task: {"x": np.zeros(1)})
    with pytest.raises(ValueError, match="result of each task in its place"):
        bench.overhead("threads", num_bytes=8, num_tasks=5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["processes", "dask"])
def test_other_processes_find_what_is_measured(kind, workers_alike):
    if kind == "dask":
        pytest.importorskip("distributed")
    assert bench.overhead(kind, num_bytes=8, num_tasks=20) > 0


def test_an_unknown_kind_is_named(capsys):
    with pytest.raises(SystemExit):
        bench.main(["nodes"])
    assert "KIND: expected some of threads, processes, dask, got nodes" in capsys.readouterr().err
