"""The live model of adaptive-tap computes what the library computes, answers the keyboard, and says what is seen."""

import numpy as np

from chapters.live import adaptive_tap as live
from spinbook.adaptive_tap import exact, ising
from tests.book.live import Model, Opening

FIELDS, COUPLING = live.FIELDS, 0.6
TRIANGLE = np.ones((3, 3)) - np.eye(3)


def naive(coupling):
    mean = float(ising.solve_naive_ising(coupling * TRIANGLE, FIELDS).magnetizations[0])
    return f"Naive mean field says {mean:.2f}"


MODEL = Model(
    "adaptive-tap",
    lambda: live.markup(coupling=COUPLING),
    {"fields": FIELDS.tolist(), "coupling": COUPLING, "reach": 1.0},
    lambda: Opening(["coupling 0.60"], [f"the true mean of the first spin is {np.tanh(0.5):.2f}", naive(COUPLING)]),
    lambda: [("slide(0, 'min')", "Coupling −1.00", naive(-1)), ("click(1)", "Coupling 0.60")],
)


def test_all_three_means_are_those_of_the_library(each):
    couplings = np.linspace(-1, 1, 21)
    found = each(couplings.tolist(), f"['exact', 'naive', 'adaptive'].map((name) => m[name](c, {FIELDS.tolist()}))")
    systems = couplings[:, None, None] * TRIANGLE
    theirs = np.moveaxis(np.array(found, dtype=float), 1, 0)
    assert np.abs(theirs[0] - exact.magnetizations(systems, FIELDS).numpy()).max() < 1e-12
    for means, solve in zip(theirs[1:], (ising.solve_naive_ising, ising.solve_ising), strict=True):
        assert np.abs(means - solve(systems, FIELDS, tol=1e-15).magnetizations.numpy()).max() < 1e-12
