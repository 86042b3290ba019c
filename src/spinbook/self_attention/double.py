"""Checks of arguments that NumPy and numba compute with: numbers in double precision, whatever JAX is set to."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinbook import validate

__all__ = ["inverse_temperatures", "numbers"]

_SHAPES = {0: "a number", 1: "a list of numbers"}


def numbers(value: Any, name: str, *, ndim: int | None = None) -> np.ndarray:
    """``value`` as a new array of finite doubles, or ``ValueError``.

    >>> numbers([1, 2.5], "gammas", ndim=1)
    array([1. , 2.5])
    >>> numbers([1.0], "gamma", ndim=0)
    Traceback (most recent call last):
    ValueError: gamma: expected a number, got shape (1,)
    """
    array = validate.known_numbers(value, name)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected {_SHAPES[ndim]}, got shape {array.shape}")
    return array


def inverse_temperatures(value: Any, name: str, *, ndim: int) -> np.ndarray:
    """``value`` as finite doubles >= 0: a number for ``ndim=0``, a list of at least one for ``ndim=1``.

    >>> inverse_temperatures([0.5, -1.0], "betas", ndim=1)
    Traceback (most recent call last):
    ValueError: betas: expected numbers >= 0, got -1 at index (1,)
    """
    array = numbers(value, name, ndim=ndim)
    if array.size == 0:
        raise ValueError(f"{name}: expected at least one number, got none")
    validate.require(lambda beta: beta >= 0, array, name, "numbers >= 0")
    return array
