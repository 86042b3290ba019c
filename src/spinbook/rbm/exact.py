"""Exact answers for few binary visible units, by going through all their states; at most 20 units.

The states are numbered so that bit i of the number is v_i: state 5 of three units is v = (1, 0, 1), and a subset of the
units has the number of the state in which exactly its members are 1. ``hidden_sum`` does the same for hidden units.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.rbm import hidden_sum

__all__ = [
    "hidden_sum",
    "interaction_strength_by_order",
    "interactions",
    "states",
]

_MAX_UNITS = 20


def _num_units(num_units: Any) -> int:
    n = validate.count(num_units, "num_units", minimum=1)
    if n > _MAX_UNITS:
        needed = f"the states alone would need {n} * 2^{n - 27} GiB"
        raise ValueError(f"num_units: expected an integer from 1 to {_MAX_UNITS}, got {n} ({needed})")
    return n


def states(num_units: int) -> Float[Array, "states num_units"]:
    """v_i = bit i of the row number: all 2^n states of n units in {0, 1}.

    Memory: 8 n 2^n bytes in float64, 168 MB at the limit of n = 20; more units raise ``ValueError``.

    >>> states(2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    n = _num_units(num_units)
    numbers = np.arange(2**n)
    return jnp.asarray((numbers[:, None] >> np.arange(n)) & 1, dtype=validate.common_dtype())


def _energies(energies: Float[ArrayLike, "... 2**num_units"]) -> tuple[Array, int]:
    E = validate.vectors(energies, "energies")
    n = E.shape[-1].bit_length() - 1
    if E.shape[-1] != 2**n or not 1 <= n <= _MAX_UNITS:
        raise ValueError(
            f"energies: expected one for each of 2^n states, n from 1 to {_MAX_UNITS}, got shape {E.shape}"
        )
    return E, n


@partial(jax.jit, static_argnames="n")
def _interactions(E: Array, n: int) -> Array:
    # Not -E, which would turn a vanishing energy into a coupling of minus zero.
    J = 0 - E
    for i in range(n):
        # Split the state number around bit i, and subtract what is there without unit i.
        J = J.reshape(*E.shape[:-1], 2 ** (n - i - 1), 2, 2**i)
        J = J.at[..., 1, :].add(-J[..., 0, :])
    return J.reshape(E.shape)


@partial(jax.jit, static_argnames="n")
def _strengths(E: Array, n: int) -> Array:
    order = np.bitwise_count(np.arange(2**n, dtype=np.uint32))
    members = jnp.asarray(order == np.arange(n + 1)[:, None], E.dtype)
    sums = _interactions(E, n) ** 2 @ members.T
    return jnp.sqrt(sums / jnp.broadcast_to(members.sum(axis=1), sums.shape))


def interactions(energies: Float[ArrayLike, "... 2**num_units"]) -> Float[Array, "... states"]:
    """J_S = sum_{T in S} (-1)^{|S| - |T|} (-E_T), so that -E(v) = sum_S J_S prod_{i in S} v_i on {0, 1}^n.

    ``energies`` is (..., 2^n) in the order of ``states``; entry S of the result belongs to the units that are 1 in
    state S. J_0 is the constant, J_S with one unit its bias, with two a coupling (pairs counted once), and so on.
    The representation is unique (Moebius inversion). Cost: n 2^n additions.

    >>> interactions([0.0, -1.0, -2.0, -7.0]).tolist()
    [0.0, 1.0, 2.0, 4.0]
    """
    E, n = _energies(energies)
    return _interactions(E, n)


def interaction_strength_by_order(energies: Float[ArrayLike, "... 2**num_units"]) -> Float[Array, "... orders"]:
    """sqrt(mean of J_S^2 over the subsets S of k units), for k = 0, 1, ..., n.

    Arguments as for ``interactions``. Entry 0 is the size of the constant.

    >>> interaction_strength_by_order([0.0, -1.0, -1.0, -5.0]).tolist()
    [0.0, 1.0, 3.0]
    """
    E, n = _energies(energies)
    return _strengths(E, n)
