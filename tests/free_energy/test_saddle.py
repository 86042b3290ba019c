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
    values = saddle.phi(t, J, G, BETAS)
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
            return saddle.phi(t, *arguments)

        np.testing.assert_allclose(saddle.gradient(t[k], *arguments), torch.func.grad(phi)(t[k]), atol=ROUNDING)
        np.testing.assert_allclose(saddle.hessian(t[k], *arguments), torch.func.hessian(phi)(t[k]), atol=ROUNDING)
        np.testing.assert_allclose(saddle.hessian(t, J, G, BETAS)[k], saddle.hessian(t[k], *arguments), atol=ROUNDING)


def published_hessian(t, J, G, beta):
    """The source's formula, with its second and third term on the diagonal."""
    P = torch.linalg.inv(torch.diag_embed(t) - J)
    last = beta / 4 * (P @ G @ P @ P + P @ P @ G @ P)
    return P * P / 2 + torch.diag_embed(last.diagonal(dim1=-2, dim2=-1))


def test_published_hessian_is_right_summed_for_scalar_t_and_wrong_for_vector_t(batch):
    J, G = batch
    t = inside(J, seed=4, auxiliaries=1)[0].expand(5)
    published, right = published_hessian(t, J, G[0], 1.0), saddle.hessian(t, J, G[0], torch.tensor(1.0))
    np.testing.assert_allclose(published.sum(), right.sum(), atol=ROUNDING)
    # Its diagonal has the row sums of the right second term.
    P = torch.linalg.inv(torch.diag_embed(t) - J)
    np.testing.assert_allclose((published - P * P / 2).diagonal(), (right - P * P / 2).sum(-1), atol=ROUNDING)
    assert (published - right).abs().max() > 1e-3


@pytest.mark.parametrize("field", [0.0, 0.5, 5.0])
def test_phi_is_strictly_convex_where_v_is_positive_definite(make_system, field):
    # A Gram matrix of rank 2 only, or 0: the first term of the Hessian alone has to do it.
    h, J = make_system(6, 2, seed=5, coupling=1.5, field=field)
    G, beta = h @ h.mT, torch.tensor(0.8)
    ends = inside(J, seed=6, auxiliaries=6, spread=20.0)
    for t in ends:
        assert torch.linalg.eigvalsh(saddle.hessian(t, J, G, beta))[0] > 0
    weights = torch.linspace(0, 1, 9, dtype=torch.float64)[1:-1, None]
    between = saddle.phi(weights * ends[0] + (1 - weights) * ends[1], J, G, beta)
    chord = weights[:, 0] * saddle.phi(ends[0], J, G, beta) + (1 - weights[:, 0]) * saddle.phi(ends[1], J, G, beta)
    assert (between < chord).all()


def test_real_part_of_phi_is_largest_at_the_saddle_along_every_imaginary_direction(make_system):
    h, J = make_system(4, 6, seed=7, coupling=1.0)
    G, beta = h @ h.mT, torch.tensor(1.5)
    found = saddle.minimum(J, G, beta)
    rng = np.random.default_rng(8)
    for scale in (0.01, 0.3, 3.0, 100.0):
        y = torch.tensor(rng.normal(scale=scale, size=(50, 4)))
        assert (saddle.real_phi(torch.complex(found.t.expand(50, 4), y), J, G, beta) < found.phi).all()


def test_spins_have_their_length_at_the_saddle(batch):
    J, G = batch
    found = saddle.minimum(J, G, BETAS)
    P = torch.linalg.inv(torch.diag_embed(found.t) - J)
    np.testing.assert_allclose(found.inverse, P, atol=ROUNDING)
    squares = (P / (2 * BETAS[:, None, None]) + P @ G @ P / 4).diagonal(dim1=-2, dim2=-1)
    np.testing.assert_allclose(squares, 1, atol=ROUNDING)
    np.testing.assert_allclose(found.phi, saddle.phi(found.t, J, G, BETAS), atol=ROUNDING)
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


