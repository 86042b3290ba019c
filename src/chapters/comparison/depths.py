"""The figures of the comparison of stacks: each function draws answers or stacks and returns the figure.

Answers come from ``experiments.comparison.questions`` and stacks from ``by_depth``. Those modules need more libraries
than the figures do. A decision and a depth keep their colour and marker everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters import style

__all__ = ["answers", "by_heart", "physics", "scores"]

BLUE, ORANGE, GREEN, *_ = style.QUALITATIVE
DECISIONS = {"yes": (GREEN, "o"), "no": (ORANGE, "X"), "undecided": (style.GREY, "s")}
DEPTHS = {1: (BLUE, "o"), 2: (GREEN, "s"), 4: (ORANGE, "D")}
LABELS = {"accuracy": "accuracy on the test set", "loss": "loss on the test set (nats)"}
UNITS = {"accuracy": ("percentage points", 100.0), "loss": ("nats", 1.0)}


def _key(names: Sequence[str], looks: Mapping[str, tuple[str, str]]) -> list[Line2D]:
    return [Line2D([], [], color=looks[name][0], marker=looks[name][1], linestyle="none", label=name) for name in names]


def _interval(ax: Axes, finding: Any, y: float, scale: float) -> None:
    """Mean and interval of a difference, with the marker of what was decided."""
    d, (colour, marker) = finding.difference, DECISIONS[finding.decision]
    ax.plot([scale * d.low, scale * d.high], [y, y], color=colour, linewidth=1.4, linestyle="-")
    ax.plot([scale * d.mean], [y], color=colour, marker=marker, linestyle="none")


@style.house
def by_heart(courses: Mapping[str, Sequence[tuple[Sequence[int], Sequence[float]]]], counting: float) -> Figure:
    """Losses in nats over updates: a colour for each kind of training, a line for each seed, and that of counting."""
    figure, ax = style.subplots(1, 1, width="column")
    for (name, lines), (colour, marker), stroke in zip(
        courses.items(), DEPTHS.values(), ("-", "-.", ":"), strict=False
    ):
        for k, (updates, losses) in enumerate(lines):
            ax.plot(updates, losses, color=colour, label=name if k == 0 else None, linewidth=1.4, linestyle=stroke)
            ax.plot(updates[-1], losses[-1], color=colour, marker=marker)
    ax.axhline(counting, color=style.GREY, linestyle="--", label="counting")
    ax.set(xlabel="updates", ylabel="nats per character", ylim=(0, 4.3))
    figure.legend(loc="outside lower center", ncols=2)
    return figure


@style.house
def answers(given: Sequence[Any], margins: Mapping[str, tuple[str, float]]) -> Figure:
    """Each contrast of the primary questions: its mean and interval of 90 % against the margins, one panel for a task.

    The marker says what was decided. More is a larger disadvantage of the row. ``margins``: endpoint and margin of each
    task.
    """
    tasks = list(dict.fromkeys(answer.task for answer in given))
    rows = list(dict.fromkeys((a.question.name, f.contrast.row) for a in given for f in a.findings))
    figure, axes = style.subplots(
        1, max(len(tasks), 1), height=0.32 * len(rows) + 1.3, sharey=True, squeeze=False, width="page"
    )
    places = {row: len(rows) - 1 - k for k, row in enumerate(rows)}
    for letter, ax, task in style.dressed("ab", axes[0], tasks):
        endpoint, margin = margins[task]
        unit, scale = UNITS[endpoint]
        ax.axvspan(-scale * margin, scale * margin, color=style.FAINT, alpha=0.6, linewidth=0)
        ax.axvline(0, color=style.GREY, linewidth=1.0)
        for answer in (a for a in given if a.task == task):
            for finding in answer.findings:
                _interval(ax, finding, places[answer.question.name, finding.contrast.row], scale)
        ax.set_yticks(list(places.values()), [f"{row.split(',')[0]} ({name})" for name, row in places])
        ax.set(ylim=(-0.7, len(rows) - 0.3), xlabel=f"disadvantage ({unit})")
        ax.set_title(task, loc="center")
        if len(tasks) > 1:
            style.panel_label(ax, letter)
    present = [name for name in DECISIONS if any(f.decision == name for a in given for f in a.findings)]
    figure.legend(handles=_key(present, DECISIONS), loc="outside lower center", ncols=3, handletextpad=0.3)
    return figure


@style.house
def scores(
    stacks: Sequence[Any], guesses: Mapping[str, tuple[str, float]], simplest: Mapping[str, float] | None = None
) -> Figure:
    """The score of each row at each depth with its interval, a panel for each task; a failed run counts as a guess.

    Where runs failed the marker is hollow and has no interval, which would be that of two kinds of runs.

    ``guesses``: endpoint of each task that is shown, and the score of guessing, a dashed line where it is in sight.
    ``simplest``: the score of the simplest method on a task, a dotted line.
    """
    tasks = list(guesses)
    shown = [stack for stack in stacks if stack.task in tasks]
    names = list(dict.fromkeys(stack.row for stack in shown))
    figure, axes = style.subplots(
        1, len(tasks), height=0.3 * len(names) + 1.2, sharey=True, squeeze=False, width="page"
    )
    places = {name: len(names) - 1 - k for k, name in enumerate(names)}
    depths = sorted({stack.depth for stack in shown})
    shift = {depth: 0.2 * ((len(depths) - 1) / 2 - k) for k, depth in enumerate(depths)}
    for letter, ax, task in style.dressed("abc", axes[0], tasks):
        for stack in (s for s in shown if s.task == task):
            colour, marker = DEPTHS[stack.depth]
            error = [0 if np.isnan(stack.half_width) or stack.failed else stack.half_width]
            y = [places[stack.row] + shift[stack.depth]]
            inside = style.PAPER if stack.failed else colour
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4, "markerfacecolor": inside}
            ax.errorbar([stack.score], y, xerr=error, linestyle="none", **look)
        endpoint, guess = guesses[task]
        low, high = ax.get_xlim()
        # Far away from all rows it would only press them together.
        if low <= guess <= high:
            ax.axvline(guess, color=style.GREY, linestyle="--", linewidth=1.0)
        if simplest is not None and task in simplest:
            ax.axvline(simplest[task], color=style.GREY, linestyle=":", linewidth=1.4)
        ax.set_yticks(list(places.values()), list(places))
        ax.set(ylim=(-0.7, len(names) - 0.3), xlabel=LABELS[endpoint])
        ax.set_title(task, loc="center")
        if len(tasks) > 1:
            style.panel_label(ax, letter)
    looks = {f"depth {depth}": look for depth, look in DEPTHS.items()}
    figure.legend(handles=_key([f"depth {depth}" for depth in depths], looks), loc="outside lower center", ncols=3)
    return figure


@style.house
def physics(stacks: Sequence[Any], task: str) -> Figure:
    """Time of an update, contraction factor and entropy production of the rows of spins against depth.

    Time is in units of the vanilla stack of the same depth; the other two are means over layers, dashed before and
    solid after training.
    """
    fields = ("contraction", "production")
    shown = [s for s in stacks if s.task == task and np.isfinite([v for f in fields for v in getattr(s, f)]).any()]
    names = list(dict.fromkeys(stack.row for stack in shown))
    figure, axes = style.subplots(1, 3, height=2.6 + 0.2 * len(names), width="page")
    labels = ("time of an update (ratio)", "contraction factor", "entropy production\nper site (nats)")
    looks = {name: (colour, marker) for colour, marker, name in style.dressed(style.QUALITATIVE, style.MARKERS, names)}
    for letter, ax, field, label in zip("abc", axes, ("time_ratio", *fields), labels, strict=True):
        for name in names:
            mine = sorted((s for s in shown if s.row == name), key=lambda s: s.depth)
            x, values = [s.depth for s in mine], [getattr(s, field) for s in mine]
            colour, marker = looks[name]
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4}
            if field == "time_ratio":
                ax.plot(x, values, linestyle="-", **look)
                continue
            ax.plot(x, [v[0] for v in values], linestyle="--", markerfacecolor=style.PAPER, **look)
            ax.plot(x, [v[1] for v in values], linestyle="-", **look)
        ax.set_xscale("log", base=2)
        style.plain_ticks(ax.xaxis, sorted({s.depth for s in shown}))
        ax.set(xlabel="depth", ylabel=label, ylim=(0, None))
        style.panel_label(ax, letter)
    axes[1].axhline(1, color=style.GREY, linestyle=":", linewidth=1.0)
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="-", label=name)
        for name, (colour, marker) in looks.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure
