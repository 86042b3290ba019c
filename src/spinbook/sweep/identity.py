"""Which sweep a folder belongs to: fingerprints of values, and what a function and its tasks are made of."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["code_version", "derived", "fingerprint"]

_INSTALLED = {"site-packages", "dist-packages"}


def fingerprint(*values: Any) -> str:
    """SHA-256 of arrays, numbers, strings, ``None``, and lists, tuples and dictionaries of them.

    Equal for equal values of equal types, and for nothing else.

    >>> fingerprint([1.0, "a"], {"x": np.arange(3)}) == fingerprint([1.0, "a"], {"x": np.arange(3)})  # exact
    True
    >>> fingerprint(np.float32(1)) == fingerprint(np.float64(1))  # exact
    False
    """
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if value is None or isinstance(value, str):
            # The length keeps neighbouring strings apart.
            digest.update(f"{type(value).__name__} {len(value or '')} {value}".encode())
        elif isinstance(value, Mapping):
            add([item for key in sorted(value) for item in (key, value[key])])
        elif isinstance(value, (list, tuple)):
            digest.update(f"list {len(value)}".encode())
            for item in value:
                add(item)
        else:
            masked = isinstance(value, np.ma.MaskedArray)
            array = np.ascontiguousarray(value)
            if masked or array.dtype.hasobject:
                raise ValueError(f"values: expected arrays, numbers and strings, got {type(value).__name__}")
            digest.update(f"array {array.dtype.str} {np.shape(value)}".encode())
            digest.update(array.tobytes())

    add(values)
    return digest.hexdigest()


class _Anatomy:
    """Values as what ``fingerprint`` takes, and the modules where the functions and classes among them are defined."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self._inside: list[int] = []

    def of(self, value: Any) -> Any:
        """The parts of a value that tell it from others, named by its type."""
        if id(value) in self._inside:
            raise ValueError(f"a {type(value).__name__} that contains itself")
        self._inside.append(id(value))
        try:
            return self._parts(value)
        finally:
            self._inside.pop()

    def _name(self, value: Any) -> str:
        module = str(getattr(value, "__module__", None))
        self.modules.add(module)
        # NumPy's functions of arrays have no qualified name before 2.2.
        return f"{module}.{getattr(value, '__qualname__', value.__name__)}"

    def _parts(self, value: Any) -> Any:
        kind = type(value).__name__
        if value is None or (isinstance(value, (str, float, complex, np.ndarray, np.generic)) and not _is_enum(value)):
            return value
        if isinstance(value, enum.Enum):
            return ["enum", self._name(type(value)), value.name]
        if isinstance(value, int):
            return [kind, str(int(value))]
        if isinstance(value, (bytes, bytearray)):
            return [kind, value.hex()]
        if isinstance(value, Path):
            return ["path", os.fspath(value)]
        if value is Ellipsis or isinstance(value, (range, slice)):
            return [kind, repr(value)]
        if isinstance(value, Mapping):
            items = [[self.of(key), self.of(item)] for key, item in value.items()]
            return [kind, sorted(items, key=lambda item: fingerprint(item[0]))]
        if isinstance(value, (list, tuple)):
            return [kind, [self.of(item) for item in value]]
        if isinstance(value, (set, frozenset)):
            return [kind, sorted(fingerprint(self.of(item)) for item in value)]
        if isinstance(value, functools.partial):
            return [kind, self.of(value.func), self.of(value.args), self.of(value.keywords)]
        if isinstance(value, types.MethodType):
            return [kind, self.of(value.__func__), self.of(value.__self__)]
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.CodeType):
            # Positions in the file are left out: they move with every line above.
            parts = [value.co_names, value.co_varnames, value.co_freevars, value.co_consts]
            return ["code", value.co_code.hex(), [self.of(part) for part in parts]]
        if isinstance(value, types.ModuleType):
            self.modules.add(value.__name__)
            return [kind, value.__name__]
        # What wraps a Python function: functools.cache, jax.jit, numba.njit.
        inner = getattr(value, "__wrapped__", None) or getattr(value, "py_func", None)
        if inner is not None and callable(value):
            return ["wrapped", kind, self.of(inner)]
        if isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)):
            return [kind, self._name(value)]
        if hasattr(value, "__array__") or hasattr(value, "__jax_array__"):
            return [kind, _as_array(value)]
        if dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return ["object", self._name(type(value)), self.of(fields)]
        if hasattr(value, "__dict__") and type(value).__module__ != "builtins":
            return ["object", self._name(type(value)), self.of(vars(value))]
        raise ValueError(f"a {type(value).__module__}.{type(value).__qualname__}")

    def _function(self, function: types.FunctionType) -> Any:
        closure = [cell.cell_contents for cell in function.__closure__ or ()]
        parts = [function.__code__, function.__defaults__, function.__kwdefaults__, closure]
        described = ["function", self._name(function), [self.of(part) for part in parts]]
        if _source(function.__module__) is None:
            # In a notebook: no file tells what the names in it mean.
            known = function.__globals__
            for name in sorted(_names(function.__code__) & known.keys()):
                if id(known[name]) not in self._inside:
                    described.append([name, self.of(known[name])])
        return described


