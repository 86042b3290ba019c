"""Benchmarks at tiny size: ours equals the baseline, and a wrong result is refused."""

from dataclasses import replace

import numpy as np
import pytest

import benchmarks
from benchmarks import self_attention

SIZES = {
    self_attention.sweep: {"size": 3, "steps": 60},
    self_attention.sweep_in_jax: {"size": 3, "steps": 60},
    self_attention.largest_exponent: {"size": 2, "steps": 100},
    self_attention.spectrum: {"size": 2, "steps": 100},
    self_attention.sample: {"size": 100, "steps": 100},
}


def make(function):
    return function(**SIZES[function])


def test_every_benchmark_has_a_tiny_size():
    assert set(SIZES) == set(self_attention.BENCHMARKS)


@pytest.mark.parametrize("function", self_attention.BENCHMARKS, ids=lambda function: function.__name__)
def test_ours_equals_the_baseline_and_what_does_not_is_noticed(function):
    good = make(function)
    benchmarks.verify(good)
    result = np.asarray(good.ours())
    error = {"sweep": 1e-9, "sweep_in_jax": 1e-9}.get(function.__name__, 1.0)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=lambda: result + error))
