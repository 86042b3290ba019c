"""The figures of the chapter ``spin-transformers``: each function draws given results and returns the figure.

Naive mean field is orange and dashed, TAP blue and solid, the central-limit theory and what comes of it green, and what
is sampled ink with error bars, wherever they meet. Each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from chapters import style

__all__ = [
    "bessel",
    "collective",
    "errata",
    "existence",
    "heads",
    "large_d",
    "naive_and_tap",
    "one_step",
    "printed",
    "schematic",
    "shapes",
    "single_run",
    "strong_run",
    "yarn",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
THEORY_COLOURS = {"naive": ORANGE, "TAP": BLUE, "one line": GREEN, "central limit": GREEN}
THEORY_LINES = {"naive": "--", "TAP": "-", "one line": ":", "central limit": ":"}
THEORY_MARKERS = {"naive": "s", "TAP": "o", "one line": "^", "central limit": "^"}
"""How each theory looks."""

FAMILY = [PURPLE, BLUE, GREEN, OCHRE, ORANGE, BROWN]
FAMILY_LINES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2))]
FAMILY_MARKERS = ["D", "o", "^", "v", "s", "P"]
"""The curves of a family with increasing parameter."""

FLOOR = 3e-3
"""Errors of rows below this are lost in sampling noise."""

COSINE_COLOURS = {"previous": GREEN, "start": OCHRE, "fields": BLUE}
COSINE_LABELS = {"previous": "with step before", "start": "with start", "fields": "with field"}


def _plus(ax: Axes, x: float, y: float) -> None:
    ax.add_patch(Circle((x, y), 0.17, facecolor=style.PAPER, edgecolor=style.INK, linewidth=1.2, zorder=4))
    ax.text(x, y, "+", ha="center", va="center_baseline", fontsize=9, color=style.INK, zorder=5)


@style.house
def schematic() -> Figure:
    """Three drawings: one spin on its sphere, a transformer block, and the module that spins make."""
    figure, (spin, block, module) = style.subplots(1, 3, height=3.1, width_ratios=(1.0, 0.85, 1.25))
    spin.add_patch(Circle((0, 0), 1.0, facecolor="none", edgecolor=style.GREY, linewidth=1.2))
    angles = np.deg2rad([88, 70, 52, 36, 20, 5, -14, 112])
    for angle in angles:
        spin.plot([0, np.cos(angle)], [0, np.sin(angle)], color=style.FAINT, linewidth=1.2, linestyle="-", zorder=1)
        spin.plot(np.cos(angle), np.sin(angle), color=style.GREY, marker="o", markersize=3, linestyle="none")
    toward = np.deg2rad(45)
    style.arrow(spin, (0, 0), (1.5 * np.cos(toward), 1.5 * np.sin(toward)), ORANGE, width=1.6, zorder=4)
    style.arrow(spin, (0, 0), (0.62 * np.cos(toward), 0.62 * np.sin(toward)), BLUE, width=2.4, zorder=4)
    spin.text(1.12, 1.12, r"field $\boldsymbol{\theta}$", color=ORANGE, fontsize=8.5)
    spin.text(0.50, 0.14, r"mean $\mathbf{m}$", color=BLUE, fontsize=8.5)
    spin.text(-0.52, 1.06, r"spin $\mathbf{s}$", color=style.GREY, fontsize=8.5, ha="center")
    spin.plot([0, -0.707], [0, -0.707], color=style.GREY, linewidth=1.0, linestyle=":")
    spin.text(-0.28, -0.52, "$R$", color=style.GREY, fontsize=9)
    spin.set(xlim=(-1.15, 1.75), ylim=(-1.2, 1.7), aspect="equal")

    block.plot([0, 0], [-0.05, 4.1], color=style.INK, linewidth=1.2, linestyle="-", zorder=1)
    for y, text, colour in ((0.9, "attention", ORANGE), (3.0, "feed-forward", PURPLE)):
        block.plot(
            [0, 1.35, 1.35, 0.2],
            [y - 0.6, y - 0.6, y + 0.72, y + 0.72],
            color=style.GREY,
            linewidth=1.1,
            linestyle="-",
            zorder=1,
        )
        style.box(block, (1.35, y - 0.12), (1.5, 0.42), "normalise", GREEN, ink=GREEN, fontsize=8.5)
        style.box(block, (1.35, y + 0.42), (1.5, 0.42), text, colour, ink=colour, fontsize=8.5)
        _plus(block, 0, y + 0.72)
    style.arrow(block, (0, 3.9), (0, 4.35), style.INK, width=1.4, zorder=4)
    block.text(0, -0.2, r"$\mathbf{x}$", ha="center", fontsize=10)
    block.text(-0.12, 0.9, "residual", rotation=90, ha="right", va="center", fontsize=8, color=BLUE)
    block.set(xlim=(-0.6, 2.25), ylim=(-0.4, 4.5))

    module.text(0, -0.2, r"$\mathbf{x}$", ha="center", fontsize=10)
    module.plot([0, 0], [0.0, 1.78], color=style.INK, linewidth=1.2, linestyle="-", zorder=1)
    module.plot([0, 2.1, 2.1], [0.42, 0.42, 0.9], color=style.GREY, linewidth=1.1, linestyle="-", zorder=1)
    module.text(-0.12, 0.95, "fields:\nresidual", ha="right", va="center", fontsize=8, color=BLUE)
    style.box(module, (2.1, 1.05), (2.1, 0.42), r"couplings $J(\mathbf{x})$", ORANGE, ink=ORANGE, fontsize=8.5)
    module.plot([2.1, 2.1, 0.2], [1.25, 1.95, 1.95], color=style.GREY, linewidth=1.1, linestyle="-", zorder=1)
    module.text(1.2, 2.05, r"$J\mathbf{m}$: attention", ha="center", fontsize=8, color=ORANGE)
    _plus(module, 0, 1.95)
    module.plot([0, 0], [2.12, 3.2], color=style.INK, linewidth=1.2, linestyle="-", zorder=1)
    style.box(module, (0, 3.2), (1.7, 0.42), r"response $\boldsymbol{\varphi}$", GREEN, ink=GREEN, fontsize=8.5)
    style.arrow(module, (0, 3.41), (0, 4.35), style.INK, width=1.4, zorder=4)
    module.text(0.14, 4.12, r"$\mathbf{m}$", fontsize=10)
    module.plot([0, 3.4, 3.4], [3.8, 3.8, 1.95], color=PURPLE, linewidth=1.1, linestyle=(0, (4, 2)), zorder=1)
    module.plot([3.4, 2.1], [1.95, 1.95], color=PURPLE, linewidth=1.1, linestyle=(0, (4, 2)), zorder=1)
    style.box(module, (1.75, 2.72), (2.1, 0.42), "Onsager field", PURPLE, ink=PURPLE, fontsize=8.5)
    style.arrow(module, (0.7, 2.72), (0.0, 2.12), PURPLE, width=1.1, zorder=4)
    module.text(2.05, 3.88, "until m stays", ha="center", fontsize=8, color=PURPLE)
    module.set(xlim=(-1.25, 3.6), ylim=(-0.4, 4.5))
    for ax in (spin, block, module):
        ax.set_axis_off()
    for ax, letter, title in zip(
        (spin, block, module), "abc", ("one vector spin", "transformer block", "spin module"), strict=True
    ):
        style.panel_label(ax, letter)
        ax.set_title(title, loc="center")
    return figure


@style.house
def collective(
    predicted: Mapping[str, np.ndarray],
    measured: Mapping[str, np.ndarray],
    labels: Mapping[str, np.ndarray],
    *,
    errors: Mapping[str, np.ndarray],
) -> Figure:
    """Measured against predicted, one panel for each quantity; ``labels`` name the setting of every point.

    All map a title to values of every point; points of one setting share a colour and a mark. ``errors`` may be zero.
    """
    figure, axes = style.subplots(1, len(predicted), height=3.0)
    settings = list(dict.fromkeys(np.concatenate(list(labels.values())).tolist()))
    looks = {name: (colour, marker) for colour, marker, name in style.dressed(FAMILY, FAMILY_MARKERS, settings)}
    for ax, (title, x) in zip(axes, predicted.items(), strict=True):
        y, error = measured[title], errors[title]
        shown = np.isfinite(y) & (y > 0)
        low = 0.7 * min(x[shown].min(), y[shown].min())
        high = 1.4 * max(x[shown].max(), (y + error)[shown].max())
        ax.plot([low, high], [low, high], color=style.GREY, linewidth=0.9, linestyle="-")
        for name, (colour, marker) in looks.items():
            of = shown & (labels[title] == name)
            bars = np.stack([np.minimum(error[of], 0.95 * y[of]), error[of]])
            ax.errorbar(
                x[of],
                y[of],
                bars,
                color=colour,
                marker=marker,
                markersize=4.2,
                linestyle="none",
                linewidth=0.9,
                label=name,
            )
        ax.set(xscale="log", yscale="log", xlabel="predicted", xlim=(low, high), ylim=(low, high), aspect="equal")
        ax.set_title(title, loc="center", fontsize=8.5)
        ticks = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
        style.plain_ticks(ax.xaxis, ticks)
        style.plain_ticks(ax.yaxis, ticks)
    axes[0].set_ylabel("measured")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), handlelength=1.0, labelspacing=0.4)
    style.letters(*axes)
    return figure


@style.house
def shapes(names: np.ndarray, ratios: Mapping[str, np.ndarray], *, within: float) -> Figure:
    """Predicted over measured error, one row for each shape of attention and one mark for each system and law.

    ``names`` has the shape of every system, in order; ``ratios`` map a law to a value for each. The band is where a law
    is right to the relative deviation ``within``.
    """
    figure, ax = style.subplots(1, 1, height=4.6)
    rows = list(dict.fromkeys(names.tolist()))
    place = np.array([rows.index(name) for name in names])
    ax.axvspan(1 - within, 1 + within, color=style.GREY, alpha=0.25, linewidth=0)
    looks = (ORANGE, "s", 0.0), (OCHRE, "v", 0.0), (BLUE, "o", 1.0)
    for (colour, marker, filled), (law, ratio) in zip(looks, ratios.items(), strict=True):
        face = colour if filled else "none"
        ax.plot(ratio, place, linestyle="none", marker=marker, color=colour, markerfacecolor=face, ms=4, label=law)
    ax.set(xscale="log", xlabel="predicted over measured error", yticks=range(len(rows)), yticklabels=rows)
    ax.invert_yaxis()
    style.plain_ticks(ax.xaxis, (0.1, 0.2, 0.5, 1, 2, 5, 10))
    ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), handlelength=1.0)
    return figure


@style.house
def bessel(
    orders: np.ndarray,
    ratios: Mapping[str, np.ndarray],
    quotients: Mapping[str, np.ndarray],
    *,
    iterations: np.ndarray,
    errors: Mapping[float, np.ndarray],
    failing_orders: np.ndarray,
    failures: np.ndarray,
    repaired: np.ndarray,
) -> Figure:
    """I_{nu+1}(x)/I_nu(x) by order; error against refinements; error of the source's routine at small orders.

    ``ratios`` and ``quotients`` (nan where the plain quotient underflows) map the law of x to values on ``orders``;
    ``errors`` maps an order to the worst relative error after ``iterations``; ``failures`` and ``repaired`` are on
    ``failing_orders``.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.8, width_ratios=(1.25, 1, 1))
    for colour, line, (name, values) in style.dressed((BLUE, GREEN, ORANGE), FAMILY_LINES, ratios.items()):
        left.semilogx(orders, values, color=colour, linestyle=line)
        left.semilogx(
            orders[::6],
            quotients[name][::6],
            color=colour,
            marker="o",
            markersize=3.2,
            linestyle="none",
            markerfacecolor=style.PAPER,
        )
        place = int(0.42 * len(orders))
        style.label(left, f"$x = {name}$", (orders[place], values[place]), colour, (0, 7 if name != r"\nu^2" else -12))
    left.set(ylim=(-0.02, 1.05), xlabel=r"order $\nu$", ylabel=r"$I_{\nu+1}(x) \,/\, I_\nu(x)$")
    style.plain_ticks(left.xaxis, (1, 10, 100, 1000))
    for colour, marker, (order, values) in style.dressed((PURPLE, OCHRE, BROWN), FAMILY_MARKERS, errors.items()):
        middle.semilogy(
            iterations,
            np.maximum(values, 1e-17),
            color=colour,
            marker=marker,
            markersize=3.2,
            linestyle="-",
            linewidth=1.1,
            label=rf"$\nu = {order:g}$",
        )
    middle.legend(loc="upper right", handlelength=1.6, labelspacing=0.25)
    middle.set(xlabel="refinements", ylabel="worst relative error")
    middle.xaxis.set_major_locator(ticker.MultipleLocator(2))
    style.decades(middle.yaxis, 4)
    right.semilogy(
        failing_orders, np.maximum(failures, 1e-17), color=ORANGE, marker="s", markersize=3.0, linestyle="none"
    )
    right.semilogy(
        failing_orders, np.maximum(repaired, 1e-17), color=BLUE, marker="o", markersize=3.0, linestyle="none"
    )
    style.label(right, "source's routine,\nhalf-integer orders", (2.0, 0.2), ORANGE, (10, -34))
    style.label(right, "this book", (8.0, 1e-13), BLUE, (0, 4))
    right.set(xlabel=r"order $\nu$", ylabel="relative error", ylim=(1e-18, 3))
    style.decades(right.yaxis, 4)
    style.letters(left, middle, right)
    return figure


