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
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import fixed_point, sphere, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.checked import Positive, PositiveCount, checked
from spinbook.fixed_point import FixedPoint
from spinbook.sphere import Response, squared_length
from spinbook.vector import fluctuations
from spinbook.vector.fluctuations import COMPONENTS, Covariances, Rule, received, tap_field
from spinbook.vector.heads import by_heads, from_heads

__all__ = [
    "collective_mode",
    "flat_tap_step",
    "naive_step",
    "second_order_magnetization",
    "simulate",
    "spread_step",
    "steady_state",
    "tap_step",
]

# How many updates of its fields a step of TAP may take.
_TAP_UPDATES = 200

Means = Annotated[Float[ArrayLike, "*#batch N D"], sphere.inside_ball]
Couplings = Float[ArrayLike, "*heads N N"]
Fields = Annotated[Float[ArrayLike, "*#batch N D"], sphere.has_radius]
Step = Callable[..., Array]


def _by_system(function: Callable[..., Array], couplings: Array, *vectors: Array | None) -> Array:
    """``function(J, *vectors)`` of every system, with J (H, N, N) and vectors (H, N, D / H); None stays None."""
    J = couplings.reshape(-1, *couplings.shape[-2:])
    given = [a for a in vectors if a is not None]
    shape = jnp.broadcast_shapes(*(a.shape for a in given))

    def systems(a: Array) -> Array:
        return by_heads(jnp.broadcast_to(a, shape).reshape(math.prod(shape[:-2]), *shape[-2:]), len(J))

    flat = [None if a is None else systems(a) for a in vectors]
    return from_heads(jax.vmap(partial(function, J))(*flat)).reshape(shape)


def _gains(response: Response, magnetizations: Array, beta: Array) -> tuple[Array, sphere.Gains]:
    """The fields of spins with these means, and the gains there."""
    theta = response.inverse(magnetizations, beta, axes=COMPONENTS)
    return theta, response.gains(theta, beta, axes=COMPONENTS)


def _before(m: Array, gains: sphere.Gains, covariances: Rule, beta: Array) -> Covariances:
    """Of spins with the means m, what their fluctuations are taken to be."""
    return covariances(gains, squared_length(m, COMPONENTS), m.shape[0] * m.shape[2], beta)


