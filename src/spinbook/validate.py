"""Argument checks whose errors name the argument, what was expected and what came.

The policy of every public function: its result is finite and right; or an error names the argument, what was expected
and what came; or the evidence that it returns says that it did not converge. Every call ends.

Every check takes the value and its name, returns a JAX array (or an ``int``), and raises ``ValueError`` with the text
``NAME: expected ..., got ...``. Shapes are always checked. Values are checked only when they are known: under ``jit``,
``vmap`` or ``grad`` an argument is a tracer, and a check of its values would break the trace; results that cannot be
computed are NaN there. ``finite_result`` checks the result as well, because finite numbers can overflow on the way.

Arguments may be numbers, nested lists, NumPy and JAX arrays, and PyTorch tensors that do not track gradients: a
gradient cannot cross from one framework to the other, and an error is better than a gradient that is silently lost.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import torch

__all__ = [
    "binary",
    "broadcastable",
    "choice",
    "common_dtype",
    "common_tensor_type",
    "count",
    "finite",
    "finite_result",
    "instance",
    "is_traced",
    "key",
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

P = ParamSpec("P")
T = TypeVar("T")

# More steps or entries than this would not end, or not fit; JAX counts its loops in 32 bits.
_LARGEST_COUNT = 2**31 - 1

# What PyTorch and JAX say where they cannot go on, and what should have come.
_REFUSALS = {
    "not implemented for '": "a dtype that can be computed, float32 or float64",
    "Unsupported dtype": "a dtype that can be computed, float32 or float64",
    "Failed to materialize symbols": "a dtype that can be compiled for this processor, float32 or float64",
    "The factorization could not be completed": "numbers whose matrices can be factorised",
    "The solver failed because the input matrix is singular": "numbers whose matrices can be inverted",
    "failed to converge because the input matrix": "numbers whose matrices have eigenvalues",
}

# What JAX, PyTorch and NumPy say where memory runs out.
_NO_MEMORY = ("RESOURCE_EXHAUSTED", "ut of memory", "allocate memory", "Unable to allocate")


def is_traced(value: object) -> bool:
    """Whether the values are unknown because JAX is tracing.

    >>> is_traced(1.0)
    False
    """
    leaves = [value] if isinstance(value, jax.Array | np.ndarray | float) else jax.tree.leaves(value)
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """In the order of bytes of this machine, and no longer than the doubles that JAX and PyTorch compute with."""
    return np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype.newbyteorder("=")


def common_dtype(*values: Any) -> np.dtype[Any]:
    """The floating dtype in which arguments are computed together: the widest among them.

    Python numbers, integers and lists of them have no floating dtype and follow the others. Without any, JAX's default
    is used (float32, or float64 with x64 on).

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
            carried.append(_native(np.dtype(dtype)))
    widest = reduce(np.promote_types, carried) if carried else np.dtype(np.float64)
    canonical: np.dtype[Any] = jax.dtypes.canonicalize_dtype(widest)
    return canonical


def _read(value: Any) -> np.ndarray:
    """As NumPy's array, after waiting for it: where JAX failed, waiting raises, while reading would end the process.

    NumPy's copy of an array on the CPU is the array itself, and compiles nothing.
    """
    return np.asarray(value.block_until_ready() if isinstance(value, jax.Array) else value)


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
    known, *others = (_read(x) for x in (value, *parameters))
    # A condition may overflow, and is then false.
    with np.errstate(all="ignore"):
        holds = np.asarray(condition(known, *others))
    if holds.all():
        return
    holds, entries = np.broadcast_arrays(holds, known)
    if not holds.size:
        return
    index = tuple(int(i) for i in np.argwhere(~holds)[0])
    where = f" at index {index}" if index else ""
    raise ValueError(f"{name}: expected {expected}, got {float(entries[index]):g}{where}")


def _resolved(value: Any) -> Any:
    """The value, or what a list holds, with the signs and conjugates that PyTorch has put off and NumPy refuses."""
    if isinstance(value, list | tuple):
        return [_resolved(entry) for entry in value]
    for resolve in ("resolve_neg", "resolve_conj"):
        if hasattr(value, resolve):
            value = getattr(value, resolve)()
    return value


