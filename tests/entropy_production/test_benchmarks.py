"""The benchmark at tiny size: ours is the baseline's result, and a wrong one is noticed."""

from dataclasses import replace

import pytest

import benchmarks
from benchmarks import entropy_production


def test_ours_equals_the_baseline():
    benchmarks.verify(entropy_production.vector_mean_field(5, dim=6))


def test_a_wrong_temperature_is_noticed():
    good = entropy_production.vector_mean_field(5, dim=6)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=entropy_production.vector_mean_field(5, dim=6, beta=1.1).ours))
