"""Argument checks that name the argument, what was expected and what came. Nothing here knows what an argument means.

Every check takes the value and its name, returns a JAX array (or an ``int``), and raises ``ValueError`` with the text
``NAME: expected ..., got ...``. Shapes are always checked. Values are checked only when they are known: under ``jit``,
``vmap`` or ``grad`` an argument is a tracer, and a check of its values would break the trace.

Accepted are numbers, nested lists, NumPy and JAX arrays, and PyTorch tensors that do not track gradients (a gradient
cannot cross from one framework to the other, and silence about that would be worse than an error).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import torch

__all__ = [
    "binary",
    "broadcastable",
    "common_dtype",
    "common_tensor_type",
    "count",
    "finite",
    "is_traced",
    "matrix",
    "positive",
    "probability",
    "require",
    "same_batch",
    "tensor",
    "vectors",
]


def is_traced(value: object) -> bool:
    """Whether the values are unknown because JAX is tracing.

    >>> is_traced(1.0)
    False
    """
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def common_dtype(*values: Any) -> np.dtype[Any]:
    """The floating dtype in which arguments are computed together: the widest one that any of them carries.

    Python numbers, integers and lists of them carry none and follow the others; if nobody carries one, JAX's default
    floating dtype is used (float32, or float64 with x64 on).

    >>> import numpy as np
    >>> common_dtype(np.zeros(2, np.float32), [1.0, 2.0], 3)
    dtype('float32')
    """
    carried = []
    for leaf in jax.tree.leaves(values):
        dtype = getattr(leaf, "dtype", None)
        if dtype is None or getattr(leaf, "weak_type", False):
            continue
        # PyTorch has dtypes of its own, with NumPy's names behind a prefix.
        if str(dtype).startswith("torch."):
            dtype = jnp.dtype(str(dtype).removeprefix("torch."))
        if jnp.issubdtype(dtype, jnp.floating):
            carried.append(np.dtype(dtype))
    widest = reduce(np.promote_types, carried) if carried else np.dtype(np.float64)
    canonical: np.dtype[Any] = jax.dtypes.canonicalize_dtype(widest)
    return canonical


def require(
    condition: Callable[..., ArrayLike], value: Any, name: str, expected: str, parameters: tuple[Any, ...] = ()
) -> None:
    """Raise ``ValueError`` unless ``condition(value, *parameters)`` holds for every entry; silent under a trace.

    The condition is evaluated in NumPy, which unlike JAX compiles nothing. The message quotes the first offending entry
    of ``value`` and its index.

    >>> require(lambda t, rate: t < rate, [0.5, 3.0], "t", "t < rate", (2.0,))
    Traceback (most recent call last):
    ValueError: t: expected t < rate, got 3 at index (1,)
    """
    if is_traced((value, parameters)):
        return
    known, *others = (np.asarray(x) for x in (value, *parameters))
    holds, entries = np.broadcast_arrays(np.asarray(condition(known, *others)), known)
    if holds.all():
        return
    index = tuple(int(i) for i in np.argwhere(~holds)[0])
    where = f" at index {index}" if index else ""
    raise ValueError(f"{name}: expected {expected}, got {float(entries[index]):g}{where}")


def _real(value: Any, name: str, dtype: Any) -> Array:
    """The value as a real JAX array of the given dtype (its own, if none is given)."""
    if getattr(value, "requires_grad", False):
        raise ValueError(
            f"{name}: expected a tensor without gradient tracking (call .detach()), got requires_grad=True"
        )
    # What JAX does not hold yet is converted by NumPy, which unlike JAX compiles nothing.
    library: Any = jnp if isinstance(value, jax.Array) or is_traced(value) else np
    try:
        array = library.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name}: expected a rectangular array, got {type(value).__name__} ({error})") from error
    if not (jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool) or library.iscomplexobj(array):
        raise ValueError(f"{name}: expected real numbers, got dtype {array.dtype}")
    wanted = common_dtype(value) if dtype is None else dtype
    if library is np:
        with np.errstate(over="ignore"):
            return jnp.asarray(array.astype(wanted))
    return array if array.dtype == wanted and not array.weak_type else array.astype(wanted)


def _described(shape: tuple[int, ...]) -> str:
    return "a scalar" if shape == () else f"shape {shape}"


def finite(value: Any, name: str, *, ndim: int | None = None, dtype: Any = None) -> Float[Array, "*shape"]:
    """Real numbers without NaN or infinity, of ``ndim`` dimensions if given.

    >>> finite([1.0, float("nan")], "fields")
    Traceback (most recent call last):
    ValueError: fields: expected finite numbers, got nan at index (1,)
    """
    array = _real(value, name, dtype)
    if ndim is not None and array.ndim != ndim:
        wanted = "a scalar" if ndim == 0 else f"an array of {ndim} dimensions"
        raise ValueError(f"{name}: expected {wanted}, got {_described(array.shape)}")
    require(np.isfinite, array, name, "finite numbers")
    return array


def positive(value: Any, name: str, *, ndim: int | None = None, dtype: Any = None) -> Float[Array, "*shape"]:
    """Finite numbers greater than zero.

    >>> positive(0.0, "beta")
    Traceback (most recent call last):
    ValueError: beta: expected numbers > 0, got 0
    """
    array = finite(value, name, ndim=ndim, dtype=dtype)
    require(lambda x: x > 0, array, name, "numbers > 0")
    return array


def probability(value: Any, name: str, *, ndim: int | None = None, dtype: Any = None) -> Float[Array, "*shape"]:
    """Numbers strictly between 0 and 1.

    >>> probability(1.0, "probability")
    Traceback (most recent call last):
    ValueError: probability: expected numbers strictly between 0 and 1, got 1
    """
    array = finite(value, name, ndim=ndim, dtype=dtype)
    require(lambda x: (x > 0) & (x < 1), array, name, "numbers strictly between 0 and 1")
    return array


def binary(value: Any, name: str, *, dim: int | None = None, dtype: Any = None) -> Float[Array, "... dim"]:
    """States of units that are 0 or 1, in the last axis.

    >>> binary([0, 1, 2], "visible")
    Traceback (most recent call last):
    ValueError: visible: expected units that are 0 or 1, got 2 at index (2,)
    """
    array = vectors(value, name, dim=dim, dtype=dtype)
    require(lambda x: (x == 0) | (x == 1), array, name, "units that are 0 or 1")
    return array


def vectors(value: Any, name: str, *, dim: int | None = None, dtype: Any = None) -> Float[Array, "... dim"]:
    """One vector or a batch of them in leading axes, with ``dim`` entries each if given, at least one.

    >>> vectors([1.0, 2.0], "visible", dim=3)
    Traceback (most recent call last):
    ValueError: visible: expected shape (..., 3), got shape (2,)
    """
    array = finite(value, name, dtype=dtype)
    if array.ndim == 0 or array.shape[-1] == 0 or (dim is not None and array.shape[-1] != dim):
        wanted = "(..., dim) with dim >= 1" if dim is None else f"(..., {dim})"
        raise ValueError(f"{name}: expected shape {wanted}, got {_described(array.shape)}")
    return array


def matrix(
    value: Any, name: str, *, rows: int | None = None, columns: int | None = None, dtype: Any = None
) -> Float[Array, "rows columns"]:
    """A matrix with at least one row and one column, of the given sizes where they are given.

    >>> import numpy as np
    >>> matrix(np.zeros((0, 4)), "patterns")
    Traceback (most recent call last):
    ValueError: patterns: expected shape (rows, columns) with at least one row and one column, got shape (0, 4)
    """
    array = finite(value, name, dtype=dtype)
    fits = array.ndim == 2 and array.size > 0 and rows in (None, array.shape[0]) and columns in (None, array.shape[1])
    if not fits:
        sizes = f"({'rows' if rows is None else rows}, {'columns' if columns is None else columns})"
        least = " with at least one row and one column" if rows is None and columns is None else ""
        raise ValueError(f"{name}: expected shape {sizes}{least}, got {_described(array.shape)}")
    return array


def broadcastable(array: Array, name: str, shape: tuple[int, ...]) -> None:
    """Raise unless ``array`` broadcasts to exactly ``shape``.

    >>> import numpy as np
    >>> broadcastable(np.ones(2), "rate", (5, 3))
    Traceback (most recent call last):
    ValueError: rate: expected a shape that broadcasts to (5, 3), got shape (2,)
    """
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: expected a shape that broadcasts to {shape}, got {_described(array.shape)}")


def same_batch(array: Array, name: str, other: Array, other_name: str) -> None:
    """Raise unless the leading axes of two batches of vectors broadcast against each other.

    >>> import numpy as np
    >>> same_batch(np.ones((2, 7)), "hidden", np.ones((3, 4)), "visible")
    Traceback (most recent call last):
    ValueError: hidden: expected leading axes that broadcast with those of visible, (3,), got (2,)
    """
    try:
        np.broadcast_shapes(array.shape[:-1], other.shape[:-1])
    except ValueError:
        raise ValueError(
            f"{name}: expected leading axes that broadcast with those of {other_name}, {other.shape[:-1]}, "
            f"got {array.shape[:-1]}"
        ) from None


def count(value: Any, name: str, *, minimum: int = 0, maximum: int | None = None) -> int:
    """An integer between ``minimum`` and ``maximum``; it sizes a loop or an array and so is never traced.

    >>> count(25, "num_units", minimum=1, maximum=20)
    Traceback (most recent call last):
    ValueError: num_units: expected an integer from 1 to 20, got 25
    """
    wanted = f"an integer >= {minimum}" if maximum is None else f"an integer from {minimum} to {maximum}"
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected {wanted}, got {value!r}") from None
    if number < minimum or (maximum is not None and number > maximum):
        raise ValueError(f"{name}: expected {wanted}, got {number}")
    return number


def common_tensor_type(*values: Any) -> tuple[torch.dtype, torch.device]:
    """The floating dtype and the device in which arguments are computed together by PyTorch.

    The widest floating dtype that any of them carries; PyTorch's default if nobody carries one. The device of the first
    tensor that is not on the CPU, or else the CPU. Python numbers and NumPy and JAX arrays follow.

    >>> import numpy as np
    >>> common_tensor_type(np.zeros(2), [1.0, 2.0], 3)
    (torch.float64, device(type='cpu'))
    """
    # Imported here because PyTorch takes seconds to load and most of this package does without it.
    import torch

    leaves: list[Any] = []
    for value in values:
        # torch.compile cannot trace JAX, and need not for what carries its type itself or none at all.
        if isinstance(value, torch.Tensor):
            leaves.append(value)
        elif type(value) not in (int, float, type(None)):
            leaves.extend(jax.tree.leaves(value))
    dtypes, devices = [], []
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            devices.append(leaf.device)
        name = str(getattr(leaf, "dtype", "")).removeprefix("torch.")
        # A Python number that JAX has touched is still just a number.
        if not getattr(leaf, "weak_type", False) and name in ("float16", "bfloat16", "float32", "float64"):
            dtypes.append(getattr(torch, name))
    device = next((device for device in devices if device.type != "cpu"), torch.device("cpu"))
    return reduce(torch.promote_types, dtypes) if dtypes else torch.get_default_dtype(), device


def tensor(
    value: Any,
    name: str,
    *,
    ndim: int | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Float[torch.Tensor, "*shape"]:
    """Real, finite numbers as a PyTorch tensor that keeps its gradients, of ``ndim`` dimensions if given.

    Takes what every check here takes, and tensors that track gradients as well. ``dtype`` and ``device`` are its own
    where none is given. Values are not checked where PyTorch hides them, see ``transforms``.

    >>> tensor([[1.0, 2.0]], "fields", ndim=1)
    Traceback (most recent call last):
    ValueError: fields: expected an array of 1 dimensions, got shape (1, 2)
    """
    import torch

    from spinbook import transforms

    own_dtype, own_device = common_tensor_type(value)
    try:
        if isinstance(value, torch.Tensor):
            array = value
        elif type(value) is float:
            # torch.compile makes a float32 of what NumPy would keep in double precision.
            array = torch.tensor(value, dtype=torch.float64)
        else:
            array = torch.as_tensor(np.array(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name}: expected a rectangular array, got {type(value).__name__} ({error})") from error
    if array.is_complex():
        raise ValueError(f"{name}: expected real numbers, got dtype {array.dtype}")
    array = array.to(dtype=dtype or own_dtype, device=device or own_device)
    if ndim is not None and array.ndim != ndim:
        wanted = "a scalar" if ndim == 0 else f"an array of {ndim} dimensions"
        raise ValueError(f"{name}: expected {wanted}, got {_described(tuple(array.shape))}")
    # Only a tensor that fails is copied to the host to find its first bad entry.
    if not transforms.holds(torch.isfinite(array)):
        require(np.isfinite, array.detach().cpu().double().numpy(), name, "finite numbers")
    return array
