"""The second law step by step, against sums over all pairs of states written out."""

import numpy as np

from spinbook.entropy_production import paths, steady
from spinbook.ising import exact
from tests.ising.distributions import independent


def system(num_spins, strength=0.8, seed=0):
    rng = np.random.default_rng(seed)
    return strength * rng.normal(size=(num_spins, num_spins)), rng.uniform(-0.5, 0.5, size=num_spins)


def random_distribution(num_spins, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(2**num_spins))


def test_the_budget_is_the_divergence_of_the_step_from_its_reverse():
    J, h = system(4)
    p = random_distribution(4)
    P = np.asarray(exact.transition_matrix(J, h, beta=1.1))
    forward = P * p
    backward = (P * (P @ p)).T
    budget = paths.entropy_budget(p, J, h, beta=1.1)
    np.testing.assert_allclose(budget.total, np.sum(forward * np.log(forward / backward)), rtol=1e-12)
    np.testing.assert_allclose(budget.environment, np.sum(forward * np.log(P / P.T)), rtol=1e-12)
    np.testing.assert_allclose(budget.distribution, P @ p, rtol=1e-12)


def test_no_step_of_a_changing_drive_lowers_the_entropy_of_the_world():
    p = random_distribution(3, seed=1)
    for t in range(30):
        J, h = system(3, strength=1.5, seed=t)
        budget = paths.entropy_budget(p, J, h, beta=0.9)
        assert float(budget.total) > 0
        p = budget.distribution


def test_the_system_part_alone_can_have_either_sign():
    J, h = system(3)
    ordered, mixed = independent([0.999] * 3), np.full(8, 1 / 8)
    assert float(paths.entropy_budget(ordered, J, h, beta=0.3).system) > 0
    assert float(paths.entropy_budget(mixed, J, h, beta=3.0).system) < 0


def test_in_the_steady_state_the_three_routes_agree():
    J, h = system(5, seed=2)
    p = exact.stationary_distribution(J, h, beta=1.0)
    budget = paths.entropy_budget(p, J, h, beta=1.0)
    identity = steady.from_delayed_correlations(J, exact.delayed_correlations(J, h, beta=1.0), beta=1.0)
    np.testing.assert_allclose(budget.total, identity, rtol=1e-9)
    assert abs(float(budget.system)) < 1e-10


def test_a_relaxation_ends_in_the_steady_state_and_its_mismatch_never_grows():
    J, h = system(4, seed=3)
    end = exact.stationary_distribution(J, h, beta=1.0)
    p, mismatch, totals = independent([0.9, -0.9, 0.9, 0.9]), [], []
    # While the system still moves, the identity of the steady state is not the entropy production.
    D = exact.delayed_correlations(J, h, beta=1.0, distribution=p)
    identity = steady.from_delayed_correlations(J, D, beta=1.0)
    for _ in range(60):
        budget = paths.entropy_budget(p, J, h, beta=1.0)
        p = budget.distribution
        mismatch.append(float(np.sum(p * np.log(p / end))))
        totals.append(float(budget.total))
    assert abs(float(identity) - totals[0]) > 0.1
    assert np.all(np.diff(mismatch) <= 1e-14)
    assert mismatch[-1] < 1e-6
    np.testing.assert_allclose(totals[-1], exact.entropy_production(J, h, beta=1.0, distribution=end), rtol=1e-2)
