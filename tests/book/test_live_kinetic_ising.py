"""The live model of kinetic-ising: the library's steps, the library's spins in its statistics, mouse and keyboard."""

import json

import jax
import jax.numpy as jnp
import numpy as np

from chapters.live import kinetic_ising as live
from spinbook.ising import mean_field, stochastic
from tests.book.live import Model, Opening

MARKUP = live.markup(beta=1.6, disorder=0.4, ticks=20, runs=32)
CARRIED = json.loads(MARKUP.partition(">")[2].partition("<")[0])
CROWD_Z, CROWD_X = (np.array(CARRIED[name]) / 100 for name in "zx")
# A smaller crowd, for the comparison of formulas.
Z, X = CROWD_Z[:16, :16], CROWD_X[:16]


def opens():
    J = 1 / 64 + 0.4 * CROWD_Z / 8
    step = mean_field.tap_step
    path = mean_field.simulate(np.ones(64), J, CROWD_X, beta=1.6, steps=20, step=step, observable=jnp.mean)
    return Opening(["β 1.60", "disorder 0.40"], [f"TAP {float(path[-1]):.2f}".replace("-", "−")])


MODEL = Model(
    "kinetic-ising",
    lambda: MARKUP,
    {"beta": 1.6, "disorder": 0.4, "ticks": 20, "runs": 32},
    opens,
    lambda: [
        ("slide(0, 'min')", "β = 0.20, disorder 0.40"),
        ("slide(1, 'min')", "β = 0.20, disorder 0.00"),
        ("click(1)", "β = 1.60, disorder 0.40"),
        ("click(0)",),
    ],
)


def test_the_still_picture_marks_both_answers_of_the_spin():
    figure = live.still(beta=1.6, disorder=0.5)
    crowd, spin = figure.axes
    naive, tap, runs = (line.get_ydata() for line in crowd.lines)
    assert naive[-1] > tap[-1]
    assert abs(tap[-1] - runs[-1]) < abs(naive[-1] - runs[-1])
    (mean, of_mean), (again, of_answers) = (line.get_xydata()[0] for line in spin.lines[1:])
    assert mean == again
    assert np.isclose(of_mean, np.tanh(mean))
    assert of_answers < of_mean


def test_couplings_and_both_courses_are_those_of_the_library(each):
    cases = [(0.3, 0.1), (1.0, 0.4), (2.0, 0.5), (3.9, 1.0), (1.5, 0.0)]
    found = each(
        cases,
        f"{{ const J = m.couplings({Z.tolist()}, c[1]), x = {X.tolist()};"
        "return {J, naive: m.course(m.naive, J, x, c[0], 6), tap: m.course(m.tap, J, x, c[0], 6),"
        "once: m.tap(x, J, x, c[0])}; }",
    )
    for (beta, disorder), answer in zip(cases, found, strict=True):
        J = 1 / 16 + disorder * Z / 4
        assert np.abs(J - np.array(answer["J"])).max() < 1e-15
        for name, step in (("naive", mean_field.naive_step), ("tap", mean_field.tap_step)):
            path = mean_field.simulate(np.ones(16), J, X, beta=beta, steps=6, step=step, observable=jnp.mean)
            assert np.abs(np.r_[1.0, path] - np.array(answer[name])).max() < 1e-12
        assert np.abs(mean_field.tap_step(X, J, X, beta=beta) - np.array(answer["once"])).max() < 1e-12


def test_the_runs_have_the_means_of_the_library_and_repeat(each):
    beta, J = 1.3, 1 / 16 + 0.4 * Z / 4
    options = f"{J.tolist()}, {X.tolist()}, {beta}, {{ticks: 8, runs: 4000, listener: 2, seed: c}}"
    found, same, other = each((1, 1, 2), f"m.sample({options})")
    start = np.ones((4000, 16))
    states = stochastic.simulate(jax.random.key(0), start, J, X, beta=beta, steps=8, observable=lambda s: s).observed
    means = np.asarray(states.mean(axis=-1))
    error = means.std(axis=1, ddof=1) / np.sqrt(4000)
    difference = np.abs(np.array(found["means"])[1:] - means.mean(axis=1))
    assert np.all(difference < 4.5 * np.sqrt(2) * error)
    np.testing.assert_allclose(found["errors"][1:], error, rtol=0.1)
    assert same == found
    assert other["means"] != found["means"]
    heard = beta * (X[2] + np.asarray(states[3:7]) @ J[2]).mean()
    assert abs(np.mean(list(found["heard"])) - heard) < 0.03
