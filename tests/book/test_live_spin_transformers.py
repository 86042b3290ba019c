"""The live model of spin-transformers has the library's means and moments, and answers slider and keys."""

from functools import partial

import numpy as np

from chapters.live import spin_transformers as live
from chapters.live.spin_transformers import FIELDS, LOGITS
from spinbook import sphere
from spinbook.precision import enable_x64
from spinbook.vector import mean_field
from tests.book.live import Model, Opening

BETA, SHARPNESS = 6.0, 1.5


def _couplings(sharpness: float) -> np.ndarray:
    J = np.zeros((12, 12))
    J[0, 1:] = live.couplings(sharpness)
    return J


def _spread(sharpness: float) -> float:
    """How many tokens the first attends to."""
    return 1 / np.sum(_couplings(sharpness)[0] ** 2)


MODEL = Model(
    "spin-transformers",
    lambda: live.markup(beta=BETA, sharpness=SHARPNESS),
    {"fields": FIELDS.tolist(), "logits": LOGITS.tolist()},
    lambda: Opening(["sharpness 1.50", "β 6.00"], [f"attends to {_spread(SHARPNESS):.1f} of 11"], handles=1),
    lambda: [
        ("slide(0, 'max')", f"attends to {_spread(12.0):.1f} of 11", "per cent of what attention changes."),
        ("press(0, 'ArrowRight', true)",),
    ],
)


def test_responses_and_predicted_means_are_those_of_the_library(page, ask):
    betas, sharpnesses = (0.2, 1.0, 6.0, 16.0), (0.0, 1.5, 12.0)
    found = ask(
        page,
        f"const m = Live.models['spin-transformers']; const x = {FIELDS.tolist()}, l = {LOGITS.tolist()};"
        f"const answer = {{single: {list(betas)}.map((b) => x.map((h) => m.response(h, b))),"
        f"means: {list(betas)}.map((b) => {list(sharpnesses)}.map((s) => m.predicted(m.couplings(l, s), x, b))),"
        f"rows: {list(sharpnesses)}.map((s) => m.couplings(l, s)), spread: m.attended(m.couplings(l, 1.5)[0]),"
        "missed: m.missed([0.3, 0.4, 0], [0.3, 0, 0.3], [0.3, -0.6, 0])}",
    )
    step = partial(mean_field.naive_step, response=sphere.exact)
    with enable_x64(True):
        for beta, single, means in zip(betas, found["single"], found["means"], strict=True):
            assert np.abs(np.asarray(sphere.magnetization(FIELDS, beta=beta)) - single).max() < 1e-12
            for sharpness, m, row in zip(sharpnesses, means, found["rows"], strict=True):
                J = _couplings(sharpness)
                assert np.abs(J - row).max() < 1e-12
                solved = mean_field.steady_state(J, FIELDS, beta=beta, step=step, tol=1e-14)
                assert np.abs(np.asarray(solved.value) - m).max() < 1e-12
    assert abs(found["missed"] - 0.5) < 1e-12
    assert abs(found["spread"] - _spread(1.5)) < 1e-12


def test_draws_have_the_mean_the_covariance_and_the_length_of_the_library(page, ask):
    h, count = [0.4, -0.7, 0.3], 20000
    draws = ask(
        page,
        "const m = Live.models['spin-transformers']; const random = m.generator(5);"
        f"const answer = Array.from({{length: {count}}}, () => m.draw({h}, 4.0, random))",
    )
    s = np.array(draws, dtype=float)
    assert np.abs(np.linalg.norm(s, axis=1) - sphere.radius(3)).max() < 1e-12
    Var = np.asarray(sphere.covariance(h, beta=4.0))
    off = (s.mean(axis=0) - np.asarray(sphere.magnetization(h, beta=4.0))) / np.sqrt(np.diag(Var) / count)
    assert np.abs(off).max() < 4.5
    assert np.abs(np.cov(s.T) - Var).max() < 0.01
