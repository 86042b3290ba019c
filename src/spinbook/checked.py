"""Defines ``@checked``, which checks the arguments of a function against its annotations.

The body of a checked function is the formula alone. Its caller may pass anything array-like; the body gets JAX arrays
of one floating dtype, the widest among the arguments, whose shapes fit the annotations and each other. What does not
fit is a ``ValueError`` with the text ``NAME: expected ..., got ...``. Shapes are always checked, values only when they
are known, see ``spinbook.validate``.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection
from typing import Annotated, Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from spinbook import validate
from spinbook.annotations import ArrayLike

__all__ = ["Key", "NonNegative", "Positive", "PositiveCount", "above_zero", "checked", "not_negative"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def above_zero(array: Any, name: str) -> None:
    """Raise ``ValueError`` unless all numbers are > 0."""
    validate.require(lambda x: x > 0, array, name, "numbers > 0")


def not_negative(array: Any, name: str) -> None:
    """Raise ``ValueError`` unless all numbers are >= 0."""
    validate.require(lambda x: x >= 0, array, name, "numbers >= 0")


# A number greater than zero, or not below it, as a scalar array.
Positive = Annotated[ArrayLike, "", above_zero]
NonNegative = Annotated[ArrayLike, "", not_negative]
# An integer >= 1, which sizes a loop or an array.
PositiveCount = Annotated[int, functools.partial(validate.count, minimum=1)]
Key = PRNGKeyArray


def checked(*, static: Collection[str] | None = None) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator that converts and checks the arguments of a function by their annotations.

    ``Float[ArrayLike, "*batch N D"]`` asks for finite numbers in as many axes. A name stands for one size in all
    arguments, at least 1; ``*name`` for any leading axes, the same in all; ``*#name`` for axes that broadcast. An
    argument whose axes all have a ``#`` may be a single number. Further checks stand beside the shape,
    ``Annotated[Float[ArrayLike, "*batch N"], check]``: each is called with the array and the argument's name. What has
    another annotation, and None where it is the default, goes through as it is. With ``static`` the body is compiled by
    ``jax.jit``, and the arguments of these names are part of the program.

    >>> from spinbook.annotations import Float
    >>> @checked(static=())
    ... def energy(spins: Float[ArrayLike, "*batch N"], couplings: Float[ArrayLike, "N N"], *, beta: Positive):
    ...     return -beta / 2 * jnp.einsum("...i,ij,...j", spins, couplings, spins)
    >>> energy([1, -1], [[0, 1], [1, 0]], beta=2.0).item()  # exact
    2.0
    >>> energy([1, -1, 1], [[0, 1], [1, 0]], beta=2.0)
    Traceback (most recent call last):
    ValueError: couplings: expected shape (N, N) with N = 3 as in spins, got shape (2, 2)
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)
        optional = {name for name, parameter in signature.parameters.items() if parameter.default is None}
        compiled = static is not None
        body = jax.jit(function, static_argnames=tuple(static or ())) if compiled else function

        @functools.cache
        def checks() -> dict[str, tuple[Any, ...]]:
            # Read at the first call, when all names of the module exist.
            hints = typing.get_type_hints(function, include_extras=True)
            return {name: said for name in signature.parameters if (said := _said(hints.get(name)))}

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            asked = {name: said for name, said in checks().items() if given[name] is not None or name not in optional}
            shapes = {name: said[0] for name, said in asked.items() if isinstance(said[0], str)}
            # A single number takes the dtype of the arrays: a beta out of a table in double precision widens nothing.
            dtype = validate.common_dtype(*(given[name] for name in shapes if shapes[name] or not any(shapes.values())))
            sizes = validate.Sizes()
            for name, (first, *others) in asked.items():
                if isinstance(first, str):
                    array = validate.known(given[name], name, dtype)
                    sizes.fit(array.shape, first, name)
                    for check in others:
                        check(array, name)
                    given[name] = array if compiled else jnp.asarray(array)
                else:
                    given[name] = first(given[name], name)
            return body(*bound.args, **bound.kwargs)

        return call

    return decorate


def _said(hint: Any) -> tuple[Any, ...]:
    """The shape and the checks of an annotation, of one that allows None too; () if there are none."""
    for kind in (hint, *typing.get_args(hint)):
        if typing.get_origin(kind) is Annotated:
            return tuple(said for said in kind.__metadata__ if isinstance(said, str) or callable(said))
    return ()