def test_each_example_has_its_own_damping_and_stops_by_itself(batch):
    J, G = batch
    t0 = inside(J, seed=13, auxiliaries=5, spread=30.0)
    # With a loose tolerance a step too many would show.
    for tol in (1e-2, 1e-12):
        together = saddle.minimum(J, G, BETAS, t0=t0, tol=tol)
        for k in range(3):
            alone = saddle.minimum(J, G[k], BETAS[k], t0=t0[k], tol=tol)
            np.testing.assert_allclose(together.t[k], alone.t, atol=ROUNDING)
        assert len(set(together.num_steps.tolist())) > 1


@pytest.mark.parametrize("seed", range(3))
def test_five_newton_steps_suffice_for_the_couplings_of_the_source(seed):
    generator = torch.Generator().manual_seed(seed)
    for n, d in ((7, 61), (32, 128), (64, 64)):
        A = torch.randn(n, n, generator=generator, dtype=torch.float64) / (n * d) ** 0.5
        h = torch.randn(4, n, d, generator=generator, dtype=torch.float64) / d**0.5
        found = saddle.minimum(symmetric_traceless(A), h @ h.mT, torch.tensor(1.0, dtype=torch.float64))
        assert found.converged.all()
        assert found.num_steps.max() <= 5


@pytest.mark.parametrize("coupling", [1.0, 4.0, 20.0])
@pytest.mark.parametrize("kind", ["disordered", "ferromagnet", "sparse"])
def test_strong_couplings_and_cold_spins_still_have_their_saddle(make_system, kind, coupling):
    h, J = make_system(16, 3, seed=14, coupling=coupling, field=0.3, batch=(2,))
    if kind == "ferromagnet":
        J = coupling * (1 - torch.eye(16, dtype=torch.float64)) / 16
    elif kind == "sparse":
        few = J.abs() > 0.3 * coupling
        J = torch.where(few, J, 0.0)
    for beta in (1.0, 10.0):
        found = saddle.minimum(J, h @ h.mT, torch.tensor(beta, dtype=torch.float64))
        assert found.converged.all()
        assert found.num_steps.max() <= 40
        P = torch.linalg.inv(torch.diag_embed(found.t) - J)
        squares = (P / (2 * beta) + P @ h @ (P @ h).mT / 4).diagonal(dim1=-2, dim2=-1)
        # The rounding of t enters through P^2, which is as large as P_ii^2.
        np.testing.assert_allclose(squares, 1, atol=1e-13 * float(found.t.max()) * float(P.max()) ** 2 + 1e-11)


@pytest.mark.parametrize(("field", "order"), [(0.7, 2), (0.0, 3)])
def test_start_is_wrong_at_second_order_in_the_couplings_with_fields_and_at_third_without(make_system, field, order):
    h, J = make_system(6, 9, seed=15, coupling=1.0, field=field)
    G, beta = h @ h.mT, torch.tensor(1.2, dtype=torch.float64)
    scales = np.array([0.0025, 0.005, 0.01])
    errors = []
    for scale in scales:
        error = saddle.start(scale * J, G, beta) - saddle.minimum(scale * J, G, beta, tol=1e-15).t
        errors.append(float(error.abs().max()))
    # The next order is scale * J, a few hundredths, away.
    assert np.polyfit(np.log(scales), np.log(errors), 1)[0] == pytest.approx(order, abs=0.05)


@pytest.mark.parametrize(("coupling", "far"), [(0.3, False), (2.5, True)])
def test_start_looks_elsewhere_when_the_fields_of_the_others_lead_astray(make_system, coupling, far):
    h, J = (x.numpy() for x in make_system(6, 9, seed=26, coupling=coupling))
    beta = 1.2

    def alone(u):
        return (1 / (2 * beta) + np.sqrt(1 / (2 * beta) ** 2 + (u**2).sum(-1))) / 2

    g = 1 / alone(h)
    t = alone(h + J @ (g[:, None] * h)) + J**2 @ g
    P = np.linalg.inv(np.diag(t) - J)
    assert np.linalg.eigvalsh(P)[0] > 0  # inside in both cases
    violation = np.abs(1 - P.diagonal() / (2 * beta) - ((P @ h) ** 2).sum(-1) / 4).max()
    assert (violation > 0.6) == far
    if far:
        rows = np.linalg.norm(J, axis=1)
        t = alone(h) + rows * np.linalg.eigvalsh(J / np.sqrt(np.outer(rows, rows)))[-1]
    found = saddle.start(torch.tensor(J), torch.tensor(h @ h.T), torch.tensor(beta, dtype=torch.float64))
    np.testing.assert_allclose(found, t, atol=ROUNDING)


