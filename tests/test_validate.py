"""Argument checks: what they let through, what they refuse and in which words, and their silence under a trace."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from experiments.datasets import digits
from spinbook import rbm, validate
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
    matrix = validate.matrix(value, "weights")
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


@pytest.mark.parametrize("dtype", ["g", ">f8", ">i8", ">f2"])
def test_numbers_in_another_format_are_those_of_this_machine(dtype):
    value = np.array([1.0, -2.0]).astype(dtype)
    expected = np.float16 if dtype == ">f2" else np.float64
    for checked in (validate.finite(value, "x"), validate.tensor(value, "x", dtype=torch.float64)):
        assert checked.tolist() == [1.0, -2.0]
    assert validate.common_dtype(value) == expected
    if dtype != ">i8":
        assert validate.common_tensor_type(value)[0] == getattr(torch, np.dtype(expected).name)


def test_weakly_typed_tracers_follow_like_the_python_numbers_they_were():
    seen = []

    @jax.jit
    def f(beta):
        seen.append(validate.common_dtype(np.ones(2, np.float32), beta))
        return beta

    f(2.0)
    assert seen == [jnp.float32]


REFUSED = [
    (lambda: validate.finite([1.0, float("nan")], "h"), r"h: expected finite numbers, got nan at index \(1,\)"),
    (lambda: validate.finite([[1.0], [-np.inf]], "x"), r"x: expected finite numbers, got -inf at index \(1, 0\)"),
    (lambda: validate.finite(np.array(["1e4000"], "g"), "x"), r"x: expected finite numbers, got inf at index \(0,\)"),
    (lambda: validate.finite("word", "x"), "x: expected real numbers, got dtype <U4"),
    (lambda: validate.finite(None, "x"), "x: expected real numbers, got None"),
    (lambda: validate.finite([[1.0, 2.0], [3.0]], "x"), "x: expected a rectangular array, got list"),
    (lambda: validate.finite([1j], "x"), "x: expected real numbers, got dtype complex128"),
    (lambda: validate.finite(jax.random.key(0), "x"), "x: expected real numbers, got dtype key<fry>"),
    (lambda: validate.finite([1.0], "x", ndim=0), r"x: expected a scalar, got shape \(1,\)"),
    (lambda: validate.finite(1.0, "x", ndim=2), "x: expected an array of 2 dimensions, got a scalar"),
    (lambda: validate.finite(torch.ones(2, requires_grad=True), "x"), r"x: expected .* \(call .detach\(\)\)"),
    (lambda: validate.positive(0.0, "beta"), "beta: expected numbers > 0, got 0$"),
    (lambda: validate.positive([1.0, -2.0], "rate"), r"rate: expected numbers > 0, got -2 at index \(1,\)"),
    (lambda: validate.probability(0.0, "p"), "p: expected numbers strictly between 0 and 1, got 0"),
    (lambda: validate.probability(1.0, "p"), "p: expected numbers strictly between 0 and 1, got 1"),
    (lambda: validate.binary([0, 1, -1], "v"), r"v: expected units that are 0 or 1, got -1 at index \(2,\)"),
    (lambda: validate.vectors(1.0, "v"), r"v: expected shape \(..., dim\) with dim >= 1, got a scalar"),
    (lambda: validate.vectors(np.zeros((3, 0)), "v"), r"v: expected .* with dim >= 1, got shape \(3, 0\)"),
    (lambda: validate.vectors([1.0, 2.0], "v", dim=3), r"v: expected shape \(..., 3\), got shape \(2,\)"),
    (lambda: validate.matrix([1.0], "W"), r"W: expected shape \(rows, columns\) .*, got shape \(1,\)"),
    (lambda: validate.matrix(np.zeros((0, 2)), "W"), r"W: expected .* at least one row .*, got shape \(0, 2\)"),
    (lambda: validate.matrix(np.zeros((2, 0)), "W", rows=2), r"W: expected shape \(2, columns\), got shape \(2, 0\)"),
    (lambda: validate.matrix(np.ones((2, 3)), "W", rows=3), r"W: expected shape \(3, columns\), got shape \(2, 3\)"),
    (lambda: validate.matrix(np.ones((2, 3)), "W", columns=2), r"W: expected shape \(rows, 2\), got shape \(2, 3\)"),
    (lambda: validate.broadcastable(jnp.ones(2), "rate", (5, 3)), r"rate: expected .* to \(5, 3\), got shape \(2,\)"),
    (lambda: validate.broadcastable(jnp.ones((5, 3)), "rate", (3,)), r"rate: .* to \(3,\), got shape \(5, 3\)"),
    (lambda: validate.same_batch(jnp.ones((2, 7)), "h", jnp.ones((3, 4)), "v"), r"h: .* of v, \(3,\), got \(2,\)"),
    (lambda: validate.count(2.0, "steps"), "steps: expected an integer >= 0, got 2.0"),
    (lambda: validate.count(-1, "steps"), "steps: expected an integer >= 0, got -1"),
    (lambda: validate.count(25, "num_units", minimum=1, maximum=20), "num_units: .* from 1 to 20, got 25"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusal_names_the_argument_what_was_expected_and_what_came(call, message):
    with pytest.raises(ValueError, match="^" + message):
        call()


def test_signs_that_pytorch_has_put_off_reach_every_library():
    x = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128).conj().imag
    assert x.is_neg()
    for given, wanted in ((x, [-2, 4]), ([x, x], [[-2, 4], [-2, 4]]), ([[x], [-x]], [[[-2, 4]], [[2, -4]]])):
        for read in (validate.finite, validate.known_numbers, validate.tensor):
            assert read(given, "x").tolist() == wanted


def test_lists_are_double_precision_whatever_they_are_computed_with():
    J, h = [[0.0, 0.3], [0.3, 0.0]], [0.1, 0.2]
    assert torch.get_default_dtype() == torch.float32
    found, expected = solve_ising(J, h), solve_ising(np.array(J), np.array(h))
    assert found.magnetizations.dtype == torch.float64
    torch.testing.assert_close(found.magnetizations, expected.magnetizations, rtol=0, atol=0)
    # Beside an array they follow it, as Python numbers do.
    assert solve_ising(J, np.array(h, np.float32)).magnetizations.dtype == torch.float32


def test_limits_belong_to_the_accepted_side_only_where_they_should():
    assert validate.probability([1e-300, 1 - 1e-16], "p").shape == (2,)
    assert validate.count(np.int64(20), "n", minimum=20, maximum=20) == 20
    assert validate.binary([[0, 1], [1, 1]], "v").shape == (2, 2)
    validate.broadcastable(jnp.ones((1, 3)), "rate", (5, 3))


@pytest.mark.parametrize("check", [validate.finite, validate.positive, validate.probability, validate.binary])
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad], ids=["jit", "vmap", "grad"])
def test_values_are_not_looked_at_under_a_trace(check, transform):
    bad = jnp.array([jnp.nan, -5.0])
    if transform is jax.grad:
        assert transform(lambda x: jnp.sum(check(x, "x")))(bad).tolist() == [1.0, 1.0]
    elif transform is jax.vmap:
        assert transform(lambda x: check(x[None], "x"))(bad).shape == (2, 1)
    else:
        assert transform(lambda x: check(x, "x"))(bad).shape == (2,)


def test_shapes_are_looked_at_under_a_trace():
    with pytest.raises(ValueError, match=r"^weights: expected shape"):
        jax.jit(lambda x: validate.matrix(x, "weights"))(jnp.ones(3))


def test_gradient_passes_through_a_list_of_traced_numbers():
    assert jax.grad(lambda x: validate.vectors([x, 2 * x], "v").sum())(1.0) == 3.0


def test_library_leaves_global_configuration_alone():
    modules = [validate.__file__, digits.__file__, *Path(rbm.__file__).parent.glob("*.py")]
    assert len(modules) > 10
    for module in modules:
        assert "jax.config" not in Path(module).read_text()


_OUT_OF_MEMORY = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (2**35, 2**35))
import jax, numpy as np, torch
from spinbook import sphere, validate
from spinbook.ising import sherrington_kirkpatrick as sk
for call in (
    lambda: sphere.covariance(np.ones((1, 300_000), np.float32), beta=1.0),
    lambda: sk.sample_couplings(jax.random.key(0), 10**6, mean=1.0, std=0.1),
    lambda: validate.finite_result(lambda dim: torch.ones(dim))(10**12),
    lambda: validate.finite_result(lambda dim: np.ones(dim))(10**12),
):
    try:
        call()
    except MemoryError as error:
        print(str(error).partition(" (")[0])
"""


@pytest.mark.slow
def test_memory_that_runs_out_is_an_error_and_not_the_end_of_the_process():
    # As a process of its own, where nothing but JAX's defaults is set.
    run = subprocess.run([sys.executable, "-c", _OUT_OF_MEMORY], capture_output=True, text=True, timeout=120)
    expected = "expected a size whose arrays fit into memory, got"
    assert run.stdout.splitlines() == [
        f"fields: {expected} shape",
        f"num_spins: {expected} 1000000",
        f"dim: {expected} 1000000000000",
        f"dim: {expected} 1000000000000",
    ], run.stderr
