"""The live models compute what the library computes, answer mouse and keyboard, and stay still pictures without
scripts."""

import json
import re

import numpy as np
import pytest
from matplotlib import pyplot as plt

from chapters.rbm_mixtures import figures as plot
from spinbook import rbm
from tests.book.live import LIVE, SAYS, WAIT, carried, opened

MODELS = sorted(path.stem for path in LIVE.glob("*.js") if path.stem != "kernel")
HEAVIEST = 15_000
"""Most bytes of the shared kernel, and of one model."""

PATTERNS = np.array([[1.8, 0.8], [1.0, 1.7], [-1.9, 0.5], [-0.4, -1.9], [1.6, -1.2]])
PICTURES = np.random.default_rng(0).random((5, 16)).round(3)
QUERY, BETA = np.array([0.3, -0.4]), 0.7

STILL = '<img class="only-light" alt="still" src="data:,"><img class="only-dark" alt="still" src="data:,">'


@pytest.fixture(scope="module")
def page(live_page):
    markup = plot.live_markup(PATTERNS, PICTURES, names="ABCDE", query=QUERY, beta=BETA, reach=2.8)
    return live_page("rbm-mixtures", "rbm-mixtures-live", markup, still=STILL)


@pytest.mark.parametrize("name", ["kernel", *MODELS])
def test_a_script_is_light_and_loads_nothing(name):
    text = (LIVE / f"{name}.js").read_text()
    assert len(text.encode()) <= HEAVIEST
    assert not re.search(r"https?:|fetch\(|import\s|XMLHttpRequest|eval\(|innerHTML", text)


def test_the_markup_carries_the_numbers_and_names_scripts_that_exist():
    markup = plot.live_markup(PATTERNS, PICTURES, names="ABCDE", query=QUERY, beta=BETA, reach=2.8)
    content = carried(markup, "rbm-mixtures", "rbm-mixtures-live")
    assert content["patterns"] == PATTERNS.tolist()
    assert content["pictures"] == PICTURES.tolist()


def test_the_still_picture_shows_the_query_its_step_and_its_end():
    axis = np.linspace(-2.8, 2.8, 9)
    energy = axis[:, None] ** 2 + axis**2
    shares = np.full((2, 5), 0.2)
    steps, ends = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.5, 0.6], [0.7, 0.8]])
    figure = plot.live(
        axis,
        np.stack([energy, energy]),
        query=QUERY,
        patterns=PATTERNS,
        weights=shares,
        steps=steps,
        ends=ends,
        returned=np.zeros((2, 4, 4)),
        betas=(0.5, 2.0),
        names="ABCDE",
    )
    for ax, step, end in zip(figure.axes[::2], steps, ends, strict=True):
        marks = {tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xydata()) == 1}
        assert {tuple(QUERY), tuple(step), tuple(end)} <= marks
    plt.close(figure)


def test_weights_retrieval_and_rest_are_those_of_the_library(page, ask):
    rng = np.random.default_rng(3)
    cases = [
        {"query": (2 * rng.normal(size=2)).tolist(), "patterns": (2 * rng.normal(size=(n, 2))).tolist(), "beta": beta}
        for n, beta in [(2, 0.1), (5, 0.7), (5, 1.0), (6, 3.0), (5, 10.0), (3, 400.0)]
    ]
    found = ask(
        page,
        "const m = Live.models['rbm-mixtures'];"
        f"const answer = {json.dumps(cases)}.map((c) => {{ const a = [c.query, c.patterns, c.beta];"
        "const rest = m.converge(...a); return {weights: m.weights(...a), once: m.retrieve(...a),"
        "energy: m.energy(...a), end: rest.path[rest.path.length - 1], steps: rest.path.length - 1,"
        "converged: rest.converged}; })",
    )
    for case, answer in zip(cases, found, strict=True):
        query, patterns, beta = np.array(case["query"]), np.array(case["patterns"]), float(case["beta"])
        given = {"patterns": patterns, "beta": beta}
        path = rbm.recall.trajectory(query, **given, steps=int(answer["steps"]))
        assert answer["converged"]
        assert np.abs(rbm.responsibilities(query, **given) - np.array(answer["weights"], dtype=float)).max() < 1e-12
        assert np.abs(rbm.retrieve(query, **given) - np.array(answer["once"], dtype=float)).max() < 1e-12
        assert abs(float(rbm.modern_hopfield_energy(query, **given)) - answer["energy"]) < 1e-12
        assert np.abs(path[-1] - np.array(answer["end"], dtype=float)).max() < 1e-12
        assert np.abs(rbm.retrieve(path[-1], **given) - path[-1]).max() < 1e-9