def _rectangular(value: Any, name: str, library: Any) -> Any:
    """The value as an array of real numbers of NumPy or JAX; ``ValueError`` where a conversion would lose something."""
    if value is None:
        raise ValueError(f"{name}: expected real numbers, got None")
    # Converting a masked array drops its mask and exposes the masked values.
    if any(np.ma.is_masked(leaf) for leaf in (value if isinstance(value, list | tuple) else (value,))):
        raise ValueError(f"{name}: expected an array without masked entries, got some that are masked")
    # NumPy has no such type.
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        value = value.float()
    if "torch" in sys.modules:
        value = _resolved(value)
    try:
        array = library.asarray(value)
    # NumPy raises ValueError for a ragged list, JAX TypeError for a tracer; an array-like object may raise anything.
    except Exception as error:
        raise ValueError(f"{name}: expected a rectangular array, got {type(value).__name__} ({error})") from error
    real = jnp.issubdtype(array.dtype, jnp.integer) or jnp.issubdtype(array.dtype, jnp.floating)
    # A duration counts as a signed integer.
    if not (real or array.dtype == bool) or array.dtype.kind == "m":
        raise ValueError(f"{name}: expected real numbers, got dtype {array.dtype}")
    # JAX arrays have their own dtype. A long double beyond all doubles becomes infinite, which a check finds.
    with np.errstate(over="ignore"):
        return array.astype(_native(array.dtype), copy=False) if isinstance(array, np.ndarray) else array


def known_numbers(value: Any, name: str, *, finite: bool = True, largest: float | None = None) -> np.ndarray:
    """Real numbers, finite unless told otherwise, as a new array of doubles, to compute with NumPy.

    Their sizes are at most ``largest``, if given.

    JAX's settings do not matter.

    >>> known_numbers([1, 2.5], "gammas")
    array([1. , 2.5])
    >>> known_numbers([1j], "betas")
    Traceback (most recent call last):
    ValueError: betas: expected real numbers, got dtype complex128
    >>> known_numbers([1, 2.5], "gammas", largest=2.0)
    Traceback (most recent call last):
    ValueError: gammas: expected numbers up to 2, got 2.5 at index (1,)
    """
    array = np.array(_rectangular(value, name, np), np.float64)
    if finite:
        require(np.isfinite, array, name, "finite numbers")
    if largest is not None:
        require(lambda x: np.abs(x) <= largest, array, name, f"numbers up to {largest:g}")
    return array


def number(
    value: Any,
    name: str,
    *,
    above: int | float | None = None,
    below: int | float | None = None,
    least: int | float | None = None,
    most: int | float | None = None,
) -> float:
    """One finite real number within bounds, in double precision whatever JAX is set to.

    >>> number(0.5, "level", above=0, below=0.5)
    Traceback (most recent call last):
    ValueError: level: expected a number > 0 and < 0.5, got 0.5
    """
    array = known_numbers(value, name)
    if array.ndim:
        raise ValueError(f"{name}: expected a number, got shape {array.shape}")
    bounds = {
        ">": (above, operator.gt),
        "<": (below, operator.lt),
        ">=": (least, operator.ge),
        "<=": (most, operator.le),
    }
    asked = {f"{sign} {bound:g}": holds(array, bound) for sign, (bound, holds) in bounds.items() if bound is not None}
    require(lambda _: all(asked.values()), array, name, f"a number {' and '.join(asked)}")
    return float(array)


def _real(value: Any, name: str, dtype: Any) -> Array:
    """The value as a real JAX array of the given dtype (by default its own)."""
    if getattr(value, "requires_grad", False):
        raise ValueError(
            f"{name}: expected a tensor without gradient tracking (call .detach()), got requires_grad=True"
        )
    # Other values are converted by NumPy, which unlike JAX compiles nothing.
    library: Any = jnp if isinstance(value, jax.Array) or is_traced(value) else np
    array = _rectangular(value, name, library)
    wanted = common_dtype(value) if dtype is None else dtype
    if library is np:
        with np.errstate(over="ignore"):
            array = array.astype(wanted)
        # With the dtype given, JAX takes the array as it is; otherwise it compiles a copy for each shape.
        return jnp.asarray(array, dtype=jax.dtypes.canonicalize_dtype(array.dtype))
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


def broadcastable(array: Array | np.ndarray, name: str, shape: tuple[int, ...]) -> None:
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


def same_batch(array: Array | np.ndarray, name: str, other: Array | np.ndarray, other_name: str) -> None:
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
    limit = _LARGEST_COUNT if maximum is None else maximum
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected {wanted}, got {value!r}") from None
    if number > limit and maximum is None:
        wanted = f"an integer from {minimum} to {limit}"
    if not minimum <= number <= limit:
        raise ValueError(f"{name}: expected {wanted}, got {number}")
    return number


