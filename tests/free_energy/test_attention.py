"""The module: normalised inputs to fields, the derivative of the free energy out, and V^-1 as an attention matrix."""

import numpy as np
import pytest
import torch

from spinbook.free_energy import QueryKeyCouplings, VectorSpinAttention
from spinbook.free_energy import couplings as coupling_matrices

ROUNDING = 1e-11


def inputs(*shape, seed=0):
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 1


def test_module_sends_out_mean_spins_in_the_fields_of_its_normalised_inputs():
    attention = VectorSpinAttention(6, 10, 1.3, generator=torch.Generator().manual_seed(1)).double()
    x = inputs(2, 6, 10)
    normalised = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, correction=0, keepdim=True) + 1e-5)
    h = normalised / 10**0.5
    out = attention(x)
    assert out.shape == (2, 6, 10)
    np.testing.assert_allclose(out.detach(), attention.spin_model.magnetizations(h).detach(), atol=ROUNDING)
    np.testing.assert_allclose(attention.fields(x).detach(), h, atol=ROUNDING)
    # At beta = 1 and D = 10 the mean spins are well inside the sphere.
    assert 0.3 < out.norm(dim=-1).min() < out.norm(dim=-1).max() < 1


def test_gradients_by_the_couplings_are_symmetric_and_hollow():
    attention = VectorSpinAttention(6, 10)
    attention(inputs(2, 6, 10).float()).square().sum().backward()
    gradient = attention.spin_model.couplings.grad
    assert gradient.abs().max() > 0
    assert torch.equal(gradient, gradient.mT)
    assert gradient.diagonal().abs().max() == 0


def test_gradients_of_the_module_are_right_with_either_kind_of_couplings():
    torch.manual_seed(0)
    for couplings in (None, QueryKeyCouplings(2, 3)):
        attention = VectorSpinAttention(2, 3, 1.2, couplings).double()
        x = inputs(2, 3, seed=2).requires_grad_()
        assert torch.autograd.gradcheck(attention, (x,))


def test_drawn_couplings_have_the_standard_deviation_of_two_averaged_entries():
    J = coupling_matrices.sample(60, 25, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert torch.equal(J, J.mT)
    assert J.diagonal().abs().max() == 0
    pairs = J[tuple(torch.triu_indices(60, 60, 1))]
    expected = 1 / (2 * 60 * 25) ** 0.5
    # The relative standard error of a standard deviation of n normal numbers is 1/sqrt(2 n).
    assert float(pairs.std()) == pytest.approx(expected, rel=4 / np.sqrt(2 * len(pairs)))


def test_computed_couplings_are_the_symmetric_hollow_part_of_what_the_source_prints():
    torch.manual_seed(0)
    couplings = QueryKeyCouplings(5, 9).double()
    h = inputs(2, 5, 9) / 9
    Q, K = couplings.to_queries.weight.detach().numpy(), couplings.to_keys.weight.detach().numpy()
    H = h[1].numpy()
    printed = np.tanh(H @ Q.T @ (H @ K.T).T * 3) / np.sqrt(45)
    np.testing.assert_allclose(couplings.as_written(h)[1].detach(), printed, atol=ROUNDING)
    J = couplings(h)[1].detach().numpy()
    expected = (printed + printed.T) / 2
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(J, expected, atol=ROUNDING)
    assert np.abs(printed - printed.T).max() > 0.01
    assert np.abs(np.trace(printed)) > 0.01
