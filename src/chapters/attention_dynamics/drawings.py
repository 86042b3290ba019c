"""Figures 1 and 2 of the source, redrawn: attention as a Hopfield network, and one turn of the loop."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from chapters import style

BLUE, ORANGE, GREEN, PURPLE = style.QUALITATIVE[:4]


def _circles(ax: Axes, x: float, ys: np.ndarray, colour: str, *, filled: bool = True) -> None:
    for y in ys:
        face = colour if filled else style.PAPER
        ax.add_patch(Circle((x, y), 0.13, facecolor=face, edgecolor=colour, linewidth=1.2, zorder=4))


def _square(ax: Axes, x: float, y: float, text: str, colour: str, *, size: float = 0.36) -> None:
    ax.add_patch(
        Rectangle(
            (x - size / 2, y - size / 2), size, size, facecolor=style.PAPER, edgecolor=colour, linewidth=1.2, zorder=4
        )
    )
    ax.text(x, y, text, ha="center", va="center_baseline", fontsize=10.5, color=colour, zorder=5)


def _bonds(ax: Axes, x0: float, ys0: np.ndarray, x1: float, ys1: np.ndarray, colour: str) -> None:
    for y0 in ys0:
        for y1 in ys1:
            ax.plot([x0, x1], [y0, y1], color=colour, linewidth=0.5, linestyle="-", zorder=1)


@style.house
def hopfield() -> Figure:
    """Two bipartite Hopfield networks: a query meets a key through M features; attention makes the next token."""
    figure, (left, right) = style.subplots(1, 2, height=2.7, width_ratios=(1.25, 1))
    bits = np.linspace(2.0, 0.0, 5)
    features = np.array([1.7, 1.0, 0.3])
    _bonds(left, 0.0, bits, 1.15, features, style.GREY)
    _bonds(left, 2.55, features, 3.7, bits, style.GREY)
    _circles(left, 0.0, bits, BLUE)
    _circles(left, 3.7, bits, ORANGE, filled=False)
    for number, y in enumerate(features, start=1):
        _square(left, 1.15, y, f"$m^q_{number}$", BLUE, size=0.44)
        _square(left, 2.55, y, f"$m^k_{number}$", ORANGE, size=0.44)
        style.arrow(left, (1.39, y), (2.31, y))
    left.text(1.85, 1.06, r"$\gamma$", ha="center", va="bottom", color=style.INK, fontsize=12)
    for x, text, colour in ((0.57, "$W^q$", BLUE), (3.13, "$W^k$", ORANGE)):
        left.text(x, 2.24, text, ha="center", color=colour, fontsize=12)
    left.text(0.0, -0.32, "query:\nnewest token $x_t$", ha="center", va="top", fontsize=8.5, color=BLUE)
    left.text(3.7, -0.32, "key: a token $x_\\tau$\nof the window", ha="center", va="top", fontsize=8.5, color=ORANGE)
    left.text(1.85, -0.32, "overlaps", ha="center", va="top", fontsize=8.5, color=style.GREY)
    left.set(xlim=(-0.75, 4.55), ylim=(-0.95, 2.55), aspect="equal")

    _bonds(right, 0.9, features, 2.5, bits, style.GREY)
    for number, y in enumerate(features, start=1):
        _square(right, 0.68, y, f"$A_{number}$", GREEN, size=0.44)
        style.arrow(right, (-0.15, y), (0.44, y), GREEN)
    _circles(right, 2.5, bits, PURPLE, filled=False)
    right.text(1.55, 2.24, "$W^o$", ha="center", color=GREEN, fontsize=12)
    right.text(-0.35, -0.32, "attention\nvalues", ha="left", va="top", fontsize=8.5, color=GREEN)
    right.text(2.5, -0.32, "bits of the\nnext token", ha="center", va="top", fontsize=8.5, color=PURPLE)
    right.text(2.75, 1.0, r"$\beta$", ha="left", va="center", color=style.INK, fontsize=12)
    right.set(xlim=(-0.6, 3.3), ylim=(-0.95, 2.55), aspect="equal")
    for letter, ax in zip("ab", (left, right), strict=True):
        ax.axis("off")
        ax.text(0.0, 1.0, letter, transform=ax.transAxes, fontweight="bold", fontsize=9.5, va="top")
    return figure


@style.house
def layer() -> Figure:
    """One step of the closed loop: window of four tokens, keys, values, one query, attention, next token."""
    figure, ax = style.subplots(height=2.9)
    xs = np.array([0.0, 1.0, 2.0, 3.0])
    names = ["$x_{t-3}$", "$x_{t-2}$", "$x_{t-1}$", "$x_t$"]
    for x, name in zip(xs, names, strict=True):
        _token(ax, x, BLUE, positions=int(x))
        ax.text(x, -0.95, name, ha="center", va="top", color=BLUE, fontsize=11)
        style.arrow(ax, (x - 0.1, 0.95), (x - 0.1, 1.42))
        style.arrow(ax, (x + 0.17, 0.95), (x + 0.17, 1.42))
        ax.text(x - 0.1, 1.58, "$k$", ha="center", va="center", color=ORANGE, fontsize=11)
        ax.text(x + 0.17, 1.58, "$v$", ha="center", va="center", color=GREEN, fontsize=11)
    ax.text(3.55, 1.58, "$q$", ha="center", va="center", color=BLUE, fontsize=11)
    style.arrow(ax, (3.25, 0.75), (3.5, 1.42))
    box = FancyBboxPatch(
        (-0.35, 1.82), 4.2, 0.62, boxstyle="round,pad=0.03", facecolor=style.PAPER, edgecolor=style.GREY, linewidth=1.0
    )
    ax.add_patch(box)
    ax.text(
        1.72,
        2.13,
        r"$A_t=\sum_\tau\ \mathrm{softmax}_\tau(\gamma\, m^q_t\!\cdot m^k_\tau)\ m^v_\tau$",
        ha="center",
        va="center",
        fontsize=11,
    )
    style.arrow(ax, (3.92, 2.13), (4.75, 2.13), GREEN)
    _square(ax, 5.0, 2.13, "$A_t$", GREEN, size=0.5)
    style.arrow(ax, (5.0, 1.86), (5.0, 1.0), GREEN)
    ax.text(5.12, 1.42, r"$W^o$, $\beta$: each bit drawn", ha="left", va="center", fontsize=8.5, color=GREEN)
    _token(ax, 5.0, PURPLE, positions=4)
    ax.text(5.0, -0.95, "$x_{t+1}$", ha="center", va="top", color=PURPLE, fontsize=11)
    ax.text(5.3, 0.35, "semantic bits", ha="left", va="center", fontsize=8.5, color=style.GREY)
    ax.text(
        5.3, -0.62, r"positional bits, weight $\varepsilon$", ha="left", va="center", fontsize=8.5, color=style.GREY
    )
    style.arrow(ax, (4.75, 0.1), (3.35, 0.1), PURPLE, linestyle=(0, (4, 2)))
    ax.text(4.05, 0.22, "enters,\noldest leaves", ha="center", va="bottom", fontsize=8.5, color=PURPLE)
    ax.set(xlim=(-0.6, 7.3), ylim=(-1.35, 2.6), aspect="equal")
    ax.axis("off")
    return figure


def _token(ax: Axes, x: float, colour: str, *, positions: int) -> None:
    """A column of five semantic bits above two positional ones, which count to four."""
    signs = np.array([1, 0, 1, 1, 0])
    for y, sign in zip(np.linspace(0.8, -0.16, 5), np.roll(signs, positions), strict=True):
        face = colour if sign else style.PAPER
        ax.add_patch(Circle((x, y), 0.1, facecolor=face, edgecolor=colour, linewidth=1.0, zorder=4))
    for y, sign in zip((-0.5, -0.74), (positions % 4 // 2, positions % 2), strict=True):
        face = colour if sign else style.PAPER
        ax.add_patch(
            Rectangle((x - 0.09, y - 0.09), 0.18, 0.18, facecolor=face, edgecolor=colour, linewidth=1.0, zorder=4)
        )
