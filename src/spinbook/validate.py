"""Argument checks of shape, sign and finiteness, whose errors name the argument, what was expected and what came.

Every check takes the value and its name, and returns the value as a JAX array unless its docstring says otherwise. It
raises ``ValueError`` with the text ``NAME: expected ..., got ...``. Values may be numbers, nested lists, and arrays of
NumPy, JAX and PyTorch. Shapes are always checked, values only when they are known: under ``jit``, ``vmap`` or ``grad``
an argument is a tracer. Whatever else is wrong gives NaN, or the error of the framework.
"""

from __future__ import annotations

import contextlib
import math
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
    "Sizes",
    "common_dtype",
    "common_tensor_type",
    "count",
    "finite",
    "is_traced",
    "known",
    "known_numbers",
    "number",
    "positive",
    "require",
    "tensor",
]


def is_traced(value: object) -> bool:
    """Whether the values are unknown because JAX is tracing."""
    leaves = [value] if isinstance(value, jax.Array | np.ndarray | float) else jax.tree.leaves(value)
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)


def common_dtype(*values: Any) -> np.dtype[Any]:
    """The floating dtype in which arguments are computed together: the widest among them.

    Python numbers, integers and lists of them have no floating dtype and follow the others. Without any, JAX's default
    is used (float32, or float64 with x64 on).

    >>> common_dtype(np.zeros(2, np.float32), [1.0, 2.0], 3)
    dtype('float32')
    """
    dtypes = []
    for leaf in jax.tree.leaves(values):
        dtype = getattr(leaf, "dtype", None)
        if dtype is not None and not getattr(leaf, "weak_type", False):
            # PyTorch has dtypes of its own, with NumPy's names behind a prefix.
            dtypes.append(jnp.dtype(str(dtype)[len("torch.") :]) if str(dtype).startswith("torch.") else dtype)
    carried = [np.dtype(dtype) for dtype in dtypes if jnp.issubdtype(dtype, jnp.floating)]
    canonical: np.dtype[Any] = jax.dtypes.canonicalize_dtype(reduce(np.promote_types, carried or [np.dtype(float)]))
    return canonical


def require(condition: Callable[[Any], ArrayLike], value: Any, name: str, expected: str) -> None:
    """Raise ``ValueError`` unless ``condition(value)`` holds for every entry; silent under a trace.

    The condition is evaluated in NumPy, which unlike JAX compiles nothing.

    >>> require(lambda t: t < 2, [0.5, 3.0], "t", "t < 2")
    Traceback (most recent call last):
    ValueError: t: expected t < 2, got 3 at index (1,)
    """
    if is_traced(value):
        return
    known = np.asarray(value)
    holds = np.asarray(condition(known))
    if not holds.all():
        index = tuple(int(i) for i in np.argwhere(~np.broadcast_to(holds, known.shape))[0])
        where = f" at index {index}" if index else ""
        raise ValueError(f"{name}: expected {expected}, got {float(known[index]):g}{where}")


def _real(value: Any, name: str, library: Any) -> Any:
    """An array of real numbers of NumPy or JAX."""
    try:
        array = library.asarray(value)
    except Exception as error:
        raise ValueError(f"{name}: expected a rectangular array, got {type(value).__name__} ({error})") from error
    if array.dtype.kind not in "biuf" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(f"{name}: expected real numbers, got dtype {array.dtype}")
    return array


def known_numbers(value: Any, name: str) -> np.ndarray:
    """Finite real numbers, as a new array of doubles for NumPy."""
    array = np.array(_real(value, name, np), np.float64)
    require(np.isfinite, array, name, "finite numbers")
    return array


def number(
    value: Any, name: str, *, above: float = -math.inf, least: float = -math.inf, below: float = math.inf
) -> float:
    """A finite real number within bounds, in double precision whatever JAX is set to.

    >>> number(0.5, "level", above=0, below=0.5)
    Traceback (most recent call last):
    ValueError: level: expected a number > 0 and < 0.5, got 0.5
    """
    array = known_numbers(value, name)
    Sizes().fit(array.shape, "", name)
    bounds = {">": above, ">=": least, "<": below}
    said = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds.items() if math.isfinite(bound))
    require(lambda x: (x > above) & (x >= least) & (x < below), array, name, f"a number {said}")
    return float(array)


def known(value: Any, name: str, dtype: Any) -> Array | np.ndarray:
    """Finite real numbers of the given dtype: of JAX where the value is JAX's or traced, of NumPy otherwise.

    NumPy converts without compiling, and a program that is compiled takes its arrays at half the cost.
    """
    if isinstance(value, jax.Array) or is_traced(value):
        array = _real(value, name, jnp)
        array = array if array.dtype == dtype and not array.weak_type else array.astype(dtype)
    else:
        with np.errstate(over="ignore"):
            array = _real(value, name, np).astype(jax.dtypes.canonicalize_dtype(dtype))
    require(np.isfinite, array, name, "finite numbers")
    return array


