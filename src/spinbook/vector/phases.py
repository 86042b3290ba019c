"""The order of kinetic vector spins of infinite number and dimension, and where it begins, in closed form.

Couplings are J_ij = J / N + g z_ij / sqrt(N) with independent z_ij of variance one and rows that sum to zero, so that
every row of couplings sums to J, as the rows of attention sum to one. Fields have length x R and independent
directions. The order is mu = |mean_i s_i| / R. As N and then D go to infinity, the mean square of a field over R^2 is
S = x^2 + J^2 mu^2 + g^2 (1 - mu^2): neighbours have the length R at every moment, and the random couplings see what
they differ from their common mean. A spin answers with f = beta / (1 + sqrt(1 + beta^2 S)), and mu = f J mu.

Naive mean field puts means in the place of neighbours, and so q - mu^2 in the place of 1 - mu^2, q = f^2 S. Arguments
broadcast: ``beta``, ``coupling_mean`` J > 0, ``coupling_std`` g >= 0, ``field_length`` x >= 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import above_zero, not_negative

__all__ = ["border", "squared_order"]

Numbers = Float[ArrayLike, "*#shape"]


def _known(beta: Any, J: Any, g: Any, x: Any = 0.0) -> tuple[np.ndarray, ...]:
    named = {"beta": beta, "coupling_mean": J, "coupling_std": g, "field_length": x}
    values = tuple(validate.known_numbers(value, name) for name, value in named.items())
    for value, name, check in zip(values, named, (above_zero, above_zero, not_negative, not_negative), strict=True):
        check(value, name)
    return values


def _squared_border(beta: np.ndarray, J: np.ndarray, g: np.ndarray, naive: bool) -> np.ndarray:
    """x^2 at the border, negative where there is none."""
    return np.asarray((1 - 2 / (beta * J)) * (J**2 - g**2) if naive else J**2 - 2 * J / beta - g**2)


def squared_order(
    beta: Numbers, *, coupling_mean: Numbers, coupling_std: Numbers, field_length: Numbers, naive: bool = False
) -> Float[np.ndarray, "*shape"]:
    """mu^2 = (J^2 - 2 J / beta - x^2 - g^2) / (J^2 - g^2), or 0 where this is negative.

    The squared length of the mean of all spins over R^2 in the steady state that aligned spins lead to. Derived from
    f J = 1, which is S = J^2 - 2 J / beta, in the chapter spin-transformers; 1 / D and 1 / sqrt(N) are left out. For
    rows that do not sum to J the border is the same, and mu is not. ``naive``: the order in naive mean field,
    ((1 - 2 / (beta J)) (J^2 - g^2) - x^2) / (J^2 - g^2), too large by 2 g^2 / (beta J (J^2 - g^2)). Raises
    ``ValueError`` for numbers out of range.

    >>> squared_order([2.0, 8.0], coupling_mean=1.0, coupling_std=0.5, field_length=0.3).round(3).tolist()
    [0.0, 0.547]
    """
    beta, J, g, x = _known(beta, coupling_mean, coupling_std, field_length)
    room = _squared_border(beta, J, g, naive) - x**2
    free = (g < J) & (room > 0)
    return np.where(free, room / np.where(free, J**2 - g**2, 1), 0.0)


def border(
    beta: Numbers, *, coupling_mean: Numbers, coupling_std: Numbers, naive: bool = False
) -> Float[np.ndarray, "*shape"]:
    """x with x^2 + g^2 + 2 J / beta = J^2: spins align in shorter fields, and in longer ones they do not.

    NaN where no field is short enough. Rows of couplings that sum to one, J = 1, give less than 1, whatever g and beta
    are. ``naive``: the border in naive mean field, x^2 = (1 - 2 / (beta J)) (J^2 - g^2). Errors as for
    ``squared_order``.

    >>> border([2.0, 8.0], coupling_mean=1.0, coupling_std=0.5).round(3).tolist()
    [nan, 0.707]
    """
    beta, J, g, _ = _known(beta, coupling_mean, coupling_std)
    squared = _squared_border(beta, J, g, naive)
    return np.sqrt(np.where((squared > 0) & (g < J), squared, np.nan))
