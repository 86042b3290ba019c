"""The benchmark at tiny size: ours is the baseline's result, and a wrong one is noticed."""

from dataclasses import replace

import pytest

import benchmarks
from benchmarks import lens

TINY = {"num_layers": 1, "num_heads": 3, "num_tokens": 6, "dim": 4}


def test_ours_equals_the_baseline():
    benchmarks.verify(lens.measure(2, **TINY))


def test_other_heads_are_noticed():
    good = lens.measure(2, **TINY)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=lambda: good.ours() * (1 + 1e-7)))
