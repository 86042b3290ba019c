"""Designs of experiments are checked when they are made: a decorator of named tuples, by the types of their fields."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from spinbook import validate

__all__ = ["record"]

T = TypeVar("T")
Check = Callable[[Any, str], Any]


def _each(check: Check, values: Any, name: str) -> None:
    for value in validate.instance(values, tuple, name):
        check(value, name)


_FIELDS: dict[str, Check] = {
    "bool": lambda value, name: validate.instance(value, bool, name),
    "float": functools.partial(validate.number, above=0.0),
    "int": lambda value, name: validate.count(value, name, minimum=1),
    "str": lambda value, name: validate.instance(value, str, name),
}
_FIELDS |= {f"tuple[{kind}, ...]": functools.partial(_each, check) for kind, check in _FIELDS.items()}


def record(**checks: Check | tuple[Any, ...]) -> Callable[[type[T]], type[T]]:
    """Let a ``NamedTuple`` look at its fields whenever one is made, by its name, by ``_replace`` or from a file.

    A check by name takes the value and the name of its field, or is a tuple of what it may be. Without one an integer
    must be at least 1, a real number above 0, and truth values and text must be that; the same holds for each entry of
    a tuple of them. Fields of other types are left alone.

    >>> from typing import NamedTuple
    >>> @record(draw=validate.count)
    ... class Case(NamedTuple):
    ...     beta: float
    ...     draw: int = 0
    >>> Case(-1.0)
    Traceback (most recent call last):
    ValueError: beta: expected a number > 0, got -1
    """

    def decorated(kind: type[T]) -> type[T]:
        # Every module of the library keeps its annotations as text.
        types = {name: getattr(type_, "__forward_arg__", "") for name, type_ in kind.__annotations__.items()}
        every: dict[str, Any] = {name: _FIELDS[type_] for name, type_ in types.items() if type_ in _FIELDS} | checks
        plain = kind.__new__

        @functools.wraps(plain)
        def new(cls: type[T], *args: Any, **kwargs: Any) -> T:
            made = plain(cls, *args, **kwargs)
            for name, check in every.items():
                value = getattr(made, name)
                validate.choice(value, check, name) if isinstance(check, tuple) else check(value, name)
            return made

        # A NamedTuple refuses both in its body; the second is what ``_replace`` calls.
        for name, method in (("__new__", new), ("_make", classmethod(lambda cls, values: cls(*values)))):
            setattr(kind, name, method)
        return kind

    return decorated
