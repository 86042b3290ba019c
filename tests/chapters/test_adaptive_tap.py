"""Fits, samples, random systems and timings of the audit of adaptive TAP, against what is known of each."""

import numpy as np
import pytest
import torch
from torch import nn

from chapters import adaptive_tap as chapter

DOUBLE = torch.float64


def test_a_linear_network_learns_a_linear_map():
    torch.manual_seed(0)
    inputs = torch.randn(50, 3)
    network = chapter.fitted(nn.Linear(3, 2), inputs, inputs[:, :2] - 0.3, steps=2000)
    assert float((network(inputs).detach() - inputs[:, :2] + 0.3).abs().max()) < 1e-3


def test_acceleration_solves_a_linear_map_that_plain_iteration_does_not():
    A = torch.tensor([[0.0, 1.5], [-0.8, 0.3]], dtype=DOUBLE)  # spectral radius above one
    b = torch.ones(2, 2, dtype=DOUBLE)
    found = chapter.accelerated(lambda y: y @ A.T + b, 0 * b, ridge=1e-12)
    np.testing.assert_allclose(found, torch.linalg.solve(torch.eye(2, dtype=DOUBLE) - A, b.T).T, atol=1e-6)


def test_the_ratio_of_sums_has_the_error_of_a_mean_where_all_parts_are_one():
    values = np.array([1.0, 2.0, 4.0, 3.0])
    ratio, error = chapter.ratio(values, np.ones(4))
    assert ratio == pytest.approx(2.5)
    assert error == pytest.approx(values.std(ddof=1) / 2)


def test_averages_have_their_standard_errors():
    found = chapter.averaged([1.0, 3.0], [0.0, 4.0, 8.0])
    assert found == pytest.approx({"measured": 2, "uncertainty": 1, "rival": 4, "rival_uncertainty": 4 / 3**0.5})


def test_a_tree_has_one_bond_less_than_spins_and_no_loop():
    J, x = chapter.tree(12, np.random.default_rng(0))
    assert np.array_equal(J, J.T)
    assert np.count_nonzero(J) == 22
    reach = np.linalg.matrix_power(np.eye(12) + (J != 0), 12)
    assert (reach > 0).all()
    assert x.shape == (12,)


def test_a_spiked_matrix_has_its_top_eigenvector_along_the_hidden_signs():
    J, s = chapter.spiked(600, 2.0, np.random.default_rng(0))
    np.testing.assert_allclose(J, J.T, atol=1e-15)
    assert not np.diag(J).any()
    values, vectors = np.linalg.eigh(J / 2.0)  # of lambda s s^T / N + W
    assert values[-1] == pytest.approx(2.5, abs=0.15)  # lambda + 1 / lambda
    assert (vectors[:, -1] @ s) ** 2 / 600 == pytest.approx(0.75, abs=0.05)  # 1 - 1 / lambda^2


def test_two_coupled_spins_on_a_sphere_have_the_mean_of_the_sum_over_directions():
    R, j, h = 3**0.5, 0.5, 0.8
    J = j * np.kron([[0, 1], [1, 0]], np.eye(3))
    fields = np.zeros((1, 2, 3))
    fields[0, 0, 2] = h
    mean, error = chapter.sphere_means(J, fields, R, chains=400)
    u = np.linspace(-1, 1, 20001)  # cosine of the first spin; the second gives no weight that depends on it
    weight = np.exp(R * h * u)
    first = R * (weight * u).sum() / weight.sum()
    pull = j * R * R
    second = first * (1 / np.tanh(pull) - 1 / pull)
    assert abs(mean[0, 0, 2] - first) < 4 * error[0, 0, 2]
    assert abs(mean[0, 1, 2] - second) < 4 * error[0, 1, 2] < 0.05


def test_the_adjoint_of_a_step_without_cavity_variances_is_right():
    J = torch.tensor([[0.0, 0.3], [0.3, 0.0]], dtype=DOUBLE).kron(torch.eye(3, dtype=DOUBLE))

    def step(state, X):
        return torch.cat([state[:, :6] @ J + X, 0 * state[:, 6:]], dim=1)

    assert chapter.adjoint_error(step, J, 3, 0) < 1e-6
    assert chapter.adjoint_error(lambda state, X: step(1.1 * state, X), J, 3, 0) > 1e-3


def test_the_exponent_of_a_time_is_that_of_the_work():
    assert 2.2 < chapter.fitted_exponent(lambda J: J @ J, (150, 300, 600), 5) < 3.6


def test_couplings_larger_by_a_factor_change_a_training_and_its_seed_repeats_it():
    once, again, larger = (chapter.trained(0, 1, factor) for factor in (1.0, 1.0, 10.0))
    assert torch.equal(once.coupling_norms, again.coupling_norms)
    assert float(larger.coupling_norms.norm() / once.coupling_norms.norm()) == pytest.approx(10, rel=0.1)


def test_the_couplings_are_looked_at_before_at_a_fifth_and_at_the_end():
    assert chapter.watched(0, 5).frames.tolist() == [0, 1, 5]


def test_adaptive_tap_is_better_than_no_correction_on_spheres():
    squares = chapter.sphere_errors(20, 5, 40)
    assert squares["explicit"].sum() < 0.3 * squares["none"].sum()
