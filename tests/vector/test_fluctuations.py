"""What fluctuations do to one spin, against the Jacobian of its response found by automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook import sphere
from spinbook.vector import fluctuations

BETA = jnp.asarray(1.3)


@pytest.mark.parametrize("response", [sphere.large_d, sphere.exact], ids=["large D", "exact"])
def test_the_onsager_field_moves_the_mean_by_half_of_what_the_fluctuations_do(response):
    rng = np.random.default_rng(0)
    heads, sites, dim = 2, 3, 4
    theta, product = jnp.asarray(rng.normal(size=(2, heads, sites, dim)))
    moments = fluctuations.FieldMoments(
        product, jnp.asarray(rng.uniform(1, 2, sites)), jnp.sum(theta * product, (0, 2))
    )
    gains = response.gains(theta, BETA, axes=fluctuations.COMPONENTS)
    change = fluctuations.magnetization_change(theta, gains, moments)
    found = fluctuations.onsager_field(theta, gains, moments)
    jacobian = jax.jit(jax.jacfwd(lambda h: response(h, BETA)))
    for i in range(sites):
        # All heads of a spin are one vector.
        moved = jacobian(theta[:, i].ravel()) @ found[:, i].ravel()
        np.testing.assert_allclose(moved, change[:, i].ravel() / 2, rtol=1e-11, atol=1e-13)
