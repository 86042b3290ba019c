"""Benchmarks at tiny size: ours equals the baseline, and a wrong or infinite result is refused before it is timed."""

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import benchmarks
from benchmarks import gpu, peers, rbm, record, scaling
from benchmarks.__main__ import GUARDED, SUBJECTS, guard, main


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_result_that_is_not_finite_is_refused(bad):
    good = rbm.interactions(size=5)
    with pytest.raises(ValueError, match="expected finite numbers, got 1 that"):
        benchmarks.measure(replace(good, ours=lambda: np.append(np.zeros(31), bad)))


def test_a_baseline_of_nan_or_of_another_shape_agrees_with_nothing():
    good = rbm.interactions(size=5)
    with pytest.raises(ValueError, match="tolerances away"):
        benchmarks.verify(replace(good, baseline=lambda: np.full(32, np.nan)))
    with pytest.raises(ValueError, match="expected shape"):
        benchmarks.verify(replace(good, baseline=lambda: np.zeros(1)))


def test_timing_alternates_and_takes_the_median():
    calls = []
    benchmark = benchmarks.Benchmark(
        "calls",
        lambda: np.asarray(float(calls.append("ours") is None)),
        lambda: np.asarray(float(calls.append("baseline") is None)),
        lambda ours, baseline: 0.0,
    )
    timing = benchmarks.measure(benchmark, repeats=3)
    assert calls == ["ours", "baseline"] * 4
    assert timing.ratio == timing.baseline / timing.ours > 0
    assert "calls" in benchmarks.table([("calls", timing)])
    assert "failed" in benchmarks.table([("calls", None)])


def test_one_wrong_result_makes_the_exit_status_one_and_the_others_are_still_timed(monkeypatch, capsys):
    good = rbm.interactions(size=5)
    bad = replace(good, name="wrong", ours=lambda: np.zeros(32))
    monkeypatch.setattr(benchmarks.__main__, "SUBJECTS", (rbm,))
    monkeypatch.setattr(rbm, "BENCHMARKS", (lambda: bad, lambda: good))
    assert main() == 1
    printed = capsys.readouterr()
    assert "\nwrong: expected the baseline's result" in printed.err
    assert [line.split()[-1] for line in printed.out.splitlines()[:2]] == ["ratio", "-"]
    assert good.name in printed.out
    monkeypatch.setattr(rbm, "BENCHMARKS", (lambda: good,))
    assert main() == 0


def test_the_page_is_that_of_the_record_and_names_every_benchmark():
    made = record.read()
    assert record.PAGE.read_text(encoding="utf-8") == record.page(made)
    subjects = {row["subject"] for row in made["rows"]}
    assert subjects == {*(subject.__name__.rpartition(".")[2] for subject in SUBJECTS), "peers"}
    assert [(row["name"], row["of"]) for row in made["scaling"]] == [(path.name, path.of) for path in scaling.PATHS]
    assert {make.__module__ for make in GUARDED} <= {subject.__name__ for subject in SUBJECTS}


def test_the_guard_fails_below_half_of_the_record_and_for_a_row_that_it_lacks():
    good = rbm.interactions(size=5)
    row = {"name": good.name, "ratio": 1e9, "processor_ratio": 1e-6}
    # By one of the two it is as fast as it was.
    assert guard({"rows": [row]}, [lambda: good]) == []
    (slow,) = guard({"rows": [row | {"processor_ratio": 1e9}]}, [lambda: good])
    assert "expected at least 5e+08 times the baseline's speed, the record's by a factor of 2" in slow
    (missing,) = guard({"rows": []}, [lambda: good])
    assert "expected a row of the record" in missing


def test_an_exponent_is_the_slope_of_the_work_and_not_of_the_machine():
    # Each size works that many times as long by the processor's clock, however busy the machine is.
    def work(size):
        def function():
            end = time.process_time() + 0.002 * size
            while time.process_time() < end:
                pass

        return function

    found = scaling.slope(scaling.Path("loops", "turns", 1.0, (1, 4, 16), work), repeats=3)
    assert abs(found.exponent - 1) < 0.1
    assert found.seconds[0] < found.seconds[1] < found.seconds[2]


def test_the_extremes_of_an_exponent_are_those_of_single_rounds(monkeypatch):
    rounds = iter([1.4, 1.5, 1.7])

    def seconds(function):
        size = function()
        if size == 1:
            seconds.power = next(rounds)
        return 0.0, size**seconds.power

    monkeypatch.setattr(scaling, "seconds", seconds)
    found = scaling.slope(scaling.Path("powers", "sizes", 1.5, (1, 2, 4), lambda size: lambda: size), repeats=3)
    np.testing.assert_allclose((found.exponent, found.least, found.most), (1.5, 1.4, 1.7), rtol=1e-12)
    monkeypatch.setattr(scaling, "seconds", lambda function: (1.0, 0.0))
    with pytest.raises(ValueError, match="expected times that can be fitted"):
        scaling.slope(scaling.Path("nothing", "sizes", 1.0, (1, 2), lambda size: lambda: np.zeros(1)), repeats=1)