def _is_enum(value: Any) -> bool:
    return isinstance(value, enum.Enum)


def _as_array(value: Any) -> np.ndarray:
    dtype = getattr(value, "dtype", None)
    if str(dtype).startswith("key<"):
        # Keys of JAX are not numbers, and become some only when asked.
        import jax

        value = jax.random.key_data(value)
    return np.asarray(value)


def _names(code: types.CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*(_names(const) for const in inner))


def _source(module: str) -> Path | None:
    """The file of a module, unless it is an installed package, whose version says enough."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None or not file.endswith(".py") else Path(file)


def _is_own(module: str) -> bool:
    """Whether a module has a source that is neither installed nor of Python itself."""
    file = _source(module)
    standard = Path(os.__file__).parent
    return file is not None and not _INSTALLED.intersection(file.parts) and standard not in file.parents


def _related(modules: Iterable[str]) -> list[str]:
    """These modules and all others of one's own that they take anything from, and so on; sorted."""
    todo, seen = list(modules), set(modules)
    while todo:
        name = todo.pop()
        for value in vars(sys.modules.get(name, types.SimpleNamespace())).values():
            other = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            if isinstance(other, str) and other not in seen and _is_own(other):
                seen.add(other)
                todo.append(other)
    return sorted(seen)


def _versions(modules: Iterable[str]) -> dict[str, str]:
    """The source of own modules and of those related to them, the version of installed ones."""
    versions = {}
    own = set()
    for name in modules:
        if _is_own(name):
            own.add(name)
        else:
            package = name.partition(".")[0]
            versions[package] = str(getattr(sys.modules.get(package), "__version__", ""))
    for name in _related(own):
        file = _source(name)
        if file is not None and file.exists():
            versions[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return versions


def code_version(function: Callable[..., Any]) -> str:
    """A fingerprint of the code that a function is part of, for an ``identity`` that is put together by hand.

    That of the source of its module and of those modules that it draws on and that are not installed, or of the version
    of an installed package; of the function alone where no file has its source.

    >>> code_version(fingerprint) == code_version(derived)  # exact
    True
    """
    anatomy = _Anatomy()
    module = str(function.__module__)
    alone = anatomy.of(function) if _source(module) is None else None
    return fingerprint(alone, _versions({module} | anatomy.modules))


def derived(function: Any, tasks: Sequence[Any]) -> dict[str, str]:
    """``function``, ``tasks`` and ``code``, each a fingerprint: what makes two sweeps the same.

    The function with its arguments so far, its defaults and what it closes over; the tasks; and the source of the
    modules that it draws on and that are not installed (the version of a package that is installed). Raises
    ``ValueError`` for what has no description that another process would find again.

    >>> derived(abs, [1, 2])["tasks"] == derived(abs, [2, 1])["tasks"]  # exact
    False
    """
    anatomy = _Anatomy()
    parts = {}
    for name, value in (("function", function), ("tasks", list(tasks))):
        try:
            parts[name] = fingerprint(anatomy.of(value))
        except (ValueError, TypeError, RuntimeError) as error:
            raise ValueError(f"identity: expected one, because {name} cannot be described, got {error}") from error
    return parts | {"code": fingerprint(_versions(anatomy.modules))}
