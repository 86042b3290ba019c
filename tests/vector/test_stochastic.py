"""Sampling of vector spins against the theory of independent ones, identities of the steady state, reproducibility."""

import jax
import jax.numpy as jnp
import numpy as np

from spinbook import sphere
from spinbook.vector import stochastic


def start(replicas, num_sites, dim):
    return jnp.zeros((replicas, num_sites, dim)).at[..., 0].set(sphere.radius(dim))


def keep(spins):
    return spins


def test_a_step_has_the_mean_of_the_field_that_the_spins_before_make(system):
    J, x, _ = system(3, 6, heads=2)
    count = 40_000
    old = start(count, 3, 6)
    new = np.asarray(stochastic.step(jax.random.key(0), old, J, x, beta=1.3))
    np.testing.assert_allclose(np.linalg.norm(new, axis=-1), sphere.radius(6), rtol=1e-12)
    field = x.copy()
    # Only the first component of the spins before is not zero, and it belongs to the first head.
    field[:, 0] += J[0].sum(axis=1) * sphere.radius(6)
    error = new.std(axis=0) / np.sqrt(count)
    assert np.all(np.abs(new.mean(axis=0) - sphere.magnetization(field, beta=1.3)) < 5 * error)


def test_a_spin_and_its_exact_response_have_the_same_correlation_with_the_state_before(system):
    # For any function g of the state before, E[s_i . g] = E[phi(h_i) . g].
    J, x, _ = system(4, 6, strength=0.8)
    options = {"beta": 1.0, "steps": 30, "transient": 10, "correlations": True, "observable": keep}
    run = stochastic.simulate(jax.random.key(5), start(400, 4, 6), J, x, **options)
    before, after = np.asarray(run.observed[10:-1]), np.asarray(run.observed[11:])
    mean = np.asarray(sphere.magnetization(x + np.einsum("ij,trjd->trid", J, before), beta=1.0))
    gaps = np.einsum("trid,trld->til", after - mean, before) / 400
    assert np.all(np.abs(gaps.mean(0)) < 6 * gaps.std(0) / np.sqrt(len(gaps)))
    direct = np.einsum("trid,trld->il", after, before) / (400 * len(after))
    m = np.asarray(run.magnetizations)
    np.testing.assert_allclose(run.delayed_correlations, direct - m @ m.T, atol=0.1)


def test_a_simulation_is_repeated_stepping_and_a_key_is_a_run(system):
    J, x, _ = system(3, 5)
    key, s = jax.random.key(9), start(4, 3, 5)
    run = stochastic.simulate(key, s, J, x, beta=1.0, steps=3, observable=keep)
    for t, state in enumerate(np.asarray(run.observed)):
        s = stochastic.step(jax.random.fold_in(key, t), s, J, x, beta=1.0)
        np.testing.assert_allclose(s, state, atol=1e-12)
    np.testing.assert_allclose(run.magnetizations, np.asarray(run.observed).mean((0, 1)), atol=1e-12)
    other = stochastic.simulate(jax.random.key(8), s, J, x, beta=1.0, steps=3)
    assert np.abs(other.spins - run.spins).max() > 0.1


def test_single_precision_stays_single_and_on_the_sphere():
    s = start(3, 2, 8).astype(jnp.float32)
    run = stochastic.simulate(
        jax.random.key(0), s, np.eye(2, dtype=np.float32), np.ones((2, 8), np.float32), beta=1.0, steps=50
    )
    assert run.spins.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(run.spins, axis=-1), sphere.radius(8), rtol=1e-5)
