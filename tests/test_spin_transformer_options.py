"""Starts, states, inputs, rotary positions, feed-forward fields and readouts of the module, and the authors' numbers.

Against a block written out here in NumPy, recorded numbers of the authors' module, the functions of ``spinbook.vector``
and ``spinbook.entropy_production``, and symmetries.
"""

import pickle
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from chapters.nonequilibrium_dynamics import neqnn
from spinbook import sphere
from spinbook.spin_transformer import (
    AtRest,
    Learned,
    Relax,
    Rotary,
    SpinTransformerModule,
    Unroll,
    as_fields,
    as_magnetizations,
    naive,
    tap,
    unit_length,
)
from spinbook.vector import mean_field

MAPS = (unit_length, Rotary())
CAUSAL = np.tril(np.ones((6, 6), bool))


def inputs(num_sites=6, dim=16, seed=1):
    return 0.3 * jax.random.normal(jax.random.key(seed), (num_sites, dim))


def module(dim=16, num_heads=2, **options):
    options = {"theory": naive, "dynamics": Unroll(2)} | options
    return SpinTransformerModule(dim, num_heads, key=jax.random.key(0), **options)


FULL = {"inputs": as_fields, "start": Learned, "feed_forward": 24, "query_key_maps": MAPS, "sharpness": 2.0}


@pytest.mark.parametrize("case", neqnn.cases())
def test_numbers_of_the_authors_module(case):
    m, x, mask, state, updates, theirs, production, slope = neqnn.load(case)

    def loss(x):
        out = m(x, mask, state=state)
        return jnp.sum(out**3), out

    later = m if updates is None else m.under(Unroll(updates + 1))

    @jax.jit
    def found(x):
        gradient, out = jax.grad(loss, has_aux=True)(x)
        sigmas = [made.readout(x, mask, state=state).entropy_production for made in (later, m)]
        return out, gradient, *sigmas

    out, gradient, sigma, same = found(x)
    # Theirs are recorded to 1e-13 and 1e-12, the fixed point to 1e-13 in the fields; sums of some hundred terms.
    np.testing.assert_allclose(out, theirs, atol=2e-12)
    # Their linear system for the gradient of a fixed point is solved to 1e-7 of its right side.
    np.testing.assert_allclose(gradient, slope, atol=3e-6 if updates is None else 2e-11)
    # What they call the entropy production after K updates is that of the update K + 1.
    np.testing.assert_allclose(sigma, production, rtol=1e-11)
    if updates is not None and updates < 8:
        assert float(jnp.max(jnp.abs(same / production - 1))) > 1e-4


@pytest.mark.parametrize("response", [sphere.large_d, sphere.exact])
def test_updates_are_those_of_the_vector_spin_model(response):
    x, m = inputs(), module(response=response, beta=1.3, dynamics=Unroll(3), **FULL)
    theta = m.start(m.fields(x), sphere.radius(16) * x / jnp.linalg.norm(x, axis=1, keepdims=True))
    step = partial(mean_field.naive_step, response=response)
    start = response(theta, jnp.asarray(1.3))
    path = mean_field.simulate(start, m.couplings(x, CAUSAL), m.fields(x), beta=1.3, steps=3, step=step)
    np.testing.assert_allclose(m(x, CAUSAL), path[-1], atol=1e-12)


@pytest.mark.slow
def test_tap_and_the_exact_response_go_with_all_options():
    x = inputs()
    m = module(**FULL | {"theory": tap, "response": sphere.exact, "dynamics": Relax()})
    found = m.readout(x, CAUSAL)
    assert bool(found.converged)
    again = mean_field.flat_tap_step(
        found.magnetizations, m.couplings(x, CAUSAL), m.fields(x), beta=1.0, response=sphere.exact
    )
    np.testing.assert_allclose(again, found.magnetizations, atol=1e-9)


def test_spins_of_a_context_answer_to_their_own_fields_feed_forward_included():
    x, context = inputs(), inputs(4, seed=3)
    m = module(beta=1.2, **FULL)
    means = sphere.magnetization_large_d(m.fields(context), beta=1.2).reshape(4, 2, 8)
    heard = jnp.einsum("hij,jhd->ihd", m.couplings(x, context=context), means).reshape(6, 16)
    expected = sphere.magnetization_large_d(m.fields(x) + heard, beta=1.2)
    np.testing.assert_allclose(m(x, context=context), expected, atol=1e-13)