def test_the_page_says_where_the_library_is_not_faster():
    row = {"subject": "rbm", "name": "", "ratio": 1.0, "processor_ratio": 1.0, "seconds": [1.0, 1.0]}
    rows = [
        row | {"name": name, "least": least, "most": most}
        for name, least, most in (("a slow one", 0.5, 0.9), ("an even one", 0.9, 1.1), ("a fast one", 1.1, 2.0))
    ]
    goal = row | {"name": record.GOALS[2][0], "least": 0.3, "most": 0.9, "ratio": 0.5}
    page = record.page(record.read() | {"rows": [*rows, goal]})
    before, after = page.split("Not to be told from")
    listed = after.split("## Beside plain programs")[0]
    assert "- a slow one: 1 times as fast (0.5 to 0.9)" in before
    assert "a slow one" not in listed
    assert "- an even one: 1 times as fast (0.9 to 1.1)" in listed
    assert "a fast one" not in before + listed
    assert f"| {record.GOALS[2][0]} | 0.67 | 0.5 | 1 | not reached |" in page
    assert "It took 2.00:" in page


def test_a_record_can_be_begun_anew():
    # The page is written after every row, and the first has none of those that its sentences quote.
    made = record.read()
    page = record.page({"format": 1, "rows": made["rows"][:1], "scaling": [], "machine": made["machine"]})
    assert made["rows"][0]["name"] in page
    assert "cannot be as fast as a vanilla block" not in page


def test_the_median_lies_in_the_middle_as_often_as_promised():
    draws = np.random.default_rng(0).normal(size=(4000, 25))
    for n, promised in ((3, 3 / 4), (5, 15 / 16), (12, 15 / 16), (25, 15 / 16)):
        low, high = np.array([benchmarks.middle(row[:n]) for row in draws]).T
        held = np.mean((low < 0) & (high > 0))
        assert held > promised - 4 * np.sqrt(promised * (1 - promised) / len(draws))
        # And not much oftener, or the interval would be too wide.
        assert held < promised + 0.06


def test_loads_are_told_for_the_parts_that_were_measured_apart():
    page = record.page(
        record.read() | {"machine": record.machine() | {"loads": {"rbm": 0.3, "ising": 0.3, "peers": 4.0}}}
    )
    assert "wanted a processor, was\n0.3 (4.0 for peers)." in page


def test_memory_is_what_a_call_adds():
    size = 2**25
    added = benchmarks.added_memory(lambda: np.ones(size // 8))
    assert added is None or 0.9 * size < added < 1.5 * size


def test_memory_that_was_free_before_a_call_counts():
    # Many arrays below the size from which the allocator asks the system for each: their memory is kept when they go,
    # as long as the last one holds the end of the heap.
    *kept, last = [np.ones(2**13) for _ in range(512)]
    del kept
    added = benchmarks.added_memory(lambda: [np.ones(2**13) for _ in range(512)])
    assert last.all()
    assert added is None or 0.9 * 2**25 < added < 1.5 * 2**25


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        partial(gpu.module, 12, batch=2, dim=16, num_heads=2),
        partial(gpu.module, 12, batch=2, dim=16, num_heads=2, gradient=True),
        partial(gpu.tap, 12, dim=8),
        partial(gpu.spins, 40, num_spins=12, steps=3),
        partial(gpu.adaptive_tap, 6, dim=4),
        partial(gpu.mean_spins, 8, dim=4),
        partial(gpu.orbit, 20),
    ],
)
def test_what_is_timed_on_a_gpu_runs_where_there_is_none(make):
    benchmarks.verify(make())


def test_only_a_gpu_is_recorded_as_one_and_the_page_has_all_of_its_rows(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        main(["--gpu"])
    assert "--gpu: expected a GPU that JAX and PyTorch can use, got none" in capsys.readouterr().err
    made = record.read()
    assert len(made["gpu"]["rows"]) == len(gpu.BENCHMARKS + gpu.BESIDE_A_BLOCK)
    section = record.page(made).partition("## On a GPU")[2].partition("\n## ")[0]
    assert all(f"| {row['name']} | {row['ratio']:.3g} |" in section for row in made["gpu"]["rows"])
    # What the page says of them in words.
    ratios = {row["name"]: row["ratio"] for row in made["gpu"]["rows"]}
    beside_a_block = {row["name"]: row["ratio"] for row in made["rows"] if row["name"] in ratios}
    assert len(beside_a_block) == len(gpu.BESIDE_A_BLOCK)
    assert all(ratios[name] < ratio for name, ratio in beside_a_block.items())
    assert [name for name in ratios.keys() - beside_a_block.keys() if ratios[name] < 1] == [
        "self_attention.mean_field.simulate, one orbit x 2000 steps"
    ]
    del made["gpu"]
    assert "No GPU has been measured" in record.page(made)


@pytest.mark.skipif(not peers.installed()[:-1], reason="no peer is installed")
@pytest.mark.parametrize("make", peers.installed()[:-1])
def test_peers_find_the_same_exponents(make):
    benchmarks.verify(make(steps=2000))


def test_the_layer_of_pytorch_is_finite_beside_the_module():
    benchmarks.verify(peers.torch_block(16, dim=32, num_heads=2))
