"""The benchmarks of the module at tiny size: both models run, and one that is NaN is noticed."""

from dataclasses import replace

import numpy as np
import pytest

import benchmarks
from benchmarks import spin_transformer


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: spin_transformer.forward(8, dim=16, num_heads=2),
        lambda: spin_transformer.backward(8, dim=16, num_heads=2),
        lambda: spin_transformer.stack(8, dim=16, num_heads=2, depth=2),
    ],
)
def test_both_models_run(make):
    benchmarks.verify(make())


def test_a_module_that_found_nothing_is_noticed():
    good = spin_transformer.forward(8, dim=16, num_heads=2)
    with pytest.raises(ValueError, match="expected finite numbers, got 1"):
        benchmarks.verify(replace(good, ours=lambda: np.array([np.nan])))
