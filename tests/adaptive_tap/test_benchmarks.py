"""Benchmarks of adaptive TAP at tiny size: ours equals the plain baseline, and a small error is noticed."""

from dataclasses import replace

import pytest

import benchmarks
from benchmarks import adaptive_tap

SIZES = {
    adaptive_tap.gaussian_response: {"size": 3, "batch": 2, "dim": 2},
    adaptive_tap.implicit_gradient: {"size": 4, "batch": 2, "dim": 3, "strength": 0.3},
    adaptive_tap.binary_spins: {"size": 4, "batch": 3, "strength": 0.5},
}


def test_every_benchmark_has_a_tiny_size():
    assert set(SIZES) == set(adaptive_tap.BENCHMARKS)


@pytest.mark.parametrize("function", adaptive_tap.BENCHMARKS, ids=lambda function: function.__name__)
def test_ours_equals_the_baseline_and_a_relative_error_of_a_millionth_is_noticed(function):
    good = function(**SIZES[function])
    benchmarks.verify(good)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=lambda: good.ours() * (1 + 1e-6)))
