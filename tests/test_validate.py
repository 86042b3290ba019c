"""Argument checks: what they let through, the dtype they give, and their silence under a trace."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from experiments.datasets import digits
from spinbook import validate
from spinbook.adaptive_tap import solve_ising
from spinbook.precision import enable_x64


@pytest.mark.parametrize(
    "value",
    [[[1, 2], [3, 4]], ((1.0, 2.0), (3.0, 4.0)), np.array([[1, 2], [3, 4]]), jnp.array([[1.0, 2.0], [3.0, 4.0]]),
     torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64), [jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])],
     torch.tensor([[1, 2], [3, 4]])],
    ids=["list", "tuple", "numpy integers", "jax", "torch", "list of arrays", "torch integers"],
)  # fmt: skip
def test_every_kind_of_array_becomes_the_same_jax_matrix(value):
    matrix = validate.finite(value, "weights", "N M")
    assert isinstance(matrix, jax.Array)
    assert matrix.dtype == jnp.float64
    assert matrix.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("library", [np, jnp, torch])
def test_dtype_follows_the_input(library, dtype):
    value = library.ones(3, dtype=getattr(library, dtype))
    assert validate.finite(value, "fields").dtype == jnp.dtype(dtype)


def test_widest_array_decides_and_plain_numbers_follow():
    single, double = np.ones(2, np.float32), np.ones(2, np.float64)
    assert validate.common_dtype(single, [1.0, 2.0], 3, 4.5, np.arange(3)) == jnp.float32
    assert validate.common_dtype(single, double) == jnp.float64
    assert validate.common_dtype(torch.ones(2), np.float64(2.0)) == jnp.float64
    assert validate.common_dtype(torch.ones(2), jnp.asarray(2.0)) == jnp.float32  # weakly typed, like the number it was
    assert validate.common_dtype([1.0], 2) == jnp.float64  # nobody decides: the default, with x64 on
    assert validate.common_dtype(jnp.ones(2, jnp.bfloat16)) == jnp.bfloat16
    with enable_x64(False):
        assert validate.common_dtype([1.0], 2) == jnp.float32
        assert validate.common_dtype(double) == jnp.float32


def test_weakly_typed_tracers_follow_like_the_python_numbers_they_were():
    seen = []

    @jax.jit
    def f(beta):
        seen.append(validate.common_dtype(np.ones(2, np.float32), beta))
        return beta

    f(2.0)
    assert seen == [jnp.float32]


def test_lists_are_double_precision_whatever_they_are_computed_with():
    J, h = [[0.0, 0.3], [0.3, 0.0]], [0.1, 0.2]
    assert torch.get_default_dtype() == torch.float32
    found, expected = solve_ising(J, h), solve_ising(np.array(J), np.array(h))
    assert found.magnetizations.dtype == torch.float64
    torch.testing.assert_close(found.magnetizations, expected.magnetizations, rtol=0, atol=0)
    # Beside an array they follow it, as Python numbers do.
    assert solve_ising(J, np.array(h, np.float32)).magnetizations.dtype == torch.float32


@pytest.mark.documented_nan
def test_values_are_not_looked_at_under_a_trace():
    bad = jnp.array([jnp.nan, -5.0])
    np.testing.assert_array_equal(jax.jit(lambda x: validate.positive(x, "x"))(bad), bad)
    assert jax.grad(lambda x: jnp.sum(validate.positive(x, "x")))(bad).tolist() == [1.0, 1.0]


def test_shapes_are_looked_at_under_a_trace():
    with pytest.raises(ValueError, match=r"^weights: expected shape"):
        jax.jit(lambda x: validate.finite(x, "weights", "N M"))(jnp.ones(3))


def test_gradient_passes_through_a_list_of_traced_numbers():
    assert jax.grad(lambda x: validate.finite([x, 2 * x], "v").sum())(1.0) == 3.0


def test_library_leaves_global_configuration_alone():
    modules = [Path(digits.__file__), *Path(validate.__file__).parent.rglob("*.py")]
    assert len(modules) > 10
    for module in modules:
        assert "jax.config.update" not in module.read_text().replace(">>> jax.config", "")
