"""The figures of the comparison of modules: each function draws summaries and returns the figure.

A module keeps its row and a family its colour and marker in every figure. Where both tasks share a panel, digits are
filled and recall is open.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters import style
from experiments.comparison.summary import Summary

__all__ = ["cost", "diagnostics", "whole_block"]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
FAMILIES = {
    "transformer": (style.INK, "o"),
    "spin transformer": (BLUE, "s"),
    "parallel block": (GREEN, "^"),
    "deep implicit": (ORANGE, "D"),
    "free energy": (PURPLE, "v"),
    "other mixers": (OCHRE, "P"),
    "ablations": (BROWN, "X"),
}
RATIOS = (0.5, 1, 2, 5, 10, 20, 50)
TASKS = {"digits": "digits", "recall": "associative recall"}


def _names(summaries: Sequence[Summary]) -> list[str]:
    return list(dict.fromkeys(s.module for s in summaries))


def _rows(ax: Axes, names: Sequence[str], labels: bool = True) -> dict[str, int]:
    places = {name: len(names) - 1 - k for k, name in enumerate(names)}
    ax.set_yticks(list(places.values()), list(places) if labels else [""] * len(places))
    ax.set_ylim(-0.7, len(names) - 0.3)
    ax.tick_params(axis="y", length=0)
    for y in places.values():
        ax.axhline(y, color=style.FAINT, linewidth=0.5, zorder=0)
    return places


def _legend(figure: Figure, handles: Sequence[Line2D], columns: int) -> None:
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns, handletextpad=0.3)


def _family_handles(summaries: Sequence[Summary]) -> list[Line2D]:
    present = dict.fromkeys(s.family for s in summaries)
    return [
        Line2D([], [], color=FAMILIES[family][0], marker=FAMILIES[family][1], linestyle="none", label=family)
        for family in present
    ]


def _task_handles() -> list[Line2D]:
    return [
        Line2D([], [], color=BLUE, marker="s", linestyle="none", label=TASKS["digits"]),
        Line2D([], [], color=ORANGE, marker="o", linestyle="none", markerfacecolor=style.PAPER, label=TASKS["recall"]),
    ]


@style.house
def cost(summaries: Sequence[Summary]) -> Figure:
    """Time and memory of an update in units of the vanilla block's, and accuracy against time for each task."""
    names = _names(summaries)
    figure = style.subplots(1, 1, height=0.23 * len(names) + 1.6)[0]
    figure.clear()
    grid = figure.add_gridspec(2, 3, width_ratios=(1, 1, 1.15))
    filled = {"digits": True, "recall": False}
    for letter, column, field, label in (("a", 0, "time_ratio", "time"), ("b", 1, "memory_ratio", "memory")):
        ax = figure.add_subplot(grid[:, column])
        places = _rows(ax, names, labels=column == 0)
        for s in summaries:
            colour, marker = FAMILIES[s.family]
            face = colour if filled[s.task] else style.PAPER
            y = places[s.module] + (0.13 if filled[s.task] else -0.13)
            ax.plot([getattr(s, field)], [y], color=colour, marker=marker, markerfacecolor=face, linestyle="none")
        ax.axvline(1, color=style.GREY, linestyle="--", linewidth=1.0)
        ax.set_xscale("log")
        style.plain_ticks(ax.xaxis, RATIOS)
        ax.set_xlabel(f"{label} of an\nupdate (ratio)")
        style.panel_label(ax, letter)
    for letter, row, task in (("c", 0, "digits"), ("d", 1, "recall")):
        ax = figure.add_subplot(grid[row, 2])
        for s in (s for s in summaries if s.task == task and s.accuracies.size):
            colour, marker = FAMILIES[s.family]
            face = colour if filled[task] else style.PAPER
            ax.plot([s.time_ratio], [s.accuracy], color=colour, marker=marker, markerfacecolor=face, linestyle="none")
        ax.set_xscale("log")
        style.plain_ticks(ax.xaxis, RATIOS)
        ax.set(xlabel="time of an update (ratio)", ylabel="accuracy", ylim=(0, 1.06))
        ax.set_title(TASKS[task], loc="center")
        style.panel_label(ax, letter)
    _legend(figure, _family_handles(summaries), 4)
    return figure


@style.house
def diagnostics(summaries: Sequence[Summary]) -> Figure:
    """Solver updates, contraction factor and entropy production of the modules of spins, from before to after.

    A line joins the two values; the marker, filled for digits and open for recall, is at the trained module.
    """
    fields = ("steps", "contraction", "production")
    shown = [s for s in summaries if np.isfinite([v for field in fields for v in getattr(s, field)]).any()]
    names = _names(shown)
    figure, axes = style.subplots(1, 3, height=0.3 * len(names) + 1.2, sharey=True)
    labels = ("updates of\nthe solver", "contraction\nfactor", "entropy production\nper site (nats)")
    for letter, ax, field, label in zip("abc", axes, fields, labels, strict=True):
        places = _rows(ax, names)
        for s in shown:
            pair, is_digits = getattr(s, field), s.task == "digits"
            y = places[s.module] + (0.17 if is_digits else -0.17)
            colour = BLUE if is_digits else ORANGE
            ax.plot(pair, [y, y], color=colour, linewidth=1.2, linestyle="-")
            face = colour if is_digits else style.PAPER
            marker = "s" if is_digits else "o"
            ax.plot([pair[1]], [y], color=colour, marker=marker, markerfacecolor=face, linestyle="none")
        ax.set_xlabel(label)
        style.panel_label(ax, letter)
    axes[0].set_xscale("log")
    style.plain_ticks(axes[0].xaxis, (1, 2, 5, 10, 20, 50, 100))
    axes[1].set_xlim(left=0)
    axes[1].axvline(1, color=style.GREY, linestyle="--", linewidth=1.0)
    axes[2].set_xscale("symlog", linthresh=0.1)
    axes[2].xaxis.set_major_formatter(ticker.FuncFormatter(style.ordinary))
    axes[2].set_xlim(left=-0.02)
    _legend(figure, _task_handles(), 2)
    return figure


@style.house
def whole_block(summaries: Sequence[Summary], modules: Sequence[str]) -> Figure:
    """Accuracy of the vanilla block and of what is left of it, by part taken out: means with standard errors."""
    figure, ax = style.subplots(1, 1, width="column", height=0.3 * len(modules) + 1.2)
    places = _rows(ax, modules)
    for s in (s for s in summaries if s.module in modules):
        is_digits = s.task == "digits"
        colour = BLUE if is_digits else ORANGE
        ax.errorbar(
            [s.accuracy],
            [places[s.module] + (0.15 if is_digits else -0.15)],
            xerr=[0 if np.isnan(s.standard_error) else s.standard_error],
            color=colour,
            marker="s" if is_digits else "o",
            markerfacecolor=colour if is_digits else style.PAPER,
            linestyle="none",
        )
    ax.set(xlim=(0, 1.04), xlabel="accuracy on the test set")
    _legend(figure, _task_handles(), 2)
    return figure
