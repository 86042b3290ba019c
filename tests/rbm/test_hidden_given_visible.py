"""Samples of a hidden unit against the moments and the distribution of its tilted prior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from spinbook.rbm import cumulant_generating_functions as K
from spinbook.rbm import hidden_given_visible as samplers

DRAWS = 16_000
CASES = [
    ("gaussian", (), 0.8),
    ("bernoulli", (0.3,), -0.7),
    ("bernoulli", (0.3,), 1.4),
    ("poisson", (2.0,), 0.5),
    ("exponential", (2.0,), 0.9),
    ("exponential", (2.0,), -3.0),
    ("laplace", (0.5,), 1.2),
    ("laplace", (0.5,), -0.4),
]


def draw(name, parameters, t, seed=0):
    sampler = getattr(samplers, name)(*parameters) if parameters else getattr(samplers, name)
    return np.asarray(sampler(jax.random.key(seed), np.full((DRAWS // 2, 2), t))).ravel()


@pytest.mark.parametrize(("name", "parameters", "t"), CASES)
def test_mean_and_variance_are_the_derivatives_of_the_cumulant_generating_function(name, parameters, t):
    function = getattr(K, name)(*parameters) if parameters else getattr(K, name)
    step = 0.05
    below2, below, here, above, above2 = np.asarray(function(t + step * np.arange(-2, 3)), dtype=float)
    # Central differences with errors of order step^4 and, where only a standard error depends on it, step^2.
    mean = (8 * (above - below) - (above2 - below2)) / (12 * step)
    variance = (16 * (above + below) - (above2 + below2) - 30 * here) / (12 * step**2)
    fourth = (above2 + below2 - 4 * (above + below) + 6 * here) / step**4
    h = draw(name, parameters, t)
    # Four standard errors: of the mean, and of the variance, whose own variance is (kappa_4 + 2 kappa_2^2) / draws.
    assert h.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / DRAWS))
    assert h.var() == pytest.approx(variance, abs=4 * np.sqrt((fourth + 2 * variance**2) / DRAWS))


def asymmetric_laplace(t, scale):
    below, above = 1 / scale + t, 1 / scale - t
    weight = above / (above + below)  # of the negative side: 1 / below against 1 / above
    return lambda h: np.where(h < 0, weight * np.exp(below * np.minimum(h, 0)), 1 - (1 - weight) * np.exp(-above * h))


@pytest.mark.parametrize(
    ("name", "parameters", "t", "cdf"),
    [
        ("gaussian", (), 0.8, stats.norm(0.8, 1).cdf),
        ("exponential", (2.0,), 0.9, stats.expon(scale=1 / 1.1).cdf),
        ("laplace", (0.5,), 1.2, asymmetric_laplace(1.2, 0.5)),
    ],
)
def test_continuous_units_follow_the_tilted_density(name, parameters, t, cdf):
    # One false alarm in 1e4 seeds; the seed is fixed.
    assert stats.kstest(draw(name, parameters, t, seed=1), cdf).pvalue > 1e-4


def test_poisson_units_count_with_the_tilted_rate():
    h = draw("poisson", (2.0,), 0.5, seed=2)
    counts = np.bincount(h.astype(int), minlength=9)
    observed = np.append(counts[:8], counts[8:].sum())
    law = stats.poisson(2 * np.exp(0.5))
    expected = DRAWS * np.append(law.pmf(range(8)), law.sf(7))
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("generator", ["rbg", "unsafe_rbg"])
def test_poisson_units_take_a_key_of_any_generator(generator):
    h = samplers.poisson(2.0)(jax.random.key(0, impl=generator), jnp.zeros(4000))
    assert abs(float(h.mean()) - 2) < 4 * (2 / 4000) ** 0.5
    assert float(h.var()) == pytest.approx(2, rel=0.15)


def test_constant_unit_does_not_move():
    assert np.all(draw("constant", (1.5,), 0.3) == 1.5)


def test_every_entry_gets_its_own_input_parameter_and_draw():
    p = np.array([1e-12, 0.5, 1 - 1e-12])
    h = np.asarray(samplers.bernoulli(p)(jax.random.key(0), np.zeros((400, 3))))
    assert h[:, 0].max() == 0
    assert h[:, 2].min() == 1
    assert 0 < h[:, 1].mean() < 1
    for name, parameters, _ in CASES:
        h = draw(name, parameters, 0.0)[:1000]
        assert np.abs(np.corrcoef(h[:-1], h[1:])[0, 1]) < 4 / np.sqrt(999)  # neighbours are independent


def test_jit_changes_nothing():
    t = np.linspace(-1, 1, DRAWS).reshape(-1, 2)
    for sampler in (samplers.gaussian, samplers.bernoulli(0.3)):
        np.testing.assert_array_equal(jax.jit(sampler)(jax.random.key(0), t), sampler(jax.random.key(0), t))


@pytest.mark.documented_nan
def test_traced_units_that_cannot_be_normalised_are_not_numbers():
    key = jax.random.key(0)
    for sampler in (samplers.exponential(1.0), samplers.laplace(1.0)):
        assert np.isnan(jax.jit(sampler)(key, jnp.array([0.5, 2.0]))).tolist() == [False, True]
