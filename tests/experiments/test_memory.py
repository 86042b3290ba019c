"""The module with memory: its formula written out, and its steady state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import memory
from spinbook import sphere


@pytest.fixture(scope="module")
def module():
    return memory.MemoryModule(6, beta=1.3, key=jax.random.key(0))


@pytest.fixture(scope="module")
def inputs():
    return jax.random.normal(jax.random.key(1), (4, 6))


def by_hand(module, x, m):
    """The source's forward pass with loops, and the covariances written out."""
    R = np.sqrt(2.0)
    x = R * np.asarray(x) / np.linalg.norm(x, axis=1, keepdims=True)
    Q, K = np.asarray(module.to_queries.weight), np.asarray(module.to_keys.weight)
    J = np.exp((x @ Q.T) @ (x @ K.T).T)
    J /= J.sum(axis=1, keepdims=True)
    layers = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in module.memory.layers]
    hidden = np.asarray(jax.nn.gelu(x @ layers[0][0].T + layers[0][1]))
    theta = x + hidden @ layers[1][0].T + layers[1][1] + J @ m
    return theta, 1.3 * theta / (1 + np.sqrt(1 + 1.3**2 * np.sum(theta**2, axis=1, keepdims=True) / R**2)), J


def test_a_step_is_the_forward_pass_written_out(module, inputs):
    first = module.step(inputs)
    theta, m, J = by_hand(module, inputs, np.zeros((4, 6)))
    np.testing.assert_allclose(first.couplings, J, rtol=1e-10)
    np.testing.assert_allclose(first.magnetizations, m, rtol=1e-10)
    second = module.step(inputs, first.state)
    theta2, m2, _ = by_hand(module, inputs, m)
    np.testing.assert_allclose(second.magnetizations, m2, rtol=1e-10)
    V, W = (np.asarray(sphere.covariance_large_d(t, beta=1.3)) for t in (theta2, theta))
    T = np.einsum("iab,jba->ij", V, W)
    sigma = 1.3**2 / 2 * np.sum((J - J.T) ** 2 * (T + T.T) / 2)
    np.testing.assert_allclose(second.entropy_production, sigma, rtol=1e-10)


def test_several_steps_are_repeated_steps_and_end_in_the_steady_state(module, inputs):
    state = module.step(inputs, module.step(inputs).state).state
    np.testing.assert_allclose(module(inputs, steps=2).magnetizations, state.magnetizations, rtol=1e-13)
    found = module.steady_state(inputs)
    out = found.value
    assert bool(found.converged)
    np.testing.assert_allclose(module(inputs, steps=120).magnetizations, out.magnetizations, atol=1e-8)
    again = module.step(inputs, out.state)
    np.testing.assert_allclose(again.entropy_production, out.entropy_production, rtol=1e-7)


def test_a_symmetric_system_has_no_arrow_of_time(module, inputs):
    # Sites with the same input attend uniformly: J is symmetric.
    assert float(module.steady_state(jnp.tile(inputs[:1], (4, 1))).value.entropy_production) < 1e-20


def test_a_state_of_other_sites_is_refused(module, inputs):
    with pytest.raises(ValueError, match="state: expected 4 sites as in x, got 3"):
        module.step(inputs, module.start(3))
