"""phi, its derivatives, and its minimum: dense algebra, autodiff and unrolled iterations as oracles."""

import itertools

import numpy as np
import pytest
import torch

from spinbook.free_energy import VectorSpinModel, saddle, symmetric_traceless

# Fewer than 1e3 operations on numbers of order one, and one inverse with a condition number below 1e2.
ROUNDING = 1e-11
BETAS = torch.tensor([0.4, 1.0, 2.5], dtype=torch.float64)


@pytest.fixture
def batch(make_system):
    h, J = make_system(5, 7, seed=1, coupling=0.5, batch=(3,))
    return J, h @ h.mT


def dense_phi(t, J, G, beta):
    """The definition, by determinant and inverse of one matrix."""
    V = np.diag(np.broadcast_to(t, len(J))) - J
    _, logdet = np.linalg.slogdet(V)
    return beta * np.trace(V + J) - logdet / 2 + beta / 4 * np.trace(np.linalg.inv(V) @ G)


def inside(J, *, seed, auxiliaries, spread=2.0):
    """Starts in V > 0: beyond the largest eigenvalue of the couplings by different amounts."""
    rng = np.random.default_rng(seed)
    largest = torch.linalg.eigvalsh(J)[..., -1].max()
    return largest + torch.tensor(0.1 + spread * rng.random((3, auxiliaries)))


@pytest.mark.parametrize("auxiliaries", [1, 5])
def test_phi_is_its_definition(batch, auxiliaries):
    J, G = batch
    t = inside(J, seed=2, auxiliaries=auxiliaries)
    values = saddle.at(t, J, G, BETAS).phi
    expected = [dense_phi(a.numpy(), J.numpy(), g.numpy(), float(b)) for a, g, b in zip(t, G, BETAS, strict=True)]
    np.testing.assert_allclose(values, expected, atol=ROUNDING)
    np.testing.assert_allclose(saddle.real_phi(t, J, G, BETAS), expected, atol=ROUNDING)


@pytest.mark.parametrize("auxiliaries", [1, 5])
def test_gradient_and_hessian_are_those_of_autodiff(batch, auxiliaries):
    J, G = batch
    t = inside(J, seed=3, auxiliaries=auxiliaries)
    for k in range(3):
        arguments = J, G[k], BETAS[k]

        def phi(t, arguments=arguments):
            return saddle.at(t, *arguments).phi

        point = saddle.at(t[k], *arguments)
        np.testing.assert_allclose(point.slope, torch.autograd.functional.jacobian(phi, t[k]), atol=ROUNDING)
        np.testing.assert_allclose(point.curvature, torch.autograd.functional.hessian(phi, t[k]), atol=ROUNDING)
        np.testing.assert_allclose(saddle.at(t, J, G, BETAS).curvature[k], point.curvature, atol=ROUNDING)


def test_spins_have_their_length_at_the_saddle(batch):
    J, G = batch
    found = saddle.minimum(J, G, BETAS)
    P = torch.linalg.inv(torch.diag_embed(found.t) - J)
    np.testing.assert_allclose(found.inverse, P, atol=ROUNDING)
    squares = (P / (2 * BETAS[:, None, None]) + P @ G @ P / 4).diagonal(dim1=-2, dim2=-1)
    np.testing.assert_allclose(squares, 1, atol=ROUNDING)
    np.testing.assert_allclose(found.phi, saddle.at(found.t, J, G, BETAS).phi, atol=ROUNDING)
    assert found.converged.all()
    assert (found.residual < 1e-12).all()


def test_one_t_for_all_sites_holds_the_spins_at_their_length_on_average(batch):
    J, G = batch
    found = saddle.minimum(J, G, BETAS, t0=torch.full((1,), 3.0, dtype=torch.float64))
    assert found.t.shape == (3, 1)
    squares = (found.inverse / (2 * BETAS[:, None, None]) + found.inverse @ G @ found.inverse / 4).diagonal(
        dim1=-2, dim2=-1
    )
    np.testing.assert_allclose(squares.mean(-1), 1, atol=ROUNDING)
    assert (squares - 1).abs().max() > 0.01  # but not each
    assert (found.phi > saddle.minimum(J, G, BETAS).phi).all()  # one direction only is a smaller place to look


