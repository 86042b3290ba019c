"""The figures of the chapter ``nonequilibrium-dynamics``: results in, a figure of matplotlib out. Computes nothing.

Magnetizations are blue, where they will come to rest orange, fields green. Draws of modules are shown as a band from
the least to the largest. Each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from chapters import scripts, style

__all__ = [
    "branches",
    "distances",
    "large_d",
    "live",
    "live_markup",
    "memory",
    "quench",
    "starts",
    "through_layers",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
FAMILY = (PURPLE, BLUE, GREEN, OCHRE, ORANGE, BROWN)
LIVE_PLACES = ((0.0, 0.0), (2.4, 0.0), (4.8, 0.0), (7.2, 0.0))
"""Where the four tokens of the live model stand."""


def _logarithmic(ax: Axes) -> None:
    ax.set_yscale("log")
    ax.yaxis.set_minor_locator(ticker.NullLocator())


@style.house
def live(fields: np.ndarray, path: np.ndarray, rest: np.ndarray, mismatch: np.ndarray, *, shown: int) -> Figure:
    """The still version of the live model: four tokens after ``shown`` updates, and their mismatch after each.

    ``fields`` (4, 2), ``path`` (updates + 1, 4, 2) and ``rest`` (4, 2) are over the radius; ``mismatch`` (updates + 1,)
    is in nats.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.6, width_ratios=(2.2, 1))
    for i, (x, y) in enumerate(LIVE_PLACES):
        left.add_patch(Circle((x, y), 1.0, facecolor="none", edgecolor=style.GREY, linewidth=0.9))
        for vector, colour, width in ((fields[i], GREEN, 1.2), (rest[i], ORANGE, 1.6), (path[shown, i], BLUE, 2.4)):
            style.arrow(left, (x, y), (x + vector[0], y + vector[1]), colour, width=width, size=7.0)
        left.text(x, y - 1.35, f"token {i + 1}", ha="center", va="top", fontsize=8.5, color=style.GREY)
    left.set(xlim=(-1.2, 8.9), ylim=(-1.9, 1.6), aspect="equal")
    left.axis("off")
    updates = np.arange(len(mismatch))
    right.plot(updates, mismatch, color=BLUE, linestyle="-", marker="o", markersize=3.5)
    right.plot(shown, mismatch[shown], color=ORANGE, linestyle="none", marker="o", markersize=7)
    _logarithmic(right)
    right.set(xlabel="updates $K$", ylabel="mismatch (nats)")
    right.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    style.letters(left, right)
    return figure


def live_markup(
    fields: np.ndarray,
    *,
    scores: np.ndarray,
    values: np.ndarray,
    sharpness: float,
    beta: float,
    radius: float,
    updates: int,
) -> str:
    """The numbers of the live model and the scripts that draw it, as markup for the page.

    ``fields`` (4, 2) are the first inputs, over the radius; ``scores`` (2, 2) the matrix A of the causal couplings
    softmax(sharpness u A u^T) of their directions u, ``values`` (2, 2) the map of directions to where the spins start.
    It begins after ``updates`` updates. The scripts are ``book/_static/live/kernel.js`` and
    ``nonequilibrium-dynamics.js`` beside it; where they are missing, nothing of this is seen.
    """
    content = {
        "fields": np.asarray(fields, dtype=float).tolist(),
        "scores": np.asarray(scores, dtype=float).tolist(),
        "values": np.asarray(values, dtype=float).tolist(),
        "sharpness": float(sharpness),
        "beta": float(beta),
        "radius": float(radius),
        "updates": int(updates),
        "places": [list(place) for place in LIVE_PLACES],
    }
    return scripts.markup("nonequilibrium-dynamics", content)


