"""Sampling against enumeration: the distribution of a step, the moments of the steady state, and reproducibility."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from spinbook.ising import exact, stochastic
from tests.ising.distributions import covariance, mean


def system(num_spins=4, seed=0):
    rng = np.random.default_rng(seed)
    return 0.8 * rng.normal(size=(num_spins, num_spins)), rng.uniform(-0.5, 0.5, size=num_spins)


def keep(spins):
    return spins


def test_one_step_has_the_transition_probabilities():
    J, h = system()
    count = 200_000
    old = np.array([1.0, -1.0, -1.0, 1.0])
    new = stochastic.step(jax.random.key(0), np.tile(old, (count, 1)), J, h, beta=1.1)
    number = np.asarray((np.asarray(new) > 0) @ (2 ** np.arange(4)), int)
    counts = np.bincount(number, minlength=16)
    expected = count * np.asarray(exact.transition_matrix(J, h, beta=1.1))[:, 0b1001]
    # Pearson's chi squared has 15 degrees of freedom; 5 standard deviations.
    assert np.sum((counts - expected) ** 2 / expected) < 15 + 5 * np.sqrt(30)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_far_from_one_half_are_met_in_both_precisions(dtype):
    # Expected counts from 6 to nearly all of 500,000; a chi-squared value exceeds its 1e-6 quantile once in a million.
    fields = np.array([-3.0, -2.0, -0.4, 0.0, 0.4, 2.0, 3.0, -5.6], dtype)
    s = stochastic.step(jax.random.key(4), np.ones((500_000, 8), dtype), np.zeros((8, 8), dtype), fields, beta=1.0)
    assert s.dtype == dtype
    up = np.sum(np.asarray(s) == 1, axis=0)
    p = 1 / (1 + np.exp(-2 * fields.astype(float)))
    assert np.sum((up - 500_000 * p) ** 2 / (500_000 * p * (1 - p))) < stats.chi2.isf(1e-6, 8)


def test_the_random_words_are_those_of_the_generator_of_jax():
    key = jnp.array([0x12345678, 0x9ABCDEF0], jnp.uint32)
    rows, columns = np.arange(6, dtype=np.uint32), np.array([0, 1, 2, 2**31, 2**32 - 1, 77], np.uint32)
    ours = stochastic._threefry((key[0], key[1]), jnp.asarray(rows), jnp.asarray(columns))
    np.testing.assert_array_equal(jnp.concatenate(ours), threefry_2x32(key, jnp.concatenate([rows, columns])))


def test_the_moments_of_the_steady_state_lie_within_their_standard_errors():
    J, h = system(5, seed=1)
    start = jnp.ones((400, 5))
    result = stochastic.simulate(jax.random.key(2), start, J, h, beta=1.0, steps=150, transient=30, correlations=True)
    p = exact.stationary_distribution(J, h, beta=1.0)
    pairs = [
        (result.magnetizations, result.magnetization_standard_errors, mean(p)),
        (result.correlations, result.correlation_standard_errors, covariance(p)),
        (
            result.delayed_correlations,
            result.delayed_correlation_standard_errors,
            exact.delayed_correlations(J, h, beta=1.0, distribution=p),
        ),
    ]
    for measured, error, truth in pairs:
        assert 0 < float(np.max(error)) < 0.02
        # Some 25 numbers with errors from 16 groups (Student's t with 15 degrees of freedom): six errors.
        assert np.all(np.abs(measured - truth) < 6 * np.asarray(error) + 1e-12)


def test_a_simulation_is_repeated_stepping():
    J, h = system()
    key, s = jax.random.key(9), np.ones((5, 4))
    result = stochastic.simulate(key, s, J, h, beta=1.0, steps=4, observable=keep)
    for t, state in enumerate(np.asarray(result.observed)):
        s = stochastic.step(jax.random.fold_in(key, t), s, J, h, beta=1.0)
        np.testing.assert_array_equal(s, state)


def test_no_trajectory_is_stored_unless_asked():
    J, h = system()

    def shapes(**options):
        run = jax.eval_shape(
            lambda key: stochastic.simulate(key, jnp.ones((50, 4)), J, h, beta=1.0, **options), jax.random.key(0)
        )
        return [leaf.shape for leaf in jax.tree.leaves(run)]

    assert shapes(steps=10) == shapes(steps=10_000)
    assert shapes(steps=10, correlations=True) == shapes(steps=10_000, correlations=True)
    assert (10_000, 50, 4) in shapes(steps=10_000, observable=keep)


def test_standard_errors_are_the_scatter_of_repeated_simulations():
    # 60 independent runs of 20 replicas that remember their past; their means scatter as the errors say. A standard
    # deviation from 60 values is known to 1 / sqrt(118), the mean of 60 squared errors from 19 degrees of freedom or,
    # for ten groups, 9 to sqrt(2 / 9 / 60): four times both together.
    J, h = system(3, seed=2)

    @jax.jit
    @jax.vmap
    def run(key):
        result = stochastic.simulate(key, jnp.ones((20, 3)), J, h, beta=1.0, steps=40, transient=10, correlations=True)
        means = result.magnetizations, result.correlations, result.delayed_correlations
        errors = (
            result.magnetization_standard_errors,
            result.correlation_standard_errors,
            result.delayed_correlation_standard_errors,
        )
        whole = result.mean_magnetization[None], result.mean_magnetization_standard_error[None]
        flat = [jnp.concatenate([x.ravel() for x in part]) for part in (means, errors)]
        return jnp.concatenate([flat[0], whole[0]]), jnp.concatenate([flat[1], whole[1]])

    means, errors = run(jax.random.split(jax.random.key(11), 60))
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(means, axis=0, ddof=1)
    allowed = 4 * np.hypot(1 / np.sqrt(118), np.sqrt(2 / 9 / 60) / 2)
    assert np.abs(ratio - 1).max() < allowed


def test_groups_of_unequal_size_give_the_plain_averages():
    # 37 replicas make twelve groups of three and one of one.
    J, h = system()
    result = stochastic.simulate(
        jax.random.key(7), np.ones((37, 4)), J, h, beta=1.0, steps=6, transient=2, correlations=True, observable=keep
    )
    assert result.group_sizes.tolist() == [3.0] * 12 + [1.0]
    np.testing.assert_array_equal(result.observed[-1], result.spins)
    now, before = np.asarray(result.observed)[2:], np.asarray(result.observed)[1:-1]
    np.testing.assert_allclose(result.magnetizations, now.mean((0, 1)), atol=1e-12)
    centred, centred_before = now - now.mean((0, 1)), before - before.mean((0, 1))
    C = np.einsum("tri,trk->ik", centred, centred) / (4 * 37)
    D = np.einsum("tri,trl->il", centred, centred_before) / (4 * 37)
    np.testing.assert_allclose(result.correlations, C, atol=1e-12)
    np.testing.assert_allclose(result.delayed_correlations, D, atol=1e-12)
    # The error of a weighted mean of independent groups, written out.
    groups = [centred[:, 3 * g : 3 * g + 3].reshape(-1, 4) for g in range(13)]
    values = np.array([g.T @ g / len(g) for g in groups])
    weights = np.array([3] * 12 + [1]) / 37
    error = np.sqrt(np.einsum("g,gik->ik", weights, (values - C) ** 2) / 12)
    np.testing.assert_allclose(result.correlation_standard_errors, error, atol=1e-12)


def test_leading_axes_are_replicas_and_may_have_their_own_fields():
    fields = np.array([[[1e3, -1e3]], [[-1e3, 1e3]]])
    result = stochastic.simulate(
        jax.random.key(0), np.ones((2, 5, 2)), np.zeros((2, 2)), fields, beta=1.0, steps=3, observable=keep
    )
    assert result.observed.shape == (3, 2, 5, 2)
    np.testing.assert_array_equal(result.spins, np.broadcast_to(np.sign(fields), (2, 5, 2)))
    stepped = stochastic.step(jax.random.key(0), np.ones((2, 5, 2)), np.zeros((2, 2)), fields, beta=1.0)
    np.testing.assert_array_equal(stepped, result.spins)
