"""One generic test for each class of planted faults that tests of single functions missed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.vector import fidelity
from spinbook import fixed_point, replicas, sphere
from spinbook.ising import stochastic as ising
from spinbook.precision import enable_x64
from spinbook.self_attention import bifurcation, paper_network
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


def middle(a, b):
    return float(a + b) / 2


UNEVEN = np.array([3.0, 3.0, 3.0, 3.0, 2.0])
"""Replicas in groups of which the last is not full."""
ESTIMATORS = {
    "standard_error": lambda x: (x.mean(axis=1), replicas.standard_error(x.T)),
    "mean_and_error": replicas.mean_and_error,
    "groups of unequal size": lambda x: (
        replicas.weighted_mean((x / np.sqrt(UNEVEN)).T, UNEVEN / UNEVEN.sum()),
        replicas.standard_error((x / np.sqrt(UNEVEN)).T, UNEVEN / UNEVEN.sum()),
    ),
    "jackknife": lambda x: zip(*(fidelity.jackknife(middle, np.stack([y, y])) for y in x), strict=True),
}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_a_standard_error_is_the_spread_of_what_it_belongs_to(estimator):
    """Of five numbers: the factors 5/4 and 4/5 in the variance, which a wrong count makes, are six errors away."""
    repeats = 3000
    with enable_x64(True):
        values, errors = map(np.array, estimator(np.random.default_rng(0).normal(size=(repeats, 5))))
    ratio = (errors**2).mean() / values.var(ddof=1)
    # The variance of a variance of R normal numbers is 2 / R, and of R errors squared, of four degrees each, 1 / 2R.
    assert abs(ratio - 1) < 4 * np.sqrt(2.5 / repeats)


def test_an_orbit_in_lanes_that_are_not_full_is_the_one_that_runs_alone():
    betas, options = np.linspace(0.5, 1.3, 7), {"steps": 40, "transient": 40, "num_exponents": 1, "start": None}
    together = bifurcation(paper_network(), betas, **options)
    for k in (0, 3, 6):
        alone = bifurcation(paper_network(), betas[k : k + 1], **options)
        np.testing.assert_array_equal(together.exponents[k], alone.exponents[0])
        np.testing.assert_array_equal(together.final_attention[k], alone.final_attention[0])
