"""The live model of four tokens: the numbers are the library's, and it answers sliders, and keys on its fields."""

import numpy as np
import pytest

from chapters.live import nonequilibrium_dynamics as live
from spinbook import sphere
from spinbook.vector import mean_field
from tests.book.live import Model, Opening


def _library(beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Couplings, path and rest over R, with 30 further components that are zero."""
    u = live.FIELDS / np.linalg.norm(live.FIELDS, axis=1, keepdims=True)
    J = np.tril(np.exp(2.0 * u @ live.SCORES @ u.T))
    J /= J.sum(axis=1, keepdims=True)
    x, start = (live.R * np.pad(v, ((0, 0), (0, 30))) for v in (live.FIELDS, u @ live.VALUES.T))
    path = [np.asarray(sphere.magnetization_large_d(start, beta=beta))]
    for _ in range(12):
        path.append(np.asarray(mean_field.naive_step(path[-1], J, x, beta=beta)))
    rest = np.asarray(mean_field.steady_state(J, x, beta=beta, step=mean_field.naive_step, tol=1e-13).value)
    return J, np.array(path)[..., :2] / live.R, rest[:, :2] / live.R


def _shares(path: np.ndarray, rest: np.ndarray) -> np.ndarray:
    gaps = np.linalg.norm(path - rest, axis=(1, 2))
    return gaps / gaps[0]


def opens():
    _, path, rest = _library(1.0)
    said = [f"After 1 update at β 1.00, {100 * _shares(path, rest)[1]:.0f} per cent of the distance to rest is left"]
    return Opening(["updates K 1", "β (coldness) 1.00"], said, handles=4)


MODEL = Model(
    "nonequilibrium-dynamics",
    live.markup,
    {"values": live.VALUES.tolist(), "updates": 1, "places": [list(place) for place in live.PLACES]},
    opens,
    lambda: [
        ("slide(0, 4)", "After 4 updates at β 1.00"),
        ("slide(1, 'max')", "After 4 updates at β 8.00"),
        ("press(0, 'ArrowUp', true)",),
        ("click(0)", "After 1 update at β 1.00"),
    ],
)


def test_path_rest_and_shares_are_those_of_the_library(each):
    betas, content = (0.5, 1.0, 1.9), {"scores": live.SCORES.tolist(), "values": live.VALUES.tolist(), "sharpness": 2.0}
    script = f"{{ const r = m.relax({live.FIELDS.tolist()}, {content}, c); return {{...r, shares: m.shares(r)}}; }}"
    for beta, found in zip(betas, each(betas, script), strict=True):
        J, path, rest = _library(beta)
        np.testing.assert_allclose(found["J"], J, atol=1e-14)
        np.testing.assert_allclose(found["path"], path, atol=1e-12)
        np.testing.assert_allclose(found["rest"], rest, atol=1e-10)
        np.testing.assert_allclose(found["shares"], _shares(path, rest), atol=1e-9)


@pytest.mark.parametrize("beta", [0.5, 1.9])
def test_the_still_picture_is_drawn_from_the_path_of_the_library(beta):
    _, path, _ = _library(beta)
    np.testing.assert_allclose(live.path(beta, 12), path, atol=1e-12)
