"""Rounds everything that a package's public functions return to single precision.

``install`` has every module of some packages read with one decorator more on each public function and on the public
methods and ``__call__`` of each public class, but for what numba compiles. What they return keeps its type, and every
floating number and array in it is rounded to the 24 binary digits of single precision. Sums inside a function keep
theirs: this is the least that single precision costs, not the most. It has to come before the first import of
any of them.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

__all__ = ["in_single_precision", "install", "rounded", "startup"]

_CALLS = ("__call__",)
_SHORT = {"float64": "float32", "complex128": "complex64"}


def install(*packages: str) -> None:
    """Round what the public functions of ``packages`` return; raises ``ValueError`` if one is imported already."""
    for package in packages:
        if package in sys.modules:
            raise ValueError(f"package: expected one that is not imported yet, got {package}")
    sys.meta_path.insert(0, _Finder(packages))


def startup(folder: Path, *packages: str) -> Path:
    """``folder``, in which Python finds, where it is on its path, what makes it call ``install`` when it starts."""
    alone = "_companion_rounding"
    shutil.copy(__file__, folder / f"{alone}.py")
    code = f"import {alone}\n\n{alone}.install(*{packages!r})\n"
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    return folder


class _Finder(MetaPathFinder):
    def __init__(self, packages: Collection[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        mine = fullname.partition(".")[0] in self._packages
        spec = PathFinder.find_spec(fullname, path) if mine else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """The code of the module with its decorators more; compiled anew, because a cache has it without."""
        tree = ast.parse(self.get_data(self.path))
        decorator = ast.parse(f"__import__({__name__!r}, fromlist=['_']).rounded", mode="eval").body
        for node in _public(tree.body):
            for function in [node] if isinstance(node, ast.FunctionDef) else _public(node.body, also=_CALLS):
                if isinstance(function, ast.FunctionDef) and not _is_compiled(function):
                    # Innermost: what compiles, caches or binds a function gets the rounded one.
                    function.decorator_list.append(decorator)
        code: CodeType = compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)
        return code


def _public(body: Sequence[ast.stmt], also: Sequence[str] = ()) -> list[ast.FunctionDef | ast.ClassDef]:
    found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [node for node in found if not node.name.startswith("_") or node.name in also]


def _is_compiled(function: ast.FunctionDef) -> bool:
    """Whether numba compiles it, which takes no decorated function."""
    return any(ast.unparse(decorator).startswith("numba.") for decorator in function.decorator_list)


def rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, and what it returns in single precision."""

    @functools.wraps(function)
    def one(*arguments: Any, **options: Any) -> Any:
        return in_single_precision(function(*arguments, **options))

    return one


def in_single_precision(value: Any) -> Any:
    """``value``, of the same type, with every floating number and array in it rounded; others stay what they are.

    >>> in_single_precision((True, 1.1, 3))
    (True, 1.100000023841858, 3)
    """
    if (kind := getattr(value, "dtype", None)) is not None:
        name = str(kind).removeprefix("torch.")
        return _there_and_back(value, name) if name in _SHORT else value
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | complex):
        import numpy as np

        with np.errstate(all="ignore"):
            return complex(np.complex64(value)) if isinstance(value, complex) else float(np.float32(value))
    if isinstance(value, tuple | list):
        parts = [in_single_precision(part) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {key: in_single_precision(part) for key, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        new = copy.copy(value)
        for field in dataclasses.fields(value):
            if hasattr(value, field.name):
                # A frozen one refuses to be changed; nobody else has this copy yet.
                object.__setattr__(new, field.name, in_single_precision(getattr(value, field.name)))
        return new
    return value


def _there_and_back(value: Any, name: str) -> Any:
    if hasattr(value, "detach"):
        import torch

        # What an optimizer changes has to stay the tensor that it is.
        if value.requires_grad and value.is_leaf:
            return value
        return value.to(getattr(torch, _SHORT[name])).to(value.dtype)
    import numpy as np

    with np.errstate(all="ignore"):
        return value.astype(_SHORT[name]).astype(value.dtype)
