"""Sums over configurations against textbook results, other modules of the book, and finer rules."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy.special import iv

from chapters.collectives.response import exact
from spinbook.free_energy import exact as two_spins


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_one_spin_in_a_field_follows_tanh_bessel_and_langevin(dim):
    h = np.zeros((1, dim))
    h[0, -1] = 0.8
    found = exact.moments(exact.configurations(1, dim, num_nodes=24), np.zeros((1, 1)), h, beta=1.3)
    x = 1.3 * 0.8 * math.sqrt(dim)
    mean = {1: np.tanh(x), 2: iv(1, x) / iv(0, x), 3: 1 / np.tanh(x) - 1 / x}[dim]
    np.testing.assert_allclose(found.magnetizations[0, -1], math.sqrt(dim) * mean, rtol=1e-12)
    np.testing.assert_allclose(found.correlations, [[dim]], rtol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_two_spins_agree_with_quadrature_over_one_angle(dim):
    rng = np.random.default_rng(dim)
    h, beta = rng.normal(size=(2, dim)), 0.7
    J = np.array([[0.0, 0.3], [0.3, 0.0]])
    states = exact.configurations(2, dim, num_nodes=24)
    found = exact.free_energy(states, J, h, beta=beta)
    scaled = torch.tensor(h / math.sqrt(dim))
    assert float(found) / dim == pytest.approx(float(two_spins.free_energy(scaled, J, beta=beta)), rel=1e-11)
    moments = exact.moments(states, J, h, beta=beta)
    np.testing.assert_allclose(
        moments.magnetizations / math.sqrt(dim), two_spins.magnetizations(scaled, J, beta=beta), atol=1e-11
    )
    np.testing.assert_allclose(moments.correlations / dim, two_spins.correlations(scaled, J, beta=beta), atol=1e-11)


def test_only_the_symmetric_part_counts_and_the_diagonal_is_a_constant():
    rng = np.random.default_rng(0)
    states, J, h = exact.configurations(3, 2), rng.normal(size=(3, 3)) / 3, rng.normal(size=(3, 2))
    F = partial(exact.free_energy, states, beta=0.5)
    part = (J + J.T) / 2
    assert float(F(J, h)) == pytest.approx(float(F(part, h)), rel=1e-13)
    plain = part - np.diag(np.diag(part))
    assert float(F(J, h)) == pytest.approx(float(F(plain, h)) - 2 * np.trace(J), rel=1e-12)


def test_a_rotation_of_all_fields_rotates_the_means():
    rng = np.random.default_rng(1)
    J, h = rng.normal(size=(2, 2)), rng.normal(size=(2, 3))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    states = exact.configurations(2, 3, num_nodes=24)
    a, b = (exact.moments(states, J, x, beta=0.5).magnetizations for x in (h, h @ turn))
    np.testing.assert_allclose(b, a @ turn, atol=1e-10)


def test_the_energy_counts_every_ordered_pair():
    s = np.array([[[1.0], [1.0], [-1.0]]])
    J = np.arange(9.0).reshape(3, 3)
    h = np.array([[0.1], [0.2], [0.3]])
    assert float(exact.energy(s, J, h)[0]) == pytest.approx(-(0 + 1 - 2 + 3 + 4 - 5 - 6 - 7 + 8) - 0.0)


def test_weights_sum_to_one_and_spins_have_their_length():
    for dim in (1, 2, 3):
        spins, log_weights = exact.configurations(2, dim, num_nodes=6)
        assert float(jnp.exp(log_weights).sum()) == pytest.approx(1, rel=1e-13)
        np.testing.assert_allclose(jnp.linalg.norm(spins, axis=-1), math.sqrt(dim), rtol=1e-14)


def test_free_energy_is_compiled_in_either_precision():
    states = exact.configurations(2)
    single = exact.Configurations(*(a.astype(jnp.float32) for a in states))
    J, h = np.full((2, 2), 0.2, np.float32), np.ones((2, 1), np.float32)
    narrow = jax.jit(lambda h: exact.free_energy(single, J, h, beta=1.0))(h)
    assert narrow.dtype == jnp.float32
    assert float(narrow) == pytest.approx(float(exact.free_energy(states, J, h, beta=1.0)), rel=1e-6)


def test_what_does_not_fit_is_refused():
    states, h = exact.configurations(2), np.zeros((2, 1))
    with pytest.raises(ValueError, match="num_spins: expected at most 2\\^24 numbers"):
        exact.configurations(30)
    with pytest.raises(ValueError, match="dim: expected"):
        exact.configurations(2, 4)
    with pytest.raises(ValueError, match="num_nodes: expected"):
        exact.configurations(2, 2, num_nodes=1)
    with pytest.raises(ValueError, match="couplings: expected shape"):
        exact.moments(states, np.zeros((3, 3)), h, beta=1.0)
    with pytest.raises(ValueError, match="fields: expected shape"):
        exact.moments(states, np.zeros((2, 2)), np.zeros((2, 2)), beta=1.0)
    with pytest.raises(ValueError, match="spins: expected"):
        exact.energy(np.zeros((3, 1)), np.zeros((2, 2)), h)
