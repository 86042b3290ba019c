"""The picture of the title page: arrows that follow a dragged field and each other, live and still.

The model is the naive mean-field steady state of vector spins whose couplings are the attention of their fields:
m = phi(x + J(x) m) with J(x) = c softmax(a x x^T), and phi the response of ``sphere.large_d``.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from chapters import style

_LENGTH = 1.15
"""Distance of neighbours that an arrow of length one is drawn with."""
_LOOK = """
.spins { --spins-ink: %(ink)s; --spins-paper: %(paper)s; --spins-faint: %(faint)s; --spins-blue: %(blue)s;
  --spins-orange: %(orange)s; --spins-green: %(green)s; margin: 0.5rem 0 0; }
html[data-theme="dark"] .spins { --spins-ink: %(dark_ink)s; --spins-paper: %(dark_paper)s;
  --spins-faint: %(dark_faint)s; --spins-blue: %(dark_blue)s; --spins-orange: %(dark_orange)s;
  --spins-green: %(dark_green)s; }
.spins svg { display: block; width: 100%%; height: auto; }
.spins path { stroke-width: 0.054; fill: none; }
.spins .alone { stroke: var(--spins-faint); stroke-width: 0.036; }
.spins .own { stroke: var(--spins-blue); }
.spins .swayed { stroke: var(--spins-orange); }
.spins .attends { stroke: var(--spins-green); }
.spins circle { fill: var(--spins-paper); stroke: var(--spins-ink); stroke-width: 0.05; }
"""


class Scene(NamedTuple):
    """Places (N, 2), the fields of their own (N, 2), the place of the hand, and the numbers of the model."""

    places: np.ndarray
    own: np.ndarray
    hand: tuple[float, float]
    strength: float
    width: float
    sharpness: float
    coupling: float
    beta: float
    reach: tuple[float, float]

    def fields(self) -> np.ndarray:
        """x = own + (strength / width) (hand - place) exp(-|hand - place|^2 / 2 width^2), (N, 2)."""
        way = np.array(self.hand) - self.places
        near = np.exp(-(way**2).sum(axis=1, keepdims=True) / (2 * self.width**2))
        return np.asarray(self.own + self.strength / self.width * near * way)


def scene() -> Scene:
    """The scene that the title page opens with: 53 places in five rows, and weak waves of a field."""
    rows = [(column - (10 - row % 2) / 2, 0.9 * (row - 2)) for row in range(5) for column in range(11 - row % 2)]
    places = np.round(np.array(rows), 2)
    x, y = places.T
    angle = 0.9 * x + 0.8 * np.sin(1.3 * y + 0.4 * x) + 0.5 * y
    own = np.round(0.55 * np.stack([np.cos(angle), np.sin(angle)], axis=1), 2)
    return Scene(places, own, (-1.7, 0.5), 2.2, 1.3, 1.6, 1.2, 3.0, (5.7, 2.35))


def answers(shown: Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean arrows without and with couplings, (N, 2) each, and the couplings (N, N), by the library."""
    import jax
    import jax.numpy as jnp

    from spinbook import sphere
    from spinbook.vector import mean_field

    x = jnp.asarray(np.pad(shown.fields(), ((0, 0), (0, 1))), dtype=float)
    J = shown.coupling * jax.nn.softmax(shown.sharpness * x @ x.T, axis=1)
    alone = sphere.magnetization_large_d(x, beta=shown.beta)
    solution = mean_field.steady_state(J, x, beta=shown.beta, step=mean_field.naive_step)
    if not bool(solution.converged):
        raise RuntimeError("the arrows of the title page did not come to rest")
    return np.asarray(alone)[:, :2], np.asarray(solution.value)[:, :2], np.asarray(J)


def markup(*, folder: str = "_static/live/", swayed: float = 15.0) -> str:
    """The still picture, the numbers of the live model, and the scripts that put it in the picture's place, as HTML.

    ``folder`` leads from the page to ``kernel.js`` and ``title-page.js``; an arrow is ``swayed`` if it turns by more
    degrees than that because of the others.
    """
    shown = scene()
    alone, together, J = answers(shown)
    angles = [np.arctan2(m[:, 1], m[:, 0]) for m in (alone, together)]
    turned = np.abs(np.rad2deg(np.angle(np.exp(1j * (angles[1] - angles[0]))))) > swayed
    nearest = int(np.argmin(np.linalg.norm(shown.places - shown.hand, axis=1)))
    shares = J[nearest] / J[nearest].max()
    lines = "".join(
        f'<path class="attends" style="stroke-width:{0.086 * share:.3f};opacity:{0.75 * share:.2f}" '
        f'd="M{_point(shown.places[nearest])}L{_point(place)}"/>'
        for j, (place, share) in enumerate(zip(shown.places, shares, strict=True))
        if j != nearest and share >= 0.15
    )
    arrows = "".join(
        _arrow(place, before, "alone") + _arrow(place, mean, "swayed" if moved else "own")
        for place, before, mean, moved in zip(shown.places, alone, together, turned, strict=True)
    )
    x, y = shown.hand
    wide, high = shown.reach
    seen = (
        f"{len(shown.places)} arrows in rows. Around a ring they point towards it; {int(turned.sum())} of them, in "
        f"orange, have turned by more than {swayed:g} degrees because they attend to others."
    )
    drawing = (
        f'<svg viewBox="{-wide:g} {-high:g} {2 * wide:g} {2 * high:g}" role="img" aria-label="{seen}">{lines}{arrows}'
        f'<circle cx="{x:g}" cy="{-y:g}" r="0.2"/></svg>'
    )
    content = shown._asdict() | {"places": shown.places.tolist(), "own": shown.own.tolist()}
    content |= {"swayed": swayed, "length": _LENGTH, "most": 2.5}
    data = json.dumps(content, separators=(",", ":"), allow_nan=False)
    scripts = "".join(f'<script src="{folder}{name}.js" defer></script>' for name in ("kernel", "title-page"))
    return (
        f'<style>{style.themed(_LOOK)}</style><figure class="spins" id="title-page-live"><div class="book-picture">'
        f'{drawing}</div></figure><script type="application/json" id="title-page-live-data">{data}</script>{scripts}'
    )


def _point(place: np.ndarray) -> str:
    """Upwards is positive in the model and negative in a drawing."""
    return f"{place[0]:.3g} {-place[1]:.3g}"


def _arrow(place: np.ndarray, mean: np.ndarray, kind: str) -> str:
    """An arrow whose middle is at its place."""
    tip, tail = place + _LENGTH / 2 * mean, place - _LENGTH / 2 * mean
    length = float(np.linalg.norm(tip - tail))
    along = (tip - tail) / max(length, 1e-9) * min(0.16, 0.45 * length)
    across = 0.6 * np.array([-along[1], along[0]])
    left, right = tip - along + across, tip - along - across
    return f'<path class="{kind}" d="M{_point(tail)}L{_point(tip)}M{_point(left)}L{_point(tip)}L{_point(right)}"/>'
