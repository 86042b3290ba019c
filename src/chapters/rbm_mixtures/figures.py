"""The figures of the chapter ``rbm-mixtures``: each function draws given results and returns the figure.

Arguments are arrays or mappings of arrays as the chapter measured them; each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from chapters import style

__all__ = [
    "PRIOR_COLOURS",
    "cumulants",
    "interactions",
    "landscape",
    "orders",
    "recall",
    "schematic",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
PRIOR_COLOURS = dict(
    zip(
        ("constant", "Gaussian", "Bernoulli", "Poisson", "exponential", "Laplace"),
        (style.GREY, BLUE, ORANGE, GREEN, PURPLE, OCHRE),
        strict=True,
    )
)
PRIOR_MARKERS = dict(zip(PRIOR_COLOURS, ("o", "s", "^", "D", "v", "P"), strict=True))
FAMILY = [PURPLE, BLUE, GREEN, ORANGE]
FAMILY_MARKERS = ["o", "s", "^", "D"]
"""Colours and marks of the curves of a family with increasing parameter."""

_VISIBLE = np.array([[-0.95, -0.20], [-0.52, -0.54], [0.0, -0.67], [0.52, -0.54], [0.95, -0.20]])
_HIDDEN = np.array([[-0.55, 0.72], [0.0, 0.88], [0.55, 0.72]])


def _unit(ax: Axes, position: np.ndarray, name: str, *, face: str, edge: str, ink: str) -> None:
    x, y = position
    ax.add_patch(Circle((x, y), 0.165, facecolor=face, edgecolor=edge, linewidth=1.3, zorder=4))
    ax.text(x, y, name, ha="center", va="center_baseline", fontsize=8.5, color=ink, zorder=5)


def _bonds(ax: Axes, start: np.ndarray, ends: np.ndarray, colour: str, width: float, zorder: int) -> None:
    for end in ends:
        ax.plot(*np.stack([start, end], axis=1), color=colour, linewidth=width, linestyle="-", zorder=zorder)


@style.house
def schematic() -> Figure:
    """Four drawings: the bipartite graph, then interactions of visible units for three kinds of hidden prior."""
    figure, axes = style.subplots(1, 4, height=1.85)
    bipartite, pairs, groups, mixture = axes
    for unit, name in zip(_HIDDEN, ("$h_1$", "$h_2$", "$h_3$"), strict=True):
        _bonds(bipartite, unit, _VISIBLE, style.GREY, 0.8, 1)
        _unit(bipartite, unit, name, face=style.PAPER, edge=BLUE, ink=BLUE)
    bipartite.text(0.98, 0.36, r"$W_{i\mu}$", color=style.GREY, ha="center", fontsize=9)

    for second in range(5):
        for first in range(second):
            arc = FancyArrowPatch(
                posA=(_VISIBLE[first, 0], _VISIBLE[first, 1]),
                posB=(_VISIBLE[second, 0], _VISIBLE[second, 1]),
                connectionstyle="arc3,rad=-0.55",
                arrowstyle="-",
                color=ORANGE,
                linewidth=1.2,
                zorder=1,
            )
            pairs.add_patch(arc)

    factors = (((0, 1), (-0.9, 0.30), ORANGE), ((0, 2, 3), (-0.2, 0.55), GREEN), ((1, 2, 3, 4), (0.55, 0.72), PURPLE))
    for members, place, colour in factors:
        _bonds(groups, np.array(place), _VISIBLE[list(members)], colour, 1.2, 1)
        groups.plot(*place, color=colour, marker="s", markersize=8, linestyle="none", zorder=4)

    for unit, value in zip(_HIDDEN, "010", strict=True):
        on = value == "1"
        _bonds(mixture, unit, _VISIBLE, ORANGE if on else style.FAINT, 1.3 if on else 0.8, 2 if on else 1)
        face, edge, ink = (ORANGE, ORANGE, style.PAPER) if on else (style.PAPER, style.FAINT, style.GREY)
        _unit(mixture, unit, value, face=face, edge=edge, ink=ink)

    captions = (
        "visible and hidden units,\nbonds between kinds only",
        "Gaussian prior:\npairs (Hopfield)",
        "other priors:\ngroups of every size",
        "one frozen unit at a time:\nmixture (attention)",
    )
    for letter, ax, caption in zip("abcd", axes, captions, strict=True):
        for number, unit in enumerate(_VISIBLE, start=1):
            _unit(ax, unit, f"$v_{number}$", face=BLUE, edge=BLUE, ink=style.PAPER)
        ax.set(xlim=(-1.25, 1.25), ylim=(-0.95, 1.1), aspect="equal")
        ax.axis("off")
        ax.text(0.0, -0.98, caption, ha="center", va="top", fontsize=8.5)
        ax.text(-1.2, 1.0, letter, fontweight="bold", fontsize=9.5, va="center")
    return figure


@style.house
def cumulants(
    arguments: np.ndarray,
    generating_functions: Mapping[str, np.ndarray],
    *,
    series_arguments: np.ndarray,
    closed_form: np.ndarray,
    partial_sums: Mapping[int, np.ndarray],
    radius: float,
    orders: np.ndarray,
    errors: Mapping[float, np.ndarray],
) -> Figure:
    """K(t) of each prior; partial sums of one cumulant series with its radius; their error against the order.

    ``generating_functions`` maps prior to values on ``arguments`` (nan outside the domain), ``partial_sums`` maps order
    to values on ``series_arguments``, ``errors`` maps an argument t to |partial sum - K(t)| for ``orders``.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.7, width_ratios=(1.25, 1, 1))
    for prior, values in generating_functions.items():
        left.plot(arguments, values, color=PRIOR_COLOURS[prior], linestyle="-", clip_on=True)
    left.set(xlim=(-3, 3), ylim=(-3, 4.5), xlabel="$t$", ylabel="$K(t)$")
    places: dict[str, tuple[tuple[float, float], tuple[float, float], str]] = {
        "constant": ((3, 3), (3, -3), "left"),
        "Bernoulli": ((3, 1.95), (3, -3), "left"),
        "Gaussian": ((3, 4.5), (3, -3), "left"),
        "Poisson": ((1.7, 4.5), (4, 3), "center"),
        "Laplace": ((-1, 4.5), (0, 3), "center"),
        "exponential": ((1, 4.5), (0, 14), "center"),
    }
    for prior in generating_functions:
        point, offset, side = places[prior]
        style.label(left, prior, point, PRIOR_COLOURS[prior], offset, ha=side)

    offsets = ((2, 3), (5, -4), (-1, -11), (-15, 2))
    places_on_curves = (-4.9, -4.0, -4.75, -4.1)
    for colour, (order, values), place, offset in zip(
        FAMILY, partial_sums.items(), places_on_curves, offsets, strict=True
    ):
        middle.plot(series_arguments, values, color=colour, linestyle="-", linewidth=1.2)
        nearest = int(np.argmin(np.abs(series_arguments - place)))
        point = (series_arguments[nearest], float(np.clip(values[nearest], -1.0, 3.2)))
        style.label(middle, str(order), point, colour, offset)
    middle.plot(series_arguments, closed_form, color=style.INK, linestyle="--", linewidth=1.4)
    for edge in (-radius, radius):
        middle.axvline(edge, color=style.GREY, linewidth=0.9, linestyle=":")
    middle.set(xlim=(-5, 5), ylim=(-1.1, 3.8), xticks=(-4, -2, 0, 2, 4), xlabel="$t$", ylabel="$K(t)$, Bernoulli")

    for colour, marker, offset, (argument, values) in zip(
        (BLUE, ORANGE), "os", ((7, 5), (-8, 11)), errors.items(), strict=True
    ):
        right.semilogy(orders, values, color=colour, marker=marker, linestyle="-", markersize=2.8, linewidth=1.0)
        style.label(right, f"$t = {argument:g}$", (orders[12], values[12]), colour, offset)
    right.set(xlabel="terms of the series", ylabel="error of the partial sum")
    style.decades(right.yaxis, 2)
    for letter, ax in zip("abc", (left, middle, right), strict=True):
        style.panel_label(ax, letter)
    return figure


