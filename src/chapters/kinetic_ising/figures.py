"""The figures of the chapter ``kinetic-ising``: each function draws given results and returns the figure.

Naive mean field is orange and dashed, TAP blue and solid, the truth (sampled or enumerated) in ink with error bars,
wherever they meet. Each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from chapters import style

__all__ = [
    "error_law",
    "expansion",
    "limits",
    "samples",
    "schematic",
    "starts",
    "trajectories",
    "transition",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
METHOD_COLOURS = {"naive": ORANGE, "TAP": BLUE}
METHOD_LINES = {"naive": "--", "TAP": "-"}
METHOD_MARKERS = {"naive": "s", "TAP": "o"}
FAMILY = [PURPLE, GREEN, OCHRE]
FAMILY_MARKERS = ["D", "^", "v"]
"""Colours and marks of three temperatures or three sizes."""


def _truth(ax: Axes, x: np.ndarray, mean: np.ndarray, error: np.ndarray, *, size: float = 3.5) -> None:
    ax.errorbar(
        x,
        mean,
        error,
        color=style.INK,
        marker="o",
        markersize=size,
        markerfacecolor=style.PAPER,
        linestyle="none",
        elinewidth=1.0,
        zorder=5,
    )


def _guide(ax: Axes, strengths: np.ndarray, start: float, order: int, offset: tuple[float, float]) -> None:
    """A dotted power law through ``start`` at the weakest coupling, with its exponent beside its third point."""
    line = start * (strengths / strengths[0]) ** order
    ax.plot(strengths, line, color=style.GREY, linewidth=0.9, linestyle=":", zorder=0)
    style.label(
        ax,
        f"slope {order}",
        (float(strengths[2]), float(line[2])),
        style.GREY,
        offset,
        ha="right" if offset[0] < 0 else "left",
    )


def _spin(ax: Axes, x: float, y: float, up: bool, colour: str) -> None:
    ax.add_patch(Circle((x, y), 0.11, facecolor=colour, edgecolor=colour, linewidth=1.0, zorder=4))
    half = 0.36 if up else -0.36
    style.arrow(ax, (x, y - half), (x, y + half), colour, width=1.8, size=11, zorder=5)


@style.house
def schematic() -> Figure:
    """Three drawings: spins that act on spins one step later, the same with weaker couplings, independent spins."""
    figure, axes = style.subplots(1, 3, height=2.7)
    old = (True, True, False, True)
    new = (True, False, True, True)
    heights = (1.5, 0.5, -0.5, -1.5)
    special = {(2, 0): (ORANGE, 2.4), (0, 2): (PURPLE, 1.0)}
    titles = (r"$\alpha = 1$: the model", r"$0 < \alpha < 1$: in between", r"$\alpha = 0$: independent spins")
    fields = (r"$x_i$", r"$\alpha x_i + (1 - \alpha)\,\theta_i$", r"$\theta_i$")
    for ax, alpha, title, field in zip(axes, (1.0, 0.5, 0.0), titles, fields, strict=True):
        for j, (y, up) in enumerate(zip(heights, old, strict=True)):
            _spin(ax, -0.95, y, up, style.GREY)
            for i, end in enumerate(heights):
                if alpha:
                    colour, width = special.get((i, j), (style.FAINT, 0.9))
                    thickness = width * (0.4 + 0.6 * alpha)
                    style.arrow(ax, (-0.75, y), (0.72, end), colour, width=thickness, size=7 + 2 * thickness, zorder=3)
        for y, up in zip(heights, new, strict=True):
            _spin(ax, 0.95, y, up, BLUE)
            style.arrow(ax, (1.75, y), (1.2, y), GREEN, width=1.6, size=10.2, zorder=3)
        ax.text(1.8, 2.1, field, color=GREEN, ha="right", fontsize=9)
        ax.text(-0.95, -2.25, "$t-1$", ha="center", va="center", color=style.GREY, fontsize=9)
        ax.text(0.95, -2.25, "$t$", ha="center", va="center", color=BLUE, fontsize=9)
        ax.set(xlim=(-1.4, 1.9), ylim=(-2.45, 2.45), aspect="equal")
        ax.set_title(title, loc="center")
        ax.axis("off")
    for ax, (strong, weak) in style.dressed(axes, (("$J_{ij}$", "$J_{ji}$"), (r"$\alpha J_{ij}$", r"$\alpha J_{ji}$"))):
        ax.text(-0.28, -2.25, strong, color=ORANGE, ha="center", va="center", fontsize=9)
        ax.text(0.33, -2.25, weak, color=PURPLE, ha="center", va="center", fontsize=9)
    return figure


@style.house
def expansion(
    first: np.ndarray,
    second: np.ndarray,
    divergence: np.ndarray,
    *,
    points: Mapping[str, tuple[float, float]],
    alphas: np.ndarray,
    interpolated: np.ndarray,
    partial_sums: Mapping[str, np.ndarray],
) -> Figure:
    """Divergence from the truth in a plane of factorised models, and one mean along the path of the expansion.

    ``divergence`` (len(second), len(first)) is measured from its minimum. ``points`` maps "exact", "naive", "TAP" to a
    place in the plane; ``interpolated`` and the ``partial_sums`` ("naive", "TAP" for first and second order) are
    m(alpha).
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9, width_ratios=(1, 1.15))
    levels = np.array([0.0, 0.001, 0.004, 0.01, 0.02, 0.035, 0.055, 0.08, 0.12, 0.2])
    style.landscape(left, first, second, divergence, levels, GREEN, opacity=(0.6, 0.05))
    looks = {"exact": (style.INK, "*", 9.0), "naive": (ORANGE, "s", 5.0), "TAP": (BLUE, "o", 5.0)}
    offsets = {"exact": (7, 4, "left"), "naive": (7, -10, "left"), "TAP": (-7, -11, "right")}
    for name, (x, y) in points.items():
        colour, marker, size = looks[name]
        left.plot([x], [y], color=colour, marker=marker, markersize=size, linestyle="none", zorder=6)
        dx, dy, side = offsets[name]
        style.label(left, name, (x, y), colour, (dx, dy), ha=side)
    left.set(xlabel="mean of one spin", ylabel="mean of another spin")

    right.axhline(float(interpolated[0]), color=style.GREY, linewidth=0.9, linestyle=":")
    right.plot(alphas, interpolated, color=style.INK, linestyle="-", linewidth=2.0)
    names = {"naive": "first order", "TAP": "second order"}
    for name, values in partial_sums.items():
        right.plot(alphas, values, color=METHOD_COLOURS[name], linestyle=METHOD_LINES[name])
        style.label(right, names[name], (float(alphas[-1]), float(values[-1])), METHOD_COLOURS[name], (4, -3))
    style.label(right, "exact", (float(alphas[-1]), float(interpolated[-1])), style.INK, (4, -3))
    right.set(xlabel=r"$\alpha$", ylabel=r"$m_i(\alpha)$", xlim=(0, 1))
    style.letters(left, right)
    return figure


