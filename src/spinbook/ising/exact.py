"""Exact answers for few binary spins, by going through all their states; at most 14 spins.

The states are numbered so that bit i of the number is set if s_i is 1: state 5 of three spins is s = (1, -1, 1).
A distribution is a vector over the states. Spins are all updated at once: given the state s' before they are
independent, with P(s_i | s') = exp(beta s_i H_i) / (2 cosh(beta H_i)) and H_i = h_i + sum_j J_ij s'_j. Couplings may
have any symmetry and a diagonal.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import arguments, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.fixed_point import FixedPoint

__all__ = [
    "correlations",
    "covariance",
    "delayed_correlations",
    "entropy_production",
    "kullback_leibler",
    "magnetizations",
    "mean",
    "product_distribution",
    "states",
    "stationary_distribution",
    "stationary_solve",
    "step",
    "transition_matrix",
]

Couplings = Float[ArrayLike, "N N"]
Fields = Float[ArrayLike, " #N"]

_MAX_SPINS = 14

Distribution = Float[ArrayLike, " 2**N"]


def _memory(numbers: float) -> str:
    size = 8 * numbers
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} EB"


def _refuse_many(num_spins: int, name: str) -> None:
    if num_spins > _MAX_SPINS:
        raise ValueError(
            f"{name}: expected at most {_MAX_SPINS} spins, got {num_spins} (in float64 the transition matrix would "
            f"need {_memory(4.0**num_spins)}, and a step without it {_memory(2 * 2.0 ** (1.5 * num_spins))})"
        )


def _model(couplings: Any, fields: Any, beta: Any, *others: Any) -> tuple[Array, Array, Array]:
    J, h, beta = arguments.ising_model(couplings, fields, beta, dtype=validate.common_dtype(couplings, fields, *others))
    _refuse_many(J.shape[0], "couplings")
    if h.ndim != 1:
        raise ValueError(f"fields: expected a number or shape {J.shape[:1]}, got shape {h.shape}")
    return J, h, beta


def _distribution(value: Any, *, name: str = "distribution", dtype: Any = None, num_spins: int | None = None) -> Array:
    p = validate.finite(value, name, ndim=1, dtype=dtype)
    n = p.shape[0].bit_length() - 1
    if p.shape[0] != 2**n or n < 1 or num_spins not in (None, n):
        wanted = "(2^N,), N >= 1" if num_spins is None else f"{(2**num_spins,)}"
        raise ValueError(f"{name}: expected shape {wanted}, got shape {p.shape}")
    _refuse_many(n, name)
    validate.require(lambda x: x >= 0, p, name, "probabilities >= 0")
    # The error of 2^n roundings; a larger deviation is an error of the caller and not of arithmetic.
    slack = 2.0**n * float(jnp.finfo(p.dtype).eps)
    validate.require(lambda x: abs(x - 1) <= slack, jnp.sum(p), name, "probabilities with the sum 1")
    return p


def _num_spins(p: Array) -> int:
    return p.shape[0].bit_length() - 1


def _states(n: int, dtype: Any) -> Array:
    return jnp.asarray(2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1, dtype)


def _log_ratios(J: Array, h: Array, beta: Array) -> Array:
    """2 beta H_i(s'), the log of P(s_i = 1 | s') / P(s_i = -1 | s'), for each state s' and spin i."""
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


@jax.jit
def _transition_matrix(J: Array, h: Array, beta: Array) -> Array:
    x = _log_ratios(J, h, beta)
    return _products(jax.nn.sigmoid(x), jax.nn.sigmoid(-x))


@jax.jit
def _step(p: Array, J: Array, h: Array, beta: Array) -> Array:
    return _advance(p, *_halves(J, h, beta))


def states(num_spins: int) -> Float[Array, "states N"]:
    """s_i = 2 (bit i of the row number) - 1: all 2^N states of N spins.

    >>> states(2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    n = validate.count(num_spins, "num_spins", minimum=1)
    _refuse_many(n, "num_spins")
    return _states(n, validate.common_dtype())


def transition_matrix(couplings: Couplings, fields: Fields, *, beta: Number) -> Float[Array, "states states"]:
    """P(s | s') = prod_i exp(beta s_i H_i(s')) / (2 cosh(beta H_i(s'))), as a matrix [new, old] whose columns sum to 1.

    Memory: 8 * 4^N bytes in float64, 2.1 GB at N = 14, and as much again while it is built; ``step`` does without.
    Raises ``ValueError`` for couplings that are not square, shapes that do not fit, NaN, beta <= 0 and N > 14.
    Source: Bal (2023), labels pcond and pcondwithbeta.

    >>> transition_matrix([[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=0.5).shape
    (4, 4)
    """
    return _transition_matrix(*_model(couplings, fields, beta))


def step(distribution: Distribution, couplings: Couplings, fields: Fields, *, beta: Number) -> Float[Array, " states"]:
    """p(s) = sum_s' P(s | s') p'(s'), with p' = ``distribution``.

    Cost: 2 * 4^N multiplications without the transition matrix, half a second at N = 14. Errors as for
    ``transition_matrix``, and for a distribution that is negative or does not sum to 1. Source: Bal (2023), label
    marginal.

    >>> p = step([1.0, 0.0, 0.0, 0.0], [[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=30.0)
    >>> [round(float(x), 3) for x in p]
    [0.0, 0.0, 1.0, 0.0]
    """
    J, h, beta = _model(couplings, fields, beta, distribution)
    return _step(_distribution(distribution, dtype=J.dtype, num_spins=J.shape[0]), J, h, beta)


def product_distribution(magnetizations: Float[ArrayLike, " N"]) -> Float[Array, " states"]:
    """p(s) = prod_i (1 + s_i m_i) / 2, independent spins with means m_i.

    >>> product_distribution([1.0, 0.5]).tolist()
    [0.0, 0.25, 0.0, 0.75]
    """
    dtype = validate.common_dtype(magnetizations)
    m = validate.vectors(validate.finite(magnetizations, "magnetizations", ndim=1, dtype=dtype), "magnetizations")
    _refuse_many(m.shape[0], "magnetizations")
    m = arguments.magnetizations(m, "magnetizations", m.shape[0], dtype=dtype)[None]
    return _products((1 + m) / 2, (1 - m) / 2)[:, 0]


@partial(jax.jit, static_argnames="max_steps")
def _stationary(J: Array, h: Array, beta: Array, tol: Array, max_steps: int) -> FixedPoint:
    high, low = _halves(J, h, beta)
    size = 2 ** J.shape[0]
    # Random weights have a share of every slow mode of the chain, in however few states it sits; the two states where
    # all spins agree are the farthest from each other where the couplings favour agreement.
    random = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(size)), J.dtype)
    start = jnp.zeros((3, size), J.dtype).at[0].set(random).at[1, 0].set(1).at[2, size - 1].set(1)
    reachable = jnp.maximum(tol, 16 * jnp.finfo(J.dtype).eps)

    def distance(p: Array) -> Array:
        return jnp.maximum(jnp.sum(jnp.abs(p[1] - p[0])), jnp.sum(jnp.abs(p[2] - p[0])))

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        return (state[1] > reachable) & (state[2] < max_steps)

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        p = jnp.stack([_advance(row, high, low) for row in state[0]])
        # Otherwise rounding lets the sums drift.
        p = p / jnp.sum(p, axis=-1, keepdims=True)
        return p, distance(p), state[2] + 1

    p, residual, num_steps = jax.lax.while_loop(unfinished, advance, (start, distance(start), jnp.zeros((), jnp.int32)))
    return FixedPoint(p[0], residual, num_steps, residual <= reachable)


