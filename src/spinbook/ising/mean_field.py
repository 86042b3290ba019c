"""Mean-field dynamics of binary spins with couplings of any symmetry, naive and TAP.

Spins are -1 or 1 and are all updated at once, P(s_i = 1 | s') = 1 / (1 + exp(-2 beta (h_i + sum_j J_ij s'_j))) with s'
the state before. A step takes the magnetizations m' of one time to those of the next. Leading axes of magnetizations
and fields are independent systems with the same couplings and beta; others take ``jax.vmap``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import fixed_point, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Positive, PositiveCount, checked
from spinbook.fixed_point import FixedPoint

__all__ = [
    "averaged_step",
    "collective_shift",
    "correlations",
    "delayed_correlations",
    "naive_step",
    "of_spins",
    "simulate",
    "steady_state",
    "tap_solve",
    "tap_step",
]

# Values of a standard normal number, for sums in the place of integrals: exact but for the tails, which are below 1e-8.
_NORMAL = np.linspace(-6.0, 6.0, 61)

# Newton's method needs four to six steps, and eleven where it is hardest.
_NEWTON_STEPS = 40


def of_spins(magnetizations: Array | np.ndarray, name: str) -> None:
    """Raise unless all magnetizations are from -1 to 1, but for the rounding of an average of spins that all agree."""
    largest = 1 + 64 * float(jnp.finfo(magnetizations.dtype).eps)
    validate.require(lambda x: abs(x) <= largest, magnetizations, name, "magnetizations from -1 to 1")


Means = Annotated[Float[ArrayLike, "*#batch N"], of_spins]
Couplings = Float[ArrayLike, "N N"]
Fields = Float[ArrayLike, "*#batch #N"]
Step = Callable[..., Array]


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
    """theta = a - b tanh(theta) for b >= 0, by Newton's method, and the steps that each system took.

    theta + b tanh(theta) is concave and increasing in theta > 0, and tanh(theta) is at most theta and at most 1: from
    max(|a| / (1 + b), |a| - b) the method climbs to |theta| and never passes it.
    """
    size = jnp.abs(a)
    start = jnp.maximum(size / (1 + b), size - b)
    negligible = 4 * jnp.finfo(start.dtype).eps * size

    def climb(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        theta, moving, num_steps = state
        m = jnp.tanh(theta)
        change = (size - theta - b * m) / (1 + b * (1 - m * m))
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


@checked(static=())
def naive_step(
    magnetizations: Means, couplings: Couplings, fields: Fields, *, beta: Positive
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
    return jnp.tanh(_drive(magnetizations, couplings, fields, beta))


@checked(static=())
def tap_solve(
    magnetizations: Means, couplings: Couplings, fields: Fields, *, beta: Positive, tol: Positive = 1e-10
) -> FixedPoint:
    """m_i = tanh(beta (h_i + sum_j J_ij m'_j) - m_i beta^2 sum_j J_ij^2 (1 - m'_j^2)), solved for m, with evidence.

    The magnetizations one step after m' = ``magnetizations``, to second order in the couplings. The last term, the
    Onsager correction, accounts for the fluctuations of the neighbours; with it the error of one step is proportional
    to the third power of the strength of the couplings. The expansion is good while beta^2 sum_j J_ij^2 is well below
    1.

    This is one equation m = tanh(a - b m) with b >= 0 for each spin, of one solution; Newton's method finds it to
    rounding. ``converged`` says that residual = max |tanh(a_i - b_i m_i) - m_i| is at most ``tol``, or 16 eps
    (1 + max b), which rounding allows. Each system of a batch has its own residual, ``num_steps`` and ``converged``.

    Arguments and errors as for ``naive_step``; differentiable to any order. Cost: 2 N^2.
    Source: Bal (2023), label tapm; Roudi & Hertz (2011); Aguilera, Moosavi & Shimazaki (2021).

    >>> solution = tap_solve([1.0, 0.5], [[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=2.0)
    >>> [round(float(x), 3) for x in solution.value], bool(solution.converged)
    ([0.489, -0.762], True)
    """
    a = _drive(magnetizations, couplings, fields, beta)
    a, b = jnp.broadcast_arrays(a, _onsager(magnetizations, couplings, beta))
    theta, num_steps = _self_consistent_field(a, b)
    new = jnp.tanh(theta)
    residual = jnp.max(jnp.abs(jnp.tanh(a - b * new) - new), axis=-1)
    # A rounding error of the new magnetization comes back multiplied by b.
    reachable = 16 * jnp.finfo(new.dtype).eps * (1 + jnp.max(b, axis=-1))
    return FixedPoint(new, residual, num_steps.astype(jnp.int32), residual <= jnp.maximum(tol, reachable))


@checked(static=())
def tap_step(
    magnetizations: Means, couplings: Couplings, fields: Fields, *, beta: Positive
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


@checked(static=())
def averaged_step(
    magnetizations: Means, couplings: Couplings, fields: Fields, *, beta: Positive
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
    m, normal = magnetizations, jnp.asarray(_NORMAL, magnetizations.dtype)
    mean, width = _drive(m, couplings, fields, beta), jnp.sqrt(_onsager(m, couplings, beta))
    mean, width = jnp.broadcast_arrays(mean, width)
    return jnp.tanh(mean[..., None] + jnp.multiply.outer(width, normal)) @ jax.nn.softmax(-(normal**2) / 2)


# A^(2^k) after so many squarings has either vanished or overflowed, unless A grows or shrinks by less than 1e-12.
_SQUARINGS = 42


@checked(static=())
def collective_shift(
    magnetizations: Annotated[Float[ArrayLike, " N"], of_spins], couplings: Couplings, *, beta: Positive
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
    m, J = magnetizations, couplings
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


@checked(static=())
def correlations(
    magnetizations: Means, previous: Means, couplings: Couplings, *, beta: Positive
) -> Float[Array, "*batch N N"]:
    """C_ik = beta^2 (1 - m_i^2) (1 - m_k^2) sum_j J_ij J_kj (1 - m'_j^2) for i != k, and C_ii = 1 - m_i^2.

    The covariance of s_i and s_k at the time of m = ``magnetizations``, from the neighbours they had in common when
    these had the magnetizations m' = ``previous``, to second order in the couplings. Correlations of earlier steps
    enter at fourth order, but where many couplings have one sign, as with J_ij = 1/N, they are as large as this one.
    Arguments and errors as for ``naive_step``. Cost: N^3. Source: Bal (2023), label tapc.

    >>> correlations([0.5, 0.0], [0.0, 0.0], [[0.0, 0.2], [0.1, 0.3]], beta=1.0).shape
    (2, 2)
    """
    J, (m, previous) = couplings, jnp.broadcast_arrays(magnetizations, previous)
    variance = 1 - m * m
    received = jnp.einsum("ij,kj,...j->...ik", J, J, 1 - previous * previous)
    between = beta**2 * variance[..., :, None] * variance[..., None, :] * received
    same = jnp.eye(J.shape[0], dtype=bool)
    return jnp.where(same, variance[..., :, None], between)


@checked(static=())
def delayed_correlations(
    magnetizations: Means, previous: Means, couplings: Couplings, *, beta: Positive
) -> Float[Array, "*batch N N"]:
    """D_il = beta J_il (1 - m_i^2) (1 - m'_l^2) (1 + 2 beta J_il m_i m'_l).

    The covariance of s_i at the time of m = ``magnetizations`` and s_l one step before, at that of m' = ``previous``,
    to second order in the couplings; without the last factor to first order. Only the direct coupling of l to i
    counts: spins that were correlated with l enter at third order, but where many couplings have one sign, as with
    J_ij = 1/N, they count as much. Arguments and errors as for ``naive_step``. Source: Bal (2023), label tapd; Roudi &
    Hertz (2011) for the first order.

    >>> delayed_correlations([0.5, 0.0], [0.5, 0.0], [[0.2, 0.2], [0.1, 0.3]], beta=1.0).shape
    (2, 2)
    """
    J, (m, previous) = couplings, jnp.broadcast_arrays(magnetizations, previous)
    slopes = (1 - m * m)[..., :, None] * (1 - previous * previous)[..., None, :]
    J = jnp.broadcast_to(J, slopes.shape)
    return beta * J * slopes * (1 + 2 * beta * J * m[..., :, None] * previous[..., None, :])


@checked(static=("steps", "step", "observable"))
def simulate(
    magnetizations: Means,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Positive,
    steps: PositiveCount,
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
    m = jnp.broadcast_to(magnetizations, jnp.broadcast_shapes(magnetizations.shape, fields.shape))

    def advance(m: Array, _: None) -> tuple[Array, Any]:
        m = step(m, couplings, fields, beta=beta)
        return m, m if observable is None else observable(m)

    return jax.lax.scan(advance, m, length=steps)[1]


@checked(static=("step", "max_steps"))
def steady_state(
    couplings: Couplings,
    fields: Float[ArrayLike, " #N"],
    *,
    beta: Positive,
    step: Step = tap_step,
    start: Annotated[Float[ArrayLike, " #N"], of_spins] = 1.0,
    tol: Positive = 1e-10,
    max_steps: PositiveCount = 1000,
) -> FixedPoint:
    """m = step(m), searched from ``start``, with the evidence and the derivatives of ``fixed_point.solve``.

    ``start`` is a number for all spins or (N,). There may be several such states (without fields, -m is a state if m
    is), or no stable state. The search takes tens of steps where repeated stepping takes thousands, but it may end in
    another state. Other arguments and errors as for ``simulate``. For one system: several take ``jax.vmap``.

    >>> state = steady_state([[0.0, 1.0], [0.5, 0.0]], 0.1, beta=2.0, step=naive_step)
    >>> [round(float(x), 3) for x in state.value], bool(state.converged)
    ([0.95, 0.818], True)
    """
    m = jnp.broadcast_to(start, couplings.shape[:1])
    return fixed_point.solve(lambda m: step(m, couplings, fields, beta=beta), m, tol=tol, max_steps=max_steps)
