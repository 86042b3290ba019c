"""Recall measured by the library against a plain loop and against cases with a known answer."""

import math
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax
from scipy.stats import norm

from spinbook.rbm import modern_hopfield_energy, recall, retrieve

rng = np.random.default_rng(2)
X = rng.normal(size=(12, 8))
KEY = jax.random.key(4)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_measured_recall_is_that_of_a_plain_loop(steps):
    noise = recall.gaussian_noise(1.5)
    result = recall.measure(KEY, X, noise, beta=0.8, steps=steps, batch_size=5)
    q = np.asarray(recall.corrupt(KEY, X, noise))
    for _ in range(steps):
        q = softmax(0.8 * q @ X.T, axis=1) @ X
    distances = cdist(q, X)
    np.testing.assert_array_equal(result.recovered, distances.argmin(1) == np.arange(12))
    np.testing.assert_allclose(result.distances, np.diag(distances), atol=1e-13)
    cosines = np.sum(q * X, 1) / np.linalg.norm(q, axis=1) / np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(result.overlaps, cosines, atol=1e-14)
    assert 0 < result.fraction < 1
    assert result.fraction == np.mean(distances.argmin(1) == np.arange(12))
    assert result.mean_overlap == pytest.approx(cosines.mean(), abs=1e-14)


@pytest.mark.parametrize("steps", [0, 2])
def test_recall_of_two_opposite_patterns_fails_as_often_as_noise_turns_the_query_round(steps):
    # q . x = |x|^2 + std |x| z changes sign with probability Phi(-|x| / std); retrieving keeps the sign.
    x, std, trials = np.array([1.0, 2.0, 2.0]), 3.0, 20_000
    result = recall.measure(
        KEY, np.stack([x, -x]), recall.gaussian_noise(std), beta=0.3, steps=steps, num_queries=trials
    )
    success = norm.cdf(3 / std)
    standard_error = math.sqrt(success * (1 - success) / trials)
    assert result.fraction == pytest.approx(success, abs=4 * standard_error)
    assert result.fraction_standard_error == pytest.approx(standard_error, rel=0.05)


def test_clean_queries_are_recovered_when_cold_and_lost_in_the_mean_when_hot():
    # On a sphere every pattern is the one that overlaps most with itself.
    sphere = X / np.linalg.norm(X, axis=1, keepdims=True)
    cold = recall.measure(KEY, sphere, recall.gaussian_noise(0.0), beta=1e4, batch_size=5)
    assert cold.fraction == 1
    np.testing.assert_allclose(cold.overlaps, 1, atol=1e-14)
    np.testing.assert_allclose(cold.distances, 0, atol=1e-7)  # the root of rounding errors of 1e-16
    hot = recall.measure(KEY, sphere, recall.gaussian_noise(0.0), beta=1e-9, batch_size=5)
    mean = sphere.mean(0)
    np.testing.assert_allclose(hot.overlaps, sphere @ mean / np.linalg.norm(mean), atol=1e-8)


def test_a_longer_neighbour_captures_a_query():
    # The softmax compares scalar products: a pattern of three times the length wins even at the position of the other.
    patterns = np.array([[1.0, 0.0], [3.0, 0.5]])
    result = recall.measure(KEY, patterns, recall.gaussian_noise(0.0), beta=10.0)
    assert result.recovered.tolist() == [False, True]
    assert recall.measure(KEY, patterns, recall.gaussian_noise(0.0), steps=0).fraction == 1


@pytest.mark.parametrize("batch_size", [1, 1000])
def test_result_does_not_depend_on_the_batches(batch_size):
    reference = recall.measure(KEY, X, recall.gaussian_noise(1.5), beta=0.8, batch_size=5)
    result = recall.measure(KEY, X, recall.gaussian_noise(1.5), beta=0.8, batch_size=batch_size)
    np.testing.assert_array_equal(result.recovered, reference.recovered)
    np.testing.assert_allclose(result.overlaps, reference.overlaps, atol=1e-14)


def test_more_queries_than_patterns_take_them_in_turn_with_fresh_corruption():
    once = recall.measure(KEY, X, recall.gaussian_noise(0.5), steps=0, batch_size=5)
    twice = np.asarray(recall.measure(KEY, X, recall.gaussian_noise(0.5), steps=0, num_queries=24).overlaps)
    assert twice.shape == (24,)
    np.testing.assert_allclose(twice[:12], once.overlaps, atol=1e-14)
    assert np.all(twice[12:] != twice[:12])
    # The original is the right one in the second round too: small noise is recovered by its nearest neighbour.
    assert recall.measure(KEY, X, recall.gaussian_noise(0.01), steps=0, num_queries=24).fraction == 1


def test_any_function_is_a_corruption():
    def lower_half(key, pattern):
        return pattern.at[4:].set(0.0)

    np.testing.assert_array_equal(recall.corrupt(KEY, X, lower_half), np.hstack([X[:, :4], np.zeros((12, 4))]))
    result = recall.measure(KEY, X, lower_half, steps=0, num_queries=24)
    cosines = np.linalg.norm(X[:, :4], axis=1) / np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(result.overlaps, np.tile(cosines, 2), atol=1e-14)  # the patterns in turn


