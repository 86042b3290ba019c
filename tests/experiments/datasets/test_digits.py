"""The bundled digits as patterns."""

import numpy as np
from sklearn.datasets import load_digits

from experiments.datasets import digits


def test_rows_are_images_in_reading_order_with_their_labels():
    loaded, bundled = digits.load(), load_digits()
    np.testing.assert_array_equal((loaded.patterns.reshape(-1, *loaded.shape) + 1) * 8, bundled.images)
    np.testing.assert_array_equal(loaded.labels, bundled.target)
    assert np.bincount(loaded.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
