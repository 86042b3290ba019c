"""Cumulants against derivatives of K, and the series they make against K inside and outside of its radius."""

from fractions import Fraction
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook.rbm import convergence_radius, cumulants
from spinbook.rbm import cumulant_generating_functions as K

PRIORS = [
    ("gaussian", ()),
    ("bernoulli", (0.3,)),
    ("bernoulli", (0.5,)),
    ("bernoulli", (0.95,)),
    ("poisson", (2.5,)),
    ("exponential", (1.7,)),
    ("laplace", (0.6,)),
    ("constant", (-1.2,)),
]


def closed_form(name, parameters):
    return getattr(K, name)(*parameters) if parameters else getattr(K, name)


@pytest.mark.parametrize(("name", "parameters"), PRIORS)
def test_cumulants_are_the_derivatives_of_the_generating_function_at_zero(name, parameters):
    derivative, expected = closed_form(name, parameters), []
    for _ in range(3):
        derivative = jax.grad(derivative)
        expected.append(derivative)
    expected = jax.jit(lambda t: jnp.stack([d(t) for d in expected]))(0.0)
    np.testing.assert_allclose(getattr(cumulants, name)(3, *parameters), expected, rtol=1e-13, atol=1e-13)


MOMENTS = {
    "gaussian": lambda t: np.exp(t * t / 2),
    "bernoulli": lambda t, p: 1 - p + p * np.exp(t),
    "poisson": lambda t, rate: np.exp(rate * np.exp(t) - rate),
    "exponential": lambda t, rate: rate / (rate - t),
    "laplace": lambda t, scale: 1 / (1 - scale**2 * t**2),
    "constant": lambda t, value: np.exp(value * t),
}
# Exponential and Laplace units have a pole of the moment function there.
RADII = {
    "bernoulli": lambda p: float(convergence_radius.bernoulli(p)),
    "exponential": lambda rate: rate,
    "laplace": lambda scale: 1 / scale,
}


@pytest.mark.parametrize(("name", "parameters"), PRIORS)
def test_high_cumulants_are_contour_integrals_around_zero(name, parameters):
    # kappa_n = n! / (2 pi i) times the integral of log E[exp(t h)] / t^{n+1}, on a circle well inside the radius of
    # convergence, where the trapezoidal rule leaves out terms of order (radius / R)^64 only.
    radius = 0.5
    angles = 2 * np.pi * np.arange(64) / 64
    values = np.log(MOMENTS[name](radius * np.exp(1j * angles), *parameters))
    n = np.arange(1, 13)
    factorials = np.cumprod(n.astype(float))
    expected = factorials * np.mean(values * np.exp(-1j * n[:, None] * angles), axis=1) / radius**n
    kappas = np.asarray(getattr(cumulants, name)(12, *parameters))
    assert kappas.shape == (12,)
    # Values of order one, rounded, times n! / radius^n.
    assert np.all(np.abs(kappas - expected) <= 1e-15 * factorials / radius**n)


def test_alternating_sum_for_bernoulli_cumulants_loses_the_stated_accuracy_and_no_more():
    # kappa_{n+1} = p (1 - p) d kappa_n / dp in exact rational arithmetic, on polynomials in p.
    p, polynomial, exact = Fraction(0.3), [0, 1], []
    for _ in range(40):
        exact.append(float(sum(c * p**k for k, c in enumerate(polynomial))))
        slope = [k * c for k, c in enumerate(polynomial)][1:]
        polynomial = [a - b for a, b in zip([0, *slope, 0], [0, 0, *slope], strict=True)]
    n = np.arange(1, 41)
    radius = float(convergence_radius.bernoulli(0.3))
    relative = np.abs(np.asarray(cumulants.bernoulli(40, 0.3)) / exact - 1)
    # The signs of the cumulants oscillate: where one nearly vanishes its relative error is not bounded by its order.
    typical = np.abs(exact) > 0.1 * np.cumprod(np.maximum(n - 1, 1).astype(float)) / radius**n
    assert typical.sum() > 30
    assert np.all(relative[typical] <= 100 * 2e-16 * (radius / 2) ** n[typical])
    assert relative[19] < 1e-12
    assert relative[39] < 1e-8


def test_bernoulli_cumulants_are_the_known_polynomials_in_the_variance():
    p = np.array([0.1, 0.3, 0.5, 0.8])
    v = p * (1 - p)
    known = [p, v, v * (1 - 2 * p), v * (1 - 6 * v), v * (1 - 2 * p) * (1 - 12 * v), v * (1 - 30 * v + 120 * v**2)]
    np.testing.assert_allclose(cumulants.bernoulli(6, p), known, rtol=1e-13, atol=1e-15)


def test_order_one_is_the_mean():
    means = {"gaussian": 0, "bernoulli": 0.3, "poisson": 2.5, "exponential": 1 / 1.7, "laplace": 0, "constant": -1.2}
    for name, parameters in [p for p in PRIORS if p[1] not in ((0.5,), (0.95,))]:
        assert getattr(cumulants, name)(1, *parameters).tolist() == [pytest.approx(means[name], abs=1e-15)]


