"""Adaptive TAP of vector spins against exact Gaussian results, enumeration, quadrature, and the authors' code."""

import numpy as np
import pytest
import torch

from spinbook.adaptive_tap import attention, couplings, ising, priors, vector

# Linear systems of a few dozen rows and condition numbers below 100.
ROUNDING = 1e-12


def blocks(J):
    """The spins' components as N D spins of one component: (N D, N D)."""
    return couplings.as_matrix(J).numpy()


def precisions(N, D, seed=5):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(N, D, D))
    return np.eye(D) + 0.1 * (W + W.transpose(0, 2, 1))


@pytest.fixture
def model(make_vectors):
    return make_vectors(5, 3, 0.6, seed=0)


def test_gaussian_response_is_mean_and_covariance_of_the_joint_gaussian(model):
    J, X = model
    inverse = precisions(5, 3)
    joint = -blocks(J)
    for i in range(5):
        joint[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] += inverse[i]
    covariance = np.linalg.inv(joint)
    own = np.array([covariance[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] for i in range(5)])
    found = vector.solve_gaussian(J, X, priors.Gaussian(np.linalg.inv(inverse)))
    np.testing.assert_allclose(found.magnetizations.flatten(1), X.flatten(1).numpy() @ covariance, atol=ROUNDING)
    np.testing.assert_allclose(found.covariances[1], own, atol=ROUNDING)
    np.testing.assert_allclose(found.cavity_variances[1], inverse - np.linalg.inv(own), atol=10 * ROUNDING)
    assert bool(found.converged.all())
    mean = vector.gaussian_mean(J, X, priors.Gaussian(np.linalg.inv(inverse)))
    np.testing.assert_allclose(mean, found.magnetizations, atol=ROUNDING)


def test_iteration_for_any_prior_finds_the_gaussian_answer(model):
    J, X = model
    prior = priors.Gaussian(np.linalg.inv(precisions(5, 3)))
    iterated, direct = vector.solve(J, X, prior), vector.solve_gaussian(J, X, prior)
    for name in ("magnetizations", "cavity_variances", "covariances"):
        np.testing.assert_allclose(getattr(iterated, name), getattr(direct, name), atol=1e-9)


@pytest.fixture
def authors():
    """System and results of the authors' code in double precision, in the recipe of their random numbers."""
    rng = np.random.RandomState(0)
    W = rng.normal(0, 1 / np.sqrt(11 * 9), size=(11, 11, 3, 3))
    X = rng.normal(size=(2, 11, 3)) / np.sqrt(3)
    return torch.tensor(W, requires_grad=True), torch.tensor(X, requires_grad=True)


def test_numbers_of_the_authors_code(authors):
    W, X = authors
    J = couplings.without_self_couplings(couplings.symmetrize_separately(W))
    found = vector.solve_gaussian(J, X)
    # Their residual was 9e-14, and their implicit gradients are good to 2e-7.
    close = {"rtol": 0, "atol": 1e-11}
    m = found.magnetizations.detach()
    np.testing.assert_allclose(m[0, 0], [0.016748791955865247, -0.49929771686220653, -0.3410436954564126], **close)
    np.testing.assert_allclose(m[1, 10], [0.38321280924357093, 0.22582900128500935, -0.13526806452814544], **close)
    V = [
        [0.1313223742437561, 0.03472749637627711, -0.014105153840778387],
        [0.034727496376277124, 0.14278161441369583, -0.00776372380859787],
        [-0.014105153840778387, -0.007763723808597868, 0.08363012922856194],
    ]
    np.testing.assert_allclose(found.cavity_variances.detach()[1, 0], V, **close)
    own = [1.1533442311138826, 0.04688848254681356, -0.018150015152213247]
    np.testing.assert_allclose(found.covariances.detach()[0, 0, 0], own, **close)
    loss = found.magnetizations.square().sum()
    assert float(loss.detach()) == pytest.approx(26.689783973616166, abs=1e-10)
    by_W, by_X = torch.autograd.grad(loss, (W, X))
    np.testing.assert_allclose(by_X[1, 3], [0.7598631954839375, 1.770611990440327, 2.4043705343660884], atol=1e-6)
    row = [-0.5493673249335086, -1.1920194536128998, -0.3190837813009474]
    np.testing.assert_allclose(by_W[2, 5, 0], row, atol=1e-6)
    assert float(by_W.norm()) == pytest.approx(43.14878623333828, abs=1e-5)


def test_binary_spins_of_one_component_are_those_of_the_ising_solver(make_ising):
    J, h = make_ising(7, 0.8, seed=2)
    expected = ising.solve_ising(J, h, tol=1e-12)
    found = vector.solve(J[:, :, None, None], h[:, None], priors.Binary(), tol=1e-12)
    np.testing.assert_allclose(found.magnetizations[:, 0], expected.magnetizations, atol=1e-10)
    np.testing.assert_allclose(found.cavity_variances[:, 0, 0], expected.cavity_variances, atol=1e-10)
    np.testing.assert_allclose(found.covariances[:, 0, 0], 1 - expected.magnetizations**2, atol=1e-10)


