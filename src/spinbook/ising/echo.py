"""A binary spin with its own echo in its field: theta = a - b tanh(theta), b >= 0, by Newton's method from below.

For arrays of NumPy and of JAX, which are not checked; the callers run the loops.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from jaxtyping import Array

__all__ = ["newton_change", "newton_start"]

A = TypeVar("A", Array, np.ndarray)


def newton_start(size: A, b: A | float) -> A:
    """max(|a| / (1 + b), |a| - b), at or below |theta|, since tanh(theta) is at most theta and at most 1.

    From there Newton's method climbs to |theta| and never passes it: theta + b tanh(theta) is concave and increasing.

    >>> newton_start(np.array([1.0, 5.0]), 1.0).tolist()
    [0.5, 4.0]
    """
    numbers = size.__array_namespace__()
    return numbers.maximum(size / (1 + b), size - b)


def newton_change(size: A, theta: A, b: A | float) -> A:
    """(|a| - theta - b tanh(theta)) / (1 + b (1 - tanh(theta)^2)), the step of Newton's method.

    >>> newton_change(np.array([1.0]), np.array([1.0]), 0.0).tolist()
    [0.0]
    """
    m = theta.__array_namespace__().tanh(theta)
    return (size - theta - b * m) / (1 + b * (1 - m * m))
