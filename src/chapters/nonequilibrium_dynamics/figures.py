"""The figures of the chapter ``nonequilibrium-dynamics``: each function draws given results.

Magnetizations are blue, where they will come to rest orange, fields green. Draws of modules are shown as a band from
the least to the largest. Each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters import style

__all__ = [
    "branches",
    "large_d",
    "quench",
    "starts",
    "through_layers",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
FAMILY = (PURPLE, BLUE, GREEN, OCHRE, ORANGE, BROWN)


def _logarithmic(ax: Axes) -> None:
    ax.set_yscale("log")
    ax.yaxis.set_minor_locator(ticker.NullLocator())


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
