"""Mean-field dynamics of binary spins with couplings of any symmetry, naive and TAP.

Spins are -1 or 1 and are all updated at once, P(s_i = 1 | s') = 1 / (1 + exp(-2 beta (h_i + sum_j J_ij s'_j))) with s'
the state before. A step takes the magnetizations m' of one time to those of the next. Leading axes of magnetizations
and fields are independent systems with the same couplings and beta; others take ``jax.vmap``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import arguments, fixed_point, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.fixed_point import FixedPoint
from spinbook.ising import echo

__all__ = [
    "averaged_step",
    "collective_shift",
    "correlations",
    "delayed_correlations",
    "first_order_delayed_correlations",
    "flat_tap_step",
    "naive_step",
    "simulate",
    "steady_state",
    "tap_solve",
    "tap_step",
]

Magnetizations = Float[ArrayLike, "*#batch N"]
Couplings = Float[ArrayLike, "N N"]
Fields = Float[ArrayLike, "*#batch #N"]

Step = Callable[..., Array]

# Values of a standard normal number, for sums in the place of integrals: exact but for the tails, which are below 1e-8.
_NORMAL = np.linspace(-6.0, 6.0, 61)

# Newton's method needs four to six steps, and eleven where it is hardest.
_NEWTON_STEPS = 40


def _state(magnetizations: Any, couplings: Any, fields: Any, beta: Any) -> tuple[Array, Array, Array, Array]:
    dtype = validate.common_dtype(magnetizations, couplings, fields)
    J, h, beta = arguments.ising_model(couplings, fields, beta, dtype=dtype)
    m = arguments.magnetizations(magnetizations, "magnetizations", J.shape[0], dtype=dtype)
    validate.same_batch(h, "fields", m, "magnetizations")
    return m, J, h, beta


def _two_times(magnetizations: Any, previous: Any, couplings: Any, beta: Any) -> tuple[Array, Array, Array, Array]:
    dtype = validate.common_dtype(magnetizations, previous, couplings)
    J, _, beta = arguments.ising_model(couplings, 0.0, beta, dtype=dtype)
    m = arguments.magnetizations(magnetizations, "magnetizations", J.shape[0], dtype=dtype)
    old = arguments.magnetizations(previous, "previous", J.shape[0], dtype=dtype)
    validate.same_batch(old, "previous", m, "magnetizations")
    return m, old, J, beta


def _drive(m: Array, J: Array, h: Array, beta: Array) -> Array:
    """beta (h_i + sum_j J_ij m_j)."""
    # In m @ J.T of one system, XLA copies the transpose anew in every step of a loop.
    received = jnp.tensordot(m, J, axes=(-1, 1))
    h, received = jnp.broadcast_arrays(h, received)
    return beta * (h + received)


def _onsager(m: Array, J: Array, beta: Array) -> Array:
    """beta^2 sum_j J_ij^2 (1 - m_j^2), which multiplies the new magnetization."""
    return beta**2 * jnp.tensordot(1 - m * m, J * J, axes=(-1, 1))


def _climb(a: Array, b: Array) -> tuple[Array, Array]:
    """theta = a - b tanh(theta) for b >= 0, and the Newton steps that each system took."""
    size = jnp.abs(a)
    start = echo.newton_start(size, b)
    negligible = 4 * jnp.finfo(start.dtype).eps * size

    def climb(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        theta, moving, num_steps = state
        change = echo.newton_change(size, theta, b)
        num_steps += moving.astype(jnp.int32)
        return theta + change, jnp.any(jnp.abs(change) > negligible, axis=-1), num_steps

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        return jnp.any(state[1] & (state[2] < _NEWTON_STEPS))

    systems = start.shape[:-1]
    state = (start, jnp.ones(systems, bool), jnp.zeros(systems, jnp.int32))
    theta, _, num_steps = jax.lax.while_loop(unfinished, climb, state)
    return jnp.copysign(theta, a), num_steps


@jax.custom_jvp
def _self_consistent_field(a: Array, b: Array) -> tuple[Array, Array]:
    theta, num_steps = _climb(a, b)
    # The rule for derivatives accepts only floating numbers.
    return theta, num_steps.astype(theta.dtype)


@_self_consistent_field.defjvp
def _self_consistent_field_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    a, b = primals
    theta, num_steps = _self_consistent_field(a, b)
    m = jnp.tanh(theta)
    slope = (tangents[0] - m * tangents[1]) / (1 + b * (1 - m * m))
    return (theta, num_steps), (slope, jnp.zeros_like(num_steps))


@jax.jit
def _naive(m: Array, J: Array, h: Array, beta: Array) -> Array:
    return jnp.tanh(_drive(m, J, h, beta))


@jax.jit
def _averaged(m: Array, J: Array, h: Array, beta: Array) -> Array:
    normal = jnp.asarray(_NORMAL, m.dtype)
    mean, width = _drive(m, J, h, beta), jnp.sqrt(_onsager(m, J, beta))
    mean, width = jnp.broadcast_arrays(mean, width)
    return jnp.tanh(mean[..., None] + jnp.multiply.outer(width, normal)) @ jax.nn.softmax(-(normal**2) / 2)


@jax.jit
def _flat_tap(m: Array, J: Array, h: Array, beta: Array) -> Array:
    drive, own = jnp.broadcast_arrays(_drive(m, J, h, beta), _onsager(m, J, beta) * m)
    return jnp.tanh(drive - own)


@jax.jit
def _tap(m: Array, J: Array, h: Array, beta: Array, tol: Array) -> FixedPoint:
    a, b = jnp.broadcast_arrays(_drive(m, J, h, beta), _onsager(m, J, beta))
    theta, num_steps = _self_consistent_field(a, b)
    new = jnp.tanh(theta)
    residual = jnp.max(jnp.abs(jnp.tanh(a - b * new) - new), axis=-1)
    # A rounding error of the new magnetization comes back multiplied by b.
    reachable = 16 * jnp.finfo(new.dtype).eps * (1 + jnp.max(b, axis=-1))
    return FixedPoint(new, residual, num_steps.astype(jnp.int32), residual <= jnp.maximum(tol, reachable))


def naive_step(
    magnetizations: Magnetizations, couplings: Couplings, fields: Fields, *, beta: Number
) -> Float[Array, "*batch N"]:
    """m_i = tanh(beta (h_i + sum_j J_ij m'_j)).

    The magnetizations one step after m' = ``magnetizations`` (..., N), to first order in the couplings: each spin
    responds to the mean of its neighbours and not to their fluctuations. Exact without couplings; the error of one step
    is proportional to the square of their strength. ``couplings`` (N, N) may have any symmetry and a diagonal,
    ``fields`` is a number, (N,) or (..., N); leading axes broadcast. Cost: N^2. Raises ``ValueError`` for couplings
    that are not square, shapes that do not fit, NaN, |m'| > 1 and beta <= 0. Source: Bal (2023), label naivem, there
    with beta in the parameters; Kappen & Spanjers (2000).

    >>> m = naive_step([1.0, 1.0], [[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=2.0)
    >>> [round(float(x), 3) for x in m]
    [0.995, -0.762]
    """
    return _naive(*_state(magnetizations, couplings, fields, beta))


def tap_solve(
    magnetizations: Magnetizations, couplings: Couplings, fields: Fields, *, beta: Number, tol: Number = 1e-10
) -> FixedPoint:
    """m_i = tanh(beta (h_i + sum_j J_ij m'_j) - m_i beta^2 sum_j J_ij^2 (1 - m'_j^2)), solved for m, with evidence.

    The magnetizations one step after m' = ``magnetizations``, to second order in the couplings. The last term, the
    Onsager correction, accounts for the fluctuations of the neighbours; with it the error of one step is proportional
    to the third power of the strength of the couplings. The expansion is good while beta^2 sum_j J_ij^2 is well below
    1.

    Given m' this is one equation m = tanh(a - b m) for each spin. Its right side decreases with m since b >= 0, so that
    there is exactly one solution, whatever the start, and Newton's method climbs to it from below without fail. It is
    found to rounding; ``tol`` only says when ``converged`` is True: residual = max |tanh(a_i - b_i m_i) - m_i| over the
    spins is at most tol, or 16 eps (1 + max b), which rounding allows. Each system of a batch has its own residual,
    ``num_steps`` and ``converged``, of the shape of the leading axes.

    Arguments and errors as for ``naive_step``; differentiable to any order. Cost: 2 N^2.
    Source: Bal (2023), label tapm; Roudi & Hertz (2011); Aguilera, Moosavi & Shimazaki (2021).

    >>> solution = tap_solve([1.0, 0.5], [[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=2.0)
    >>> [round(float(x), 3) for x in solution.value], bool(solution.converged)
    ([0.489, -0.762], True)
    """
    m, J, h, beta = _state(magnetizations, couplings, fields, beta)
    return _tap(m, J, h, beta, validate.positive(tol, "tol", ndim=0, dtype=m.dtype))


def tap_step(
    magnetizations: Magnetizations, couplings: Couplings, fields: Fields, *, beta: Number
) -> Float[Array, "*batch N"]:
    """m_i = tanh(beta (h_i + sum_j J_ij m'_j) - m_i beta^2 sum_j J_ij^2 (1 - m'_j^2)), solved for m.

    The value of ``tap_solve``, as a step like ``naive_step``; NaN where ``tap_solve`` did not converge. See there for
    all else.

    >>> m = tap_step([1.0, 0.5], [[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=2.0)
    >>> [round(float(x), 3) for x in m]
    [0.489, -0.762]
    """
    solution = tap_solve(magnetizations, couplings, fields, beta=beta)
    return jnp.where(solution.converged[..., None], solution.value, jnp.nan)


def averaged_step(
    magnetizations: Magnetizations, couplings: Couplings, fields: Fields, *, beta: Number
) -> Float[Array, "*batch N"]:
    """m_i = E_z tanh(beta (h_i + sum_j J_ij m'_j) + beta sqrt(sum_j J_ij^2 (1 - m'_j^2)) z), z standard normal.

    The magnetizations one step after m' = ``magnetizations`` if each spin has many neighbours that fluctuate
    independently, so that its field is normal, however wide. ``naive_step`` leaves out the width, ``tap_step`` keeps
    its square. Couplings should be independent of their transpose: J_ij J_ji, by which a spin meets its own past, does
    not enter. The integral is a sum over 61 nodes, with errors below 1e-6 up to a width of 3. There is no derivative
    where a width vanishes. Arguments and errors as for ``naive_step``; cost: 2 N^2.
    Source: Mezard & Sakellariou (2011).

    >>> m = averaged_step([1.0, 0.0], [[0.0, 0.5], [0.5, 0.0]], 1.0, beta=1.0)
    >>> [round(float(x), 3) for x in m]
    [0.689, 0.905]
    """
    return _averaged(*_state(magnetizations, couplings, fields, beta))


def flat_tap_step(
    magnetizations: Magnetizations, couplings: Couplings, fields: Fields, *, beta: Number
) -> Float[Array, "*batch N"]:
    """m_i = tanh(beta (h_i + sum_j J_ij m'_j) - m'_i beta^2 sum_j J_ij^2 (1 - m'_j^2)).

    The right-hand side of ``tap_step`` once, with the old magnetizations in place of the new ones. It is not a step in
    time, but it has the steady states of ``tap_step``: the equations of Thouless, Anderson and Palmer for an
    equilibrium. Arguments and errors as for ``naive_step``.

    >>> m = flat_tap_step([1.0, 0.5], [[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=2.0)
    >>> [round(float(x), 3) for x in m]
    [-0.762, -0.762]
    """
    return _flat_tap(*_state(magnetizations, couplings, fields, beta))


# A^(2^k) after so many squarings has either vanished or overflowed, unless A grows or shrinks by less than 1e-12.
_SQUARINGS = 42


@jax.jit
def _collective_shift(m: Array, J: Array, beta: Array) -> Array:
    variance = 1 - m * m
    A = beta * variance[:, None] * J

    def double(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        C, power, count = state
        return C + power @ C @ power.T, power @ power, count + 1

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        _, power, count = state
        size = jnp.max(jnp.abs(power))
        return (size > jnp.finfo(m.dtype).eps ** 2) & jnp.isfinite(size) & (count < _SQUARINGS)

    alone = jnp.diag(variance)
    C, power, _ = jax.lax.while_loop(unfinished, double, (alone, A, jnp.zeros((), jnp.int32)))
    heard = jnp.einsum("ij,jk,ik->i", J, C - alone, J, optimize=True)
    shift = jnp.linalg.solve(jnp.eye(len(m), dtype=m.dtype) - A, -(beta**2) * m * variance * heard)
    return jnp.where(jnp.max(jnp.abs(power)) < 1, shift, jnp.nan)


@jax.jit
def _correlations(m: Array, previous: Array, J: Array, beta: Array) -> Array:
    m, previous = jnp.broadcast_arrays(m, previous)
    variance = 1 - m * m
    received = jnp.einsum("ij,kj,...j->...ik", J, J, 1 - previous * previous)
    between = beta**2 * variance[..., :, None] * variance[..., None, :] * received
    same = jnp.eye(J.shape[0], dtype=bool)
    return jnp.where(same, variance[..., :, None], between)


@jax.jit
def _first_order_delayed(m: Array, previous: Array, J: Array, beta: Array) -> Array:
    m, previous = jnp.broadcast_arrays(m, previous)
    slopes = (1 - m * m)[..., :, None] * (1 - previous * previous)[..., None, :]
    return beta * jnp.broadcast_to(J, slopes.shape) * slopes


@jax.jit
def _delayed(m: Array, previous: Array, J: Array, beta: Array) -> Array:
    m, previous = jnp.broadcast_arrays(m, previous)
    first = _first_order_delayed(m, previous, J, beta)
    return first * (1 + 2 * beta * jnp.broadcast_to(J, first.shape) * m[..., :, None] * previous[..., None, :])


def collective_shift(
    magnetizations: Float[ArrayLike, " N"], couplings: Couplings, *, beta: Number
) -> Float[Array, " N"]:
    """(1 - A)^-1 b with A_ij = beta (1 - m_i^2) J_ij, b_i = -beta^2 m_i (1 - m_i^2) sum_jk J_ij J_ik (C_jk - D_jk).

    The correction to be added to the steady state m = ``magnetizations`` of ``tap_step`` because neighbours fluctuate
    together. C = sum_n A^n D (A^T)^n is their covariance to leading order: the fluctuations of every step, carried on
    by the linear dynamics. D_jj = 1 - m_j^2 is the part of independent neighbours, which TAP contains. If all couplings
    have about the same size the correction is of order 1/N, with an error of 1/N^2; near a critical point, where C
    grows, it can be most of the error of TAP. It is of fourth order in the couplings; terms of third order are missing
    in both.

    ``couplings`` (N, N) may have any symmetry and a diagonal. NaN where fluctuations do not die out, a spectral radius
    of A of one or more. Errors as for ``naive_step``. Cost: some ten products N^3. Source: this book.

    >>> m = steady_state([[0.2, 0.3], [0.3, 0.2]], 0.3, beta=1.0).value
    >>> [round(float(x), 4) for x in collective_shift(m, [[0.2, 0.3], [0.3, 0.2]], beta=1.0)]
    [-0.0116, -0.0116]
    """
    dtype = validate.common_dtype(magnetizations, couplings)
    J, _, beta = arguments.ising_model(couplings, 0.0, beta, dtype=dtype)
    m = arguments.magnetizations(magnetizations, "magnetizations", J.shape[0], dtype=dtype)
    if m.ndim != 1:
        raise ValueError(f"magnetizations: expected shape {J.shape[:1]}, got shape {m.shape}")
    return _collective_shift(m, J, beta)


def correlations(
    magnetizations: Magnetizations, previous: Magnetizations, couplings: Couplings, *, beta: Number
) -> Float[Array, "*batch N N"]:
    """C_ik = beta^2 (1 - m_i^2) (1 - m_k^2) sum_j J_ij J_kj (1 - m'_j^2) for i != k, and C_ii = 1 - m_i^2.

    The covariance of s_i and s_k at the time of m = ``magnetizations``, from the neighbours they had in common when
    these had the magnetizations m' = ``previous``, to second order in the couplings. Correlations among the previous
    spins would enter at third order. Arguments and errors as for ``naive_step``. Cost: N^3. Source: Bal (2023), label
    tapc.

    >>> correlations([0.5, 0.0], [0.0, 0.0], [[0.0, 0.2], [0.1, 0.3]], beta=1.0).shape
    (2, 2)
    """
    return _correlations(*_two_times(magnetizations, previous, couplings, beta))


def first_order_delayed_correlations(
    magnetizations: Magnetizations, previous: Magnetizations, couplings: Couplings, *, beta: Number
) -> Float[Array, "*batch N N"]:
    """D_il = beta J_il (1 - m_i^2) (1 - m'_l^2).

    The covariance of s_i at the time of m = ``magnetizations`` and s_l one step before, at that of m' = ``previous``,
    to first order in the couplings: only the direct coupling of l to i counts. The error is proportional to the square
    of their strength. At strong couplings, with a standard deviation of 0.8 / sqrt(N) at beta = 1, the factor that
    ``delayed_correlations`` adds no longer helps, and this form estimates the entropy production better. Arguments and
    errors as for ``naive_step``. Source: Roudi & Hertz (2011), naive mean field.

    >>> first_order_delayed_correlations([0.5, 0.0], [0.0, 0.0], [[0.0, 0.2], [0.1, 0.3]], beta=1.0).shape
    (2, 2)
    """
    return _first_order_delayed(*_two_times(magnetizations, previous, couplings, beta))


def delayed_correlations(
    magnetizations: Magnetizations, previous: Magnetizations, couplings: Couplings, *, beta: Number
) -> Float[Array, "*batch N N"]:
    """D_il = beta J_il (1 - m_i^2) (1 - m'_l^2) (1 + 2 beta J_il m_i m'_l).

    ``first_order_delayed_correlations`` to second order in the couplings, with an error of third. Arguments and errors
    as there. Source: Bal (2023), label tapd.

    >>> delayed_correlations([0.5, 0.0], [0.5, 0.0], [[0.2, 0.2], [0.1, 0.3]], beta=1.0).shape
    (2, 2)
    """
    return _delayed(*_two_times(magnetizations, previous, couplings, beta))


def simulate(
    magnetizations: Magnetizations,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    steps: int,
    step: Step = tap_step,
    observable: Callable[[Array], Any] | None = None,
) -> Any:
    """m(1), ..., m(steps) from m(0) = ``magnetizations``, by repeated ``step``; the start is not included.

    ``step`` is ``tap_step``, ``naive_step`` or any function of the same arguments. The result is (steps, ..., N), all
    states; with an ``observable``, a function of one state (..., N), it is only what that returns, stacked over the
    steps. Other arguments and errors as for ``naive_step``. Compiled once for each step, observable and shape: pass the
    same function again, not a new lambda.

    >>> simulate([[1.0, 0.5], [0.0, 0.0]], [[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=2.0, steps=7).shape
    (7, 2, 2)
    >>> simulate([1.0, 0.5], [[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=2.0, steps=7, observable=jnp.mean).shape
    (7,)
    """
    m, J, h, beta = _state(magnetizations, couplings, fields, beta)
    m = jnp.broadcast_to(m, np.broadcast_shapes(m.shape, h.shape))
    return _simulate(m, J, h, beta, validate.count(steps, "steps", minimum=1), step, observable)


@partial(jax.jit, static_argnames=("steps", "step", "observable"))
def _simulate(
    m: Array, J: Array, h: Array, beta: Array, steps: int, step: Step, observable: Callable[[Array], Any] | None
) -> Any:
    def advance(m: Array, _: None) -> tuple[Array, Any]:
        m = step(m, J, h, beta=beta)
        return m, m if observable is None else observable(m)

    return jax.lax.scan(advance, m, length=steps)[1]


@partial(jax.jit, static_argnames=("step", "max_steps", "history"))
def _steady(
    m: Array, J: Array, h: Array, beta: Array, tol: Array, step: Step, max_steps: int, history: int
) -> FixedPoint:
    return fixed_point.solve(lambda m: step(m, J, h, beta=beta), m, tol=tol, max_steps=max_steps, history=history)


def steady_state(
    couplings: Couplings,
    fields: Float[ArrayLike, " #N"],
    *,
    beta: Number,
    step: Step = tap_step,
    start: Float[ArrayLike, " #N"] = 1.0,
    tol: Number = 1e-10,
    max_steps: int = 1000,
    history: int = 5,
) -> FixedPoint:
    """m = step(m), searched from ``start``, with the evidence and the derivatives of ``fixed_point.solve``.

    ``start`` is a number for all spins or (N,). There may be several such states (without fields, -m is a state if m
    is), or no stable state. With the default ``history`` the search takes tens of steps where repeated stepping takes
    thousands, but it may end in another state; ``history=0`` repeats the step itself. Other arguments and errors as for
    ``simulate``. For one system: several take ``jax.vmap``.

    >>> state = steady_state([[0.0, 1.0], [0.5, 0.0]], 0.1, beta=2.0, step=naive_step)
    >>> [round(float(x), 3) for x in state.value], bool(state.converged)
    ([0.95, 0.818], True)
    """
    dtype = validate.common_dtype(start, couplings, fields)
    J, h, beta = arguments.ising_model(couplings, fields, beta, dtype=dtype)
    if h.ndim != 1:
        raise ValueError(f"fields: expected a number or shape {J.shape[:1]}, got shape {h.shape}")
    m = validate.finite(start, "start", dtype=dtype)
    validate.broadcastable(m, "start", h.shape)
    m = arguments.magnetizations(jnp.broadcast_to(m, h.shape), "start", J.shape[0], dtype=dtype)
    # In half precision the default is below the smallest number.
    tol = validate.positive(tol, "tol", ndim=0, dtype=np.promote_types(dtype, np.float32))
    max_steps = validate.count(max_steps, "max_steps", minimum=1)
    return _steady(m, J, h, beta, tol, step, max_steps, validate.count(history, "history"))
