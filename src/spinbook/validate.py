"""Argument checks of shape, sign and finiteness, whose errors name the argument, what was expected and what came.

Every check takes the value and its name, returns a JAX array (or what it says), and raises ``ValueError`` with the text
``NAME: expected ..., got ...``. Values may be numbers, nested lists, and arrays of NumPy, JAX and PyTorch. Shapes are
always checked, values only when they are known: under ``jit``, ``vmap`` or ``grad`` an argument is a tracer. Beyond
that a result that cannot be computed is NaN, and an error is that of the framework.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import torch

__all__ = [
    "broadcastable",
    "choice",
    "common_dtype",
    "common_tensor_type",
    "count",
    "finite",
    "instance",
    "is_traced",
    "key",
    "known",
    "known_numbers",
    "matrix",
    "number",
    "positive",
    "probability",
    "require",
    "same_batch",
    "tensor",
    "vectors",
]

T = TypeVar("T")


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
            dtypes.append(dtype if not str(dtype).startswith("torch.") else jnp.dtype(str(dtype)[len("torch.") :]))
    carried = [np.dtype(dtype) for dtype in dtypes if jnp.issubdtype(dtype, jnp.floating)]
    # Of one and the same dtype, too, the promotion is in the order of bytes of this machine.
    widest = reduce(np.promote_types, carried, carried[0]) if carried else np.dtype(np.float64)
    canonical: np.dtype[Any] = jax.dtypes.canonicalize_dtype(widest)
    return canonical


def require(
    condition: Callable[..., ArrayLike], value: Any, name: str, expected: str, parameters: tuple[Any, ...] = ()
) -> None:
    """Raise ``ValueError`` unless ``condition(value, *parameters)`` holds for every entry; silent under a trace.

    The condition is evaluated in NumPy, which unlike JAX compiles nothing.

    >>> require(lambda t, rate: t < rate, [0.5, 3.0], "t", "t < rate", (2.0,))
    Traceback (most recent call last):
    ValueError: t: expected t < rate, got 3 at index (1,)
    """
    if is_traced((value, parameters)):
        return
    known, *others = map(np.asarray, (value, *parameters))
    # A condition may overflow, and is then false.
    with np.errstate(all="ignore"):
        holds = np.asarray(condition(known, *others))
    if not holds.all():
        holds, entries = np.broadcast_arrays(holds, known)
        index = tuple(int(i) for i in np.argwhere(~holds)[0])
        where = f" at index {index}" if index else ""
        raise ValueError(f"{name}: expected {expected}, got {float(entries[index]):g}{where}")


def _real(value: Any, name: str, library: Any) -> Any:
    """An array of real numbers of NumPy or JAX."""
    try:
        array = library.asarray(value)
    except Exception as error:
        raise ValueError(f"{name}: expected a rectangular array, got {type(value).__name__} ({error})") from error
    if array.dtype.kind not in "biuf" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(f"{name}: expected real numbers, got dtype {array.dtype}")
    return array


def known_numbers(value: Any, name: str, *, finite: bool = True, largest: float | None = None) -> np.ndarray:
    """Real numbers, finite unless told otherwise and at most ``largest``, as a new array of doubles for NumPy.

    >>> known_numbers([1, 2.5], "gammas", largest=2.0)
    Traceback (most recent call last):
    ValueError: gammas: expected numbers up to 2, got 2.5 at index (1,)
    """
    array = np.array(_real(value, name, np), np.float64)
    if finite:
        require(np.isfinite, array, name, "finite numbers")
    if largest is not None:
        require(lambda x: np.abs(x) <= largest, array, name, f"numbers up to {largest:g}")
    return array


def number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    below: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> float:
    """A finite real number within bounds, in double precision whatever JAX is set to.

    >>> number(0.5, "level", above=0, below=0.5)
    Traceback (most recent call last):
    ValueError: level: expected a number > 0 and < 0.5, got 0.5
    """
    array = known_numbers(value, name)
    if array.ndim:
        raise ValueError(f"{name}: expected a number, got shape {array.shape}")
    bounds = (
        (">", above, operator.gt),
        ("<", below, operator.lt),
        (">=", least, operator.ge),
        ("<=", most, operator.le),
    )
    asked = {f"{sign} {bound:g}": holds(array, bound) for sign, bound, holds in bounds if bound is not None}
    require(lambda _: all(asked.values()), array, name, f"a number {' and '.join(asked)}")
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


def finite(value: Any, name: str, *, ndim: int | None = None, dtype: Any = None) -> Float[Array, "*shape"]:
    """Real numbers without NaN or infinity, of ``ndim`` dimensions if given.

    >>> finite([1.0, float("nan")], "fields")
    Traceback (most recent call last):
    ValueError: fields: expected finite numbers, got nan at index (1,)
    """
    array = jnp.asarray(known(value, name, common_dtype(value) if dtype is None else dtype))
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected an array of {ndim} dimensions, got shape {array.shape}")
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
    """Numbers strictly between 0 and 1."""
    array = finite(value, name, ndim=ndim, dtype=dtype)
    require(lambda x: (x > 0) & (x < 1), array, name, "numbers strictly between 0 and 1")
    return array


def vectors(value: Any, name: str, *, dim: int | None = None, dtype: Any = None) -> Float[Array, "... dim"]:
    """A vector or a batch of them in leading axes, with ``dim`` entries each if given, at least one.

    >>> vectors([1.0, 2.0], "visible", dim=3)
    Traceback (most recent call last):
    ValueError: visible: expected shape (..., 3), got shape (2,)
    """
    array = finite(value, name, dtype=dtype)
    if array.ndim == 0 or array.shape[-1] == 0 or dim not in (None, array.shape[-1]):
        wanted = "(..., dim) with dim >= 1" if dim is None else f"(..., {dim})"
        raise ValueError(f"{name}: expected shape {wanted}, got shape {array.shape}")
    return array


def matrix(
    value: Any, name: str, *, rows: int | None = None, columns: int | None = None, dtype: Any = None
) -> Float[Array, "rows columns"]:
    """A matrix that is not empty, of the given sizes where they are given.

    >>> matrix(np.zeros((0, 4)), "patterns")
    Traceback (most recent call last):
    ValueError: patterns: expected shape (rows, columns), not empty, got shape (0, 4)
    """
    array = finite(value, name, dtype=dtype)
    if array.ndim != 2 or not array.size or rows not in (None, len(array)) or columns not in (None, array.shape[1]):
        sizes = f"({'rows' if rows is None else rows}, {'columns' if columns is None else columns}), not empty"
        raise ValueError(f"{name}: expected shape {sizes}, got shape {array.shape}")
    return array


def broadcastable(array: Array | np.ndarray, name: str, shape: tuple[int, ...]) -> None:
    """Raise unless ``array`` broadcasts to exactly ``shape``."""
    if array.ndim > len(shape) or any(a not in (1, s) for a, s in zip(array.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(f"{name}: expected a shape that broadcasts to {shape}, got shape {array.shape}")


def same_batch(array: Array | np.ndarray, name: str, other: Array | np.ndarray, other_name: str) -> None:
    """Raise unless the leading axes of two batches of vectors broadcast against each other."""
    ours, theirs = array.shape[:-1], other.shape[:-1]
    if any(a != b and 1 not in (a, b) for a, b in zip(ours[::-1], theirs[::-1], strict=False)):
        wanted = f"leading axes that broadcast with those of {other_name}, {theirs}"
        raise ValueError(f"{name}: expected {wanted}, got {ours}")


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


def instance(value: T, kind: type | tuple[type, ...], name: str) -> T:
    """The value itself, if it is of that type."""
    if not isinstance(value, kind):
        wanted = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        article = "an" if wanted[0] in "AEIOUaeiou" else "a"
        raise ValueError(f"{name}: expected {article} {wanted}, got {type(value).__name__}")
    return value


def choice(value: T, options: Iterable[T], name: str) -> T:
    """The value itself, if it is among the options."""
    known = list(options)
    if value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(map(str, known))}, got {value!r}")
    return value


def key(value: Any, name: str = "key") -> PRNGKeyArray:
    """A key of ``jax.random``, new or old style.

    >>> key(0)
    Traceback (most recent call last):
    ValueError: key: expected one key of jax.random, as jax.random.key(0) makes it, got int
    """
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    # An old key is two words, or four for some generators.
    old = dtype == np.uint32 and shape in ((2,), (4,))
    if not old and not (shape == () and dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)):
        got = type(value).__name__ if shape is None else f"an array of {dtype} with shape {tuple(shape)}"
        raise ValueError(f"{name}: expected one key of jax.random, as jax.random.key(0) makes it, got {got}")
    key: PRNGKeyArray = value
    return key


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
        known = _real(value, name, np)
        # PyTorch lacks the short types that other packages add to NumPy.
        value = torch.as_tensor(
            np.array(known, np.float32 if known.dtype.kind == "V" else known.dtype.newbyteorder("="))
        )
    if value.is_complex():
        raise ValueError(f"{name}: expected real numbers, got dtype {value.dtype}")
    array = value.to(dtype=dtype or own_dtype, device=device or own_device)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected an array of {ndim} dimensions, got shape {tuple(array.shape)}")
    # Only a tensor that fails is copied to the host to find its first bad entry.
    if not torch.isfinite(array).all():
        require(np.isfinite, array.detach().cpu().double().numpy(), name, "finite numbers")
    return array
