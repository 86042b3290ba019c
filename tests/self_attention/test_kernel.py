"""The compiled kernel against the definition, step by step, and its functions against NumPy's."""

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest

from spinbook.self_attention import attention_window, couplings, kernel, lanes, mean_field, simulate, token_window
from spinbook.self_attention.lanes import Numerics, Observation
from spinbook.self_attention.sign_classes import sign_classes
from spinbook.self_attention.window import Window

EPS = np.finfo(np.float64).eps


@numba.njit(error_model="numpy", fastmath={"contract", "nsz"})
def through(function, x):
    y = np.empty_like(x)
    for k in range(len(x)):
        y[k] = function(x[k])
    return y


def test_the_exponential_is_right_to_the_last_digits():
    x = -np.concatenate([np.linspace(0, 290, 40_001), np.logspace(-18, 0, 500)])
    # n log 2 is subtracted in two parts, so that the argument itself is exact; then 12 additions.
    assert np.abs(through(kernel._exp, x) / np.exp(x) - 1).max() < 4 * EPS
    assert 0 <= through(kernel._exp, np.array([-1e5, -np.inf])).max() < 1e-130


def test_the_hyperbolic_tangent_is_odd_and_right_to_the_last_digits():
    x = np.concatenate([np.linspace(0, 40, 40_001), np.logspace(-18, 2, 500)])
    y = through(kernel._tanh, x)
    assert np.abs(y - np.tanh(x)).max() < 2 * EPS
    assert np.array_equal(through(kernel._tanh, -x), -y)
    assert y[0] == 0


@pytest.mark.parametrize("beta", [0.0, 1.26, 2.9])
def test_every_step_is_that_of_the_definition(paper, beta):
    # One step at a time from the kernel's own windows: no room for the growth of rounding errors.
    orbit = simulate(paper, beta=beta, steps=60)
    c = couplings(paper, beta=beta)
    step = jax.jit(mean_field.step)
    window = token_window(paper)
    for t in range(60):
        after, new = step(c, window)
        for name in new._fields:
            # Logits are up to gamma = 127 in size and round by some eps of that.
            assert np.abs(getattr(orbit, name)[t] - getattr(new, name)).max() < 100 * EPS
        attention = np.concatenate([orbit.attention[t][None], window.attention[:-1]])
        window = Window(attention, np.int64(min(t + 2, 4)), np.int64(t + 1))
        assert (int(after.length), int(after.position)) == (int(window.length), int(window.position))


@pytest.mark.slow
def test_other_sizes_follow_the_definition_too(other):
    start = attention_window(other, np.random.default_rng(0).uniform(-1, 1, (3, 2)), position=5)
    simulated = jax.jit(mean_field.simulate, static_argnames="steps")
    for window in (start, start._replace(length=np.int64(2)), token_window(other)):
        expected = simulated(couplings(other, beta=1.1), window, steps=40)[1]
        orbit = simulate(other, beta=1.1, steps=40, start=window)
        for name in expected._fields:
            assert np.abs(getattr(orbit, name) - getattr(expected, name)).max() < 1e-13


def advance(network, beta, directions, steps):
    """Tangents of the newest attention after so many steps from the default token, one lane for each direction."""
    K, M, L = network.context, network.num_features, lanes.LANES
    signs, weights, positions = sign_classes(network)
    compiled, size = kernel.compiled(M, K, len(signs))
    given = (signs, weights, beta, network.gamma, token_window(network).attention)
    rows = np.concatenate([np.ravel(values) for values in given])
    state = np.zeros((size // L, L))
    state[: len(rows)] = rows[:, None]
    positions = np.repeat(positions.reshape(network.period, -1, 1), L, axis=2).reshape(network.period, -1)
    tangents = np.zeros((1, M + K * len(signs), L))
    tangents[0, :M, : len(directions)] = directions.T
    tangents = tangents.reshape(1, -1)
    logs = np.zeros((1, L))
    nothing = np.zeros((2, M, L)), np.zeros((L, 0), np.int32), np.zeros((0, 1, 5, M))
    compiled(state.reshape(-1), positions, 0, 1, 0, steps, tangents, 10**9, logs, 0, 0, *nothing)
    # The length that the only normalisation took away.
    return (tangents.reshape(-1, L)[:M] * np.exp(logs[0]))[:, : len(directions)].T


@pytest.mark.parametrize("beta", [0.5, 2.0])
@pytest.mark.parametrize("name", ["paper", "other"])
def test_every_tangent_is_the_derivative_of_the_definition(name, beta, request):
    # From one token only the newest attention has a derivative, so that both sides start from the same tangents.
    network = request.getfixturevalue(name)
    K, M = network.context, network.num_features
    directions = np.random.default_rng(0).normal(size=(5, M))
    c = couplings(network, beta=beta)

    @jax.jit
    def pushed(window, tangents):
        def attention(A):
            after = mean_field.step(c, window._replace(attention=A))[0]
            return after.attention, after

        _, push, after = jax.linearize(attention, window.attention, has_aux=True)
        return after, jax.vmap(push)(tangents)

    window = Window(*map(jnp.asarray, token_window(network)))
    tangents = jnp.zeros((5, K, M)).at[:, 0].set(directions)
    for steps in range(1, 2 * K + 3):
        window, tangents = pushed(window, tangents)
        ours = advance(network, beta, directions, steps)
        # The derivative of a softmax with gamma = 127 multiplies rounding by some hundreds in each step, and so does it
        # the tangent: relative errors of 1e3 eps per step are generous.
        size = np.abs(np.asarray(tangents)).max()
        assert np.abs(ours - tangents[:, 0]).max() <= 1e3 * steps * EPS * max(size, 1.0)


def test_a_lane_does_not_see_its_neighbours(paper):
    # All 32 lanes, and one orbit among idle ones.
    betas, start = np.linspace(0.5, 2.5, 32), token_window(paper)
    numerics = Numerics(steps=50, transient=10, num_exponents=2, num_blocks=2)
    together, alone = (
        lanes.run(lanes.stack([paper] * n, betas[:n], start), Observation(num_bins=100, num_tail=7), numerics)
        for n in (32, 1)
    )
    for ours, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
        assert np.ndim(ours) == 0 or np.array_equal(ours[:1], theirs)
