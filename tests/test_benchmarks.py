"""Benchmarks at tiny size: ours equals the baseline, and a wrong or infinite result is refused before it is timed."""

from dataclasses import replace

import numpy as np
import pytest

import benchmarks
from benchmarks import rbm
from benchmarks.__main__ import main

SIZES = {rbm.retrieve: 30, rbm.mixture_log_density: 30, rbm.interactions: 5, rbm.simulate: 100}


def make(function):
    return function(size=SIZES[function])


def test_every_benchmark_has_a_tiny_size():
    assert set(SIZES) == set(rbm.BENCHMARKS)


@pytest.mark.parametrize("function", rbm.BENCHMARKS, ids=lambda function: function.__name__)
def test_ours_equals_the_baseline(function):
    benchmarks.verify(make(function))


@pytest.mark.parametrize("function", [rbm.retrieve, rbm.mixture_log_density, rbm.interactions])
def test_a_relative_error_of_a_billionth_is_noticed(function):
    good = make(function)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=lambda: np.asarray(good.ours()) * (1 + 1e-9)))


def test_a_sampler_that_stands_still_every_other_step_is_noticed():
    # It has the right stationary distribution, and only neighbouring times tell.
    good = make(rbm.simulate)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=lambda: np.repeat(np.asarray(good.ours())[::2], 2, axis=0)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_result_that_is_not_finite_is_refused(bad):
    good = make(rbm.interactions)
    with pytest.raises(ValueError, match="expected finite numbers, got 1 that"):
        benchmarks.measure(replace(good, ours=lambda: np.append(np.zeros(31), bad)))


def test_a_baseline_of_nan_or_of_another_shape_agrees_with_nothing():
    good = make(rbm.interactions)
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
    good = make(rbm.interactions)
    bad = replace(good, name="wrong", ours=lambda: np.zeros(32))
    monkeypatch.setattr(benchmarks.__main__, "SUBJECTS", (rbm,))
    monkeypatch.setattr(rbm, "BENCHMARKS", (lambda: bad, lambda: good))
    assert main() == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("wrong: expected the baseline's result")
    assert [line.split()[-1] for line in printed.out.splitlines()[:2]] == ["ratio", "-"]
    assert good.name in printed.out
    monkeypatch.setattr(rbm, "BENCHMARKS", (lambda: good,))
    assert main() == 0
