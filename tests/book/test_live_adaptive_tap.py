"""The live model of adaptive-tap computes what the library computes, answers the keyboard, and says what is seen."""

import json

import numpy as np

from chapters.live import adaptive_tap as live
from spinbook.adaptive_tap import exact, ising
from tests.book.live import SAYS, WAIT, Model, Opening

FIELDS, COUPLING = live.FIELDS, 0.6
TRIANGLE = np.ones((3, 3)) - np.eye(3)


def opens():
    naive = float(ising.solve_naive_ising(COUPLING * TRIANGLE, FIELDS).magnetizations[0])
    true = f"the true mean of the first spin is {np.tanh(0.5):.2f}"
    return Opening(["coupling 0.60"], [true, f"Naive mean field says {naive:.2f}"])


MODEL = Model(
    "adaptive-tap",
    live.markup(coupling=COUPLING),
    {"fields": FIELDS.tolist(), "coupling": COUPLING, "reach": 1.0},
    opens,
)


def test_all_three_means_are_those_of_the_library(page, ask):
    couplings = np.linspace(-1, 1, 21)
    found = ask(
        page,
        "const m = Live.models['adaptive-tap'];"
        f"const answer = {json.dumps(couplings.tolist())}.map((c) => ['exact', 'naive', 'adaptive']"
        f".map((name) => m[name](c, {json.dumps(FIELDS.tolist())})));",
    )
    systems = couplings[:, None, None] * TRIANGLE
    theirs = np.moveaxis(np.array(found, dtype=float), 1, 0)
    assert np.abs(theirs[0] - exact.magnetizations(systems, FIELDS).numpy()).max() < 1e-12
    for means, solve in zip(theirs[1:], (ising.solve_naive_ising, ising.solve_ising), strict=True):
        assert np.abs(means - solve(systems, FIELDS, tol=1e-15).magnetizations.numpy()).max() < 1e-12


def test_the_slider_moves_the_coupling_and_a_button_takes_it_back(page, ask):
    answer = ask(
        page,
        f"{WAIT} await pause(); const slider = document.querySelector('.live input'); slider.value = slider.min;"
        f"slider.dispatchEvent(new Event('input')); await pause(); const low = {SAYS};"
        "[...document.querySelectorAll('.live-button')][1].click(); await pause();"
        f"const answer = {{low, back: {SAYS}}}",
    )
    naive = float(ising.solve_naive_ising(-TRIANGLE, FIELDS).magnetizations[0])
    assert answer["low"].startswith("Coupling −1.00")
    assert f"Naive mean field says {naive:.2f}" in answer["low"]
    assert answer["back"].startswith("Coupling 0.60")
