"""Checks of PyTorch's tensors, couplings among them: shapes, finiteness, symmetry.

The error names the argument, what was expected and what came. Values are checked unless ``torch.vmap`` hides them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spinbook import validate
from spinbook.transforms import holds

__all__ = ["positive", "real", "symmetric_zero_diagonal", "symmetry_slack"]


def real(
    value: Any,
    name: str,
    shape: tuple[int | None, ...],
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Finite real numbers of shape (..., *shape); ``None`` in ``shape`` stands for any size.

    >>> real([[1.0, 2.0]], "h", (3,))
    Traceback (most recent call last):
    ValueError: h: expected shape (..., 3), got (1, 2)
    """
    array = validate.tensor(value, name, dtype=dtype, device=device)
    last = array.shape[array.ndim - len(shape) :]
    if array.ndim < len(shape) or any(want not in (None, got) for want, got in zip(shape, last, strict=True)):
        sizes = ", ".join("*" if size is None else str(size) for size in shape)
        raise ValueError(f"{name}: expected shape (..., {sizes}), got {tuple(array.shape)}")
    return array


def positive(
    value: Any,
    name: str,
    *,
    ndim: int | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Finite numbers greater than zero, of ``ndim`` dimensions if given.

    >>> positive(0.0, "beta")
    Traceback (most recent call last):
    ValueError: beta: expected numbers > 0, got 0
    """
    array = validate.tensor(value, name, ndim=ndim, dtype=dtype, device=device)
    if not holds(array > 0):
        validate.require(lambda x: x > 0, array.detach().cpu().double().numpy(), name, "numbers > 0")
    return array


def symmetry_slack(matrix: Tensor, dim: tuple[int, ...] = (-2, -1)) -> Tensor:
    """8 eps max |M|, by how much a matrix and its transpose may differ: symmetrised products differ by rounding.

    >>> float(symmetry_slack(torch.eye(2))) < 1e-6
    True
    """
    return 8 * torch.finfo(matrix.dtype).eps * matrix.abs().amax(dim, keepdim=True)


def symmetric_zero_diagonal(matrix: Tensor, name: str) -> Tensor:
    """The square matrices (..., N, N), if M_ij = M_ji to rounding and M_ii = 0.

    >>> symmetric_zero_diagonal(torch.tensor([[0.0, 1.0], [2.0, 0.0]]), "couplings")
    Traceback (most recent call last):
    ValueError: couplings: expected a symmetric matrix, got entries (0, 1) and (1, 0) that differ by 1
    """
    known = matrix.detach()
    allowed = symmetry_slack(known)
    difference = (known - known.mT).abs()
    if not holds(difference <= allowed):
        *_, i, j = (int(k) for k in (difference > allowed).nonzero()[0])
        raise ValueError(
            f"{name}: expected a symmetric matrix, got entries ({i}, {j}) and ({j}, {i}) that differ by "
            f"{float(difference[..., i, j].amax()):g}"
        )
    diagonal = known.diagonal(dim1=-2, dim2=-1)
    if not holds(diagonal.abs() <= allowed[..., 0]):
        raise ValueError(f"{name}: expected a zero diagonal, got {float(diagonal.abs().amax()):g} on it")
    return matrix
