"""Figures of the calibration in the chapter ``nonequilibrium-dynamics``: errors on a map, predictions, noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapters import style

__all__ = ["error_map", "noise", "prediction"]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
COLOURS = (PURPLE, BLUE, GREEN, OCHRE, ORANGE, BROWN, style.GREY)
MARKERS = ("D", "o", "^", "v", "s", "P", "X")
SPAN = (0.003, 1.0)
"""Relative errors between which the colours of the map run."""


def _per_cent(error: float) -> str:
    """Two digits, as short as fits into a cell."""
    if not np.isfinite(error):
        return "–"
    per_cent = 100 * error
    return "<.1" if per_cent < 0.1 else f"{per_cent:.0f}" if per_cent >= 10 else f"{per_cent:.2g}"


@style.house
def error_map(
    errors: Mapping[str, Mapping[int, np.ndarray]],
    doubtful: Mapping[int, np.ndarray],
    *,
    drives: Sequence[float],
    betas: Sequence[float],
) -> Figure:
    """Relative errors in per cent over drive and inverse temperature: a row for each quantity, a column for each D.

    ``errors`` maps a quantity and a number of components to (betas, drives), NaN without a value; ``doubtful`` maps
    a number of components to the cells, of the same shape, that are hatched.
    """
    columns = list(next(iter(errors.values())))
    figure, axes = style.subplots(
        len(errors), len(columns), height=1.75 * len(errors) + 0.4, sharex=True, sharey=True, squeeze=False
    )
    norm = LogNorm(*SPAN)
    for place, (row, (quantity, by_dim)) in enumerate(zip(axes, errors.items(), strict=True)):
        for ax, dim in zip(row, columns, strict=True):
            values = np.abs(by_dim[dim])
            ax.pcolormesh(np.clip(values, *SPAN), norm=norm, cmap=style.SEQUENTIAL, rasterized=True)
            for k, j in np.argwhere(doubtful[dim]):
                look: dict[str, Any] = {"fill": False, "hatch": "////", "edgecolor": style.GREY, "linewidth": 0}
                ax.add_patch(Rectangle((j, k), 1, 1, **look))
            for (k, j), value in np.ndenumerate(values):
                light = np.isfinite(value) and value < np.sqrt(SPAN[0] * SPAN[1])
                text = _per_cent(value)
                colour = style.PAPER if light else style.INK
                ax.text(j + 0.5, k + 0.5, text, ha="center", va="center", fontsize=6.5, color=colour)
            ax.set_xticks(np.arange(len(drives)) + 0.5, [f"{u:g}" for u in drives])
            ax.set_yticks(np.arange(len(betas)) + 0.5, [f"{beta:g}" for beta in betas])
            ax.tick_params(length=0)
            if place == 0:
                ax.set_title(f"$D = {dim}$", loc="center", fontsize=8.5)
            if place == len(axes) - 1:
                ax.set_xlabel(r"drive $u$")
        row[0].set_ylabel(f"{quantity}\n" + r"$\beta$")
    return figure


@style.house
def prediction(
    panels: Mapping[str, tuple[np.ndarray, np.ndarray]],
    errors: Mapping[str, np.ndarray],
    labels: Mapping[str, np.ndarray],
) -> Figure:
    """Measured against predicted, one panel for each title, on logarithmic axes with the diagonal.

    ``panels`` maps a title to what was predicted and what was measured (points,), ``errors`` to standard errors and
    ``labels`` to the name of each point's setting, which has a colour and a mark.
    """
    figure, axes = style.subplots(1, len(panels), height=3.1, squeeze=False)
    for ax, (title, (x, y)) in zip(axes[0], panels.items(), strict=True):
        low, high = 0.8 * np.nanmin([x, y]), 1.25 * np.nanmax([x, y])
        ax.plot([low, high], [low, high], color=style.GREY, linewidth=0.9)
        names = list(dict.fromkeys(labels[title].tolist()))
        for colour, marker, name in style.dressed(COLOURS, MARKERS, names):
            of = labels[title] == name
            look = {"color": colour, "marker": marker, "markersize": 3.8, "linestyle": "none", "linewidth": 0.8}
            ax.errorbar(x[of], y[of], errors[title][of], label=name, **look)
        ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal", xlabel="predicted")
        ticks = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
        style.plain_ticks(ax.xaxis, ticks)
        style.plain_ticks(ax.yaxis, ticks)
        ax.set_title(title, loc="center", fontsize=8.5)
        ax.legend(loc="upper left", handlelength=1.0, labelspacing=0.3, fontsize=7)
    axes[0][0].set_ylabel("measured")
    style.letters(*axes[0])
    return figure


@style.house
def noise(rows: Mapping[str, tuple[np.ndarray, np.ndarray]], guess: Mapping[str, np.ndarray]) -> Figure:
    """Reduction of the scatter from spins to conditional means: measured against predicted, for every row of couplings.

    ``rows`` maps a place to predicted and measured gains (N,), ``guess`` maps it to those of a simpler formula, which
    are drawn open.
    """
    figure, ax = style.subplots(1, 1, width="column", height=3.2)
    everything = np.concatenate([*(np.concatenate(pair) for pair in rows.values()), *guess.values()])
    low, high = 0.85 * everything.min(), 1.15 * everything.max()
    ax.plot([low, high], [low, high], color=style.GREY, linewidth=0.9)
    for colour, marker, (name, (predicted, measured)) in style.dressed(COLOURS, MARKERS, rows.items()):
        look = {"color": colour, "marker": marker, "markersize": 3.6, "linestyle": "none"}
        ax.plot(guess[name], measured, fillstyle="none", alpha=0.6, **look)
        ax.plot(predicted, measured, label=name, **look)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), xlabel="predicted gain")
    ax.set_ylabel("measured gain")
    for axis in (ax.xaxis, ax.yaxis):
        style.plain_ticks(axis, (2, 3, 5, 10, 20, 30, 50))
    ax.legend(loc="lower right", handlelength=1.0, labelspacing=0.3)
    return figure
