"""Every annotation of the package says something: none is arithmetic, and no name in one is unknown."""

import doctest
import importlib
import importlib.util
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

import chapters
import experiments
import spinbook

# The package has an attribute of this name before the module is loaded: that of `from __future__`.
annotations = importlib.import_module("spinbook.annotations")

MODULES = [
    info.name
    for package in (spinbook, experiments, chapters)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if "__main__" not in info.name
]


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


def _checked(name, path, monkeypatch):
    """A second copy of a module, its functions wrapped as `conftest.py` has it for all; the first stays as it is."""
    with jaxtyping.install_import_hook(name, "beartype.beartype"):
        spec = sys.meta_path[0].find_spec(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module


def _run_examples(module):
    """How many examples of its docstrings failed, of how many, and what was said of them."""
    said = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for name in module.__all__:
        text = getattr(module, name).__doc__ or ""
        runner.run(doctest.DocTestParser().get_doctest(text, vars(module).copy(), name, None, None), out=said.append)
    return runner.failures, runner.tries, "".join(said)


# Modules of JAX, of NumPy and of PyTorch, whose examples compile little. The slow test below takes all.
@pytest.mark.parametrize("name", ["ising.exact", "rbm.mixture", "self_attention.window", "adaptive_tap.exact"])
def test_examples_in_docstrings_hold_the_annotations_of_their_module(name, monkeypatch):
    name = f"spinbook.{name}"
    parent = importlib.import_module(name.rpartition(".")[0])
    failed, tried, said = _run_examples(_checked(name, parent.__path__, monkeypatch))
    assert not failed, said
    assert tried >= 3


@pytest.mark.parametrize(("returned", "failed"), [("N", 0), ("N N", 1)])
def test_a_false_annotation_is_found_by_an_example(returned, failed, tmp_path, monkeypatch):
    source = f"""
from jax import Array
from jaxtyping import Float

__all__ = ["doubled"]


def doubled(x: Float[Array, " N"]) -> Float[Array, " {returned}"]:
    '''2 x.

    >>> from jax.numpy import ones
    >>> doubled(ones(2)).tolist()
    [2.0, 2.0]
    '''
    return 2 * x
"""
    (tmp_path / "annotated.py").write_text(source, encoding="utf-8")
    found, tried, said = _run_examples(_checked("annotated", [str(tmp_path)], monkeypatch))
    assert (found, tried) == (failed, 2)
    assert ("TypeCheckError" in said) == bool(failed)


@pytest.mark.slow
@pytest.mark.long
def test_every_example_in_a_docstring_holds_all_annotations_that_it_meets():
    # All functions that an example calls, private ones too, are wrapped, and so checked with the shapes that they see.
    root = Path(__file__).parents[1]
    options = ["-n", "0", "-q", "-p", "no:cacheprovider", "--doctest-modules", "-m", "slow or not slow"]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            *(str(root / "src" / name) for name in ("spinbook", "experiments", "chapters")),
        ],
        cwd=root,
        env=os.environ | {"SPINBOOK_TYPES": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert run.returncode == 0, run.stdout[-3000:]
