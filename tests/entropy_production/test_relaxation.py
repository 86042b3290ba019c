"""Relaxation of vector spins: divergences against quadrature, contraction against dense eigenvalues."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate

from spinbook import entropy_production as ep
from spinbook import sphere
from spinbook.vector import mean_field


def iterated(step, m, J, x, *, steps):
    """The magnetizations (steps, N, D) after each step."""
    path = jax.lax.scan(lambda m, _: 2 * (step(m, J, x, beta=1.0),), jnp.asarray(m), length=steps)[1]
    return np.asarray(path)


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


def test_a_change_of_drive_is_followed_to_the_new_steady_state():
    rng = np.random.default_rng(0)
    J, x = 0.3 * rng.normal(size=(4, 4)), rng.normal(size=(2, 4, 6))
    step = partial(mean_field.naive_step, response=sphere.large_d)
    old = mean_field.steady_state(J, x[0], beta=1.0, step=step).value
    new = mean_field.steady_state(J, x[1], beta=1.0, step=step).value
    path = iterated(step, old, J, x[1], steps=60)
    np.testing.assert_allclose(path[-1], new, atol=1e-8)
    first, last = (ep.divergence(x[1] + J @ m, x[1] + J @ np.asarray(new), beta=1.0).sum() for m in path[[0, -1]])
    assert float(last) < 1e-12 < float(first)
