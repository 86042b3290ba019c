"""Handwritten digits as patterns: the 1797 images of 8 x 8 pixels bundled with scikit-learn."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Digits(NamedTuple):
    """Images as rows: ``patterns[k].reshape(shape)`` is image k, -1 is paper and +1 full ink."""

    patterns: Float[Array, "num_patterns 64"]
    labels: Int[Array, " num_patterns"]
    shape: tuple[int, int]


def load() -> Digits:
    """patterns = pixels / 8 - 1 for pixels 0, 1, ..., 16: the whole set in the order in which it is distributed.

    The 17 grey levels land on multiples of 1/8, which every floating dtype holds exactly. Source: the test part of the
    "Optical Recognition of Handwritten Digits" data of Alpaydin and Kaynak (1998), as bundled with scikit-learn.

    Raises ``ModuleNotFoundError`` that says how to install scikit-learn where that is missing.

    >>> digits = load()
    >>> digits.patterns.shape, digits.shape, float(digits.patterns.min()), float(digits.patterns.max())
    ((1797, 64), (8, 8), -1.0, 1.0)
    """
    # scikit-learn takes seconds to load.
    from sklearn.datasets import load_digits

    bundled = load_digits()
    return Digits(
        patterns=jnp.asarray(bundled.data / 8.0 - 1.0),
        labels=jnp.asarray(bundled.target),
        shape=(8, 8),
    )
