"""The parts of a module's output add up to it, and the third part is the Onsager field of the theory that it runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chapters.collectives.response import block
from spinbook import sphere, spin_transformer
from spinbook.spin_transformer import Spins, SpinTransformerModule, Unroll, naive, sphere_per_head, tap

X = np.random.default_rng(0).normal(size=(5, 12))


def _module(heads, theory, **options):
    return SpinTransformerModule(
        12, heads, beta=1.5, key=jax.random.key(0), dtype=jnp.float64, theory=theory, **options
    )


def test_the_third_part_is_the_difference_of_the_second_and_the_first_order():
    heads = 3
    module = _module(heads, tap)
    parts = block.of_module(module, X)
    np.testing.assert_allclose(parts.output, module(X), atol=1e-12)
    theta = parts.output / parts.gain
    by_heads = jnp.moveaxis(theta.reshape(5, heads, -1), 1, 0)
    inputs = jnp.moveaxis(parts.residual.reshape(5, heads, -1), 1, 0)
    spins = Spins(inputs, module.couplings(X), None, sphere.large_d, jnp.asarray(1.5))
    response, beta = spins.response, spins.beta

    @jax.jit
    def second_order(fields, inputs, couplings):
        known = Spins(inputs, couplings, None, response, beta)
        return tap(fields, known) - naive(fields, known)

    difference = second_order(by_heads, spins.inputs, spins.couplings)
    # The module settles to eps^0.7.
    np.testing.assert_allclose(parts.channel_mixing, jnp.moveaxis(difference, 0, 1).reshape(5, 12), atol=1e-9)
    assert float(jnp.linalg.norm(parts.channel_mixing)) > 0.01


def test_the_naive_theory_has_no_reaction_in_its_steady_state():
    parts = block.of_module(_module(2, naive), X)
    assert float(jnp.abs(parts.channel_mixing).max()) < 1e-9
    np.testing.assert_allclose(jnp.linalg.norm(parts.residual, axis=1), sphere.radius(12), rtol=1e-13)


def test_what_has_not_settled_is_left_in_the_third_part():
    far = block.of_module(_module(1, naive, dynamics=Unroll(1)), X)
    assert float(jnp.abs(far.channel_mixing).max()) > 1e-3


def test_masked_sites_bring_nothing():
    mask = np.eye(5, dtype=bool)
    parts = block.of_module(_module(2, naive), X, mask)
    np.testing.assert_allclose(parts.token_mixing, parts.output, atol=1e-12)


def test_several_spins_for_a_site_are_refused():
    with pytest.raises(ValueError, match="module: expected one spin for each site"):
        block.of_module(_module(3, naive, spheres=sphere_per_head), X)
    assert spin_transformer.one_sphere(3) == 1