@pytest.mark.parametrize("dark", [False, True])
def test_the_model_replaces_the_still_picture_and_every_control_has_a_name(page, dark, ask):
    answer = opened(page, ask, dark=dark)
    assert answer["sliders"] == ["β 0.70"]
    assert sum("arrow keys move it" in name for name in answer["names"]) == 6
    shares = np.asarray(rbm.responsibilities(QUERY, PATTERNS, beta=BETA))
    best = int(shares.argmax())
    assert f"pattern {'ABCDE'[best]} has {100 * shares[best]:.0f} % of the weight" in answer["says"]


def test_keys_move_the_query_and_the_slider_turns_beta(page, ask):
    answer = ask(
        page,
        f"{WAIT} await pause(); const handles = [...document.querySelectorAll('.live-point')];"
        "const query = handles[handles.length - 1]; const before = query.getAttribute('aria-label');"
        "query.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', shiftKey: true}));"
        "query.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp'})); await pause();"
        "const after = query.getAttribute('aria-label');"
        "const slider = document.querySelector('.live input'); slider.value = slider.max;"
        "slider.dispatchEvent(new Event('input')); await pause();"
        f"const cold = {SAYS};"
        "const step = [...document.querySelectorAll('.live-button')][0]; step.click(); await pause();"
        "const answer = {before, after, cold, stepped: query.getAttribute('aria-label')}",
    )
    assert "0.30, −0.40" in answer["before"]
    assert "0.80, −0.35" in answer["after"]
    assert answer["cold"].startswith("β = 10.00: pattern E has 100 % of the weight")
    x, y = np.asarray(rbm.retrieve(np.array([0.8, -0.35]), PATTERNS, beta=10.0))
    assert f"at {x:.2f}, {y:.2f}".replace("-", "−") in answer["stepped"]


def test_a_drag_moves_a_pattern_and_stays_in_the_plane(page, ask):
    answer = ask(
        page,
        f"{WAIT} await pause(); const handle = document.querySelector('.live-point');"
        "const frame = document.querySelector('.live canvas').getBoundingClientRect();"
        "handle.setPointerCapture = () => {}; handle.hasPointerCapture = () => true;"
        "const at = (x, y) => ({pointerId: 1, clientX: frame.left + x * frame.width,"
        " clientY: frame.top + y * frame.height});"
        "const names = []; for (const [x, y] of [[0.5, 0.5], [2, -1]]) {"
        "handle.dispatchEvent(new PointerEvent('pointermove', at(x, y))); await pause();"
        "names.push(handle.getAttribute('aria-label')); } const answer = names",
    )
    assert "at 0.00, 0.00" in answer[0]
    assert "at 2.80, 2.80" in answer[1]


@pytest.mark.parametrize("width", [1400, 390])
def test_the_model_fits_the_window(page, width, ask):
    answer = ask(
        page,
        f"{WAIT} await pause(); const wide = document.querySelector('.live').scrollWidth;"
        "const answer = {wide, page: document.documentElement.clientWidth,"
        "smallest: Math.min(...[...document.querySelectorAll('.live-point')].map((n) => n.clientWidth))}",
        width=width,
    )
    assert answer["wide"] <= answer["page"]
    assert answer["smallest"] >= 24


def test_numbers_have_a_true_minus_sign_and_zero_has_none(page, ask):
    assert ask(page, "const answer = [-1.234, -0.004, 0, 0.5].map(Live.number)") == ["−1.23", "0.00", "0.00", "0.50"]


def test_the_value_beside_a_slider_is_not_read_aloud_a_second_time(page, ask):
    answer = ask(
        page,
        f"{WAIT} await pause(); const answer = [...document.querySelectorAll('.live output')]"
        ".map((node) => [node.textContent, node.getAttribute('aria-hidden')])",
    )
    assert answer == [["0.70", "true"]]
