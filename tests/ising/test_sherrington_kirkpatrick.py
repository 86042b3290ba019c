"""The infinite system against its critical exponent, plain sums and large finite systems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook.ising import sherrington_kirkpatrick as sk
from spinbook.ising import stochastic

ENSEMBLE = {"field_width": 0.5, "coupling_mean": 1.0, "coupling_std": 0.1}


def test_magnetization_is_zero_below_the_critical_point_and_grows_as_a_square_root_above():
    beta_c = sk.critical_beta(**ENSEMBLE)
    assert float(sk.order_parameters(0.99 * beta_c, **ENSEMBLE).magnetization) == 0
    near = np.array([1e-4, 4e-4])
    M = sk.order_parameters(beta_c * (1 + near), **ENSEMBLE).magnetization
    assert abs(np.log(M[1] / M[0]) / np.log(4) - 0.5) < 0.01


@pytest.mark.parametrize("kind", ["model", "naive"])
def test_the_order_parameters_solve_their_equations_by_plain_sums(kind):
    # M = <m> and q = <m m'> over fields and noise, iterated from one with fixed nodes; in the model m and m' share q.
    z, by_z = np.polynomial.hermite_e.hermegauss(60)
    H, by_H = np.polynomial.legendre.leggauss(40)
    z, by_z, H, by_H = 0.4 * z, by_z / by_z.sum(), H[:, None] / 2, by_H / 2
    M = q = 1.0
    for _ in range(300):
        field = H + M + np.sqrt(q) * z
        m = np.tanh(1.5 * field)
        if kind == "model":
            m = np.tensordot(by_z, np.tanh(1.5 * (field + np.sqrt(1 - q) * z[:, None, None])), 1)
        M, q = by_H @ m @ by_z, by_H @ m**2 @ by_z
    solve = getattr(sk, "order_parameters" if kind == "model" else f"{kind}_order_parameters")
    np.testing.assert_allclose(solve(1.5, **{**ENSEMBLE, "coupling_std": 0.4})[:2], [M, q], atol=1e-9)


@pytest.mark.slow
def test_sampling_a_large_system_gives_magnetization_overlap_and_entropy_production():
    n, replicas, beta = 600, 32, 1.8
    parameters = {"field_width": 0.5, "coupling_mean": 1.0, "coupling_std": 0.3}
    found = []
    for key in jax.random.split(jax.random.key(1), 5):
        J_key, h_key, run = jax.random.split(key, 3)
        J = sk.sample_couplings(J_key, n, mean=1.0, std=0.3, dtype=jnp.float32)
        h = jax.random.uniform(h_key, (n,), jnp.float32, -0.5, 0.5)
        result = stochastic.simulate(
            run,
            jnp.ones((replicas, n), jnp.float32),
            J,
            h - h.mean(),
            beta=beta,
            steps=150,
            transient=50,
            observable=jnp.asarray,
        )
        # One product of all states: the sampler's own would add to sixteen matrices of this size at each step.
        s = np.asarray(result.observed)[50:]
        after, before = s[1:].reshape(-1, n), s[:-1].reshape(-1, n)
        J, D, m = (np.asarray(x, float) for x in (J, after.T @ before / len(after), result.magnetizations))
        found.append([m.mean(), (m**2).mean(), beta * np.sum((J - J.T) * D) / n])
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    infinite = np.array(sk.order_parameters(beta, **parameters))
    # Corrections of the finite size are of order 1 / n, of the finite run of order 1 / (replicas steps).
    assert np.all(np.abs(found.mean(axis=0) - infinite) < 4 * error + 5 / n)


def test_sampled_couplings_have_the_stated_mean_and_variance():
    n = 400
    J = np.asarray(sk.sample_couplings(jax.random.key(2), n, mean=1.0, std=0.3))
    assert abs(J.mean() * n - 1.0) < 5 * 0.3 / np.sqrt(n)
    assert abs(J.std() * np.sqrt(n) / 0.3 - 1) < 5 / np.sqrt(2 * n**2)
    assert abs(np.corrcoef(J[np.triu_indices(n, 1)], J.T[np.triu_indices(n, 1)])[0, 1]) < 5 / np.sqrt(n**2 / 2)
