"""One and two spins: closed forms, sums over states, and plain quadrature in all angles."""

import numpy as np
import pytest
import torch
from scipy import special

from spinbook.free_energy import exact

# Rules of a few hundred nodes and exponents of up to a few hundred.
ROUNDING = 1e-12


def vectors(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def bessel(k, dim):
    """ln of Gamma(D/2) (2/k)^nu I_nu(k): by its power series where SciPy's Bessel function would underflow."""
    if k < 20:
        return np.log(special.hyp0f1(dim / 2, k**2 / 4))
    nu = dim / 2 - 1
    return special.gammaln(dim / 2) + nu * np.log(2 / k) + np.log(special.ive(nu, k)) + k


@pytest.mark.parametrize("dim", [1, 3, 64])
@pytest.mark.parametrize("length", [1e-3, 6.0])
def test_one_spin_is_a_bessel_function(dim, length):
    beta = 0.7
    h = torch.zeros(1, dim, dtype=torch.float64)
    h[0, -1] = -length
    k = beta * dim * length
    expected = bessel(k, dim)
    # For strong fields the closed form subtracts large logarithms of the order D ln D.
    tolerance = ROUNDING * max(1, dim)
    assert float(exact.log_partition(h, beta=beta)) == pytest.approx(expected, abs=tolerance)
    assert float(exact.free_energy(h, beta=beta)) == pytest.approx(-expected / (beta * dim), abs=tolerance)
    m = k / dim * np.exp(bessel(k, dim + 2) - expected)  # I_{nu+1} / I_nu, each divided by its start k^nu
    np.testing.assert_allclose(exact.magnetizations(h, beta=beta)[0, -1], -m, atol=1e-11)


def test_weak_fields_are_continued_without_a_step():
    # The series and the integral meet where k^2 = 1e-4 D.
    dim = 5
    k = np.sqrt(1e-4 * dim) * np.array([0.999, 1.001])
    h = torch.tensor(k / dim)[:, None, None] * vectors([1.0, 0, 0, 0, 0])
    expected = k**2 / (2 * dim) - k**4 / (4 * dim**2 * (dim + 2))  # and k^6 / (3 D^3 ...) is 1e-15
    np.testing.assert_allclose(exact.log_partition(h), expected, atol=1e-14)
    no_field = torch.zeros(1, dim, dtype=torch.float64, requires_grad=True)
    curvature = torch.autograd.functional.hessian(lambda h: exact.log_partition(h), no_field)[0, :, 0]
    np.testing.assert_allclose(curvature, dim * np.eye(dim), atol=ROUNDING)  # beta^2 D^2 / D


# Fields of different lengths and directions, either of them the larger one, and none.
FIELDS = {
    "skew": ([0.8, 0.0], [0.3, 0.6]),
    "second larger": ([0.2, 0.1], [-0.9, 0.8]),
    "none": ([0.0, 0.0], [0.0, 0.0]),
}


def plain(h, J, beta, dim):
    """Both spins of two or three components over the nodes of one rule each."""
    angle = 2 * np.pi * np.arange(48) / 48
    if dim == 2:
        spins, weights = np.stack([np.cos(angle), np.sin(angle)], -1), np.full(48, 1 / 48)
    else:
        z, w = np.polynomial.legendre.leggauss(24)
        ring = np.sqrt(1 - z**2)[:, None]
        spins = np.stack([ring * np.cos(angle), ring * np.sin(angle), np.broadcast_to(z[:, None], (24, 48))], -1)
        spins, weights = spins.reshape(-1, 3), np.repeat(w / 2 / 48, 48)
    exponent = dim * beta * (2 * J * spins @ spins.T + (spins @ h[0])[:, None] + spins @ h[1])
    joint = weights[:, None] * weights * np.exp(exponent)
    Z = joint.sum()
    means = np.stack([joint.sum(1) @ spins, joint.sum(0) @ spins]) / Z
    return np.log(Z), means


@pytest.mark.parametrize(("dim", "J"), [(2, 0.3), (3, -0.5)])
@pytest.mark.parametrize("name", FIELDS)
def test_two_spins_agree_with_a_sum_over_all_directions_of_both(name, dim, J):
    h = np.zeros((2, dim))
    h[:, :2] = FIELDS[name]
    beta = 0.8
    log_partition, means = plain(h, J, beta, dim)
    arguments = (torch.tensor(h), [[0.0, J], [J, 0.0]])
    assert float(exact.log_partition(*arguments, beta=beta)) == pytest.approx(log_partition, abs=ROUNDING)
    np.testing.assert_allclose(exact.magnetizations(*arguments, beta=beta), means, atol=1e-10)


def test_strong_fields_in_many_dimensions_neither_overflow_nor_underflow():
    dim = 1000
    h = torch.zeros(2, dim, dtype=torch.float64)
    h[0, 0], h[1, 1] = 5.0, 1e-6
    value = float(exact.log_partition(h, [[0.0, 1e-9], [1e-9, 0.0]]))
    # The second spin hardly feels anything; the ratio of I is 1 to within nu / k, and its integral likewise.
    assert value == pytest.approx(float(exact.log_partition(h[:1])), abs=1e-4)
    assert float(exact.log_partition(torch.zeros(2, dim, dtype=torch.float64))) == pytest.approx(0, abs=ROUNDING)


def test_derivatives_by_fields_couplings_and_beta_may_be_taken_again():
    h = vectors([0.8, 0.0, 0.1], [0.3, 0.6, -0.2]).requires_grad_()
    J = vectors([0.0, 0.2], [0.2, 0.0]).requires_grad_()
    beta = torch.tensor(0.9, dtype=torch.float64, requires_grad=True)

    def f(h, J, beta):
        return exact.free_energy(h, (J + J.mT) / 2 * (1 - torch.eye(2, dtype=torch.float64)), beta=beta)

    assert torch.autograd.gradcheck(f, (h, J, beta))
    assert torch.autograd.gradgradcheck(f, (h, J, beta))
    assert exact.magnetizations(h, J, beta=beta).requires_grad
    assert not exact.magnetizations(h.detach(), J.detach()).requires_grad
