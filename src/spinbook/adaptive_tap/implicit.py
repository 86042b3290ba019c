"""Solve y = f(y) for a batch of states with evidence, and differentiate solutions implicitly.

Anderson acceleration solves each example of the batch on its own, and the adjoint equation in the same way. Every
answer comes with its residual, and does not depend on the other examples. Where Newton's method has found a solution,
``attached`` gives it its derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spinbook import tensors, validate

__all__ = ["FixedPoints", "attached", "differentiable_once", "floor", "select", "solve"]

# Rounding in f keeps the residual from falling below a few units in the last place.
_FLOOR = 16
# So many evaluations without a better y mean that rounding is all that is left of the residual.
_PATIENCE = 10
# Beyond this multiple of the start, a state is running away and its rounding no excuse: without a fixed point,
# acceleration goes to states so large that no step could be seen.
_AMPLIFICATION = 1e3
# Steps over which acceleration extrapolates.
_HISTORY = 5


class FixedPoints(NamedTuple):
    """The solution for each example of the batch, with its evidence.

    ``value``: y. ``residual``: max |f(y) - y| over the entries of this very y. ``num_steps``: updates made.
    ``converged``: whether every entry of f(y) - y is within its tolerance, and rounding leaves y determined.
    """

    value: Float[Tensor, " batch *state"]
    residual: Float[Tensor, " batch"]
    num_steps: Int[Tensor, " batch"]
    converged: Bool[Tensor, " batch"]


def floor(dtype: torch.dtype) -> float:
    """The smallest residual that can be asked for, relative to the largest entry of the solution.

    >>> floor(torch.float64) < 1e-14
    True
    """
    return _FLOOR * torch.finfo(dtype).eps


def _extrapolation(gram: Tensor, products: Tensor) -> Tensor:
    """gamma that minimises |step - gamma @ differences| for each example; 0 for differences of zero.

    ``gram`` are the products of the differences with each other, ``products`` those with the step.
    """
    # Differences get unit length; otherwise the newest, by far the shortest, would vanish in the regularisation.
    lengths = torch.diagonal(gram, dim1=-2, dim2=-1).sqrt()
    lengths = torch.where(lengths > 0, lengths, torch.ones_like(lengths))
    scaled = gram / (lengths[:, :, None] * lengths[:, None, :])
    scaled.diagonal(dim1=-2, dim2=-1).add_(10 * torch.finfo(gram.dtype).eps)
    return torch.linalg.solve(scaled, products / lengths) / lengths


@torch.no_grad()
def _anderson(
    f: Callable[[Tensor], Tensor],
    y: Tensor,
    tol: Tensor | float,
    max_steps: int,
    relative: float = 0.0,
    by_entry: bool = True,
) -> FixedPoints:
    """On (batch, entries). ``tol`` is absolute, one or one for each example; ``relative`` to the largest entry.

    Rounding is that of each entry by itself, or of the largest for linear equations (``by_entry=False``), whose error
    the norm of the residual bounds. See ``spinbook.fixed_point``, which judges in the same way.
    """
    eps = torch.finfo(y.dtype).eps
    # The move over which slopes are told best from values that are rounded, and the relative error that is allowed.
    third = eps ** (1 / 3)
    step = f(y) - y
    residual = step.abs().amax(-1)
    best_y, best_residual, best_excess = y, residual, torch.full_like(residual, math.inf)
    best_solved = torch.zeros_like(residual, dtype=torch.bool)
    waited = torch.zeros_like(residual, dtype=torch.int64)
    gap = torch.full_like(residual, -1)
    moved_by, changed_by = torch.zeros_like(y), torch.zeros_like(y)
    step_differences = y.new_zeros(y.shape[0], _HISTORY, y.shape[1])
    move_differences = torch.zeros_like(step_differences)
    gram = y.new_zeros(y.shape[0], _HISTORY, _HISTORY)
    num_steps = torch.zeros_like(residual, dtype=torch.int64)
    absolute = torch.as_tensor(tol).to(residual)
    largest = _AMPLIFICATION * torch.maximum(y.abs().amax(-1), residual)

    def judged(y: Tensor, step: Tensor, moved_by: Tensor, changed_by: Tensor, gap: Tensor) -> tuple[Tensor, ...]:
        """The excess over the tolerance aimed at, whether y counts as solved, the gap, and whether to look beside y."""
        size = torch.minimum(y.abs(), largest[:, None])
        top = size.amax(-1)
        least = torch.maximum(absolute, relative * top)[:, None]
        rounding = size if by_entry else top[:, None].expand_as(size)
        common = torch.maximum(size, top.clamp_max(1)[:, None]) if by_entry else rounding
        aimed, accepted = (
            (step.abs() / torch.maximum(least, floor(y.dtype) * scale)).amax(-1) for scale in (rounding, common)
        )
        hidden = (floor(y.dtype) * size > least) & by_entry
        if not hidden.any():
            return aimed, accepted <= 1, gap, torch.zeros_like(best_solved)

        def part(change: Tensor) -> Tensor:
            return torch.where(hidden, change.abs() / torch.where(hidden, y.abs(), 1), 0).amax(-1)

        moved = part(moved_by)
        blurred = moved <= third
        gap = torch.where(blurred, gap, (part(changed_by) - 4 * eps).clamp_min(0) / torch.where(blurred, 1, moved))
        solved = (accepted <= 1) & (~hidden.any(-1) | (part(step) + eps <= third * gap))
        return aimed, solved, gap, (accepted <= 1) & hidden.any(-1) & (gap < 0)

    for k in range(max_steps + 1):
        excess, solved, gap, beside = judged(y, step, moved_by, changed_by, gap)
        better = (solved & ~best_solved) | ((solved | ~best_solved) & (excess < best_excess))
        best_y = torch.where(better[:, None], y, best_y)
        best_residual = torch.where(better, residual, best_residual)
        best_excess = torch.where(better, excess, best_excess)
        best_solved = best_solved | solved
        waited = torch.where(better, 0, waited + 1)
        finished = (solved & (excess <= 1)) | (best_solved & (waited >= _PATIENCE))
        # A NaN compares as false and ends the loop; infinity has to be asked for.
        open_ = (~finished & (residual < math.inf))[:, None]
        if k == max_steps or not open_.any():
            break
        move = step
        if k:
            # Sums of products: batched matrix products of so few rows are slower.
            gamma = _extrapolation(gram, (step_differences * torch.where(open_, step, 0)[:, None]).sum(-1))
            move = move - (gamma[:, :, None] * move_differences).sum(1)
        # A start that looks solved is tried a little beside it.
        move = torch.where(beside[:, None], 2 * third * y, move)
        new_y = torch.where(open_, y + move, y)
        new_step = f(new_y) - new_y
        residual = new_step.abs().amax(-1)
        # Examples that stopped add rows of zeros; examples that became infinite must not reach the linear solve.
        slot = k % _HISTORY
        usable = open_ & (residual < math.inf)[:, None]
        difference = torch.where(usable, new_step - step, 0)
        step_differences[:, slot] = difference
        move_differences[:, slot] = torch.where(usable, new_y - y, 0) + difference
        gram[:, slot] = gram[:, :, slot] = (step_differences * difference[:, None]).sum(-1)
        moved_by, changed_by = new_y - y, new_step - step
        y, step = new_y, new_step
        num_steps += open_[:, 0]
    return FixedPoints(best_y, best_residual, num_steps, best_solved)


def _dense_adjoint(vjp: Callable[[Tensor], Tensor], gradient: Tensor) -> Tensor:
    """g with g = J^T g + gradient, from the Jacobian J of each example, one row at a time."""
    units = torch.eye(gradient.shape[-1]).to(gradient)
    jacobian = torch.stack([vjp(unit.expand_as(gradient)) for unit in units], dim=1)
    return torch.linalg.solve(units - jacobian.mT, gradient)


class _Refused(torch.autograd.Function):
    """A gradient that cannot be differentiated again. It depends on ``value``, so that no derivative can pass it by."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, value: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        raise RuntimeError("a solution is differentiable once: second derivatives were asked for")