class Sizes:
    """The sizes that names of axes have in one call, and the argument that each was first seen in."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[Any, str]] = {}

    def fit(self, shape: tuple[int, ...], axes: str, name: str) -> None:
        """Raise ``ValueError`` unless the shape is that of the axes, with the sizes known so far; note new ones."""
        tokens = axes.split()
        if not shape and tokens and all("#" in token for token in tokens):
            return
        leading = next((token for token in tokens if token.startswith("*")), None)
        last = tokens[tokens.index(leading) + 1 :] if leading else tokens
        first = tokens[: tokens.index(leading)] if leading else []
        between = len(shape) - len(first) - len(last)
        if between < 0 or (leading is None and between):
            self._refuse(tokens, name, shape)
        pairs = list(zip(first + last, shape[: len(first)] + shape[len(shape) - len(last) :], strict=True))
        for token, size in pairs:
            if token.startswith("#") and size == 1:
                continue
            wanted = int(token) if token.isdigit() else self.known.setdefault(token.strip("#"), (size, name))[0]
            if size != wanted or size == 0:
                self._refuse(tokens, name, shape)
        if leading:
            self._lead(leading, shape[len(first) : len(first) + between], name)

    def _lead(self, token: str, axes: tuple[int, ...], name: str) -> None:
        known, where = self.known.setdefault(token.strip("*#"), (axes, name))
        if axes == known:
            return
        with contextlib.suppress(ValueError):
            if "#" in token:
                self.known[token.strip("*#")] = jnp.broadcast_shapes(known, axes), where
                return
        raise ValueError(f"{name}: expected leading axes that fit those of {where}, {known}, got {axes}")

    def _refuse(self, tokens: list[str], name: str, shape: tuple[int, ...]) -> None:
        sizes = ["..." if token.startswith("*") else token.strip("#") for token in tokens]
        text = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})" if tokens else "(), a number"
        others = [(axis, *self.known[axis]) for axis in sizes if axis in self.known and self.known[axis][1] != name]
        given = " and ".join(f"{axis} = {size} as in {where}" for axis, size, where in dict.fromkeys(others))
        raise ValueError(f"{name}: expected shape {text}{' with ' + given if given else ''}, got shape {shape}")


def finite(value: Any, name: str, axes: str | None = None, *, dtype: Any = None) -> Float[Array, "*shape"]:
    """Real numbers without NaN or infinity; ``axes`` as in jaxtyping, "N 3" for rows of three, "" for a number.

    >>> finite([1.0, float("nan")], "fields")
    Traceback (most recent call last):
    ValueError: fields: expected finite numbers, got nan at index (1,)
    >>> finite([1.0, 2.0], "visible", "*batch 3")
    Traceback (most recent call last):
    ValueError: visible: expected shape (..., 3), got shape (2,)
    """
    array = jnp.asarray(known(value, name, common_dtype(value) if dtype is None else dtype))
    if axes is not None:
        Sizes().fit(array.shape, axes, name)
    return array


def positive(value: Any, name: str, axes: str | None = None, *, dtype: Any = None) -> Float[Array, "*shape"]:
    """Finite numbers greater than zero.

    >>> positive(0.0, "beta")
    Traceback (most recent call last):
    ValueError: beta: expected numbers > 0, got 0
    """
    array = finite(value, name, axes, dtype=dtype)
    require(lambda x: x > 0, array, name, "numbers > 0")
    return array


def count(value: Any, name: str, *, minimum: int = 0, maximum: int = 2**31 - 1) -> int:
    """An integer between ``minimum`` and ``maximum``; it sizes a loop or an array and so is never traced.

    >>> count(25, "num_units", minimum=1, maximum=20)
    Traceback (most recent call last):
    ValueError: num_units: expected an integer from 1 to 20, got 25
    """
    # JAX counts its loops in 32 bits.
    wanted = f"an integer >= {minimum}" if maximum == 2**31 - 1 else f"an integer from {minimum} to {maximum}"
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected {wanted}, got {value!r}") from None
    if not minimum <= number <= maximum:
        raise ValueError(f"{name}: expected {wanted}, got {number}")
    return number


def common_tensor_type(*values: Any) -> tuple[torch.dtype, torch.device]:
    """The floating dtype and the device in which arguments are computed together by PyTorch.

    The widest floating dtype that any of them carries, at least float32; double precision if all are Python numbers,
    integers and lists of them, which carry none. The device of the first tensor that is not on the CPU, or the CPU.

    >>> common_tensor_type(np.zeros(2, np.float32), [1.0, 2.0], 3)
    (torch.float32, device(type='cpu'))
    """
    # Imported here because PyTorch takes seconds to load and most of this package does without it.
    import torch

    dtypes, device = [], torch.device("cpu")
    for leaf in jax.tree.leaves(values):
        if isinstance(leaf, torch.Tensor) and device.type == "cpu":
            device = leaf.device
        name = str(getattr(leaf, "dtype", "")).removeprefix("torch.")
        # A Python number that JAX has touched is still just a number.
        if name in ("float16", "bfloat16", "float32", "float64") and not getattr(leaf, "weak_type", False):
            dtypes.append(getattr(torch, name))
    return reduce(torch.promote_types, dtypes, torch.float32) if dtypes else torch.float64, device


def tensor(
    value: Any,
    name: str,
    *,
    ndim: int | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Float[torch.Tensor, "*shape"]:
    """Real, finite numbers as a PyTorch tensor that keeps its gradients, of ``ndim`` dimensions if given.

    ``dtype`` and ``device`` are by default those of the value.

    >>> tensor([[1.0, 2.0]], "fields", ndim=1)
    Traceback (most recent call last):
    ValueError: fields: expected an array of 1 dimensions, got shape (1, 2)
    """
    import torch

    own_dtype, own_device = common_tensor_type(value)
    if not isinstance(value, torch.Tensor):
        value = torch.as_tensor(np.array(_real(value, name, np)))
    if value.is_complex():
        raise ValueError(f"{name}: expected real numbers, got dtype {value.dtype}")
    array = value.to(dtype=dtype or own_dtype, device=device or own_device)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected an array of {ndim} dimensions, got shape {tuple(array.shape)}")
    # Only a tensor that fails is copied to the host to find its first bad entry.
    if not torch.isfinite(array).all():
        require(np.isfinite, array.detach().cpu().double().numpy(), name, "finite numbers")
    return array
