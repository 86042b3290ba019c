"""Draws the module of the post again."""

from __future__ import annotations

from matplotlib.figure import Figure

from chapters import style

BLUE, ORANGE, GREEN, PURPLE = style.QUALITATIVE[:4]


@style.house
def module() -> Figure:
    """The forward pass of the module, its loop through time, and where its entropy production is read."""
    figure, ax = style.subplots(1, 1, height=2.7)
    style.box(ax, (0.0, 0.0), (1.7, 0.56), "inputs $x_i(t)$", GREEN)
    style.box(ax, (3.0, 1.2), (2.7, 0.56), r"couplings $J(x)$, softmax", PURPLE)
    style.box(ax, (3.0, 0.0), (2.4, 0.56), "$x_i$ + memory FFN$(x_i)$", GREEN)
    style.box(ax, (6.2, 0.0), (2.2, 0.56), r"effective field $\theta_i(t)$", style.GREY)
    style.box(ax, (9.2, 0.0), (1.8, 0.56), "outputs $m_i(t)$", BLUE)
    style.box(ax, (6.2, 1.2), (2.2, 0.56), r"$\sum_j J_{ij}\,m_j(t-1)$", PURPLE)
    style.box(ax, (6.2, -1.3), (2.4, 0.56), r"entropy production $\sigma$", ORANGE)
    style.arrow(ax, (0.95, 0.15), (1.58, 1.08), PURPLE, size=11)
    style.arrow(ax, (0.95, 0.0), (1.72, 0.0), GREEN, size=11)
    style.arrow(ax, (4.28, 0.0), (5.02, 0.0), GREEN, size=11)
    style.arrow(ax, (4.43, 1.2), (5.02, 1.2), PURPLE, size=11)
    style.arrow(ax, (6.2, 0.85), (6.2, 0.36), PURPLE, size=11)
    style.arrow(ax, (7.38, 0.0), (8.22, 0.0), BLUE, size=11)
    style.arrow(ax, (9.2, 0.36), (7.42, 1.2), BLUE, bend=0.35, size=11)
    style.arrow(ax, (6.2, -0.36), (6.2, -0.95), ORANGE, size=11)
    style.arrow(ax, (4.9, -1.3), (3.0, -0.4), ORANGE, bend=-0.3, size=11)
    ax.text(9.25, 1.15, "one step\nlater", color=BLUE, fontsize=8.5, ha="left", va="center")
    ax.text(3.6, -1.35, "gradient, if it is a loss", color=ORANGE, fontsize=8.5, ha="right", va="center")
    ax.set(xlim=(-1.0, 10.4), ylim=(-1.8, 1.7))
    ax.axis("off")
    return figure
