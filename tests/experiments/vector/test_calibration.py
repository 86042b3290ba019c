"""What the calibration map rests on: sampled correlations, closures, the noise of two estimators, and the record."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from experiments.vector import calibration, fidelity
from spinbook import sphere
from spinbook.entropy_production import steady
from spinbook.precision import enable_x64
from spinbook.vector import stochastic


def system(num_sites: int, dim: int, draw: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A softmax of independent logits, and fields of length R in random directions."""
    rng = np.random.default_rng([num_sites, dim, draw])
    x = rng.normal(size=(num_sites, dim))
    J = scipy.special.softmax(rng.normal(size=(num_sites, num_sites)), axis=1)
    return J, sphere.radius(dim) * x / np.linalg.norm(x, axis=1, keepdims=True)


def alone(dim: int, beta: float) -> tuple[float, float]:
    """|m| / R and D = <phi(x + s) . s> - |m|^2 of one spin with J = 1 in a field of length R.

    Detailed balance: the stationary density is exp(beta s . x) Z(|x + s|), one integral over the angle.
    """
    R = sphere.radius(dim)
    u, weight = scipy.special.roots_gegenbauer(200, (dim - 2) / 2)
    fields = np.stack([R * (1 + u), R * np.sqrt(1 - u**2), *(dim - 2) * [np.zeros_like(u)]], axis=1)
    with enable_x64(True):
        logits = np.log(weight) + beta * R**2 * u + np.asarray(sphere.log_partition(fields, beta=beta))
        phi = np.asarray(sphere.magnetization(fields, beta=beta))
    p = scipy.special.softmax(logits)
    return p @ u, float(p @ np.sum(phi * (fields - R * np.eye(dim)[0]), axis=1) - (R * p @ u) ** 2)


@pytest.fixture(scope="module")
def short_runs():
    """D of one spin that sees itself, in sixteen groups of 48 samples, sixty times: as sampled, and with own means."""
    dim, beta = 16, 2.0
    sizes = {"replicas": 64, "steps": 6, "transient": 20, "delayed": True}
    keys = [jax.random.key(k) for k in range(60)]
    x = sphere.radius(dim) * np.eye(dim)[:1]
    J, fields, inverse = (jnp.asarray(a, jnp.float32) for a in (np.ones((1, 1)), x, beta))
    runs = [fidelity.sampled_halves(key, J, fields, inverse, **sizes) for key in keys]
    found, own = (np.array([of(*run) for run in runs]) for of in (fidelity.delayed_estimate, fidelity.own_means_apart))
    public = fidelity.sampled(keys[0], J, x, beta=beta, **sizes)
    assert np.asarray(public.delayed) == pytest.approx(found[0], abs=1e-5)
    return alone(dim, beta)[1], found.reshape(60, 16), own.reshape(60, 16)


def test_short_runs_are_right_with_the_means_of_other_groups_and_not_with_their_own(short_runs):
    exact, found, own = short_runs
    (apart, error), (shared, wrong) = (
        (values.mean(), values.mean(1).std(ddof=1) / np.sqrt(len(values))) for values in (found, own)
    )
    assert abs(apart - exact) < 4.5 * error
    assert exact - shared > 10 * wrong


def test_groups_scatter_as_much_as_their_average_does_from_run_to_run(short_runs):
    # Products less the means of the others hold noise of a mean that their average does not have, and that here hides
    # two thirds of the scatter.
    _, found, _ = short_runs
    said = np.sqrt(np.mean(found.reshape(-1, 2, 8).var(axis=2, ddof=1)) / 16)
    scatter = found.mean(1).std(ddof=1)
    # A standard deviation of sixty values is known to 1 / sqrt(118).
    assert said == pytest.approx(scatter, rel=4 / np.sqrt(118))


def test_leaving_out_a_group_of_delayed_correlations_leaves_the_estimate_of_the_others():
    rng = np.random.default_rng(0)
    with enable_x64(True):
        means, before = (jnp.asarray(part + rng.normal(size=(2, 8, 3, 5))) for part in (4.0, 3.0))
        products = jnp.asarray(rng.normal(size=(2, 8, 3, 3)))
        found = np.asarray(fidelity.delayed_estimate(means, before, products))
    pairs = np.einsum("agid,ahld->aghil", means, before)
    for left in (None, 0, 5):
        kept = np.arange(8) != left
        apart = ~np.eye(8, dtype=bool) & np.outer(kept, kept)
        expected = np.asarray(products)[:, kept].mean(1) - pairs[:, apart].mean(1)
        assert found[:, kept].mean(1) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
