"""The bundled digits as patterns."""

import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

from experiments.datasets import digits


def test_grey_levels_map_to_the_interval_from_paper_to_ink():
    patterns, _, _ = digits.load()
    assert patterns.shape == (1797, 64)
    assert patterns.dtype == jnp.float64
    np.testing.assert_array_equal(np.unique(patterns), np.arange(17) / 8 - 1)


def test_rows_are_images_in_reading_order_with_their_labels():
    loaded = digits.load()
    bundled = load_digits()
    for k in (0, 7, 1796):
        np.testing.assert_array_equal((loaded.patterns[k].reshape(loaded.shape) + 1) * 8, bundled.images[k])
    np.testing.assert_array_equal(loaded.labels, bundled.target)
    assert np.bincount(loaded.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