@style.house
def trajectories(
    magnetizations: np.ndarray, *, fields: np.ndarray, field_axis: np.ndarray, average_response: np.ndarray
) -> Figure:
    """All magnetisations against time with their mean on top, and the last ones against the fields.

    ``magnetizations`` is (steps, spins), ``fields`` (spins,); ``average_response`` on ``field_axis`` is drawn as a
    curve.
    """
    figure, axes = plt.subplot_mosaic(
        [["mean", "response"], ["spins", "response"]],
        figsize=(style.WIDTHS["page"], 3.6),
        height_ratios=(1, 2.3),
        width_ratios=(1.5, 1),
    )
    mean, spins, response = axes["mean"], axes["spins"], axes["response"]
    steps = np.arange(len(magnetizations))
    mean.plot(steps, magnetizations.mean(axis=1), color=ORANGE, linestyle="-", linewidth=2.0)
    mean.set(xlim=(0, len(steps) - 1), ylim=(0, 1.03), ylabel="mean")
    mean.tick_params(labelbottom=False)
    extent = (-0.5, len(steps) - 0.5, magnetizations.shape[1] - 0.5, -0.5)
    lowest = float(np.floor(10 * magnetizations.min()) / 10)
    image = spins.imshow(
        magnetizations.T,
        aspect="auto",
        extent=extent,
        vmin=lowest,
        vmax=1,
        cmap=style.SEQUENTIAL,
        interpolation="nearest",
    )
    spins.set(xlabel="step $t$", ylabel="spin $i$", xlim=(0, len(steps) - 1))
    figure.colorbar(image, ax=spins, label="$m_{i,t}$", fraction=0.05, pad=0.02)
    response.plot(fields, magnetizations[-1], color=BLUE, marker="o", markersize=2.2, linestyle="none", alpha=0.6)
    response.plot(field_axis, average_response, color=style.INK, linestyle="--", linewidth=1.2)
    response.axhline(0, color=style.FAINT, linewidth=0.8, linestyle="-", zorder=0)
    response.set(xlabel="field $x_i$", ylabel="$m_{i,t}$ at the last step")
    style.letters(mean, response)
    return figure


