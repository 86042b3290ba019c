"""The second law step by step, against sums over all pairs of states written out."""

import numpy as np

from spinbook.entropy_production import paths
from spinbook.ising import exact


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
