"""The fixed-point solver against closed forms, another solver, and derivatives by other routes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from spinbook import fixed_point
from spinbook.fixed_point import solve

# cos(y) = y, to 20 digits (the Dottie number, OEIS A003957).
DOTTIE = 0.73908513321516064166


def network(seed, size, gain, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (
        jnp.asarray(gain * rng.normal(size=(size, size)) / size**0.5, dtype),
        jnp.asarray(rng.normal(size=size), dtype),
    )


def relax(A, b, y0=None, **options):
    return solve(lambda y: jnp.tanh(A @ y + b), jnp.zeros_like(b) if y0 is None else y0, **options)


def test_a_matrix_that_rounding_makes_indefinite_does_not_end_the_search(monkeypatch):
    # So it was with half a million components in single precision, whose products jaxlib 0.7.2 sums less exactly.
    monkeypatch.setattr(fixed_point, "_RIDGE", -10)
    A, b = network(0, 30, 0.5)
    solution = relax(A, b)
    expected = optimize.root(lambda y: np.tanh(np.asarray(A) @ y + np.asarray(b)) - y, np.zeros(30), tol=1e-14).x
    assert solution.converged
    np.testing.assert_allclose(solution.value, expected, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"history": 2}, {"history": 0}])
def test_the_solution_is_that_of_a_newton_solver_whatever_the_method(options):
    A, b = network(0, 30, 0.5)
    reference = optimize.root(lambda y: np.tanh(A @ y + b) - y, np.zeros(30), tol=1e-13).x
    solution = relax(A, b, **options)
    # |A| is at most 1 (its largest singular value is about 2 * 0.5), so that errors stay within a few residuals.
    assert np.linalg.norm(A, 2) < 1.1
    contraction = np.linalg.norm(np.diag(1 - reference**2) @ A, 2)
    np.testing.assert_allclose(solution.value, reference, atol=30**0.5 * 1e-10 / (1 - contraction))


@pytest.mark.parametrize("options", [{}, {"max_steps": 3}, {"history": 0, "max_steps": 7}])
def test_the_residual_is_that_of_the_value_returned(options):
    A, b = network(1, 30, 1.5)
    solution = relax(A, b, **options)
    recomputed = np.abs(np.tanh(A @ solution.value + b) - solution.value).max()
    assert float(solution.residual) == pytest.approx(recomputed, abs=1e-14)
    assert bool(solution.converged) == (float(solution.residual) <= 1e-10)


def test_memory_finds_the_fixed_point_of_a_linear_map_that_stretches():
    # Without memory the iteration runs away from a repelling fixed point; three equations need three differences.
    A = jnp.asarray([[2.0, 1.0, 0.0], [0.0, -3.0, 1.0], [0.5, 0.0, 4.0]])
    b = jnp.asarray([1.0, -2.0, 0.5])
    exact = np.linalg.solve(np.eye(3) - A, b)
    solution = solve(lambda y: A @ y + b, jnp.zeros(3))
    np.testing.assert_allclose(solution.value, exact, atol=1e-9)
    assert bool(solution.converged)
    assert int(solution.num_steps) <= 6
    assert not bool(solve(lambda y: A @ y + b, jnp.zeros(3), history=0).converged)
    jacobian = jax.jit(jax.jacrev(lambda b: solve(lambda y: A @ y + b, jnp.zeros(3)).value))(b)
    np.testing.assert_allclose(jacobian, np.linalg.inv(np.eye(3) - A), atol=1e-9)


@pytest.mark.parametrize(
    "f",
    [lambda y: y + 1, lambda y: jnp.exp(y) + 1, lambda y: jnp.log(y), lambda y: y * jnp.nan, lambda y: y / 0],
    ids=["never", "runaway", "leaves its domain", "nan", "infinite"],
)
@pytest.mark.parametrize("history", [0, 5])
@pytest.mark.documented_nan
def test_no_fixed_point_is_never_called_converged(f, history):
    solution = solve(f, 0.5, history=history)
    assert not bool(solution.converged)
    assert not float(solution.residual) <= 1e-10


def test_the_best_value_met_is_returned_without_convergence():
    # The steps of a runaway grow, so that the start is the best there is, and the last step counts.
    solution = solve(lambda y: 3 * y + 1, 1.0, history=0, max_steps=20)
    assert (float(solution.value), float(solution.residual), int(solution.num_steps)) == (1.0, 3.0, 20)


def test_single_precision_stops_at_what_rounding_allows_and_says_so():
    A, b = network(2, 200, 0.5, np.float32)
    solution = relax(A, b)
    assert solution.value.dtype == solution.residual.dtype == np.float32
    assert bool(solution.converged)
    allowed = 16 * np.finfo(np.float32).eps * float(jnp.max(jnp.abs(solution.value)))
    assert 1e-10 < float(solution.residual) <= allowed
    # A stricter tolerance than rounding allows changes nothing, a looser one is what is applied.
    assert float(relax(A, b, tol=1e-30).residual) == float(solution.residual)
    assert int(relax(A, b, tol=1e-2).num_steps) < int(solution.num_steps)


def test_pytrees_are_solved_as_one_vector():
    A, b = network(3, 7, 0.6)

    def split(state):
        y = jnp.tanh(A @ jnp.concatenate([state["a"].ravel(), state["b"][0]]) + b)
        return {"a": y[:4].reshape(2, 2), "b": (y[4:],)}

    solution = solve(split, {"a": jnp.zeros((2, 2)), "b": (jnp.zeros(3),)}, tol=1e-14)
    whole = relax(A, b, tol=1e-14)
    assert bool(solution.converged)
    joined = jnp.concatenate([solution.value["a"].ravel(), solution.value["b"][0]])
    # |y - y*| <= |(1 - Jacobian)^-1| residual, for both.
    jacobian = (1 - np.asarray(whole.value) ** 2)[:, None] * np.asarray(A)
    factor = np.linalg.norm(np.linalg.inv(np.eye(7) - jacobian), np.inf)
    np.testing.assert_allclose(joined, whole.value, atol=2e-14 * factor)


def test_a_list_of_numbers_is_an_array():
    assert solve(lambda y: 0.5 * y + 1, [2.0, 2.0]).value.tolist() == [2.0, 2.0]


def test_the_gradient_is_the_implicit_one_forward_and_backward():
    A, b = network(4, 12, 0.8)
    value = np.asarray(relax(A, b, tol=1e-14).value)
    # dy = D (A dy + db) with D = diag(1 - y^2), so dy/db = (1 - D A)^-1 D: a dense solve as the independent route.
    D = np.diag(1 - value**2)
    dense = np.linalg.solve(np.eye(12) - D @ A, D)
    for jacobian in (jax.jacrev, jax.jacfwd):
        np.testing.assert_allclose(jax.jit(jacobian(lambda b: relax(A, b, tol=1e-14).value))(b), dense, atol=1e-11)
    assert not np.any(jax.jit(jax.grad(lambda y0: relax(A, b, y0).value.sum()))(jnp.ones(12)))
    # And with respect to A: dy/dA_kl = dense[:, k] y_l.
    by_A = jax.jit(jax.jacrev(lambda A: relax(A, b, tol=1e-14).value))(A)
    np.testing.assert_allclose(by_A, np.einsum("ik,l->ikl", dense, value), atol=1e-11)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        (jax.grad, jax.grad),
        (jax.jacfwd, jax.grad),
        pytest.param(jax.grad, jax.jacfwd, marks=SLOW),
        pytest.param(jax.jacfwd, jax.jacfwd, marks=SLOW),
    ],
)
def test_second_derivatives_in_every_order_of_modes(outer, inner):
    # y = cos(a y): y' = -s y / (1 + a s), s = sin(a y), and differentiated once more by hand.
    a = 1.1
    y = optimize.brentq(lambda y: np.cos(a * y) - y, 0, 1, xtol=1e-15)
    s, c = np.sin(a * y), np.cos(a * y)
    first = -s * y / (1 + a * s)
    u = y + a * first
    second = (-c * u * y - s * first) / (1 + a * s) + s * y * (s + a * c * u) / (1 + a * s) ** 2

    def value(a):
        return solve(lambda y: jnp.cos(a * y), 1.0, tol=1e-14).value

    assert float(jax.jit(outer(inner(value)))(a)) == pytest.approx(second, abs=1e-11)


@pytest.mark.documented_nan
def test_a_gradient_that_does_not_exist_is_nan():
    # At y = 0 the slope of y + a - y^2 is 1: dy/da = 1 / (2 y) diverges.
    assert np.isnan(jax.jit(jax.grad(lambda a: solve(lambda y: y + a - y * y, 0.0).value))(0.0))


def test_evidence_has_no_derivative():
    gradient = jax.jit(jax.grad(lambda a: solve(lambda y: jnp.cos(a * y), 1.0).residual))(1.0)
    assert float(gradient) == 0.0


def test_each_lane_of_a_batch_has_its_own_evidence_and_stops_by_itself():
    slopes = jnp.asarray([0.1, 0.9, 1.0, 0.5])

    def lane(slope):
        return solve(lambda y: slope * y + 1.0, 1.0, history=0, max_steps=300)

    together = jax.jit(jax.vmap(lane))(slopes)
    assert together.converged.tolist() == [True, True, False, True]
    for i in (0, 1, 3):
        # Steps shrink by the slope: a lane that went on, as its slower neighbours do, would come closer to its limit.
        assert slopes[i] * 1e-10 * (1 - 1e-4) < together.residual[i] <= 1e-10
        np.testing.assert_allclose(together.value[i], 1 / (1 - slopes[i]), atol=1e-10 / (1 - slopes[i]))
    # This one has no limit: it was let go on to the end, one unit a step, of which the start is as good as any.
    assert (float(together.residual[2]), int(together.num_steps[2])) == (1.0, 300)
    np.testing.assert_allclose(
        jax.jit(jax.vmap(jax.grad(lambda slope: lane(slope).value)))(slopes[:2]), 1 / (1 - slopes[:2]) ** 2, rtol=1e-8
    )


def test_a_start_that_is_a_constant_of_compiled_code_gives_no_nan(optimised):
    # jaxlib 0.10.2 multiplies a softmax of several heads with a constant wrongly; 128 sites do not show it.
    sites, dim, heads = 512, 64, 8
    x = jax.random.normal(jax.random.key(0), (sites, dim), jnp.float32)

    @partial(jax.jit, compiler_options=optimised)
    def compiled(x):
        parts = x.reshape(sites, heads, dim // heads)
        J = jax.nn.softmax(jnp.einsum("ihd,jhd->hij", parts, parts), axis=-1)
        start = jnp.ones((heads, sites, dim // heads), jnp.float32)
        return solve(lambda y: jnp.float32(0.5) * jnp.tanh(J @ y) + x.mean(), start / jnp.linalg.norm(start[0]))

    solution = compiled(x)
    assert np.isfinite(solution.value).all()
    assert bool(solution.converged)


@pytest.mark.parametrize(
    ("f", "y0", "options"),
    [
        (lambda y: jnp.sqrt(y * y + 1), 0.0, {}),
        (lambda y: y + 1 / (1 + y * y), 0.0, {}),
        (lambda y: y + 1, 0.0, {"history": 0, "max_steps": 600_000}),
        (lambda y: y + 1, 1e8, {}),
        (lambda y: jnp.sqrt(y * y + 1), 5e3, {}),
    ],
    ids=["root", "slower and slower", "plain", "a step that rounding swallows", "start where it is hidden"],
)
def test_rounding_is_no_excuse_for_a_map_without_a_fixed_point(f, y0, options):
    solution = solve(f, jnp.float32(y0), **options)
    assert not bool(solution.converged)
    assert np.isfinite(solution.residual)


@pytest.mark.parametrize("large", [1e2, 1e8, 1e20])
def test_each_entry_is_solved_to_its_own_rounding(large):
    def f(y):
        return {"large": 0.5 * y["large"] + large, "one": jnp.cos(y["one"]), "small": 0.5 * y["small"] + 1e-6}

    found = solve(f, dict.fromkeys(("large", "one", "small"), jnp.float32(0)))
    assert bool(found.converged)
    exact = {"large": 2 * large, "one": DOTTIE, "small": 2e-6}
    for name, value in exact.items():
        assert float(found.value[name]) == pytest.approx(value, rel=4e-6)
    # Searched for too shortly, none of it is claimed, whatever the largest entry is.
    assert not bool(solve(f, dict.fromkeys(exact, jnp.float32(0)), max_steps=2).converged)
