"""Fixed points and their gradients against direct solutions and unrolled iterations."""

import numpy as np
import pytest
import torch

from spinbook.adaptive_tap import implicit


def contraction(size, *, seed=0, radius=0.8):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(size, size))
    return torch.tensor(radius * W / np.abs(np.linalg.eigvals(W)).max())


def test_linear_map_is_solved_as_by_elimination():
    W, x = contraction(6), torch.rand(4, 6, dtype=torch.float64)
    found = implicit.solve(lambda y: y @ W.T + x, torch.zeros(4, 6, dtype=torch.float64), tol=1e-12)
    expected = torch.linalg.solve(torch.eye(6) - W, x.mT).mT
    assert bool(found.converged.all())
    # |y - y*| <= |(1 - W)^-1| residual.
    factor = float(torch.linalg.matrix_norm(torch.linalg.inv(torch.eye(6) - W), torch.inf))
    np.testing.assert_allclose(found.value, expected, atol=factor * 1e-12)
    np.testing.assert_allclose(found.residual, (found.value @ W.T + x - found.value).abs().amax(-1), atol=1e-15)


def test_gradients_are_those_of_the_unrolled_iteration():
    W, x = contraction(5), torch.rand(3, 5, dtype=torch.float64)
    gradients = []
    for unrolled in (False, True):
        w, u = W.clone().requires_grad_(), x.clone().requires_grad_()

        def f(y, w=w, u=u):
            return torch.tanh(y @ w.T + u)

        y = torch.zeros(3, 5, dtype=torch.float64)
        if unrolled:
            for _ in range(400):
                y = f(y)
        else:
            y = implicit.solve(f, y, tol=1e-13).value
        gradients.append(torch.autograd.grad(y.pow(3).sum(), (w, u)))
    for ours, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-10)


def test_gradient_is_found_by_elimination_where_iteration_fails():
    W = contraction(40, radius=3.0, seed=3).requires_grad_()
    x = torch.rand(2, 40, dtype=torch.float64)
    exact = torch.linalg.solve(torch.eye(40) - W, x.mT).mT
    (expected,) = torch.autograd.grad(exact.square().sum(), W, retain_graph=True)
    # Two steps cannot solve the adjoint equation; the fixed point is where it starts.
    found = implicit.solve(lambda y: y @ W.T + x, exact.detach(), tol=1e-9, max_steps=2)
    (gradient,) = torch.autograd.grad(found.value.square().sum(), W)
    assert bool(found.converged.all())
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-7 * float(expected.abs().max()))


def test_a_relative_tolerance_is_in_units_of_the_largest_entry_of_each_example():
    W, x = contraction(6), torch.rand(1, 6, dtype=torch.float64)
    both = torch.cat([x, 1e4 * x])

    def found(**options):
        return implicit.solve(lambda y: y @ W.T + both, torch.zeros_like(both), tol=1e-6, **options)

    relative, absolute = found(relative=True), found()
    assert bool(relative.converged.all())
    largest = relative.value.abs().amax(-1)
    assert bool((relative.residual <= 1e-6 * largest).all())
    # A linear map does the same to both, and the large one has to go on for an absolute tolerance.
    assert int(relative.num_steps[0]) == int(relative.num_steps[1])
    assert float(relative.residual[1]) > 1e-6 >= float(absolute.residual[1])


def test_a_gradient_that_is_not_eliminated_is_what_its_iteration_has_reached():
    """At a radius near one: the exact gradient is large, and few steps from the incoming one lead to less."""
    W, x = contraction(6, radius=0.999), torch.rand(2, 6, dtype=torch.float64)

    def gradient(**options):
        u = x.clone().requires_grad_()
        found = implicit.solve(lambda y: y @ W.T + u, torch.zeros_like(x), tol=1e-10, max_steps=1, **options)
        (g,) = torch.autograd.grad(found.value.sum(), u)
        return g

    exact = torch.linalg.solve((torch.eye(6) - W).mT, torch.ones(6, dtype=torch.float64))
    np.testing.assert_allclose(gradient(), exact.expand(2, -1), rtol=1e-9)
    # The first step is a plain one: it adds the next power of the transposed map, and what is kept is the better sum.
    sums, power = [], torch.ones(6, dtype=torch.float64)
    for _ in range(2):
        sums.append(power + (sums[-1] if sums else 0))
        power = W.mT @ power
    kept = gradient(eliminate=False)[0]
    residuals = [float((W.mT @ g + 1 - g).abs().max()) for g in sums]
    np.testing.assert_allclose(kept, sums[int(np.argmin(residuals))], rtol=1e-9)
    assert float((kept - exact).abs().max()) > 0.01 * float(exact.abs().max())