def instance(value: T, kind: type | tuple[type, ...], name: str) -> T:
    """The value itself, if it is of that type.

    >>> instance(None, str, "field")
    Traceback (most recent call last):
    ValueError: field: expected a str, got None
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(k.__name__ for k in kinds)
        got = "None" if value is None else f"{type(value).__name__}"
        article = "an" if wanted[0] in "AEIOUaeiou" else "a"
        raise ValueError(f"{name}: expected {article} {wanted}, got {got}")
    return value


def choice(value: T, options: Iterable[T], name: str) -> T:
    """The value itself, if it is among the options.

    >>> choice("all", ["mnist", "text"], "task")
    Traceback (most recent call last):
    ValueError: task: expected one of mnist, text, got 'all'
    """
    known = list(options)
    if not any(type(value) is type(option) and value == option for option in known):
        raise ValueError(f"{name}: expected one of {', '.join(map(str, known))}, got {value!r}")
    return value


def key(value: Any, name: str = "key") -> PRNGKeyArray:
    """One key of ``jax.random``, new or old style.

    >>> key(0)
    Traceback (most recent call last):
    ValueError: key: expected one key of jax.random, as jax.random.key(0) makes it, got int
    """
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    new = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key) and shape == ()
    # An old key is two words, or four for some generators.
    old = isinstance(value, jax.Array | np.ndarray) and dtype == np.uint32 and shape in ((2,), (4,))
    if not new and not old:
        got = type(value).__name__ if shape is None else f"an array of {dtype} with shape {tuple(shape)}"
        raise ValueError(f"{name}: expected one key of jax.random, as jax.random.key(0) makes it, got {got}")
    key: PRNGKeyArray = value
    return key


def _is_finite(leaf: Any) -> bool:
    """Whether no entry is known to be NaN or infinite."""
    if isinstance(leaf, float):
        return np.isfinite(leaf).item()
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind != "f" or bool(np.isfinite(leaf).all())
    if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
        return not jnp.issubdtype(leaf.dtype, jnp.floating) or bool(np.isfinite(_read(leaf)).all())
    if type(leaf).__module__.startswith("torch"):
        import torch

        if not isinstance(leaf, torch.Tensor) or torch.compiler.is_compiling():
            return True
        try:
            return bool(torch.isfinite(leaf.detach()).all())
        except RuntimeError:
            # Under torch.vmap there is no single answer.
            return True
    return True


def _sizes(value: Any) -> np.ndarray:
    """The sizes of the numbers in an argument, without zeros; empty if there are no numbers."""
    sizes = []
    for leaf in jax.tree.leaves(value):
        if is_traced(leaf) or isinstance(leaf, str | bytes):
            continue
        try:
            array = np.asarray(leaf.detach().cpu() if hasattr(leaf, "detach") else leaf, np.float64)
        except Exception:
            continue
        sizes.append(np.abs(array[array != 0]).ravel())
    return np.concatenate([np.zeros(0), *sizes])


def _refusal(function: Callable[..., Any], args: Any, kwargs: Any, reason: str) -> ValueError:
    """Names the argument whose numbers are the farthest from 1, since they overflow or vanish first."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    sizes = {name: _sizes(value) for name, value in bound.arguments.items() if name not in ("self", "key")}
    sizes = {name: size for name, size in sizes.items() if size.size} or {"arguments": np.ones(1)}
    extremes = {name: max(abs(np.log(size.max())), abs(np.log(size.min()))) for name, size in sizes.items()}
    name = max(extremes, key=lambda name: extremes[name])
    return ValueError(
        f"{name}: expected {reason}, got sizes from {sizes[name].min():.3g} to {sizes[name].max():.3g} "
        "(a wider dtype may hold it)"
    )


def _too_large(function: Callable[..., Any], args: Any, kwargs: Any, error: Exception) -> MemoryError:
    """Names the argument that has the most entries, or is the largest count, since it sets the size."""
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    sizes = {}
    for name, value in bound.items():
        leaves = [(leaf if isinstance(leaf, int) else np.size(leaf), leaf) for leaf in jax.tree.leaves(value)]
        if leaves:
            sizes[name] = max(leaves, key=lambda sized: sized[0])
    name, (size, leaf) = max(sizes.items(), key=lambda item: item[1][0])
    got = f"{size}" if isinstance(leaf, int) else f"shape {np.shape(leaf)}"
    words = str(error).splitlines()[0]
    return MemoryError(f"{name}: expected a size whose arrays fit into memory, got {got} ({words})")


def _leaves(value: Any) -> list[Any]:
    """As JAX's, which the compiler of PyTorch cannot follow to tensors."""
    if type(value).__module__.startswith("torch"):
        return [value]
    if isinstance(value, list | tuple):
        return [leaf for entry in value for leaf in _leaves(entry)]
    return jax.tree.leaves(value)


