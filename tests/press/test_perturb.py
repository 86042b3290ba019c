"""What a library's functions return, multiplied or rounded: which values change, which do not, and who gets them."""

import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import xarray as xr

from companion.evidence import perturb

SHORT = float(np.float32(1.1))


class Pair(NamedTuple):
    value: np.ndarray
    num_steps: int


@dataclass(frozen=True)
class Found:
    steps: int
    value: np.ndarray
    numbers: dict


def test_the_first_floating_part_is_multiplied_and_nothing_else():
    assert perturb.multiplied((True, 3, "word"), 2.0) == ((True, 3, "word"), False)
    assert perturb.multiplied([1, 2.0, 3.0], 2.0) == ([1, 4.0, 3.0], True)
    assert perturb.multiplied({"n": 1, "x": 2.0, "y": 3.0}, 2.0) == ({"n": 1, "x": 4.0, "y": 3.0}, True)
    found, changed = perturb.multiplied(Found(3, np.ones(2), {"a": 1e-9}), 2.0)
    assert changed
    assert (found.steps, found.value.tolist(), found.numbers) == (3, [2.0, 2.0], {"a": 1e-9})
    assert perturb.multiplied(torch.ones(2, dtype=torch.int64), 2.0)[1] is False
    assert perturb.multiplied(torch.ones(2, dtype=torch.float16), 2.0)[0].tolist() == [2.0, 2.0]


def test_all_floating_columns_of_a_table_are_multiplied_and_what_stands_beside_them_stays():
    table = xr.Dataset(
        {"period": ("beta", [4, 0]), "exponents": ("beta", [0.5, 1.0]), "errors": ("beta", [0.1, 0.2])},
        {"beta": [1.0, 2.0]},
        {"steps": 10},
    )
    table.exponents.attrs["units"] = "per step"
    found, changed = perturb.multiplied(table, 2.0)
    assert changed
    expected = table.assign(exponents=2 * table.exponents, errors=2 * table.errors)
    expected.exponents.attrs["units"] = "per step"
    xr.testing.assert_identical(found, expected)
    assert perturb.multiplied(table[["period"]], 2.0)[1] is False


@pytest.mark.parametrize(
    "given", [1.1, np.float64(1.1), np.full(3, 1.1), torch.full((2,), 1.1, dtype=torch.float64), jnp.full(2, 1.1)]
)
def test_a_number_or_array_is_rounded_and_keeps_its_type(given):
    found = perturb.in_single_precision(given)
    assert type(found) is type(given)
    assert getattr(found, "dtype", None) == getattr(given, "dtype", None)
    assert np.all(np.asarray(found) == SHORT)


def test_all_parts_are_rounded_and_what_needs_no_rounding_stays_the_object_that_it_was():
    pair = perturb.in_single_precision(Pair(np.array([1.1]), 7))
    assert type(pair) is Pair
    assert (float(pair.value[0]), pair.num_steps) == (SHORT, 7)
    found = perturb.in_single_precision(Found(3, 1.1, {"a": [1.1, True], 3: 1.1 + 1.1j}))
    assert found == Found(3, SHORT, {"a": [SHORT, True], 3: complex(SHORT, SHORT)})
    # What an optimizer changes, an integer, and what is in single precision already.
    weights = torch.nn.Parameter(torch.full((2,), 1.1, dtype=torch.float64))
    for value in (weights, np.arange(3), np.float32([1.1]), (1, "word")):
        assert perturb.in_single_precision(value) is value


def test_gradients_pass_through_the_rounding_and_what_is_too_large_is_infinite_without_a_warning():
    x = torch.tensor(1.1, dtype=torch.float64, requires_grad=True)
    perturb.in_single_precision(3 * x).backward()
    assert float(x.grad) == 3.0
    assert perturb.in_single_precision(1e200) == np.inf
    assert perturb.in_single_precision(np.array([1e200]))[0] == np.inf


SHAPES = """\
import functools
from typing import NamedTuple


class Pair(NamedTuple):
    a: int
    b: float


def pair():
    return Pair(1, 2.0)


def maker(b):
    def made(x):
        return b * x

    return made


@functools.cache
def cached(x):
    return 2.0 * x


table = {"cached": cached}
other = functools.partial(cached, 3.0)


class Unit:
    def __call__(self, x):
        return 2.0 * x

    @property
    def size(self):
        return 4.0

    @staticmethod
    def still():
        return 5.0
"""


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("pair", "pair()", (1, 4.0)),
        ("maker", "maker(2.0)(3.0)", 12.0),
        ("cached", "table['cached'](3.0)", 12.0),
        ("cached", "(cached.cache_clear(), cached(3.0))[1]", 12.0),
        ("other", "other()", 12.0),
        ("Unit", "Unit()(3.0)", 12.0),
        ("Unit.size", "Unit().size", 8.0),
        ("Unit.still", "Unit.still()", 10.0),
    ],
)
def test_a_function_is_multiplied_wherever_it_is_called_from(tmp_path, monkeypatch, name, asked, expected):
    module = f"shapes_{name.replace('.', '_')}_{len(asked)}"
    (tmp_path / f"{module}.py").write_text(SHAPES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.meta_path", list(sys.meta_path))
    monkeypatch.setenv("COMPANION_OUT", str(tmp_path))
    monkeypatch.setattr(perturb, "_seen", {"called": False, "applied": False})
    assert [perturb.can_be_called(SHAPES, other) for other in (name, "Pair", "none")] == [True, False, False]
    perturb.multiply(module, name, 2.0)
    scope: dict[str, object] = {}
    exec(f"from {module} import *", scope)
    assert eval(asked, scope) == expected
    assert perturb.noted(tmp_path) == {"called": True, "applied": True}


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
    folder = perturb.startup(tmp_path / "startup", "library")
    path = {"PYTHONPATH": f"{package.parent}:{folder}"}
    answer = subprocess.run([sys.executable, "-c", ASKED], env=path, capture_output=True, text=True, check=True).stdout
    public, private = (eval(line) for line in answer.splitlines())
    assert public == [SHORT] * 7
    assert private == [1.1] * 3


def test_what_is_imported_already_is_refused():
    with pytest.raises(ValueError, match="module: expected one that is not imported yet, got numpy"):
        perturb.multiply("numpy", "ones", 2.0)
    with pytest.raises(ValueError, match="package: expected one that is not imported yet, got numpy"):
        perturb.round_all("numpy")