@style.house
def large_d(
    scaled: np.ndarray,
    errors: Mapping[int, np.ndarray],
    corrected: Mapping[int, np.ndarray],
    *,
    times_nu: Mapping[int, np.ndarray],
    law: np.ndarray,
    concentrations: np.ndarray,
    sensitivity: np.ndarray,
    choices: Mapping[str, tuple[float, float]],
) -> Figure:
    """Relative error of the large-D response by D; times nu, on its law; how sensitive the ratio is to its field.

    ``errors``, ``corrected`` (with the next order in 1/D) and ``times_nu`` map D to values on ``scaled``, ``law`` is
    (1 + gamma)/(2 gamma^2); ``sensitivity`` is on ``concentrations``; ``choices`` puts names at (x, sensitivity).
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.8)
    for colour, line, (dim, values) in style.dressed(FAMILY, FAMILY_LINES, errors.items()):
        left.loglog(scaled, values, color=colour, linestyle=line)
        left.loglog(scaled, corrected[dim], color=colour, linestyle=":", linewidth=0.9)
        style.label(left, f"$D = {dim}$" if dim == min(errors) else f"{dim}", (scaled[-1], values[-1]), colour)
        middle.semilogx(scaled, times_nu[dim], color=colour, linestyle=line, linewidth=1.2)
    middle.semilogx(scaled, law, color=style.INK, linestyle=(0, (1, 2)), linewidth=1.6)
    style.label(middle, r"$(1+\gamma)/2\gamma^2$", (scaled[len(scaled) // 2], law[len(law) // 2]), style.INK, (8, 6))
    left.set(xlabel=r"$\beta|\mathbf{h}|/R$", ylabel=r"relative error of $|\mathbf{m}|$")
    middle.set(xlabel=r"$\beta|\mathbf{h}|/R$", ylabel=r"relative error times $\nu$", ylim=(0, 1.15))
    style.decades(left.yaxis, 2)
    right.semilogx(concentrations, sensitivity, color=BLUE, linestyle="-")
    offsets = ((-9, 0), (0, 6), (9, -4))
    sides = ("right", "center", "left")
    for offset, side, (name, (x, value)) in style.dressed(offsets, sides, choices.items()):
        right.plot([x], [value], color=ORANGE, marker="o", markersize=4.5, linestyle="none", zorder=5)
        style.label(right, name, (x, value), ORANGE, offset, ha=side)
    right.set(ylim=(0, 0.36), xlabel=r"$\beta R|\mathbf{h}|/\nu$", ylabel="d ratio / d log field")
    for ax in (left, middle, right):
        style.plain_ticks(ax.xaxis, (0.1, 1.0, 10.0))
    style.letters(left, middle, right)
    return figure


@style.house
def yarn(couplings: np.ndarray, strongest: float, eigenvalues: np.ndarray) -> Figure:
    """Chords between sites on a circle, the strongest fraction of them; eigenvalues with the unit circle."""
    figure, (left, right) = style.subplots(1, 2, height=3.3)
    count = len(couplings)
    angles = 2 * np.pi * np.arange(count) / count
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    sizes = np.abs(couplings)
    threshold = np.quantile(sizes, 1 - strongest)
    targets, sources = np.nonzero(sizes >= threshold)
    segments = np.stack([places[sources], places[targets]], axis=1)
    opacity = 0.10 + 0.65 * (sizes[targets, sources] - threshold) / (sizes.max() - threshold)
    for colour, chosen in ((BLUE, couplings[targets, sources] > 0), (ORANGE, couplings[targets, sources] < 0)):
        colours = [(*to_rgb(colour), float(a)) for a in opacity[chosen]]
        left.add_collection(LineCollection(list(segments[chosen]), colors=colours, linewidths=0.8))
    left.plot(*places.T, color=style.INK, marker="o", markersize=3.0, linestyle="none", zorder=5)
    left.text(0.0, -1.22, "positive", color=BLUE, fontsize=8.5, ha="right")
    left.text(0.06, -1.22, "negative", color=ORANGE, fontsize=8.5, ha="left")
    left.set(xlim=(-1.15, 1.15), ylim=(-1.28, 1.12), aspect="equal")
    left.set_axis_off()
    right.add_patch(Circle((0, 0), 1.0, facecolor="none", edgecolor=ORANGE, linewidth=1.2, linestyle="--"))
    right.plot(eigenvalues.real, eigenvalues.imag, color=BLUE, marker="o", markersize=3.0, linestyle="none")
    right.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", xlabel="real part", ylabel="imaginary part")
    style.label(right, "circle of radius 1", (0.72, -0.72), ORANGE, (2, -10))
    style.letters(left, right)
    return figure


@style.house
def single_run(cosines: Mapping[str, np.ndarray], norms: np.ndarray, *, radius: float, shown: int) -> Figure:
    """Cosines of every site with the step before, the start and the field; norms. Thin lines are single sites.

    ``cosines`` maps "previous", "start", "fields" to (steps, sites); ``norms`` is (steps, sites); ``shown`` sites are
    drawn.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9, width_ratios=(1.25, 1))
    steps = np.arange(1, len(norms) + 1)
    lines = ("-", ":", "--")
    for line, (name, values) in zip(lines, cosines.items(), strict=True):
        colour = COSINE_COLOURS[name]
        left.plot(steps, values[:, :shown], color=(*to_rgb(colour), 0.28), linewidth=0.6, linestyle="-")
        style.band(left, np.arange(1, len(values) + 1), values, colour, linestyle=line)
        final = float(values[-1].mean())
        style.label(left, COSINE_LABELS[name], (steps[-1], final), colour, (5, 2 if name == "previous" else -3))
    left.set(xlim=(1, len(norms)), ylim=(-0.35, 1.08), xlabel="step", ylabel="cosine")
    right.plot(steps, norms[:, :shown], color=(*to_rgb(PURPLE), 0.28), linewidth=0.6, linestyle="-")
    style.band(right, np.arange(1, len(norms) + 1), norms, PURPLE, linestyle="-")
    right.axhline(radius, color=style.GREY, linewidth=0.9, linestyle="--")
    style.label(right, "$R$", (1, radius), style.GREY, (2, -11))
    right.set(xlim=(1, len(norms)), ylim=(0, 1.05 * radius), xlabel="step", ylabel=r"norm $|\mathbf{m}_i|$")
    for ax in (left, right):
        ax.xaxis.set_major_locator(ticker.MultipleLocator(5))
    style.letters(left, right)
    return figure