def test_sharpness_multiplies_the_logits_and_is_trained_as_an_array():
    x = inputs()
    J = module(**FULL | {"sharpness": 1.0}).couplings(x)
    sharper = module(**FULL | {"sharpness": jnp.asarray(3.0)})
    np.testing.assert_allclose(sharper.couplings(x), J**3 / jnp.sum(J**3, axis=-1, keepdims=True), rtol=1e-11)
    gradient = eqx.filter_jit(eqx.filter_grad(lambda m: jnp.sum(m(x) ** 2)))(sharper)
    up, down = (
        float(jnp.sum(eqx.tree_at(lambda m: m.sharpness, sharper, jnp.asarray(s))(x) ** 2))
        for s in (3 + 1e-5, 3 - 1e-5)
    )
    np.testing.assert_allclose(gradient.sharpness, (up - down) / 2e-5, rtol=1e-5)


@pytest.mark.documented_nan
def test_an_idle_module_hands_magnetizations_on():
    m = module(inputs=as_magnetizations, start=AtRest, dynamics=Unroll(1), response=sphere.exact, beta=1.7)
    x = inputs()
    np.testing.assert_allclose(m(x), x, atol=1e-13)
    (back,) = jax.jit(lambda x: jax.vjp(m, x)[1](jnp.ones_like(x)))(x)
    np.testing.assert_allclose(back, jnp.ones_like(x), atol=1e-12)
    # Nothing has such a mean, and of such a field no square is known.
    assert np.isnan(m(10 * x)).any()
    assert np.isnan(module(inputs=as_fields)(1e200 * x)).any()


def test_nothing_is_irreversible_with_symmetric_couplings():
    m = module(**FULL)
    flat = eqx.tree_at(lambda m: m.to_queries_keys.weight, m, jnp.zeros((32, 16)))
    x = inputs()
    assert abs(float(flat.readout(x).entropy_production[0])) < 1e-15 < float(m.readout(x).entropy_production[0])
    # A mask that lets only the past be heard is a direction in time.
    assert float(flat.readout(x, CAUSAL).entropy_production[0]) > 1e-3


def test_padding_is_left_out_with_all_options():
    x, mask = np.asarray(inputs()).copy(), CAUSAL.copy()
    x[4:], mask[4:] = 0, False

    @eqx.filter_jit
    def evaluated(m, x, mask):
        def loss(m):
            out = m(x, mask)
            return jnp.sum(out + out**2), out

        return eqx.filter_grad(loss, has_aux=True)(m)

    for kind in (as_fields, as_magnetizations):
        m = module(**FULL | {"inputs": kind})
        ours, out = evaluated(m, jnp.asarray(x), mask)
        theirs, expected = evaluated(m, jnp.asarray(x[:4]), mask[:4, :4])
        np.testing.assert_array_equal(out[4:], 0)
        np.testing.assert_allclose(out[:4], expected, atol=1e-13)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
        # Where values are known, vectors of padding are zero and not refused.
        np.testing.assert_array_equal(m.couplings(x, mask)[:, 4:], 0)


def test_a_naive_steady_state_is_in_the_field_of_its_input_its_neighbours_and_its_network():
    heads, x = 4, inputs()
    made = module(num_heads=heads, dynamics=Relax(), feed_forward=24)
    m, W = np.asarray(made(x)), np.asarray(made.to_queries_keys.weight)
    a = sphere.radius(16) * np.asarray(x) / np.linalg.norm(x, axis=1, keepdims=True)
    queries, keys = (np.split(a @ w.T, heads, axis=1) for w in np.split(W, 2))
    J = [scipy.special.softmax(q @ k.T, axis=1) for q, k in zip(queries, keys, strict=True)]
    mixed = np.concatenate([j @ part for j, part in zip(J, np.split(m, heads, axis=1), strict=True)], axis=1)
    inner = a @ np.asarray(made.memory.up).T
    network = inner * scipy.stats.norm.cdf(inner) @ np.asarray(made.memory.down).T
    np.testing.assert_allclose(sphere.magnetization_large_d(a + mixed + network, beta=1.0), m, atol=2e-5)
    assert min(np.linalg.norm(part) for part in (mixed, network)) > 0.1


@pytest.mark.parametrize("size", [1e-25, 1e-3, 1e20])
def test_unit_length_is_one_however_long_the_vector(size):
    a = jnp.asarray([3.0, 0.0, -4.0], jnp.float32) * jnp.float32(size)
    np.testing.assert_allclose(unit_length(a), [0.6, 0, -0.8], rtol=1e-6)
    # The derivative takes away what is along the vector, and divides by its length.
    slope = jax.jacobian(unit_length)(a) * jnp.float32(5 * size)
    np.testing.assert_allclose(slope, np.eye(3) - np.outer([0.6, 0, -0.8], [0.6, 0, -0.8]), atol=1e-6)


def test_a_module_can_be_sent_to_another_process():
    made = SpinTransformerModule(8, 2, key=jax.random.key(0), query_key_maps=MAPS)
    x = 0.1 * jax.random.normal(jax.random.key(1), (5, 8))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made))(x), made(x))
