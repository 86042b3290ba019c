"""Means and correlations closed by the length of a spin, against exact integrals, limits and sampled spins."""

import jax
import numpy as np
import pytest
import scipy.special

from spinbook import lens, sphere
from spinbook.precision import enable_x64
from spinbook.vector import closure


def directions(seed: int, num_sites: int, dim: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(num_sites, dim))
    return sphere.radius(dim) * x / np.linalg.norm(x, axis=1, keepdims=True)


def alone(dim: int, beta: float) -> float:
    """E[s . phi(x + s)] - |E s|^2 of a spin that hears itself: its density is exp(beta s . x) Z(|x + s|)."""
    u, weights = scipy.special.roots_gegenbauer(200, (dim - 2) / 2)
    fields = np.zeros((len(u), dim))
    fields[:, 0] = sphere.radius(dim) * np.sqrt(2 + 2 * u)
    logits = np.log(weights) + beta * (dim / 2 - 1) * u + np.asarray(sphere.log_partition(fields, beta=beta))
    p = scipy.special.softmax(logits)
    # The spin has the component R sqrt((1 + u) / 2) along its field.
    along = np.asarray(sphere.magnetization(fields, beta=beta))[:, 0] * sphere.radius(dim) * np.sqrt((1 + u) / 2)
    return p @ along - (sphere.radius(dim) * p @ u) ** 2


def test_a_spin_that_hears_itself_is_exact_up_to_one_over_the_number_of_components():
    off = []
    with enable_x64(True):
        for dim in (32, 64, 128):
            found = closure.steady_state(np.ones((1, 1)), sphere.radius(dim) * np.eye(dim)[:1], beta=2.0)
            assert found.converged
            off.append(abs(float(found.delayed_correlations[0, 0]) / alone(dim, 2.0) - 1))
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


def test_too_few_updates_are_said_to_be_too_few():
    found = closure.steady_state(np.full((3, 3), 1 / 3), directions(3, 3, 6), beta=1.0, max_steps=2)
    assert int(found.num_steps) == 2
    assert not found.converged


@pytest.mark.slow
@pytest.mark.parametrize("beta", [1.0, 4.0])
def test_a_head_with_a_silent_sink_fluctuates_as_sampled_spins_do(beta, optimised):
    """Attention that goes to a token whose value is short, and keeps nine tenths of its own: the encoder's shape."""
    N, d, replicas, steps = 12, 32, 400, 60
    rng = np.random.default_rng(4)
    J = np.exp(rng.normal(size=(N, N)) + 2 * (np.arange(N) == 0))
    J[0, 0] += 9 * J[0, 1:].sum()
    J /= J.sum(1, keepdims=True)
    values = rng.normal(size=(N, d)) + rng.normal(size=d)
    values[0] *= 0.1
    found = lens.closure(J, values, beta=beta)
    assert bool(found.converged)
    x = values * sphere.radius(d) / np.sqrt(np.mean(np.sum(values**2, axis=1)))

    def draw(seed, h):
        return np.asarray(sphere.sample(jax.random.key(seed), h, beta=beta))

    s = draw(0, np.broadcast_to(x, (replicas, N, d)))
    total, products = np.zeros((replicas, N, d)), np.zeros((replicas, N, N))
    for t in range(-20, steps):
        h = x + J @ s
        if t >= 0:
            # The mean of a spin, given its field, is known: that of the sphere's own function, tested elsewhere.
            phi = np.asarray(sphere.magnetization(h, beta=beta))
            products += phi @ np.swapaxes(s, 1, 2) / steps
            total += s / steps
        s = draw(t + 21, h)
    m, D = np.asarray(found.magnetizations), np.asarray(found.delayed_correlations)
    halves = [slice(None, None, 2), slice(1, None, 2)]
    a, b = (total[k].mean(0) for k in halves)
    assert np.sqrt(max(np.sum((m - a) * (m - b)), 0) / np.sum(a * b)) < 1 / d
    c, e = (products[k].mean(0) - a @ b.T for k in halves)
    independent = np.linalg.norm(D - J * np.diag(D) / np.diag(J)) / np.linalg.norm(D)
    left = np.sqrt(max(np.sum((D - c) * (D - e)), 0) / np.sum(c * e))
    assert left < 3 / d < independent


def test_a_head_is_scaled_to_the_length_of_a_spin():
    J = np.full((3, 3), 1 / 3)
    values = directions(5, 3, 6)
    short, long = (lens.closure(J, scale * values, beta=1.0) for scale in (1e-3, 10.0))
    assert np.asarray(short.magnetizations) == pytest.approx(np.asarray(long.magnetizations), rel=1e-9)
    with pytest.raises(ValueError, match="zeros only"):
        lens.closure(J, 0 * values, beta=1.0)
    with pytest.raises(ValueError, match="fields: expected shape"):
        lens.closure(J, values[:2], beta=1.0)
