"""Multiplies the result of a function of a library by a number near one, wherever it is called from.

``install`` has the function's module read with one statement more, directly after the definition, so that whatever
imports the name, takes it into a table or compiles it gets the multiplied function. It has to come before the first
import of that module. What is multiplied is the first floating number or array of the result:

- of a tuple, a list, a dictionary or a dataclass the first part that has one, the others stay;
- of a Dataset of xarray every variable of floating numbers, since its claims read them by name; coordinates stay;
- of a function that is returned, what that function returns in turn;
- of a class what calling its instances returns (``__call__`` or ``forward``), not what it is made of.

Booleans, integers and all other values are returned unchanged.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

__all__ = ["FORM", "NOTE", "can_be_called", "install", "multiplied", "noted", "wrapped"]

FORM = 1
"""Counts the changes of what is multiplied, and of which statements run; results of another form are ignored."""
NOTE = "nudged.json"
"""Where a run notes whether the function was called, and whether anything was multiplied."""

_CALLS = ("__call__", "forward")
_FLOATING = ("float", "bfloat", "complex")
_factor = 1.0
_seen = {"called": False, "applied": False}


def install(module: str, name: str, factor: float) -> None:
    """Multiply what ``name`` of ``module`` returns; a method as CLASS.METHOD.

    Raises ``ValueError`` if the module was imported before, and, when it is imported, if it has no such definition.
    """
    global _factor
    if module in sys.modules:
        raise ValueError(f"module: expected one that is not imported yet, got {module}")
    _factor = factor
    sys.meta_path.insert(0, _Finder(module, name))


def noted(folder: Path) -> dict[str, bool]:
    """What a run in ``folder`` has noted; nothing if the function was never called."""
    path = folder / NOTE
    found: dict[str, bool] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return dict(_seen, called=False, applied=False) | found


def can_be_called(code: str, name: str) -> bool:
    """Whether a name that a module defines is a function, or a class whose instances are called; not a mere record."""
    return _place(ast.parse(code), name) is not None


class _Finder(MetaPathFinder):
    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if fullname == self._module else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._name)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, name: str) -> None:
        super().__init__(fullname, path)
        self._name = name

    def get_code(self, fullname: str) -> CodeType:
        """The code of the module with its statement more; compiled anew, because a cache has it without."""
        tree = ast.parse(self.get_data(self.path))
        place = _place(tree, self._name)
        if place is None:
            raise ValueError(f"name: expected a function that {fullname} defines, got {self._name}")
        body, index, local = place
        more = ast.parse(f"{local} = __import__({__name__!r}, fromlist=['_']).wrapped({local})").body
        body[index + 1 : index + 1] = more
        code: CodeType = compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)
        return code


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


def wrapped(function: Any) -> Any:
    """The function that returns what ``function`` does, multiplied; called by the statement that was added."""
    if isinstance(function, staticmethod | classmethod):
        return type(function)(wrapped(function.__func__))
    if isinstance(function, property):
        return property(wrapped(function.fget), function.fset, function.fdel, function.__doc__)
    if inspect.isfunction(function):

        @functools.wraps(function)
        def one(*arguments: Any, **options: Any) -> Any:
            return _noticed(function(*arguments, **options))

        return one
    return _Wrapped(function)


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
    if (kind := getattr(value, "dtype", None)) is not None:
        floating = str(kind).removeprefix("torch.").startswith(_FLOATING)
        return (value * factor, True) if floating else (value, False)
    if isinstance(value, float | complex):
        return value * factor, True
    if hasattr(value, "data_vars"):
        columns = {name: multiplied(column, factor) for name, column in value.data_vars.items()}
        # Arithmetic drops what is written down with a variable.
        kept = {name: column.assign_attrs(value[name].attrs) for name, (column, done) in columns.items() if done}
        return (value.assign(kept), True) if kept else (value, False)
    if isinstance(value, tuple | list):
        parts, changed = _first(before := list(value), factor)
        if parts is before:
            return value, False
        return (type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)), changed
    if isinstance(value, dict):
        parts, changed = _first(before := list(value.values()), factor)
        return (value, False) if parts is before else (dict(zip(value, parts, strict=True)), changed)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in dataclasses.fields(value) if hasattr(value, one.name)]
        parts, changed = _first(before := [getattr(value, name) for name in names], factor)
        if parts is before:
            return value, False
        new = copy.copy(value)
        for name, part in zip(names, parts, strict=True):
            # A frozen one refuses to be changed; nobody else has this copy yet.
            object.__setattr__(new, name, part)
        return new, changed
    if isinstance(value, FunctionType | MethodType | functools.partial):
        return wrapped(value), False
    return value, False


def _first(parts: list[Any], factor: float) -> tuple[list[Any], bool]:
    """The parts with the first one that can be multiplied, or first function; the same list if there is none."""
    for index, part in enumerate(parts):
        new, changed = multiplied(part, factor)
        if new is not part:
            return [*parts[:index], new, *parts[index + 1 :]], changed
    return parts, False