def test_two_spherical_spins_against_quadrature(make_vectors):
    J, X = make_vectors(2, 3, 0.5, seed=3, batch=())
    x, weights = np.polynomial.legendre.leggauss(16)
    angles, s = 2 * np.pi * np.arange(32) / 32, np.sqrt(1 - x**2)
    points = np.stack(
        [s[:, None] * np.cos(angles), s[:, None] * np.sin(angles), x[:, None] * np.ones(32)], axis=-1
    ).reshape(-1, 3)
    measure = np.repeat(weights, 32)
    errors = []
    for strength in (0.2, 0.4):
        bare = np.exp(points @ X.numpy().T) * measure[:, None]
        p = bare[:, 0, None] * bare[:, 1] * np.exp(strength * points @ J[0, 1].numpy() @ points.T)
        truth = np.stack([points.T @ p.sum(1), points.T @ p.sum(0)]) / p.sum()
        found = vector.solve(strength * J, X, priors.Spherical(1.0), tol=1e-13)
        assert bool(found.converged)
        errors.append(float(np.abs(found.magnetizations.numpy() - truth).max()))
    assert errors[1] < 1e-2
    assert np.log2(errors[1] / errors[0]) == pytest.approx(3, abs=0.4)


@pytest.mark.parametrize("prior", [priors.Binary(), priors.Spherical(1.2)])
def test_every_solution_is_self_consistent(prior, make_vectors):
    J, X = make_vectors(4, 2, 0.8, seed=4)
    found = vector.solve(J, X, prior)
    m, V, C = found.magnetizations, found.cavity_variances, found.covariances
    field = X + torch.einsum("ijab,njb->nia", J, m) - torch.einsum("niab,nib->nia", V, m)
    mean, covariance = prior.moments(field, V)
    np.testing.assert_allclose(mean, m, atol=1e-9)
    for n in range(2):
        Lambda = np.zeros((8, 8))
        for i in range(4):
            Lambda[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = V[n, i].numpy() + np.linalg.inv(covariance[n, i].numpy())
        chi = np.linalg.inv(Lambda - blocks(J))
        for i in range(4):
            np.testing.assert_allclose(chi[2 * i : 2 * i + 2, 2 * i : 2 * i + 2], C[n, i], atol=1e-8)


@pytest.mark.parametrize("prior", [priors.Binary(), priors.Spherical(1.2)])
def test_gradients_of_every_output_for_every_prior(prior, make_vectors):
    J, X = make_vectors(2, 2, 0.6, seed=6, batch=())

    def outputs(W, X):
        J = couplings.without_self_couplings(couplings.symmetrize(W))
        return vector.solve(J, X, prior, tol=1e-13)[:3]

    assert torch.autograd.gradcheck(outputs, (J.requires_grad_(), X.requires_grad_()), fast_mode=True)


def test_gradients_of_the_gaussian_response_of_both_orders(make_vectors):
    J, X = make_vectors(3, 2, 0.6, seed=7)

    def outputs(W, X):
        return vector.solve_gaussian(couplings.without_self_couplings(couplings.symmetrize(W)), X)[:3]

    inputs = (J.requires_grad_(), X.requires_grad_())
    assert torch.autograd.gradcheck(outputs, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(outputs, inputs, fast_mode=True)


def test_systems_that_cannot_be_normalised_name_the_smallest_eigenvalue(make_vectors):
    J, X = make_vectors(4, 2, 0.6, seed=8)
    J = 5 * J
    smallest = 1 - np.linalg.eigvalsh(blocks(J))[-1]
    for call in (vector.solve_gaussian, lambda J, X: vector.solve(J, X, priors.Gaussian())):
        with pytest.raises(ValueError, match=rf"couplings: .* smallest eigenvalue {smallest:.6g}"):
            call(J, X)


@pytest.mark.parametrize(("prior", "dim"), [(priors.Binary(), 2), (priors.Spherical(1.0), 3)])
def test_strong_fields_saturate_spins(prior, dim):
    size = 3e5
    J = 0.1 * (torch.ones(3, 3, dtype=torch.float64) - torch.eye(3, dtype=torch.float64))
    couplings = J[:, :, None, None] * torch.eye(dim, dtype=torch.float64)
    fields = size * torch.tensor([[1.0], [-1.0], [1.0]], dtype=torch.float64).expand(3, dim)
    found = vector.solve(couplings, fields, prior, tol=1e-10)
    assert bool(found.converged)
    lengths = found.magnetizations.norm(dim=-1)
    # One on the sphere less (D - 1) / 2 over the field, whose neighbours add a tenth each at most.
    field = size * dim**0.5
    expected = dim**0.5 if isinstance(prior, priors.Binary) else 1 - (dim - 1) / (2 * field)
    np.testing.assert_allclose(lengths, expected, atol=1e-12 if isinstance(prior, priors.Binary) else 0.3 / field**2)
    assert float(found.cavity_variances.abs().max()) <= 0.03 / size
    again = attention.AdaptiveTAPAttention(3, dim, couplings, prior=prior)(fields[None])[0]
    np.testing.assert_allclose(again.detach(), found.magnetizations, atol=1e-10)