def test_start_is_inside_for_any_couplings(make_system):
    for seed in range(20):
        h, J = make_system(9, 4, seed=seed, coupling=3.0**seed / 1e4)
        t = saddle.start(J, h @ h.mT, torch.tensor(0.7, dtype=torch.float64))
        assert torch.linalg.eigvalsh(torch.diag(t) - J)[0] > 0


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


def test_a_looser_tolerance_takes_fewer_steps_and_is_kept(make_system):
    h, J = make_system(6, 9, seed=17, coupling=0.5)
    model = VectorSpinModel(6, 9, 1.0, J)
    loose, tight = model.saddle_point(h, tol=1e-2), model.saddle_point(h)
    assert loose.converged
    assert tight.converged
    assert loose.num_steps < tight.num_steps
    assert 1e-12 < loose.residual <= 1e-2


def _unrolled(J, G, beta, t, steps):
    """Newton steps in the graph, with derivatives from the definition: an implicit gradient's plain alternative."""
    n = len(J)
    for _ in range(steps):
        P = torch.linalg.inv(torch.diag(t.expand(n)) - J)
        slope = beta - P.diagonal() / 2 - beta / 4 * (P @ G @ P).diagonal()
        curvature = P * P / 2 + beta / 2 * P * (P @ G @ P)
        if len(t) == 1:
            slope, curvature = slope.sum()[None], curvature.sum()[None, None]
        t = t - torch.linalg.solve(curvature, slope)
    return t


@pytest.mark.parametrize("auxiliaries", [1, 5])
def test_implicit_derivatives_are_those_of_unrolled_newton_steps(make_system, auxiliaries):
    h, J = make_system(5, 7, seed=18, coupling=0.4)
    probe = torch.linspace(-1, 1, auxiliaries + 1, dtype=torch.float64)[1:]
    beta = torch.tensor(1.1, dtype=torch.float64)
    # Plain Newton steps leave V > 0 from farther away.
    one = torch.ones(auxiliaries, dtype=torch.float64)
    t0 = 1.02 * saddle.minimum(J, h @ h.mT, beta, t0=2 * one).t

    def first_and_second(solve):
        variables = [x.clone().requires_grad_() for x in (h, J, beta)]
        t = solve(symmetric_traceless(variables[1]), variables[0] @ variables[0].mT, variables[2])
        first = torch.autograd.grad((probe * t).sum(), variables, create_graph=True)
        second = torch.autograd.grad(sum((x**2).sum() for x in first), variables)
        return [*first, *second]

    implicit = first_and_second(lambda J, G, beta: saddle.minimum(J, G, beta, t0=t0, tol=1e-14).t)
    unrolled = first_and_second(lambda J, G, beta: _unrolled(J, G, beta, t0, 8))
    for ours, theirs in zip(implicit, unrolled, strict=True):
        np.testing.assert_allclose(ours.detach(), theirs.detach(), atol=1e-10)


