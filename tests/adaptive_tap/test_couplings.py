"""Symmetries of coupling tensors, how many numbers they leave free, and the size of the draws."""

import numpy as np
import pytest
import torch

from spinbook.adaptive_tap import couplings


def generic(N=4, D=3):
    return torch.rand(N, N, D, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_matrix_acts_as_the_tensor_does():
    J, S = generic(), torch.rand(4, 3, dtype=torch.float64)
    acted = torch.einsum("ijab,jb->ia", J, S)
    np.testing.assert_allclose((couplings.as_matrix(J) @ S.flatten()).reshape(4, 3), acted, atol=1e-14)


@pytest.mark.parametrize(
    ("symmetry", "axes"),
    [
        (couplings.symmetrize, (1, 0, 3, 2)),
        (couplings.symmetrize_sites, (1, 0, 2, 3)),
        (couplings.symmetrize_components, (0, 1, 3, 2)),
        (couplings.symmetrize_separately, (1, 0, 2, 3)),
        (couplings.symmetrize_separately, (0, 1, 3, 2)),
    ],
)
def test_symmetry_holds_and_is_a_projection(symmetry, axes):
    J = symmetry(generic())
    assert torch.equal(J, J.permute(axes))
    np.testing.assert_allclose(symmetry(J), J, atol=1e-15)


def test_separate_symmetries_leave_the_number_of_couplings_of_the_source():
    for N, D in ((3, 2), (7, 3), (17, 10)):
        count = couplings.count_free(couplings.symmetrize_separately, N, D)
        assert count == N * (N - 1) // 2 * (D * (D + 1) // 2)
    assert couplings.count_free(couplings.symmetrize_components, 17, 10, self_couplings=True) == 17 * 17 * 55


def test_drawn_couplings_have_the_published_variance_and_no_self_couplings():
    N, D = 20, 8
    J = couplings.sample(N, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    off = ~torch.eye(N, dtype=torch.bool)
    assert J[~off].abs().max() == 0
    entries = J[off].flatten()
    # The relative standard error of a variance of n normal numbers is sqrt(2 / n).
    assert float(entries.var()) == pytest.approx(1 / (N * D**2), rel=4 * np.sqrt(2 / len(entries)))
    assert float(couplings.sample(N, D, std=2.0).std()) > 1


def test_bounded_couplings_leave_room_for_a_gaussian_model_and_small_ones_alone():
    large, small = 10 * generic(), generic() / 100
    matrix = couplings.as_matrix(couplings.symmetrize_bounded(large))
    assert float(torch.linalg.eigvalsh(matrix)[-1]) == pytest.approx(0.95)
    hollow = couplings.without_self_couplings(couplings.symmetrize(small))
    assert torch.equal(couplings.symmetrize_bounded(small), hollow)


def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="num_spins: expected an integer >= 1"):
        couplings.sample(0, 3)
    with pytest.raises(ValueError, match="dim: expected an integer >= 1"):
        couplings.count_free(couplings.symmetrize, 3, 0)