def _strengths(ax: Axes, strengths: Mapping[str, np.ndarray], floor: float) -> None:
    count = max(len(values) for values in strengths.values())
    for rank, (prior, values) in enumerate(strengths.items()):
        n = np.arange(1, len(values) + 1) + 0.07 * (rank - (len(strengths) - 1) / 2)
        real = values > floor
        look = {"color": PRIOR_COLOURS[prior], "marker": PRIOR_MARKERS[prior]}
        ax.semilogy(n[real], values[real], linestyle="-", linewidth=1.1, label=prior, **look)
        ax.semilogy(n[~real], np.full((~real).sum(), floor), linestyle="none", markerfacecolor="none", **look)
    ax.axhline(floor, color=style.FAINT, linewidth=0.8, linestyle="-", zorder=0)
    style.label(ax, "zero to rounding", (count + 0.4, floor), style.GREY, (0, 7), ha="right")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 0.13), handlelength=1.6, labelspacing=0.3)
    ax.set(
        xlim=(0.6, count + 0.5),
        xticks=range(1, count + 1),
        xlabel="order $n$ of the interaction",
        ylabel="root-mean-square $J_S$, $|S| = n$",
    )
    style.decades(ax.yaxis, 2)


@style.house
def orders(strengths: Mapping[str, np.ndarray], *, floor: float) -> Figure:
    """Root-mean-square interaction by order for each prior: panel (a) of ``interactions``, alone."""
    figure, ax = style.subplots(width="column", height=3.0)
    _strengths(ax, strengths, floor)
    return figure


