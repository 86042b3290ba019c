"""Every annotation of the package says something: none is arithmetic, and no name in one is unknown."""

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import typing
from pathlib import Path

import jax
import jaxtyping
import pytest
import torch

import spinbook
from spinbook import annotations

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


def test_an_array_like_may_be_a_list_and_an_array_has_its_shape():
    hint = annotations.Float[annotations.ArrayLike, "N N"]
    assert typing.get_origin(hint) is typing.Annotated
    assert typing.get_args(hint)[1] == "N N"
    for value in ([[1, 2], [3, 4]], 1, 2.5, torch.ones(2), jax.numpy.ones(2)):
        assert isinstance(value, typing.get_args(hint)[0])
    for value in (None, 1j, object()):
        assert not isinstance(value, typing.get_args(hint)[0])
    # Of an array it is jaxtyping's own, which makes a new class for every use.
    ours, theirs = annotations.Float[jax.Array, "N N"], jaxtyping.Float[jax.Array, "N N"]
    assert (ours.array_type, ours.dtypes, ours.dim_str) == (theirs.array_type, theirs.dtypes, theirs.dim_str)
    with pytest.raises(ValueError, match="variadic"):
        annotations.Float[annotations.ArrayLike, "*a *b"]


@pytest.mark.slow
def test_every_example_in_a_docstring_holds_all_annotations_that_it_meets():
    # All functions that an example calls, private ones too, are wrapped, and so checked with the shapes that they see.
    root = Path(__file__).parents[1]
    options = ["-n", "0", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "--doctest-modules"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(root / "src" / "spinbook")],
        cwd=root,
        env=os.environ | {"SPINBOOK_TYPES": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert run.returncode == 0, run.stdout[-3000:]
