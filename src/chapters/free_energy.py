"""The figures of the chapter ``free-energy``: each function draws given results and returns the figure.

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

from chapters import style

__all__ = [
    "attention",
    "channels",
    "contour",
    "curvature",
    "landscape",
    "orders",
    "sweep_frame",
    "sweep_strip",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
FAMILY = [PURPLE, GREEN, OCHRE, BROWN]
FAMILY_MARKERS = ["D", "^", "v", "s"]
FAMILY_LINES = ["-", "--", "-.", ":"]
ON_DARK, ON_LIGHT = "#fafafa", "#202020"
"""Ink on an image, which keeps its colours in the dark variant."""
QUANTITIES = {"f": (BLUE, "-"), "u": (ORANGE, "--"), "-Ts": (GREEN, "-.")}


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
        # A logarithmic scale, since the printed diagonal hides all other entries.
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
        # Above a rising and to the right of a falling curve, where the space is free.
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
def channels(
    closed_form: np.ndarray, automatic: np.ndarray, *, rho: np.ndarray, shares: np.ndarray, labels: Sequence[str]
) -> Figure:
    """Channel mixing by autodiff against its closed form; the share of it that depends on a token alone, against rho.

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
