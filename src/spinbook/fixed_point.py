"""Solve y = f(y) in JAX with evidence, and differentiate the solution implicitly.

The solver is our own because none that we know combines Anderson acceleration with implicit derivatives in JAX: in
optimistix it is proposed and not merged (pull requests 145 and 217). PyTorch has ``adaptive_tap.implicit``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Int, PyTree

from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Number

__all__ = ["FixedPoint", "solve"]

# Rounding in f keeps the residual from falling below a few units in the last place.
_FLOOR = 16
# So many evaluations without a better y mean that rounding is all that is left of the residual.
_PATIENCE = 10
# What keeps the equations of nearly parallel steps solvable, in units in the last place.
_RIDGE = 10
# The equations of derivatives are as hard as the last steps of the solution, without their free choice of a start.
# Over random networks, five steps of memory fail where ten do not.
_ADJOINT_HISTORY, _ADJOINT_STEPS = 10, 1000


class FixedPoint(NamedTuple):
    """What was found, and how good it is.

    ``value``: y. ``residual``: max |f(y) - y| over all entries of this very y, not divided by anything.
    ``num_steps``: updates made. ``converged``: whether every entry of f(y) - y is within its tolerance, and rounding
    leaves y determined.
    """

    value: PyTree[Float[Array, "..."]]
    residual: Float[Array, "..."]
    num_steps: Int[Array, "..."]
    converged: Bool[Array, "..."]


def _excess(y: Array, step: Array, tol: Array, by_entry: bool) -> tuple[Array, Array]:
    """max |f(y) - y| in units of the tolerance: what is aimed at, and what is accepted where no more comes.

    Aimed at is ``tol`` or the rounding of the entry itself. Sums of entries of order one round to units of order one;
    an entry that is smaller may get no further. Without ``by_entry`` the largest entry decides.
    """
    size = jnp.abs(y)
    largest = jnp.max(size, initial=0)
    common = jnp.minimum(largest, 1) if by_entry else largest
    unit = _FLOOR * float(jnp.finfo(y.dtype).eps)
    aimed = jnp.maximum(tol, unit * (size if by_entry else largest))
    accepted = jnp.maximum(tol, unit * jnp.maximum(size, common))
    return jnp.max(jnp.abs(step) / aimed, initial=0), jnp.max(jnp.abs(step) / accepted, initial=0)


def _extrapolation(differences: Array, residual: Array) -> Array:
    """gamma that minimises |residual - gamma @ differences|; 0 for rows of zeros."""
    # Rows of unit length, or the newest differences, by far the shortest, would drown in the regularisation.
    lengths = jnp.linalg.norm(differences, axis=1)
    lengths = jnp.where(lengths > 0, lengths, 1)
    rows = differences / lengths[:, None]
    gram, eps = rows @ rows.T, float(jnp.finfo(rows.dtype).eps)

    def solved(ridge: float) -> Array:
        regular = gram + ridge * jnp.eye(len(rows), dtype=rows.dtype)
        return jax.scipy.linalg.solve(regular, rows @ residual, assume_a="pos")

    # In long rows the products are rounded by more than that: the matrix may be indefinite, and gamma NaN.
    gamma = solved(_RIDGE * eps)
    gamma = jnp.where(jnp.isfinite(gamma).all(), gamma, solved(eps**0.5))
    return gamma / lengths


class _State(NamedTuple):
    # Where f is evaluated next, and where it was evaluated last.
    next_y: Array
    y: Array
    # f(y) - y
    step: Array
    best_y: Array
    best_residual: Array
    # In units of the tolerance aimed at, and whether this y counts as solved.
    best_excess: Array
    best_solved: Array
    evaluations: Array
    # Evaluations since the best y.
    waited: Array
    # |change of f(y) - y| / |change of y| over the last move that rounding does not blur; negative before there is one.
    gap: Array
    unfinished: Array
    # The newest differences of y and of f(y) - y between successive iterates, in a ring.
    y_differences: Array
    step_differences: Array


def _iterate(
    f: Callable[[Array], Array], y0: Array, tol: Array, max_steps: int, history: int, *, by_entry: bool
) -> tuple[Array, tuple[Array, ...]]:
    eps = float(jnp.finfo(y0.dtype).eps)
    # The move over which slopes are told best from values that are rounded, and the relative error that is allowed.
    third = eps ** (1 / 3)

    def advance(state: _State) -> _State:
        y = state.next_y
        step = f(y) - y
        residual = jnp.max(jnp.abs(step), initial=0)
        excess, accepted = _excess(y, step, tol, by_entry)
        # Before the first step there is no difference, and a row of zeros is ignored.
        known = state.evaluations > 0
        move_before, change = jnp.where(known, y - state.y, 0), jnp.where(known, step - state.step, 0)
        # Where rounding exceeds the tolerance y is only as good as 1 - slope is large: a slope that rounds to one hides
        # that there is no solution.
        size = jnp.abs(y)
        hidden = by_entry & (_FLOOR * eps * size > tol)
        remaining, moved, changed = (
            jnp.max(jnp.where(hidden, jnp.abs(x) / jnp.where(hidden, size, 1), 0), initial=0)
            for x in (step, move_before, change)
        )
        blurred = moved <= third
        gap = jnp.where(blurred, state.gap, jnp.maximum(changed - 4 * eps, 0) / jnp.where(blurred, 1, moved))
        determined = ~hidden.any() | (remaining + eps <= third * gap)
        solved = (accepted <= 1) & determined
        better = (solved & ~state.best_solved) | ((solved | ~state.best_solved) & (excess < state.best_excess))
        best_solved = state.best_solved | solved
        waited = jnp.where(better, 0, state.waited + 1)
        finished = (solved & (excess <= 1)) | (best_solved & (waited >= _PATIENCE))
        move = step
        y_differences, step_differences = state.y_differences, state.step_differences
        if history:
            slot = state.evaluations % history
            y_differences = y_differences.at[slot].set(move_before)
            step_differences = step_differences.at[slot].set(change)
            gamma = _extrapolation(step_differences, step)
            move = step - gamma @ (y_differences + step_differences)
        # A start that looks solved is tried a little beside it.
        move = jnp.where((accepted <= 1) & hidden.any() & (gap < 0), 2 * third * y, move)
        return _State(
            y + move,
            y,
            step,
            jnp.where(better, y, state.best_y),
            jnp.where(better, residual, state.best_residual),
            jnp.where(better, excess, state.best_excess),
            best_solved,
            state.evaluations + 1,
            waited,
            gap,
            # False for a NaN and for infinity, from which there is no way back.
            ~finished & (residual < jnp.inf),
            y_differences,
            step_differences,
        )

    def unfinished(state: _State) -> Array:
        return state.unfinished & (state.evaluations <= max_steps)

    # f is called in the loop only. Called on a start that is a constant of the compiled function, it can give NaN:
    # jaxlib 0.10.2 multiplies a softmax of 512 x 512 and more with a constant wrongly on CPUs.
    empty = jnp.zeros((history, *y0.shape), y0.dtype)
    worst = jnp.array(jnp.inf, y0.dtype)
    none, yes = jnp.zeros((), jnp.int32), jnp.array(True)
    start = _State(
        y0, y0, jnp.zeros_like(y0), y0, worst, worst, ~yes, none, none, -jnp.ones((), y0.dtype), yes, empty, empty
    )
    last = jax.lax.while_loop(unfinished, advance, start)
    # The rule for derivatives takes only floating numbers along.
    evidence = last.best_residual, last.evaluations - 1, last.best_solved
    return last.best_y, tuple(entry.astype(y0.dtype) for entry in evidence)


# As jax.lax.custom_root, which traces the linear system of the derivatives also where none are taken.
@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _root(
    image: Callable[[list[Any], Array], Array], max_steps: int, history: int, consts: list[Any], y0: Array, tol: Array
) -> tuple[Array, tuple[Array, ...]]:
    """y with image(consts, y) = y, and the evidence."""
    return _iterate(partial(image, consts), y0, tol, max_steps, history, by_entry=True)


@_root.defjvp
def _root_jvp(
    image: Callable[[list[Any], Array], Array],
    max_steps: int,
    history: int,
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> Any:
    consts, _, tol = primals
    value, evidence = _root(image, max_steps, history, *primals)
    pushed = jax.jvp(lambda consts: image(consts, value), (consts,), (tangents[0],))[1]
    apply = jax.linearize(lambda y: image(consts, y) - y, value)[1]

    def solved(apply: Callable[[Array], Array], b: Array) -> Array:
        """x with apply(x) = b, where apply(x) = A x - x, as the fixed point of A x - b; NaN where that was not reached.

        The equations are linear, so that the norm of their residual bounds their error.
        """
        size = jnp.max(jnp.abs(b), initial=0)
        size = jnp.where(size > 0, size, 1)
        unit, steps = b / size, max(max_steps, _ADJOINT_STEPS)
        x, (_, _, converged) = _iterate(
            lambda x: apply(x) + x - unit, -unit, tol, steps, _ADJOINT_HISTORY, by_entry=False
        )
        return jnp.where(converged.astype(bool), x * size, jnp.nan)

    tangent = jax.lax.custom_linear_solve(apply, -pushed, solved, solved)
    return (value, evidence), (tangent, jax.tree.map(jnp.zeros_like, evidence))


def _described(tree: Any) -> str:
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", tree))


def solve(
    f: Callable[[Any], Any],
    y0: PyTree[Float[ArrayLike, "..."]],
    *,
    tol: Number = 1e-10,
    max_steps: int = 1000,
    history: int = 5,
) -> FixedPoint:
    """y = f(y), by Anderson acceleration: y' = the combination of the last steps whose f(y) - y would be smallest.

    ``f`` maps an array to an array of the same shape and dtype, or a tuple, dictionary or other pytree of them, all of
    one floating dtype, to the same structure; ``y0`` is where to start. ``history`` is the number of earlier steps
    combined; 0 is the plain iteration y' = f(y). No start selects among several solutions: check which one came out.

    ``residual`` is max |f(y) - y| of the value returned, in the units of y. ``converged`` says that each entry of
    f(y) - y is at most ``tol``, or 16 eps |y| of this entry where that is more, since rounding allows no less; entries
    below one may stop at 16 eps min(1, max |y|) where no step improves them. The error of y is about residual / (1 -
    slope of f), and where rounding exceeds ``tol`` it must be small against y: a y so large that y + 1 rounds to y is
    no solution of y = y + 1. Without convergence after ``max_steps`` the best y met is returned; an f(y) that is NaN or
    infinite ends the search, and never counts as converged.

    Derivatives, forward and reverse and of any order, are those of the solution with respect to what ``f`` closes over
    (none with respect to ``y0``), by the implicit function theorem. Their linear system is solved iteratively, to
    ``tol`` relative to its right side; where that fails they are NaN. Of an unconverged value they mean little. Under
    ``jax.vmap`` every lane has its own evidence, and one that is done does not change any more.

    Cost: num_steps + 1 calls of ``f``, memory for 2 history + 5 copies of y. Outside ``jax.jit`` every call compiles
    ``f`` anew. Raises ``ValueError`` for a ``y0`` with NaN or of mixed dtypes, an ``f`` that changes shapes or dtypes,
    tol <= 0, max_steps < 1, history < 0. Source: Anderson (1965), in the form of Walker & Ni (2011), section 2; for
    the gradient Bai, Kolter & Koltun (2019), theorem 1.

    >>> import jax.numpy as jnp
    >>> solution = solve(jnp.cos, 1.0)
    >>> round(float(solution.value), 4), bool(solution.converged)
    (0.7391, True)
    >>> bool(solve(lambda y: y + 1.0, 0.0).converged)
    False
    """
    if isinstance(y0, list) and not any(hasattr(leaf, "dtype") for leaf in jax.tree.leaves(y0)):
        y0 = validate.finite(y0, "y0")
    y0 = jax.tree.map(lambda leaf: validate.finite(leaf, "y0"), y0)
    dtypes = {leaf.dtype for leaf in jax.tree.leaves(y0)}
    if len(dtypes) != 1:
        raise ValueError(f"y0: expected arrays of one floating dtype, got {sorted(map(str, dtypes)) or 'none'}")
    flat, unravel = ravel_pytree(y0)
    tol = validate.positive(tol, "tol", "", dtype=flat.dtype)
    max_steps, history = validate.count(max_steps, "max_steps", minimum=1), validate.count(history, "history")
    # Traced once, with all that f closes over as arguments, so that derivatives can be taken later, or never.
    traced, out = jax.make_jaxpr(f, return_shape=True)(y0)
    if _described(out) != _described(y0):
        raise ValueError(f"f: expected the structure, shapes and dtypes of y0, {_described(y0)}, got {_described(out)}")

    def image(consts: list[Any], y: Array) -> Array:
        return ravel_pytree(jax.core.eval_jaxpr(traced.jaxpr, consts, *jax.tree.leaves(unravel(y))))[0]

    value, (residual, num_steps, converged) = _root(image, max_steps, history, traced.consts, flat, tol)
    return FixedPoint(unravel(value), residual, num_steps.astype(jnp.int32), converged.astype(bool))
