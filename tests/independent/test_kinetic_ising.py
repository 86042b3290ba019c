"""The critical points of the infinite asymmetric SK model, from equations solved here by quadrature of fifty digits.

An average over uniform fields of a derivative is a difference at the ends, so that every condition is about a field at
the edge X: (mu / X) <m(X + sigma z)> = 1, with the m of the theory.
"""

import mpmath
import pytest

from spinbook.ising import sherrington_kirkpatrick as sk

X, MU, SIGMA = "0.5", "1", "0.1"
SYSTEM = {"field_width": float(X), "coupling_mean": float(MU), "coupling_std": float(SIGMA)}


def gaussian_mean(function):
    """The mean over a standard normal variable, by a plain sum, since the functions are smooth and have no pole near.

    The sum errs by exp(-2 (pi / width)^2) = 1e-53, and beyond sixteen the density is 1e-56.
    """
    width = mpmath.mpf(2) / 5
    return width * mpmath.fsum(function(z) * mpmath.npdf(z) for z in (width * k for k in range(-40, 41)))


def constants():
    return mpmath.mpf(X), mpmath.mpf(MU), mpmath.mpf(SIGMA)


def edge(mean_of_a_spin, width):
    X, MU, _ = constants()
    return MU / X * gaussian_mean(lambda z: mean_of_a_spin(X + width * z)) - 1


def mean_square(beta, width):
    """q = <m^2> of m = tanh(beta h) over uniform fields and normal couplings, at zero magnetization.

    The integral of m^2 over h is h - m / beta, at both ends.
    """
    X, _, _ = constants()
    return gaussian_mean(lambda z: X + width * z - mpmath.tanh(beta * (X + width * z)) / beta) / X


def test_of_the_model():
    # Fields have the variance sigma^2 of spins that are +-1. Published: 1.1108.
    _, _, sigma = constants()
    beta = mpmath.findroot(lambda b: edge(lambda h: mpmath.tanh(b * h), sigma), (1.10, 1.12), solver="anderson")
    assert sk.critical_beta(**SYSTEM) == pytest.approx(float(beta), abs=1e-12)
    assert mpmath.nstr(beta, 5) == "1.1108"


def test_without_disorder_it_is_the_logarithm_of_three():
    X, MU, _ = constants()
    beta = mpmath.findroot(lambda b: MU / X * mpmath.tanh(b * X) - 1, 1.1)
    assert mpmath.almosteq(beta, mpmath.log(3), abs_eps=mpmath.mpf(10) ** -45)
    assert sk.critical_beta(**{**SYSTEM, "coupling_std": 0.0}) == pytest.approx(float(mpmath.log(3)), abs=1e-12)


@pytest.mark.slow
def test_of_the_naive_theory():
    # Its fields have the variance sigma^2 q.
    sigma = constants()[2]

    def width(beta):
        guess = (mpmath.mpf("0.08"), mpmath.mpf("0.09"))
        q = mpmath.findroot(lambda q: mean_square(beta, sigma * mpmath.sqrt(q)) - q, guess, solver="secant", tol=1e-34)
        return sigma * mpmath.sqrt(q)

    def gap(beta):
        return edge(lambda h: mpmath.tanh(beta * h), width(beta))

    with mpmath.workdps(20):
        beta = mpmath.findroot(gap, (mpmath.mpf("1.099"), mpmath.mpf("1.100")), solver="secant", tol=1e-30)
    assert sk.naive_critical_beta(**SYSTEM) == pytest.approx(float(beta), abs=1e-12)
