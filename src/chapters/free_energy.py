"""The figures of the chapter ``free-energy``: results in, a matplotlib figure out. Nothing is computed here.

The saddle point is blue, its next order green, the truth (exact or sampled) in ink, and what a source prints and this
book corrects orange and dashed, wherever they meet. Each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters import scripts, style

__all__ = [
    "attention",
    "auxiliary",
    "channels",
    "contour",
    "curvature",
    "landscape",
    "live",
    "live_markup",
    "orders",
    "response",
    "strong",
    "sweep_frame",
    "sweep_strip",
    "weights",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
FAMILY = [PURPLE, GREEN, OCHRE, BROWN]
FAMILY_MARKERS = ["D", "^", "v", "s"]
FAMILY_LINES = ["-", "--", "-.", ":"]
ON_DARK, ON_LIGHT = "#fafafa", "#202020"
"""Ink on an image, which keeps its colours in the dark variant."""
QUANTITIES = {"f": (BLUE, "-"), "u": (ORANGE, "--"), "-Ts": (GREEN, "-.")}
TERMS = {"linear": (GREEN, "--"), "determinant": (ORANGE, "-."), "field": (PURPLE, ":")}
TERM_OFFSETS = {"linear": 8, "determinant": -18, "field": 12}
TERM_LABELS = {
    "linear": r"$\beta t$",
    "determinant": r"$-\frac{1}{2N}\ln\det V$",
    "field": r"$\frac{\beta}{4N}\,\mathrm{tr}\,H^{T}V^{-1}H$",
}


@style.house
def live(
    fields: np.ndarray,
    means: np.ndarray,
    weights: np.ndarray,
    *,
    temperatures: Sequence[float],
    names: Sequence[str],
) -> Figure:
    """The still version of the live model: arrows in the plane at a few temperatures, beside each the table of weights.

    ``fields`` (N, 2) are the same in every panel; ``means`` (panels, N, 2) and ``weights`` (panels, N, N).
    """
    figure, axes = style.subplots(1, 2 * len(temperatures), height=1.9, width_ratios=(1, 0.85) * len(temperatures))
    top, reach = float(np.abs(weights).max()), 1.12
    panels = zip(axes[::2], axes[1::2], temperatures, means, weights, strict=True)
    for plane, table, temperature, mean, weight in panels:
        circle = np.linspace(0, 2 * np.pi, 181)
        plane.plot(np.cos(circle), np.sin(circle), color=style.FAINT, linewidth=0.9, linestyle="-")
        for k, (field, direction, name) in enumerate(zip(fields, mean, names, strict=True)):
            style.arrow(plane, (0, 0), tuple(field), style.GREY, width=0.9, size=7)
            style.arrow(plane, (0, 0), tuple(direction), BLUE, width=2.0, size=9, zorder=4)
            plane.plot(*direction, color=BLUE, marker=",", linestyle="none")
            end = 1.0 + 0.11 / max(float(np.linalg.norm(field)), 0.2)
            plane.text(*(end * field), name, color=style.GREY, ha="center", va="center", fontsize=7.5)
            if (length := float(np.linalg.norm(direction))) > 0.3:
                # Beside the tip, to the right and the left in turn, since neighbours point the same way.
                aside = np.array([direction[1], -direction[0]]) * (0.13 - 0.26 * (k % 2)) / length
                plane.text(*(direction + aside), name, color=BLUE, ha="center", va="center", fontsize=7.5)
        plane.set(xlim=(-reach, reach + 0.1), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
        plane.set_title(f"$T = {temperature:g}$", loc="center")
        plane.spines[:].set(visible=True, color=style.FAINT)
        table.imshow(weight, cmap=style.DIVERGING, vmin=-top, vmax=top)
        for (row, column), value in np.ndenumerate(weight):
            colour = ON_DARK if abs(value) > 0.62 * top else ON_LIGHT
            text = f"{round(value, 1) + 0.0:.1f}".replace("-", "\N{MINUS SIGN}")
            table.text(column, row, text, color=colour, ha="center", va="center", fontsize=6)
        table.set_xticks(range(len(names)), names, fontsize=7)
        table.set_yticks(range(len(names)), names, fontsize=7)
        table.tick_params(length=0)
        table.set_title("weights", loc="center")
    return figure


def live_markup(fields: np.ndarray, couplings: np.ndarray, *, names: Sequence[str], temperature: float) -> str:
    """The numbers of the live model and the scripts that draw it, as markup for the page.

    ``fields`` (N, 2) lie in the unit square around zero, ``couplings`` (N, N) are symmetric. The scripts are
    ``book/_static/live/kernel.js`` and ``free-energy.js`` beside it; where they are missing, nothing of this is seen.
    """
    content = {
        "names": list(names),
        "fields": np.asarray(fields, dtype=float).tolist(),
        "couplings": np.asarray(couplings, dtype=float).tolist(),
        "temperature": float(temperature),
    }
    return scripts.markup("free-energy", content)


@style.house
def contour(
    real: np.ndarray,
    imaginary: np.ndarray,
    heights: np.ndarray,
    *,
    saddle: tuple[float, float],
    eigenvalues: np.ndarray,
    along_real: tuple[np.ndarray, np.ndarray],
    along_imaginary: tuple[np.ndarray, np.ndarray],
) -> Figure:
    """Re phi over complex t (one t at all sites), and along the two lines through its saddle.

    ``heights`` (len(imaginary), len(real)) and both pairs (position, Re phi) are measured from the saddle, which is
    given as (t*, 0). ``eigenvalues`` are those of the couplings: the singularities.
    """
    figure, (plane, right, up) = style.subplots(1, 3, height=2.8, width_ratios=(1.5, 1, 1))
    levels = np.array([-3.0, -2.0, -1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0, 3.0])
    style.contour_lines(plane, real, imaginary, heights, levels, style.GREY, width=0.6)
    plane.axvline(saddle[0], color=BLUE, linewidth=1.6, linestyle="--")
    plane.axhline(0, color=style.INK, linewidth=1.0, linestyle="-")
    plane.plot(*saddle, color=BLUE, marker="o", markersize=6, linestyle="none", zorder=6)
    plane.plot(eigenvalues, np.zeros_like(eigenvalues), color=ORANGE, marker="x", linestyle="none", zorder=6)
    style.label(plane, "path of integration", (saddle[0], float(imaginary[-1])), BLUE, (-4, -8), ha="right", box=True)
    style.label(plane, "$t^*$", saddle, BLUE, (8, 8), box=True)
    style.label(plane, "eigenvalues of $J$", (float(eigenvalues[-1]), 0), ORANGE, (-12, -16), ha="right", box=True)
    plane.set(
        xlabel=r"$\mathrm{Re}\,t$",
        ylabel=r"$\mathrm{Im}\,t$",
        xlim=(real[0], real[-1]),
        ylim=(imaginary[0], imaginary[-1]),
    )
    right.plot(*along_real, color=style.INK, linestyle="-")
    right.set(xlabel=r"$t$ real", ylabel=r"$\mathrm{Re}\,\varphi - \varphi(t^*)$")
    up.plot(*along_imaginary, color=BLUE, linestyle="--")
    up.set(xlabel=r"$\mathrm{Im}\,t$ at $\mathrm{Re}\,t = t^*$")
    for ax, place in ((right, saddle[0]), (up, 0.0)):
        ax.plot([place], [0], color=BLUE, marker="o", markersize=6, linestyle="none", zorder=6)
    style.letters(plane, right, up)
    return figure


@style.house
def auxiliary(
    t: np.ndarray,
    values: Mapping[str, np.ndarray],
    terms: Mapping[str, np.ndarray],
    *,
    largest_eigenvalue: float,
    saddle: float,
) -> Figure:
    """phi with its three terms, phi' and phi'' per site along one auxiliary variable.

    ``values`` holds "phi", "slope", "curvature"; ``terms`` "linear", "determinant", "field". Below the largest
    eigenvalue of the couplings the ground is hatched.
    """
    figure, axes = style.subplots(1, 3, height=2.9, width_ratios=(1.35, 1, 1))
    names = {"phi": r"$\varphi / N$", "slope": r"$\varphi' / N$", "curvature": r"$\varphi'' / N$"}
    limits = {"phi": (-1.1, 3.2), "slope": (-4.0, 4.0), "curvature": (-6.0, 12.0)}
    for ax, (name, label) in zip(axes, names.items(), strict=True):
        ax.axvspan(0, largest_eigenvalue, facecolor="none", edgecolor=style.FAINT, hatch="////", linewidth=0)
        ax.axvline(saddle, color=style.GREY, linewidth=0.9, linestyle=":")
        if name == "phi":
            for term, curve in terms.items():
                colour, line = TERMS[term]
                valid = t > largest_eigenvalue
                ax.plot(t[valid], curve[valid], color=colour, linestyle=line, linewidth=1.1)
                end = (float(t[-1]), float(curve[-1]))
                style.label(ax, TERM_LABELS[term], end, colour, (-2, TERM_OFFSETS[term]), ha="right")
        else:
            ax.axhline(0, color=style.GREY, linewidth=0.8, linestyle="-", zorder=0)
        valid = t > largest_eigenvalue
        ax.plot(t[valid], values[name][valid], color=BLUE, linestyle="-", linewidth=2.0)
        ax.plot(t[~valid], values[name][~valid], color=BLUE, linestyle="-", linewidth=0.4, alpha=0.6)
        ax.set(xlabel="$t$", ylabel=label, ylim=limits[name], xlim=(0, t[-1]))
    place = int(np.searchsorted(t, 1.9 * saddle))
    style.label(axes[0], r"$\varphi$", (float(t[place]), float(values["phi"][place])), BLUE, (-4, 6), ha="right")
    style.label(axes[0], "$t^*$", (saddle, limits["phi"][0]), style.GREY, (4, 4))
    style.letters(*axes)
    return figure


def _frame(ax: Axes, t: np.ndarray, phi: np.ndarray, t_star: float, beta: float) -> None:
    ax.semilogx(t, phi, color=BLUE, linestyle="-", linewidth=1.8)
    ax.plot([t_star], [0], color=BLUE, marker="o", markersize=5, linestyle="none", zorder=6)
    ax.axvline(t_star, color=style.GREY, linewidth=0.9, linestyle=":")
    ax.set(xlim=(t[0], t[-1]))
    ax.set_title(rf"$\beta = {beta:.3g}$", loc="left")


@style.house
def sweep_strip(t: np.ndarray, phis: np.ndarray, *, betas: np.ndarray, t_stars: np.ndarray) -> Figure:
    """phi(t) / N above its saddle at six inverse temperatures, all on the same axes: a strip of frames.

    ``phis`` is (6, len(t)).
    """
    figure, axes = style.subplots(2, 3, height=3.6, sharex=True, sharey=True)
    for ax, phi, t_star, beta in zip(axes.flat, phis, t_stars, betas, strict=True):
        _frame(ax, t, phi, float(t_star), float(beta))
        ax.set_ylim(-0.15, 3.0)
    for ax in axes[:, 0]:
        ax.set_ylabel(r"$(\varphi - \varphi^*) / N$")
    for ax in axes[-1]:
        ax.set_xlabel("$t$")
        style.plain_ticks(ax.xaxis, (0.2, 1, 5, 20))
    return figure


@style.house
def sweep_frame(
    t: np.ndarray,
    phi: np.ndarray,
    *,
    frame: int,
    betas: np.ndarray,
    t_stars: np.ndarray,
    free_energy: Mapping[str, np.ndarray],
) -> Figure:
    """One frame: phi(t) / N above its saddle, and f = u - T s per site against beta with a mark at this beta."""
    # A layout engine would place each frame by its own labels, and the picture would tremble.
    figure, (left, right) = style.subplots(1, 2, height=2.5, layout="none")
    figure.subplots_adjust(left=0.08, right=0.97, bottom=0.2, top=0.9, wspace=0.25)
    _frame(left, t, phi, float(t_stars[frame]), float(betas[frame]))
    left.set(xlabel="$t$", ylabel=r"$(\varphi - \varphi^*) / N$", ylim=(-0.15, 3.0))
    style.plain_ticks(left.xaxis, (0.2, 1, 5, 20))
    for name, (colour, line) in QUANTITIES.items():
        right.semilogx(betas, free_energy[name], color=colour, linestyle=line)
        right.plot(
            betas[frame], free_energy[name][frame], color=colour, marker="o", markersize=5, linestyle="none", zorder=6
        )
        middle = len(betas) // 2 + 1
        place = (float(betas[middle]), float(free_energy[name][middle]))
        style.label(right, f"${name}$", place, colour, (-8, -12) if name == "u" else (6, 6), ha="center")
    right.axvline(float(betas[frame]), color=style.GREY, linewidth=0.9, linestyle=":")
    right.set(xlabel=r"$\beta$", ylabel="per site and component")
    style.plain_ticks(right.xaxis, (0.1, 1, 10))
    return figure


@style.house
def landscape(
    first: np.ndarray,
    second: np.ndarray,
    heights: np.ndarray,
    *,
    boundary: tuple[np.ndarray, np.ndarray],
    saddle: tuple[float, float],
    paths: Sequence[np.ndarray],
    residuals: Sequence[np.ndarray],
) -> Figure:
    """phi(t1, t2) of two spins above its minimum with the paths of Newton's method, and their residuals step by step.

    ``heights`` (len(second), len(first)) is NaN outside V > 0, whose edge is ``boundary``; each path is (steps, 2).
    """
    figure, (left, right) = style.subplots(1, 2, height=3.1, width_ratios=(1.15, 1))
    levels = np.array([0.01, 0.04, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0])
    style.contour_lines(left, first, second, heights, levels, style.GREY, width=0.6)
    left.plot(*boundary, color=ORANGE, linestyle="--", linewidth=1.4)
    style.label(left, r"$\det V = 0$", (boundary[0][0], boundary[1][0]), ORANGE, (10, -10), box=True)
    for k, (path, residual) in enumerate(zip(paths, residuals, strict=True)):
        look = {
            "color": FAMILY[k],
            "linestyle": FAMILY_LINES[k],
            "marker": FAMILY_MARKERS[k],
            "markersize": 4,
            "linewidth": 1.2,
        }
        left.plot(path[:, 0], path[:, 1], **look)
        right.semilogy(np.arange(len(residual)), residual, **look)
    left.plot(*saddle, color=style.INK, marker="*", markersize=11, linestyle="none", zorder=7)
    style.label(left, "$t^*$", saddle, style.INK, (12, -4), box=True)
    left.set(xlabel="$t_1$", ylabel="$t_2$", xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
    right.set(xlabel="Newton step", ylabel=r"$\max_i |\partial\varphi/\partial t_i| / \beta$")
    right.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    style.decades(right.yaxis, 4)
    style.letters(left, right)
    return figure


@style.house
def orders(dims: np.ndarray, errors: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """|error| of the free energy against D, for one and two spins: the saddle, the next order, guides of both slopes.

    ``errors`` maps "one spin" and "two spins" to {"saddle": ..., "next order": ...}, each (len(dims),).
    """
    figure, axes = style.subplots(1, 2, height=3.0, sharey=True)
    looks = {"saddle": (BLUE, "o", 1), "next order": (GREEN, "^", 2)}
    models = {1: "Ising", 2: "XY", 3: "Heisenberg"}
    for ax, (title, curves) in zip(axes, errors.items(), strict=True):
        for name, (colour, marker, order) in looks.items():
            values = np.abs(curves[name])
            ax.loglog(dims, values, color=colour, marker=marker, linestyle="-", linewidth=1.2)
            guide = values[-1] * (dims / dims[-1]) ** -float(order)
            ax.loglog(dims, guide, color=style.GREY, linestyle=":", linewidth=0.9, zorder=0)
            middle = len(dims) - 3
            style.label(ax, name, (float(dims[middle]), float(values[middle])), colour, (6, 6))
            style.label(
                ax, f"slope $-{order}$", (float(dims[middle]), float(values[middle])), style.GREY, (-4, -13), ha="right"
            )
        for dim, name in models.items():
            if dim in dims:
                height = float(np.abs(curves["saddle"])[list(dims).index(dim)])
                style.label(ax, name, (dim, height), style.INK, (0, 7 + 9 * (dim == 2)), ha="left")
        ax.set_title(title, loc="center")
        ax.set_xlabel("$D$")
        style.plain_ticks(ax.xaxis, (1, 4, 16, 64, 256))
    axes[0].set_ylabel(r"$|f - f_{\mathrm{exact}}|$")
    top = max(float(np.abs(c["saddle"]).max()) for c in errors.values())
    axes[0].set_ylim(top=6 * top)
    for ax in axes:
        style.decades(ax.yaxis)
    style.letters(*axes)
    return figure


@style.house
def response(
    lengths: np.ndarray, spring: np.ndarray, rigid: Mapping[int, np.ndarray], scaled_errors: Mapping[int, np.ndarray]
) -> Figure:
    """Mean of one rigid spin of D components in a field and of one on a spring, and the error of the spring times D.

    All arrays have the shape of ``lengths``; ``rigid`` and ``scaled_errors`` map D to them.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.8)
    for colour, line, (dim, mean) in style.dressed(FAMILY, FAMILY_LINES, rigid.items()):
        left.plot(lengths, mean, color=colour, linestyle=line, linewidth=1.4, label=f"sphere, $D = {dim}$")
    left.plot(lengths, spring, color=BLUE, linestyle=(0, (4, 2)), linewidth=2.0, label="spring", zorder=3)
    left.legend(loc="lower right")
    end = float(lengths[-1])
    left.set(xlabel=r"length of the field, $|\mathbf{h}|$", ylabel=r"$|\mathbf{m}|$", ylim=(0, 1), xlim=(0, end))
    for colour, line, (dim, error) in style.dressed(FAMILY, FAMILY_LINES, scaled_errors.items()):
        right.plot(lengths, error, color=colour, linestyle=line, label=f"$D = {dim}$")
    right.legend(loc="upper right")
    right.axhline(0, color=style.GREY, linewidth=0.8, linestyle="-", zorder=0)
    right.set(xlabel=r"length of the field, $|\mathbf{h}|$", ylabel=r"$D \times$ error of the spring", xlim=(0, end))
    style.letters(left, right)
    return figure