def test_noise_is_normal_with_the_given_deviation():
    x = np.arange(3.0)
    z = (np.asarray(recall.corrupt(KEY, np.tile(x, (20_000, 1)), recall.gaussian_noise(0.7))) - x) / 0.7
    np.testing.assert_allclose(z.mean(0), 0, atol=4 / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(z.T), np.eye(3), atol=4 * np.sqrt(2 / 20_000))


@pytest.mark.parametrize(("fraction", "number"), [(0.0, 0), (0.25, 2), (0.3, 2), (0.32, 3), (1.0, 8)])
def test_erasure_and_sign_flips_hit_the_stated_number_of_places(fraction, number):
    erased = np.asarray(recall.corrupt(KEY, X, recall.erasure(fraction, fill=9.0)))
    assert np.all((erased == 9.0).sum(1) == number)
    assert np.all((erased == X) | (erased == 9.0))
    flipped = np.asarray(recall.corrupt(KEY, X, recall.sign_flips(fraction)))
    assert np.all((flipped == -X).sum(1) == number)
    assert np.all(np.abs(flipped) == np.abs(X))


def test_places_are_chosen_evenly_and_afresh_for_every_pattern():
    chosen = np.asarray(recall.corrupt(KEY, np.ones((8000, 8)), recall.sign_flips(0.25))) < 0
    np.testing.assert_allclose(chosen.mean(0), 0.25, atol=4 * np.sqrt(0.25 * 0.75 / 8000))


def test_overlap_is_the_cosine():
    q = rng.normal(size=(12, 8))
    cosines = 1 - np.diag(cdist(q, X, "cosine"))
    np.testing.assert_allclose(recall.overlap(q, X), cosines, atol=1e-14)
    np.testing.assert_allclose(recall.overlap(3 * q, 0.1 * X), cosines, atol=1e-14)
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


def test_measuring_works_under_jit_and_vmap_over_beta():
    def overlaps(beta):
        return recall.measure(KEY, X, recall.gaussian_noise(0.5), beta=beta, batch_size=5).overlaps

    together = np.asarray(jax.jit(jax.vmap(overlaps))(np.array([0.5, 2.0])))
    for i, beta in enumerate([0.5, 2.0]):
        np.testing.assert_allclose(together[i], overlaps(beta), atol=1e-13)


def test_single_precision_in_gives_single_precision_out():
    x = X.astype(np.float32)
    for corruption in (recall.gaussian_noise(0.5), recall.erasure(0.5, 1.0), recall.sign_flips(0.5)):
        result = jax.eval_shape(lambda x, c=corruption: recall.measure(KEY, x, c, beta=np.float64(2.0)), x)
        assert result.overlaps.dtype == result.distances.dtype == jnp.float32
        assert jax.eval_shape(lambda x, c=corruption: recall.corrupt(KEY, x, c), x).dtype == jnp.float32
    for function in (lambda x: recall.trajectory(x, x, steps=2), lambda x: recall.overlap(x, x)):
        assert jax.eval_shape(function, x).dtype == jnp.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recall.gaussian_noise(-0.1), "std: expected a number >= 0, got -0.1"),
        (lambda: recall.gaussian_noise([0.1, 0.2]), r"std: expected a scalar, got shape \(2,\)"),
        (lambda: recall.erasure(1.1), "fraction: expected a number from 0 to 1, got 1.1"),
        (lambda: recall.erasure(0.5, fill=np.nan), "fill: expected finite numbers"),
        (lambda: recall.sign_flips(-0.5), "fraction: expected a number from 0 to 1, got -0.5"),
        (lambda: recall.measure(KEY, np.zeros((0, 3)), recall.sign_flips(0.5)), "patterns: expected .* one row"),
        (lambda: recall.measure(KEY, X, recall.sign_flips(0.5), beta=0.0), "beta: expected numbers > 0"),
        (lambda: recall.measure(KEY, X, recall.sign_flips(0.5), steps=-1), "steps: expected an integer >= 0"),
        (lambda: recall.measure(KEY, X, recall.sign_flips(0.5), num_queries=0), "num_queries: expected .* >= 1"),
        (lambda: recall.measure(KEY, X, recall.sign_flips(0.5), batch_size=0), "batch_size: expected an integer >= 1"),
        (lambda: recall.measure(KEY, X, lambda key, x: x[:3]), r"corruption: .* shape \(8,\), got \(3,\)"),
        (lambda: recall.corrupt(KEY, X, lambda key, x: x[:3]), r"corruption: .* shape \(8,\), got \(3,\)"),
        (lambda: recall.corrupt(KEY, X[0], recall.sign_flips(0.5)), "patterns: expected shape"),
        (lambda: recall.overlap(X, X[:, :3]), r"queries: expected shape \(..., 3\)"),
        (lambda: recall.overlap(X, X[:5]), "queries: expected leading axes that broadcast"),
        (lambda: recall.trajectory(X[:, :3], X, steps=1), r"queries: expected shape \(..., 8\)"),
        (lambda: recall.trajectory(X, X, beta=-1.0, steps=1), "beta: expected numbers > 0"),
        (lambda: recall.trajectory(X, X, steps=1.5), "steps: expected an integer >= 0"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match="^" + message):
        call()