def test_every_start_leads_to_the_same_saddle(batch):
    J, G = batch
    reference = saddle.minimum(J, G, BETAS).t
    for seed, spread in ((9, 0.01), (10, 1.0), (11, 30.0), (12, 1e4)):
        found = saddle.minimum(J, G, BETAS, t0=inside(J, seed=seed, auxiliaries=5, spread=spread))
        assert found.converged.all()
        np.testing.assert_allclose(found.t, reference, atol=ROUNDING)


@pytest.mark.parametrize("coupling", [1.0, 20.0])
@pytest.mark.parametrize("kind", ["disordered", "ferromagnet"])
def test_strong_couplings_and_cold_spins_still_have_their_saddle(make_system, kind, coupling):
    h, J = make_system(16, 3, seed=14, coupling=coupling, field=0.3, batch=(2,))
    if kind == "ferromagnet":
        J = coupling * (1 - torch.eye(16, dtype=torch.float64)) / 16
    for beta in (1.0, 10.0):
        found = saddle.minimum(J, h @ h.mT, torch.tensor(beta, dtype=torch.float64))
        assert found.converged.all()
        assert found.num_steps.max() <= 40
        P = torch.linalg.inv(torch.diag_embed(found.t) - J)
        squares = (P / (2 * beta) + P @ h @ (P @ h).mT / 4).diagonal(dim1=-2, dim2=-1)
        # The rounding of t enters through P^2, which is as large as P_ii^2.
        np.testing.assert_allclose(squares, 1, atol=1e-13 * float(found.t.max()) * float(P.max()) ** 2 + 1e-11)


def test_an_unfinished_search_says_so_and_its_residual_is_that_of_its_value(make_system):
    h, J = make_system(6, 9, seed=16, coupling=2.0)
    model = VectorSpinModel(6, 9, 3.0, J)
    found = model.saddle_point(h, max_steps=2)
    assert not found.converged
    assert found.num_steps == 2
    np.testing.assert_allclose(found.residual, model.gradient(found.value, h).abs().max() / 3.0, rtol=1e-9)
    residuals = [float(model.saddle_point(h, max_steps=k).residual) for k in range(1, 15)]
    # Quadratic at the end: the number of right digits doubles, until rounding stops it.
    last = [(a, b) for a, b in itertools.pairwise(residuals) if 1e-6 < a < 0.05]
    assert last
    assert all(b < 20 * a**2 for a, b in last)


@pytest.mark.parametrize("t0", [None, 1.5])
def test_value_place_and_inverse_pass_gradcheck_and_gradgradcheck(make_system, t0):
    h, J = make_system(3, 2, seed=19, coupling=0.4)
    beta = torch.tensor(1.3, dtype=torch.float64)
    start = None if t0 is None else torch.tensor([t0], dtype=torch.float64)

    def outputs(h, J, beta):
        found = saddle.minimum(symmetric_traceless(J), h @ h.mT, beta, t0=start, tol=1e-14)
        return found.phi, found.t, found.inverse

    variables = tuple(x.clone().requires_grad_() for x in (h, J, beta))
    assert torch.autograd.gradcheck(outputs, variables, fast_mode=True)
    assert torch.autograd.gradgradcheck(outputs, variables, fast_mode=True)


def test_float32_is_as_good_as_it_can_be(make_system):
    dtype = torch.float32
    h, J = make_system(8, 16, seed=22, coupling=0.5, batch=(2,))
    single = VectorSpinModel(8, 16, 1.0, J.to(dtype)).saddle_point(h.to(dtype))
    assert single.value.dtype == single.residual.dtype == dtype
    assert single.converged.all()
    exact = VectorSpinModel(8, 16, 1.0, J).saddle_point(h).value
    np.testing.assert_allclose(single.value, exact, rtol=200 * torch.finfo(dtype).eps)


def test_starts_outside_are_refused_with_the_largest_eigenvalue_and_a_start_that_works(make_system):
    h, J = make_system(6, 4, seed=23, coupling=4.0)
    model = VectorSpinModel(6, 4, 1.0, J)
    largest = float(np.linalg.eigvalsh(J.numpy())[-1])
    message = (
        rf"^t0: expected diag\(t0\) - couplings positive definite, .*eigenvalue of the couplings is {largest:.4g}, "
    )
    with pytest.raises(ValueError, match=message) as error:
        model.saddle_point(h, t0=torch.full((6,), largest - 0.01))
    works = float(str(error.value).split("t0 = ")[1].split(" ")[0])
    assert model.saddle_point(h, t0=[works]).converged
    with pytest.raises(ValueError, match=message.replace("t0", "t")):
        model.phi(torch.ones(1), h)
