"""Attention as the posterior mean of a mixture: the integrals by SymPy, Bayes' rule in fifty digits."""

import mpmath
import numpy as np
import pytest
import sympy

from spinbook.rbm import mixture

PATTERNS = [(sympy.Rational(3, 5), sympy.Rational(-1, 4)), (sympy.Rational(-7, 6), 1), (0, sympy.Rational(9, 8))]
BETA = sympy.Rational(3, 2)
QUERY = (sympy.Rational(1, 3), sympy.Rational(2, 7))


def as_floats(rows):
    return np.array([[float(x) for x in row] for row in rows])


def exactly(rational):
    return mpmath.mpf(sympy.Rational(rational).p) / sympy.Rational(rational).q


def integral_of(pattern, beta):
    """The integral of exp(-beta (|v|^2 / 2 - x . v)) over the plane, a product of two that SymPy does in symbols."""
    v, x = sympy.symbols("v x", real=True)
    b = sympy.symbols("b", positive=True)
    line = sympy.integrate(sympy.exp(-b * (v**2 / 2 - x * v)), (v, -sympy.oo, sympy.oo))
    return sympy.prod(line.subs({b: beta, x: component}) for component in pattern)


def test_the_integrals_give_the_partition_function_and_weights_that_sum_to_one():
    integrals = [integral_of(pattern, BETA) for pattern in PATTERNS]
    total = sum(integrals)
    partition = float(mixture.mixture_log_partition(as_floats(PATTERNS), beta=float(BETA)))
    assert partition == pytest.approx(float(sympy.log(total).evalf(50)), abs=1e-13)
    weights = mixture.mixture_weights(as_floats(PATTERNS), beta=float(BETA))
    np.testing.assert_allclose(weights, [float((z / total).evalf(50)) for z in integrals], rtol=1e-13)


def test_the_weights_as_printed_sum_to_a_power_of_two_pi():
    # Claim rbm-mixtures.mixture-weights-sum: Z_mu = exp(|x_mu|^2 / 2) over a Z that holds (2 pi)^(n / 2), n = 2.
    printed = [sympy.exp((x**2 + y**2) / 2) for x, y in PATTERNS]
    ratio = sum(printed) / sum(integral_of(pattern, 1) for pattern in PATTERNS)
    assert abs((ratio - 1 / (2 * sympy.pi)).evalf(50)) < 1e-45


def test_one_update_of_attention_is_the_posterior_mean_by_bayes_rule():
    # P(mu | q) from the joint density of a pattern and a query around it, with no softmax anywhere.
    def joint(pattern):
        squared = sum((q - x) ** 2 for q, x in zip(query, pattern, strict=True))
        prior = mpmath.exp(beta * sum(x * x for x in pattern) / 2)
        return prior * mpmath.exp(-beta * squared / 2)

    beta, query = exactly(BETA), [exactly(x) for x in QUERY]
    patterns = [[exactly(x) for x in row] for row in PATTERNS]
    shares = [joint(pattern) for pattern in patterns]
    mean = [sum(s * x[k] for s, x in zip(shares, patterns, strict=True)) / sum(shares) for k in range(2)]
    found = mixture.retrieve(as_floats([QUERY]), as_floats(PATTERNS), beta=float(BETA))[0]
    np.testing.assert_allclose(found, [float(x) for x in mean], rtol=1e-13)


def test_one_update_is_a_step_of_length_one_down_the_energy():
    def energy(v, w):
        terms = [mpmath.exp(beta * (x * v + y * w)) for x, y in patterns]
        return (v * v + w * w) / 2 - mpmath.log(sum(terms)) / beta

    beta, query = exactly(BETA), [exactly(x) for x in QUERY]
    patterns = [[exactly(x) for x in row] for row in PATTERNS]
    stepped = [q - mpmath.diff(energy, query, order) for q, order in zip(query, [(1, 0), (0, 1)], strict=True)]
    found = mixture.retrieve(as_floats([QUERY]), as_floats(PATTERNS), beta=float(BETA))[0]
    np.testing.assert_allclose(found, [float(x) for x in stepped], rtol=1e-13)