@checked(static=("response",))
def naive_step(
    magnetizations: Means, couplings: Couplings, fields: Fields, *, beta: Positive, response: Response = sphere.large_d
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

    def step(J: Array, m: Array, x: Array) -> Array:
        return response(x + received(J, m), beta, axes=COMPONENTS)

    return _by_system(step, couplings, magnetizations, fields)


@checked(static=("response",))
def spread_step(
    magnetizations: Means, couplings: Couplings, fields: Fields, *, beta: Positive, response: Response = sphere.large_d
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

    def step(J: Array, m: Array, x: Array) -> Array:
        h = x + received(J, m)
        squared = squared_length(h, COMPONENTS) + fluctuations.spread(m, J)
        return response.gain(squared, h.shape[0] * h.shape[2], beta)[None, :, None] * h

    return _by_system(step, couplings, magnetizations, fields)


@checked(static=("response", "covariances"))
def tap_step(
    magnetizations: Means,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Positive,
    response: Response = sphere.large_d,
    covariances: Rule = fluctuations.of_senders,
    tol: Positive = 1e-10,
    start: Means | None = None,
) -> Float[Array, "*batch N D"]:
    """m_i = phi(theta_i), theta_i = x_i + sum_j J_ij m'_j + (1/2) (beta Var_i)^-1 d^2 m_i / da^2.

    The magnetizations one step after m' = ``magnetizations`` to second order in the couplings: the fluctuations of the
    neighbours change the mean of a spin, d^2 m_i / da^2 as in ``second_order_magnetization`` at these m_i. They enter
    themselves, so that an equation is solved for theta_i, until the change of theta is at most ``tol`` /
    max(1, beta/2) or what rounding allows; from the fields of the magnetizations ``start``, by default from
    x_i + sum_j J_ij m'_j; NaN where that fails, as it may where couplings are strong. Derivatives are implicit. The
    error of one step goes as the third power of the couplings if the response is ``sphere.exact``; for
    ``sphere.large_d`` its own error of order 1/D comes on top. ``covariances`` says what is taken for the fluctuations
    of the neighbours.
    Arguments and errors as for ``naive_step``. Cost: 3 N^2 D for each of some ten updates.
    Source: Bal (2023), labels tapmvector and ftheta, with the index of gamma corrected.

    >>> import jax
    >>> tap_step(jax.numpy.zeros((2, 4)), [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0).shape
    (2, 4)
    """

    def step(J: Array, m: Array, x: Array, start: Array | None) -> Array:
        before = _before(m, _gains(response, m, beta)[1], covariances, beta)
        drive = x + received(J, m)

        def update(theta: Array) -> Array:
            return tap_field(theta, response.gains(theta, beta, axes=COMPONENTS), drive, m, before, J)

        # Fields are free, where magnetizations must stay inside the ball. The response shrinks a change of the field by
        # beta / 2 at least.
        begin = drive if start is None else response.inverse(start, beta, axes=COMPONENTS)
        solution = fixed_point.solve(update, begin, tol=tol / jnp.maximum(1, beta / 2), max_steps=_TAP_UPDATES)
        return jnp.where(solution.converged, response(solution.value, beta, axes=COMPONENTS), jnp.nan)

    return _by_system(step, couplings, magnetizations, fields, start)


@checked(static=("response", "covariances"))
def flat_tap_step(
    magnetizations: Means,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Positive,
    response: Response = sphere.large_d,
    covariances: Rule = fluctuations.of_senders,
) -> Float[Array, "*batch N D"]:
    """The right-hand side of ``tap_step`` once, with the old magnetizations in the place of the new ones.

    The steady states of this step are those of ``tap_step``, and it solves no equation, so that it is the step to
    iterate towards one. It is no step in time. Source: Bal (2023), the function vector_tap_fp.

    >>> import jax
    >>> flat_tap_step(jax.numpy.zeros((2, 4)), [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0).shape
    (2, 4)
    """

    def step(J: Array, m: Array, x: Array) -> Array:
        theta, gains = _gains(response, m, beta)
        new = tap_field(theta, gains, x + received(J, m), m, _before(m, gains, covariances, beta), J)
        return response(new, beta, axes=COMPONENTS)

    return _by_system(step, couplings, magnetizations, fields)


@checked(static=("response", "covariances"))
def second_order_magnetization(
    magnetizations: Means,
    previous: Means,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Positive,
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

    def change(J: Array, new: Array, m: Array, x: Array) -> Array:
        theta, gains = _gains(response, new, beta)
        before = _before(m, _gains(response, m, beta)[1], covariances, beta)
        moments = fluctuations.field_moments(theta, x + received(J, m) - theta, m, before, J)
        return fluctuations.magnetization_change(theta, gains, moments)

    return _by_system(change, couplings, magnetizations, previous, fields)


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
    """m(1), ..., m(steps) from m(0) = ``magnetizations``, or ``observable`` of each; the start is not included.

    ``step`` is ``naive_step``, ``tap_step`` (the default) or a function like them; an option is bound with
    ``functools.partial``. The result has the steps in front, (steps, ..., N, D); ``observable``, a function of one
    state, keeps what it returns instead. Compiled once for each shape, step and observable. Arguments and errors as
    for ``naive_step``; ``steps`` >= 1.

    >>> import jax
    >>> m = jax.numpy.zeros((2, 4))
    >>> simulate(m, [[0.0, 1.0], [-1.0, 0.0]], jax.numpy.ones((2, 4)), beta=1.0, steps=5, step=naive_step).shape
    (5, 2, 4)
    """
    start = jnp.broadcast_to(magnetizations, jnp.broadcast_shapes(magnetizations.shape, fields.shape))

    def advance(m: Array, _: None) -> tuple[Array, Any]:
        new = step(m, couplings, fields, beta=beta)
        return new, new if observable is None else observable(new)

    return jax.lax.scan(advance, start, length=steps)[1]


@checked(static=("step", "max_steps"))
def steady_state(
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Positive,
    step: Step = flat_tap_step,
    start: Means | None = None,
    tol: Positive = 1e-10,
    max_steps: PositiveCount = 1000,
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
    # Any one-to-one map of the ball to all of space will do.
    to_ball, to_fields = sphere.large_d, sphere.large_d.inverse

    def solve(m: Array, x: Array) -> FixedPoint:
        def update(theta: Array) -> Array:
            return to_fields(step(to_ball(theta, beta), couplings, x, beta=beta), beta)

        start = to_fields(m, beta)
        solution = fixed_point.solve(update, start, tol=tol / jnp.maximum(1, beta / 2), max_steps=max_steps)
        value = to_ball(solution.value, beta)
        residual = jnp.max(jnp.abs(step(value, couplings, x, beta=beta) - value))
        return FixedPoint(value, residual, solution.num_steps, solution.converged)

    m, x = jnp.broadcast_arrays(to_ball(fields, beta) if start is None else start, fields)
    batch = x.shape[:-2]
    flat = jax.vmap(solve)(m.reshape(-1, *m.shape[-2:]), x.reshape(-1, *x.shape[-2:]))
    return jax.tree.map(lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), flat)


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
    J, m = validate.known_numbers(couplings, "couplings"), validate.known_numbers(magnetizations, "magnetizations")
    if m.ndim != 2 or J.shape != (len(m), len(m)):
        raise ValueError(f"couplings: expected shape (N, N) for magnetizations (N, D), got {J.shape} for {m.shape}")
    sphere.inside_ball(m, "magnetizations")
    variance = np.mean(sphere.squared_radius(m.shape[1]) - np.sum(m**2, axis=1)) / m.shape[1]
    chi = validate.number(beta, "beta", above=0) * float(variance)
    q = len(m) * float(np.mean(np.sum(J**2, axis=1)))
    return chi, chi**2 / (1 - chi**2) if chi < 1 else math.nan, q
