"""Steady states of infinitely many vector spins of infinitely many components with random couplings.

Couplings are independent Gaussian numbers of variance g^2 / N; fields have length |x| and random directions. As N and
then D go to infinity, all spins of a state have the same length, and the field that its neighbours make at a site is
perpendicular to the site's own field x. One number remains: y = beta |theta| / R, which gives |m| = R p(y) with
p(y) = y / (1 + gamma) and gamma = sqrt(1 + y^2). A theory says which drive Y = beta |x + J m| / R leads to y. Where
several drives do, functions return all of them, (roots, points), in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from spinbook import validate

_GRID = 2_000


class SteadyLength(NamedTuple):
    """``length``: |m| / R. ``factor``: the growth of a small random change in a step. NaN without a state.

    ``turned``: whether the state is on the larger root of its theory, where m falls with a growing field.
    """

    length: Float[np.ndarray, ""]
    factor: Float[np.ndarray, ""]
    turned: bool


DriveLaw = Callable[[np.ndarray, float], np.ndarray]


def _gamma(y: np.ndarray) -> np.ndarray:
    return np.sqrt(1 + y * y)


def naive(y: np.ndarray, strength: float) -> np.ndarray:
    """Y = y: theta_i is the drive itself.

    Takes its arguments without checks; its callers have checked them.

    >>> naive(np.array([0.75]), 1.0).tolist()
    [[0.75]]
    """
    return y[None]


def tap_without_self_term(y: np.ndarray, strength: float) -> np.ndarray:
    """Y = y + b^2 y / (1 + gamma)^2 with b = ``strength`` = beta g: the fluctuations of the neighbours alone.

    Takes its arguments without checks; its callers have checked them.

    >>> tap_without_self_term(np.array([0.75]), 1.0).round(4).tolist()
    [[0.8981]]
    """
    return (y + strength**2 * y / (1 + _gamma(y)) ** 2)[None]


def tap(y: np.ndarray, strength: float) -> np.ndarray:
    """Y = y + n, with both roots of n = b^2 y / (1 + gamma)^2 + n^2 y (1 + 2 gamma) / (2 gamma^2 (1 + gamma)).

    The quadratic term comes from the distance v = x + J m - theta in the source's second order
    (secondordercorrections). NaN where the roots are complex: no drive leads to this y. Plain updates of n settle on
    the smaller root only.

    Takes its arguments without checks; its callers have checked them.

    >>> tap(np.array([0.75, 1.5]), 2.0).round(4).tolist()
    [[1.635, nan], [2.5436, nan]]
    """
    gamma = _gamma(y)
    a = strength**2 * y / (1 + gamma) ** 2
    b = y * (1 + 2 * gamma) / (2 * gamma**2 * (1 + gamma))
    inside = 1 - 4 * a * b
    root = np.sqrt(np.where(inside >= 0, inside, np.nan))
    # 2 a / (1 + root) is (1 - root) / (2 b) without the loss of digits for small b.
    return np.stack([y + 2 * a / (1 + root), y + (1 + root) / (2 * b)])


def central_limit(y: np.ndarray, strength: float) -> np.ndarray:
    """Y with Y / (1 + sqrt(1 + Y^2 + b^2 (1 - p(y)^2))) = p(y): the field fluctuates as a Gaussian, to all orders.

    The sum of many independent spins is a Gaussian vector of squared length g^2 (R^2 - |m|^2), across the drive.

    Takes its arguments without checks; its callers have checked them.

    >>> central_limit(np.array([0.75]), 1.0).round(4).tolist()
    [[0.8767]]
    """
    p = y / (1 + _gamma(y))
    spread = strength**2 * (1 - p * p)
    # Y = p (1 + root), root^2 = 1 + spread + Y^2, is linear in 1 + root.
    root = (p * p + np.sqrt(p**4 + (1 - p * p) * (1 + spread + p * p))) / (1 - p * p)
    return (p * (1 + root))[None]


def _up_to_the_edge(y: np.ndarray, theory: DriveLaw, strength: float) -> np.ndarray:
    """The points up to the first without a drive, with more of them just before it, where Y goes like a square root."""
    missing = np.isnan(theory(y, strength)[0])
    if not missing.any():
        return y
    k = int(np.argmax(missing))
    inside, outside = y[k - 1], y[k]
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if np.isnan(theory(np.array([middle]), strength)[0]) else (middle, outside)
    return np.union1d(y[:k], inside - (inside - y[k - 1]) * np.linspace(0, 1, 400) ** 2)


def _known(value: Any, name: str, condition: Callable[..., Any], expected: str) -> float:
    """A single number with a known value: a search on a grid cannot be traced."""
    number = validate.known_numbers(value, name)
    if number.ndim:
        raise ValueError(f"{name}: expected a scalar, got shape {number.shape}")
    validate.require(condition, number, name, expected)
    return float(number)


# Squares of it and of what it leads to are finite.
_LARGEST = 1e100


def steady_length(*, beta: float, coupling_std: float, field_length: float, theory: DriveLaw = tap) -> SteadyLength:
    """y with Y(y)^2 = beta^2 (|x|^2 / R^2 + g^2 p(y)^2); the factor is beta g p(y) / Y.

    ``coupling_std`` is g, ``field_length`` is |x| / R. Of several solutions the function returns the first on the way
    from zero field: with rising y on the smaller root of a theory, then with falling y on the larger root. Good to five
    digits (a grid of y with linear interpolation). If the factor is above 1, repeated steps leave the state. Raises
    ``ValueError`` for beta <= 0, coupling_std < 0 and field_length <= 0. Derived in the chapter spin-transformers.

    >>> state = steady_length(beta=1.0, coupling_std=1.0, field_length=1.0, theory=naive)
    >>> round(float(state.length), 3), round(float(state.factor), 3), state.turned
    (0.44, 0.403, False)
    """
    beta = _known(beta, "beta", lambda value: value > 0, "numbers > 0")
    g = _known(coupling_std, "coupling_std", lambda value: value >= 0, "a number >= 0")
    wanted = beta * _known(field_length, "field_length", lambda value: value > 0, "numbers > 0")
    strength = beta * g
    validate.require(
        lambda value: value < _LARGEST, max(wanted, strength), "beta", f"products with the others below {_LARGEST:g}"
    )
    top = 2 * (wanted + strength) + 4
    grid = np.union1d(np.linspace(0, top, _GRID)[1:], np.geomspace(1e-5 * top, top, _GRID))
    y = _up_to_the_edge(grid, theory, strength)
    drives = theory(y, strength)
    turn = len(y)
    if len(drives) > 1 and y[-1] < grid[-1]:
        y, drive = np.concatenate([y, y[::-1]]), np.concatenate([drives[0], drives[1][::-1]])
    else:
        drive = drives[0]
    p = y / (1 + _gamma(y))
    squared_field = drive**2 - strength**2 * p**2
    # Below the first point of the grid the field is zero.
    squared_field[0] = min(squared_field[0], 0)
    crossing = (squared_field[:-1] < wanted**2) & (squared_field[1:] >= wanted**2)
    if not crossing.any():
        return SteadyLength(np.array(np.nan), np.array(np.nan), False)
    k = int(np.argmax(crossing))
    part = (wanted**2 - squared_field[k]) / (squared_field[k + 1] - squared_field[k])
    length, driven = (float(a[k] + part * (a[k + 1] - a[k])) for a in (p, drive))
    return SteadyLength(np.array(length), np.array(strength * length / driven), k >= turn - 1)
