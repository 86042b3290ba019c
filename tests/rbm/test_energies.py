"""Effective energies against sums and integrals over the hidden units, done here without the library's closed forms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import torch
from scipy.special import logsumexp

from spinbook.rbm import cumulant_generating_functions as K
from spinbook.rbm import effective_energy

# Sums of fewer than 1e4 terms of order one, in float64: rounding stays below 1e4 x 2e-16.
ROUNDING = 2e-12

rng = np.random.default_rng(7)
W = rng.normal(0, 0.3, (4, 3))
A = rng.normal(0, 1, 4)
B = np.array([0.4, -0.2, 0.7])
STATES = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
HIDDEN = np.array(list(itertools.product([0.0, 1.0], repeat=3)))


def bias(v):
    return v * np.broadcast_to(A, v.shape)


def test_bernoulli_units_sum_to_the_effective_energy_and_their_normalisation():
    energies = np.asarray(effective_energy(STATES, W, K.bernoulli(1 / (1 + np.exp(-B))), bias))
    joint = -(STATES @ A)[:, None] - HIDDEN @ B - STATES @ W @ HIDDEN.T
    np.testing.assert_allclose(-logsumexp(-joint, axis=1), energies - np.log1p(np.exp(B)).sum(), atol=ROUNDING)


def test_constant_prior_and_normal_visible_units_give_a_normal_density_around_the_pattern():
    v, w = rng.normal(size=(5, 4)), W[:, :1]
    energies = effective_energy(v, w, K.constant(), lambda v: -(v**2) / 2)
    np.testing.assert_allclose(energies, np.sum((v - w.T) ** 2, 1) / 2 - np.sum(w**2) / 2, atol=ROUNDING)


def test_parameters_of_the_prior_may_differ_from_one_hidden_unit_to_the_next():
    p = np.array([0.2, 0.5, 0.9])
    together = effective_energy(STATES, W, K.bernoulli(p))
    one_by_one = sum(np.asarray(effective_energy(STATES, W[:, [m]], K.bernoulli(p[m]))) for m in range(3))
    np.testing.assert_allclose(together, one_by_one, atol=ROUNDING)


def test_visible_term_may_be_summed_already():
    per_unit, summed = (effective_energy(STATES, W, K.gaussian, a) for a in (bias, lambda v: v @ jnp.asarray(A)))
    np.testing.assert_allclose(per_unit, summed, atol=ROUNDING)


def test_lists_and_torch_tensors_are_accepted():
    expected = effective_energy(STATES, W, K.gaussian)
    np.testing.assert_array_equal(effective_energy(STATES.tolist(), torch.tensor(W), K.gaussian), expected)


def test_a_list_of_weights_and_the_numbers_of_a_term_follow_the_precision_of_the_arrays():
    v = STATES.astype(np.float32)
    for weights, dtype in ((W.tolist(), jnp.float32), (W, jnp.float64)):
        energies = jax.eval_shape(lambda v, w=weights: effective_energy(v, w, K.bernoulli(0.3)), v)
        assert (energies.shape, energies.dtype) == ((16,), dtype)
