"""A decorator that checks the fields of a named tuple, the design of an experiment, whenever an instance is made."""

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
    """Make a ``NamedTuple`` check its fields whenever an instance is made: by a call, by ``_replace`` or from a file.

    ``checks`` maps a field to a function of its value and its name, or to the tuple of its allowed values. For other
    fields the annotation decides: an integer must be at least 1, a real number above 0, and truth values and text must
    have these types. The same holds for each entry of a tuple. Fields of any other type are not checked.

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

        # A NamedTuple does not allow either in its body; ``_replace`` calls the second.
        for name, method in (("__new__", new), ("_make", classmethod(lambda cls, values: cls(*values)))):
            setattr(kind, name, method)
        return kind

    return decorated
