"""The random numbers of the source's figures against what its program prints."""

import jax.numpy as jnp
import numpy as np
import pytest

from chapters.kinetic_ising.published import published_starts, published_system


def test_the_published_system_is_that_of_the_authors_program():
    # Numbers of the source's notebook, run with the random numbers of its time; it folds beta = 1.1108 into them.
    fields, couplings = (1.1108 * array for array in published_system())
    expected = [-0.33039310574531555, -0.46051931381225586, 0.060353994369506836]
    np.testing.assert_allclose(fields[:3], expected, rtol=1e-6)
    corner = [[0.003248627530410886, 0.0024632057175040245], [0.0067295897752046585, 0.00884187687188387]]
    np.testing.assert_allclose(couplings[:2, :2], corner, rtol=1e-5)
    assert abs(float(couplings.mean()) - 0.002152702771127224) < 1e-8
    assert abs(float(couplings.std()) - 0.00491682905703783) < 1e-8


def test_the_hundred_published_systems_differ_and_repeat():
    (x0, J0), (x1, _), (again, _) = (published_system(k) for k in (0, 1, 0))
    assert np.array_equal(x0, again)
    assert float(jnp.abs(x0 - x1).max()) > 0.1
    assert abs(float(J0.std()) * np.sqrt(512) - 0.1) < 0.001
    with pytest.raises(ValueError, match="sample"):
        published_system(100)


def test_the_published_starts_are_no_magnetizations():
    wide, one = published_starts()
    assert (wide.shape, one.shape) == ((100, 512), (512,))
    assert abs(float(wide.std()) - 5) < 0.1
    assert abs(float(one.std()) - 1) < 0.1
