"""Exponents of maps whose exponents are published or known in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook.lyapunov import exponents
from spinbook.self_attention import couplings, lyapunov_exponents, mean_field, paper_network, simulate


def henon(x, a):
    return jnp.stack([1 - a * x[0] ** 2 + x[1], 0.3 * x[0]])


def test_henon_has_its_published_exponents():
    found = exponents(henon, [0.1, 0.1], 1.4, steps=60_000, transient=1000)
    # Sprott (2003): .41922 and -1.62319.
    assert np.all(np.abs(found.exponents - [0.41922, -1.62319]) < 4 * found.standard_errors)
    assert found.standard_errors.max() < 0.003
    # The determinant of the derivative is -0.3 everywhere.
    assert found.exponents.sum() == pytest.approx(np.log(0.3), abs=1e-12)


def test_of_a_linear_map_they_are_the_logarithms_of_its_eigenvalues():
    A = jnp.asarray([[0.9, 5.0, 0.0], [0.0, 0.5, 2.0], [0.0, 0.0, 1.5]])
    found = exponents(lambda x, _: A @ x, [1e-300, 0.0, 0.0], steps=400, transient=200)
    np.testing.assert_allclose(found.exponents, np.log([1.5, 0.9, 0.5]), atol=1e-9)


def test_a_batch_is_its_orbits():
    starts, parameters = np.array([[0.1, 0.1], [0.2, 0.0]])[:, None], np.array([0.3, 1.0, 1.2])
    options = {"steps": 200, "transient": 100}
    together = exponents(henon, starts, parameters, **options)
    assert together.exponents.shape == (2, 3, 2)
    assert together.blocks.shape == (2, 3, 20, 2)
    for i in range(2):
        for j in range(3):
            alone = exponents(henon, starts[i, 0], parameters[j], **options)
            np.testing.assert_allclose(together.exponents[i, j], alone.exponents, rtol=1e-9)
            np.testing.assert_allclose(together.end[i, j], alone.end, rtol=1e-9)


def test_parameters_may_be_named():
    def general(x, p):
        return jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], p["b"] * x[0]])

    found = exponents(general, [0.1, 0.1], {"a": 1.4, "b": [0.3, 0.2]}, steps=100, transient=0)
    assert found.exponents.shape == (2, 2)
    assert exponents(henon, [0.1, 0.1], 1.4, steps=100, transient=0).exponents[0] == pytest.approx(
        found.exponents[0, 0], rel=1e-9
    )


def test_the_map_of_the_attention_layer_agrees_with_its_own_routine():
    network = paper_network()
    window = simulate(network, beta=1.28, steps=1, transient=2000).window
    c = couplings(network, beta=1.28)
    positions = network.period

    def step(x, _):
        # The position, which only counts, comes along as a number that no tangent can move.
        position = jnp.round(jax.lax.stop_gradient(x[-1])).astype(int)
        before = mean_field.Window(x[:-1].reshape(4, 3), jnp.asarray(4), position)
        after = mean_field.step(c, before)[0]
        return jnp.append(after.attention.ravel(), jax.lax.stop_gradient((x[-1] + 1) % positions))

    start = np.append(window.attention.ravel(), float(window.position))
    options = {"steps": 2000, "num_exponents": 3}
    found = exponents(step, start, transient=1000, **options)
    own = lyapunov_exponents(network, beta=1.28, start=window, transient=1000, **options)
    assert np.all(np.abs(found.exponents - own.exponents) < 4 * np.hypot(found.standard_errors, own.standard_errors))


@pytest.mark.documented_nan
def test_an_orbit_that_escapes_has_no_exponents_and_the_others_keep_theirs():
    found = exponents(henon, [0.1, 0.1], [1.2, 3.0], steps=100, transient=50)
    assert np.isfinite(found.exponents[0]).all()
    assert np.isnan(found.exponents[1]).all()
