"""What the functions of a library return, multiplied by a number near one or rounded, wherever they are called from.

``multiply`` has the module of one function read with one statement more, directly after the definition, so that
whatever imports the name, takes it into a table or compiles it gets the multiplied function. What is multiplied is the
first floating number or array of the result:

- of a tuple, a list, a dictionary or a dataclass the first part that has one, the others stay;
- of a Dataset of xarray every variable of floating numbers, since its claims read them by name; coordinates stay;
- of a function that is returned, what that function returns in turn;
- of a class what calling its instances returns (``__call__`` or ``forward``), not what it is made of.

``round_all`` has every module of some packages read with one decorator more on each public function and on the public
methods and ``__call__`` of each public class, but for what numba compiles. Every floating number and array that they
return is rounded to the 24 binary digits of single precision and keeps its type. Sums inside a function keep their
digits: this is the least that single precision costs, not the most.

Values of other types are returned unchanged. Both have to come before the first import of what they change. This file
imports nothing but the standard library, since ``startup`` copies it to where only Python itself is sure to be.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import inspect
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

FORM = 1
"""Counts the changes of what is multiplied, and of which statements run; results of another form are ignored."""
NOTE = "nudged.json"
"""Where a run notes whether the function was called, and whether anything was multiplied."""

_CALLS = ("__call__", "forward")
_FLOATING = ("float", "bfloat", "complex")
_SHORT = {"float64": "float32", "complex128": "complex64"}
_factor = 1.0
_seen = {"called": False, "applied": False}


def multiply(module: str, name: str, factor: float) -> None:
    """Multiply what ``name`` of ``module`` returns; a method as CLASS.METHOD.

    Raises ``ValueError`` if the module was imported before, and, when it is imported, if it has no such definition.
    """
    global _factor

    def change(tree: ast.Module) -> None:
        place = _place(tree, name)
        if place is None:
            raise ValueError(f"name: expected a function that {module} defines, got {name}")
        body, index, local = place
        more = ast.parse(f"{local} = {_this('wrapped')}({local})").body
        body[index + 1 : index + 1] = more

    _change("module", [module], lambda fullname: fullname == module, change)
    _factor = factor


def round_all(*packages: str) -> None:
    """Round what the public functions of ``packages`` return; raises ``ValueError`` if one is imported already."""
    _change("package", packages, lambda fullname: fullname.partition(".")[0] in packages, _decorate)


def startup(folder: Path, *packages: str) -> Path:
    """``folder``, in which Python finds, where it is on its path, what makes it call ``round_all`` when it starts."""
    alone = "_companion_rounding"
    shutil.copy(__file__, folder / f"{alone}.py")
    code = f"import {alone}\n\n{alone}.round_all(*{packages!r})\n"
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    return folder


def noted(folder: Path) -> dict[str, bool]:
    """What a run in ``folder`` has noted; nothing if the function was never called."""
    path = folder / NOTE
    found: dict[str, bool] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return dict(_seen, called=False, applied=False) | found


_tree = functools.lru_cache(maxsize=64)(ast.parse)


def can_be_called(code: str, name: str) -> bool:
    """Whether a name that a module defines is a function, or a class whose instances are called; not a mere record."""
    return _place(_tree(code), name) is not None


def _change(
    kind: str, names: Sequence[str], concerns: Callable[[str], bool], change: Callable[[ast.Module], None]
) -> None:
    """Have every module whose name ``concerns`` accepts read with its code changed."""
    for name in names:
        if name in sys.modules:
            raise ValueError(f"{kind}: expected one that is not imported yet, got {name}")
    sys.meta_path.insert(0, _Finder(concerns, change))


class _Finder(MetaPathFinder):
    def __init__(self, concerns: Callable[[str], bool], change: Callable[[ast.Module], None]) -> None:
        self._concerns, self._change = concerns, change

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if self._concerns(fullname) else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self._change)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, change: Callable[[ast.Module], None]) -> None:
        super().__init__(fullname, path)
        self._change = change

    def get_code(self, fullname: str) -> CodeType:
        """The changed code of the module; compiled anew, because a cache has it unchanged."""
        tree = ast.parse(self.get_data(self.path))
        self._change(tree)
        code: CodeType = compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)
        return code


def _this(name: str) -> str:
    """An expression for what this module defines, in a module that does not import it."""
    return f"__import__({__name__!r}, fromlist=['_']).{name}"


def _decorate(tree: ast.Module) -> None:
    decorator = ast.parse(_this("rounded"), mode="eval").body
    for node in _public(tree.body):
        for function in [node] if isinstance(node, ast.FunctionDef) else _public(node.body, also="__call__"):
            # numba takes no decorated function.
            compiled = any(ast.unparse(other).startswith("numba.") for other in function.decorator_list)
            if isinstance(function, ast.FunctionDef) and not compiled:
                # Innermost: what compiles, caches or binds a function gets the rounded one.
                function.decorator_list.append(decorator)


def _public(body: Sequence[ast.stmt], also: str = "") -> list[ast.FunctionDef | ast.ClassDef]:
    found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [node for node in found if not node.name.startswith("_") or node.name == also]


def _place(tree: ast.Module, name: str) -> tuple[list[ast.stmt], int, str] | None:
    """The statements among which a name is defined last, where, and how it is called there."""
    owner, _, member = name.partition(".")
    found = _last(tree.body, owner)
    if found is None:
        return None
    body, index = found
    node = body[index]
    if isinstance(node, ast.ClassDef):
        for called in [member] if member else _CALLS:
            inner = _last(node.body, called)
            if inner is not None:
                return *inner, called
        return None
    return None if member else (body, index, owner)


def _last(body: list[ast.stmt], name: str) -> tuple[list[ast.stmt], int] | None:
    for index in range(len(body) - 1, -1, -1):
        node = body[index]
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and node.name == name:
            return body, index
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets):
            return body, index
        for part in ("body", "orelse"):
            inner = getattr(node, part, None) if isinstance(node, ast.If | ast.Try) else None
            if inner and (found := _last(inner, name)):
                return found
    return None


def _followed(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function, and ``change`` of what it returns."""

    @functools.wraps(function)
    def changed(*arguments: Any, **options: Any) -> Any:
        return change(function(*arguments, **options))

    return changed


def rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, and what it returns in single precision."""
    return _followed(function, in_single_precision)


def wrapped(function: Any) -> Any:
    """The function that returns what ``function`` does, multiplied; called by the statement that was added."""
    if isinstance(function, staticmethod | classmethod):
        return type(function)(wrapped(function.__func__))
    if isinstance(function, property):
        return property(wrapped(function.fget), function.fset, function.fdel, function.__doc__)
    return _followed(function, _noticed) if inspect.isfunction(function) else _Wrapped(function)


class _Wrapped:
    """A callable object that is multiplied, and otherwise is the object that it stands for."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return _noticed(self._function(*arguments, **options))

    def __getattr__(self, name: str) -> Any:
        if name == "_function":
            raise AttributeError(name)
        return getattr(self._function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _noticed(value: Any) -> Any:
    new, changed = multiplied(value, _factor)
    if not _seen["called"] or (changed and not _seen["applied"]):
        _seen.update(called=True, applied=_seen["applied"] or changed)
        if folder := os.environ.get("COMPANION_OUT"):
            (Path(folder) / NOTE).write_text(json.dumps(_seen), encoding="utf-8")
    return new


def multiplied(value: Any, factor: float) -> tuple[Any, bool]:
    """``value`` with its first floating number or array multiplied, and whether there was one.

    >>> multiplied((True, 2.0, 3.0), 1.5)
    ((True, 3.0, 3.0), True)
    """
    if (kind := _kind(value)) is not None:
        return (value * factor, True) if kind.startswith(_FLOATING) else (value, False)
    if isinstance(value, float | complex):
        return value * factor, True
    if hasattr(value, "data_vars"):
        columns = {name: multiplied(column, factor) for name, column in value.data_vars.items()}
        # Arithmetic drops what is written down with a variable.
        kept = {name: column.assign_attrs(value[name].attrs) for name, (column, done) in columns.items() if done}
        return (value.assign(kept), True) if kept else (value, False)
    if isinstance(value, FunctionType | MethodType | functools.partial):
        return wrapped(value), False
    parts, whole = _parts(value)
    for index, part in enumerate(parts):
        new, changed = multiplied(part, factor)
        # A part that is a function is another one now, though nothing was multiplied yet.
        if new is not part:
            return whole([*parts[:index], new, *parts[index + 1 :]]), changed
    return value, False


def in_single_precision(value: Any) -> Any:
    """``value``, of the same type, with every floating number and array in it rounded; others stay what they are.

    >>> in_single_precision((True, 1.1, 3))
    (True, 1.100000023841858, 3)
    """
    if (kind := _kind(value)) is not None:
        return _there_and_back(value, _SHORT[kind]) if kind in _SHORT else value
    if isinstance(value, float | complex):
        import numpy as np

        with np.errstate(all="ignore"):
            return complex(np.complex64(value)) if isinstance(value, complex) else float(np.float32(value))
    if isinstance(value, dict) and type(value) is not dict:
        return value
    parts, whole = _parts(value)
    new = [in_single_precision(part) for part in parts]
    return value if all(one is other for one, other in zip(new, parts, strict=True)) else whole(new)


def _kind(value: Any) -> str | None:
    """The name of the type of an array's entries; None of what is no array."""
    kind = getattr(value, "dtype", None)
    return None if kind is None else str(kind).removeprefix("torch.")


def _parts(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """What a value consists of, and how it is put together from other parts; no parts where it is not taken apart."""
    if isinstance(value, tuple | list):
        make = type(value)
        return list(value), lambda parts: make(*parts) if hasattr(value, "_fields") else make(parts)
    if isinstance(value, dict):
        return list(value.values()), lambda parts: dict(zip(value, parts, strict=True))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return [], lambda parts: value
    names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]

    def whole(parts: list[Any]) -> Any:
        new = copy.copy(value)
        for name, part in zip(names, parts, strict=True):
            # A frozen one refuses to be changed; nobody else has this copy yet.
            object.__setattr__(new, name, part)
        return new

    return [getattr(value, name) for name in names], whole


def _there_and_back(value: Any, short: str) -> Any:
    if hasattr(value, "detach"):
        import torch

        # What an optimizer changes has to stay the tensor that it is.
        if value.requires_grad and value.is_leaf:
            return value
        return value.to(getattr(torch, short)).to(value.dtype)
    import numpy as np

    with np.errstate(all="ignore"):
        return value.astype(short).astype(value.dtype)