@style.house
def curvature(
    matrices: Mapping[str, np.ndarray],
    *,
    strengths: np.ndarray,
    gradient_errors: Mapping[str, np.ndarray],
) -> Figure:
    """The Hessian by autodiff and as printed, and the error of a gradient through the saddle that uses each.

    ``matrices`` holds "autodiff" and "printed", (N, N); ``gradient_errors`` "printed" and "correct" against the spread
    of the couplings in units of 1 / sqrt(N D).
    """
    figure, (first, second, right) = style.subplots(1, 3, height=2.7, width_ratios=(1, 1, 1.35))
    top = max(float(np.abs(m).max()) for m in matrices.values())
    titles = {"autodiff": "true Hessian", "printed": "as printed"}
    for ax, (name, title) in zip((first, second), titles.items(), strict=True):
        # A logarithmic scale, since the printed diagonal swallows what lies beside it.
        size = np.log10(np.clip(np.abs(matrices[name]), 1e-3 * top, None))
        image = ax.imshow(size, cmap=style.SEQUENTIAL, vmin=np.log10(1e-3 * top), vmax=np.log10(top))
        ax.set_title(title, loc="center")
        ax.set_xlabel("$j$")
        ax.set_xticks([])
        ax.set_yticks([])
    first.set_ylabel("$i$")
    figure.colorbar(
        image, ax=second, label=r"$\log_{10}|\partial^2\varphi/\partial t_i\,\partial t_j|$", fraction=0.06, pad=0.04
    )
    for name, colour, line, marker in (("printed", ORANGE, "--", "s"), ("correct", BLUE, "-", "o")):
        right.loglog(strengths, gradient_errors[name], color=colour, linestyle=line, marker=marker)
        place = (float(strengths[-1]), float(gradient_errors[name][-1]))
        style.label(right, name, place, colour, (0, 8), ha="right")
    right.set(xlabel=r"spread of $J_{ij}$ times $\sqrt{ND}$", ylabel="relative error of the gradient")
    style.plain_ticks(right.xaxis, strengths[:: max(1, len(strengths) // 4)].round(2))
    right.set_ylim(1e-16, 10)
    style.decades(right.yaxis, 4)
    style.letters(first, second, right)
    return figure


@style.house
def attention(
    matrices: Sequence[np.ndarray],
    titles: Sequence[str],
    *,
    orders: np.ndarray,
    errors: Mapping[str, np.ndarray],
) -> Figure:
    """V^-1 as an attention matrix, the first terms of its Neumann series, and the error of partial sums.

    All matrices share one scale; ``errors`` maps a label to the relative error after each number of terms.
    """
    figure = plt.figure(figsize=(style.WIDTHS["page"], 3.5))
    grid = figure.add_gridspec(2, 4, height_ratios=(1, 1), width_ratios=(1, 1, 0.15, 2.0))
    top = max(float(np.abs(m).max()) for m in matrices)
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    panels = []
    for place, matrix, title in zip(places, matrices, titles, strict=True):
        ax = figure.add_subplot(grid[place])
        image = ax.imshow(matrix, cmap=style.DIVERGING, vmin=-top, vmax=top)
        ax.set_title(title, loc="center", fontsize=8.5)
        ax.set_xticks([])
        ax.set_yticks([])
        panels.append(ax)
    bar = figure.add_subplot(grid[:, 2])
    figure.colorbar(image, cax=bar, label="weight of input $j$ at output $i$")
    right = figure.add_subplot(grid[:, 3])
    for k, (label, values) in enumerate(errors.items()):
        right.semilogy(
            orders, values, color=FAMILY[k], linestyle=FAMILY_LINES[k], marker=FAMILY_MARKERS[k], markersize=3.5
        )
        # Above a rising curve and to the right of a falling one, where nothing else is drawn.
        if values[-1] > 1:
            nearest, offset, side = 2 * len(orders) // 3, (-8.0, 4.0), "right"
        else:
            steep = values[-1] < 1e-8
            nearest, offset, side = int(np.argmax(values < 1e-8)) if steep else len(orders) // 3, (8.0, 3.0), "left"
        style.label(right, label, (float(orders[nearest]), float(values[nearest])), FAMILY[k], offset, ha=side)
    right.axhline(1, color=style.GREY, linewidth=0.8, linestyle=":")
    right.set(xlabel="number of terms", ylabel="relative error of the sum")
    style.decades(right.yaxis, 4)
    style.letters(right)
    return figure


@style.house
def weights(matrices: Mapping[str, np.ndarray], couplings: np.ndarray) -> Figure:
    """Weights of softmax attention and of a magnet, on one scale, and between them the couplings of the magnet.

    ``matrices`` holds "softmax" and "magnet"; all are (N, N).
    """
    figure, axes = style.subplots(1, 3, height=2.7)
    top = max(float(np.abs(m).max()) for m in matrices.values())
    own = float(np.abs(couplings).max())
    shown = [
        (matrices["softmax"], top, "softmax"),
        (couplings, own, "couplings $J$"),
        (matrices["magnet"], top, r"magnet, $\frac{1}{2}V^{-1}$"),
    ]
    for ax, (matrix, limit, title) in zip(axes, shown, strict=True):
        image = ax.imshow(matrix, cmap=style.DIVERGING, vmin=-limit, vmax=limit)
        ax.set(xticks=[], yticks=[], xlabel="from token $j$")
        ax.set_title(title, loc="center")
        figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    axes[0].set_ylabel("to token $i$")
    style.letters(*axes)
    return figure


@style.house
def strong(scales: np.ndarray, kept: np.ndarray, errors: np.ndarray, edges: np.ndarray) -> Figure:
    """Share of the inputs' directions that is left in the outputs, and the largest eigenvalue of J_ij / sqrt(t_i t_j).

    All arrays have the shape of ``scales``, the strength of the couplings in units of the source's.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.6)
    left.errorbar(scales, kept, errors, color=BLUE, marker="o", linestyle="-", linewidth=1.2)
    left.set(xscale="log", ylim=(0, 1.05), ylabel="directions, outputs over inputs")
    right.semilogx(scales, edges, color=ORANGE, marker="s", linestyle="--", linewidth=1.2)
    right.axhline(1, color=style.GREY, linewidth=0.8, linestyle=":")
    right.set(ylim=(0, 1.05), ylabel=r"largest eigenvalue of $J_{ij}/\sqrt{t_i t_j}$")
    for ax in (left, right):
        ax.set_xlabel("strength of the couplings")
        style.plain_ticks(ax.xaxis, scales)
    style.letters(left, right)
    return figure


@style.house
def channels(
    closed_form: np.ndarray, automatic: np.ndarray, *, rho: np.ndarray, shares: np.ndarray, labels: Sequence[str]
) -> Figure:
    """Channel mixing by autodiff against its closed form; the share of it that a token can know, against rho.

    ``closed_form`` and ``automatic`` have equal shapes; ``shares`` (sizes, draws) belong to ``rho`` (sizes,) and
    ``labels``. The line is rho / (1 + rho).
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9)
    ends = np.array([closed_form.min(), closed_form.max()])
    left.plot(ends, ends, color=style.GREY, linestyle=":", linewidth=1.0)
    left.plot(
        closed_form.ravel(), automatic.ravel(), color=BLUE, marker="o", markersize=2.4, linestyle="none", alpha=0.6
    )
    left.set(xlabel="closed form", ylabel="automatic differentiation")
    left.ticklabel_format(style="sci", scilimits=(-2, 2))
    line = np.logspace(np.log10(rho.min() / 1.6), np.log10(rho.max() * 1.6), 80)
    right.semilogx(line, line / (1 + line), color=style.GREY, linestyle=":", linewidth=1.2)
    style.label(right, r"$\rho/(1+\rho)$", (float(line[66]), float(line[66] / (1 + line[66]))), style.GREY, (10, -16))
    for place, points, text in zip(rho, shares, labels, strict=True):
        right.plot(np.full(len(points), place), points, color=BLUE, marker="o", markersize=4, linestyle="none")
        style.label(right, text, (float(place), float(points.max())), style.INK, (-6, 5), ha="right")
    right.set(
        xlabel=r"$\rho = (N - 1)/D$", ylabel="share known to the token", ylim=(0, 1), xlim=(rho.min() / 3, line[-1])
    )
    style.letters(left, right)
    return figure