# Along random directions in the fast tests, entry by entry in the slow ones.
@pytest.mark.parametrize("projected", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("t0", [None, 1.5])
def test_value_place_and_inverse_pass_gradcheck_and_gradgradcheck(make_system, t0, projected):
    h, J = make_system(3, 2, seed=19, coupling=0.4)
    beta = torch.tensor(1.3, dtype=torch.float64)
    start = None if t0 is None else torch.tensor([t0], dtype=torch.float64)

    def outputs(h, J, beta):
        found = saddle.minimum(symmetric_traceless(J), h @ h.mT, beta, t0=start, tol=1e-14)
        return found.phi, found.t, found.inverse

    variables = tuple(x.clone().requires_grad_() for x in (h, J, beta))
    assert torch.autograd.gradcheck(outputs, variables, fast_mode=projected)
    assert torch.autograd.gradgradcheck(outputs, variables, fast_mode=projected)


def test_transforms_of_torch_func_agree_with_each_other(make_system):
    h, J = make_system(3, 4, seed=20, coupling=0.5, batch=(5,))
    model = VectorSpinModel(3, 4, 1.3, J)
    forward = torch.func.jacfwd(model.magnetizations)(h[0])
    np.testing.assert_allclose(forward, torch.func.jacrev(model.magnetizations)(h[0]), atol=ROUNDING)
    np.testing.assert_allclose(forward, -torch.func.hessian(model.free_energy)(h[0]), atol=ROUNDING)
    mapped = torch.func.vmap(torch.func.grad(model.free_energy))(h)
    np.testing.assert_allclose(mapped, -model.magnetizations(h), atol=ROUNDING)


@pytest.mark.parametrize("t0", [None, 1.5])
def test_forward_mode_is_the_transpose_of_reverse_mode(make_system, t0):
    h, J = make_system(4, 3, seed=25, coupling=0.5)
    start = None if t0 is None else torch.tensor([t0], dtype=torch.float64)
    primals = J, h @ h.mT, torch.tensor(1.3, dtype=torch.float64)
    moved = torch.linspace(-1, 1, 16, dtype=torch.float64).reshape(4, 4)
    tangents = symmetric_traceless(moved**2 - moved), moved @ moved.mT, torch.tensor(0.7, dtype=torch.float64)

    def outputs(J, G, beta):
        found = saddle.minimum(J, G, beta, t0=start)
        return found.phi, found.t, found.inverse

    _, forward = torch.func.jvp(outputs, primals, tangents)
    _, reverse = torch.autograd.functional.jvp(outputs, primals, tangents)
    for ours, expected in zip(forward, reverse, strict=True):
        np.testing.assert_allclose(ours, expected, atol=ROUNDING)


def test_the_free_energy_needs_no_solve_to_be_differentiated_and_the_saddle_one(make_system, monkeypatch):
    h, J = make_system(5, 7, seed=21)
    solves = []
    solve = torch.linalg.solve
    monkeypatch.setattr(torch.linalg, "solve", lambda *a, **k: solves.append(a) or solve(*a, **k))
    model = VectorSpinModel(5, 7, 1.0, J)
    source = h.clone().requires_grad_()
    value = model.free_energy(source)
    assert not solves
    torch.autograd.grad(value, source)
    assert not solves
    torch.autograd.grad(model.magnetizations(source).square().sum(), source)
    assert len(solves) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_follows_the_fields_and_float32_is_as_good_as_it_can_be(make_system, dtype):
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
    for t0 in (torch.ones(1), torch.ones(6), torch.full((6,), largest - 0.01)):
        with pytest.raises(ValueError, match=message) as error:
            model.saddle_point(h, t0=t0)
    works = float(str(error.value).split("t0 = ")[1].split(" ")[0])
    assert model.saddle_point(h, t0=[works]).converged
    with pytest.raises(ValueError, match=message.replace("t0", "t")):
        model.phi(torch.ones(6), h)
    with pytest.raises(ValueError, match=message.replace("t0", "t")):
        model.hessian(torch.ones(1), h)
    with pytest.raises(ValueError, match=message.replace("t0", "t")):
        model.gradient(torch.full((6,), -1.0), h)


def test_logarithm_of_a_determinant_is_differentiable_in_any_mode_and_nan_without_one(make_system):
    h, J = make_system(3, 5, seed=24)
    matrix = h @ h.mT + torch.eye(3, dtype=torch.float64)
    np.testing.assert_allclose(saddle.log_det(matrix), torch.linalg.slogdet(matrix).logabsdet, atol=ROUNDING)
    assert saddle.log_det(torch.stack([matrix, J])).isnan().tolist() == [False, True]
    inverse = torch.linalg.inv(matrix)
    expected = -torch.einsum("ij,kl->iljk", inverse, inverse)  # d (M^-1)_il = -M^-1_ij dM_jk M^-1_kl
    expected = (expected + expected.transpose(-1, -2)) / 2
    for outer in (torch.func.jacfwd, torch.func.jacrev):
        np.testing.assert_allclose(outer(torch.func.jacrev(saddle.log_det))(matrix), expected, atol=ROUNDING)
    np.testing.assert_allclose(torch.func.jacfwd(saddle.log_det)(matrix), inverse, atol=ROUNDING)