@style.house
def starts(means: Mapping[str, np.ndarray], *, counts: Mapping[str, Mapping[float, int]]) -> Figure:
    """Mean magnetisation against time from many random starts, one panel per temperature.

    ``means`` maps the panel's title to (starts, steps); ``counts`` maps it to {final mean: number of starts}.
    """
    figure, axes = style.subplots(1, len(means), height=2.7, sharey=True, squeeze=False)
    for ax, (title, values) in zip(axes[0], means.items(), strict=True):
        steps = np.arange(values.shape[1])
        for number, run in enumerate(values):
            up = run[-1] > 0
            colour = (BLUE if up else ORANGE) if len(counts[title]) > 1 else BLUE
            ax.plot(steps, run, color=colour, linestyle="-", linewidth=0.5, alpha=0.55, zorder=2 + number / 1000)
        ax.axhline(0, color=style.FAINT, linewidth=0.8, linestyle="-", zorder=0)
        for level, count in counts[title].items():
            colour = (BLUE if level > 0 else ORANGE) if len(counts[title]) > 1 else BLUE
            side = (-2, 6) if abs(level) < 0.5 or level < 0 else (-2, -12)
            style.label(ax, f"{count} of {len(values)}", (float(steps[-1]), level), colour, side, ha="right")
        ax.set_title(title, loc="center")
        ax.set(xlabel="step $t$", xlim=(0, steps[-1]))
    axes[0, 0].set_ylabel("mean magnetisation")
    style.letters(*axes[0])
    return figure