def stationary_solve(
    couplings: Couplings, fields: Fields, *, beta: Number, tol: Number = 1e-12, max_steps: int = 10_000
) -> FixedPoint:
    """p = P p, by stepping from three distributions until they have become one, with evidence.

    The three are: all spins down, all spins up, and random weights on all states. ``residual`` is the largest distance
    sum_s |p(s) - q(s)| between them, ``converged`` says that it is at most ``tol`` (or 16 eps, in float32 2e-6). A
    small p - P p would not be enough, since it is small at every step of a slow chain. Distributions that start in
    different basins of a chain that does not mix stay apart, and then the function does not converge, as at large
    N beta |J|. Rounding adds an error of up to num_steps eps.

    Cost: three times ``step`` for each of num_steps. ``jax.jit``, ``jax.vmap`` and forward derivatives pass through;
    reverse ones raise. Errors as for ``transition_matrix``.

    >>> solution = stationary_solve([[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=0.7)
    >>> solution.value.shape, bool(solution.converged)
    ((4,), True)
    >>> bool(stationary_solve([[0.0, 1.0], [1.0, 0.0]], 0.0, beta=30.0).converged)
    False
    """
    J, h, beta = _model(couplings, fields, beta)
    tol = validate.positive(tol, "tol", ndim=0, dtype=J.dtype)
    return _stationary(J, h, beta, tol, validate.count(max_steps, "max_steps", minimum=1))


def stationary_distribution(couplings: Couplings, fields: Fields, *, beta: Number) -> Float[Array, " states"]:
    """p = P p, the value of ``stationary_solve``.

    Raises ``RuntimeError`` where that did not converge; under a trace the result is then NaN. Other errors as for
    ``transition_matrix``. The functions of the stationary state below take it as ``distribution``, so that it is
    computed only once.

    >>> p = stationary_distribution([[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=0.7)
    >>> [round(float(x), 3) for x in p]
    [0.25, 0.25, 0.25, 0.25]
    """
    solution = stationary_solve(couplings, fields, beta=beta)
    if not validate.is_traced(solution) and not bool(solution.converged):
        raise RuntimeError(
            f"stationary distribution: expected different starts to end in one distribution, got a distance of "
            f"{float(solution.residual):.2g} after {int(solution.num_steps)} steps; the chain is too slow "
            f"(stationary_solve takes max_steps and returns what was reached)"
        )
    return jnp.where(solution.converged, solution.value, jnp.nan)


