"""What users get wrong in the core functions, shape, sign and finiteness, is an error that names the argument."""

import re

import jax
import numpy as np
import pytest

from tests.policy import registry


def _first(number):
    def spoil(good):
        bad = np.array(good, np.float64)
        bad.flat[0] = number
        return bad

    return spoil


SPOILT = {
    "nan": _first(np.nan),
    "inf": _first(np.inf),
    "longer": lambda good: np.resize(good, (*np.shape(good)[:-1], np.shape(good)[-1] + 1) if np.ndim(good) else 2),
    "ragged": lambda good: [[1.0], [1.0, 2.0]],
    "text": lambda good: "word",
    "None": lambda good: None,
    "complex": lambda good: np.asarray(good) + 1j,
}
# Functions with an argument that nothing else has to fit, or with a temperature for each system.
FREE_SHAPES = (
    "sphere", "free_energy.exact", "rbm.energies.effective_energy", "rbm.mixture.mixture_weights",
    "vector.mean_field.steady_state", "adaptive_tap.exact", "adaptive_tap.ising",
)  # fmt: skip
UNSIGNED = {"beta", "tol", "std", "steps", "max_steps", "num_spins"}


def _spoilt(name, good):
    for argument, value in good.items():
        if isinstance(value, np.ndarray | float):
            allowed = {"longer": name.startswith(FREE_SHAPES), "None": name.startswith("free_energy")}
            yield from ((argument, label, spoil(value)) for label, spoil in SPOILT.items() if not allowed.get(label))
        elif isinstance(value, int):
            yield argument, "fraction", 2.5
        if argument in UNSIGNED:
            yield argument, "negative", -value


@pytest.mark.parametrize("name", registry.NAMES)
def test_what_cannot_be_computed_is_refused_by_name(name):
    function, good = registry.case(name)
    wrong = []
    for argument, label, bad in _spoilt(name, good):
        try:
            function(**good | {argument: bad})
        except ValueError as error:
            if re.match(r"[A-Za-z_][\w.]*: expected .*, got ", str(error)):
                continue
            wrong.append((argument, label, str(error)))
        except Exception as error:
            wrong.append((argument, label, repr(error)))
        else:
            wrong.append((argument, label, "no error"))
    assert not wrong


@pytest.mark.parametrize("name", [name for name in registry.NAMES if not name.startswith("free_energy.model")])
def test_single_precision_in_gives_single_precision_out(name):
    function, good = registry.case(name)
    arrays = {k: v.astype(np.float32) for k, v in good.items() if isinstance(v, np.ndarray)}
    if not arrays:
        pytest.skip("takes numbers alone, whose result has JAX's default")

    def call(**arrays):
        return jax.tree.map(lambda leaf: leaf if hasattr(leaf, "dtype") else None, function(**good | arrays))

    # A trace compiles nothing; PyTorch has none.
    in_torch = name.startswith(("adaptive_tap", "free_energy"))
    leaves = jax.tree.leaves(call(**arrays) if in_torch else jax.eval_shape(call, **arrays))
    assert {str(leaf.dtype).removeprefix("torch.") for leaf in leaves if "float" in str(leaf.dtype)} == {"float32"}
