"""The theory of the infinite system against its bound and a finite system; the runs and the solver of the source."""

from functools import partial

import jax
import numpy as np
import pytest

from chapters.spin_transformers import infinite, printed, runs
from spinbook.spin_transformer import SpinTransformer, sphere_per_head, tap
from spinbook.vector import fluctuations, mean_field


@pytest.mark.parametrize("field", [1.0, 1 / 16])
def test_a_step_of_the_exact_theory_always_contracts(field):
    # The factor is b / (1 + gamma_h), and gamma_h^2 >= 1 + b^2. That of the naive theory is b / 2 without a field.
    for b in (0.1, 1.0, 8.0, 60.0):
        options = {"beta": b, "coupling_std": 1.0, "field_length": field}
        exact = float(infinite.steady_length(**options, theory=infinite.central_limit).factor)
        assert 0 < exact < b / (1 + np.sqrt(1 + b**2))
    y = 1e-6
    assert b * y / 2 / infinite.naive(np.array([y]), b)[0, 0] == pytest.approx(b / 2)


def test_the_solver_of_the_source_stops_near_the_steady_state_and_not_at_it():
    # With the index of the source, as that solver has it.
    options = {"beta": 1.0, "spheres": sphere_per_head, "key": jax.random.key(0)}
    stack = SpinTransformer(2, 32, 2, theory=partial(tap, covariances=fluctuations.of_receivers), **options)
    x = jax.random.normal(jax.random.key(1), (8, 32))
    early, late = (np.abs(printed.solved_to(tol, stack, x) - np.asarray(stack(x))).max() for tol in (1e-3, 1e-8))
    assert late < 1e-7 < early < 2e-3


def test_what_is_followed_of_a_run_is_that_of_its_means():
    J, directions = runs.drawn(2666, 5, 8)
    found = runs.follow(2 * J, 3 * directions, beta=1.0, step=mean_field.naive_step, steps=4)
    later = runs.follow(2 * J, 3 * directions, beta=1.0, step=mean_field.naive_step, steps=1, begin=found.m)
    J, x, m, last = (np.asarray(a, dtype=float) for a in (2 * J, 3 * directions, found.m, later.m))
    h = x + J @ m
    assert last == pytest.approx(h / (1 + np.sqrt(1 + np.sum(h**2, axis=1, keepdims=True) / 3)), abs=1e-5)

    def cosine(a, b):
        return np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)

    assert later.previous[0] == pytest.approx(cosine(last, m), abs=1e-5)
    assert later.field[0] == pytest.approx(cosine(last, x), abs=1e-5)
    assert later.start[0] == pytest.approx(cosine(last, np.ones((5, 8))), abs=1e-5)
    assert later.length[0] == pytest.approx(np.linalg.norm(last, axis=1), abs=1e-5)
    assert later.change[0] == pytest.approx(np.linalg.norm(last - m) / np.linalg.norm(m), abs=1e-5)
