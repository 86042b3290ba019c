"""One generic test for each class of planted faults that tests of single functions missed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook import fixed_point, sphere
from spinbook.ising import stochastic as ising
from spinbook.precision import enable_x64
from spinbook.vector import stochastic as vector

FIELD = 50.0
"""A field that turns a spin along itself in one update."""


def test_no_average_holds_what_was_before_the_transient_ended():
    """A field turns the first spin, and each spin the next: after three updates all have left the start for good."""
    follow = FIELD * np.eye(3, k=-1)
    run = ising.simulate(
        jax.random.key(0), -np.ones((4, 3)), follow, FIELD * np.eye(3)[0], beta=1.0, steps=4, transient=2
    )
    np.testing.assert_array_equal(run.magnetizations, 1)


@pytest.mark.parametrize("dim", [8])
def test_the_second_moment_of_a_sampled_spin_is_exact(dim):
    """The variance along the field, which a shape parameter off by one per cent moves by more than four errors."""
    num, beta = 400_000, 1.0
    h = np.zeros((1, dim))
    h[0, 0] = 1.5 * sphere.radius(dim)
    start = jnp.zeros((num, 1, dim)).at[..., 0].set(sphere.radius(dim))
    spins = vector.step(jax.random.key(3), start, np.zeros((1, 1)), h, beta=beta)
    squares = np.asarray(spins[:, 0, 0], float) ** 2
    with enable_x64(True):
        mean = sphere.magnetization(h[0], beta=beta)[0]
        expected = float(sphere.covariance(h[0], beta=beta)[0, 0] + mean**2)
    error = squares.std() / np.sqrt(num)
    assert error < 0.005 * expected
    assert abs(squares.mean() - expected) < 4 * error


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("history", [0, 2])
def test_a_solution_is_as_good_as_was_asked_in_an_evaluation_of_its_own(tol, history):
    with enable_x64(True):
        slope = jnp.array([[0.6, 0.3], [-0.2, 0.7]])
        found = fixed_point.solve(
            lambda y: jnp.tanh(slope @ y) + 1.0, jnp.zeros(2), tol=tol, max_steps=2000, history=history
        )
        y = np.asarray(found.value)
        off = np.abs(np.tanh(np.asarray(slope) @ y) + 1.0 - y).max()
    assert found.converged
    assert off <= 2 * tol * max(1.0, np.abs(y).max())
    np.testing.assert_allclose(found.residual, off, rtol=1e-6, atol=1e-14)