@style.house
def interactions(
    strengths: Mapping[str, np.ndarray],
    *,
    floor: float,
    scales: np.ndarray,
    ratios: Mapping[str, Mapping[int, np.ndarray]],
) -> Figure:
    """Root-mean-square interaction by order for each prior, and how far the n-th cumulant alone fixes it.

    ``strengths`` maps prior to values for orders 1, 2, ...; values under ``floor`` are rounding and are drawn hollow on
    the floor. ``ratios`` maps prior to {order: J_S / (kappa_n prod W)} on ``scales``.
    """
    figure, (left, right) = style.subplots(1, 2, height=3.0, width_ratios=(1.3, 1))
    _strengths(left, strengths, floor)
    right.axhline(1.0, color=style.GREY, linewidth=0.9, linestyle=":")
    for prior, curves in ratios.items():
        for order, values in curves.items():
            line = style.LINE_STYLES[order - 2]
            right.semilogx(scales, values, color=PRIOR_COLOURS[prior], linestyle=line, linewidth=1.4)
            style.label(right, f"{prior}, {order}", (scales[-1], values[-1]), PRIOR_COLOURS[prior], (4, -3))
    style.plain_ticks(right.xaxis, (0.01, 0.1, 1.0))
    right.set(xlabel="scale of the weights", ylabel=r"$J_S \,/\, (\kappa^{(n)} \prod_i W_i)$")
    for letter, ax in zip("ab", (left, right), strict=True):
        style.panel_label(ax, letter)
    return figure


SHADES = np.array([0.0, 0.05, 0.15, 0.35, 0.65, 1.1, 1.7, 2.5, 3.5, 5.0])
"""Borders of the shades of an energy landscape, measured from its minimum; the live model has the same."""


