"""The phase diagram of kinetic vector spins against large systems: equations iterated to rest, and sampling."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook import sphere
from spinbook.vector import mean_field, phases, stochastic

N, D, BETA = 300, 128, 6.0
LAWS = {
    "spread": (mean_field.spread_step, phases.squared_order, phases.border),
    "naive": (mean_field.naive_step, *(partial(law, naive=True) for law in (phases.squared_order, phases.border))),
}


def squared(spins):
    return jnp.sum(jnp.mean(spins, axis=-2) ** 2, axis=-1) / (spins.shape[-1] / 2 - 1)


def system(g, x, seed=0):
    """Couplings of mean 1/N whose rows and columns sum to one, and inputs of length x R that sum to zero."""
    rng = np.random.default_rng(seed)
    z, u = rng.normal(size=(N, N)), rng.normal(size=(N, D))
    z -= z.mean(axis=0)
    z -= z.mean(axis=1, keepdims=True)
    for _ in range(100):
        u -= u.mean(axis=0)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
    return 1 / N + g * z / np.sqrt(N), x * sphere.radius(D) * u


@pytest.mark.parametrize("law", LAWS)
def test_the_equations_at_rest_have_the_order_of_the_formula(law):
    step, formula, _ = LAWS[law]
    start = np.zeros((N, D))
    start[:, 0] = 0.9 * sphere.radius(D)
    for g, x in ((0.0, 0.5), (0.5, 0.2), (0.5, 0.5)):
        J, inputs = system(g, x)
        path = mean_field.simulate(start, J, inputs, beta=BETA, steps=100, step=step, observable=squared)
        expected = formula(BETA, coupling_mean=1.0, coupling_std=g, field_length=x)
        other = LAWS["naive" if law == "spread" else "spread"][1]
        assert abs(path[-1] - expected) < 0.02
        if g:
            assert abs(path[-1] - other(BETA, coupling_mean=1.0, coupling_std=g, field_length=x)) > 0.05


def test_sampled_spins_have_the_order_of_the_formula():
    J, inputs = system(0.5, 0.3)
    start = np.zeros((1, N, D), np.float32)
    start[..., 0] = sphere.radius(D)
    single = (start, J.astype(np.float32), inputs.astype(np.float32))
    options = {"beta": np.float32(BETA), "steps": 120, "observable": squared}
    order = float(np.mean(stochastic.simulate(jax.random.key(1), *single, **options).observed[60:]))
    assert abs(order - phases.squared_order(BETA, coupling_mean=1.0, coupling_std=0.5, field_length=0.3)) < 0.03


@pytest.mark.parametrize("naive", [False, True])
@pytest.mark.parametrize(("J", "g", "x"), [(1.0, 0.5, 0.2), (1.0, 0.3, 0.4), (2.0, 1.1, 0.7)])
def test_the_formula_solves_the_balance_of_gain_and_field(J, g, x, naive):
    order = float(phases.squared_order(BETA, coupling_mean=J, coupling_std=g, field_length=x, naive=naive))
    assert 0 < order < 1
    # f J = 1 with f = beta / (1 + sqrt(1 + beta^2 S)); a neighbour has the length R, or that of its mean, f sqrt(S) R.
    S = J**2 - 2 * J / BETA
    length = S / J**2 if naive else 1.0
    assert x**2 + J**2 * order + g**2 * (length - order) == pytest.approx(S, rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_order_ends_at_the_border(law):
    _, formula, border = LAWS[law]
    for J, g in ((1.0, 0.3), (2.0, 1.1)):
        at = border(BETA, coupling_mean=J, coupling_std=g)
        inside, outside = (
            formula(BETA, coupling_mean=J, coupling_std=g, field_length=share * at) for share in (0.999, 1.001)
        )
        assert inside > 0 == outside


def test_rows_that_sum_to_one_leave_no_order_at_inputs_of_the_full_length():
    g = np.linspace(0, 2, 9)
    assert not phases.squared_order(1e6, coupling_mean=1.0, coupling_std=g, field_length=1.0).any()
    assert np.isnan(phases.border(2.0, coupling_mean=1.0, coupling_std=g)).all()
