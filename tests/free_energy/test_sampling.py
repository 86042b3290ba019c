"""Directions in a field against their density, and Gibbs chains against exact means."""

import numpy as np
import pytest
import torch
from scipy import stats

from spinbook.free_energy import exact, sampling


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("dim", "strength"), [(2, 0.5), (3, 300.0), (5, 0.0), (40, 5.0)])
def test_cosine_to_the_field_has_the_von_mises_fisher_density(dim, strength):
    direction = torch.ones(dim, dtype=torch.float64) / dim**0.5
    spins = sampling.spin_given_field((strength * direction).expand(4000, dim), generator=generator(dim))
    np.testing.assert_allclose(spins.norm(dim=-1), 1, atol=1e-12)
    cosines = (spins @ direction).numpy()
    theta = np.linspace(0, np.pi, 200_001)[1:-1]
    log_density = (dim - 2) * np.log(np.sin(theta)) + strength * np.cos(theta)
    distribution = np.cumsum(np.exp(log_density - log_density.max()))
    # As a function of the angle, which a grid resolves; the p-value of each of the four cases exceeds 1e-4.
    angles = np.arccos(np.clip(cosines, -1, 1))
    assert stats.kstest(angles, lambda x: np.interp(x, theta, distribution / distribution[-1])).pvalue > 1e-4
    # Around the field all directions are equal.
    across = (spins - torch.tensor(cosines)[:, None] * direction).numpy()
    sums = across.sum(0) / np.sqrt((across**2).sum(0).clip(1e-300))
    assert np.abs(sums).max() < 5


@pytest.mark.parametrize("dim", [1, 3])
def test_chains_of_two_spins_arrive_at_the_exact_means(dim):
    beta, chains = 0.9, 8000
    h = torch.zeros(2, dim, dtype=torch.float64)
    h[0, 0], h[1, -1] = 0.5, -0.3
    J = torch.tensor([[0.0, 0.25], [0.25, 0.0]], dtype=torch.float64)
    start = sampling.uniform(chains, 2, dim, generator=generator(3), dtype=torch.float64)
    spins = sampling.simulate(start, J, h, beta=beta, steps=12, generator=generator(4))[-1]
    np.testing.assert_allclose(spins.norm(dim=-1), 1, atol=1e-12)
    scores = (spins.mean(0) - exact.magnetizations(h, J, beta=beta)) * chains**0.5 / spins.std(0)
    assert scores.abs().max() < 4.5
    products = (spins[:, 0] * spins[:, 1]).sum(-1)
    # <sigma_1 . sigma_2> / D = d ln Z / dJ_12 / (2 beta D), by differences.
    up, down = (float(exact.log_partition(h, (1 + e) * J, beta=beta)) for e in (1e-4, -1e-4))
    pair = (up - down) / (2e-4 * 0.25 * 2 * beta * dim)
    assert abs(products.mean() - pair) < 4.5 * products.std() / chains**0.5
    assert abs(pair) > 20 / chains**0.5  # correlated so much that chance could not do it
