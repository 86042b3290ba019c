"""The map of the lessons on the title page: what each builds on, as a drawing and as a list of links."""

from __future__ import annotations

import html
from typing import NamedTuple

from chapters import style


class Stop(NamedTuple):
    """A lesson on the map: its page, its idea, the lessons it builds on, and the minutes that its page says.

    ``road`` is "equilibrium", "driven", or "" where both meet; ``place`` is (column, row) in the wide drawing.
    ``after`` are pages of stops that come before it in ``ROAD``.
    """

    page: str
    idea: str
    after: tuple[str, ...]
    minutes: int
    road: str
    place: tuple[int, int]


ROAD = (
    Stop("collectives", "Is a transformer block a magnet?", (), 30, "", (1, 0)),
    Stop("rbm-mixtures", "Attention is a guess about what you cannot see", (), 30, "equilibrium", (0, 1)),
    Stop("adaptive-tap", "Do not hear your own echo", ("rbm-mixtures",), 30, "equilibrium", (0, 2)),
    Stop("free-energy", "How a magnet computes attention", ("adaptive-tap",), 35, "equilibrium", (0, 3)),
    Stop("kinetic-ising", "The average of tanh is not the tanh of the average", (), 35, "driven", (2, 1)),
    Stop(
        "spin-transformers", "A transformer block is one step of a relaxation", ("kinetic-ising",), 35, "driven", (2, 2)
    ),
    Stop("attention-dynamics", "Chaos in a window of four tokens", (), 35, "driven", (1, 2)),
    Stop("entropy-production", "Which film runs backwards?", ("spin-transformers",), 35, "driven", (2, 3)),
    Stop("nonequilibrium-dynamics", "How far does one step go?", ("entropy-production",), 25, "driven", (2, 4)),
    Stop("comparison", "What would you lose?", ("free-energy", "nonequilibrium-dynamics"), 20, "", (1, 5)),
    Stop("trained-transformer", "What is inside a transformer that people use?", ("comparison",), 30, "", (1, 6)),
)
"""The lessons in the order of the book: the map of it is drawn from this, and from nothing else."""

_ROAD_LOOK = """
.road { --road-ink: %(ink)s; --road-paper: %(paper)s; --road-grey: %(grey)s; --road-faint: %(faint)s;
  --road-equilibrium: %(blue)s; --road-driven: %(orange)s; margin: 1rem 0; text-align: left; }
html[data-theme="dark"] .road { --road-ink: %(dark_ink)s; --road-paper: %(dark_paper)s; --road-grey: %(dark_grey)s;
  --road-faint: %(dark_faint)s; --road-equilibrium: %(dark_blue)s; --road-driven: %(dark_orange)s; }
html[data-theme="dark"] .bd-content div.cell_output div.output.text_html:has(.road) { background: none; padding: 0; }
.road svg { display: block; width: 100%%; height: auto; font-family: inherit; }
.road svg .line { fill: none; stroke-width: 3; stroke: var(--road-grey); }
.road svg rect { fill: var(--road-paper); stroke: var(--road-ink); stroke-width: 1.6; }
.road svg text { fill: var(--road-ink); font-size: 14px; }
.road svg text.small { fill: var(--road-grey); font-size: 12px; }
.road svg .equilibrium rect, .road svg .line.equilibrium { stroke: var(--road-equilibrium); }
.road svg .driven rect, .road svg .line.driven { stroke: var(--road-driven); }
.road svg a:hover rect, .road svg a:focus rect { stroke-width: 3.5; }
.road svg a:hover text, .road svg a:focus text { text-decoration: underline; }
.road ol { display: none; list-style: none; margin: 0; padding: 0; }
.road li { border-left: 4px solid var(--road-ink); margin: 0; padding: 0.35rem 0 0.35rem 0.8rem;
  color: var(--road-ink); }
.road li.equilibrium { border-color: var(--road-equilibrium); }
.road li.driven { border-color: var(--road-driven); }
.road li a { display: block; padding: 0.2rem 0; }
.road li span { display: block; font-size: 0.85rem; color: var(--road-grey); }
@media screen and (max-width: 760px) { .road svg { display: none; } .road ol { display: block; } }
"""


def _halves(text: str, width: int = 27) -> list[str]:
    """``text`` in lines of at most ``width`` characters, broken between words."""
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        if len(joined) > width and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = joined
    return lines


def _card(stop: Stop, corner: tuple[float, float], size: tuple[float, float], folder: str) -> str:
    (x, y), (width, height) = corner, size
    lines = _halves(stop.idea)
    top, step = {1: (28, 0), 2: (22, 18)}.get(len(lines), (19, 16))
    words = "".join(
        f'<text x="{x + 14:g}" y="{y + top + step * k:g}">{html.escape(line)}</text>' for k, line in enumerate(lines)
    )
    below = f'<text class="small" x="{x + 14:g}" y="{y + height - 10:g}">{stop.page}, {stop.minutes} min</text>'
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8"/>'
    return f'<a href="{folder}{stop.page}.html" class="{stop.road or "both"}">{box}{words}{below}</a>'


def roadmap(*, folder: str = "") -> str:
    """The map of the book as HTML: a drawing whose boxes are links, and a list of the same in narrow windows.

    ``folder`` leads from the page that shows it to the lessons: "" from one of them, "notebooks/" from the title page.
    Needs no script. A line leads to a lesson from each lesson that it builds on, or else from the first stop.
    """
    width, height, across, down = 226.0, 86.0, 250.0, 122.0
    corners = {stop.page: (8 + across * stop.place[0], 8 + down * stop.place[1]) for stop in ROAD}
    lines = []
    for stop in ROAD[1:]:
        for page in stop.after or (ROAD[0].page,):
            (x, y), (left, top) = corners[page], corners[stop.page]
            start, end = (x + width / 2, y + height), (left + width / 2, top)
            middle = (start[1] + end[1]) / 2
            path = f"M{start[0]:g} {start[1]:g}C{start[0]:g} {middle:g} {end[0]:g} {middle:g} {end[0]:g} {end[1]:g}"
            lines.append(f'<path class="line {stop.road or "both"}" d="{path}"/>')
    cards = "".join(_card(stop, corners[stop.page], (width, height), folder) for stop in ROAD)
    box = f"0 0 {across * 2 + width + 16:g} {down * max(stop.place[1] for stop in ROAD) + height + 16:g}"
    rows = "".join(
        f'<li class="{stop.road or "both"}"><a href="{folder}{stop.page}.html">{html.escape(stop.idea)}</a>'
        f"<span>{stop.page}, {stop.minutes} min{', after ' + ', '.join(stop.after) if stop.after else ''}</span></li>"
        for stop in ROAD
    )
    drawing = f'<svg viewBox="{box}">{"".join(lines)}{cards}</svg>'
    nav = f'<nav class="road" aria-label="Map of the book">{drawing}<ol>{rows}</ol></nav>'
    return f"<style>{style.themed(_ROAD_LOOK)}</style>{nav}"
