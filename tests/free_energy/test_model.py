"""Thermodynamics at the saddle: derivatives, exact results at finite D, sampling, and the source's own numbers."""

import math

import numpy as np
import pytest
import torch

from spinbook.free_energy import QueryKeyCouplings, VectorSpinModel, exact, sampling, symmetric_traceless

# Fewer than 1e3 operations on numbers of order one, and one inverse with a condition number below 1e2.
ROUNDING = 1e-11
ONE = torch.ones(1, dtype=torch.float64)


@pytest.fixture(params=["each", "shared"])
def t0(request):
    """One t for each spin, or one for all."""
    return None if request.param == "each" else 3 * ONE


def gradient(function, x):
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0]


def variables(make_system, num_spins=5, dim=7, **options):
    h, J = make_system(num_spins, dim, **{"seed": 1, "coupling": 0.5, "batch": (2,)} | options)
    return h, J, torch.tensor([0.7, 1.6], dtype=torch.float64)


# Thermodynamic consistency


def test_mean_spins_correlations_and_energy_are_derivatives_of_the_free_energy(make_system, t0):
    h, J, beta = variables(make_system)

    def free_energy(h=h, J=J, beta=beta):
        return VectorSpinModel(5, 7, beta, symmetric_traceless(J)).free_energy(h, t0=t0)

    model = VectorSpinModel(5, 7, beta, J)
    np.testing.assert_allclose(model.magnetizations(h, t0=t0), -gradient(lambda h: free_energy(h=h), h), atol=ROUNDING)
    if t0 is None:
        correlations = model.correlations(h)
        np.testing.assert_allclose(correlations.diagonal(dim1=-2, dim2=-1), 1, atol=ROUNDING)
        off_diagonal = symmetric_traceless(correlations.sum(0))
        np.testing.assert_allclose(off_diagonal, -gradient(lambda J: free_energy(J=J), J), atol=ROUNDING)
    energy = gradient(lambda beta: beta * free_energy(beta=beta), beta)
    np.testing.assert_allclose(model.internal_energy(h, t0=t0), energy, atol=ROUNDING)


def test_specific_heat_is_the_derivative_of_the_internal_energy(make_system):
    h, J, beta = variables(make_system)
    slope = gradient(lambda beta: VectorSpinModel(5, 7, beta, J).internal_energy(h), beta)
    heat = VectorSpinModel(5, 7, beta, J).specific_heat(h)
    np.testing.assert_allclose(heat, -(beta**2) * slope, atol=ROUNDING)
    assert (heat > 0).all()


def test_susceptibilities_are_derivatives_of_the_mean_spins(make_system):
    h, J, beta = variables(make_system, num_spins=3, dim=4)
    model = VectorSpinModel(3, 4, beta, J)
    chi = model.susceptibilities(h)
    jacobian = torch.autograd.functional.jacobian(model.magnetizations, h)
    for k in range(2):
        np.testing.assert_allclose(chi[k], jacobian[k, :, :, k], atol=ROUNDING)
        assert torch.linalg.eigvalsh(chi[k].reshape(12, 12))[0] > 0


def test_second_derivatives_are_good_enough_to_train_on(make_system):
    h, J, beta = variables(make_system, num_spins=2, dim=2)

    def outputs(h, J, beta):
        model = VectorSpinModel(2, 2, beta, symmetric_traceless(J))
        return model.magnetizations(h), model.specific_heat(h)

    arguments = tuple(x.requires_grad_() for x in (h, J, beta))
    assert torch.autograd.gradcheck(outputs, arguments, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda *x: outputs(*x)[0], arguments, fast_mode=True)


# Exact results


