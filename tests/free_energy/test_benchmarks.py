"""Benchmarks of the free energy at tiny size: ours equals the plain baseline, and a small error is noticed."""

from dataclasses import replace

import pytest

import benchmarks
from benchmarks import free_energy

SIZES = {
    free_energy.mean_spins_and_gradient: {"size": 4, "batch": 2, "dim": 5},
    free_energy.susceptibilities: {"size": 3, "dim": 4},
    free_energy.two_spins: {"size": 1, "dim": 5},
}


def test_every_benchmark_has_a_tiny_size():
    assert set(SIZES) == set(free_energy.BENCHMARKS)


@pytest.mark.parametrize("function", free_energy.BENCHMARKS, ids=lambda function: function.__name__)
def test_ours_equals_the_baseline_and_a_relative_error_of_a_millionth_is_noticed(function):
    good = function(**SIZES[function])
    benchmarks.verify(good)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=lambda: good.ours() * (1 + 1e-6)))
