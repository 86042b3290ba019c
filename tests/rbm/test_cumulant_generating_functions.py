"""Closed forms of K(t): sums over the states of the hidden unit, limits, stability and domain."""

import math
from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp

from spinbook.rbm import cumulant_generating_functions as K

ALL = {
    "gaussian": K.gaussian,
    "bernoulli": K.bernoulli(0.3),
    "poisson": K.poisson(2.0),
    "exponential": K.exponential(2.0),
    "laplace": K.laplace(0.4),
    "constant": K.constant(1.5),
}
every_prior = pytest.mark.parametrize("prior", ALL.values(), ids=ALL.keys())


@every_prior
def test_every_function_vanishes_at_zero_and_is_convex(prior):
    assert float(prior(0.0)) == 0
    values = np.asarray(prior(np.linspace(-1.9, 1.9, 39)))
    assert np.all(np.diff(values, 2) >= -1e-15)


@pytest.mark.parametrize("rate", [0.2, 1.0, 2.5])
def test_poisson_is_the_logarithm_of_the_sum_over_the_counts(rate):
    t, h = np.linspace(-20, 3, 24), np.arange(400.0)
    summed = logsumexp(np.multiply.outer(t + math.log(rate), h) - gammaln(h + 1), axis=-1) - rate
    np.testing.assert_allclose(K.poisson(rate)(t), summed, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("rate", [0.2, 1.0, 10.0])
def test_exponential_and_laplace_are_logarithms_of_integrals(rate):
    def half(t):
        return quad(lambda h: rate * np.exp((t - rate) * h), 0, np.inf, epsabs=0, epsrel=1e-12)[0]

    for t in rate * np.array([-0.9, -0.3, 0.5, 0.95]):
        assert float(K.exponential(rate)(t)) == pytest.approx(math.log(half(t)), abs=1e-10)
        assert float(K.laplace(1 / rate)(t)) == pytest.approx(math.log((half(t) + half(-t)) / 2), abs=1e-10)


@pytest.mark.parametrize("p", [1e-9, 0.3, 0.5, 1 - 1e-9])
@pytest.mark.parametrize("t", [-800.0, -30.0, -1.0, -1e-8, 1e-8, 1.0, 1.5, 30.0, 800.0])
def test_bernoulli_is_accurate_where_its_exponential_overflows_and_where_it_cancels(p, t):
    with localcontext() as context:
        context.prec = 400
        exact = float((1 - Decimal(p) + Decimal(p) * Decimal(t).exp()).ln())
    # log p and t are rounded before they are added; all else is a few roundings of K itself.
    cancelled = abs(math.log(p)) + abs(t) if t > 1 else 0
    assert float(K.bernoulli(p)(t)) == pytest.approx(exact, rel=1e-15, abs=3e-16 * cancelled)


@every_prior
def test_derivative_is_finite_far_out_and_continuous_at_zero(prior):
    grad = jax.jit(jax.grad(prior))
    assert float(grad(1e-9)) == pytest.approx(float(grad(-1e-9)), abs=1e-8)
    assert np.isfinite(grad(-1.9))
    if prior in (ALL["gaussian"], ALL["bernoulli"], ALL["constant"]):
        assert np.isfinite(grad(800.0))
        assert np.isfinite(grad(-800.0))


def test_outside_of_its_domain_a_function_is_infinite_and_its_slope_is_not():
    for prior, t, inside in (
        (K.laplace(2.0), [-0.5, 0.2, 0.7], [False, True, False]),
        (K.exponential(2.0), [-9.0, 2.0, 2.1], [True, False, False]),
    ):
        assert np.isposinf(prior(t)).tolist() == [not i for i in inside]
        assert np.all(np.isfinite(jax.jit(jax.vmap(jax.grad(prior)))(jnp.array(t))))
