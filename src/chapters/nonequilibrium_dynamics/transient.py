"""Figures of the language models of spins that were trained with a few updates or at rest.

The results come from ``experiments.comparison.transient_record`` and ``trained_heads``, as plain numbers, so that
drawing needs no library for training. A row keeps its colour and its marker in every figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters import style

__all__ = ["ROWS", "contrasts", "heads", "proxies"]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
ROWS: dict[str, tuple[str, str, str, Any]] = {
    "1": ("one update", BLUE, "o", "-"),
    "2": ("two updates", GREEN, "s", "-."),
    "random": ("one to eight, drawn", PURPLE, "^", ":"),
    "inf": ("at rest", ORANGE, "D", "--"),
    "inf, values in the field": ("at rest, values in the field", OCHRE, "v", (0, (5, 1, 1, 1, 1, 1))),
}
"""Of each row that was trained: its name in words, its colour, its mark and its line."""
DECISIONS = {"yes": (GREEN, "o"), "no": (ORANGE, "X"), "undecided": (style.GREY, "s")}


def _plain_logarithmic(axis: Axis) -> None:
    """Ordinary numbers at 1, 2 and 5 of every decade, wherever the data lie."""
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    axis.set_major_formatter(ticker.FuncFormatter(style.ordinary))
    axis.set_minor_locator(ticker.NullLocator())


@style.house
def contrasts(
    answers: Sequence[Any], by_seed: Mapping[str, Sequence[float]], *, margin: float, unit: str = "nats per character"
) -> Figure:
    """Every contrast of the questions: its mean with its interval, the seeds as small marks, and the margin.

    ``answers`` are those of ``transient_questions.answers``; ``by_seed`` maps the name of a contrast to differences.
    The colour and the mark show the decision.
    """
    rows = [(answer.question.name, finding) for answer in answers for finding in answer.findings]
    figure, ax = style.subplots(1, 1, height=0.5 * len(rows) + 1.2)
    ax.axvline(0, color=style.GREY, linewidth=0.9)
    ax.axvline(margin, color=style.INK, linestyle=":", linewidth=1.2)
    for k, (_, finding) in enumerate(rows):
        y, d = len(rows) - 1 - k, finding.difference
        colour, marker = DECISIONS[finding.decision]
        seeds = by_seed[finding.contrast.name]
        ax.plot(seeds, np.full(len(seeds), y - 0.22), color=style.GREY, marker="|", markersize=6, linestyle="none")
        ax.plot([d.low, d.high], [y, y], color=colour, linestyle="-", linewidth=1.6)
        ax.plot([d.mean], [y], color=colour, marker=marker, markersize=5.5, linestyle="none")
    names = [f"{finding.contrast.name}\n({question})" for question, finding in reversed(rows)]
    ax.set_yticks(range(len(rows)), names, fontsize=8)
    ax.set(ylim=(-0.6, len(rows) - 0.4), xlabel=f"difference ({unit})")
    present = [name for name in DECISIONS if any(finding.decision == name for _, finding in rows)]
    keys = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=name)
        for name, (colour, marker) in DECISIONS.items()
        if name in present
    ]
    margins = Line2D([], [], color=style.INK, linestyle=":", label="margin")
    figure.legend(handles=[*keys, margins], loc="outside lower center", ncols=4, handletextpad=0.4)
    return figure


@style.house
def proxies(updates: np.ndarray, mismatch: Mapping[str, np.ndarray], production: Mapping[str, np.ndarray]) -> Figure:
    """Layers along training: mismatch after one update, and the irreversibility at rest.

    ``updates`` (looks,) are those of the weights; both others map a row to (looks, layers) in nats. Bands hold all
    layers, lines are their mean.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9)
    for ax, found in ((left, mismatch), (right, production)):
        for row, values in found.items():
            words, colour, _, line = ROWS[row]
            style.band(ax, updates, values, colour, linestyle=line, label=words)
        ax.set(xlabel="updates of the weights", yscale="log")
        _plain_logarithmic(ax.yaxis)
    left.set_ylabel("mismatch after one update (nats)")
    right.set_ylabel(r"proxy $\sigma$ at rest (nats)")
    left.legend(loc="best", title="trained with")
    style.letters(left, right)
    return figure


@style.house
def heads(points: Mapping[str, Mapping[str, np.ndarray]], *, small: float) -> Figure:
    """Heads of trained layers on the map of errors: correlations against their prediction, then both errors.

    ``points`` maps a row to ``predicted``, ``delayed`` and ``sigma``, each (layers, heads): the predicted and measured
    relative error of delayed correlations, and the measured one of the entropy production. Open marks are the first
    layer; the dotted line is at ``small``.
    """
    figure, (left, right) = style.subplots(1, 2, height=3.1)
    everything = np.concatenate([np.ravel(f[name]) for f in points.values() for name in ("predicted", "delayed")])
    seen = everything[np.isfinite(everything) & (everything > 0)]
    low, high = 0.8 * seen.min(), 1.25 * seen.max()
    left.plot([low, high], [low, high], color=style.GREY, linestyle="-", linewidth=0.9)
    for row, found in points.items():
        words, colour, marker, _ = ROWS[row]
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.2, "linestyle": "none"}
        for layers, fill in ((slice(0, 1), "none"), (slice(1, None), "full")):
            delayed = np.ravel(found["delayed"][layers])
            label = words if fill == "full" else None
            left.plot(np.ravel(found["predicted"][layers]), delayed, fillstyle=fill, label=label, **look)
            right.plot(delayed, np.abs(np.ravel(found["sigma"][layers])), fillstyle=fill, **look)
    left.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), xlabel="error of $D$, predicted")
    left.set_ylabel("error of $D$, measured")
    right.axhline(small, color=style.INK, linestyle=":", linewidth=1.0)
    right.set(xscale="log", yscale="log", xlim=(low, high), xlabel="error of $D$, measured")
    right.set_ylabel(r"error of $\sigma$, measured")
    for axis in (left.xaxis, left.yaxis, right.xaxis, right.yaxis):
        _plain_logarithmic(axis)
    left.legend(loc="lower right", title="trained with", handlelength=1.0)
    style.letters(left, right)
    return figure
