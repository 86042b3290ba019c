"""One vector spin against many digits, quadrature and automatic differentiation; samples against the density."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from spinbook import sphere

DIMS = [3, 4, 8, 32, 128, 512]
EPS = np.finfo(np.float64).eps


def direction(dim, seed=0):
    d = np.random.default_rng(seed).normal(size=dim)
    return d / np.linalg.norm(d)


def fields(dim, scaled):
    """A field with beta |h| / R equal to ``scaled`` at beta = 1.3."""
    return direction(dim) * scaled * sphere.radius(dim) / 1.3


@pytest.mark.parametrize("order", [0.0, 0.3, 0.5, 1.0, 2.5, 19.5, 20.0, 31.0, 255.0, 1023.5])
def test_the_ratio_of_bessel_functions_is_exact_for_any_real_order(order):
    x = np.array([1e-8, 1e-3, 0.1, 1.0, 5.0, 40.0, 300.0, 1e4])
    with mpmath.workdps(40):
        truth = [float(mpmath.besseli(order + 1, a) / mpmath.besseli(order, a)) for a in x]
    np.testing.assert_allclose(sphere.bessel_ratio(order, x), truth, rtol=16 * EPS)
    np.testing.assert_allclose(sphere.bessel_ratio(order, 1e200), 1, rtol=16 * EPS)


@pytest.mark.parametrize("order", [0.0, 2.5, 63.0])
def test_the_ratio_is_differentiable_also_where_there_is_no_field(order):
    slope = jax.jit(jax.grad(lambda x: sphere.bessel_ratio(order, x)))
    assert float(sphere.bessel_ratio(order, 0.0)) == 0
    np.testing.assert_allclose(slope(0.0), 1 / (2 * order + 2), rtol=16 * EPS)
    assert float(jax.jit(jax.grad(slope))(0.0)) == 0
    with mpmath.workdps(40):
        for x in (0.3, 7.0, 200.0):
            r = mpmath.besseli(order + 1, x) / mpmath.besseli(order, x)
            np.testing.assert_allclose(slope(x), float(1 - r * r - (2 * order + 1) * r / x), rtol=1e-11)


@pytest.mark.parametrize("dim", DIMS)
def test_the_partition_function_and_its_slope_have_many_digits(dim):
    beta, R = 1.3, sphere.radius(dim)
    for scaled in (1e-6, 0.4, 3.0, 40.0):
        h = fields(dim, scaled)
        with mpmath.workdps(60):
            length = mpmath.mpf(float(np.linalg.norm(h)))
            nu, k = mpmath.mpf(dim) / 2 - 1, beta * R * length
            Z = (2 * mpmath.pi * R) ** (nu + 1) * mpmath.besseli(nu, k) / (beta * length) ** nu
            truth = float(mpmath.log(Z))
        # |h| itself carries a rounding error, which k multiplies.
        assert abs(float(sphere.log_partition(h, beta=beta)) - truth) < 1e-12 * abs(truth) + 16 * EPS * float(k) + 1e-12
    area = math.log(2) + dim / 2 * math.log(math.pi) - math.lgamma(dim / 2) + (dim - 1) * math.log(R)
    np.testing.assert_allclose(sphere.log_partition(np.zeros(dim), beta=beta), area, rtol=1e-12)
    h = fields(dim, 0.7)
    slope = jax.grad(lambda h: sphere.log_partition(h, beta=beta))(jnp.asarray(h))
    np.testing.assert_allclose(slope / beta, sphere.magnetization(h, beta=beta), rtol=1e-13)


@pytest.mark.parametrize("dim", [3, 4, 9, 24])
def test_mean_and_covariance_are_those_of_the_density(dim):
    beta, R = 1.3, sphere.radius(dim)
    h = fields(dim, 1.1)
    k, n = beta * R * np.linalg.norm(h), direction(dim)

    def moment(power):
        def integrand(angle):
            return math.cos(angle) ** power * math.sin(angle) ** (dim - 2) * math.exp(k * (math.cos(angle) - 1))

        return integrate.quad(integrand, 0, math.pi, epsabs=0, epsrel=1e-12)[0]

    first, second = moment(1) / moment(0), moment(2) / moment(0)
    np.testing.assert_allclose(sphere.magnetization(h, beta=beta), R * first * n, rtol=1e-10)
    across = (1 - second) / (dim - 1)
    truth = R**2 * (across * np.eye(dim) + (second - first**2 - across) * np.outer(n, n))
    np.testing.assert_allclose(sphere.covariance(h, beta=beta), truth, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dim", [3, 128])
def test_the_covariance_at_large_d_is_the_response_to_a_field(dim):
    h = jnp.asarray(fields(dim, 0.9))
    jacobian = jax.jit(jax.jacfwd(lambda h: sphere.magnetization_large_d(h, beta=1.3)))(h)
    np.testing.assert_allclose(1.3 * sphere.covariance_large_d(h, beta=1.3), jacobian, rtol=1e-12, atol=1e-13)


def test_a_spin_without_a_field_fluctuates_alike_in_every_direction():
    np.testing.assert_allclose(sphere.covariance(np.zeros(6), beta=1.0), 2 / 6 * np.eye(6), rtol=1e-14)
    np.testing.assert_array_equal(sphere.magnetization(np.zeros(6), beta=1.0), np.zeros(6))


@pytest.mark.parametrize("dim", DIMS)
def test_a_field_is_found_again_from_its_mean(dim):
    for scaled in (1e-7, 0.3, 5.0, 200.0):
        h = fields(dim, scaled)
        # m is close to R by a fraction of about 1 / scaled, so that its rounding is multiplied by scaled.
        options = {"rtol": 100 * EPS * max(1, scaled)}
        np.testing.assert_allclose(sphere.field(sphere.magnetization(h, beta=1.3), beta=1.3), h, **options)
        np.testing.assert_allclose(
            sphere.field_large_d(sphere.magnetization_large_d(h, beta=1.3), beta=1.3), h, **options
        )


def test_the_inverse_has_the_inverse_derivative():
    h = jnp.asarray(fields(5, 0.8))
    m = sphere.magnetization(h, beta=1.3)
    forward = jax.jit(jax.jacfwd(lambda h: sphere.magnetization(h, beta=1.3)))(h)
    backward = jax.jit(jax.jacrev(lambda m: sphere.field(m, beta=1.3)))(m)
    np.testing.assert_allclose(forward @ backward, np.eye(5), atol=1e-11)


@pytest.mark.parametrize(("dim", "scaled"), [(3, 2.0), (9, 0.5), (64, 30.0)])
def test_samples_have_the_density_along_the_field(dim, scaled):
    R, count = sphere.radius(dim), 20_000
    h = fields(dim, scaled)
    s = np.asarray(sphere.sample(jax.random.key(0), np.tile(h, (count, 1)), beta=1.3))
    np.testing.assert_allclose(np.linalg.norm(s, axis=1), R, rtol=1e-12)
    k = 1.3 * R * np.linalg.norm(h)
    grid = np.linspace(-1, 1, 40_001)
    density = np.exp(k * (grid - 1)) * (1 - grid**2) ** ((dim - 3) / 2)
    cumulative = integrate.cumulative_simpson(density, x=grid, initial=0)
    along = s @ direction(dim) / R
    pvalue = stats.kstest(along, lambda u: np.interp(u, grid, cumulative / cumulative[-1])).pvalue
    assert pvalue > 1e-5
    # An exact moment beyond the mean; that of 20,000 numbers in [0, 1] is known to 5 / sqrt(20,000) of their scatter.
    second = np.average(grid**2, weights=density)
    assert abs((along**2).mean() - second) < 5 * (along**2).std() / math.sqrt(count)


@pytest.mark.slow
def test_samples_without_a_field_have_the_second_moment_of_every_component(optimised):
    # <s_1^2> = R^2 / D along the axis that is drawn by rejection, which a shape off by one per cent misses by as much.
    dim, count = 16, 1_000_000
    s = np.asarray(sphere.sample(jax.random.key(1), np.zeros((count, dim), "float32"), beta=1.0))[:, 0]
    squares = s**2 * dim / sphere.squared_radius(dim)
    assert abs(squares.mean(dtype=float) - 1) < 5 * squares.std() / math.sqrt(count)
