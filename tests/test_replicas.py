"""Averages over groups of replicas against those over all of them."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from spinbook import replicas


@pytest.mark.parametrize("count", [1, 16, 47])
def test_group_means_weighted_by_their_sizes_are_the_mean(count):
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(count, 3, 2)))
    groups, size = replicas.grouped(rows).shape[:2]
    assert groups <= 16
    sizes = np.minimum(size, count - size * np.arange(groups))
    np.testing.assert_allclose(np.tensordot(sizes / count, replicas.group_means(rows), 1), rows.mean(0), atol=1e-15)


@pytest.mark.documented_nan
def test_the_standard_error_is_that_of_a_mean():
    rows = np.random.default_rng(1).normal(size=(50, 4))
    np.testing.assert_allclose(
        replicas.standard_error(jnp.asarray(rows)), rows.std(0, ddof=1) / np.sqrt(50), rtol=1e-12
    )
    assert np.isnan(replicas.standard_error(jnp.ones((1, 2)))).all()


def test_deviations_in_units_of_the_standard_error_are_students_t_with_one_degree_less_than_groups():
    groups, trials = 16, 4000
    samples = np.random.default_rng(2).normal(size=(groups, trials))
    pulls = np.asarray(samples.mean(0) / replicas.standard_error(jnp.asarray(samples)))
    assert stats.kstest(pulls, stats.t(groups - 1).cdf).pvalue > 1e-3
    beyond = (np.abs(pulls) > 3).mean()
    error = np.sqrt(2 * stats.t(groups - 1).sf(3) / trials)
    assert beyond == pytest.approx(2 * stats.t(groups - 1).sf(3), abs=4 * error)
    assert beyond > 2 * stats.norm.sf(3) + 4 * np.sqrt(2 * stats.norm.sf(3) / trials)


def test_the_mean_and_its_error_are_along_the_last_axis():
    rows = np.random.default_rng(3).normal(size=(3, 20))
    mean, error = replicas.mean_and_error(rows)
    np.testing.assert_allclose(mean, rows.sum(axis=1) / 20, rtol=1e-14)
    np.testing.assert_allclose(error, stats.sem(rows, axis=1), rtol=1e-14)
    assert np.isnan(replicas.mean_and_error([1.0, np.inf])[1])
