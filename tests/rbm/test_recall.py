"""Queries and patterns: overlaps by SciPy, the path of retrieval, and cases with a known answer."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from spinbook.rbm import modern_hopfield_energy, recall, retrieve

rng = np.random.default_rng(2)
X = rng.normal(size=(12, 8))


def test_clean_queries_are_recovered_when_cold_and_lost_in_the_mean_when_hot():
    # On a sphere every pattern is the one that overlaps most with itself.
    sphere = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(retrieve(sphere, sphere, beta=1e4), sphere, atol=1e-14)
    mean = sphere.mean(0)
    hot = recall.overlap(retrieve(sphere, sphere, beta=1e-9), sphere)
    np.testing.assert_allclose(hot, sphere @ mean / np.linalg.norm(mean), atol=1e-8)


def test_a_longer_neighbour_captures_a_query():
    # The softmax compares scalar products: a pattern of three times the length wins even at the position of the other.
    patterns = np.array([[1.0, 0.0], [3.0, 0.5]])
    assert cdist(retrieve(patterns, patterns, beta=10.0), patterns).argmin(1).tolist() == [1, 1]


def test_overlap_is_the_cosine():
    q = rng.normal(size=(12, 8))
    cosines = 1 - np.diag(cdist(q, X, "cosine"))
    np.testing.assert_allclose(recall.overlap(q, X), cosines, atol=1e-14)
    np.testing.assert_allclose(recall.overlap(3 * q, 0.1 * X), cosines, atol=1e-14)
    for size, dtype in ((1e15, np.float32), (1e-12, np.float32), (1e-25, np.float32), (1e80, float), (1e-90, float)):
        x = np.full(4, size, dtype)
        assert float(recall.overlap(x, x)) == pytest.approx(1, rel=1e-6)
        assert float(recall.overlap(x, -np.ones(4, dtype))) == pytest.approx(-1, rel=1e-6)
    q[0] = 0
    q[1] = -3 * X[1]
    cosines = np.asarray(recall.overlap(q, X))
    assert cosines[0] == 0
    assert cosines[1] == pytest.approx(-1, abs=1e-15)
    assert jax.eval_shape(recall.overlap, q[:, None], X).shape == (12, 12)


def test_trajectory_repeats_the_update_downhill_to_a_fixed_point():
    q = rng.normal(size=(3, 8))
    path = np.asarray(recall.trajectory(q, X, beta=1.2, steps=40))
    assert path.shape == (41, 3, 8)
    np.testing.assert_array_equal(path[0], q)
    for before, after in pairwise(path[:6]):
        np.testing.assert_allclose(after, retrieve(before, X, beta=1.2), atol=1e-13)
    energies = np.asarray(modern_hopfield_energy(path, X, beta=1.2))
    assert np.all(np.diff(energies, axis=0) <= 1e-13)
    np.testing.assert_allclose(path[-1], path[-2], atol=1e-10)
    assert jax.eval_shape(lambda q: recall.trajectory(q, X, steps=0), q[0]).shape == (1, 8)