@style.house
def samples(
    betas: np.ndarray, absolute: np.ndarray, *, spreads: np.ndarray, spread_errors: np.ndarray, critical: float
) -> Figure:
    """|mean| against beta for many parameter samples, and its spread over the samples.

    ``absolute`` is (samples, betas); ``spreads`` are standard deviations with their standard errors.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9, width_ratios=(1.35, 1))
    left.add_collection(
        LineCollection(
            [np.column_stack([betas, curve]) for curve in absolute], colors=[BLUE], linewidths=0.5, alpha=0.4
        )
    )
    left.plot(betas, absolute.mean(axis=0), color=ORANGE, linestyle="-", linewidth=2.0)
    style.label(left, "mean of the samples", (float(betas[-1]), 0.62), ORANGE, (0, 0), ha="right")
    left.set(xlabel=r"inverse temperature $\beta$", ylabel="absolute mean magnetisation", ylim=(-0.01, 1.0))
    right.errorbar(
        betas,
        spreads,
        spread_errors,
        color=BLUE,
        marker="o",
        markersize=3.5,
        linestyle="-",
        linewidth=1.0,
        elinewidth=1.0,
    )
    right.set(xlabel=r"inverse temperature $\beta$", ylabel="standard deviation", ylim=(0, None))
    for ax in (left, right):
        ax.axvline(critical, color=style.GREY, linewidth=0.9, linestyle=":")
    style.label(left, r"$\beta_c$", (critical, 0.95), style.GREY, (-4, 0), ha="right", va="top")
    style.letters(left, right)
    return figure


@style.house
def error_law(
    strengths: np.ndarray,
    errors: Mapping[str, Mapping[str, np.ndarray]],
    *,
    sizes: Mapping[str, np.ndarray],
    orders: Mapping[str, Mapping[str, int]],
) -> Figure:
    """Root-mean-square error against the strength of the couplings, one panel per moment, with the expected slopes.

    ``errors`` maps the panel's title to {curve: values}, ``orders`` to {curve: exponent}; ``sizes`` is the moment
    itself.
    """
    several = len(errors) > 1
    width: Literal["page", "column"] = "page" if several else "column"
    figure, axes = style.subplots(1, len(errors), width=width, height=3.1, sharey=True, squeeze=False)
    colours = {"naive": ORANGE, "TAP": BLUE, "first order": ORANGE, "second order": BLUE}
    for ax, (title, curves) in zip(axes[0], errors.items(), strict=True):
        ax.loglog(strengths, sizes[title], color=style.GREY, linestyle="-", linewidth=1.0)
        # The labels are in the free corner, in the order of the ends of the curves.
        ends = {"the moment": (float(sizes[title][-1]), style.GREY)}
        for name, values in curves.items():
            marker = "s" if colours[name] == ORANGE else "o"
            ax.loglog(
                strengths, values, color=colours[name], marker=marker, linestyle="-", linewidth=1.1, markersize=3.5
            )
            ends[name] = (float(values[-1]), colours[name])
            order = orders[title][name]
            _guide(ax, strengths, float(values[0]), order, (-5, 5) if order == 2 else (7, -7))
        names = sorted(ends, key=lambda name: ends[name][0])
        for rank, name in enumerate(names):
            place = (0.97, 0.03 + 0.075 * rank)
            ax.text(*place, name, color=ends[name][1], transform=ax.transAxes, fontsize=8.5, ha="right", va="bottom")
        ax.set_title(title, loc="center")
        ax.set_xlabel("strength of the couplings $g$")
        style.plain_ticks(ax.xaxis, (0.01, 0.1, 1.0))
    axes[0, 0].set_ylabel("root-mean-square error")
    for ax in axes[0]:
        style.decades(ax.yaxis, 2)
    if several:
        style.letters(*axes[0])
    return figure


@style.house
def limits(
    betas: np.ndarray,
    limit: np.ndarray,
    *,
    sampled_betas: np.ndarray,
    sampled: np.ndarray,
    standard_errors: np.ndarray,
    closures: Mapping[str, tuple[np.ndarray, np.ndarray]],
    critical: Mapping[str, float],
    source_beta: float,
) -> Figure:
    """The infinite system beside a sampled one, and the three theories near their critical points.

    ``closures`` maps "model", "naive" and "TAP" to (betas, magnetisations) near the transition.
    """
    figure, (left, right) = style.subplots(1, 2, height=3.0, width_ratios=(1, 1.15))
    left.plot(betas, limit, color=style.INK, linestyle="-", linewidth=1.6)
    inside = sampled_betas <= betas[-1]
    _truth(left, sampled_betas[inside], sampled[inside], standard_errors[inside], size=4.5)
    style.label(left, r"$N = \infty$", (float(betas[-1]), float(limit[-1])), style.INK, (-2, 6), ha="right")
    left.set(xlabel=r"inverse temperature $\beta$", ylabel="mean magnetisation", ylim=(-0.02, 1.0))
    looks = {"model": (style.INK, "-", 2.8), "naive": (ORANGE, "--", 1.6), "TAP": (BLUE, "-", 1.2)}
    for name, (near, values) in closures.items():
        colour, line, width = looks[name]
        right.plot(near, values, color=colour, linestyle=line, linewidth=width)
    for name, offset, side in (("naive", (-6, 2), "right"), ("model", (6, -8), "left"), ("TAP", (6, -19), "left")):
        near, values = closures[name]
        place = int(np.argmin(np.abs(values - 0.12)))
        style.label(right, name, (float(near[place]), float(values[place])), looks[name][0], offset, ha=side)
    for name, beta in critical.items():
        right.plot([beta], [0.0], color=looks[name][0], marker="|", markersize=9, linestyle="none", clip_on=False)
    right.axvline(source_beta, color=style.GREY, linewidth=0.9, linestyle=":", zorder=0)
    right.set(xlabel=r"inverse temperature $\beta$", ylabel="mean magnetisation, $N = \\infty$", ylim=(0, None))
    right.xaxis.set_major_locator(ticker.MaxNLocator(5))
    style.letters(left, right)
    return figure


@style.house
def transition(
    betas: np.ndarray,
    limit: np.ndarray,
    *,
    sampled_betas: np.ndarray,
    sampled: Mapping[int, tuple[np.ndarray, np.ndarray]],
    at_source_beta: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
    naive_limit: float,
    ratios: np.ndarray,
    spreads: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> Figure:
    """Magnetisation of finite and infinite systems; finite size at one beta; what balanced fields do to the spread.

    ``sampled`` maps the number of spins to (mean, standard error) on ``sampled_betas``. ``at_source_beta`` maps
    "sampled", "naive", "TAP", "naive, balanced" and "TAP, balanced" to (numbers of spins, mean, standard error);
    ``naive_limit`` is drawn across. ``spreads`` maps up to three labels to (standard deviation, its standard error) on
    ``ratios`` of beta to its critical value.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=3.0, width_ratios=(1.15, 1, 1.1))
    left.plot(betas, limit, color=style.INK, linestyle="-", linewidth=1.6)
    style.label(left, r"$N = \infty$", (float(betas[-1]), float(limit[-1])), style.INK, (-2, 5), ha="right")
    for colour, marker, (number, (mean, error)) in style.dressed(FAMILY, FAMILY_MARKERS, sampled.items()):
        left.errorbar(
            sampled_betas,
            mean,
            error,
            color=colour,
            marker=marker,
            markersize=4.0,
            linestyle="none",
            elinewidth=1.0,
            label=f"$N = {number}$",
        )
    left.legend(loc="lower right", title="sampled", title_fontsize=8.5, handlelength=1.0, labelspacing=0.3)
    left.set(xlabel=r"inverse temperature $\beta$", ylabel="absolute mean magnetisation", ylim=(-0.02, 1.0))

    ink = {"naive": ORANGE, "TAP": BLUE, "sampled": style.INK}
    marks = {"naive": "s", "TAP": "o", "sampled": "D"}
    for name, (sizes, mean, error) in at_source_beta.items():
        method, balanced, _ = name.partition(", ")
        middle.errorbar(
            sizes,
            mean,
            error,
            color=ink[method],
            marker=marks[method],
            markersize=3.5,
            markerfacecolor=style.PAPER if balanced else ink[method],
            linestyle="none" if method == "sampled" else METHOD_LINES[method],
            linewidth=1.0,
            elinewidth=1.0,
        )
    middle.axhline(naive_limit, color=ORANGE, linewidth=0.9, linestyle=":")
    middle.set(xscale="log", yscale="log", xlabel="number of spins $N$", ylabel=r"absolute mean at $\beta = 1.1108$")
    style.plain_ticks(middle.xaxis, (64, 256, 1024))
    style.plain_ticks(middle.yaxis, (0.1, 0.2, 0.3, 0.4))
    for colour, marker, (label, (spread, error)) in style.dressed(
        [BLUE, GREEN, PURPLE], ["o", "^", "D"], spreads.items()
    ):
        right.errorbar(
            ratios,
            spread,
            error,
            color=colour,
            marker=marker,
            markersize=3.5,
            linewidth=1.0,
            elinewidth=1.0,
            linestyle="-",
            label=label,
        )
    right.legend(loc="upper right")
    highest = max(float(np.max(spread)) for spread, _ in spreads.values())
    right.set(xlabel=r"$\beta / \beta_c$", ylabel="spread of the mean", ylim=(0, 1.55 * highest))
    style.letters(left, middle, right)
    return figure
