"""Inputs that once hung, came out as NaN, or were taken for others: each must now be right, or refused in words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from spinbook import sphere
from spinbook.free_energy import sampling


@pytest.mark.parametrize("field", [np.full(6, 1e20, "f4"), np.full(6, 3e38, "f4")])
def test_a_spin_in_a_field_beyond_all_squares_points_along_it(field):
    s = np.asarray(sphere.sample(jax.random.key(0), field, beta=1.0), float)
    assert s == pytest.approx(sphere.radius(6) / np.sqrt(6) * np.ones(6), abs=1e-6)


def test_strong_fields_leave_the_width_of_their_cone():
    # k (1 - cos) of the angle to a strong field is a gamma variable of shape (D - 1) / 2, at any strength.
    strength, dim = 1e12, 5
    h = jnp.zeros((4000, dim)).at[:, 0].set(strength)
    s = sphere.sample(jax.random.key(0), h, beta=1.0) / sphere.radius(dim)
    across = jnp.sum(s[:, 1:] ** 2, axis=-1) / 2 * strength * sphere.radius(dim)
    shape = (dim - 1) / 2
    assert abs(float(across.mean()) - shape) < 4 * (shape / 4000) ** 0.5


def test_a_strong_field_holds_the_unit_spins_of_the_saddle_point_too():
    generator = torch.Generator().manual_seed(0)
    s = sampling.spin_given_field(torch.full((4000, 5), 1e300, dtype=torch.float64), generator=generator)
    assert torch.allclose(s, torch.full_like(s, 5**-0.5))
    h = torch.zeros(4000, 5, dtype=torch.float64)
    h[:, 0] = 1e12
    across = (sampling.spin_given_field(h, generator=generator)[:, 1:] ** 2).sum(-1) / 2 * 1e12
    assert abs(float(across.mean()) - 2) < 4 * (2 / 4000) ** 0.5


@pytest.mark.documented_nan
def test_what_is_not_a_number_ends_a_sampler_under_a_trace():
    fields = jnp.array([[1.0, 0, 0], [jnp.nan, 0, 0]])
    s = jax.jit(lambda h: sphere.sample(jax.random.key(0), h, beta=1.0))(fields)
    assert np.isfinite(s[0]).all()
    assert np.isnan(s[1]).all()
