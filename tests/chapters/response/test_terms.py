"""Both terms of a response against differences of ln Z, written out in NumPy, and against averages over states."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from chapters.collectives import response
from chapters.collectives.response import exact
from chapters.collectives.response.couplings import Fixed, Softmax, symmetric

SYSTEMS = {"Ising": (5, 1, 2), "XY": (2, 2, 24), "Heisenberg": (2, 3, 14)}


def _model(name, seed=0):
    n, d, nodes = SYSTEMS[name]
    rng = np.random.default_rng(seed)
    weights = Softmax(*jnp.asarray(rng.normal(size=(2, d, 4))))
    return exact.configurations(n, d, num_nodes=nodes), weights, rng.normal(size=(n, d))


def _log_z(h, configurations, weights, beta):
    s, log_weights = (np.asarray(a) for a in configurations)
    queries, keys = h @ np.asarray(weights.query_weights), h @ np.asarray(weights.key_weights)
    J = softmax(queries @ keys.T / 2, axis=1)
    exponent = sum(J[m, n] * (s[:, m] * s[:, n]).sum(-1) for m in range(len(h)) for n in range(len(h)))
    return logsumexp(beta * (exponent + (s * h).sum((1, 2))) + log_weights)


@pytest.mark.parametrize(("name", "beta"), [("Ising", 1.5), ("XY", 0.4), ("XY", 1.5), ("Heisenberg", 0.4)])
def test_the_response_is_the_slope_of_ln_z_over_beta_when_couplings_read_the_fields(name, beta):
    states, weights, h = _model(name)
    found = response.of_free_energy(partial(exact.free_energy, states, beta=beta), weights, h).response
    step = 1e-5
    for place in np.ndindex(h.shape):
        shift = np.zeros_like(h)
        shift[place] = step
        change = _log_z(h + shift, states, weights, beta) - _log_z(h - shift, states, weights, beta)
        # Rounding of ln Z over the step, and the square of the step times a third derivative of order ten.
        assert found[place] == pytest.approx(change / (2 * step * beta), abs=2e-9)


@pytest.mark.parametrize("name", SYSTEMS)
def test_derivatives_of_the_free_energy_are_averages_over_the_states(name):
    states, weights, h = _model(name, 1)
    by_derivative = response.of_free_energy(partial(exact.free_energy, states, beta=0.8), weights, h)
    averages = exact.moments(states, weights(jnp.asarray(h)), h, beta=0.8)
    by_average = response.of_moments(averages, weights, h)
    for derivative, average in zip(by_derivative, by_average, strict=True):
        np.testing.assert_allclose(derivative, average, atol=1e-13)


def test_without_reading_there_is_no_induced_term():
    states, _, h = _model("Ising")
    J = jnp.asarray(np.random.default_rng(2).normal(size=(5, 5)))
    found = response.of_free_energy(partial(exact.free_energy, states, beta=1.0), Fixed(J), h)
    assert not np.any(found.induced)
    assert np.array_equal(found.response, found.expectation)


def test_a_diagonal_moves_the_response_by_its_slope_and_no_spin():
    states, weights, h = _model("XY")
    F = partial(exact.free_energy, states, beta=0.6)
    with_diagonal, without = (response.of_free_energy(F, J, h) for J in (weights, symmetric(weights)))
    np.testing.assert_allclose(with_diagonal.expectation, without.expectation, atol=1e-13)
    trace = jax.grad(lambda h: jnp.trace(weights(h)))(jnp.asarray(h))
    np.testing.assert_allclose(with_diagonal.induced - without.induced, 2 * trace, atol=1e-13)


def test_a_response_can_be_longer_than_a_spin_and_a_mean_spin_cannot():
    states, weights, h = _model("Ising")
    found = [
        response.of_free_energy(partial(exact.free_energy, states, beta=beta), weights, 3 * h) for beta in (0.5, 1, 2)
    ]
    assert max(float(jnp.abs(terms.expectation).max()) for terms in found) <= 1
    assert max(float(jnp.abs(terms.response).max()) for terms in found) > 1


def test_terms_run_compiled_and_in_batches():
    states, weights, h = _model("Ising")
    F = partial(exact.free_energy, states, beta=0.5)
    batch = jnp.stack([jnp.asarray(h), 2 * jnp.asarray(h)])
    together = jax.jit(jax.vmap(lambda x: response.of_free_energy(F, weights, x).response))(batch)
    for one, x in zip(together, batch, strict=True):
        np.testing.assert_allclose(one, response.of_free_energy(F, weights, x).response, atol=1e-14)


def test_the_symmetric_part_has_no_diagonal_and_half_of_both_sides():
    J = symmetric(Fixed(jnp.asarray([[1.0, 3.0], [-1.0, 2.0]])))(jnp.ones((2, 1)))
    assert J.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_couplings_and_correlations_of_another_number_of_spins_are_refused():
    moments = response.Moments(np.zeros((2, 1)), np.eye(2))
    with pytest.raises(ValueError, match="couplings: expected a function that returns shape"):
        response.of_moments(moments, Fixed(jnp.eye(3)), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="correlations: expected shape"):
        response.of_moments(moments._replace(correlations=np.eye(3)), Fixed(jnp.eye(2)), np.zeros((2, 1)))
