"""Frames of a network with a slider and a play button, as HTML that works on a static page. Draws lines and dots only.

`_static/spinbook.js` moves the slider; without it (on Colab, or with scripts off) the last frame is shown alone.
"""

import html
from collections.abc import Sequence

import numpy as np
from IPython.display import HTML

from spinbook.plot import style

__all__ = ["player"]

_UNIT, _MARGIN = 60.0, 24.0
_WIDEST = 7.0


def player(
    places: np.ndarray, weights: np.ndarray, *, captions: Sequence[str], alt: str, special: int = 0, shown: float = 0.1
) -> HTML:
    """One drawing of the network for each frame, of which the page shows one at a time.

    `places` (nodes, 2) with y upwards, `weights` (frames, nodes, nodes), where row i acts on node i; a line is as wide
    as its weight, and the strongest fraction `shown` of each frame is drawn. Lines onto the node `special` stand out.
    `captions` say in words what each frame shows, `alt` what all of them do.

    >>> shown = player(np.eye(2), np.ones((3, 2, 2)), captions=["a", "b", "c"], alt="two dots")
    >>> shown.data.count('<g class="spin-frame"')
    3
    """
    values, at = np.asarray(weights, dtype=float), np.asarray(places, dtype=float)
    if values.ndim != 3 or values.shape[1:] != (len(at), len(at)):
        raise ValueError(f"weights: expected shape (frames, {len(at)}, {len(at)}), got shape {values.shape}")
    if len(captions) != len(values):
        raise ValueError(f"captions: expected one for each of {len(values)} frames, got {len(captions)}")
    x = _MARGIN + _UNIT * (at[:, 0] - at[:, 0].min())
    y = _MARGIN + _UNIT * (at[:, 1].max() - at[:, 1])
    top = float(values.max()) or 1.0
    frames = []
    for k, (frame, caption) in enumerate(zip(values, captions, strict=True)):
        positive = frame[frame > 0]
        threshold = np.quantile(positive, 1 - shown) if positive.size else np.inf
        lines = [
            f'<line class="{"spin-onto" if i == special else "spin-among"}" '
            f'stroke="{style.QUALITATIVE[1 if i == special else 0]}" stroke-width="{_WIDEST * frame[i, j] / top:.2f}" '
            f'x1="{x[j]:.0f}" y1="{y[j]:.0f}" x2="{x[i]:.0f}" y2="{y[i]:.0f}"/>'
            for i, j in np.argwhere(frame >= threshold)
            if i != j
        ]
        hidden = "" if k == len(values) - 1 else ' style="display:none"'
        frames.append(f'<g class="spin-frame"{hidden} data-caption="{html.escape(caption)}">{"".join(lines)}</g>')
    dots = "".join(
        f'<circle class="spin-node" fill="{style.GREY}" cx="{x[i]:.0f}" cy="{y[i]:.0f}" '
        f'r="{9 if i == special else 5}"/>'
        for i in range(len(at))
    )
    box = f"0 0 {x.max() + _MARGIN:.0f} {y.max() + _MARGIN:.0f}"
    last = len(values) - 1
    return HTML(
        f'<div class="spin-frames" role="group" aria-label="Animation">'
        f'<svg viewBox="{box}" role="img" aria-label="{html.escape(alt)}" stroke-opacity="0.75">'
        f"{''.join(frames)}{dots}</svg>"
        f'<div class="spin-frames-controls" hidden><button type="button">Play</button>'
        f'<label>Frame <input type="range" min="0" max="{last}" value="{last}" step="1"></label></div>'
        f'<p class="spin-frames-caption" aria-live="polite">{html.escape(captions[-1])}</p></div>'
    )
