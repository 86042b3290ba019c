"""Benchmarks agree with their baselines at a small size, a wrong result is not timed, and the page has all rows."""

import numpy as np
import pytest

from benchmarks import Benchmark, __main__, entropy_production, measure, rbm


@pytest.mark.parametrize("make", [rbm.retrieve, entropy_production.vector_mean_field])
def test_a_benchmark_computes_what_its_baseline_computes(make):
    assert measure(make(size=12), repeats=3).ratio > 0


def test_a_result_that_is_not_the_baselines_is_not_timed():
    wrong = Benchmark("wrong", lambda: np.ones(2), lambda: np.zeros(2), lambda a, b: float(np.max(abs(a - b)) / 1e-9))
    with pytest.raises(ValueError, match="expected the baseline's result"):
        measure(wrong)


def test_the_page_has_a_row_for_each_benchmark():
    table = __main__.PAGE.read_text(encoding="utf-8").partition(__main__.BEGIN)[2].partition(__main__.END)[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) - 1 == sum(len(subject.BENCHMARKS) for subject in __main__.SUBJECTS)