def test_conditional_means_have_the_correlations_of_the_spins_themselves():
    J, x = system(4, 6)
    R = sphere.radius(6)
    start = np.broadcast_to(R * x / np.linalg.norm(x, axis=1, keepdims=True), (800, 4, 6))
    raw = stochastic.simulate(jax.random.key(2), start, J, x, beta=1.0, steps=100, transient=20, correlations=True)
    options = {"beta": 1.0, "replicas": 512, "steps": 100, "transient": 20}
    halves = fidelity.sampled(jax.random.key(1), J, x, delayed=True, **options)
    groups = np.asarray(halves.delayed, dtype=float).reshape(-1, 4, 4)
    spread = groups.std(axis=0, ddof=1) / np.sqrt(len(groups))
    error = np.hypot(spread, np.asarray(raw.delayed_correlation_standard_errors))
    z = (groups.mean(0) - np.asarray(raw.delayed_correlations)) / error
    assert np.abs(z).max() < 4.5
    # Independent spins, whose correlations are the couplings' own, would be seen to be wrong.
    independent = calibration.theories(J, x, 1.0)[1]["naive"]
    assert np.abs((groups.mean(0) - independent) / spread).max() > 10


def test_linear_response_solves_the_equation_of_lyapunov():
    rng = np.random.default_rng(3)
    J = scipy.special.softmax(rng.normal(size=(7, 7)), axis=1)
    m = rng.normal(size=(7, 12)) / 4
    v = (sphere.squared_radius(12) - np.sum(m**2, axis=1)) / 12
    A = 1.4 * v[:, None] * J
    C = scipy.linalg.solve_discrete_lyapunov(A, np.diag(12 * v))
    assert calibration.linear_response(J, m, 1.4) == pytest.approx(A @ C - A * 12 * v)


def test_fluctuations_that_do_not_die_out_have_no_linear_response():
    # chi = beta (1/2 - 1/D) of spins without a mean: one at beta = 3 in six dimensions.
    J, m = np.full((3, 3), 1 / 3), np.zeros((3, 6))
    assert np.isfinite(calibration.linear_response(J, m, 2.99)).all()
    assert np.isnan(calibration.linear_response(J, m, 3.0)).all()


def test_an_averaged_response_is_the_expectation_over_neighbours_without_correlations():
    # tr<phi'(h)> / D with h = x + sum_j J_j s_j and independent s_j, by drawing them.
    dim, N = 24, 16
    rng = np.random.default_rng(5)
    J = np.zeros((N, N))
    J[0, 1:] = 1 / (N - 1)
    x = rng.normal(size=(N, dim))
    x *= sphere.radius(dim) / np.linalg.norm(x, axis=1, keepdims=True)
    with enable_x64(True):
        m = fidelity.spread_means(J, x, beta=1.5)
        drawn = sphere.sample(jax.random.key(0), jnp.broadcast_to(jnp.asarray(x), (4000, N, dim)), beta=1.5)
        h = x[0] + np.einsum("j,rjd->rd", J[0], np.asarray(drawn))
        gains = jax.jit(sphere.exact.gains_at, static_argnums=1)
        found = gains(jnp.asarray(np.sum(h**2, axis=1)), dim, jnp.asarray(1.5))
        slopes = np.asarray(found.f) + np.asarray(found.f1) * np.sum(h**2, axis=1) / dim
        D, _ = calibration.spread_delayed(J, x, m, 1.5)
        mean_field = x[0] + J[0] @ m
        at_mean = gains(jnp.sum(jnp.asarray(mean_field) ** 2), dim, jnp.asarray(1.5))
    Var = np.asarray(sphere.covariance(x[1:], beta=1.5))
    traces = np.trace(Var, axis1=1, axis2=2)
    # Averaged over many senders in random directions the trace of a product is that of their parts.
    average = float(np.sum(D[0, 1:]) / np.sum(J[0, 1:] * traces))
    without = float(at_mean.f + at_mean.f1 * np.sum(mean_field**2) / dim)
    error = slopes.std() / np.sqrt(len(slopes))
    assert abs(average - slopes.mean()) < 4.5 * error + 0.1 * abs(without - slopes.mean())
    assert abs(without - slopes.mean()) > 20 * error


