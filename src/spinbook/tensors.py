"""Checks of PyTorch's tensors, and what every solver in PyTorch needs: full precision, and gradients inside.

The error of a check names the argument, what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from spinbook import validate

__all__ = ["fitting", "gradient", "positive", "real", "require_symmetric", "solver", "symmetric_zero_diagonal"]

P = ParamSpec("P")
T = TypeVar("T")


def solver(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with ``torch.autocast`` off, and as it is between the graphs of ``torch.compile``.

    Equations cannot be solved in half precision, and the number of steps depends on values.

    >>> square = torch.ones(2, 2)
    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     torch.mm(square, square).dtype, solver(torch.mm)(square, square).dtype
    (torch.bfloat16, torch.float32)
    """

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        if torch.compiler.is_compiling():
            # Disabling it in advance would import the compiler, which takes seconds.
            compiled: T = torch.compiler.disable(call)(*args, **options)
            return compiled
        with ExitStack() as off:
            for device in ("cpu", "cuda"):
                if torch.is_autocast_enabled(device):
                    off.enter_context(torch.autocast(device, enabled=False))
            return function(*args, **options)

    return call


def gradient(function: Callable[..., Tensor], x: Tensor, *others: Tensor) -> Tensor:
    """d/dx of the sum of ``function(x, *others)``, differentiable where gradients are on; under inference mode too.

    >>> with torch.inference_mode():
    ...     gradient(torch.square, torch.ones(2))
    tensor([2., 2.])
    """
    keep = torch.is_grad_enabled() and any(value.requires_grad for value in (x, *others))
    with torch.inference_mode(False), torch.enable_grad():
        # What was made under inference mode cannot be differentiated, and a copy of it can.
        x = x.clone() if x.requires_grad else x.clone().requires_grad_()
        held = [value.clone() if value.is_inference() else value for value in others]
        (slope,) = torch.autograd.grad(function(x, *held).sum(), x, create_graph=keep)
    return slope


def real(value: Any, name: str, shape: tuple[int | None, ...], **kind: Any) -> Tensor:
    """Finite real numbers of shape (..., *shape), ``None`` for any size; ``dtype`` and ``device`` if given.

    >>> real([[1.0, 2.0]], "h", (3,))
    Traceback (most recent call last):
    ValueError: h: expected shape (..., 3), got (1, 2)
    """
    array = validate.tensor(value, name, **kind)
    if array.dtype in (torch.float16, torch.bfloat16):
        raise ValueError(f"{name}: expected single or double precision, as the weights have it, got {array.dtype}")
    last = array.shape[array.ndim - len(shape) :]
    if array.ndim < len(shape) or any(want not in (None, got) for want, got in zip(shape, last, strict=True)):
        sizes = ", ".join("*" if size is None else str(size) for size in shape)
        raise ValueError(f"{name}: expected shape (..., {sizes}), got {tuple(array.shape)}")
    return array


def positive(value: Any, name: str, **kind: Any) -> Tensor:
    """Finite numbers greater than zero; ``ndim``, ``dtype`` and ``device`` if given.

    >>> positive(0.0, "beta")
    Traceback (most recent call last):
    ValueError: beta: expected numbers > 0, got 0
    """
    array = validate.tensor(value, name, **kind)
    if not (array > 0).all():
        validate.require(lambda x: x > 0, array.tolist(), name, "numbers > 0")
    return array


def fitting(leading: torch.Size, batch: torch.Size, name: str) -> None:
    """Raise unless ``leading`` axes broadcast to those of the batch.

    >>> fitting(torch.Size([2]), torch.Size([3]), "beta")
    Traceback (most recent call last):
    ValueError: beta: expected leading axes that broadcast to (3,), got (2,)
    """
    try:
        fits = torch.broadcast_shapes(leading, batch) == batch
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: expected leading axes that broadcast to {tuple(batch)}, got {tuple(leading)}")


def require_symmetric(matrix: Tensor, name: str) -> None:
    """Raise unless M_ij = M_ji for square matrices (..., N, N): to 8 eps max |M|, since products differ by rounding.

    >>> require_symmetric(torch.tensor([[0.0, 1.0], [2.0, 0.0]]), "covariance")
    Traceback (most recent call last):
    ValueError: covariance: expected a symmetric matrix, got entries that differ by 1
    """
    known = matrix.detach()
    gap = (known - known.mT).abs()
    if (gap > _slack(known)).any():
        raise ValueError(f"{name}: expected a symmetric matrix, got entries that differ by {float(gap.max()):g}")


def _slack(matrix: Tensor) -> Tensor:
    return 8 * torch.finfo(matrix.dtype).eps * matrix.abs().amax((-2, -1), keepdim=True)


def symmetric_zero_diagonal(matrix: Tensor, name: str) -> Tensor:
    """The square matrices (..., N, N), if M_ij = M_ji and M_ii = 0, to rounding.

    >>> symmetric_zero_diagonal(torch.eye(2), "couplings")
    Traceback (most recent call last):
    ValueError: couplings: expected a zero diagonal, got 1 on it
    """
    require_symmetric(matrix, name)
    diagonal = matrix.detach().diagonal(dim1=-2, dim2=-1).abs()
    if (diagonal > _slack(matrix.detach())[..., 0]).any():
        raise ValueError(f"{name}: expected a zero diagonal, got {float(diagonal.max()):g} on it")
    return matrix
