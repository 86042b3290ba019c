"""Mean-field dynamics of vector spins with couplings of any symmetry: naive, spread and TAP.

Spins are vectors of D > 2 components on the sphere of radius R, R^2 = D/2 - 1, all updated at once: given the spins s'
before, spin i has a density proportional to exp(beta s . h_i) in the field h_i = x_i + sum_j J_ij s'_j. A step takes
the magnetizations m' of one time to those of the next. Magnetizations and fields are (..., N, D), couplings (N, N), or
(H, N, N) where ``couplings[h]`` couples only the h-th of H equal slices of the components; leading axes of
magnetizations and fields are independent systems with the same couplings.

The response phi, a spin's mean as a function of its field, is an argument: ``sphere.large_d`` (the default, and the
source's) or ``sphere.exact``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import arguments, fixed_point, sphere, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.fixed_point import FixedPoint
from spinbook.sphere import Response, squared_length
from spinbook.vector import fluctuations
from spinbook.vector.fluctuations import COMPONENTS, Covariances, Rule, received, tap_field
from spinbook.vector.heads import by_heads, from_heads

__all__ = [
    "collective_mode",
    "flat_tap_step",
    "message_passing_step",
    "naive_step",
    "second_order_magnetization",
    "simulate",
    "spread_step",
    "steady_state",
    "tap_solve",
    "tap_step",
]

# How many updates of its fields a step of TAP may take.
_TAP_UPDATES = 200

Magnetizations = Float[ArrayLike, "*batch N D"]
Couplings = Float[ArrayLike, "*heads N N"]
Fields = Float[ArrayLike, "*#batch N D"]


def _state(magnetizations: Any, couplings: Any, fields: Any, beta: Any) -> tuple[Array, Array, Array, Array]:
    dtype = validate.common_dtype(magnetizations, couplings, fields)
    J, x, beta = arguments.vector_model(couplings, fields, beta, dtype=dtype)
    m = arguments.sites(magnetizations, "magnetizations", J.shape[-1], dtype=dtype, dim=x.shape[-1])
    sphere.inside_ball(m)
    if m.shape == x.shape:
        return m, J, x, beta
    try:
        m, x = jnp.broadcast_arrays(m, x)
    except ValueError:
        raise ValueError(
            f"fields: expected leading axes that broadcast with those of magnetizations, {m.shape[:-2]}, "
            f"got {x.shape[:-2]}"
        ) from None
    return m, J, x, beta


def _beside(value: Any, name: str, m: Array) -> Array | None:
    """Further magnetizations, of the step before or to start from, in the shape of m; None as it is."""
    if value is None:
        return None
    b = arguments.sites(value, name, m.shape[-2], dtype=m.dtype, dim=m.shape[-1])
    sphere.inside_ball(b, name)
    try:
        return jnp.broadcast_to(b, m.shape)
    except ValueError:
        raise ValueError(
            f"{name}: expected leading axes that broadcast to {m.shape[:-2]}, got {b.shape[:-2]}"
        ) from None


def _batched(function: Callable[..., Any], num_arrays: int, *arrays: Any) -> Any:
    """``function`` of the first arrays by heads, one system at a time, and of the others as they are."""
    first, others = arrays[:num_arrays], arrays[num_arrays:]
    J = others[0]
    batch = first[0].shape[:-2]
    flat = [a if a is None else by_heads(a.reshape(math.prod(batch), *a.shape[-2:]), len(J)) for a in first]
    out = jax.vmap(lambda *systems: function(*systems, *others))(*flat)

    def restored(leaf: Array) -> Array:
        leaf = from_heads(leaf) if leaf.ndim == 4 else leaf
        return leaf.reshape(*batch, *leaf.shape[1:])

    return jax.tree.map(restored, out)


def _before(m: Array, response: Response, covariances: Rule, beta: Array) -> Covariances:
    """Of spins with the means m, what their fluctuations are taken to be."""
    gains = response.gains(response.inverse(m, beta, axes=COMPONENTS), beta, axes=COMPONENTS)
    return covariances(gains, squared_length(m, COMPONENTS), m.shape[0] * m.shape[2], beta)


@partial(jax.jit, static_argnames="response")
def _naive(m: Array, J: Array, x: Array, beta: Array, response: Response) -> Array:
    def step(m: Array, x: Array, J: Array) -> Array:
        return response(x + received(J, m), beta, axes=COMPONENTS)

    return _batched(step, 2, m, x, J)


@partial(jax.jit, static_argnames="response")
def _spread(m: Array, J: Array, x: Array, beta: Array, response: Response) -> Array:
    def step(m: Array, x: Array, J: Array) -> Array:
        h = x + received(J, m)
        squared = squared_length(h, COMPONENTS) + fluctuations.spread(m, J)
        return response.gain(squared, h.shape[0] * h.shape[2], beta)[None, :, None] * h

    return _batched(step, 2, m, x, J)


@partial(jax.jit, static_argnames=("response", "covariances", "max_steps"))
def _tap(
    m: Array,
    start: Array | None,
    J: Array,
    x: Array,
    beta: Array,
    tol: Array,
    response: Response,
    covariances: Rule,
    max_steps: int,
) -> FixedPoint:
    def solve(m: Array, start: Array | None, x: Array, J: Array) -> FixedPoint:
        before = _before(m, response, covariances, beta)
        drive = x + received(J, m)

        def update(theta: Array) -> Array:
            return tap_field(theta, response.gains(theta, beta, axes=COMPONENTS), drive, m, before, J)

        def respond(theta: Array) -> Array:
            return response(theta, beta, axes=COMPONENTS)

        # Fields are free, where magnetizations must stay inside the ball. The response shrinks a change of the field by
        # beta / 2 at least.
        begin = drive if start is None else response.inverse(start, beta, axes=COMPONENTS)
        solution = fixed_point.solve(update, begin, tol=tol / jnp.maximum(1, beta / 2), max_steps=max_steps)
        new = respond(solution.value)
        residual = jnp.max(jnp.abs(respond(update(solution.value)) - new))
        return FixedPoint(new, residual, solution.num_steps, solution.converged)

    return _batched(solve, 3, m, start, x, J)


@partial(jax.jit, static_argnames=("response", "covariances"))
def _tap_step(
    m: Array, start: Array | None, J: Array, x: Array, beta: Array, tol: Array, response: Response, covariances: Rule
) -> Array:
    """The solution or NaN, in a program that leaves out the evidence."""
    solution = _tap(m, start, J, x, beta, tol, response, covariances, _TAP_UPDATES)
    return jnp.where(solution.converged[..., None, None], solution.value, jnp.nan)


@partial(jax.jit, static_argnames=("response", "covariances"))
def _flat_tap(
    m: Array, before: Array | None, J: Array, x: Array, beta: Array, response: Response, covariances: Rule
) -> Array:
    def step(m: Array, before: Array | None, x: Array, J: Array) -> Array:
        theta = response.inverse(m, beta, axes=COMPONENTS)
        gains = response.gains(theta, beta, axes=COMPONENTS)
        senders = covariances(gains, squared_length(m, COMPONENTS), m.shape[0] * m.shape[2], beta)
        if before is not None:
            theta = response.inverse(before, beta, axes=COMPONENTS)
            gains = response.gains(theta, beta, axes=COMPONENTS)
        new = tap_field(theta, gains, x + received(J, m), m, senders, J)
        return response(new, beta, axes=COMPONENTS)

    return _batched(step, 3, m, before, x, J)


@partial(jax.jit, static_argnames="response")
def _message_passing(m: Array, before: Array | None, J: Array, x: Array, beta: Array, response: Response) -> Array:
    def step(m: Array, before: Array | None, x: Array, J: Array) -> Array:
        b = fluctuations.reaction(m, J, beta)
        lagged = m if before is None else before
        return response(x + received(J, m) - b[None, :, None] * lagged, beta, axes=COMPONENTS)

    return _batched(step, 3, m, before, x, J)


@partial(jax.jit, static_argnames=("response", "covariances"))
def _second_order(
    new: Array, m: Array, J: Array, x: Array, beta: Array, response: Response, covariances: Rule
) -> Array:
    def change(new: Array, m: Array, x: Array, J: Array) -> Array:
        theta = response.inverse(new, beta, axes=COMPONENTS)
        before = _before(m, response, covariances, beta)
        moments = fluctuations.field_moments(theta, x + received(J, m) - theta, m, before, J)
        return fluctuations.magnetization_change(theta, response.gains(theta, beta, axes=COMPONENTS), moments)

    return _batched(change, 3, new, m, x, J)


def naive_step(
    magnetizations: Magnetizations,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    response: Response = sphere.large_d,
) -> Float[Array, "*batch N D"]:
    """m_i = phi(x_i + sum_j J_ij m'_j).

    The magnetizations one step after m' = ``magnetizations`` (..., N, D), to first order in the couplings: each spin
    responds to the mean of its neighbours and not to their fluctuations. The error of one step goes as the square of
    the couplings, besides that of the response. ``couplings`` (N, N) or (H, N, N) may have any symmetry and a diagonal,
    ``fields`` is (N, D) or (..., N, D); leading axes broadcast. Of the response only the length of the whole vector
    counts, so heads share one norm.
    Cost: N^2 D. Raises ``ValueError`` for couplings that are not square, heads that do not divide D, shapes that do not
    fit, NaN, |m'| >= R, D <= 2 and beta <= 0. Source: Bal (2023), label naivemvector.

    >>> import jax
    >>> m = naive_step(jax.numpy.zeros((2, 4)), [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0)
    >>> [round(number, 4) for number in m[0].tolist()]
    [0.309, 0.309, 0.309, 0.309]
    """
    return _naive(*_state(magnetizations, couplings, fields, beta), response)


def spread_step(
    magnetizations: Magnetizations,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    response: Response = sphere.large_d,
) -> Float[Array, "*batch N D"]:
    """m_i = f(|h_i|^2 + sum_j J_ij^2 (R^2 - |m'_j|^2)) h_i, h_i = x_i + sum_j J_ij m'_j, where phi(h) = f(|h|^2) h.

    ``naive_step`` with one more line. Neighbours have the length R at every moment; what they fluctuate is nearly all
    across the mean field of a spin, and makes the field longer without turning it. Good to all orders in the couplings
    where the components are many and the neighbours independent; what is left out is of order 1/D, and what many
    neighbours fluctuate in common, see ``collective_mode``. Several heads act by their mean J^2. Pass it to
    ``steady_state`` as ``step``; with ``response=sphere.exact`` where attention changes little. Arguments and errors as
    for ``naive_step``. Cost: N^2 (D + 1). Source: derived in the chapter spin-transformers; Mezard and Sakellariou
    (2011) for binary spins.

    >>> m = spread_step(jax.numpy.zeros((2, 4)), [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0)
    >>> m[0].round(4).tolist()
    [0.2899, 0.2899, 0.2899, 0.2899]
    """
    return _spread(*_state(magnetizations, couplings, fields, beta), response)


def tap_step(
    magnetizations: Magnetizations,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    response: Response = sphere.large_d,
    covariances: Rule = fluctuations.of_senders,
    tol: Number = 1e-10,
    start: Float[ArrayLike, "*#batch N D"] | None = None,
) -> Float[Array, "*batch N D"]:
    """m_i = phi(theta_i), theta_i = x_i + sum_j J_ij m'_j + (1/2) (beta Var_i)^-1 d^2 m_i / da^2.

    The magnetizations one step after m' = ``magnetizations`` to second order in the couplings: the fluctuations of the
    neighbours change the mean of a spin, d^2 m_i / da^2 as in ``second_order_magnetization`` at these m_i. They enter
    themselves, so that an equation is solved for theta_i, from ``start`` as in ``tap_solve``; NaN where that fails. The
    error of one step goes as the third power of the couplings if the response is ``sphere.exact``; for
    ``sphere.large_d`` its own error of order 1/D comes on top. ``covariances`` says what is taken for the fluctuations
    of the neighbours.
    Arguments and errors as for ``naive_step``. Cost: 3 N^2 D for each of some ten updates.
    Source: Bal (2023), labels tapmvector and ftheta, with the index of gamma corrected.

    >>> import jax
    >>> tap_step(jax.numpy.zeros((2, 4)), [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0).shape
    (2, 4)
    """
    m, J, x, beta = _state(magnetizations, couplings, fields, beta)
    tol = validate.positive(tol, "tol", ndim=0, dtype=m.dtype)
    return _tap_step(m, _beside(start, "start", m), J, x, beta, tol, response, covariances)


def tap_solve(
    magnetizations: Magnetizations,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    response: Response = sphere.large_d,
    covariances: Rule = fluctuations.of_senders,
    tol: Number = 1e-10,
    max_steps: int = _TAP_UPDATES,
    start: Float[ArrayLike, "*#batch N D"] | None = None,
) -> FixedPoint:
    """The magnetizations of ``tap_step`` with the evidence that they solve its equations.

    ``value`` m solves theta_i = x_i + sum_j J_ij m'_j + the Onsager field at theta_i, m_i = phi(theta_i); ``residual``
    is the largest change of m in another update, ``converged`` that the change of theta was at most
    ``tol`` / max(1, beta/2), or what rounding allows: one number for each system. Where the couplings are strong there
    may be no solution, or the search may not find it. It begins at the fields of the magnetizations ``start``, by
    default at x_i + sum_j J_ij m'_j; near a steady state m' are the shorter way. Derivatives are implicit. Arguments
    and errors as for ``tap_step``.

    >>> import jax
    >>> solution = tap_solve(jax.numpy.zeros((2, 4)), [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0)
    >>> solution.value.shape, bool(solution.converged)
    ((2, 4), True)
    """
    m, J, x, beta = _state(magnetizations, couplings, fields, beta)
    tol = validate.positive(tol, "tol", ndim=0, dtype=m.dtype)
    max_steps = validate.count(max_steps, "max_steps", minimum=1)
    return _tap(m, _beside(start, "start", m), J, x, beta, tol, response, covariances, max_steps)


def flat_tap_step(
    magnetizations: Magnetizations,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    response: Response = sphere.large_d,
    covariances: Rule = fluctuations.of_senders,
    before: Float[ArrayLike, "*#batch N D"] | None = None,
) -> Float[Array, "*batch N D"]:
    """The right-hand side of ``tap_step`` once, with the old magnetizations in the place of the new ones.

    The steady states of this step are those of ``tap_step``, and it solves no equation, so that it is the step to
    iterate towards one. It is no step in time. With ``before``, the magnetizations of one step earlier, the Onsager
    field is that of these; steady states stay. Source: Bal (2023), the function vector_tap_fp.

    >>> import jax
    >>> flat_tap_step(jax.numpy.zeros((2, 4)), [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0).shape
    (2, 4)
    """
    m, J, x, beta = _state(magnetizations, couplings, fields, beta)
    return _flat_tap(m, _beside(before, "before", m), J, x, beta, response, covariances)


def message_passing_step(
    magnetizations: Magnetizations,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    response: Response = sphere.large_d,
    before: Float[ArrayLike, "*#batch N D"] | None = None,
) -> Float[Array, "*batch N D"]:
    """m_i = phi(x_i + sum_j J_ij m'_j - b_i m''_i), b_i = (beta / D) sum_j J_ij^2 (R^2 - |m'_j|^2).

    m' = ``magnetizations``, m'' = ``before`` those of one step earlier, or m' where it is None. With m'' and symmetric
    random couplings this is approximate message passing: the field holds what m''_i itself has sent out and got back,
    and b_i m''_i takes it out again, so that fields are normal, of variance g^2 |m'|^2 / D across x. Steady states do
    not know of the lag. They are those of ``flat_tap_step`` up to 1 / D and the fourth order in J, and always exist,
    because the step maps the ball continuously into itself; it may still not be stable. Several heads act by their mean
    J^2, see ``fluctuations.reaction``. Arguments and errors as for ``naive_step``. Cost: N^2 (D + 1).
    Source: Feng et al. (2021) for binary spins; for vectors TAP without the square of v_i, D large.

    >>> import jax
    >>> message_passing_step(jax.numpy.zeros((2, 4)), [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0).shape
    (2, 4)
    """
    m, J, x, beta = _state(magnetizations, couplings, fields, beta)
    return _message_passing(m, _beside(before, "before", m), J, x, beta, response)


def second_order_magnetization(
    magnetizations: Magnetizations,
    previous: Float[ArrayLike, "*#batch N D"],
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    response: Response = sphere.large_d,
    covariances: Rule = fluctuations.of_senders,
) -> Float[Array, "*batch N D"]:
    """d^2 m_i / da^2 = E[phi''(theta_i)(dh_i, dh_i)] at a = 0, with phi(theta_i) = m_i.

    with dh_i = x_i + sum_j J_ij s_j - theta_i and independent spins s_j of means ``previous``: how the mean of spin i
    curves as the couplings are turned on. For H heads J_ij stands for a block-diagonal matrix, and the expectation
    holds the products J^h_ij J^k_ij, which the covariance of s_j joins. Both magnetizations are (..., N, D). Arguments
    and errors as for ``naive_step``. Source: Bal (2023), label secondordercorrections, with the index of gamma
    corrected; for many heads derived here.

    >>> import jax
    >>> m = jax.numpy.full((2, 4), 0.2)
    >>> second_order_magnetization(m, m, [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0).shape
    (2, 4)
    """
    dtype = validate.common_dtype(magnetizations, previous, couplings, fields)
    m, J, x, beta = _state(validate.finite(previous, "previous", dtype=dtype), couplings, fields, beta)
    new = arguments.sites(magnetizations, "magnetizations", x.shape[-2], dtype=dtype, dim=x.shape[-1])
    sphere.inside_ball(new)
    new, m, x = jnp.broadcast_arrays(new, m, x)
    return _second_order(new, m, J, x, beta, response, covariances)


Step = Callable[..., Array]


def simulate(
    magnetizations: Magnetizations,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Number,
    steps: int,
    step: Step = tap_step,
    observable: Callable[[Array], Any] | None = None,
    lagged: bool = False,
) -> Any:
    """m(1), ..., m(steps) from m(0) = ``magnetizations``, or ``observable`` of each; the start is not included.

    ``step`` is ``naive_step``, ``tap_step`` (the default) or a function like them; an option is bound with
    ``functools.partial``. The result has the steps in front, (steps, ..., N, D); ``observable``, a function of one
    state, keeps what it returns instead. ``lagged`` passes to a step that takes it, such as ``message_passing_step``,
    also the magnetizations ``before``, which are zero before the start. Compiled once for each shape, step and
    observable. Arguments and errors as for ``naive_step``; ``steps`` >= 1.

    >>> import jax
    >>> m = jax.numpy.zeros((2, 4))
    >>> simulate(m, [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0, steps=5, step=naive_step).shape
    (5, 2, 4)
    """
    m, J, x, beta = _state(magnetizations, couplings, fields, beta)
    steps = validate.count(steps, "steps", minimum=1)
    return _simulate(m, J, x, beta, steps, step, observable, lagged)


@partial(jax.jit, static_argnames=("steps", "step", "observable", "lagged"))
def _simulate(
    m: Array,
    J: Array,
    x: Array,
    beta: Array,
    steps: int,
    step: Step,
    observable: Callable[[Array], Any] | None,
    lagged: bool,
) -> Any:
    def advance(states: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Any]:
        m, before = states
        new = step(m, J, x, beta=beta, **({"before": before} if lagged else {}))
        return (new, m), new if observable is None else observable(new)

    return jax.lax.scan(advance, (m, jnp.zeros_like(m)), length=steps)[1]


@partial(jax.jit, static_argnames=("step", "max_steps"))
def _steady(m: Array, J: Array, x: Array, beta: Array, tol: Array, step: Step, max_steps: int) -> FixedPoint:
    # Any one-to-one map of the ball to all of space will do.
    to_ball, to_fields = sphere.large_d, sphere.large_d.inverse

    def solve(m: Array, x: Array) -> FixedPoint:
        def update(theta: Array) -> Array:
            return to_fields(step(to_ball(theta, beta), J, x, beta=beta), beta)

        start = to_fields(m, beta)
        solution = fixed_point.solve(update, start, tol=tol / jnp.maximum(1, beta / 2), max_steps=max_steps)
        value = to_ball(solution.value, beta)
        residual = jnp.max(jnp.abs(step(value, J, x, beta=beta) - value))
        return FixedPoint(value, residual, solution.num_steps, solution.converged)

    batch = m.shape[:-2]
    flat = jax.vmap(solve)(m.reshape(-1, *m.shape[-2:]), x.reshape(-1, *x.shape[-2:]))
    return jax.tree.map(lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), flat)


def steady_state(
    couplings: Couplings,
    fields: Float[ArrayLike, "*batch N D"],
    *,
    beta: Number,
    step: Step = flat_tap_step,
    start: Float[ArrayLike, "*#batch N D"] | None = None,
    tol: Number = 1e-10,
    max_steps: int = 1000,
) -> FixedPoint:
    """m = step(m): the magnetizations that a step leaves alone, near ``start``.

    ``step`` is ``naive_step``, ``spread_step``, ``flat_tap_step`` (the default; its steady states are those of
    ``tap_step``) or a function like them. The search is accelerated and runs in fields, so that magnetizations stay
    inside the ball; whether plain stepping would arrive is another question. It starts from ``start``, by default the
    answer to the fields alone. Evidence for each system: ``residual`` is the largest |step(m) - m|, and ``converged``
    says that the change of an update, in fields, was at most ``tol`` / max(1, beta/2), or what rounding allows.
    Derivatives with respect to what was passed are implicit, see ``fixed_point.solve``. Arguments and errors as for
    ``naive_step``.

    >>> import jax
    >>> solution = steady_state([[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0)
    >>> solution.value.shape, bool(solution.converged)
    ((2, 4), True)
    """
    begin = sphere.magnetization_large_d(fields, beta=beta) if start is None else start
    m, J, x, beta = _state(begin, couplings, fields, beta)
    tol = validate.positive(tol, "tol", ndim=0, dtype=m.dtype)
    max_steps = validate.count(max_steps, "max_steps", minimum=1)
    return _steady(m, J, x, beta, tol, step, max_steps)


def collective_mode(
    couplings: Float[ArrayLike, "N N"], magnetizations: Float[ArrayLike, "N D"], *, beta: Number
) -> tuple[float, float, float]:
    """chi, r = chi^2 / (1 - chi^2) and q = N mean_i sum_j J_ij^2, for couplings whose rows sum to one.

    ``chi`` is beta times the variance of a spin per component, (R^2 - |m|^2) / D, averaged over spins. A fluctuation
    that all spins share comes back through rows that sum to one, times chi at every step, and so adds r to the
    correlations of independent sites. Naive delayed correlations are then wrong by r / sqrt(q + 2 r + r^2), and TAP's
    means by r / (q + r) of the error of naive ones. Where chi is one or more the fluctuation does not die out, and r is
    NaN. Raises ``ValueError`` for magnetizations as long as the radius, and for numbers whose squares overflow.

    >>> [round(number, 6) for number in collective_mode(np.full((4, 4), 0.25), np.zeros((4, 6)), beta=1.0)]
    [0.333333, 0.125, 1.0]
    """
    J = np.array(validate.known_numbers(couplings, "couplings"))
    if J.ndim != 2 or J.shape[0] != J.shape[1] or J.size == 0:
        raise ValueError(f"couplings: expected a square matrix (N, N), got shape {J.shape}")
    m = validate.known_numbers(magnetizations, "magnetizations")
    if m.ndim != 2 or len(m) != len(J):
        raise ValueError(f"magnetizations: expected shape ({len(J)}, D), got shape {m.shape}")
    dim = m.shape[1]
    sphere.inside_ball(m)
    inverse = validate.known_numbers(beta, "beta")
    validate.positive(inverse, "beta", ndim=0)
    chi = float(inverse) * float(np.mean(sphere.squared_radius(dim) - np.sum(m**2, axis=1))) / dim
    with np.errstate(over="ignore"):
        q = len(m) * float(np.mean(np.sum(J**2, axis=1)))
    return chi, chi**2 / (1 - chi**2) if chi < 1 else math.nan, q
