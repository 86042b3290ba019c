"""The live model of rbm-mixtures: weights, retrieval and rest of the library; it answers keys, slider and mouse."""

import json

import numpy as np

from chapters.live import rbm_mixtures as live
from spinbook import rbm
from tests.book.live import WAIT, Model, Opening

QUERY, BETA = np.array([0.3, -0.4]), 0.7
MARKUP = live.markup(beta=BETA, query=QUERY.tolist())
PATTERNS = np.array(json.loads(MARKUP.partition(">")[2].partition("<")[0])["patterns"])


def followed(query, patterns, beta, steps):
    path = [query]
    for _ in range(steps):
        path.append(np.asarray(rbm.retrieve(path[-1], patterns, beta=beta)))
    return path


def opens():
    shares = np.asarray(rbm.responsibilities(QUERY, PATTERNS, beta=BETA))
    best = int(shares.argmax())
    return Opening(["β 0.70"], [f"pattern {'ABCDE'[best]} has {100 * shares[best]:.0f} % of the weight"], handles=6)


def answers():
    x, y = np.asarray(rbm.retrieve(np.array([0.8, -0.35]), PATTERNS, beta=10.0))
    return [
        ("now()", "0.30, −0.40"),
        ("press(-1, 'ArrowRight', true).then(() => press(-1, 'ArrowUp'))", "0.80, −0.35"),
        ("slide(0, 'max')", "β = 10.00: pattern E has 100 % of the weight"),
        ("click(0)", f"at {x:.2f}, {y:.2f}".replace("-", "−")),
    ]


MODEL = Model(
    "rbm-mixtures",
    lambda: MARKUP,
    {"names": list("ABCDE"), "query": QUERY.tolist(), "beta": BETA, "reach": 2.8},
    opens,
    answers,
    still='<img class="only-light" alt="still" src="data:,"><img class="only-dark" alt="still" src="data:,">',
)


def test_the_still_picture_shows_the_query_its_step_and_its_end():
    plane, answer = live.still(beta=BETA, query=QUERY.tolist()).axes
    path = followed(QUERY, PATTERNS, BETA, 500)
    marks = [line.get_xydata()[0] for line in plane.lines if len(line.get_xydata()) == 1]
    np.testing.assert_allclose(marks[-3:], [path[1], path[-1], QUERY], atol=1e-6)
    assert answer.images[0].get_array().shape == (8, 8)


def test_weights_retrieval_and_rest_are_those_of_the_library(each):
    rng = np.random.default_rng(3)
    cases = [
        {"query": (2 * rng.normal(size=2)).tolist(), "patterns": (2 * rng.normal(size=(n, 2))).tolist(), "beta": beta}
        for n, beta in [(2, 0.1), (5, 0.7), (5, 1.0), (6, 3.0), (5, 10.0), (3, 400.0)]
    ]
    found = each(
        cases,
        "{ const a = [c.query, c.patterns, c.beta], rest = m.converge(...a); return {...rest, weights: m.weights(...a),"
        "once: m.retrieve(...a), energy: m.energy(...a)}; }",
    )
    for case, answer in zip(cases, found, strict=True):
        query, patterns, beta = np.array(case["query"]), np.array(case["patterns"]), float(case["beta"])
        given = {"patterns": patterns, "beta": beta}
        path = followed(query, **given, steps=len(answer["path"]) - 1)
        assert answer["converged"]
        assert np.abs(rbm.responsibilities(query, **given) - np.array(answer["weights"], dtype=float)).max() < 1e-12
        assert np.abs(rbm.retrieve(query, **given) - np.array(answer["once"], dtype=float)).max() < 1e-12
        assert abs(float(rbm.modern_hopfield_energy(query, **given)) - answer["energy"]) < 1e-12
        assert np.abs(path[-1] - np.array(answer["path"][-1], dtype=float)).max() < 1e-12
        assert np.abs(rbm.retrieve(path[-1], **given) - path[-1]).max() < 1e-9


def test_a_drag_moves_a_pattern_and_stays_in_the_plane(page, ask):
    answer = ask(
        page,
        f"{WAIT} const handle = document.querySelector('.live-point');"
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


def test_numbers_have_a_true_minus_sign_and_zero_has_none(page, ask):
    assert ask(page, "const answer = [-1.234, -0.004, 0, 0.5].map(Live.number)") == ["−1.23", "0.00", "0.00", "0.50"]


def test_the_value_beside_a_slider_is_not_read_aloud_a_second_time(page, ask):
    answer = ask(
        page,
        f"{WAIT} const answer = [...document.querySelectorAll('.live output')]"
        ".map((node) => [node.textContent, node.getAttribute('aria-hidden')])",
    )
    assert answer == [["0.70", "true"]]
