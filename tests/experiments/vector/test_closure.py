"""Means and correlations closed by the length of a spin, against exact integrals, limits and sampled spins."""

import jax
import numpy as np
import pytest

from experiments.vector import closure, fidelity
from spinbook import sphere
from spinbook.precision import enable_x64
from tests.experiments.vector import test_calibration


def directions(seed: int, num_sites: int, dim: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(num_sites, dim))
    return sphere.radius(dim) * x / np.linalg.norm(x, axis=1, keepdims=True)


def test_a_spin_that_hears_itself_is_exact_up_to_one_over_the_number_of_components():
    off = []
    with enable_x64(True):
        for dim in (32, 64, 128):
            found = closure.steady_state(np.ones((1, 1)), sphere.radius(dim) * np.eye(dim)[:1], beta=2.0)
            assert found.converged
            _, exact = test_calibration.alone(dim, 2.0)
            off.append(abs(float(found.delayed_correlations[0, 0]) / exact - 1))
    # The first order left out halves with every doubling; the second is a few per cent of it here.
    assert np.divide(off[:-1], off[1:]) == pytest.approx(2, abs=0.1)
    assert off[-1] < 1 / 128


def test_spins_that_hear_nobody_answer_to_their_fields_and_are_independent():
    x = directions(0, 3, 6)
    with enable_x64(True):
        found = closure.steady_state(np.zeros((3, 3)), x, beta=1.5)
        assert np.asarray(found.magnetizations) == pytest.approx(np.asarray(sphere.magnetization(x, beta=1.5)))
        traces = np.trace(np.asarray(sphere.covariance(x, beta=1.5)), axis1=1, axis2=2)
    assert np.asarray(found.correlations) == pytest.approx(np.diag(traces))
    assert np.asarray(found.delayed_correlations) == pytest.approx(0, abs=1e-12)


def test_spins_of_a_band_and_around_a_sink_vary_together_as_sampled_ones_and_keep_their_length():
    N, dim, beta = 16, 32, 2.0
    logits = np.random.default_rng(1).normal(size=(N, N)) / 2
    apart = np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    for shape in (np.where(apart <= 2, logits, -np.inf), logits + 4 * (np.arange(N) == 0)):
        J = np.exp(shape) / np.exp(shape).sum(1, keepdims=True)
        x = directions(2, N, dim)
        with enable_x64(True):
            found = closure.steady_state(J, x, beta=beta)
        length = np.sum(np.square(found.magnetizations), axis=1) + np.diag(found.correlations)
        assert length == pytest.approx(sphere.squared_radius(dim))
        sizes = {"replicas": 64, "steps": 100, "transient": 20}
        halves = fidelity.sampled(jax.random.key(3), J, x, beta=beta, delayed=True, **sizes)
        m, D = (np.asarray(part, float).mean(1) for part in halves)
        for theory, (a, b) in ((found.magnetizations, m), (found.delayed_correlations, D)):
            theory = np.asarray(theory)
            left = np.sum((theory - a) * (theory - b)) / np.sum(a * b)
            assert np.sqrt(max(left, 0)) < 1 / dim


def test_too_few_updates_are_said_to_be_too_few():
    found = closure.steady_state(np.full((3, 3), 1 / 3), directions(3, 3, 6), beta=1.0, max_steps=2)
    assert int(found.num_steps) == 2
    assert not found.converged
