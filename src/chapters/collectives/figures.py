"""The figures of the chapter ``collectives``: each function draws given results and returns the figure.

The four terms of a block keep their colours in all figures: residual green, token mixing blue, normalisation ochre,
channel mixing purple. What is exact is in ink, and what a source prints and this book corrects is orange and dashed.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters import style

__all__ = [
    "TERMS",
    "Stop",
    "approximations",
    "extensivity",
    "feed_forward",
    "landscape",
    "roadmap",
    "stack",
    "terms",
    "training",
    "training_frame",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
TERMS = {"residual": GREEN, "token mixing": BLUE, "normalisation": OCHRE, "channel mixing": PURPLE}
LINES = ["-", "--", "-.", ":"]
MARKERS = ["o", "s", "^", "D", "v"]
FAMILY = [BLUE, ORANGE, GREEN, PURPLE, OCHRE]


class Stop(NamedTuple):
    """A lesson on the map: its page, its idea, the lessons it builds on, and the minutes it takes to read.

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
    Stop("rbm-mixtures", "Attention is a guess about what you cannot see", (), 25, "equilibrium", (0, 1)),
    Stop("adaptive-tap", "Do not hear your own echo", ("rbm-mixtures",), 25, "equilibrium", (0, 2)),
    Stop("free-energy", "How a magnet computes attention", ("adaptive-tap",), 30, "equilibrium", (0, 3)),
    Stop("kinetic-ising", "The average of tanh is not the tanh of the average", (), 25, "driven", (2, 1)),
    Stop(
        "spin-transformers", "A transformer block is one step of a relaxation", ("kinetic-ising",), 25, "driven", (2, 2)
    ),
    Stop("attention-dynamics", "Chaos in a window of four tokens", (), 25, "driven", (1, 2)),
    Stop("entropy-production", "Which film runs backwards?", ("spin-transformers",), 25, "driven", (2, 3)),
    Stop("nonequilibrium-dynamics", "How far does one step go?", ("entropy-production",), 20, "driven", (2, 4)),
    Stop("comparison", "What would you lose?", ("free-energy", "nonequilibrium-dynamics"), 15, "", (1, 5)),
    Stop("trained-transformer", "What is inside a transformer that people use?", ("comparison",), 25, "", (1, 6)),
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


def _look() -> str:
    """The style of the map, in the colours of the figures, light and dark."""
    names = {"ink": style.INK, "paper": style.PAPER, "grey": style.GREY, "faint": style.FAINT}
    names |= {"blue": BLUE, "orange": ORANGE}
    return _ROAD_LOOK % (names | {f"dark_{name}": style.DARK[colour] for name, colour in names.items()})


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


def roadmap(stops: Sequence[Stop] = ROAD, *, folder: str = "") -> str:
    """The map of the book as HTML: a drawing whose boxes are links, and a list of the same in narrow windows.

    ``folder`` leads from the page that shows it to the lessons: "" from one of them, "notebooks/" from the title page.
    Needs no script. A line leads to a lesson from each lesson that it builds on, or else from the first stop.
    """
    width, height, across, down = 226.0, 78.0, 250.0, 118.0
    corners = {stop.page: (8 + across * stop.place[0], 8 + down * stop.place[1]) for stop in stops}
    lines = []
    for stop in stops[1:]:
        for page in stop.after or (stops[0].page,):
            (x, y), (left, top) = corners[page], corners[stop.page]
            start, end = (x + width / 2, y + height), (left + width / 2, top)
            middle = (start[1] + end[1]) / 2
            path = f"M{start[0]:g} {start[1]:g}C{start[0]:g} {middle:g} {end[0]:g} {middle:g} {end[0]:g} {end[1]:g}"
            lines.append(f'<path class="line {stop.road or "both"}" d="{path}"/>')
    cards = "".join(_card(stop, corners[stop.page], (width, height), folder) for stop in stops)
    box = f"0 0 {across * 2 + width + 16:g} {down * max(stop.place[1] for stop in stops) + height + 16:g}"
    rows = "".join(
        f'<li class="{stop.road or "both"}"><a href="{folder}{stop.page}.html">{html.escape(stop.idea)}</a>'
        f"<span>{stop.page}, {stop.minutes} min{', after ' + ', '.join(stop.after) if stop.after else ''}</span></li>"
        for stop in stops
    )
    drawing = f'<svg viewBox="{box}">{"".join(lines)}{cards}</svg>'
    return f'<style>{_look()}</style><nav class="road" aria-label="Map of the book">{drawing}<ol>{rows}</ol></nav>'


