"""The live model of kinetic-ising: the library's steps, the library's spins in its statistics, mouse and keyboard."""

import json

import jax
import jax.numpy as jnp
import numpy as np

from chapters.kinetic_ising import figures as plot
from spinbook.ising import mean_field, stochastic
from tests.book.live import SAYS, WAIT, Model, Opening

RNG = np.random.default_rng(5)
Z = np.round(RNG.normal(size=(16, 16)), 2)
X = np.round(RNG.uniform(-0.5, 0.5, size=16), 2)


def opens():
    J = 1 / 16 + 0.4 * Z / 4
    path = mean_field.simulate(np.ones(16), J, X, beta=1.6, steps=20, step=mean_field.tap_step, observable=jnp.mean)
    return Opening(["β 1.60", "disorder 0.40"], [f"TAP {float(path[-1]):.2f}".replace("-", "−")])


MODEL = Model(
    "kinetic-ising",
    plot.live_markup(Z, X, listener=2, beta=1.6, disorder=0.4, ticks=20, runs=32),
    # In hundredths.
    {"z": np.round(100 * Z).tolist(), "x": np.round(100 * X).tolist()},
    opens,
)


def test_couplings_and_both_courses_are_those_of_the_library(page, ask):
    cases = [(0.3, 0.1), (1.0, 0.4), (2.0, 0.5), (3.9, 1.0), (1.5, 0.0)]
    found = ask(
        page,
        "const m = Live.models['kinetic-ising'];"
        f"const answer = {json.dumps(cases)}.map(([beta, disorder]) => {{"
        f"const J = m.couplings({json.dumps(Z.tolist())}, disorder); const x = {json.dumps(X.tolist())};"
        "return {J, naive: m.course(m.naive, J, x, beta, 6), tap: m.course(m.tap, J, x, beta, 6),"
        "once: m.tap(x, J, x, beta)}; })",
    )
    for (beta, disorder), answer in zip(cases, found, strict=True):
        J = 1 / 16 + disorder * Z / 4
        assert np.abs(J - np.array(answer["J"])).max() < 1e-15
        for name, step in (("naive", mean_field.naive_step), ("tap", mean_field.tap_step)):
            path = mean_field.simulate(np.ones(16), J, X, beta=beta, steps=6, step=step, observable=jnp.mean)
            assert np.abs(np.r_[1.0, path] - np.array(answer[name])).max() < 1e-12
        assert np.abs(mean_field.tap_step(X, J, X, beta=beta) - np.array(answer["once"])).max() < 1e-12


def test_the_runs_have_the_means_of_the_library_and_repeat(page, ask):
    beta, J = 1.3, 1 / 16 + 0.4 * Z / 4
    found = ask(
        page,
        f"const m = Live.models['kinetic-ising']; const J = {json.dumps(J.tolist())};"
        f"const x = {json.dumps(X.tolist())};"
        f"const run = (seed) => m.sample(J, x, {beta}, {{ticks: 8, runs: 4000, listener: 2, seed}});"
        "const [a, b, c] = [run(1), run(1), run(2)];"
        "const mean = (v) => v.reduce((s, q) => s + q, 0) / v.length;"
        "const answer = {means: a.means, errors: a.errors, same: b.means, other: c.means, heard: mean(a.heard)}",
    )
    start = np.ones((4000, 16))
    states = stochastic.simulate(jax.random.key(0), start, J, X, beta=beta, steps=8, observable=lambda s: s).observed
    means = np.asarray(states.mean(axis=-1))
    error = means.std(axis=1, ddof=1) / np.sqrt(4000)
    difference = np.abs(np.array(found["means"])[1:] - means.mean(axis=1))
    assert np.all(difference < 4.5 * np.sqrt(2) * error)
    np.testing.assert_allclose(found["errors"][1:], error, rtol=0.1)
    assert found["same"] == found["means"]
    assert found["other"] != found["means"]
    heard = beta * (X[2] + np.asarray(states[3:7]) @ J[2]).mean()
    assert abs(found["heard"] - heard) < 0.03


def test_the_sliders_and_the_buttons_change_what_is_said(page, ask):
    answer = ask(
        page,
        f"{WAIT} await pause(); const [beta, disorder] = document.querySelectorAll('.live input');"
        f"const before = {SAYS}; const move = async (slider, value) => {{ slider.value = value;"
        f"slider.dispatchEvent(new Event('input')); await pause(); return {SAYS}; }};"
        "const hot = await move(beta, beta.min); const clean = await move(disorder, disorder.min);"
        "const [other, again] = document.querySelectorAll('.live-button');"
        f"again.click(); await pause(); const reset = {SAYS}; other.click(); await pause();"
        f"const answer = {{before, hot, clean, reset, other: {SAYS}}}",
    )
    assert answer["hot"].startswith("β = 0.20, disorder 0.40")
    assert answer["clean"].startswith("β = 0.20, disorder 0.00")
    assert answer["reset"] == answer["before"]
    assert answer["other"] != answer["before"]
