"""The benchmarks at tiny size: ours is the baseline's result, and a wrong one is noticed."""

from dataclasses import replace

import pytest

import benchmarks
from benchmarks import comparison


@pytest.mark.parametrize("make", [comparison.block, pytest.param(comparison.contraction, marks=pytest.mark.slow)])
def test_ours_equals_the_baseline(make):
    benchmarks.verify(make(2, num_sites=4, dim=8))


def test_a_block_of_other_inputs_is_noticed():
    good = comparison.block(2, num_sites=4, dim=8)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=lambda: 1.01 * good.ours()))
