"""Exact answers for few binary visible units, by going through all their states; at most 20 units.

The states are numbered so that bit i of the number is v_i: state 5 of three units is v = (1, 0, 1), and a subset of the
units has the number of the state in which exactly its members are 1.
"""

from __future__ import annotations

from typing import Annotated

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import checked

__all__ = ["interaction_strength_by_order", "states"]

_MAX_UNITS = 20


def states(num_units: int) -> Float[Array, "states num_units"]:
    """v_i = bit i of the row number: all 2^n states of n units in {0, 1}.

    Memory: 8 n 2^n bytes in float64, 168 MB at the limit of n = 20; more units raise ``ValueError``.

    >>> states(2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    n = validate.count(num_units, "num_units", minimum=1, maximum=_MAX_UNITS)
    return jnp.asarray((np.arange(2**n)[:, None] >> np.arange(n)) & 1, dtype=validate.common_dtype())


def _of_all_states(energies: Array | np.ndarray, name: str) -> None:
    n = energies.shape[-1].bit_length() - 1
    if energies.shape[-1] != 2**n or not 1 <= n <= _MAX_UNITS:
        wanted = f"one for each of 2^n states, n from 1 to {_MAX_UNITS}"
        raise ValueError(f"{name}: expected {wanted}, got shape {energies.shape}")


@checked(static=())
def interaction_strength_by_order(
    energies: Annotated[Float[ArrayLike, "*batch states"], _of_all_states],
) -> Float[Array, "*batch orders"]:
    """sqrt(mean of J_S^2 over the subsets S of k units), k = 0, ..., n; -E(v) = sum_S J_S prod_{i in S} v_i.

    ``energies`` is (..., 2^n) in the order of ``states``. The J_S = sum_{T in S} (-1)^{|S| - |T|} (-E_T) of units in
    {0, 1} are unique (Moebius inversion): J_0 is the constant, J_S with one unit its bias, with two a coupling (pairs
    counted once), and so on. Cost: n 2^n additions. Raises ``ValueError`` for other numbers of energies.

    >>> interaction_strength_by_order([0.0, -1.0, -1.0, -5.0]).tolist()
    [0.0, 1.0, 3.0]
    """
    n = energies.shape[-1].bit_length() - 1
    # Not -E, which would turn a vanishing energy into a coupling of minus zero.
    J = 0 - energies
    for i in range(n):
        # Split the state number around bit i, and subtract what is there without unit i.
        J = J.reshape(*energies.shape[:-1], 2 ** (n - i - 1), 2, 2**i)
        J = J.at[..., 1, :].add(-J[..., 0, :])
    order = np.bitwise_count(np.arange(2**n, dtype=np.uint32))
    members = jnp.asarray(order == np.arange(n + 1)[:, None], energies.dtype)
    sums = J.reshape(energies.shape) ** 2 @ members.T
    return jnp.sqrt(sums / jnp.broadcast_to(members.sum(axis=1), sums.shape))
