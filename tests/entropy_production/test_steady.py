"""The identity of the steady state, against path probabilities and against sampling."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook.entropy_production import steady
from spinbook.ising import exact, stochastic


def system(num_spins, strength=0.6, seed=0):
    rng = np.random.default_rng(seed)
    return strength * rng.normal(size=(num_spins, num_spins)), rng.uniform(-0.5, 0.5, size=num_spins)


@pytest.mark.parametrize("beta", [0.3, 1.4])
def test_the_identity_equals_the_log_ratio_of_path_probabilities(beta):
    J, h = system(6)
    D = exact.delayed_correlations(J, h, beta=beta)
    sigma = steady.from_delayed_correlations(J, D, beta=beta)
    np.testing.assert_allclose(sigma, exact.entropy_production(J, h, beta=beta), rtol=1e-10)


def test_a_simulation_meets_the_enumeration_within_its_standard_error():
    J, h = system(4, seed=2)
    start = jnp.ones((4000, 4))
    run = stochastic.simulate(jax.random.key(0), start, J, h, beta=1.2, steps=120, transient=40, correlations=True)
    estimate = steady.from_simulation(run, J, beta=1.2)
    exactly = float(exact.entropy_production(J, h, beta=1.2))
    # Sixteen groups: Student's t with 15 degrees of freedom exceeds 7 once in 400,000.
    assert abs(float(estimate.value) - exactly) < 7 * float(estimate.standard_error)
    # 320,000 samples of a bounded quantity; an error above 2 % would be no check.
    assert float(estimate.standard_error) < 0.02 * exactly


def test_a_simulation_that_still_moves_warns_with_its_drift():
    J, h = system(4, seed=4)
    short = {"beta": 1.0, "steps": 3, "transient": 0, "correlations": True}
    run = stochastic.simulate(jax.random.key(0), jnp.ones((2000, 4)), J, h, **short)
    with pytest.warns(steady.NotSteadyWarning, match="got a drift of"):
        steady.from_simulation(run, J, beta=1.0)
    settled = stochastic.simulate(
        jax.random.key(0), jnp.ones((2000, 4)), J, h, beta=1.0, steps=80, transient=40, correlations=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steady.from_simulation(settled, J, beta=1.0)
