"""The module with memory: its formula written out, its masks, its steady state and its gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import memory
from spinbook import sphere


@pytest.fixture(scope="module")
def module():
    return memory.MemoryModule(6, hidden_dim=5, beta=1.3, key=jax.random.key(0))


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


@pytest.mark.parametrize("constant", [True, False])
def test_driven_steps_are_single_steps_in_order(module, constant):
    x = jax.random.normal(jax.random.key(5), (1 if constant else 3, 4, 6))
    mask = memory.causal(4)
    J, states = module.driven(x, mask, steps=3)
    state = module.start(4)
    np.testing.assert_array_equal(states.magnetizations[0], 0)
    for t, inputs in enumerate(jnp.broadcast_to(x, (3, 4, 6))):
        out = module.step(inputs, state, mask)
        state = out.state
        np.testing.assert_allclose(J[t], out.couplings, rtol=1e-12)
        np.testing.assert_allclose(states.magnetizations[t + 1], state.magnetizations, rtol=1e-12)
        np.testing.assert_allclose(states.effective_fields[t + 1], state.effective_fields, rtol=1e-12)


def test_several_steps_are_repeated_steps_and_end_in_the_steady_state(module, inputs):
    state = module.step(inputs, module.step(inputs).state).state
    np.testing.assert_allclose(module(inputs, steps=2).magnetizations, state.magnetizations, rtol=1e-13)
    found = module.steady_state(inputs)
    out = found.value
    assert bool(found.converged)
    np.testing.assert_allclose(module(inputs, steps=120).magnetizations, out.magnetizations, atol=1e-8)
    again = module.step(inputs, out.state)
    np.testing.assert_allclose(again.entropy_production, out.entropy_production, rtol=1e-7)


def test_a_causal_mask_hides_the_future(module, inputs):
    mask = memory.causal(4)
    changed = inputs.at[3].set(-inputs[3])
    run = jax.jit(lambda x: module(x, mask=mask, steps=3))
    now, other = run(inputs), run(changed)
    np.testing.assert_array_equal(now.magnetizations[:3], other.magnetizations[:3])
    assert np.all(np.triu(np.asarray(now.couplings), 1) == 0)
    assert not np.allclose(module(inputs, steps=3).magnetizations[:3], module(changed, steps=3).magnetizations[:3])


def test_a_symmetric_system_has_no_arrow_of_time(module, inputs):
    # Sites with the same input attend uniformly: J is symmetric.
    assert float(module.steady_state(jnp.tile(inputs[:1], (4, 1))).value.entropy_production) < 1e-20


def test_gradients_through_the_steady_state_are_those_of_many_steps(module, inputs):
    arrays, rest = eqx.partition(module, eqx.is_array)

    def implicit(arrays):
        return eqx.combine(arrays, rest).steady_state(inputs).value.entropy_production

    def unrolled(arrays):
        return eqx.combine(arrays, rest)(inputs, steps=80).entropy_production

    ours, theirs = jax.jit(jax.grad(implicit))(arrays), jax.jit(jax.grad(unrolled))(arrays)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)
    assert max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(ours)) > 1e-3


def test_local_learning_sends_no_gradient_to_the_layer_below(inputs):
    stack = memory.MemoryStack(2, 6, key=jax.random.key(2))
    arrays, rest = eqx.partition(stack, eqx.is_array)

    def top(arrays, local):
        return eqx.combine(arrays, rest).step(inputs, local=local)[-1].entropy_production

    slope = jax.jit(jax.grad(top), static_argnums=1)
    for local in (True, False):
        gradients = slope(arrays, local)
        below = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(gradients.modules[0]))
        above = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(gradients.modules[1]))
        assert above > 0
        assert (below == 0) == local


def test_growth_keeps_the_state_and_the_modules(module, inputs):
    state = module.step(inputs).state
    grown = state.grown(6)
    np.testing.assert_array_equal(grown.magnetizations[:4], state.magnetizations)
    assert not grown.magnetizations[4:].any()
    stack = memory.MemoryStack(1, 6, key=jax.random.key(3)).grown(module)
    assert len(stack.modules) == 2
    np.testing.assert_array_equal(stack.modules[1].to_keys.weight, module.to_keys.weight)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: m.step(x[:, :5]), "x: expected shape"),
        (lambda m, x: m.step(x, mask=jnp.ones((3, 4), bool)), "mask: expected shape"),
        (lambda m, x: m.step(x, mask=jnp.zeros((4, 4), bool)), "mask: expected something to attend to"),
        (lambda m, x: m.step(x, m.start(3)), "state: expected 4 sites"),
        (lambda m, x: m.start(4).grown(3), "num_sites: expected an integer >= 4"),
        (lambda m, x: memory.MemoryStack(2, 6, key=jax.random.key(0)).step(x, (m.start(4),)), "states: expected 2"),
    ],
)
def test_bad_input_is_named(module, inputs, call, message):
    with pytest.raises(ValueError, match=message):
        call(module, inputs)
