"""Systems that several tests of vector spins share."""

import numpy as np
import pytest

from spinbook import sphere


@pytest.fixture
def system():
    """Couplings by heads, fields, and magnetizations of different lengths: ``system(N, D, heads, strength)``."""

    def make(num_sites=5, dim=6, heads=1, strength=0.5, seed=0):
        rng = np.random.default_rng(seed)
        J = strength * rng.normal(size=(heads, num_sites, num_sites)) / np.sqrt(num_sites)
        x = rng.normal(size=(num_sites, dim))
        m = rng.normal(size=(num_sites, dim))
        lengths = sphere.radius(dim) * rng.uniform(0.2, 0.8, size=(num_sites, 1))
        m *= lengths / np.linalg.norm(m, axis=1, keepdims=True)
        return (J[0] if heads == 1 else J), x, m

    return make