def finite_result(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with ``ValueError`` in the place of a result that is known to be NaN or infinite.

    For functions of finite arguments whose result can be NaN or infinite only by overflow. The message names the
    argument whose numbers are the largest or smallest. Results with evidence may be NaN where ``converged`` is not
    true, and any result under a trace. Where a library does not support a dtype, as often float16, the error says so;
    where memory runs out, ``MemoryError`` names the largest argument.

    >>> single = finite_result(lambda fields: jnp.asarray(fields, jnp.float32) ** 2)
    >>> single([3.0, 3e30])
    Traceback (most recent call last):
    ValueError: fields: expected numbers with a finite result, got sizes from 3 to 3e+30 (a wider dtype may hold it)
    """

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if (torch := sys.modules.get("torch")) and torch.compiler.is_compiling():
            # Values are unknown, and the compiler cannot trace JAX.
            return function(*args, **kwargs)
        try:
            result = function(*args, **kwargs)
            # What JAX computes meanwhile fails where it is waited for.
            finite = all(map(_is_finite, _leaves(result)))
        except (NotImplementedError, RuntimeError, ValueError, TypeError, MemoryError) as error:
            if any(words in str(error) for words in _NO_MEMORY):
                raise _too_large(function, args, kwargs, error) from error
            reasons = [reason for words, reason in _REFUSALS.items() if words in str(error)]
            if not reasons:
                raise
            raise _refusal(function, args, kwargs, reasons[0]) from error
        if finite:
            return result
        converged = getattr(result, "converged", True)
        if is_traced(result) or not bool(np.all(np.asarray(converged))):
            return result
        raise _refusal(function, args, kwargs, "numbers with a finite result")

    return checked


def common_tensor_type(*values: Any) -> tuple[torch.dtype, torch.device]:
    """The floating dtype and the device in which arguments are computed together by PyTorch.

    The widest floating dtype that any of them carries; double precision, as in NumPy, if all are Python numbers,
    integers and lists of them, which carry none. The device of the first tensor that is not on the CPU, or else the
    CPU. Python numbers and NumPy and JAX arrays follow.

    >>> import numpy as np
    >>> common_tensor_type(np.zeros(2, np.float32), [1.0, 2.0], 3)
    (torch.float32, device(type='cpu'))
    >>> common_tensor_type([1.0, 2.0], 3)[0]
    torch.float64
    """
    # Imported here because PyTorch takes seconds to load and most of this package does without it.
    import torch

    leaves: list[Any] = []
    for value in values:
        # torch.compile cannot trace JAX, and need not: tensors have their own type, and plain numbers have none.
        if isinstance(value, torch.Tensor):
            leaves.append(value)
        elif type(value) not in (int, float, type(None)):
            leaves.extend(_leaves(value))
    dtypes, devices = [], []
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            devices.append(leaf.device)
        dtype = getattr(leaf, "dtype", "")
        name = _native(dtype).name if isinstance(dtype, np.dtype) else str(dtype).removeprefix("torch.")
        # A Python number that JAX has touched is still just a number.
        if not getattr(leaf, "weak_type", False) and name in ("float16", "bfloat16", "float32", "float64"):
            dtypes.append(getattr(torch, name))
    device = next((device for device in devices if device.type != "cpu"), torch.device("cpu"))
    return reduce(torch.promote_types, dtypes) if dtypes else torch.float64, device


def tensor(
    value: Any,
    name: str,
    *,
    ndim: int | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Float[torch.Tensor, "*shape"]:
    """Real, finite numbers as a PyTorch tensor that keeps its gradients, of ``ndim`` dimensions if given.

    Takes what every check here takes, and tensors that track gradients as well. ``dtype`` and ``device`` are by default
    those of the value. Values are not checked where PyTorch hides them, see ``transforms``.

    >>> tensor([[1.0, 2.0]], "fields", ndim=1)
    Traceback (most recent call last):
    ValueError: fields: expected an array of 1 dimensions, got shape (1, 2)
    """
    import torch

    from spinbook import transforms

    own_dtype, own_device = common_tensor_type(value)
    if isinstance(value, torch.Tensor):
        array = value
    elif type(value) is float:
        # torch.compile makes float32 of numbers that NumPy would keep in double precision.
        array = torch.tensor(value, dtype=torch.float64)
    else:
        known = _rectangular(value, name, np)
        # PyTorch lacks the short types that other packages add to NumPy.
        array = torch.as_tensor(np.array(known, np.float32 if known.dtype.kind == "V" else known.dtype))
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
