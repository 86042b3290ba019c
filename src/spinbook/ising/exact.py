"""Exact answers for few binary spins, by going through all their states; at most 14 spins.

The states are numbered so that bit i of the number is set if s_i is 1: state 5 of three spins is s = (1, -1, 1).
A distribution is a vector over the states. Spins are all updated at once: given the state s' before they are
independent, with P(s_i | s') = exp(beta s_i H_i) / (2 cosh(beta H_i)) and H_i = h_i + sum_j J_ij s'_j. Couplings may
have any symmetry and a diagonal.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Positive, PositiveCount, checked

__all__ = [
    "delayed_correlations",
    "entropy_production",
    "magnetizations",
    "states",
    "stationary_distribution",
    "step",
    "transition_matrix",
]

_MAX_SPINS = 14


def _few(couplings: Array | np.ndarray, name: str) -> None:
    if len(couplings) > _MAX_SPINS:
        raise ValueError(f"{name}: expected at most {_MAX_SPINS} spins, got {len(couplings)}")


def _probabilities(distribution: Array | np.ndarray, name: str) -> None:
    if len(distribution) not in 2 ** np.arange(1, _MAX_SPINS + 1):
        raise ValueError(f"{name}: expected shape (2^N,), N from 1 to {_MAX_SPINS}, got {distribution.shape}")
    # The error of 2^N roundings; a larger deviation is an error of the caller and not of arithmetic.
    slack = len(distribution) * float(jnp.finfo(distribution.dtype).eps)
    validate.require(lambda x: x >= 0, distribution, name, "probabilities >= 0")
    validate.require(lambda x: abs(x - 1) <= slack, distribution.sum(), name, "probabilities with the sum 1")


Couplings = Annotated[Float[ArrayLike, "N N"], _few]
Fields = Float[ArrayLike, " #N"]
Distribution = Annotated[Float[ArrayLike, " states"], _probabilities]


def _states(n: int, dtype: Any) -> Array:
    return jnp.asarray(2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1, dtype)


def _log_ratios(J: Array, h: Array, beta: Array) -> Array:
    """2 beta H_i(s'), the log of P(s_i = 1 | s') / P(s_i = -1 | s'), for each state s' and spin i."""
    h = jnp.broadcast_to(h, J.shape[:1])
    return 2 * beta * (h[None] + _states(J.shape[0], J.dtype) @ J.T)


def _products(up: Array, down: Array) -> Array:
    """prod_i (up_i or down_i as bit i of the row number says) for each column: (columns, n) to (2^n, columns)."""
    table = jnp.ones((1, up.shape[0]), up.dtype)
    for i in range(up.shape[1]):
        table = jnp.concatenate([table * down[None, :, i], table * up[None, :, i]])
    return table


def _halves(J: Array, h: Array, beta: Array) -> tuple[Array, Array]:
    """P(s_high | s') and P(s_low | s') for the two halves of the spins; their products are the transition matrix."""
    x = _log_ratios(J, h, beta)
    # Both from a sigmoid: 1 - up would round a small probability.
    up, down = jax.nn.sigmoid(x), jax.nn.sigmoid(-x)
    low = J.shape[0] // 2
    return _products(up[:, low:], down[:, low:]), _products(up[:, :low], down[:, :low])


def _advance(p: Array, high: Array, low: Array) -> Array:
    """sum_s' P(s | s') p(s'), a product of two matrices with 2^(3N/2) entries each."""
    return ((high * p[None]) @ low.T).ravel()


def states(num_spins: int) -> Float[Array, "states N"]:
    """s_i = 2 (bit i of the row number) - 1: all 2^N states of N spins.

    >>> states(2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    n = validate.count(num_spins, "num_spins", minimum=1, maximum=_MAX_SPINS)
    return _states(n, validate.common_dtype())


@checked(static=())
def transition_matrix(couplings: Couplings, fields: Fields, *, beta: Positive) -> Float[Array, "states states"]:
    """P(s | s') = prod_i exp(beta s_i H_i(s')) / (2 cosh(beta H_i(s'))), as a matrix [new, old] whose columns sum to 1.

    Memory: 8 * 4^N bytes in float64, 2.1 GB at N = 14, and as much again while it is built; ``step`` does without.
    Raises ``ValueError`` for couplings that are not square, shapes that do not fit, NaN, beta <= 0 and N > 14.
    Source: Bal (2023), labels pcond and pcondwithbeta.

    >>> transition_matrix([[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=0.5).shape
    (4, 4)
    """
    x = _log_ratios(couplings, fields, beta)
    return _products(jax.nn.sigmoid(x), jax.nn.sigmoid(-x))


@checked(static=())
def step(
    distribution: Distribution, couplings: Couplings, fields: Fields, *, beta: Positive
) -> Float[Array, " states"]:
    """p(s) = sum_s' P(s | s') p'(s'), with p' = ``distribution``.

    Cost: 2 * 4^N multiplications without the transition matrix, half a second at N = 14. Errors as for
    ``transition_matrix``, and for a distribution that is negative or does not sum to 1. Source: Bal (2023), label
    marginal.

    >>> p = step([1.0, 0.0, 0.0, 0.0], [[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=30.0)
    >>> [round(float(x), 3) for x in p]
    [0.0, 0.0, 1.0, 0.0]
    """
    return _advance(distribution, *_halves(couplings, fields, beta))


@checked(static=("max_steps",))
def stationary_distribution(
    couplings: Couplings, fields: Fields, *, beta: Positive, max_steps: PositiveCount = 10_000
) -> Float[Array, " states"]:
    """p = P p, by stepping from three distributions until they have become one.

    The three are: all spins down, all spins up, and random weights on all states. They have become one where no two
    are farther apart than sum_s |p(s) - q(s)| = 1e-12, in float32 2e-6; after ``max_steps``, where the chain is too
    slow or has no single stationary state, the result is NaN. A small p - P p would not be enough, since it is small at
    every step of a slow chain. Cost: three times ``step`` for each step. ``jax.jit``, ``jax.vmap`` and forward
    derivatives pass through; reverse ones raise. Errors as for ``transition_matrix``. The functions of the stationary
    state below take it as ``distribution``, so that it is computed only once.

    >>> p = stationary_distribution([[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=0.7)
    >>> [round(float(x), 3) for x in p]
    [0.25, 0.25, 0.25, 0.25]
    """
    J = couplings
    high, low = _halves(J, fields, beta)
    size = 2 ** J.shape[0]
    # Random weights have a share of every slow mode of the chain, in however few states it sits; the two states where
    # all spins agree are the farthest from each other where the couplings favour agreement.
    random = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(size)), J.dtype)
    start = jnp.zeros((3, size), J.dtype).at[0].set(random).at[1, 0].set(1).at[2, size - 1].set(1)
    tolerance = jnp.maximum(1e-12, 16 * jnp.finfo(J.dtype).eps)

    def apart(p: Array) -> Array:
        return jnp.max(jnp.sum(jnp.abs(p[1:] - p[:1]), axis=-1)) > tolerance

    def advance(state: tuple[Array, Array]) -> tuple[Array, Array]:
        p = jnp.stack([_advance(row, high, low) for row in state[0]])
        # Otherwise rounding lets the sums drift.
        return p / jnp.sum(p, axis=-1, keepdims=True), state[1] + 1

    p, _ = jax.lax.while_loop(
        lambda state: apart(state[0]) & (state[1] < max_steps), advance, (start, jnp.zeros((), jnp.int32))
    )
    return jnp.where(apart(p), jnp.nan, p[0])


@checked()
def magnetizations(
    couplings: Couplings, fields: Fields, *, beta: Positive, distribution: Distribution | None = None
) -> Float[Array, " N"]:
    """m_i = sum_s s_i p(s) in the stationary state, or in the ``distribution`` given.

    Errors as for ``stationary_distribution``.

    >>> m = magnetizations([[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=0.7)
    >>> [round(float(x), 3) for x in m]
    [0.265, 0.075]
    """
    p = stationary_distribution(couplings, fields, beta=beta) if distribution is None else distribution
    return p @ _states(len(couplings), p.dtype)


@checked()
def delayed_correlations(
    couplings: Couplings, fields: Fields, *, beta: Positive, distribution: Distribution | None = None
) -> Float[Array, "N N"]:
    """D_il = sum_{s, s'} s_i s'_l P(s | s') p(s') - m_i m'_l, the later time first.

    p is the distribution one step before: the stationary one, or the ``distribution`` given. Errors as for
    ``stationary_distribution``.

    >>> D = delayed_correlations([[0.0, 1.0], [0.0, 0.0]], 0.0, beta=0.7)
    >>> [[round(float(x), 3) for x in row] for row in D]
    [[0.0, 0.604], [0.0, 0.0]]
    """
    p = stationary_distribution(couplings, fields, beta=beta) if distribution is None else distribution
    s = _states(len(couplings), p.dtype)
    response = jnp.tanh(_log_ratios(couplings, fields, beta) / 2)
    return (response - (p @ response)[None]).T @ (p[:, None] * (s - (p @ s)[None]))


@jax.jit
def _produced(J: Array, h: Array, beta: Array) -> Array:
    """sum_s P(s | s') log(P(s | s') / P(s' | s)) for each state s'."""
    n, low = J.shape[0], J.shape[0] // 2
    x = _log_ratios(J, h, beta)
    log_up, log_down = jax.nn.log_sigmoid(x), jax.nn.log_sigmoid(-x)

    def log_products(spins: slice) -> Array:
        bits = _states(n, J.dtype)[: 2 ** len(range(n)[spins]), : len(range(n)[spins])] > 0
        return jnp.sum(jnp.where(bits[:, None], log_up[None, :, spins], log_down[None, :, spins]), axis=-1)

    log_high, log_low = log_products(slice(low, n)), log_products(slice(0, low))

    def from_state(old: Array) -> Array:
        forward = (log_high[:, None, old] + log_low[None, :, old]).ravel()
        backward = log_high[old >> low] + log_low[old & (2**low - 1)]
        return jnp.sum(jnp.exp(forward) * (forward - backward))

    return jax.lax.map(from_state, jnp.arange(2**n), batch_size=min(2**n, 64))


@checked()
def entropy_production(
    couplings: Couplings, fields: Fields, *, beta: Positive, distribution: Distribution | None = None
) -> Float[Array, ""]:
    """sigma = sum_{s, s'} P(s | s') p(s') log(P(s | s') / P(s' | s)), per step of the stationary state.

    How much likelier, in nats, a step of the stationary path is forward than backward; it is never negative, and zero
    for symmetric couplings. Term by term over all pairs of states, so that it can serve as the truth for beta sum_ij
    (J_ij - J_ji) D_ij, which it equals in the stationary state. ``distribution`` is the stationary one, if it is
    already known; for any other distribution the change of its entropy would be missing. Cost: 4^N exponentials. Errors
    as for ``stationary_distribution``. Source: Aguilera, Igarashi & Shimazaki (2023).

    >>> round(float(entropy_production([[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=0.7)), 3)
    1.692
    """
    p = stationary_distribution(couplings, fields, beta=beta) if distribution is None else distribution
    return p @ _produced(couplings, fields, beta)
