"""Systems that these tests share, drawn with NumPy in double precision."""

import numpy as np
import pytest
import torch


def ising_system(num_spins, strength, *, seed, batch=(), field=0.5):
    """Couplings of standard deviation strength / sqrt(N), symmetric and without diagonal, and Gaussian fields."""
    rng = np.random.default_rng(seed)
    J = np.triu(rng.normal(scale=strength / np.sqrt(num_spins), size=(*batch, num_spins, num_spins)), 1)
    return J + np.swapaxes(J, -1, -2), rng.normal(scale=field, size=(*batch, num_spins))


def vector_system(num_spins, dim, strength, *, seed, batch=(2,), field=0.7):
    """Couplings (N, N, D, D) with J_ij^{ab} = J_ji^{ba} and spectral radius about ``strength``, and fields."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(num_spins * dim, num_spins * dim))
    W = strength * (W + W.T) / np.sqrt(8 * num_spins * dim)
    J = W.reshape(num_spins, dim, num_spins, dim).transpose(0, 2, 1, 3).copy()
    J[np.arange(num_spins), np.arange(num_spins)] = 0
    return torch.tensor(J), torch.tensor(rng.normal(scale=field, size=(*batch, num_spins, dim)))


@pytest.fixture
def make_ising():
    return ising_system


@pytest.fixture
def make_vectors():
    return vector_system
