"""Systems that these tests share: PyTorch in double precision, drawn with NumPy."""

import numpy as np
import pytest
import torch


def system(num_spins, dim, *, seed, coupling=0.3, field=0.7, batch=()):
    """Fields (*batch, N, D) of length about ``field``, and couplings of standard deviation ``coupling`` / sqrt(N)."""
    rng = np.random.default_rng(seed)
    h = rng.normal(scale=field / np.sqrt(dim), size=(*batch, num_spins, dim))
    J = np.triu(rng.normal(scale=coupling / np.sqrt(num_spins), size=(num_spins, num_spins)), 1)
    return torch.tensor(h), torch.tensor(J + J.T)


@pytest.fixture
def make_system():
    return system