@style.house
def naive_and_tap(runs: Mapping[str, Mapping[str, Mapping[str, np.ndarray]]], *, radius: float) -> Figure:
    """Cosines (top) and norms (bottom) of both theories, a column for each case; bands from smallest to largest.

    ``runs`` maps a title to {"naive" or "TAP": {"previous", "start", "fields", "norms": (steps, sites)}}.
    """
    figure, axes = style.subplots(2, len(runs), height=4.6, sharex=True, sharey="row", squeeze=False)
    for column, (title, theories) in enumerate(runs.items()):
        top, bottom = axes[:, column]
        for theory, run in theories.items():
            line = THEORY_LINES[theory]
            steps = np.arange(1, len(run["norms"]) + 1)
            for name in ("fields", "start", "previous"):
                style.band(top, steps, run[name], COSINE_COLOURS[name], linestyle=line, linewidth=1.4)
            style.band(bottom, steps, run["norms"], THEORY_COLOURS[theory], linestyle=line)
            last = len(run["norms"])
            style.label(
                bottom,
                theory,
                (last, float(run["norms"][-1].mean())),
                THEORY_COLOURS[theory],
                (-4, 7 if theory == "naive" else -13),
                ha="right",
            )
        bottom.axhline(radius, color=style.GREY, linewidth=0.9, linestyle="--")
        top.set_title(title, loc="center")
        bottom.set(xlabel="step", xlim=(1, last), ylim=(0, 1.05 * radius))
        bottom.xaxis.set_major_locator(ticker.MultipleLocator(5))
    for name, place in (("previous", 0.74), ("fields", 0.63), ("start", 0.40)):
        axes[0, 0].text(
            0.98,
            place,
            COSINE_LABELS[name],
            transform=axes[0, 0].transAxes,
            fontsize=8.5,
            ha="right",
            color=COSINE_COLOURS[name],
        )
    style.label(axes[1, 0], "$R$", (1, radius), style.GREY, (2, -11))
    axes[0, 0].set(ylabel="cosine", ylim=(-0.35, 1.08))
    axes[1, 0].set(ylabel=r"norm $|\mathbf{m}_i|$")
    style.letters(*axes[0], *axes[1])
    return figure


