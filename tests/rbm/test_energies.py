"""Effective energies against sums and integrals over the hidden units, done here without the library's closed forms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp

from spinbook.rbm import cumulant_generating_functions as K
from spinbook.rbm import effective_energy, joint_energy
from spinbook.rbm.visible_terms import gaussian, linear

# Sums of fewer than 1e4 terms of order one, in float64: rounding stays below 1e4 x 2e-16.
ROUNDING = 2e-12

rng = np.random.default_rng(7)
W = rng.normal(0, 0.3, (4, 3))
A = rng.normal(0, 1, 4)
STATES = np.array(list(itertools.product([0.0, 1.0], repeat=4)))


def marginal_energy(v, hidden_values, log_prior):
    """-log sum_h exp(-E(v, h)) over all joint states of three hidden units, one term after the other."""
    exponents = [
        A @ v + sum(log_prior(h) for h in hidden) + v @ W @ np.array(hidden)
        for hidden in itertools.product(hidden_values, repeat=3)
    ]
    return -logsumexp(exponents)


def test_bernoulli_units_sum_to_the_effective_energy_and_their_normalisation():
    b = np.array([0.4, -0.2, 0.7])
    energies = np.asarray(effective_energy(STATES, W, K.bernoulli(1 / (1 + np.exp(-b))), linear(A)))
    for v, energy in zip(STATES, energies, strict=True):
        exponents = [A @ v + b @ np.array(h) + v @ W @ np.array(h) for h in itertools.product([0.0, 1.0], repeat=3)]
        assert -logsumexp(exponents) == pytest.approx(energy - np.sum(np.log1p(np.exp(b))), abs=ROUNDING)


def test_joint_energy_summed_over_hidden_states_is_the_effective_energy():
    b = np.array([0.4, -0.2, 0.7])
    hidden = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    joint = joint_energy(STATES[:, None, :], hidden, W, linear(A), linear(b))
    assert joint.shape == (16, 8)
    effective = np.asarray(effective_energy(STATES, W, K.bernoulli(1 / (1 + np.exp(-b))), linear(A)))
    expected = effective - np.log1p(np.exp(b)).sum()
    np.testing.assert_allclose(-logsumexp(-np.asarray(joint), axis=1), expected, atol=ROUNDING)


def test_truncated_poisson_sum_differs_from_the_effective_energy_by_one_per_hidden_unit():
    # Inputs stay below 1.5, so that the means stay below 4.5: counts above 30 have a relative weight below 1e-14.
    assert np.abs(STATES @ W).max() < 1.5
    energies = np.asarray(effective_energy(STATES, W, K.poisson(1.0), linear(A)))
    for state in (0, 5, 15):
        # The prior 1 / h! has log Z_mu = 1.
        summed = marginal_energy(STATES[state], range(31), lambda h: -gammaln(h + 1.0))
        assert summed == pytest.approx(energies[state] - 3, abs=ROUNDING)


@pytest.mark.parametrize(
    ("prior", "hidden_term", "lower", "log_z"),
    [
        (K.gaussian, lambda h: -h * h / 2, -np.inf, np.log(2 * np.pi) / 2),
        (K.exponential(2.0), lambda h: -2 * h, 0.0, -np.log(2.0)),
        (K.laplace(0.5), lambda h: -2 * abs(h), -np.inf, 0.0),
    ],
    ids=["gaussian", "exponential", "laplace"],
)
def test_continuous_hidden_units_integrate_to_the_effective_energy(prior, hidden_term, lower, log_z):
    def integral(t):
        pieces = [(lower, 0.0), (0.0, np.inf)] if lower else [(0.0, np.inf)]
        return sum(quad(lambda h: np.exp(hidden_term(h) + t * h), *p, epsabs=0, epsrel=1e-11)[0] for p in pieces)

    energies = np.asarray(effective_energy(STATES, W, prior, linear(A)))
    for state in (0, 3, 6, 15):
        quadrature = -A @ STATES[state] - sum(np.log(integral(t)) for t in STATES[state] @ W)
        # One relative error of 1e-11 for each of three integrals.
        assert quadrature == pytest.approx(energies[state] - 3 * log_z, abs=3e-11)


def test_gaussian_prior_gives_the_hopfield_energy_with_its_diagonal():
    energies = np.asarray(effective_energy(STATES, W, K.gaussian, linear(A)))
    for v, energy in zip(STATES, energies, strict=True):
        pairs = sum(W[i, m] * W[j, m] * v[i] * v[j] for i in range(4) for j in range(4) for m in range(3))
        assert energy == pytest.approx(-A @ v - pairs / 2, abs=ROUNDING)


def test_poisson_prior_gives_the_exponential_interaction_up_to_one_per_hidden_unit():
    energies = effective_energy(STATES, W, K.poisson(1.0), linear(A))
    np.testing.assert_allclose(np.asarray(energies) - 3, -STATES @ A - np.exp(STATES @ W).sum(axis=1), atol=ROUNDING)


def test_constant_prior_gives_the_model_with_a_single_frozen_hidden_unit():
    v = rng.normal(size=(5, 4))
    frozen = joint_energy(v, [1.0], W[:, :1], gaussian())
    np.testing.assert_allclose(effective_energy(v, W[:, :1], K.constant(), gaussian()), frozen, atol=ROUNDING)
    # Completing the square: a normal density around the pattern, so that the modes of the mixture are single models.
    np.testing.assert_allclose(frozen, np.sum((v - W[:, 0]) ** 2, 1) / 2 - np.sum(W[:, 0] ** 2) / 2, atol=ROUNDING)


def test_gaussian_visible_units_are_normalisable():
    # With a = -(v - c)^2 / (2 sigma^2) and a frozen hidden unit the density is normal: mean c + sigma^2 w, variance
    # sigma^2.
    c, sigma, w = 0.6, 0.7, 0.9
    v = np.linspace(-9, 9, 4001)  # the trapezoidal rule is spectrally accurate here
    energies = effective_energy(v[:, None], [[w]], K.constant(), gaussian(c, sigma))
    weight = np.exp(-np.asarray(energies))
    weight /= weight.sum()
    mean = np.sum(weight * v)
    assert mean == pytest.approx(c + sigma**2 * w, abs=ROUNDING)
    assert np.sum(weight * (v - mean) ** 2) == pytest.approx(sigma**2, abs=ROUNDING)


def test_gradient_of_the_effective_energy_is_minus_the_mean_field_of_the_hidden_units():
    v = STATES[6]
    hidden = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    posterior = np.exp(hidden @ (W.T @ v))  # the prior p = 1/2 weighs all hidden states alike
    mean_hidden = posterior @ hidden / posterior.sum()
    gradient = jax.grad(effective_energy)(jnp.asarray(v), W, K.bernoulli(0.5), linear(A))
    np.testing.assert_allclose(gradient, -A - W @ mean_hidden, atol=ROUNDING)


def test_hidden_units_are_independent_given_the_visible_ones_and_vice_versa():
    b = np.array([0.4, -0.2, 0.7])
    hidden = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    p = np.exp(-np.asarray(joint_energy(STATES[:, None, :], hidden, W, linear(A), linear(b))))
    for conditional, states in ((p / p.sum(1, keepdims=True), hidden), ((p / p.sum(0)).T, STATES)):
        on = conditional @ states  # P(unit = 1 | the other side)
        product = np.prod(np.where(states == 1, on[:, None, :], 1 - on[:, None, :]), axis=-1)
        np.testing.assert_allclose(conditional, product, atol=ROUNDING)
    # The visible units themselves are not independent once the hidden ones are summed out.
    marginal = p.sum(1) / p.sum()
    on = marginal @ STATES
    assert np.abs(marginal - np.prod(np.where(STATES == 1, on, 1 - on), axis=-1)).max() > 1e-6


def test_parameters_of_the_prior_may_differ_from_one_hidden_unit_to_the_next():
    p = np.array([0.2, 0.5, 0.9])
    together = effective_energy(STATES, W, K.bernoulli(p))
    one_by_one = sum(np.asarray(effective_energy(STATES, W[:, [m]], K.bernoulli(p[m]))) for m in range(3))
    np.testing.assert_allclose(together, one_by_one, atol=ROUNDING)


def test_visible_term_may_be_summed_already():
    per_unit = effective_energy(STATES, W, K.gaussian, linear(A))
    summed = effective_energy(STATES, W, K.gaussian, lambda v: v @ jnp.asarray(A))
    np.testing.assert_allclose(per_unit, summed, atol=ROUNDING)


def test_lists_and_torch_tensors_are_accepted():
    expected = effective_energy(STATES, W, K.gaussian)
    np.testing.assert_array_equal(effective_energy(STATES.tolist(), torch.tensor(W), K.gaussian), expected)


def test_a_list_of_weights_and_the_numbers_of_a_term_follow_the_precision_of_the_arrays():
    v = STATES.astype(np.float32)
    for weights, dtype in ((W.tolist(), jnp.float32), (W, jnp.float64)):
        energies = jax.eval_shape(lambda v, w=weights: effective_energy(v, w, K.bernoulli(0.3), linear(A)), v)
        assert (energies.shape, energies.dtype) == ((16,), dtype)
