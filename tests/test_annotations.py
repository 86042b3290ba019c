"""Every annotation of the package says something: none is arithmetic, and no name in one is unknown."""

import importlib
import inspect
import pkgutil
import typing

import jaxtyping
import pytest
import torch

import spinbook

MODULES = [info.name for info in pkgutil.walk_packages(spinbook.__path__, "spinbook.") if "__main__" not in info.name]


def _annotated(owner, module):
    """Functions and classes that the module defines, private ones and methods too."""
    for value in vars(owner).values():
        value = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
        value = inspect.unwrap(value) if callable(value) else value
        if not (inspect.isfunction(value) or inspect.isclass(value)) or value.__module__ != module.__name__:
            continue
        yield value
        if inspect.isclass(value):
            yield from _annotated(value, module)


def _hints(value):
    # What is imported for types alone is known to type checkers only.
    return typing.get_type_hints(value, localns={"torch": torch}, include_extras=True)


@pytest.mark.parametrize("name", MODULES)
def test_every_annotation_can_be_evaluated(name):
    module = importlib.import_module(name)
    for value in _annotated(module, module):
        try:
            _hints(value)
        except Exception as error:
            raise AssertionError(f"{name}.{value.__qualname__}: an annotation that is none: {error}") from error


def test_a_shape_that_is_arithmetic_is_found():
    namespace = {"Float": jaxtyping.Float, "Tensor": torch.Tensor}
    exec("def f(x: 'Float[Tensor, batch * state]'): ...\ndef g(x: 'Float[Tensor, 3]'): ...", namespace)
    for name, error in (("f", NameError), ("g", Exception)):
        with pytest.raises(error):
            _hints(namespace[name])