@style.house
def distances(curves: Mapping[str, np.ndarray], *, left_after_four: np.ndarray, betas: np.ndarray) -> Figure:
    """Distance from rest against updates at several temperatures, and what four updates leave against beta.

    ``curves`` maps a label to (updates + 1, modules), over the length of the state of rest; ``left_after_four`` (betas,
    modules) is over the distance at the start. The dotted line is (beta / 2)^4, the most that a contraction leaves.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9)
    for colour, line, (label, values) in style.dressed(FAMILY, style.LINE_STYLES, curves.items()):
        style.band(left, np.arange(len(values)), values, colour, linestyle=line, label=label)
    _logarithmic(left)
    left.set(xlabel="updates $K$", ylabel=r"$|m(K) - m^\star| \,/\, |m^\star|$")
    left.xaxis.set_major_locator(ticker.MultipleLocator(2))
    left.legend(loc="lower left")
    style.band(right, betas, left_after_four, BLUE, linestyle="-", marker="o", label="modules as drawn")
    contracting = betas[betas <= 2]
    right.plot(contracting, (contracting / 2) ** 4, color=style.GREY, linestyle=":", label=r"bound $(\beta/2)^4$")
    right.set(xscale="log", xlabel=r"inverse temperature $\beta$", ylabel="left by four updates")
    _logarithmic(right)
    style.plain_ticks(right.xaxis, [float(b) for b in betas])
    right.legend(loc="lower right")
    style.letters(left, right)
    return figure


@style.house
def memory(updates: np.ndarray, gradients: Mapping[str, np.ndarray]) -> Figure:
    """What gradients of weights are after each number of updates, over those after one.

    ``gradients`` maps a label to (updates, modules).
    """
    figure, ax = style.subplots(1, 1, width="column", height=2.8)
    for colour, line, marker, (label, values) in style.dressed(
        FAMILY, style.LINE_STYLES, style.MARKERS, gradients.items()
    ):
        style.band(ax, updates, values, colour, linestyle=line, marker=marker, label=label)
    _logarithmic(ax)
    ax.set(xlabel="updates $K$", ylabel="gradient, over that at $K=1$")
    ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    ax.legend(loc="lower left")
    return figure


@style.house
def quench(mismatch: np.ndarray, production: np.ndarray, *, steady: np.ndarray) -> Figure:
    """Mismatch and proxy of the entropy production after the inputs changed, against updates.

    ``mismatch`` and ``production`` are (updates, modules) in nats; ``steady`` (modules,) is the production at rest.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.7)
    updates = np.arange(1, len(mismatch) + 1)
    style.band(left, updates, mismatch, BLUE, linestyle="-")
    _logarithmic(left)
    left.set(xlabel="updates after the change", ylabel=r"mismatch $\Delta$ (nats)")
    style.band(right, updates, production, ORANGE, linestyle="-", label="along the path")
    right.axhline(float(steady.mean()), color=style.INK, linestyle=":", linewidth=1.0, label="at rest")
    right.set(xlabel="updates after the change", ylabel=r"proxy $\sigma$ (nats)", ylim=(0, None))
    right.legend(loc="lower right")
    for ax in (left, right):
        ax.xaxis.set_major_locator(ticker.MultipleLocator(2))
    style.letters(left, right)
    return figure


@style.house
def starts(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> Figure:
    """Distance from rest of several starts, and after one update from each: (modules,) for each label."""
    figure, (left, right) = style.subplots(1, 2, height=2.3, sharey=True)
    for ax, found, colour, marker in ((left, before, style.GREY, "s"), (right, after, BLUE, "o")):
        for row, values in enumerate(found.values()):
            ax.plot(
                values, np.full(len(values), -row), color=colour, marker=marker, markersize=4, linestyle="none",
                markerfacecolor="none",
            )  # fmt: skip
            ax.plot([values.mean()] * 2, [-row - 0.28, -row + 0.28], color=style.INK, linestyle="-")
        ax.set(xlim=(0, None), ylim=(-len(found) + 0.4, 0.6))
        ax.set_yticks([-row for row in range(len(found))], list(found))
    left.set_xlabel("distance of the start")
    right.set_xlabel("distance after one update")
    style.letters(left, right)
    return figure


@style.house
def through_layers(lengths: Mapping[str, np.ndarray]) -> Figure:
    """Length of the outputs over the radius against layers, (layers + 1, draws) for each way of handing them on."""
    figure, ax = style.subplots(1, 1, width="column", height=2.7)
    for colour, line, (label, values) in style.dressed((BLUE, ORANGE, GREEN), ("-", "--", "-."), lengths.items()):
        style.band(ax, np.arange(len(values)), values, colour, linestyle=line, label=label)
    _logarithmic(ax)
    ax.set(xlabel="layers", ylabel="$|m| / R$")
    ax.legend(loc="lower left")
    return figure


@style.house
def large_d(dims: np.ndarray, errors: Mapping[str, np.ndarray]) -> Figure:
    """Relative error of the large-D forms against the exact ones, (dims,) for each label."""
    figure, ax = style.subplots(1, 1, width="column", height=2.8)
    for colour, line, marker, (label, values) in style.dressed(
        (BLUE, ORANGE, GREEN, style.GREY), style.LINE_STYLES, style.MARKERS, errors.items()
    ):
        ax.loglog(dims, values, color=colour, linestyle=line, marker=marker, label=label)
    ax.set(xlabel="components $D$", ylabel="relative error")
    style.plain_ticks(ax.xaxis, [float(d) for d in dims])
    style.decades(ax.yaxis)
    ax.legend(loc="lower left")
    return figure


@style.house
def branches(betas: np.ndarray, strengths: np.ndarray, shares: Mapping[str, np.ndarray], border: np.ndarray) -> Figure:
    """Share of draws with two states, (strengths, betas), by kind of attention, and the border for even attention."""
    figure, axes = style.subplots(1, len(shares), height=2.9, sharey=True)
    for ax, values in zip(axes, shares.values(), strict=True):
        picture = ax.pcolormesh(betas, strengths, values, vmin=0, vmax=1, cmap=style.SEQUENTIAL, rasterized=True)
        ax.plot(betas, border, color=ORANGE, linestyle="--")
        ax.set(xlabel=r"inverse temperature $\beta$", ylim=(strengths[0], strengths[-1]))
    axes[0].set_ylabel("length of opposed inputs / $R$")
    style.letters(*axes)
    figure.colorbar(picture, ax=list(axes), label="share of draws with two states")
    return figure
