"""What the lesson adaptive-tap claims, measured on the variables that its cells leave behind."""

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from companion.claims import Measurement
from spinbook.adaptive_tap import attention, couplings, exact, ising, vector


def echo(J_all):
    """How far the mean of a spin that alone feels a field is from that of a free spin; the rival: naive mean field."""
    x = np.zeros(J_all.shape[:2])
    x[:, 0] = 0.5
    true = exact.magnetizations(J_all, x)[:, 0].numpy()
    naive = ising.solve_naive_ising(J_all, x).magnetizations[:, 0].numpy()
    return Measurement(np.abs(true - np.tanh(0.5)).max(), rival=np.median(np.abs(naive - np.tanh(0.5))))


def adaptive_improves(errors, strengths):
    """The largest ratio of median errors to that of TAP, at all strengths up to one; the rival is naive mean field."""

    def worst(name):
        return max(np.median(errors[name, g]) / np.median(errors["TAP", g]) for g in strengths if g <= 1)

    return Measurement(worst("adaptive TAP"), rival=worst("naive"))


def gaussian_needs_no_correction():
    """Eleven spins of three components: the fast equation without and with the exact Onsager term."""
    generator = torch.Generator().manual_seed(0)
    J = couplings.symmetrize_separately(couplings.sample(11, 3, generator=generator, dtype=torch.float64))
    X = torch.randn(11, 3, generator=generator, dtype=torch.float64)
    V = torch.block_diag(*vector.solve_gaussian(J, X).cavity_variances)
    alone, together = torch.eye(33).double(), couplings.as_matrix(J)
    normal = torch.distributions.MultivariateNormal(torch.zeros(33).double(), precision_matrix=alone - together)
    true = normal.covariance_matrix @ X.flatten()

    def off(correction):
        fast = torch.linalg.solve(alone + correction - together, X.flatten())
        return float((fast - true).abs().max() / true.abs().max())

    return Measurement(off(0 * V), rival=off(V))


def one_naive_step():
    """One step of the naive equations from m = X, against PyTorch's attention plus its input and the full response."""
    generator = torch.Generator().manual_seed(0)
    layer, X = attention.SoftmaxCouplings(8), torch.randn(2, 6, 8, generator=generator)
    with torch.no_grad():
        for weights in layer.parameters():
            weights.normal_(std=8**-0.5, generator=generator)
        m = torch.einsum("nijab,njb->nia", layer.coupling_tensor(X), X) + X
        Q, K, values = layer.to_queries(X), layer.to_keys(X), layer.to_values(X)
        pytorch = scaled_dot_product_attention(Q, K, values) + X
        response = attention.EquilibriumAttention(layer)(X)
    gap, to_response = (float((m - other).abs().max()) for other in (pytorch, response))
    return Measurement(gap, rival=to_response)


def test_by_hand(lean, back, echo):
    assert [round(v, 3) for v in (lean, 0.3 * lean, np.tanh(0.3 * lean))] == [0.462, 0.139, 0.138]
    assert [round(v, 4) for v in (back, echo)] == [0.0413, 0.0416]
    assert [round(np.tanh(0.5 + field), 3) for field in (back, back - echo)] == [0.494, 0.462]
    assert round(100 * (0.494 / 0.462 - 1)) == 7


def test_three_people_are_those_of_the_library(listed, tap, people, report):
    S, p = listed(people, report)
    assert np.abs(p @ S - exact.magnetizations(people, report).numpy()).max() < 1e-12
    assert np.abs(tap(people, report) - ising.solve_tap_ising(people, report).magnetizations.numpy()).max() < 1e-8


def test_step_settles_where_the_library_does(step, J_all, x_all):
    J, x = 0.5 * J_all[0], x_all[0]
    m, V = np.tanh(x), np.zeros_like(x)
    for _ in range(400):
        m, V = np.mean([(m, V), step(m, V, J, x)], axis=0)
    found = ising.solve_ising(J, x)
    assert np.abs(m - found.magnetizations.numpy()).max() < 1e-8
    assert np.abs(V - found.cavity_variances.numpy()).max() < 1e-7


def test_adaptive_gains_about_two(table):
    assert 1.5 < table.TAP[0.5] / table["adaptive TAP"][0.5] < 2.5


def test_at_line_is_where_sampled_replicas_say(passed_on, at_line):
    """By drawing the normal field in the place of quadrature."""
    z, q = np.random.default_rng(1).normal(size=400_000), 0.5
    for _ in range(100):
        m = np.tanh(np.sqrt(0.25 + at_line**2 * q) * z)
        q = (m**2).mean()
    assert abs(at_line**2 * ((1 - m**2) ** 2).mean() - 1) < 0.01
    assert passed_on(0.9 * at_line) < 1 < passed_on(1.1 * at_line)


def test_library_settles_in_all_systems(J_all, x_all, strengths):
    assert all(ising.solve_ising(g * J_all, x_all).converged.all() for g in strengths)


def test_tap_settles_up_to_one_half(restless):
    assert (restless[restless.index <= 0.5] == 0).all()


def test_exercise_1():
    two, field, t = np.array([[0, 0.01], [0.01, 0]]), [0.7, 0.0], np.tanh(0.7)
    naive, by_tap = (
        float(solve(two, field).magnetizations[0]) - t for solve in (ising.solve_naive_ising, ising.solve_tap_ising)
    )
    assert abs(naive / (1e-4 * t * (1 - t**2)) - 1) < 1e-3
    assert abs(by_tap) < 1e-7


def test_exercise_2(excess):
    assert abs(excess[100] / excess[200] - 2) < 0.1


def test_exercise_3():
    J = 0.4
    pair, one = np.array([[0, J], [J, 0]]), np.eye(2)
    for V, factor in ((0, J), (J**2, J / (1 - J))):
        assert np.isclose(np.abs(np.linalg.eigvals((pair - V * one) / (1 - V))).max(), factor)
