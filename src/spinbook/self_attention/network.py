"""Networks of one-bit patterns: the paper's, random networks, and networks written by hand.

A network is four matrices of signs (output, value, query, key), once for the bits that carry meaning and once for the
bits that carry the position, and three numbers: how many tokens the window holds, how strongly positions count, and how
sharp the attention is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Int

__all__ = ["Network", "paper_network", "positional_bits", "random_network"]


def positional_bits(num_bits: int) -> Float[np.ndarray, "R P"]:
    """Row r holds the number r in ``num_bits`` binary digits written as -1 and 1, the most significant first.

    >>> positional_bits(2).tolist()
    [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    """
    P = validate.count(num_bits, "num_bits")
    shifts = np.arange(P - 1, -1, -1)
    return 2.0 * ((np.arange(2**P)[:, None] >> shifts) & 1) - 1.0


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _signs(value: Any, name: str) -> np.ndarray:
    array = validate.known_numbers(value, name)
    if array.ndim != 3 or array.shape[0] != 4 or array.shape[1] == 0:
        raise ValueError(f"{name}: expected shape (4, features, ...) with at least one feature, got {array.shape}")
    validate.require(lambda x: np.abs(x) == 1, array, name, "signs that are -1 or 1")
    return _frozen(array.astype(np.int8))


@dataclass(frozen=True, eq=False)
class Network:
    """W^alpha_{a,i} in {-1, 1} for alpha = output, value, query, key: M features of S segments and of P positions.

    ``semantic_signs`` is (4, M, S): all units of a segment share their signs, and a segment holds the fraction
    ``segment_weights`` of all units (equal by default). Infinitely many units need no more than that. S = N segments
    are a network of N units written by hand. ``positional_signs`` is (4, M, P).

    ``context``: K, tokens in the window. ``epsilon`` in [0, 1): weight of the positional bits. ``gamma``: inverse
    temperature of the attention.

    Raises ``ValueError`` for entries other than signs, shapes that do not fit, and epsilon outside [0, 1). Source:
    Poc-Lopez and Aguilera (2024), equations (13) to (16).

    >>> network = paper_network()
    >>> network.semantic_signs.shape, network.positional_signs.shape, network.context, network.period
    ((4, 3, 3), (4, 3, 2), 4, 4)
    """

    semantic_signs: Int[ArrayLike, "4 M S"]
    positional_signs: Int[ArrayLike, "4 M P"]
    context: int = 4
    epsilon: float = 0.02
    gamma: float = 1.0
    segment_weights: Any = None

    def __post_init__(self) -> None:
        semantic, positional = (_signs(getattr(self, x), x) for x in ("semantic_signs", "positional_signs"))
        M, S = semantic.shape[1:]
        if positional.shape[1] != M:
            raise ValueError(f"positional_signs: expected shape (4, {M}, positions), got {positional.shape}")
        given = np.ones(S) if self.segment_weights is None else self.segment_weights
        shares = validate.known_numbers(given, "segment_weights")
        if S == 0 or shares.shape != (S,):
            raise ValueError(f"segment_weights: expected one for each of {S} > 0 segments, got shape {shares.shape}")
        validate.require(lambda x: x > 0, shares, "segment_weights", "numbers > 0")
        for name, value in {
            "semantic_signs": semantic,
            "positional_signs": positional,
            "context": validate.count(self.context, "context", minimum=1),
            "epsilon": validate.number(self.epsilon, "epsilon", least=0, below=1),
            "gamma": validate.number(self.gamma, "gamma", least=0),
            "segment_weights": _frozen(shares / shares.sum()),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def num_features(self) -> int:
        """M."""
        return self.semantic_signs.shape[1]

    @property
    def period(self) -> int:
        """R = 2^P: the positions repeat after so many steps, and with them the map."""
        return 2 ** self.positional_signs.shape[2]


def paper_network() -> Network:
    """The 60 signs of seed 1, M = 3, K = 4, P = 2, epsilon = 0.02, gamma = 2.2 * 100 / sqrt(3).

    Three segments of equal size. The signs are those of the authors' generator for its seed 1, a seed that they chose
    by hand; other seeds mostly give less varied dynamics. Source: Poc-Lopez and Aguilera (2024), section 4 and
    appendix C, and their code.

    >>> paper_network().semantic_signs[0].tolist()
    [[-1, 1, 1], [-1, 1, -1], [1, 1, 1]]
    """
    semantic = [
        [[-1, 1, 1], [-1, 1, -1], [1, 1, 1]],
        [[-1, 1, -1], [-1, -1, 1], [-1, 1, 1]],
        [[1, -1, -1], [-1, -1, -1], [1, -1, 1]],
        [[-1, -1, -1], [-1, -1, 1], [-1, 1, -1]],
    ]
    positional = [
        [[-1, -1], [1, -1], [1, 1]],
        [[-1, -1], [1, -1], [-1, 1]],
        [[1, -1], [1, 1], [-1, -1]],
        [[-1, -1], [-1, -1], [-1, 1]],
    ]
    return Network(np.array(semantic), np.array(positional), 4, 0.02, 2.2 * 100 / math.sqrt(3))


def random_network(
    key: PRNGKeyArray,
    *,
    num_features: int = 3,
    num_segments: int = 3,
    context: int = 4,
    num_positional_bits: int = 2,
    epsilon: float = 0.02,
    gamma: float | None = None,
) -> Network:
    """Every sign of every matrix -1 or 1 with probability 1/2, independently.

    ``gamma`` is 2.2 * 100 / sqrt(M) by default, the paper's. Correlations between patterns are multiples of 1 / S; with
    the paper's three segments they are +-1/3 and +-1. Source: Poc-Lopez and Aguilera (2024), appendix C.

    >>> import jax
    >>> random_network(jax.random.key(0), num_features=5, context=8, num_positional_bits=3).period
    8
    """
    M = validate.count(num_features, "num_features", minimum=1)
    S = validate.count(num_segments, "num_segments", minimum=1)
    P = validate.count(num_positional_bits, "num_positional_bits")
    keys = jax.random.split(key)
    semantic, positional = (
        2 * np.asarray(jax.random.bernoulli(k, 0.5, (4, M, size)), np.int8) - 1
        for k, size in zip(keys, (S, P), strict=True)
    )
    return Network(semantic, positional, context, epsilon, 2.2 * 100 / math.sqrt(M) if gamma is None else gamma)