@style.house
def landscape(
    axis: np.ndarray,
    energies: np.ndarray,
    flows: np.ndarray,
    *,
    queries: np.ndarray,
    updates: np.ndarray,
    patterns: np.ndarray,
    betas: Sequence[float],
) -> Figure:
    """Energy contours in the plane, the direction of one step, and exact steps of a few queries, one panel per beta.

    Shapes, with s = len(axis): ``energies`` (panels, s, s) indexed [y, x] and measured from their minimum, ``flows``
    (panels, s, s, 2), ``queries`` (q, 2), ``updates`` (panels, q, 2), ``patterns`` (N, 2).
    """
    figure, axes = style.subplots(1, len(betas), height=2.75, sharex=True, sharey=True, squeeze=False)
    panels = axes[0]
    stride = max(1, len(axis) // 16)
    arrow = {
        "arrowstyle": "-|>,head_width=0.16,head_length=0.32",
        "color": style.INK,
        "linewidth": 1.1,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    for letter, (ax, beta, energy, flow, update) in style.dressed(
        "abcdef", zip(panels, betas, energies, flows, updates, strict=True)
    ):
        style.landscape(ax, axis, axis, energy, SHADES, BLUE)
        length = np.linalg.norm(flow, axis=-1, keepdims=True)
        direction = np.divide(flow, length, out=np.zeros_like(flow), where=length > 0)[::stride, ::stride]
        ax.quiver(
            axis[::stride],
            axis[::stride],
            direction[..., 0],
            direction[..., 1],
            color=style.GREY,
            pivot="mid",
            scale=26,
            width=0.004,
            headwidth=4,
            headlength=4,
            headaxislength=3.5,
        )
        for start, end in zip(queries, update, strict=True):
            ax.annotate("", end, xytext=start, arrowprops=arrow)
        ax.plot(*queries.T, color=style.INK, marker="o", markersize=2.6, linestyle="none")
        style.places(ax, patterns, ORANGE)
        ax.set(xlim=(axis[0], axis[-1]), ylim=(axis[0], axis[-1]), aspect="equal", xlabel="$v_1$")
        style.panel_label(ax, letter)
        ax.set_title(rf"$\beta = {beta:g}$", loc="center")
    panels[0].set_ylabel("$v_2$")
    return figure


@style.house
def recall(
    number: Mapping[str, np.ndarray], noise: Mapping[str, np.ndarray], temperature: Mapping[str, np.ndarray]
) -> Figure:
    """Fraction of queries recalled in one step against patterns stored, noise and beta, with standard errors.

    Each mapping holds ``x``, and for each curve its values under its label and its errors under "LABEL error". In the
    first two, the last curve is the reference.
    """
    figure, axes = style.subplots(1, 3, height=2.7, sharey=True)
    panels = (
        (number, "digits stored $N$", "log", [*FAMILY[1:], style.GREY]),
        (noise, r"noise $\sigma$", "linear", [*FAMILY[1:], style.GREY]),
        (temperature, r"inverse temperature $\beta$", "log", [PURPLE, OCHRE, BROWN]),
    )
    for letter, ax, (curves, name, scale, family) in zip("abc", axes, panels, strict=True):
        labels = [key for key in curves if key != "x" and not key.endswith(" error")]
        for colour, marker, label in style.dressed(family, style.MARKERS, labels):
            reference = colour == style.GREY
            ax.errorbar(
                curves["x"],
                curves[label],
                curves[f"{label} error"],
                color=colour,
                marker="" if reference else marker,
                markersize=3.5,
                linestyle="--" if reference else "-",
                linewidth=1.2,
                elinewidth=0.9,
                label=label,
            )
        ax.set(xscale=scale, xlabel=name, ylim=(-0.04, 1.06))
        style.panel_label(ax, letter)
    axes[0].legend(loc="lower left", handlelength=1.6, labelspacing=0.3)
    axes[2].legend(loc="lower right", handlelength=1.6, labelspacing=0.3)
    axes[2].axvline(0.125, color=style.GREY, linewidth=0.9, linestyle=":")
    style.plain_ticks(axes[0].xaxis, (10, 100, 1000))
    style.plain_ticks(axes[2].xaxis, (0.1, 0.3, 1.0, 4.0))
    axes[0].set_ylabel("fraction recalled in one step")
    return figure