def _given_or_stationary(distribution: Any, J: Array, h: Array, beta: Array) -> Array:
    if distribution is None:
        return stationary_distribution(J, h, beta=beta)
    return _distribution(distribution, dtype=J.dtype, num_spins=J.shape[0])


@jax.jit
def _mean(p: Array) -> Array:
    return p @ _states(_num_spins(p), p.dtype)


@jax.jit
def _covariance(p: Array) -> Array:
    s = _states(_num_spins(p), p.dtype)
    centred = s - (p @ s)[None]
    return centred.T @ (p[:, None] * centred)


def mean(distribution: Distribution) -> Float[Array, " N"]:
    """m_i = sum_s s_i p(s).

    >>> mean([0.0, 0.25, 0.0, 0.75]).tolist()
    [1.0, 0.5]
    """
    return _mean(_distribution(distribution))


def covariance(distribution: Distribution) -> Float[Array, "N N"]:
    """C_ik = sum_s s_i s_k p(s) - m_i m_k.

    >>> covariance([0.5, 0.0, 0.0, 0.5]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _covariance(_distribution(distribution))


def magnetizations(
    couplings: Couplings, fields: Fields, *, beta: Number, distribution: Distribution | None = None
) -> Float[Array, " N"]:
    """m_i = sum_s s_i p(s) in the stationary state, or in the ``distribution`` given.

    Errors as for ``stationary_distribution``.

    >>> m = magnetizations([[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=0.7)
    >>> [round(float(x), 3) for x in m]
    [0.265, 0.075]
    """
    J, h, beta = _model(couplings, fields, beta, distribution)
    return _mean(_given_or_stationary(distribution, J, h, beta))


def correlations(
    couplings: Couplings, fields: Fields, *, beta: Number, distribution: Distribution | None = None
) -> Float[Array, "N N"]:
    """C_ik = sum_s s_i s_k p(s) - m_i m_k in the stationary state, or in the ``distribution`` given.

    Errors as for ``stationary_distribution``.

    >>> C = correlations([[0.0, 1.0], [1.0, 0.0]], 0.0, beta=0.7)
    >>> C.shape, round(float(C[0, 0]), 6)
    ((2, 2), 1.0)
    """
    J, h, beta = _model(couplings, fields, beta, distribution)
    return _covariance(_given_or_stationary(distribution, J, h, beta))


@jax.jit
def _delayed(p: Array, J: Array, h: Array, beta: Array) -> Array:
    s = _states(J.shape[0], J.dtype)
    response = jnp.tanh(_log_ratios(J, h, beta) / 2)
    return (response - (p @ response)[None]).T @ (p[:, None] * (s - (p @ s)[None]))


def delayed_correlations(
    couplings: Couplings, fields: Fields, *, beta: Number, distribution: Distribution | None = None
) -> Float[Array, "N N"]:
    """D_il = sum_{s, s'} s_i s'_l P(s | s') p(s') - m_i m'_l, the later time first.

    p is the distribution one step before: the stationary one, or the ``distribution`` given. Errors as for
    ``stationary_distribution``.

    >>> D = delayed_correlations([[0.0, 1.0], [0.0, 0.0]], 0.0, beta=0.7)
    >>> [[round(float(x), 3) for x in row] for row in D]
    [[0.0, 0.604], [0.0, 0.0]]
    """
    J, h, beta = _model(couplings, fields, beta, distribution)
    return _delayed(_given_or_stationary(distribution, J, h, beta), J, h, beta)


@jax.jit
def _entropy_production(p: Array, J: Array, h: Array, beta: Array) -> Array:
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

    produced = jax.lax.map(from_state, jnp.arange(2**n), batch_size=min(2**n, 64))
    return p @ produced


def entropy_production(
    couplings: Couplings, fields: Fields, *, beta: Number, distribution: Distribution | None = None
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
    J, h, beta = _model(couplings, fields, beta, distribution)
    return _entropy_production(_given_or_stationary(distribution, J, h, beta), J, h, beta)


def kullback_leibler(distribution: Distribution, other: Distribution) -> Float[Array, ""]:
    """D(p || q) = sum_s p(s) log(p(s) / q(s)), in nats; infinite where q is zero and p is not.

    Errors as for ``step``. Source: Bal (2023), label kl.

    >>> round(float(kullback_leibler([0.5, 0.5], [0.25, 0.75])), 4)
    0.1438
    """
    dtype = validate.common_dtype(distribution, other)
    p = _distribution(distribution, dtype=dtype)
    q = _distribution(other, name="other", dtype=dtype, num_spins=_num_spins(p))
    return jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1) / q), 0))
