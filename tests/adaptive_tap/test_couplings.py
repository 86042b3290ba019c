"""Symmetries of coupling tensors, the size of the draws, and the bound of their eigenvalues."""

import numpy as np
import pytest
import torch

from spinbook.adaptive_tap import couplings


def generic(N=4, D=3):
    return torch.rand(N, N, D, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize(
    ("symmetry", "axes"),
    [
        (couplings.symmetrize, (1, 0, 3, 2)),
        (couplings.symmetrize_components, (0, 1, 3, 2)),
        (couplings.symmetrize_separately, (1, 0, 2, 3)),
    ],
)
def test_symmetry_holds_and_is_a_projection(symmetry, axes):
    J = symmetry(generic())
    assert torch.equal(J, J.permute(axes))
    np.testing.assert_allclose(symmetry(J), J, atol=1e-15)


def test_drawn_couplings_have_the_published_variance_and_no_self_couplings():
    N, D = 20, 8
    J = couplings.sample(N, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    off = ~torch.eye(N, dtype=torch.bool)
    assert J[~off].abs().max() == 0
    entries = J[off].flatten()
    # The relative standard error of a variance of n normal numbers is sqrt(2 / n).
    assert float(entries.var()) == pytest.approx(1 / (N * D**2), rel=4 * np.sqrt(2 / len(entries)))
    assert float(couplings.sample(N, D, std=2.0).std()) > 1


def hollow(N=4, D=3, strength=1.0):
    J = couplings.without_self_couplings(couplings.symmetrize(generic(N, D) - 0.5))
    return strength * J / torch.linalg.eigvalsh(couplings.as_matrix(J))[-1]


def test_bounded_couplings_are_themselves_inside_and_below_the_bound_outside():
    bound = couplings.Bounded()
    inside = hollow(strength=0.89)
    assert torch.equal(bound(inside), inside)
    values = [
        float(torch.linalg.eigvals(couplings.as_matrix(bound(hollow(strength=s)))).real.max())
        for s in (0.91, 1.0, 3.0, 1e6)
    ]
    assert values == sorted(values)
    # By hand: 0.9 + 0.05 u / sqrt(1 + u^2) at u = 2.
    assert values[1] == pytest.approx(0.9 + 0.05 * 2 / np.sqrt(5), rel=1e-10)
    assert values[-1] < 0.95 + 1e-12


def test_gradients_of_bounded_couplings_are_right_on_both_sides():
    bound = couplings.Bounded()
    for strength in (0.3, 2.0):
        J = hollow(2, 2, strength).requires_grad_()
        assert torch.autograd.gradcheck(bound, (J,))
