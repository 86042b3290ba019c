"""The infinite system against large finite ones, a sampled Gaussian field, and the definition of its curve."""

import jax.numpy as jnp
import numpy as np
import pytest

from chapters.spin_transformers import infinite
from spinbook import sphere
from spinbook.vector import mean_field


def lengths(vectors):
    return np.linalg.norm(vectors, axis=-1)


def reacting_step(m, J, x, *, beta):
    """Of m' = ``m`` the field takes out what comes back of it, (beta / D) sum_j J_ij^2 (R^2 - |m'_j|^2) m'_i."""
    b = beta / m.shape[1] * J**2 @ (sphere.squared_radius(m.shape[1]) - sphere.squared_length(m))
    return sphere.large_d(x + J @ m - b[:, None] * m, beta)


def finite_system(num_sites=160, dim=160, seed=0):
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(num_sites, num_sites)) / np.sqrt(num_sites)
    x = rng.normal(size=(num_sites, dim))
    return J, sphere.radius(dim) * x / lengths(x)[:, None]


@pytest.mark.parametrize(
    ("theory", "step", "beta"),
    [
        (infinite.naive, mean_field.naive_step, 1.5),
        (infinite.tap, mean_field.flat_tap_step, 1.0),
        (infinite.tap, mean_field.flat_tap_step, 2.3),
        (infinite.tap_without_self_term, reacting_step, 1.5),
    ],
)
def test_a_large_system_has_the_length_of_the_infinite_one(theory, step, beta):
    J, x = finite_system()
    found = mean_field.steady_state(J, x, beta=beta, step=step, max_steps=200)
    assert bool(found.converged)
    expected = infinite.steady_length(beta=beta, coupling_std=1.0, field_length=1.0, theory=theory)
    assert expected.turned == (beta > 2.1)
    # Of one draw of the couplings, the row sums of squares scatter by sqrt(2 / N), and of their mean by sqrt(2) / N;
    # overlaps of 1 / sqrt(D) between fields enter squared.
    mean = lengths(found.value).mean() / sphere.radius(160)
    assert mean == pytest.approx(float(expected.length), rel=4 * np.sqrt(2) / 160)


def test_a_step_shrinks_a_random_change_by_the_factor():
    J, x = finite_system()
    m = np.asarray(mean_field.steady_state(J, x, beta=1.0, max_steps=200).value)
    change = np.random.default_rng(1).normal(size=m.shape) * 1e-4
    after = np.asarray(mean_field.tap_step(m + change, J, x, beta=1.0)) - m
    factor = float(infinite.steady_length(beta=1.0, coupling_std=1.0, field_length=1.0).factor)
    # One draw of the couplings, 1 / sqrt(N); along the mean itself, one direction of D, the factor is smaller.
    assert np.linalg.norm(after) / np.linalg.norm(change) == pytest.approx(factor, rel=1 / np.sqrt(160))


def test_the_central_limit_is_the_mean_over_a_gaussian_field():
    strength, dim = 1.3, 20_000
    y = 0.8
    p = y / (1 + np.sqrt(1 + y * y))
    drive = float(infinite.central_limit(np.array([y]), strength)[0, 0])
    radius = sphere.radius(dim)
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(200, dim)) * strength * np.sqrt(1 - p * p) * radius / np.sqrt(dim)
    noise[:, 0] += drive * radius
    mean = np.asarray(sphere.magnetization_large_d(jnp.asarray(noise), beta=1.0)).mean(axis=0)
    # The noise along the drive, of one component among D, scatters by 1 / sqrt(200 D) of the radius.
    assert mean[0] / radius == pytest.approx(p, abs=4 * strength / np.sqrt(200 * dim) + 2 / dim)


def test_both_roots_solve_the_quadratic_equation_and_meet_at_the_end():
    y, b = np.linspace(0.1, 1.3, 50), 2.0
    gamma = np.sqrt(1 + y * y)
    for drive in infinite.tap(y, b):
        n = drive - y
        right = b**2 * y / (1 + gamma) ** 2 + n**2 * y * (1 + 2 * gamma) / (2 * gamma**2 * (1 + gamma))
        ok = np.isfinite(n)
        np.testing.assert_allclose(n[ok], right[ok], rtol=1e-12)
        assert 5 < ok.sum() < 50


def test_the_length_passes_the_turning_point_without_a_jump_and_falls():
    betas = np.linspace(1.98, 2.05, 15)
    states = [infinite.steady_length(beta=b, coupling_std=1.0, field_length=1.0) for b in betas]
    turned = [state.turned for state in states]
    assert turned == sorted(turned)
    assert turned[0] is False
    assert turned[-1] is True
    steps = np.diff([float(state.length) for state in states])
    # Slopes of neighbours differ by the curvature alone, nowhere by the size of a step.
    assert np.all(steps < 0)
    assert np.max(np.abs(np.diff(steps))) < 0.1 * np.abs(steps).mean()


def test_weak_couplings_leave_the_spin_alone():
    alone = 0.7 / (1 + np.sqrt(1 + 0.49))
    for theory in (infinite.naive, infinite.tap, infinite.tap_without_self_term):
        state = infinite.steady_length(beta=0.7, coupling_std=0.0, field_length=1.0, theory=theory)
        assert float(state.length) == pytest.approx(alone, rel=1e-5)
        assert float(state.factor) == 0
