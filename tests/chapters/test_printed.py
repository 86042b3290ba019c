"""What is stored is what is printed."""

import numpy as np

from chapters.spin_transformers import printed


def half_unit(number):
    """Of the last printed digit."""
    digits, _, exponent = number.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def test_printed_arrays_are_corners_of_numbers_in_single_precision():
    arrays = printed.spin_transformer()
    assert {name: text.shape for name, text in arrays.items()} == {
        "module": (6, 6),
        "gradient": (6, 6),
        "stack": (6, 6),
    }
    for text in arrays.values():
        values = text.astype(float)
        # A number in single precision is printed with as many digits as tell it from its neighbours.
        assert np.all(
            np.abs(values - values.astype(np.float32)) <= np.vectorize(half_unit)(text) + np.abs(values) * 2.0**-24
        )