@style.house
def approximations(
    scales: np.ndarray,
    means: Mapping[str, np.ndarray],
    pairs: Mapping[str, np.ndarray],
    *,
    dims: np.ndarray,
    saddle: Mapping[str, np.ndarray],
    slopes: Mapping[str, tuple[float, float]],
) -> Figure:
    """Errors of both ingredients of a response, against the couplings for binary spins and against D at the saddle.

    ``slopes`` maps the label of an approximation to the exponents of its errors, of the means and of the pairs.
    """
    figure, axes = style.subplots(1, 3, height=2.75)
    panels = zip(axes[:2], (means, pairs), ("mean spins", "two-point functions"), strict=True)
    for panel, (ax, errors, name) in enumerate(panels):
        for k, (label, values) in enumerate(errors.items()):
            ax.loglog(scales, values, color=FAMILY[k], linestyle=LINES[k], marker=MARKERS[k], markersize=3.5)
            middle = (2 * len(scales)) // 3 if k == 0 else len(scales) // 2
            text = f"{label}: slope {slopes[label][panel]:.1f}"
            below = k > 0
            style.label(
                ax,
                text,
                (float(scales[middle]), float(values[middle])),
                FAMILY[k],
                (6, -10) if below else (-6, 6),
                ha="left" if below else "right",
            )
        ax.set(xlabel="scale of the couplings", ylabel=f"error of the {name}")
        style.decades(ax.xaxis)
        style.decades(ax.yaxis, 2)
    for k, (label, values) in enumerate(saddle.items()):
        colour = (BLUE, PURPLE)[k]
        axes[2].loglog(dims, values, color=colour, linestyle=LINES[k], marker=MARKERS[k], markersize=3.5)
        upper = values[-1] == max(v[-1] for v in saddle.values())
        place = 2 if upper else len(dims) - 2
        point = (float(dims[place]), float(values[place]))
        style.label(axes[2], label, point, colour, (6, 5) if upper else (-10, -5), ha="left" if upper else "right")
    axes[2].set(xlabel="components $D$", ylabel="relative error at the saddle")
    style.plain_ticks(axes[2].xaxis, dims[::2])
    style.decades(axes[2].yaxis)
    style.letters(*axes)
    return figure


