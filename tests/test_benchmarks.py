"""Benchmarks agree with their baselines at a small size, and a wrong result is not timed."""

import numpy as np
import pytest

from benchmarks import Benchmark, entropy_production, measure, rbm


@pytest.mark.parametrize("make", [rbm.retrieve, entropy_production.vector_mean_field])
def test_a_benchmark_computes_what_its_baseline_computes(make):
    assert measure(make(size=12), repeats=3).ratio > 0


def test_a_result_that_is_not_the_baselines_is_not_timed():
    wrong = Benchmark("wrong", lambda: np.ones(2), lambda: np.zeros(2), lambda a, b: float(np.max(abs(a - b)) / 1e-9))
    with pytest.raises(ValueError, match="expected the baseline's result"):
        measure(wrong)