def test_odd_cumulants_of_a_symmetric_prior_vanish():
    assert not cumulants.laplace(5, 0.6)[::2].any()
    assert not cumulants.gaussian(5)[::2].any()


def test_radius_of_the_bernoulli_series_is_the_distance_to_the_complex_zero_of_its_moment_function():
    for p in (0.1, 0.3, 0.5, 0.9):
        zeros = np.log(complex(1 - p) / p) + 1j * np.pi * np.array([-3, -1, 1, 3])  # 1 - p + p e^t = 0
        np.testing.assert_allclose(1 - p + p * np.exp(zeros), 0, atol=1e-14)
        assert float(convergence_radius.bernoulli(p)) == pytest.approx(np.abs(zeros).min(), rel=1e-14)
    assert float(convergence_radius.bernoulli(0.3)) == pytest.approx(3.254, abs=5e-4)


def test_bernoulli_series_of_twelve_terms_is_good_at_two_and_wrong_at_four():
    t = np.array([2.0, 4.0])
    series = np.asarray(cumulants.series(t, cumulants.bernoulli(12, 0.3)))
    exact = np.asarray(K.bernoulli(0.3)(t))
    assert abs(series[0] - exact[0]) == pytest.approx(7.8e-5, abs=0.05e-5)
    assert series[1] == pytest.approx(3.97, abs=0.005)
    assert exact[1] == pytest.approx(2.838, abs=5e-4)


@pytest.mark.parametrize(("name", "parameters"), [("bernoulli", (0.3,)), ("exponential", (1.7,)), ("laplace", (0.6,))])
def test_series_converges_geometrically_inside_its_radius(name, parameters):
    radius = RADII[name](*parameters)
    kappas, exact = np.asarray(getattr(cumulants, name)(60, *parameters)), closed_form(name, parameters)
    fractions = np.array([0.3, -0.6, 0.8])
    for order in (10, 20, 60):
        errors = np.asarray(cumulants.series(fractions * radius, kappas[:order])) - exact(fractions * radius)
        # Coefficients kappa_n R^n / n! are at most 2 / n for these priors: the remainder is below a geometric sum.
        bounds = 2 / order * np.abs(fractions) ** (order + 1) / (1 - np.abs(fractions))
        assert np.all(np.abs(errors) <= bounds + 1e-13)


@pytest.mark.parametrize(("name", "parameters", "sign"), [("bernoulli", (0.3,), 1), ("exponential", (1.7,), -1)])
def test_series_diverges_outside_its_radius_though_the_generating_function_is_finite(name, parameters, sign):
    t = sign * 1.5 * RADII[name](*parameters)
    kappas, exact = np.asarray(getattr(cumulants, name)(60, *parameters)), closed_form(name, parameters)
    assert np.isfinite(exact(t))
    # The larger of two successive errors: a single one may pass through zero, as the terms oscillate.
    errors = [
        max(abs(float(cumulants.series(t, kappas[:n])) - float(exact(t))) for n in (m - 1, m)) for m in (20, 40, 60)
    ]
    # Terms grow like 1.5^n / n, so that twenty more of them multiply the error by 1.5^20 / 2 = 1600 or so.
    assert errors[0] > 10
    assert all(later > 100 * earlier for earlier, later in pairwise(errors))


def test_series_of_entire_generating_functions_converges_everywhere():
    t = 10.0
    # Remainder of the exponential series after n terms: below t^{n+1} / (n+1)! / (1 - t / (n+2)) = 2e-18 for n = 60.
    series = float(cumulants.series(t, cumulants.poisson(60, 2.0)))
    assert series == pytest.approx(2 * np.expm1(t), rel=1e-14)
    for name, parameters in (("gaussian", ()), ("constant", (-1.2,))):
        exact = closed_form(name, parameters)(50.0)
        assert float(cumulants.series(50.0, getattr(cumulants, name)(9, *parameters))) == pytest.approx(float(exact))


def test_series_broadcasts_over_points_and_parameters():
    p = np.array([0.2, 0.7])
    t = np.linspace(-1, 1, 5)[:, None]
    together = cumulants.series(t, cumulants.bernoulli(30, p))
    assert together.shape == (5, 2)
    np.testing.assert_allclose(together, K.bernoulli(p)(t * np.ones(2)), atol=1e-14)


def test_only_two_priors_have_finitely_many_cumulants():
    # Marcinkiewicz: a polynomial K means a normal distribution or a constant. The others go on at every even order.
    for name, parameters in PRIORS:
        tail = np.asarray(getattr(cumulants, name)(12, *parameters))[2:]
        if name in ("gaussian", "constant"):
            assert np.all(tail == 0)
        else:
            assert np.all(np.abs(tail[1::2]) > 1e-6)


def test_parameters_may_be_traced():
    p = np.array([0.2, 0.7])
    traced = jax.jit(lambda p: cumulants.series(1.0, cumulants.bernoulli(30, p)))(p)
    np.testing.assert_allclose(traced, K.bernoulli(p)(np.ones(2)), atol=1e-14)
    assert jax.eval_shape(lambda p: cumulants.bernoulli(4, p), p.astype(np.float32)).dtype == jnp.float32
