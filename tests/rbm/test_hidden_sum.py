"""Sums over the states of a hidden unit against the closed forms: two routes that share no line of code."""

import jax
import numpy as np
import pytest

from spinbook.rbm import cumulant_generating_functions, hidden_sum

CASES = [
    ("bernoulli", (0.3,), np.linspace(-30, 30, 61)),
    ("poisson", (1.0,), np.linspace(-20, 4, 49)),
    ("poisson", (2.5,), np.linspace(-20, 3, 49)),
    ("exponential", (1.0,), 1 - np.logspace(-6, 4, 41)),
    ("exponential", (0.2,), 0.2 - np.logspace(-3, 2, 41)),
    ("laplace", (1.0,), np.linspace(-0.999, 0.999, 41)),
    ("laplace", (0.1,), np.linspace(-9.9, 9.9, 41)),
    ("constant", (1.7,), np.linspace(-5, 5, 11)),
]


@pytest.mark.parametrize(("name", "parameters", "t"), CASES)
def test_sum_over_the_states_of_a_hidden_unit_is_the_closed_form(name, parameters, t):
    summed = getattr(hidden_sum, name)(*parameters)(t)
    closed = getattr(cumulant_generating_functions, name)(*parameters)(t)
    # Rounding: log-sum-exp of exponents up to 1e3, or the closed form's 1 - t / rate, each to 1e-16 of its size.
    np.testing.assert_allclose(summed, closed, rtol=1e-13, atol=1e-12)


def test_gaussian_integral_is_the_closed_form():
    t = np.linspace(-10, 10, 41)
    np.testing.assert_allclose(hidden_sum.gaussian(t), t**2 / 2, rtol=1e-13, atol=1e-13)


def test_parameters_per_unit_broadcast_against_the_last_axis():
    rates = np.array([0.5, 1.0, 3.0])
    t = np.linspace(-2, 0.4, 10)[:, None] * np.ones(3)
    for name in ("poisson", "exponential"):
        together = np.asarray(getattr(hidden_sum, name)(rates)(t))
        assert together.shape == (10, 3)
        for m in range(3):
            alone = getattr(hidden_sum, name)(rates[m])(t[:, m])
            np.testing.assert_allclose(together[:, m], alone, rtol=0, atol=1e-14)


@pytest.mark.documented_nan
def test_truncation_of_the_poisson_sum_stays_below_its_bound():
    # Short sums, so that what is left out is large enough to be seen.
    t = np.log(2.0)
    for max_count in (30, 60):
        assert float(hidden_sum.poisson(1.0, max_count=max_count)(t)) == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(ValueError, match=r"^t: expected rate e\^t so small that counts above max_count = 20"):
        hidden_sum.poisson(1.0, max_count=20)(t)


@pytest.mark.documented_nan
def test_where_a_traced_sum_cannot_be_trusted_it_says_so():
    assert np.isposinf(jax.jit(hidden_sum.exponential(1.0))(1.5))
    assert np.isposinf(jax.jit(hidden_sum.laplace(1.0))(-1.5))
    assert np.isnan(jax.jit(hidden_sum.poisson(1.0))(9.0))
    assert np.isnan(jax.jit(hidden_sum.gaussian)(11.0))
