"""Every benchmark at tiny size: ours is the result of the plain baseline, and a wrong one is noticed."""

from dataclasses import replace

import numpy as np
import pytest

import benchmarks
from benchmarks import (
    adaptive_tap,
    comparison,
    entropy_production,
    free_energy,
    ising,
    lens,
    rbm,
    self_attention,
    spin_transformer,
)

SIZES = {
    adaptive_tap.binary_spins: {"size": 4, "batch": 3, "strength": 0.5},
    adaptive_tap.gaussian_response: {"size": 3, "batch": 2, "dim": 2},
    adaptive_tap.implicit_gradient: {"size": 4, "batch": 2, "dim": 3, "strength": 0.3},
    free_energy.mean_spins_and_gradient: {"size": 4, "batch": 2, "dim": 5},
    free_energy.susceptibilities: {"size": 3, "dim": 4},
    free_energy.two_spins: {"size": 1, "dim": 5},
    self_attention.largest_exponent: {"size": 2, "steps": 100},
    self_attention.sample: {"size": 100, "steps": 100},
    self_attention.spectrum: {"size": 2, "steps": 100},
    self_attention.sweep: {"size": 3, "steps": 60},
    self_attention.sweep_in_jax: {"size": 3, "steps": 60},
    comparison.block: {"size": 2, "num_sites": 4, "dim": 8},
    entropy_production.vector_mean_field: {"size": 5, "dim": 6},
    ising.simulate: {"size": 256, "num_spins": 64},
    ising.tap: {"size": 24, "starts": 3, "steps": 4},
    rbm.interactions: {"size": 5},
    rbm.mixture_log_density: {"size": 30},
    rbm.retrieve: {"size": 30},
    rbm.simulate: {"size": 100},
    lens.measure: {"size": 2, "num_layers": 1, "num_heads": 3, "num_tokens": 6, "dim": 4},
}
# What is added, where a relative error of a millionth is too small to be told from chance or too large to ask for.
ADDED = {
    self_attention.largest_exponent: 1.0,
    self_attention.sample: 1.0,
    self_attention.spectrum: 1.0,
    self_attention.sweep: 1e-9,
    self_attention.sweep_in_jax: 1e-9,
}
RELATIVE = {
    comparison.block: 1e-2, ising.tap: 1e-8, lens.measure: 1e-7,
    **dict.fromkeys((rbm.interactions, rbm.mixture_log_density, rbm.retrieve), 1e-9),
}  # fmt: skip
OTHER = {entropy_production.vector_mean_field: {"beta": 1.1}, ising.simulate: {"beta": 1.3}}
HEADS = {"dim": 16, "num_heads": 2}


def wrong(function, good):
    """The result with a small error, that of another temperature, or that of a lazy sampler."""
    if function in OTHER:
        return function(**SIZES[function], **OTHER[function]).ours
    if function is rbm.simulate:
        # A sampler that stands still every other step has the right distribution, and only neighbouring times tell.
        return lambda: np.repeat(np.asarray(good.ours())[::2], 2, axis=0)
    if function in ADDED:
        return lambda: np.asarray(good.ours()) + ADDED[function]
    return lambda: good.ours() * (1 + RELATIVE.get(function, 1e-6))


@pytest.mark.parametrize("module", [adaptive_tap, free_energy, rbm, self_attention])
def test_every_benchmark_has_a_tiny_size(module):
    assert {function for function in SIZES if function.__module__ == module.__name__} == set(module.BENCHMARKS)


@pytest.mark.parametrize("function", SIZES, ids=lambda function: f"{function.__module__}.{function.__name__}")
def test_ours_equals_the_baseline_and_what_does_not_is_noticed(function):
    good = function(**SIZES[function])
    benchmarks.verify(good)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(good, ours=wrong(function, good)))


@pytest.mark.slow
def test_contraction_factors_are_those_of_the_baseline():
    benchmarks.verify(comparison.contraction(2, num_sites=4, dim=8))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "options"),
    [(spin_transformer.forward, {}), (spin_transformer.backward, {}), (spin_transformer.stack, {"depth": 2})],
)
def test_both_models_run(make, options):
    benchmarks.verify(make(8, **HEADS, **options))


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("num_steps", [1, None])
def test_the_loop_in_pytorch_is_the_same_map(num_steps, gradient):
    benchmark = spin_transformer.relaxation(6, **HEADS, num_steps=num_steps, gradient=gradient)
    benchmarks.verify(benchmark)
    with pytest.raises(ValueError, match="expected the baseline's result"):
        benchmarks.verify(replace(benchmark, ours=lambda: 1.01 * np.asarray(benchmark.ours())))


def test_a_module_that_found_nothing_is_noticed():
    good = spin_transformer.forward(8, **HEADS)
    with pytest.raises(ValueError, match="expected finite numbers, got 1"):
        benchmarks.verify(replace(good, ours=lambda: np.array([np.nan])))