@style.house
def landscape(
    axis: np.ndarray,
    energies: Sequence[np.ndarray],
    paths: Sequence[np.ndarray],
    *,
    keys: np.ndarray,
    separations: np.ndarray,
    shares: Mapping[str, np.ndarray],
) -> Figure:
    """The right and the printed energy over the plane with queries running downhill, and where queries end.

    ``energies``: two arrays (s, s) indexed [y, x], from their minimum. ``paths``: two arrays (steps, queries, 2).
    ``shares`` maps a kind of keys to the share of queries that end at the nearest key, over ``separations``.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.7, width_ratios=(1, 1, 0.9))
    top = max(float(e.max()) for e in energies)
    levels = top * np.linspace(0, 1, 13) ** 2
    titles = ("with $1/b$", "as printed")
    for ax, energy, path, title in zip((left, middle), energies, paths, titles, strict=True):
        style.landscape(ax, axis, axis, energy, levels, BLUE)
        for k in range(path.shape[1]):
            ax.plot(*path[:, k].T, color=style.INK, linewidth=0.8, linestyle="-", alpha=0.8)
        ax.plot(*path[0].T, color=style.INK, marker="o", markersize=2.4, linestyle="none")
        ax.plot(*path[-1].T, color=style.INK, marker="x", markersize=5, linestyle="none", zorder=6)
        style.places(ax, keys, ORANGE)
        ax.set(xlim=(axis[0], axis[-1]), ylim=(axis[0], axis[-1]), aspect="equal", xlabel="$q_1$")
        style.panel_label(ax, "a" if ax is left else "b")
        ax.set_title(title, loc="center")
    left.set_ylabel("$q_2$")
    for k, (label, share) in enumerate(shares.items()):
        right.semilogx(separations, share, color=FAMILY[k], linestyle=LINES[k], marker=MARKERS[k], markersize=3.5)
        style.label(
            right, label, (float(separations[-1]), float(share[-1])), FAMILY[k], (0, 10 if k else 6), ha="right"
        )
    right.set(xlabel=r"$b\,|k|^2$ of the keys", ylabel="queries that end at the nearest key", ylim=(-0.04, 1.15))
    style.plain_ticks(right.xaxis, (2, 10, 50))
    style.panel_label(right, "c")
    return figure


@style.house
def terms(
    betas: np.ndarray,
    fields: Mapping[str, np.ndarray],
    *,
    lengths: np.ndarray,
    gains: Mapping[str, np.ndarray],
    reactions: tuple[np.ndarray, np.ndarray],
) -> Figure:
    """The three fields of a spin-transformer module against beta; the normalisation; and the reaction, site by site.

    ``fields`` maps a term to its mean length over R; ``gains`` a response to |m| / R over ``lengths`` = beta |theta| /
    R; ``reactions`` is (length of the output over R, minus the coefficient of the reaction), one entry for each site.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.75)
    for k, (name, values) in enumerate(fields.items()):
        left.loglog(betas, values, color=TERMS[name], linestyle=LINES[k], marker=MARKERS[k], markersize=3)
        place = (len(betas) // 2, len(betas) // 2 + 1, len(betas) // 3)[k]
        offset, side = (((0, 5), "center"), ((-4, 5), "right"), ((6, -10), "left"))[k]
        style.label(left, name, (float(betas[place]), float(values[place])), TERMS[name], offset, ha=side)
    left.set(xlabel=r"$\beta$", ylabel="mean length of the field / $R$", ylim=(None, 4))
    style.plain_ticks(left.xaxis, (0.1, 0.3, 1, 3))
    style.decades(left.yaxis)
    looks = [(OCHRE, "-"), (style.INK, ":"), (style.INK, "-.")]
    for (colour, line), (name, values) in style.dressed(looks, gains.items()):
        middle.plot(lengths, values, color=colour, linestyle=line, label=name)
    middle.axhline(1, color=style.GREY, linewidth=0.9, linestyle="--")
    style.label(middle, "hard normalisation", (float(lengths[-1]), 1.0), style.GREY, (0, 4), ha="right")
    middle.set(xlabel=r"$\beta|\theta| / R$", ylabel="$|m| / R$", ylim=(0, 1.15))
    middle.legend(loc="lower right")
    right.plot(*reactions, color=PURPLE, marker="D", markersize=3, linestyle="none")
    right.set(xlabel="$|m_i| / R$", ylabel=r"$-$(reaction of site $i$) / $\theta_i$", ylim=(0, None))
    right.locator_params(axis="x", nbins=3)
    style.letters(left, middle, right)
    return figure


@style.house
def extensivity(sizes: np.ndarray, energies: Mapping[str, np.ndarray]) -> Figure:
    """Depth of the lowest energies found, for each site and component, against the number of sites."""
    figure, ax = style.subplots(width="column", height=2.7)
    for k, (label, values) in enumerate(energies.items()):
        ax.loglog(sizes, values, color=FAMILY[k], linestyle=LINES[k], marker=MARKERS[k], markersize=3.5)
        nearest = min((abs(np.log(v[-1] / values[-1])), v[-1]) for name, v in energies.items() if name != label)
        crowded = nearest[0] < 0.4
        shift = 0 if not crowded else 6 if values[-1] > nearest[1] else -6
        style.label(ax, label, (float(sizes[-1]), float(values[-1])), FAMILY[k], (6, shift), va="center")
    # Room for the lowest label above the numbers of the axis.
    ax.margins(y=0.12)
    ax.set(xlabel="number of sites $N$", ylabel="lowest energy: $-E / ND$")
    ax.set_xlim(None, sizes[-1] * 1.1)
    style.plain_ticks(ax.xaxis, sizes)
    style.decades(ax.yaxis)
    return figure


@style.house
def feed_forward(
    truth: np.ndarray,
    prediction: np.ndarray,
    *,
    explained: Mapping[str, float],
    bound: tuple[float, float],
    strengths: np.ndarray,
    local: np.ndarray,
) -> Figure:
    """The induced term against a network's prediction, the variance that networks explain, and the local part.

    ``truth`` and ``prediction`` are (n,). ``bound``: the most that any function of one site's input explains, with its
    standard error; ``local`` (weights, strengths) the same for other weights of queries and keys.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.75, width_ratios=(1, 1.2, 1))
    left.plot(truth, prediction, color=PURPLE, marker="o", markersize=1.6, linestyle="none", alpha=0.5)
    ends = [float(truth.min()), float(truth.max())]
    left.plot(ends, ends, color=style.INK, linewidth=0.9, linestyle="-")
    left.set(xlabel="induced term, exact", ylabel="network that sees $h_i$", xlim=ends, ylim=ends)
    places = np.arange(len(explained))[::-1]
    middle.barh(places, list(explained.values()), color=PURPLE, height=0.55, alpha=0.75)
    middle.axvline(bound[0], color=style.INK, linewidth=1.2, linestyle="--")
    middle.axvspan(bound[0] - bound[1], bound[0] + bound[1], color=style.INK, alpha=0.15, linewidth=0)
    style.label(middle, "most that $h_i$ can tell", (bound[0], float(places[0]) + 0.42), style.INK, (-4, 3), ha="right")
    middle.set_yticks(places, list(explained))
    middle.set(xlabel="explained variance, new inputs", xlim=(0, 1), ylim=(-0.5, len(explained) + 0.15))
    right.semilogx(strengths, local.T, color=style.INK, linewidth=0.7, linestyle="-", alpha=0.5)
    right.semilogx(strengths, local.mean(axis=0), color=style.INK, linewidth=2.0, linestyle="--", marker="o")
    right.set(xlabel="factor on $W_Q$ and $W_K$", ylabel="most that $h_i$ can tell", ylim=(0, 1))
    style.plain_ticks(right.xaxis, strengths)
    style.letters(left, middle, right)
    return figure


def _matrices(axes: Sequence[Axes], couplings: np.ndarray, responses: np.ndarray, tops: tuple[float, float]) -> None:
    for ax, matrix, top in zip(axes, (couplings, responses), tops, strict=True):
        ax.imshow(matrix, cmap=style.DIVERGING, vmin=-top, vmax=top, interpolation="nearest")
        ax.set_xticks([])
        ax.set_yticks([])


@style.house
def training(
    couplings: np.ndarray,
    responses: np.ndarray,
    *,
    chosen: Sequence[int],
    tops: tuple[float, float],
    updates: np.ndarray,
    losses: np.ndarray,
    levels: Mapping[str, float],
) -> Figure:
    """Couplings (top) and responses (bottom) at three records, and the loss on held-out inputs.

    ``couplings`` and ``responses`` are (records, N, N), ``losses`` (records,); ``levels`` are losses to compare with.
    ``tops`` are the ends of the colour scales of couplings and responses.
    """
    figure = plt.figure(figsize=(style.WIDTHS["page"], 3.3))
    grid = figure.add_gridspec(2, 4, width_ratios=(1, 1, 1, 1.7))
    for column, record in enumerate(chosen):
        pair = [figure.add_subplot(grid[row, column]) for row in range(2)]
        _matrices(pair, couplings[record], responses[record], tops)
        pair[0].set_title(f"{updates[record]} updates", loc="center", fontsize=8.5)
        if column == 0:
            pair[0].set_ylabel(rf"$J_{{ij}}$, to $\pm${tops[0]:.2f}")
            pair[1].set_ylabel(rf"$\chi_{{ij}}$, to $\pm${tops[1]:.2f}")
    right = figure.add_subplot(grid[:, 3])
    _loss(right, updates, losses, levels)
    style.panel_label(right, "")
    return figure


def _loss(ax: Axes, updates: np.ndarray, losses: np.ndarray, levels: Mapping[str, float]) -> None:
    ax.plot(updates, losses, color=BLUE, linestyle="-", marker="o", markersize=3)
    for name, level in levels.items():
        ax.axhline(level, color=style.GREY, linewidth=0.9, linestyle="--")
        below = level < losses.min()
        style.label(ax, name, (float(updates[-1]), level), style.GREY, (0, -11 if below else 3), ha="right")
    top = max(float(losses.max()), *levels.values())
    ax.set(xlabel="updates", ylabel="loss, new inputs", ylim=(0, 1.12 * top))


@style.house
def training_frame(
    couplings: np.ndarray,
    responses: np.ndarray,
    *,
    record: int,
    tops: tuple[float, float],
    updates: np.ndarray,
    losses: np.ndarray,
    levels: Mapping[str, float],
) -> Figure:
    """One frame: couplings and responses (N, N) at a record, and its place on the loss curve."""
    # A layout engine would place each frame by its own labels, and the picture would tremble.
    figure, axes = style.subplots(1, 3, height=2.2, layout="none", width_ratios=(1, 1, 1.3))
    figure.subplots_adjust(left=0.03, right=0.97, bottom=0.2, top=0.88, wspace=0.3)
    _matrices(axes[:2], couplings, responses, tops)
    axes[0].set_title("couplings $J_{ij}$", loc="center")
    axes[1].set_title(r"response $\chi_{ij}$", loc="center")
    _loss(axes[2], updates, losses, levels)
    axes[2].plot(updates[record], losses[record], color=ORANGE, marker="o", markersize=7, linestyle="none", zorder=6)
    return figure


@style.house
def stack(
    depths: np.ndarray,
    own: Mapping[str, np.ndarray],
    others: Mapping[str, np.ndarray],
    similarity: Mapping[str, np.ndarray],
) -> Figure:
    """Effect of a small push at a site on that site and on all others, module by module; and how alike sites become.

    Each maps a label to a curve over ``depths``, the number of modules passed.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.7)
    for k, label in enumerate(own):
        left.plot(depths, own[label], color=FAMILY[k], linestyle="--", marker=MARKERS[k], markersize=3.5)
        left.plot(depths, others[label], color=FAMILY[k], linestyle="-", marker=MARKERS[k], markersize=3.5)
        right.plot(depths, similarity[label], color=FAMILY[k], linestyle="-", marker=MARKERS[k], markersize=3.5)
        nudge = 4 * (k - (len(own) - 1) / 2)  # curves that reach one together have labels that do not touch
        style.label(right, label, (float(depths[-1]), float(similarity[label][-1])), FAMILY[k], (5, nudge), va="center")
        style.label(left, label, (float(depths[-1]), float(others[label][-1])), FAMILY[k], (5, 0), va="center")
    left.plot([], [], color=style.GREY, linestyle="--", label="the pushed site")
    left.plot([], [], color=style.GREY, linestyle="-", label="all other sites")
    left.legend(loc="upper left")
    left.set(xlabel="modules passed", ylabel="response / push")
    left.set_ylim(0, 1.35 * max(float(max(own[k].max(), others[k].max())) for k in own))
    right.set(xlabel="modules passed", ylabel="mean cosine of two sites", ylim=(0, 1.05))
    style.letters(left, right)
    return figure