def test_a_delayed_correlation_is_the_averaged_slope_times_the_variance_of_the_sender():
    # Term by term: phi'(h) = f 1 + 2 (df / d|h|^2) h h^T, with <h h^T> = h h^T + (w / D) 1 and the slope by autodiff.
    dim, N, beta = 5, 3, 1.5
    J, x = system(N, dim)
    with enable_x64(True):
        m = fidelity.spread_means(J, x, beta=beta)
        D, _ = calibration.spread_delayed(J, x, m, beta)
        Var = np.asarray(sphere.covariance(sphere.field(m, beta=beta), beta=beta))
        gain = jax.value_and_grad(lambda squared: sphere.exact.gain(squared, dim, jnp.asarray(beta)))
        for i in range(N):
            h = x[i] + J[i] @ m
            w = sum(J[i, j] ** 2 * (sphere.squared_radius(dim) - m[j] @ m[j]) for j in range(N))
            f, df = map(float, gain(jnp.asarray(h @ h + w)))
            slope = (f + 2 * df * w / dim) * np.eye(dim) + 2 * df * np.outer(h, h)
            np.testing.assert_allclose(D[i], [J[i, j] * np.trace(slope @ Var[j]) for j in range(N)], rtol=1e-9)


@pytest.mark.parametrize("theory", calibration.THEORIES)
def test_symmetric_couplings_produce_no_entropy_in_any_theory_that_keeps_their_symmetry(theory):
    J, x = system(5, 6)
    J = (J + J.T) / 2
    delayed = calibration.theories(J, x, 1.0)[1][theory]
    assert np.isfinite(delayed).all()
    assert float(steady.from_delayed_correlations(J, delayed, beta=1.0)) == 0.0


def test_the_gain_of_the_entropy_production_is_that_of_spins_that_respond_linearly():
    N, dim, beta, number = 5, 40, 1.3, 4000
    rng = np.random.default_rng(7)
    J = scipy.special.softmax(3 * rng.normal(size=(N, N)), axis=1)
    m = rng.uniform(0, 0.6, (N, 1)) * rng.normal(size=(N, dim))
    v = (sphere.squared_radius(dim) - np.sum(m**2, axis=1)) / dim
    first, second = np.sqrt(v)[:, None] * rng.normal(size=(2, number, N, dim))
    K = J - J.T
    raw = np.einsum("il,rid,rld->r", K, second, first, optimize=True)
    # A spin has a fixed length, which leaves nothing to the products of a spin with itself.
    products = np.einsum("rjd,rld->rjl", first, first, optimize=True) * ~np.eye(N, dtype=bool)
    quiet = np.einsum("il,i,ij,rjl->r", K, beta * v, J, products, optimize=True)
    _, predicted = calibration.predicted_gains(J, m, beta)
    # Each of two standard deviations is known to 1 / sqrt(2 number).
    assert raw.std() / quiet.std() == pytest.approx(predicted, rel=4.5 / np.sqrt(number))


def test_naive_means_are_where_steps_come_to_rest_and_not_a_state_that_they_leave():
    # Cold and in weak fields: there is a state of short means that attracts no steps, which a solver may find.
    J, x = system(32, 16)
    x = x / 4
    m = calibration.settled(J, x, 4.0)
    R = sphere.radius(16)
    with enable_x64(True):
        again = np.asarray(fidelity.mean_field.naive_step(m, J, x, beta=4.0, response=sphere.exact))
        pushed = m + 1e-3 * np.random.default_rng(0).normal(size=m.shape)
        for _ in range(200):
            pushed = np.asarray(fidelity.mean_field.naive_step(pushed, J, x, beta=4.0, response=sphere.exact))
    assert np.abs(again - m).max() < 1e-7 * R
    assert np.abs(pushed - m).max() < 1e-7 * R


def test_the_map_is_read_in_the_order_of_its_axes():
    rows = calibration.record().cells
    chosen = calibration.table(rows, 64, "sigma", 0)
    assert chosen.shape == (5, 5, 2)
    (expected,) = (f["sigma"][0] for c, f in rows if (c.beta, c.u, c.dim) == (2.0, 4.0, 64))
    assert np.array_equal(chosen[2, 4], expected)
