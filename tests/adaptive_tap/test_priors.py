"""Single-site moments against derivatives of log Z, and log Z against quadrature and closed forms."""

import numpy as np
import pytest
import torch
from scipy import special

from spinbook.adaptive_tap.priors import Binary, Gaussian, Spherical

# Quadratures of the library and of SciPy alike are good to 1e-12, and a second derivative costs some digits.
CLOSE = 1e-9

SIGMA = np.array([[0.9, 0.2, 0.0], [0.2, 0.6, -0.1], [0.0, -0.1, 0.7]])
PRIORS = {
    "gaussian": Gaussian(),
    "correlated gaussian": Gaussian(SIGMA),
    "binary": Binary(),
    "spherical": Spherical(1.3),
}
each = pytest.mark.parametrize("name", PRIORS)


def site(dim, *, seed=0, strength=0.4):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(dim, dim))
    V = strength * (W + W.T) / np.linalg.norm(W + W.T, 2)
    return torch.tensor(rng.normal(size=dim)), torch.tensor(V)


@each
def test_moments_are_derivatives_of_log_z(name):
    h, V = site(3)
    prior = PRIORS[name]
    mean, covariance = prior.moments(h, V)
    slope = torch.autograd.functional.jacobian(lambda x: prior.log_partition(x, V), h)
    curvature = torch.autograd.functional.hessian(lambda x: prior.log_partition(x, V), h)
    np.testing.assert_allclose(mean, slope, atol=CLOSE)
    np.testing.assert_allclose(covariance, curvature, atol=CLOSE)


@each
def test_priors_are_normalised(name):
    assert float(PRIORS[name].log_partition(*(torch.zeros_like(x) for x in site(3)))) == pytest.approx(0, abs=CLOSE)


@each
def test_gradients_of_the_moments(name):
    h, W = site(3)

    def moments(h, W):
        return PRIORS[name].moments(h, (W + W.mT) / 2)

    assert torch.autograd.gradcheck(moments, (h.requires_grad_(), W.requires_grad_()))


def test_one_binary_component_is_a_hyperbolic_tangent_for_any_cavity_variance():
    h = torch.tensor([[0.7], [-1.2]], dtype=torch.float64)
    for V in (0.0, 0.9):
        mean, covariance = Binary().moments(h, torch.full((2, 1, 1), V, dtype=torch.float64))
        np.testing.assert_allclose(mean, torch.tanh(h), atol=1e-14)
        np.testing.assert_allclose(covariance[:, 0], 1 - torch.tanh(h) ** 2, atol=1e-14)
        log_z = Binary().log_partition(h, torch.full((2, 1, 1), V, dtype=torch.float64))
        # The constant that the printed Z = cosh leaves out.
        np.testing.assert_allclose(log_z, torch.log(torch.cosh(h[:, 0])) + V / 2, atol=1e-14)


def test_spins_on_a_sphere_by_quadrature():
    h, V = site(3, seed=1, strength=0.8)
    x, weights = np.polynomial.legendre.leggauss(60)
    angles = 2 * np.pi * np.arange(120) / 120
    s = np.sqrt(1 - x**2)
    shape = np.ones((60, 120))
    S = 1.5 * np.stack([s[:, None] * np.cos(angles), s[:, None] * np.sin(angles), x[:, None] * shape], axis=-1)
    density = np.exp(S @ h.numpy() + np.einsum("...a,ab,...b->...", S, V.numpy(), S) / 2) * weights[:, None] / 240
    mean = np.einsum("pq,pqa->a", density, S) / density.sum()
    second = np.einsum("pq,pqa,pqb->ab", density, S, S) / density.sum()
    found, covariance = Spherical(1.5).moments(h, V)
    assert float(Spherical(1.5).log_partition(h, V)) == pytest.approx(np.log(density.sum()), abs=CLOSE)
    np.testing.assert_allclose(found, mean, atol=CLOSE)
    np.testing.assert_allclose(covariance, second - np.outer(mean, mean), atol=CLOSE)


@pytest.mark.parametrize("dim", [2, 40])
def test_spherical_mean_without_cavity_variance_is_a_bessel_ratio(dim):
    h = torch.zeros(dim, dtype=torch.float64)
    h[0], radius = 1.9, 1.2
    order, x = dim / 2 - 1, 1.2 * 1.9
    expected = radius * special.ive(order + 1, x) / special.ive(order, x)
    mean, covariance = Spherical(radius).moments(h, torch.zeros(dim, dim, dtype=torch.float64))
    assert float(mean[0]) == pytest.approx(expected, abs=CLOSE)
    # The length is fixed.
    assert float(torch.trace(covariance) + mean @ mean) == pytest.approx(radius**2, abs=CLOSE)


def test_spin_length_constraint_of_a_strongly_squeezed_spin():
    V = torch.diag(torch.tensor([40.0, 0.0, -40.0], dtype=torch.float64))
    mean, covariance = Spherical(1.0).moments(torch.zeros(3, dtype=torch.float64), V)
    assert float(covariance.trace()) == pytest.approx(1, abs=CLOSE)
    assert float(covariance[0, 0]) > 0.9
    np.testing.assert_allclose(mean, 0, atol=CLOSE)
