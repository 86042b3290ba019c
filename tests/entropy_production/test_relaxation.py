"""Relaxation of vector spins: divergences against quadrature, contraction against dense eigenvalues."""

import numpy as np
from scipy import integrate

from spinbook import entropy_production as ep


def test_the_divergence_is_an_integral_over_the_sphere():
    # In three dimensions, with both fields along one axis, the density of the cosine u is exp(k u) on [-1, 1].
    R, beta = np.sqrt(0.5), 1.7
    for a, b in ((0.5, 2.0), (3.0, -1.0), (0.0, 1.0)):
        ka, kb = beta * R * a, beta * R * b
        za = integrate.quad(lambda u, k=ka: np.exp(k * u), -1, 1)[0]
        zb = integrate.quad(lambda u, k=kb: np.exp(k * u), -1, 1)[0]
        expected = integrate.quad(
            lambda u, ka=ka, kb=kb, za=za, zb=zb: np.exp(ka * u) / za * ((ka - kb) * u - np.log(za / zb)), -1, 1
        )[0]
        got = ep.divergence([a, 0.0, 0.0], [b, 0.0, 0.0], beta=beta)
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)