SYSTEMS = {
    "one spin": ([[0.9, 0.0]], [[0.0]]),
    "opposed": ([[0.2, -0.5], [0.7, 0.0]], [[0.0, -0.4], [-0.4, 0.0]]),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_errors_fall_as_one_over_d_and_of_the_next_order_as_its_square(name):
    beta = 1.5
    plane, J = (torch.tensor(x, dtype=torch.float64) for x in SYSTEMS[name])
    dims = np.array([64, 128, 256])
    errors = {"f": [], "f next": [], "m": [], "m next": []}
    for d in dims.tolist():
        h = torch.zeros(len(plane), d, dtype=torch.float64)
        h[:, :2] = plane
        model = VectorSpinModel(len(plane), d, beta, J)
        f, m = exact.free_energy(h, J, beta=beta), exact.magnetizations(h, J, beta=beta)
        errors["f"].append(float((model.free_energy(h) - f).abs()))
        errors["f next"].append(float((model.free_energy_next_order(h) - f).abs()))
        errors["m"].append(float((model.magnetizations(h) - m).norm()))
        errors["m next"].append(float((model.magnetizations_next_order(h) - m).norm()))
    for key, values in errors.items():
        slope = np.polyfit(np.log(dims), np.log(values), 1)[0]
        # The next order changes a slope between D and 2 D by about its coefficient, of order one, over D.
        assert slope == pytest.approx(-2 if "next" in key else -1, abs=5 / 64), key


def test_sampled_spins_are_on_the_side_of_the_next_order(make_system):
    num_spins, dim, chains, sweeps = 3, 8, 1200, 30
    h, J = make_system(num_spins, dim, seed=num_spins, coupling=0.5)
    generator = torch.Generator().manual_seed(5)
    start = sampling.uniform(chains, num_spins, dim, generator=generator, dtype=torch.float64)
    spins = sampling.simulate(start, J, h, steps=sweeps, generator=generator)[10:]
    model = VectorSpinModel(num_spins, dim, 1.0, J)
    by_chain = spins.mean(0)
    m, error = by_chain.mean(0), by_chain.std(0) / chains**0.5
    # Chains are independent. The next order is left with errors of about 0.1 / D^2 in each component.
    allowed = 4 * error + 0.2 / dim**2
    assert ((m - model.magnetizations_next_order(h)).abs() < allowed).all()
    # All spins of a system that is too stiff, or too soft, are off in the same direction: along m.
    direction = m / m.norm()
    projected = (by_chain * direction).sum((-2, -1))
    off = float((model.magnetizations(h) * direction).sum() - projected.mean())
    assert abs(off) > 5 * float(projected.std() / chains**0.5)
    better = float((model.magnetizations_next_order(h) * direction).sum() - projected.mean())
    assert abs(better) < abs(off) / 3
    energies = -dim * (torch.einsum("ij,scia,scja->sc", J, spins, spins) + (spins * h).sum((-2, -1))).mean(0)
    u, error = float(energies.mean()) / dim, float(energies.std()) / chains**0.5 / dim
    assert model.internal_energy(h) == pytest.approx(u, abs=4 * error + num_spins / dim)


# The source's own numbers


def test_numbers_of_the_authors_code():
    """For one t at all sites, in the recipe of their random numbers."""
    rng = np.random.RandomState(0)
    h = torch.tensor(rng.normal(size=(2, 7, 61)) / np.sqrt(61)).requires_grad_()
    J = symmetric_traceless(torch.tensor(rng.normal(0, 1 / np.sqrt(7 * 61), size=(7, 7)))).requires_grad_()
    beta = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    model = VectorSpinModel(7, 61, beta, J)
    t = model.saddle_point(h, t0=ONE).value
    f, m = model.free_energy(h, t0=ONE), model.magnetizations(h, t0=ONE)
    close = {"rtol": 0, "atol": ROUNDING}
    np.testing.assert_allclose(t.detach()[:, 0], [0.815240247154993, 0.8214070922708954], **close)
    np.testing.assert_allclose(f.detach(), [-2.631244066023018, -2.691935766848478], **close)
    np.testing.assert_allclose(model.phi(t, h).detach(), [8.557259197982827, 8.617950898808287], **close)
    per_site = t.detach().expand(2, 7)
    np.testing.assert_allclose(model.phi(per_site, h).detach(), [8.557259197982827, 8.617950898808287], **close)
    curvatures = [12.206427948829356, 12.144490574121619]
    np.testing.assert_allclose(model.hessian(t, h).detach()[:, 0, 0], curvatures, **close)
    np.testing.assert_allclose(model.hessian(per_site, h).detach().sum((-2, -1)), curvatures, **close)
    energies = model.internal_energy(h, t0=ONE).detach()
    np.testing.assert_allclose(energies, [-4.320902189333912, -4.408290796243552], **close)
    # What the authors return as log_prob, which is not the density that our log_prob is.
    log_prob = (model.phi(t, h) - beta * 7 * t[:, 0]).detach()
    np.testing.assert_allclose(log_prob, [2.8505774678978764, 2.868101252912018], **close)

    def assert_array(array, first, total, squares):
        np.testing.assert_allclose(array.detach().flatten()[:3], first, **close)
        assert array.sum().item() == pytest.approx(total, abs=1e3 * ROUNDING)
        assert array.square().sum().item() == pytest.approx(squares, abs=1e3 * ROUNDING)

    means = [0.1464236586561028, 0.024676559369570892, 0.09084377554983263]
    assert_array(m, means, -4.028272602061429, 5.3417075584194516)
    by_h, by_couplings, by_beta = torch.autograd.grad(f.sum(), (h, J, beta), retain_graph=True)
    assert_array(-by_h, means, -4.028272602061429, 5.3417075584194516)
    # The sign of the authors' gradient by the couplings is that of f at first order: f falls where sigmas align.
    assert_array(by_couplings, [0.0, 0.13359791842364666, 0.23620500619933624], 1.6124652060817715, 0.8557050001607546)
    assert by_beta.item() == pytest.approx(-3.4060131527059685, abs=ROUNDING)
    (training,) = torch.autograd.grad(m.square().sum(), h)
    first = [0.08535856165754699, 0.00984708540652635, 0.0585516164669927]
    assert_array(training, first, -2.1371119667086416, 1.7117942655446103)


# log_prob


def spin_states(num_spins):
    return 2.0 * ((np.arange(2**num_spins)[:, None] >> np.arange(num_spins)) & 1) - 1


def test_log_prob_is_a_mixture_of_normal_densities_around_the_spins_without_field(make_system):
    stiffness = 0.7
    # Two Ising spins (D = 1), whose exact free energy makes it exact.
    h, J = make_system(2, 1, seed=8, coupling=0.9, field=1.2, batch=(6,))
    beta = 1.3
    states = spin_states(2)
    weights = np.exp(beta * np.einsum("ij,ci,cj->c", J.numpy(), states, states))
    variance = 1 / (beta * stiffness)
    distances = ((h.numpy()[:, None, :, 0] - states / stiffness) ** 2).sum(-1)
    mixture = (weights / weights.sum() * np.exp(-distances / (2 * variance)) / (2 * np.pi * variance)).sum(-1)
    model = VectorSpinModel(2, 1, beta, J)
    ours = model.log_prob(h, field_stiffness=stiffness, free_energy=lambda h: exact.free_energy(h, J, beta=beta))
    np.testing.assert_allclose(ours, np.log(mixture), atol=1e-10)


def total_probability(model, dim, free_energy):
    """integral of p(h) over all fields of one spin, by its length."""
    r, weights = np.polynomial.legendre.leggauss(400)
    r, weights = 3 * (r + 1), 3 * weights
    h = torch.zeros(400, 1, dim, dtype=torch.float64)
    h[:, 0, 0] = torch.tensor(r)
    log_sphere = np.log(2) + dim / 2 * np.log(np.pi) - math.lgamma(dim / 2)
    log_density = model.log_prob(h, free_energy=free_energy).numpy()
    return float(np.sum(weights * np.exp(log_density + log_sphere + (dim - 1) * np.log(r))))


def test_log_prob_is_normalised_up_to_the_error_of_the_free_energy():
    dim = 16
    model = VectorSpinModel(1, dim, 1.2, torch.zeros(1, 1))
    exactly = total_probability(model, dim, lambda h: exact.free_energy(h, beta=1.2))
    assert exactly == pytest.approx(1, abs=1e-10)
    leading = total_probability(model, dim, None)
    following = total_probability(model, dim, model.free_energy_next_order)
    # D times an error of 1/D in f, and of 1/D^2 with coefficients of a few hundredths.
    assert 0.05 < abs(leading - 1) < 0.5
    assert abs(following - 1) < 0.3 / dim


# Couplings computed from the fields


@pytest.fixture
def attentive(make_system):
    torch.manual_seed(0)
    model = VectorSpinModel(5, 7, 1.4, QueryKeyCouplings(5, 7)).double()
    h, _ = make_system(5, 7, seed=9, field=1.0, batch=(2,))
    return model, h


def test_derivative_of_the_free_energy_is_mean_spins_plus_channel_mixing(attentive):
    model, h = attentive
    whole = -gradient(model.free_energy, h)
    np.testing.assert_allclose(model.field_gradient(h).detach(), whole, atol=ROUNDING)
    closed = model.couplings.channel_mixing(h, model.correlations(h))
    np.testing.assert_allclose(model.channel_mixing(h).detach(), closed.detach(), atol=ROUNDING)
    np.testing.assert_allclose((whole - model.magnetizations(h)).detach(), closed.detach(), atol=ROUNDING)
    assert closed.abs().max() > 0.01
    # The mean spins are those of the matrix that the fields produce.
    J = model.couplings(h).detach()
    fixed = VectorSpinModel(5, 7, 1.4, J[0]).magnetizations(h[0])
    np.testing.assert_allclose(model.magnetizations(h)[0].detach(), fixed, atol=ROUNDING)


def test_weights_of_computed_couplings_can_be_trained(attentive):
    model, h = attentive
    weight = model.couplings.to_queries.weight

    def loss(moved):
        with torch.no_grad():
            weight[0, 1] += moved
        return model.field_gradient(h[0]).square().sum()

    (slope,) = torch.autograd.grad(loss(0.0), weight)
    numerical = (loss(1e-5) - loss(-2e-5)) / 2e-5
    assert slope[0, 1].item() == pytest.approx(numerical.item(), abs=1e-8)  # differences: 1e-5^2, rounding 1e-16/1e-5
    assert slope[0, 1].abs() > 1e-5


# Shapes, types and bad input


def test_leading_axes_of_beta_and_of_the_variables_are_a_batch_too(make_system):
    h, J = make_system(4, 3, seed=11, batch=(2, 3))
    model = VectorSpinModel(4, 3, torch.tensor([[0.5], [1.5]], dtype=torch.float64), J)
    single = VectorSpinModel(4, 3, 1.5, J)
    for method in ("log_prob", "free_energy_next_order", "magnetizations_next_order"):
        alone = getattr(single, method)(h[1, 2])
        np.testing.assert_allclose(getattr(model, method)(h)[1, 2], alone, atol=ROUNDING, err_msg=method)
    assert model.phi(torch.ones(4), h).shape == model.phi([1.0], h).shape == (2, 3)
    grid = 1 + torch.arange(8, dtype=torch.float64).reshape(2, 1, 4) / 8
    assert single.phi(grid.expand(2, 5, 4), h[0, 0]).shape == (2, 5)
    assert single.hessian(grid, h[0]).shape == (2, 3, 4, 4)
    np.testing.assert_allclose(single.phi(grid, h[0])[1, 2], single.phi(grid[1, 0], h[0, 2]), atol=ROUNDING)


def test_a_matrix_that_training_has_made_asymmetric_is_refused():
    model = VectorSpinModel(2, 3)
    with torch.no_grad():
        model.couplings[0, 1] += 1.0
    with pytest.raises(ValueError, match=r"^couplings: expected a symmetric matrix"):
        model.free_energy(torch.zeros(2, 3))


def test_fields_without_a_saddle_in_reach_raise_instead_of_answering():
    model = VectorSpinModel(2, 3, 1.0, [[0.0, 0.2], [0.2, 0.0]])
    with pytest.raises(RuntimeError, match=r"^h: expected fields with a saddle point within reach"):
        model.free_energy(torch.full((2, 3), 1e200, dtype=torch.float64))
