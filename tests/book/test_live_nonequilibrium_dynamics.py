"""The live model of four tokens: the numbers are the library's, and it answers sliders, and keys on its fields."""

import json

import numpy as np
import pytest

from chapters.nonequilibrium_dynamics import figures as plot
from spinbook import sphere
from spinbook.vector import mean_field
from tests.book.live import SAYS, WAIT, Model, Opening

FIELDS = np.array([[1.0, 0.3], [-0.4, 0.9], [0.8, -0.6], [-0.3, -0.3]])
SCORES, VALUES = np.array([[0.0, -1.0], [1.0, 0.2]]), np.array([[-0.7, -0.6], [0.6, -0.7]])
R = sphere.radius(32)


def _library(beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Couplings, path and rest over R, and the mismatch in nats, with 30 further components that are zero."""
    u = FIELDS / np.linalg.norm(FIELDS, axis=1, keepdims=True)
    J = np.tril(np.exp(2.0 * u @ SCORES @ u.T))
    J /= J.sum(axis=1, keepdims=True)
    x, start = (R * np.pad(v, ((0, 0), (0, 30))) for v in (FIELDS, u @ VALUES.T))
    path = [np.asarray(sphere.magnetization_large_d(start, beta=beta))]
    for _ in range(12):
        path.append(np.asarray(mean_field.naive_step(path[-1], J, x, beta=beta)))
    rest = np.asarray(mean_field.steady_state(J, x, beta=beta, step=mean_field.naive_step, tol=1e-13).value)
    # Of large D: beta (h - g) . m(h) minus the difference of two integrals of the response along the fields.
    h, g = (np.asarray(sphere.field_large_d(m, beta=beta)) for m in (np.array(path), rest))

    def log_partition(field: np.ndarray) -> np.ndarray:
        gamma = np.sqrt(1 + beta**2 * (field**2).sum(-1) / R**2)
        return R**2 * (gamma - np.log(1 + gamma))

    nats = beta * ((h - g) * np.array(path)).sum(-1) - log_partition(h) + log_partition(g)
    return J, np.array(path)[..., :2] / R, rest[:, :2] / R, nats.sum(-1)


def opens():
    _, path, rest, nats = _library(1.0)
    gap = np.linalg.norm(path[1] - rest) / np.linalg.norm(rest)
    said = ["After 1 update at β 1.00", f"{gap:.2f} of the length", f"mismatch is {nats[1]:.2f} nats"]
    return Opening(["updates K 1", "β (coldness) 1.00"], said, handles=4)


MODEL = Model(
    "nonequilibrium-dynamics",
    plot.live_markup(FIELDS, scores=SCORES, values=VALUES, sharpness=2.0, beta=1.0, radius=R, updates=1),
    {"values": VALUES.tolist(), "radius": R, "updates": 1, "places": [list(place) for place in plot.LIVE_PLACES]},
    opens,
)


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.9])
def test_path_rest_and_mismatch_are_those_of_the_library(page, ask, beta):
    content = json.dumps({"scores": SCORES.tolist(), "values": VALUES.tolist(), "sharpness": 2.0})
    found = ask(
        page,
        "const m = Live.models['nonequilibrium-dynamics'];"
        f"const r = m.relax({json.dumps(FIELDS.tolist())}, {content}, {beta});"
        f"const answer = {{...r, nats: r.path.map((state) => m.mismatch(state, r.rest, {R}))}}",
    )
    J, path, rest, nats = _library(beta)
    np.testing.assert_allclose(found["J"], J, atol=1e-14)
    np.testing.assert_allclose(found["path"], path, atol=1e-12)
    np.testing.assert_allclose(found["rest"], rest, atol=1e-10)
    np.testing.assert_allclose(found["nats"], nats, atol=1e-8)


def test_sliders_and_keys_change_what_is_said(page, ask):
    answer = ask(
        page,
        f"{WAIT} await pause(); const before = {SAYS};"
        "const [updates, beta] = document.querySelectorAll('.live input');"
        "updates.value = '4'; updates.dispatchEvent(new Event('input')); await pause();"
        f"const later = {SAYS}; beta.value = beta.max; beta.dispatchEvent(new Event('input')); await pause();"
        f"const cold = {SAYS}; const handle = document.querySelector('.live-point');"
        "handle.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', shiftKey: true})); await pause();"
        f"const moved = {SAYS}; document.querySelector('.live-button').click(); await pause();"
        f"const answer = {{before, later, cold, moved, again: {SAYS}}}",
    )
    assert answer["later"].startswith("After 4 updates at β 1.00")
    assert answer["cold"].startswith("After 4 updates at β 8.00")
    assert answer["moved"] != answer["cold"]
    assert answer["again"] == answer["before"]
