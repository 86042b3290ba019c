"""Naive and TAP updates against enumeration: the order of the error, the equations solved, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from spinbook.ising import exact, mean_field
from spinbook.ising import sherrington_kirkpatrick as sk
from tests.ising.distributions import covariance, independent, mean

NUM_SPINS = 8


def system(seed, strength):
    rng = np.random.default_rng(seed)
    couplings = strength * rng.normal(size=(NUM_SPINS, NUM_SPINS)) / np.sqrt(NUM_SPINS)
    return couplings, rng.uniform(-0.5, 0.5, size=NUM_SPINS), rng.uniform(-0.8, 0.8, size=NUM_SPINS)


def errors_of_one_step(seed, strength):
    """The root-mean-square error of every approximation after two steps from independent spins."""
    J, h, start = system(seed, strength)
    before = exact.step(independent(start), J, h, beta=1.0)
    now = exact.step(before, J, h, beta=1.0)
    m0, m1 = mean(before), mean(now)
    off = ~np.eye(NUM_SPINS, dtype=bool)
    D = exact.delayed_correlations(J, h, beta=1.0, distribution=before)
    differences = {
        "naive": mean_field.naive_step(m0, J, h, beta=1.0) - m1,
        "tap": mean_field.tap_step(m0, J, h, beta=1.0) - m1,
        "correlations": (mean_field.correlations(m1, m0, J, beta=1.0) - covariance(now))[off],
        "delayed": mean_field.delayed_correlations(m1, m0, J, beta=1.0) - D,
    }
    return {name: float(np.sqrt(np.mean(np.square(difference)))) for name, difference in differences.items()}


@pytest.fixture(scope="module")
def slopes():
    """Local exponents of the errors between strengths 0.005 and 0.01, averaged over systems, with standard errors."""
    found = []
    for seed in range(8):
        weak, strong = errors_of_one_step(seed, 0.005), errors_of_one_step(seed, 0.01)
        found.append({name: np.log2(strong[name] / weak[name]) for name in weak})
    return {name: np.array([slope[name] for slope in found]) for name in found[0]}


@pytest.mark.parametrize(
    ("name", "order"),
    [("naive", 2), ("tap", 3), ("correlations", 3), ("delayed", 3)],
)
def test_the_error_goes_as_the_first_dropped_power_of_the_couplings(slopes, name, order):
    # A strength g bends the slope by O(g); a wrong sign or a lost square changes it by one.
    assert abs(slopes[name].mean() - order) < 0.1


@pytest.mark.parametrize("strength", [1.0, 1000.0])
def test_tap_solves_its_equation_for_any_strength_and_says_so(strength):
    J, h, m = system(5, strength)
    solution = mean_field.tap_solve(m, J, h, beta=1.0)
    right = np.tanh(h + J @ m - np.asarray(solution.value) * (J**2 @ (1 - m**2)))
    assert bool(solution.converged)
    # A rounding error of m comes back multiplied by the Onsager factor.
    assert np.abs(right - solution.value).max() <= 32 * np.finfo(float).eps * (1 + (J**2).sum(axis=1).max())


def test_tap_differentiates_as_the_implicit_function_theorem_says():
    J, h, m = system(6, 0.8)
    derivative = jax.jacobian(lambda h: mean_field.tap_step(m, J, h, beta=1.0))(jnp.asarray(h))
    step = 1e-5
    numerical = [
        (mean_field.tap_step(m, J, h + step * e, beta=1.0) - mean_field.tap_step(m, J, h - step * e, beta=1.0))
        / (2 * step)
        for e in np.eye(NUM_SPINS)
    ]
    np.testing.assert_allclose(derivative, np.array(numerical).T, atol=1e-9)


@pytest.mark.parametrize("width", [0.3, 3.0])
def test_averaged_step_is_the_mean_over_a_normal_field(width):
    # A neighbour of mean zero gives its coupling as the standard deviation of the field.
    couplings, normal = np.diag([width, 0.0]), stats.norm()
    for field in (0.0, 0.3, -2.0):
        mean = normal.expect(lambda z, field=field: np.tanh(0.8 * (field + width * z)), epsabs=1e-12)
        found = mean_field.averaged_step([0.0, 0.0], couplings, field, beta=0.8)
        np.testing.assert_allclose(found, [mean, np.tanh(0.8 * field)], atol=1e-6)


def test_a_simulation_is_repeated_steps_and_ends_in_the_steady_state():
    J, h, m = system(8, 0.5)
    states = mean_field.simulate(m, J, h, beta=1.0, steps=200)
    by_hand = m
    for state in states[:3]:
        by_hand = mean_field.tap_step(by_hand, J, h, beta=1.0)
        np.testing.assert_allclose(state, by_hand, rtol=1e-12, atol=1e-14)
    steady = mean_field.steady_state(J, h, beta=1.0)
    assert bool(steady.converged)
    np.testing.assert_allclose(states[-1], steady.value, atol=1e-9)


# The mean magnetisations that the authors' program gives (single precision, legacy random numbers of key 2666).
PUBLISHED = {
    ("naive", 0.5): 0.011979499831795692,
    ("tap", 0.5): 0.011891634203493595,
    ("naive", 1.0): 0.3150373697280884,
    ("tap", 1.0): 0.28648263216018677,
    ("naive", 2.0): 0.9361317157745361,
    ("tap", 2.0): 0.9352134466171265,
}


@pytest.mark.parametrize(("name", "factor"), PUBLISHED)
def test_the_published_means_of_512_spins(name, factor):
    beta = 1.1108 * factor
    with jax.threefry_partitionable(False):
        params_key, _ = jax.random.split(jax.random.PRNGKey(2666))
        x_key, J_key = jax.random.split(params_key)
        h = jax.random.uniform(x_key, (512,), jnp.float32, -0.5, 0.5)
        J = sk.sample_couplings(J_key, 512, mean=1.0, std=0.1, dtype=jnp.float32)
        step = {"naive": mean_field.naive_step, "tap": mean_field.tap_step}[name]
        means = mean_field.simulate(
            np.ones(512),
            np.asarray(J, float),
            np.asarray(h, float),
            beta=beta,
            steps=127,
            step=step,
            observable=jnp.mean,
        )
    # Single precision, and the authors' tolerance of 1e-3 in each step of TAP, which the contraction forgives.
    assert abs(float(means[-1]) - PUBLISHED[name, factor]) < 1e-6


def mean_of_equal_couplings(num_spins, field, beta):
    """The exact stationary mean for J_ij = 1 / N: a chain in the number of spins that point up."""
    ups = np.arange(num_spins + 1)
    mean = (2 * ups - num_spins) / num_spins
    moves = stats.binom.pmf(ups[:, None], num_spins, 1 / (1 + np.exp(-2 * beta * (field + mean))))
    p = np.full(num_spins + 1, 1 / (num_spins + 1))
    for _ in range(300):
        p = moves @ p
    return p @ mean


def test_common_fluctuations_take_the_error_of_tap_from_first_to_second_order_in_one_over_n():
    field, beta = 0.3, 0.8
    errors = {"TAP": [], "shifted": []}
    for number in (64, 128):
        J = np.full((number, number), 1 / number)
        m = mean_field.steady_state(J, np.full(number, field), beta=beta).value
        exactly = mean_of_equal_couplings(number, field, beta)
        errors["TAP"].append(float(m[0]) - exactly)
        errors["shifted"].append(float(m[0] + mean_field.collective_shift(m, J, beta=beta)[0]) - exactly)
    orders = {name: np.log2(values[0] / values[1]) for name, values in errors.items()}
    # The next power of 1 / N bends an order by some per cent; without (1 - A)^-1, or with all of C, it is 1.
    assert abs(orders["TAP"] - 1) < 0.15
    assert abs(orders["shifted"] - 2) < 0.3


def test_common_fluctuations_follow_an_index_order_that_a_swap_would_break():
    J, _, m = system(5, 0.6)
    A = (1 - m**2)[:, None] * J
    C = variance = np.diag(1 - m**2)
    for power in range(1, 200):
        carried = np.linalg.matrix_power(A, power)
        C = C + carried @ variance @ carried.T
    b = [-(m[i] * (1 - m[i] ** 2)) * (J[i] @ (C - variance) @ J[i]) for i in range(NUM_SPINS)]
    expected = np.linalg.inv(np.eye(NUM_SPINS) - A) @ b
    np.testing.assert_allclose(mean_field.collective_shift(m, J, beta=1.0), expected, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(mean_field.collective_shift(m, J / 2, beta=2.0), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.documented_nan
def test_fluctuations_that_do_not_die_out_have_no_shift():
    assert np.all(np.isnan(mean_field.collective_shift(np.zeros(2), np.full((2, 2), 0.5), beta=1.0)))
    assert np.all(np.isnan(mean_field.collective_shift(np.zeros(2), np.full((2, 2), 3.0), beta=1.0)))
