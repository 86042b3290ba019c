"""Steady states of infinitely many vector spins of infinitely many components with random couplings. Simulates nothing.

Couplings are independent Gaussian numbers of variance g^2 / N, fields have length |x| and random directions. As N and
then D go to infinity, all lengths of a state are equal, and the field of a site that its neighbours make is across its
own field x. What is left is one number: y = beta |theta| / R, which gives |m| = R p(y) with p(y) = y / (1 + gamma) and
gamma = sqrt(1 + y^2). A theory says which drive Y = beta |x + J m| / R leads to y.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from spinbook import validate

__all__ = ["State", "central_limit", "naive", "steady_state", "tap", "tap_without_self_term"]

_GRID = 10_000


class State(NamedTuple):
    """``length``: |m| / R. ``factor``: what a step makes of a small random change. NaN where there is no state."""

    length: Float[np.ndarray, ""]
    factor: Float[np.ndarray, ""]


Theory = Callable[[np.ndarray, float], np.ndarray]


def _gamma(y: np.ndarray) -> np.ndarray:
    return np.sqrt(1 + y * y)


def naive(y: np.ndarray, strength: float) -> np.ndarray:
    """Y = y: theta_i is the drive itself.

    >>> float(naive(np.array(0.7), 1.0))
    0.7
    """
    return y


def tap_without_self_term(y: np.ndarray, strength: float) -> np.ndarray:
    """Y = y + b^2 y / (1 + gamma)^2 with b = ``strength`` = beta g: the fluctuations of the neighbours alone.

    >>> round(float(tap_without_self_term(np.array(0.75), 1.0)), 4)
    0.8981
    """
    return y + strength**2 * y / (1 + _gamma(y)) ** 2


def tap(y: np.ndarray, strength: float) -> np.ndarray:
    """Y = y + n, with n the smaller root of n = b^2 y / (1 + gamma)^2 + n^2 y (1 + 2 gamma) / (2 gamma^2 (1 + gamma)).

    The square is what the distance v = x + J m - theta adds to the source's second order (secondordercorrections). NaN
    where the equation has no root: there the TAP equation has no solution at this y.

    >>> round(float(tap(np.array(0.75), 1.0)), 4), float(tap(np.array(1.5), 2.5))
    (0.9074, nan)
    """
    gamma = _gamma(y)
    a = strength**2 * y / (1 + gamma) ** 2
    b = y * (1 + 2 * gamma) / (2 * gamma**2 * (1 + gamma))
    inside = 1 - 4 * a * b
    # 2 a / (1 + root) is (1 - root) / (2 b) without the loss of digits for small b.
    return np.where(inside >= 0, y + 2 * a / (1 + np.sqrt(np.maximum(inside, 0))), np.nan)


def central_limit(y: np.ndarray, strength: float) -> np.ndarray:
    """Y with Y / (1 + sqrt(1 + Y^2 + b^2 (1 - p(y)^2))) = p(y): the field fluctuates as a Gaussian, to all orders.

    The sum of many independent spins is a Gaussian vector of squared length g^2 (R^2 - |m|^2), across the drive.

    >>> round(float(central_limit(np.array(0.75), 1.0)), 4)
    0.8767
    """
    p = y / (1 + _gamma(y))
    spread = strength**2 * (1 - p * p)
    # Y = p (1 + root), root^2 = 1 + spread + Y^2, is linear in 1 + root.
    root = (p * p + np.sqrt(p**4 + (1 - p * p) * (1 + spread + p * p))) / (1 - p * p)
    return p * (1 + root)


def _near_the_edge(y: np.ndarray, theory: Theory, strength: float) -> np.ndarray:
    """More points below the first y without a drive, where Y rises like a square root."""
    missing = np.isnan(theory(y, strength))
    if not missing.any():
        return y[:0]
    k = int(np.argmax(missing))
    start, inside, outside = y[k - 1], y[k - 1], y[k]
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if np.isnan(theory(middle, strength)) else (middle, outside)
    return inside - (inside - start) * np.linspace(0, 1, 400) ** 2


def steady_state(beta: float, *, coupling_std: float, field_length: float, theory: Theory = tap) -> State:
    """y with Y(y)^2 = beta^2 (|x|^2 / R^2 + g^2 p(y)^2); the factor is beta g p(y) / Y.

    ``coupling_std`` is g, ``field_length`` is |x| / R. Of several solutions the one with the smallest y on which a
    larger field makes a longer m. Good to six digits (a grid of y with linear interpolation). A factor above 1 means
    that stepping does not stay there. Raises ``ValueError`` for beta <= 0, coupling_std < 0 and field_length <= 0.
    Derived in the chapter spin-transformers.

    >>> state = steady_state(1.0, coupling_std=1.0, field_length=1.0, theory=naive)
    >>> round(float(state.length), 3), round(float(state.factor), 3)
    (0.44, 0.403)
    """
    beta = float(validate.positive(beta, "beta", ndim=0))
    g = float(validate.finite(coupling_std, "coupling_std", ndim=0))
    validate.require(lambda value: value >= 0, g, "coupling_std", "a number >= 0")
    wanted = beta * float(validate.positive(field_length, "field_length", ndim=0))
    strength = beta * g
    y = np.linspace(0, 2 * (wanted + strength) + 4, _GRID)[1:]
    y = np.union1d(y, _near_the_edge(y, theory, strength))
    p, drive = y / (1 + _gamma(y)), theory(y, strength)
    squared_field = drive**2 - strength**2 * p**2
    # Below the first point of the grid the field is zero.
    squared_field[0] = min(squared_field[0], 0)
    with np.errstate(invalid="ignore"):
        crossing = (squared_field[:-1] < wanted**2) & (squared_field[1:] >= wanted**2)
    if not crossing.any():
        return State(np.array(np.nan), np.array(np.nan))
    k = int(np.argmax(crossing))
    part = (wanted**2 - squared_field[k]) / (squared_field[k + 1] - squared_field[k])
    length, driven = (float(a[k] + part * (a[k + 1] - a[k])) for a in (p, drive))
    return State(np.array(length), np.array(strength * length / driven))
