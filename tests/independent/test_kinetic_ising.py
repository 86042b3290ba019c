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
    """The mean over a standard normal variable; beyond twelve the density is below 1e-31, with twenty digits kept."""
    cuts = [-12, -6, -3, 0, 3, 6, 12]
    return mpmath.quad(lambda z: function(z) * mpmath.npdf(z), cuts)


def constants():
    return mpmath.mpf(X), mpmath.mpf(MU), mpmath.mpf(SIGMA)


def edge(mean_of_a_spin, width):
    X, MU, _ = constants()
    return MU / X * gaussian_mean(lambda z: mean_of_a_spin(X + width * z)) - 1


def mean_square(mean_of_a_spin, beta, reaction, width):
    """q = <m^2> over uniform fields and normal couplings, at zero magnetization.

    With beta h = artanh m + r m the integral of m^2 over h is (artanh m - m + r m^3 / 3) / beta, at both ends.
    """
    X, _, _ = constants()

    def at_the_edge(z):
        m = mean_of_a_spin(X + width * z)
        return (mpmath.atanh(m) - m + reaction * m**3 / 3) / beta

    return gaussian_mean(at_the_edge) / X


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


def spin(h, beta, reaction):
    """m = tanh(beta h - r m), whose left side grows faster: one root."""
    m = mpmath.tanh(beta * h / (1 + reaction))
    for _ in range(8 if reaction else 0):
        t = mpmath.tanh(beta * h - reaction * m)
        m -= (m - t) / (1 + reaction * (1 - t * t))
    return m


def critical(strength, bracket):
    """Where M = 0 loses its stability, with the reaction strength * beta^2 sigma^2 (1 - q) of TAP, or none."""
    sigma = constants()[2]

    def system(beta, q):
        reaction = strength * beta**2 * sigma**2 * (1 - q)
        return reaction, sigma * mpmath.sqrt(q), lambda h: spin(h, beta, reaction)

    def own(beta):
        def gap(q):
            reaction, width, m = system(beta, q)
            return mean_square(m, beta, reaction, width) - q

        return mpmath.findroot(gap, (mpmath.mpf("0.08"), mpmath.mpf("0.09")), solver="secant", tol=1e-34)

    def gap(beta):
        _, width, m = system(beta, own(beta))
        return edge(m, width)

    return mpmath.findroot(gap, bracket, solver="secant", tol=1e-30)


@pytest.mark.parametrize(
    ("strength", "bracket", "of_the_library"),
    [(0, (1.099, 1.100), sk.naive_critical_beta), (1, (1.1108, 1.1110), sk.tap_critical_beta)],
)
def test_of_the_mean_field_theories(strength, bracket, of_the_library):
    with mpmath.workdps(20):
        beta = critical(strength, tuple(map(mpmath.mpf, bracket)))
    assert of_the_library(**SYSTEM) == pytest.approx(float(beta), abs=1e-12)