class _Adjoint(torch.autograd.Function):
    """The identity, whose gradient goes through ``solve``, and which is differentiable once."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, solve: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.save_for_backward(value)
        ctx.solve = solve
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (value,) = ctx.saved_tensors
        with torch.no_grad():
            solved = ctx.solve(gradient)
        # Gradients are enabled here exactly if a graph of this gradient is requested.
        return (_Refused.apply(solved, value) if torch.is_grad_enabled() else solved), None


def differentiable_once(value: Tensor) -> Tensor:
    """The value itself; a second derivative through it raises ``RuntimeError`` instead of being wrong.

    >>> differentiable_once(torch.ones(2)).tolist()
    [1.0, 1.0]
    """
    out: Tensor = _Adjoint.apply(value, lambda gradient: gradient)
    return out


def attached(
    solution: Float[Tensor, "*#batch K"],
    residual: Callable[[Tensor], Tensor],
    slopes: Float[Tensor, "*#batch K K"],
    *,
    orders: int = 1,
) -> Float[Tensor, "*#batch K"]:
    """The solution of residual(y) = 0, as a function of every tensor that ``residual`` uses, by implicit derivatives.

    Newton steps from the solution, with the ``slopes`` d residual / dy held fixed, go nowhere; their derivatives are
    those of the solution, of one more order with each step. Right up to ``orders``, and not beyond.

    >>> x = torch.tensor([9.0], requires_grad=True)
    >>> attached(torch.tensor([3.0]), lambda y: y * y - x, torch.tensor([[6.0]])).backward()
    >>> x.grad  # 1 / 6
    tensor([0.1667])
    """
    y, factors = solution, torch.linalg.lu_factor(slopes)
    for _ in range(orders):
        y = y - torch.linalg.lu_solve(*factors, residual(y)[..., None])[..., 0]
    # Numerically the solution itself, whose residual is reported.
    return solution + (y - y.detach())


def select(chosen: Bool[Tensor, "*batch"], new: Any, old: Any) -> Any:
    """``new`` where chosen and ``old`` elsewhere along the batch, through (named) tuples of tensors.

    >>> select(torch.tensor([True, False]), (torch.ones(2, 1),), (torch.zeros(2, 1),))[0].tolist()
    [[1.0], [0.0]]
    """
    if isinstance(new, Tensor):
        return torch.where(chosen.reshape(chosen.shape + (1,) * (new.ndim - chosen.ndim)), new, old)
    entries = [select(chosen, a, b) for a, b in zip(new, old, strict=True)]
    return tuple(entries) if type(new) is tuple else type(new)(*entries)


@tensors.solver
def solve(
    f: Callable[[Float[Tensor, " batch *state"]], Float[Tensor, " batch *state"]],
    y0: Float[Tensor, " batch *state"],
    *,
    tol: float = 1e-10,
    max_steps: int = 1000,
    relative: bool = False,
    eliminate: bool = True,
    last_update: bool = False,
) -> FixedPoints:
    """y = f(y), from ``y0``, by Anderson acceleration over the last five steps, for each example by itself.

    ``f`` maps the states of a batch (batch, ...) to new ones, each example by itself. An example stops when
    every entry of f(y) - y is at most ``tol``, or ``tol`` times the largest entry if ``relative``, or 16 roundings of
    this entry if that is more, as ``fixed_point.solve`` has it; one that does not get there in ``max_steps`` returns
    the best state seen, with ``converged`` False.

    The value is differentiable, once, in every tensor that ``f`` uses: the gradient is that of the fixed point, by the
    implicit function theorem, and none reaches ``y0``. The adjoint equation is iterated in the same way until its
    residual, relative to the incoming gradient, is at most ``tol``. Where that fails it is solved with a dense
    Jacobian if ``eliminate``, and otherwise left at the best state: this is not the gradient of the fixed point, but it
    stays small where that gradient is about to diverge.

    ``last_update``: a value that needs a gradient is f(y), with y the solution, and the adjoint equation is taken at
    f(y). At a fixed point this changes nothing. If y did not converge, a loss depends on the next update from y, and
    its gradient includes at least that of this update. ``residual`` and ``converged`` are still those of y.

    >>> x = torch.tensor([[1.0], [2.0]], dtype=torch.float64, requires_grad=True)
    >>> root = solve(lambda y: (y + x / y) / 2, torch.ones_like(x))
    >>> root.value.sum().backward()
    >>> [round(g, 6) for g in x.grad[:, 0].tolist()]
    [0.5, 0.353553]
    """
    start = validate.tensor(y0, "y0").detach()
    if start.ndim < 1 or start.numel() == 0:
        raise ValueError(f"y0: expected shape (batch, ...), not empty, got {tuple(start.shape)}")
    tolerance = float(tensors.positive(tol, "tol", ndim=0))
    max_steps = validate.count(max_steps, "max_steps", minimum=1)
    shape = start.shape

    def flat_f(y: Tensor) -> Tensor:
        return f(y.reshape(shape)).reshape(shape[0], -1)

    absolute, in_units = (0.0, tolerance) if relative else (tolerance, 0.0)
    found = _anderson(flat_f, start.reshape(shape[0], -1), absolute, max_steps, in_units)
    value = found.value
    if torch.is_grad_enabled():
        out = flat_f(value)
        if out.requires_grad:
            y = (out.detach() if last_update else value).clone().requires_grad_()
            again = flat_f(y)

            def vjp(g: Tensor) -> Tensor:
                (product,) = torch.autograd.grad(again, y, g, retain_graph=True, materialize_grads=True)
                return product

            def adjoint(gradient: Tensor) -> Tensor:
                close = tolerance * gradient.abs().amax(-1)
                solution = _anderson(lambda g: vjp(g) + gradient, gradient, close, max_steps, by_entry=False)
                enough = not eliminate or bool(solution.converged.all())
                return solution.value if enough else _dense_adjoint(vjp, gradient)

            # Numerically the value itself, whose residual is reported, or its update.
            value = _Adjoint.apply(out, adjoint) if last_update else value + _Adjoint.apply(out - out.detach(), adjoint)
    return found._replace(value=value.reshape(shape))
