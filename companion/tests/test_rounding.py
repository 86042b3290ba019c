"""A library whose public functions return single precision: what is rounded, what is not, and in a kernel."""

import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from companion.evidence import rounding

SHORT = float(np.float32(1.1))


class Found(NamedTuple):
    value: np.ndarray
    num_steps: int


@dataclass(frozen=True)
class Kept:
    numbers: dict
    name: str


@pytest.mark.parametrize(
    "given", [1.1, np.float64(1.1), np.full(3, 1.1), torch.full((2,), 1.1, dtype=torch.float64), jnp.full(2, 1.1)]
)
def test_a_number_or_array_is_rounded_and_keeps_its_type(given):
    found = rounding.in_single_precision(given)
    assert type(found) is type(given)
    assert getattr(found, "dtype", None) == getattr(given, "dtype", None)
    assert np.all(np.asarray(found) == SHORT)


def test_parts_are_rounded_and_all_else_stays_the_object_that_it_was():
    found = rounding.in_single_precision(Found(np.array([1.1]), 7))
    assert type(found) is Found
    assert (float(found.value[0]), found.num_steps) == (SHORT, 7)
    kept = rounding.in_single_precision(Kept({"a": [1.1, True], 3: 1.1 + 1.1j}, "name"))
    assert kept == Kept({"a": [SHORT, True], 3: complex(SHORT, SHORT)}, "name")
    integers, single = np.arange(3), np.float32([1.1])
    assert rounding.in_single_precision(integers) is integers
    assert rounding.in_single_precision(single) is single
    weights = torch.nn.Parameter(torch.full((2,), 1.1, dtype=torch.float64))
    assert rounding.in_single_precision(weights) is weights


def test_gradients_pass_through_the_rounding():
    x = torch.tensor(1.1, dtype=torch.float64, requires_grad=True)
    rounding.in_single_precision(3 * x).backward()
    assert float(x.grad) == 3.0


def test_numbers_beyond_single_precision_are_infinite_without_a_warning():
    assert rounding.in_single_precision(1e200) == np.inf
    assert rounding.in_single_precision(np.array([1e200]))[0] == np.inf


LIBRARY = """
import functools

def f(x):
    return x

@functools.cache
def cached(x):
    return _hidden(x)

def _hidden(x):
    return x

class Module:
    def __call__(self, x):
        return x

    @property
    def size(self):
        return 1.1

    @staticmethod
    def at(x):
        return x

    def _own(self):
        return 1.1

class _Private:
    def f(self, x):
        return x

TABLE = {"f": f}
"""

ASKED = """
import library
from library import part
m = library.Module()
print([library.f(1.1), library.cached(1.1), m(1.1), m.size, m.at(1.1), library.TABLE["f"](1.1), part.g(1.1)])
print([library._hidden(1.1), m._own(), library._Private().f(1.1)])
"""


def test_a_package_is_rounded_from_the_start_of_python(tmp_path):
    package = tmp_path / "src" / "library"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(LIBRARY)
    (package / "part.py").write_text("def g(x):\n    return x\n")
    (tmp_path / "startup").mkdir()
    folder = rounding.startup(tmp_path / "startup", "library")
    path = {"PYTHONPATH": f"{package.parent}:{folder}"}
    answer = subprocess.run([sys.executable, "-c", ASKED], env=path, capture_output=True, text=True, check=True).stdout
    public, private = (eval(line) for line in answer.splitlines())
    assert public == [SHORT] * 7
    assert private == [1.1] * 3


def test_a_package_that_is_there_already_is_refused():
    with pytest.raises(ValueError, match="package: expected one that is not imported yet, got numpy"):
        rounding.install("numpy")