def test_one_update_more_is_taken_with_a_gradient_alone_and_its_adjoint_is_that_at_the_updated_state():
    W, x = contraction(5), torch.rand(2, 5, dtype=torch.float64)

    def solved(u, **options):
        start = torch.zeros_like(x)
        return implicit.solve(lambda y: torch.tanh(y @ W.T + u), start, max_steps=1, **options)

    def update(y):
        return torch.tanh(y @ W.T + x)

    plain = solved(x)
    assert not bool(plain.converged.any())
    u = x.clone().requires_grad_()
    later = solved(u, last_update=True)
    np.testing.assert_allclose(later.value.detach(), update(plain.value), rtol=1e-14)
    np.testing.assert_array_equal(later.residual, plain.residual)
    np.testing.assert_array_equal(solved(x, last_update=True).value, plain.value)
    (gradient,) = torch.autograd.grad(later.value.sum(), u)
    # g = J(f(y))^T g + 1 by elimination, and then the update from y: du = (1 - f(y)^2) g.
    for example in (0, 1):
        y = update(plain.value)[example]
        jacobian = torch.func.jacrev(lambda z, k=example: torch.tanh(z @ W.T + x[k]))(y)
        g = torch.linalg.solve((torch.eye(5) - jacobian).mT, torch.ones(5, dtype=torch.float64))
        np.testing.assert_allclose(gradient[example], (1 - y**2) * g, rtol=1e-9)


def test_divergence_is_reported_and_its_neighbours_are_not_harmed():
    x = torch.tensor([[0.5], [3.0]], dtype=torch.float64)
    found = implicit.solve(lambda y: torch.where(x > 1, y**2 + x, 0.5 * y + x), torch.ones_like(x))
    assert found.converged.tolist() == [True, False]
    assert float(found.value[0]) == pytest.approx(1.0, abs=1e-9)
    assert bool(torch.isfinite(found.value).all())


def test_second_derivatives_are_refused_instead_of_wrong():
    x = torch.ones(1, 2, dtype=torch.float64, requires_grad=True)
    y = implicit.solve(lambda y: torch.cos(y) / 2 + x, torch.zeros_like(x)).value
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiable once"):
        slope.sum().backward()
    guarded = implicit.differentiable_once(x * x)
    (slope,) = torch.autograd.grad(guarded.sum(), x, create_graph=True)
    np.testing.assert_allclose(slope.detach(), 2)
    with pytest.raises(RuntimeError, match="differentiable once"):
        slope.sum().backward()


@pytest.mark.parametrize(
    ("f", "start"),
    [
        (lambda y: (y * y + 1).sqrt(), 0.0),
        (lambda y: y + 1 / (1 + y * y), 0.0),
        (lambda y: y + 1, 1e8),
        (lambda y: (y * y + 1).sqrt(), 5e3),
    ],
)
def test_rounding_is_no_excuse_for_a_map_without_a_fixed_point(f, start):
    found = implicit.solve(f, torch.tensor([[start]]))
    assert not bool(found.converged)
    assert bool(found.residual.isfinite())


def test_each_entry_is_solved_to_its_own_rounding():
    large = 1e8

    def f(y):
        return torch.stack([0.5 * y[:, 0] + large, y[:, 1].cos(), 0.5 * y[:, 2] + 1e-6], dim=1)

    found = implicit.solve(f, torch.zeros(1, 3))
    assert bool(found.converged)
    np.testing.assert_allclose(found.value[0], [2 * large, 0.73908513, 2e-6], rtol=4e-6)
    assert not bool(implicit.solve(f, torch.zeros(1, 3), max_steps=2).converged)
