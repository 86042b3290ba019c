"""The benchmarks at tiny size: ours is the baseline's result, and a wrong one is noticed."""

from dataclasses import replace

import numpy as np
import pytest

import benchmarks
from benchmarks import ising


@pytest.mark.parametrize("make", [lambda: ising.simulate(64, num_spins=32), lambda: ising.tap(24, starts=3, steps=4)])
def test_ours_equals_the_baseline(make):
    benchmarks.verify(make())


def test_a_sampler_at_another_temperature_is_noticed():
    good = ising.simulate(256, num_spins=64)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=ising.simulate(256, num_spins=64, beta=1.3).ours))


def test_a_loose_solution_is_noticed():
    good = ising.tap(24, starts=3, steps=4)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=lambda: np.asarray(good.ours()) * (1 + 1e-8)))
