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


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("num_steps", [1, None])
def test_the_loop_in_pytorch_is_the_same_map(num_steps, gradient):
    benchmark = spin_transformer.relaxation(6, dim=16, num_heads=2, num_steps=num_steps, gradient=gradient)
    benchmarks.verify(benchmark)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(benchmark, ours=lambda: 1.01 * np.asarray(benchmark.ours())))


def test_a_module_that_found_nothing_is_noticed():
    good = spin_transformer.forward(8, dim=16, num_heads=2)
    with pytest.raises(ValueError, match="expected finite numbers, got 1"):
        benchmarks.verify(replace(good, ours=lambda: np.array([np.nan])))
