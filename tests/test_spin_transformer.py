"""The module against printed numbers, unrolled gradients, independent smaller models, and the causality of its mask."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chapters.spin_transformers import printed
from spinbook import sphere
from spinbook.spin_transformer import (
    Relax,
    SpinTransformer,
    SpinTransformerModule,
    Unroll,
    naive,
    sphere_per_head,
    tap,
)
from spinbook.vector import fluctuations, mean_field

PRINTED = printed.spin_transformer()


def inputs(num_sites=6, dim=16, seed=1):
    return jax.random.normal(jax.random.key(seed), (num_sites, dim))


def module(dim=16, num_heads=1, **options):
    return SpinTransformerModule(dim, num_heads, key=jax.random.key(0), **options)


def deviation(ours, name):
    return np.abs(printed.corner(ours) - PRINTED[name].astype(float)).max()


def test_the_printed_forward_pass_and_gradient():
    # The source's random numbers are those of JAX before 2025.
    with jax.threefry_partitionable(False):
        x_key, module_key = jax.random.split(jax.random.PRNGKey(2666))
        x = jax.random.normal(x_key, (512, 512), jnp.float32)
        # The printed numbers hold the source's index of gamma.
        theory = partial(tap, covariances=fluctuations.of_receivers)
        single = SpinTransformerModule(512, 1, beta=2.0, key=module_key, dtype=jnp.float32, theory=theory)

    @eqx.filter_jit
    @partial(eqx.filter_grad, has_aux=True)
    def slope(module):
        out = module(x)
        return jnp.mean(out), out

    gradient, forward = slope(single)
    # Numbers up to 1.2 in single precision, from a solver that stopped at 1e-3.
    assert deviation(forward, "module") < 1e-5
    assert deviation(gradient.to_queries_keys.weight, "gradient") < 1e-8


@pytest.mark.parametrize("num_heads", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("theory", [naive, tap])
def test_the_module_is_the_steady_state_of_a_vector_spin_model(num_heads, theory):
    x, m = inputs(), module(16, num_heads, theory=theory)
    step = mean_field.naive_step if theory is naive else mean_field.flat_tap_step
    fields = sphere.radius(16) * x / jnp.linalg.norm(x, axis=1, keepdims=True)
    solution = mean_field.steady_state(m.couplings(x), fields, beta=1.0, step=step)
    # The tolerance of Relax is eps^0.7 in the fields.
    np.testing.assert_allclose(m(x), solution.value, atol=1e-9)


def test_couplings_are_the_softmax_of_queries_and_keys_of_scaled_inputs():
    x, m = inputs(), module(16, 2)
    scaled = np.asarray(sphere.radius(16) * x / jnp.linalg.norm(x, axis=1, keepdims=True))
    q, k = np.split(scaled @ np.asarray(m.to_queries_keys.weight).T, 2, axis=1)
    for h in range(2):
        logits = q[:, 8 * h : 8 * h + 8] @ k[:, 8 * h : 8 * h + 8].T
        np.testing.assert_allclose(m.couplings(x)[h], np.exp(logits) / np.exp(logits).sum(1, keepdims=True), rtol=1e-12)


def test_a_sphere_for_each_head_is_as_many_smaller_models():
    x, m = inputs(), module(16, 2, spheres=sphere_per_head)
    J, out = m.couplings(x), m(x)
    for h, part in enumerate((slice(0, 8), slice(8, 16))):
        fields = sphere.radius(8) * x[:, part] / jnp.linalg.norm(x[:, part], axis=1, keepdims=True)
        np.testing.assert_allclose(out[:, part], mean_field.steady_state(J[h], fields, beta=1.0).value, atol=1e-9)


@pytest.mark.parametrize(
    "dynamics", [pytest.param(Relax(), marks=pytest.mark.slow, id="steady"), pytest.param(Unroll(3), id="three steps")]
)
def test_a_causal_mask_stays_causal_through_the_relaxation(dynamics):
    mask = np.tril(np.ones((6, 6), bool))
    m = module(16, 2, dynamics=dynamics)
    response = jnp.sum(jnp.abs(jax.jit(jax.jacrev(lambda x: m(x, mask)))(inputs())), axis=(1, 3))
    np.testing.assert_array_equal(np.asarray(response)[np.triu_indices(6, 1)], 0)
    assert np.all(np.asarray(response)[np.tril_indices(6)] > 1e-6)


def test_a_site_that_may_attend_to_nobody_is_alone_with_its_field():
    mask = np.ones((6, 6), bool)
    mask[2] = False
    x = inputs()
    field = sphere.radius(16) * x[2] / jnp.linalg.norm(x[2])
    np.testing.assert_allclose(module()(x, mask)[2], sphere.magnetization_large_d(field, beta=1.0), atol=1e-10)


def test_implicit_gradients_are_those_of_many_steps():
    x, beta = inputs(), jnp.asarray(1.1)

    def loss(m, x):
        return jnp.sum(m(x) ** 3)

    # Of the naive theory they are the authors' (test_spin_transformer_options).
    gradient = eqx.filter_jit(eqx.filter_grad(lambda a: loss(*a)))
    implicit = gradient((module(16, 2, beta=beta), x))
    many = gradient((module(16, 2, dynamics=Unroll(80), beta=beta), x))
    assert abs(float(implicit[0].beta)) > 1e-3
    for ours, truth in zip(jax.tree.leaves(implicit), jax.tree.leaves(many), strict=True):
        # Both residuals are eps^0.7 = 1e-11, times the slope of the loss and the amplification of the solution.
        np.testing.assert_allclose(ours, truth, atol=1e-8 * float(jnp.abs(truth).max()))


def test_evidence_says_how_good_a_state_is():
    solution = module().steady_state(inputs())
    assert bool(solution.converged)
    assert float(solution.residual) < 1e-10
    assert not bool(module(dynamics=Unroll(2)).steady_state(inputs()).converged)


@pytest.mark.documented_nan
def test_a_module_without_a_steady_state_says_nan():
    assert np.isnan(module(dynamics=Relax(max_steps=1))(inputs())).all()


def test_a_stack_is_its_modules_in_a_row():
    stack = SpinTransformer(3, 16, 2, key=jax.random.key(0))
    x = y = inputs()
    evidence = stack.steady_state(x)
    assert bool(evidence.converged.all())
    arrays, rest = eqx.partition(stack.modules, eqx.is_array)
    for layer in range(3):
        y = eqx.combine(jax.tree.map(lambda a, layer=layer: a[layer], arrays), rest)(y)
        np.testing.assert_allclose(evidence.value[layer], y, atol=1e-9)
    np.testing.assert_allclose(stack(x), y, atol=1e-9)
    assert len({float(w[0, 0]) for w in arrays.to_queries_keys.weight}) == 3


@pytest.mark.documented_nan
def test_a_stack_says_which_module_failed():
    stack = SpinTransformer(3, 16, 2, key=jax.random.key(0), beta=jnp.asarray(1.0))
    # So cold that the second module finds no steady state.
    stack = eqx.tree_at(lambda s: s.modules.beta, stack, jnp.array([1.0, 50.0, 1.0]))
    x = inputs()
    found = stack.steady_state(x)
    assert found.value.shape == (3, 6, 16)
    assert found.converged.tolist() == [True, False, True]
    assert int(jnp.argmin(found.converged)) == 1
    assert float(found.residual[1]) > 1e-6 > float(found.residual[0])
    assert np.isfinite(found.value).all()
    assert np.isnan(stack(x)).all()


def padded(mask_of):
    x = np.asarray(inputs()).copy()
    x[4:] = 0
    mask = np.zeros((6, 6), bool)
    mask[:4, :4] = mask_of
    return x, mask


@pytest.mark.parametrize("theory", [naive, pytest.param(tap, marks=pytest.mark.slow)])
def test_masked_padding_reaches_nothing_and_its_gradient_is_zero(theory):
    x, mask = padded(np.tril(np.ones((4, 4), bool)))

    @eqx.filter_jit
    def evaluated(model, x, mask):
        def loss(inputs):
            model, x = inputs
            out = model(x, mask)
            # The slope is one at zero, so that the padding counts.
            return jnp.sum(out + out**3), out

        (_, out), (weights, gradient) = eqx.filter_value_and_grad(loss, has_aux=True)((model, x))
        return out, gradient, weights

    # The second module hears what the first made of the padding.
    model = SpinTransformer(2, 16, 2, key=jax.random.key(0), theory=theory)
    out, gradient, weights = evaluated(model, jnp.asarray(x), mask)
    expected = evaluated(model, jnp.asarray(x[:4]), mask[:4, :4])
    np.testing.assert_array_equal(out[4:], 0)
    np.testing.assert_array_equal(gradient[4:], 0)
    ours, truth = jax.tree.leaves((out[:4], gradient[:4], weights)), jax.tree.leaves(expected)
    for part, exact in zip(ours, truth, strict=True):
        np.testing.assert_allclose(part, exact, atol=1e-8)
    # Where values are known they are not refused.
    np.testing.assert_array_equal(module(16, 2).couplings(x, mask)[:, 4:], 0)


def test_what_is_masked_of_a_context_of_any_length_reaches_nothing():
    x, context = np.asarray(inputs()).copy(), np.asarray(inputs(5, seed=3)).copy()
    # Of the last two sites, which nobody hears, one is padding.
    x[5], context[3] = 0, 0
    mask = np.ones((6, 5), bool)
    mask[5], mask[:, 3:] = False, False
    m = module(16, 2, theory=naive)
    out = m(x, mask, context)
    expected = eqx.filter_jit(m)(x[:5], None, context[:3])
    np.testing.assert_allclose(out[:5], expected, atol=1e-9)
    np.testing.assert_array_equal(out[5], 0)


@pytest.mark.documented_nan
def test_rows_of_zeros_that_are_not_padding_are_nan_where_values_are_hidden():
    x, mask = padded(True)
    mask[0, 4] = True
    assert np.isnan(jax.jit(lambda x: module()(x, mask))(x)).any()
    assert np.isnan(jax.jit(lambda x: module()(x))(x)).any()
