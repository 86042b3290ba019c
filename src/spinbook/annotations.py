"""Annotations of what a public function may be given: any array-like, with the shape that it must have beside it.

``Float[ArrayLike, "*batch N"]`` reads like jaxtyping's ``Float[Array, "*batch N"]``, and a type checker sees the same.
At run time it is ``ArrayLike`` alone, since a list has no shape and no dtype, an integer counts as a number, and a
number may stand for a vector of equal numbers: the shape is what ``validate`` makes sure of, and says so in words.
Everything else is jaxtyping's own: an array, or a tensor, is checked with its dtype and shape where a checker is on.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax
import jaxtyping
import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy.typing import ArrayLike
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
            # Refuses a shape that is none.
            self._dtype[np.ndarray, shape]
            return typing.Annotated[kind, shape]

    Bool, Float, Int = (_OrArrayLike(dtype) for dtype in (jaxtyping.Bool, jaxtyping.Float, jaxtyping.Int))

__all__ = ["ArrayLike", "Bool", "Float", "Int", "Number"]

# A number, or an array of one.
Number = Float[ArrayLike, ""]
