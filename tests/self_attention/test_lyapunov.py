"""Exponents against eigenvalues of closed orbits, and against automatic differentiation of the definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook import self_attention as sa
from spinbook.self_attention.window import Window


@jax.jit
def jacobian_and_step(c, window):
    def attention(A):
        after = sa.mean_field.step(c, window._replace(attention=A))[0]
        return after.attention, after

    J, after = jax.jacfwd(attention, has_aux=True)(window.attention)
    size = window.attention.size
    return J.reshape(size, size), after


def jacobians(network, beta, window, steps):
    """Of successive steps, by automatic differentiation of the definition."""
    c, window = sa.couplings(network, beta=beta), Window(*map(jnp.asarray, window))
    found = []
    for _ in range(steps):
        J, window = jacobian_and_step(c, window)
        found.append(np.asarray(J))
    return np.array(found)


@pytest.mark.parametrize(("beta", "period"), [(0.5, 4), (1.27, 28)])
def test_on_a_closed_orbit_the_exponents_are_logarithms_of_eigenvalues(paper, beta, period):
    end = sa.simulate(paper, beta=beta, steps=1, transient=20_000).window
    product = np.linalg.multi_dot(jacobians(paper, beta, end, period)[::-1])
    multipliers = np.sort(np.abs(np.linalg.eigvals(product)))[::-1]
    steps = 28_000
    result = sa.lyapunov_exponents(paper, beta=beta, steps=steps, transient=2000, num_exponents=6, start=end)
    # Complex pairs turn, so that the sums over T steps differ from the limits by the log of a bounded factor over T.
    # The sixth multiplier of the product is at least 1e-7 of the first, so that rounding leaves it 8 digits.
    expected = np.log(multipliers[:6]) / period
    assert np.abs(result.exponents - expected).max() < 10 / steps
    assert np.all(np.diff(result.exponents) <= 0)


@pytest.mark.parametrize(("name", "beta"), [("paper", 1.26), ("paper", 1.4), ("other", 2.0)])
def test_the_spectrum_is_that_of_the_differentiated_definition(name, beta, request):
    network = request.getfixturevalue(name)
    size = network.context * network.num_features
    steps, transient, E = 400, 40, 3
    begun = sa.simulate(network, beta=beta, steps=1, transient=1000).window
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(size, E)))[0]
    logs = np.zeros(E)
    for t, J in enumerate(jacobians(network, beta, begun, transient + steps)):
        Q, R = np.linalg.qr(J @ Q)
        logs += np.log(np.abs(np.diag(R))) * (t >= transient)
    result = sa.lyapunov_exponents(
        network, beta=beta, steps=steps, transient=transient, num_exponents=E, start=begun, num_blocks=4
    )
    # Other tangents to begin with and another norm: the logarithm of a bounded factor, over the number of steps.
    assert np.abs(result.exponents - np.sort(logs / steps)[::-1]).max() < 10 / steps
