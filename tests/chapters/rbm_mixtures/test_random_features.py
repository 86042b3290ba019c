"""Random features against the exact exponentials and softmax attention."""

import jax
import numpy as np
import pytest

from chapters.rbm_mixtures import random_features
from spinbook import rbm


def test_the_mean_of_the_features_is_the_exponential_of_the_scalar_product():
    rng = np.random.default_rng(0)
    q, x = 0.6 * rng.normal(size=(2, 4))
    w = np.asarray(random_features.directions(jax.random.key(1), 200_000, 4))
    products = np.exp(w @ (q + x) - (q @ q + x @ x) / 2)
    error = products.std(ddof=1) / np.sqrt(len(products))
    assert abs(products.mean() - np.exp(q @ x)) < 4 * error


def test_directions_are_normal_and_orthogonal_within_a_block():
    w = np.asarray(random_features.directions(jax.random.key(2), 40_000, 8)).reshape(-1, 8, 8)
    products = w @ w.transpose(0, 2, 1)
    assert np.abs(products - products * np.eye(8)).max() < 1e-12
    squares = (w**2).sum(axis=-1)
    assert abs(squares.mean() - 8) < 4 * np.sqrt(2 * 8 / squares.size)
    assert abs((w**4).mean() - 3) < 0.1
    assert np.abs(w.mean(axis=(0, 1))).max() < 4 / np.sqrt(40_000)


def test_the_error_falls_like_the_root_of_the_number_of_features():
    rng = np.random.default_rng(4)
    queries, patterns = rng.normal(size=(20, 8)), rng.normal(size=(30, 8))
    exact = np.asarray(rbm.retrieve(queries, patterns, beta=0.02))

    def error(num_features):
        keys = jax.random.split(jax.random.key(5), 40)
        found = [
            random_features.retrieve(queries, patterns, random_features.directions(key, num_features, 8), beta=0.02)
            for key in keys
        ]
        return np.sqrt(np.mean((np.array(found) - exact) ** 2))

    slope = np.log(error(4096) / error(64)) / np.log(64)
    assert slope == pytest.approx(-0.5, abs=0.06)


def test_large_norms_neither_overflow_nor_leave_the_convex_hull():
    rng = np.random.default_rng(6)
    patterns = 40 * rng.normal(size=(10, 3))
    w = random_features.directions(jax.random.key(7), 16, 3)
    found = np.asarray(random_features.retrieve(patterns, patterns, w))
    assert np.isfinite(found).all()
    assert (found <= patterns.max(axis=0) + 1e-9).all()
    assert (found >= patterns.min(axis=0) - 1e-9).all()


@pytest.mark.parametrize(
    ("queries", "w", "name"), [([[1.0]], [[1.0, 2.0]], "queries"), ([[1.0, 2.0]], [[1.0]], "directions")]
)
def test_dimensions_that_differ_are_refused(queries, w, name):
    with pytest.raises(ValueError, match=name):
        random_features.retrieve(queries, [[1.0, 2.0]], w)