@style.house
def strong_run(
    runs: Mapping[str, Mapping[str, np.ndarray]],
    *,
    changes: Mapping[str, np.ndarray],
    factors: Mapping[str, float],
) -> Figure:
    """Strong couplings, weak fields: cosine with the step before, norms, and the change per step of a long run.

    ``runs`` maps a theory to {"previous", "norms": (steps, sites)}; ``changes`` maps it to values for steps 1, 2, ...,
    and ``factors`` to the contraction factor whose power law is drawn beside them.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.8)
    for theory, run in runs.items():
        colour, line = THEORY_COLOURS[theory], THEORY_LINES[theory]
        style.band(left, np.arange(1, len(run["previous"]) + 1), run["previous"], colour, linestyle=line)
        style.band(middle, np.arange(1, len(run["norms"]) + 1), run["norms"], colour, linestyle=line)
        style.label(middle, theory, (len(run["norms"]), float(run["norms"][-1].mean())), colour, (-2, 8), ha="right")
    left.set(xlabel="step", ylabel="cosine with step before")
    middle.set(xlabel="step", ylabel=r"norm $|\mathbf{m}_i|$", ylim=(0, None))
    for theory, values in changes.items():
        colour, line = THEORY_COLOURS[theory], THEORY_LINES[theory]
        steps = np.arange(1, len(values) + 1)
        visible = values > 2e-7 * values[0]
        right.semilogy(steps[visible], values[visible], color=colour, linestyle=line, linewidth=1.3)
        start = min(3, len(values) - 1)
        guide = values[start] * factors[theory] ** np.arange(0, min(len(values) - start, 260), dtype=float)
        guide = 0.45 * guide[guide > 1e-7 * values[0]]
        right.semilogy(start + np.arange(1, len(guide) + 1), guide, color=style.GREY, linestyle=":", linewidth=1.1)
        style.label(
            right,
            rf"$\propto {factors[theory]:.2f}^t$",
            (start + len(guide), guide[-1]),
            style.GREY,
            (3, 3) if theory == "TAP" else (3, -13),
            ha="left" if theory == "TAP" else "right",
        )
    right.set(xlabel="step", ylabel="rms change of a step")
    style.decades(right.yaxis, 2)
    for ax in (left, middle):
        ax.xaxis.set_major_locator(ticker.MultipleLocator(5))
    style.letters(left, middle, right)
    return figure


@style.house
def errata(
    spreads: np.ndarray,
    index_errors: Mapping[str, np.ndarray],
    *,
    dims: np.ndarray,
    trace_errors: Mapping[str, np.ndarray],
) -> Figure:
    """Error of a wrong index against the spread of the norms; two conventions for a trace against the exact spin.

    ``index_errors`` and ``trace_errors`` map a label to relative errors on ``spreads`` and on ``dims``.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.8)
    for colour, line, marker, (name, values) in zip(
        (ORANGE, BLUE), ("--", "-"), ("s", "o"), index_errors.items(), strict=True
    ):
        left.semilogy(spreads, values, color=colour, linestyle=line, marker=marker, markersize=3.5)
        style.label(left, name, (spreads[-1], values[-1]), colour, (-6, 5 if line == "--" else -13), ha="right")
    left.set(xlabel=r"relative spread of the norms $|\mathbf{m}_j|$", ylabel="relative error")
    for colour, line, marker, (name, values) in zip(
        (BLUE, PURPLE), ("-", "-."), ("o", "D"), trace_errors.items(), strict=True
    ):
        right.loglog(dims, values, color=colour, linestyle=line, marker=marker, markersize=3.5)
        style.label(right, name, (dims[len(dims) // 2], values[len(dims) // 2]), colour, (6, 4))
    right.set(xlabel="dimension $D$", ylabel="relative error")
    style.plain_ticks(right.xaxis, [float(dim) for dim in dims])
    for ax in (left, right):
        style.decades(ax.yaxis)
    style.letters(left, right)
    return figure


@style.house
def one_step(
    dims: np.ndarray,
    by_dim: Mapping[str, np.ndarray],
    noise_by_dim: np.ndarray,
    *,
    strengths: np.ndarray,
    by_strength: Mapping[str, np.ndarray],
    noise_by_strength: np.ndarray,
    guides: Mapping[int, float],
) -> Figure:
    """Root-mean-square error of one step against D, and against the strength of the couplings, with sampling noise.

    Labels are "naive, large D", "TAP, large D", "naive, exact", "TAP, exact"; ``guides`` maps an exponent to the value
    of its power law at the first strength.
    """
    figure, (left, right) = style.subplots(1, 2, height=3.1)
    looks = {
        "naive, large D": (ORANGE, "--", "s", style.PAPER),
        "TAP, large D": (BLUE, "--", "o", style.PAPER),
        "naive, exact": (ORANGE, "-", "s", ORANGE),
        "TAP, exact": (BLUE, "-", "o", BLUE),
    }
    for ax, x, curves, noise in (
        (left, dims, by_dim, noise_by_dim),
        (right, strengths, by_strength, noise_by_strength),
    ):
        for name, values in curves.items():
            colour, line, marker, face = looks[name]
            ax.loglog(
                x,
                values,
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=4,
                markerfacecolor=face,
                linewidth=1.3,
                label=name,
            )
        ax.fill_between(x, noise, noise.min() / 30, color=style.FAINT, linewidth=0, zorder=0)
        lowest = min(float(values.min()) for values in curves.values())
        ax.set_ylim(min(lowest, float(noise.min())) / 2.5, None)
        style.decades(ax.yaxis)
    style.label(left, "sampling noise", (float(dims[0]), float(noise_by_dim[0])), style.GREY, (3, -11))
    for exponent, value in guides.items():
        line = value * (strengths / strengths[0]) ** exponent
        right.loglog(strengths, line, color=style.GREY, linestyle=":", linewidth=1.0)
        # Beside the line, where no curve ends.
        style.label(
            right, f"$g^{exponent}$", (strengths[-2], line[-2]), style.GREY, (4, -9) if exponent < 3 else (-14, 3)
        )
    style.plain_ticks(left.xaxis, [float(dim) for dim in dims])
    style.plain_ticks(right.xaxis, [float(strength) for strength in strengths])
    left.set(xlabel="dimension $D$", ylabel="error of one step / $R$")
    right.set(xlabel="strength of the couplings $g$")
    right.legend(
        *left.get_legend_handles_labels(), loc="lower right", handlelength=2.4, labelspacing=0.25, fontsize=7.5
    )
    style.letters(left, right)
    return figure


@style.house
def existence(
    betas: np.ndarray,
    strengths: np.ndarray,
    maps: Mapping[str, np.ndarray],
    *,
    turned: Mapping[str, np.ndarray],
    runs: Mapping[str, tuple[str, float, float]],
    systems: Mapping[str, np.ndarray],
) -> Figure:
    """Contraction factor of one step at its steady state over beta and coupling strength; hatched where ``turned``.

    ``maps`` and ``turned`` map a title to (strengths, betas). ``runs`` maps a name to (title, beta, strength);
    ``systems`` maps a title to rows (beta, strength, 1 where a finite system has turned, else 0), drawn as filled and
    open marks.
    """
    figure, axes = style.subplots(1, len(maps), height=3.0, sharex=True, sharey=True, squeeze=False)
    shades = LinearSegmentedColormap.from_list("contraction", ["#f4f7fa", "#7fb2d3", "#0a4f7d", "#08233a"])
    for ax, (title, values) in zip(axes[0], maps.items(), strict=True):
        picture = ax.pcolormesh(
            betas, strengths, values, cmap=shades, vmin=0, vmax=1, shading="nearest", rasterized=True
        )
        levels = (0.2, 0.4, 0.6, 0.8, 0.95)
        style.contour_lines(ax, betas, strengths, np.nan_to_num(values, nan=0.0), levels, style.PAPER, width=0.5)
        if title in turned and turned[title].any():
            ax.contourf(betas, strengths, turned[title], levels=[0.5, 1.5], colors="none", hatches=["////"])
        for beta, strength, past in systems.get(title, np.empty((0, 3))):
            ax.plot(
                [beta],
                [strength],
                marker="o",
                markersize=3.6,
                linestyle="none",
                markeredgecolor=OCHRE,
                markerfacecolor=OCHRE if past else style.PAPER,
                markeredgewidth=1.1,
                zorder=5,
            )
        for name, (panel, beta, strength) in runs.items():
            if panel == title:
                ax.plot([beta], [strength], color=ORANGE, marker="*", markersize=9, linestyle="none", zorder=6)
                style.label(ax, name, (beta, strength), ORANGE, (-3, 7))
        ax.set_title(title, loc="center")
        ax.set(xscale="log", yscale="log", xlabel=r"inverse temp. $\beta$")
        style.plain_ticks(ax.xaxis, (0.3, 1.0, 3.0))
        style.plain_ticks(ax.yaxis, (0.1, 0.3, 1.0, 3.0))
    axes[0, 0].set_ylabel("strength of the couplings $g$")
    bar = figure.colorbar(picture, ax=list(axes[0]), aspect=28, pad=0.015)
    bar.set_label("contraction factor of a step")
    bar.outline.set_visible(False)
    style.letters(*axes[0])
    return figure


@style.house
def heads(
    shares: Mapping[str, np.ndarray],
    *,
    edges: np.ndarray,
    response: Mapping[str, np.ndarray],
) -> Figure:
    """Two readings of several heads: how the length of a site is shared, and which head responds to which.

    ``shares`` maps a reading to the density of |m^h|^2 / |m|^2 over sites and heads, in the bins between the ``edges``;
    ``response`` maps a reading to (heads, heads) mean sizes of d m^h / d x^k.
    """
    figure, axes = style.subplots(1, 1 + len(response), height=2.7, width_ratios=(1.3, *(1.0 for _ in response)))
    middle = axes[0]
    for (name, density), colour, line in zip(shares.items(), (BLUE, ORANGE), ("-", "--"), strict=True):
        middle.stairs(density, edges, color=colour, linestyle=line, linewidth=1.3)
        place = min(int(np.argmax(density)) + (5 if line == "-" else 1), len(density))
        style.label(middle, name, (edges[place], density[place - 1]), colour, (2, 4 if line == "-" else -6))
    middle.set(xlabel="share of a head in $|\\mathbf{m}_i|^2$", ylabel="density")
    top = max(float(values.max()) for values in response.values())
    for ax, (name, values) in zip(axes[1:], response.items(), strict=True):
        shown = np.log10(np.maximum(values / top, 1e-4))
        count = len(values)
        ax.imshow(shown, cmap="Greys", vmin=-4, vmax=0.5, origin="upper", interpolation="nearest")
        for row in range(count):
            for column in range(count):
                # White in the dark variant as well, like the grey scale.
                if values[row, column] == 0:
                    box = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="#fefefe", edgecolor=style.FAINT)
                    ax.add_patch(box)
        ax.set(xlabel="head of the input", xticks=range(0, count, 2), yticks=range(0, count, 2))
        ax.set_title(name, loc="center", fontsize=8.5)
    axes[1].set_ylabel("head of the output")
    style.letters(*axes)
    return figure


@style.house
def printed(deviations: Mapping[str, np.ndarray], rounding: Mapping[str, np.ndarray]) -> Figure:
    """Deviation from every printed number, sorted, one panel per array; the last printed digit as a line.

    Both map a title to the values of the 36 printed entries: |computed - printed| and half a unit of the last digit.
    """
    figure, axes = style.subplots(1, len(deviations), height=2.6, squeeze=False)
    for ax, colour, (title, values) in style.dressed(axes[0], (BLUE, GREEN, ORANGE), deviations.items()):
        order = np.argsort(values)
        rank = np.arange(1, values.size + 1)
        ax.semilogy(
            rank,
            np.maximum(values[order], 1e-3 * rounding[title].min()),
            color=colour,
            marker="o",
            markersize=3.2,
            linestyle="none",
        )
        ax.semilogy(rank, rounding[title][order], color=style.GREY, marker="_", markersize=5, linestyle="none")
        ax.set_title(title, loc="center")
        ax.set(xlabel="printed entries, sorted")
        style.decades(ax.yaxis)
    axes[0, 0].set_ylabel("deviation")
    axes[0, 0].text(
        0.98,
        0.06,
        "last digit printed: dashes",
        transform=axes[0, 0].transAxes,
        color=style.GREY,
        fontsize=8,
        ha="right",
    )
    style.letters(*axes[0])
    return figure
