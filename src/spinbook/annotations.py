"""Annotations of the arguments of public functions: any array-like, with its expected shape beside it.

``Float[ArrayLike, "*batch N"]`` reads like jaxtyping's ``Float[Array, "*batch N"]``, and a type checker sees the same.
At run time it is ``ArrayLike`` alone, because a list has neither shape nor dtype, an integer counts as a number, and a
single number may take the place of a vector of equal numbers. ``validate`` checks the shape and words the error. All
other annotations are jaxtyping's: arrays and tensors are checked for dtype and shape where a checker is on.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax
import jaxtyping
import numpy as np

if TYPE_CHECKING:
    from typing import Any as ArrayLike

    from jaxtyping import Bool, Float, Int
else:

    @runtime_checkable
    class SupportsArray(Protocol):
        """What NumPy can convert: arrays of other libraries, PyTorch's tensors among them."""

        def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray: ...

    # Numbers, arrays of any library, and nested lists of them.
    ArrayLike = jax.Array | np.ndarray | np.generic | SupportsArray | Sequence | bool | int | float

    class _OrArrayLike:
        """One of jaxtyping's dtypes, for arrays; the shape as a remark, for what may be a list."""

        def __init__(self, dtype: Any) -> None:
            self._dtype = dtype

        def __getitem__(self, item: tuple[Any, str]) -> Any:
            kind, shape = item
            if Sequence not in typing.get_args(kind):
                return self._dtype[item]
            # Raises for an invalid shape.
            self._dtype[np.ndarray, shape]
            return typing.Annotated[kind, shape]

    Bool, Float, Int = (_OrArrayLike(dtype) for dtype in (jaxtyping.Bool, jaxtyping.Float, jaxtyping.Int))

__all__ = ["ArrayLike", "Bool", "Float", "Int", "Number"]

# A number, or an array of one.
Number = Float[ArrayLike, ""]
