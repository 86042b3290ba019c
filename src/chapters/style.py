"""Sizes and colours of the drawings of the book, whose style is the sheet ``spinbook.book``.

A figure is drawn once, with the light colours below. What saves it exchanges them for dark ones; markup of drawings
takes these from ``DARK``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

P = ParamSpec("P")
R = TypeVar("R")

PAPER = "#ffffff"
INK = "#1b1f24"
GREY = "#5f6773"
FAINT = "#d5d9df"
QUALITATIVE = ["#0069a8", "#c94f00", "#00805c", "#9a4294", "#9a7400", "#7a2e2e"]

DARK = {
    PAPER: "#14181e",
    INK: "#e6e9ee",
    GREY: "#a3acb9",
    FAINT: "#3a4150",
    "#0069a8": "#5ab8f0",
    "#c94f00": "#ff9a57",
    "#00805c": "#3ecfa3",
    "#9a4294": "#dd97d8",
    "#9a7400": "#e8c455",
    "#7a2e2e": "#e58f8f",
}
"""Light colour -> dark colour."""


def themed(look: str) -> str:
    """A style sheet with the colours of the figures in the places of their names, ``%(ink)s`` and ``%(dark_ink)s``."""
    names = {"ink": INK, "paper": PAPER, "grey": GREY, "faint": FAINT}
    names |= dict(zip(("blue", "orange", "green"), QUALITATIVE, strict=False))
    return look % (names | {f"dark_{name}": DARK[colour] for name, colour in names.items()})


WIDTHS = {"page": 7.0, "column": 4.6}
"""Figure widths in inches."""


def house(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of a figure function: everything it draws is drawn in the book's style."""
    return plt.style.context("spinbook.book")(function)


def subplots(
    nrows: int = 1,
    ncols: int = 1,
    *,
    width: Literal["page", "column"] = "page",
    height: float = 2.8,
    **options: Any,
) -> tuple[Figure, Any]:
    """``matplotlib.pyplot.subplots`` in the book's style.

    ``width`` names an entry of ``WIDTHS``, ``height`` is in inches; other keywords go to
    ``matplotlib.pyplot.subplots``.

    >>> figure, axes = subplots(1, 2, height=2.0)
    >>> figure.get_size_inches().tolist()
    [7.0, 2.0]
    >>> plt.close(figure)
    """
    with plt.style.context("spinbook.book"):
        return plt.subplots(nrows, ncols, figsize=(WIDTHS[width], height), **options)


def arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str = GREY,
    *,
    size: float = 10.0,
    bend: float = 0.0,
    **options: Any,
) -> None:
    """An arrow between two points in data coordinates, ending exactly there, bent by a part of its length."""
    look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": size, "shrinkA": 0, "shrinkB": 0, "zorder": 2}
    look |= {"color": colour, "linewidth": 1.3, "connectionstyle": f"arc3,rad={bend}"} | options
    ax.add_patch(FancyArrowPatch(posA=start, posB=end, **look))


def box(ax: Axes, centre: tuple[float, float], size: tuple[float, float], text: str, colour: str) -> None:
    """A rounded box on paper with its text in the middle; ``size`` is (width, height) in data coordinates."""
    (x, y), (width, height) = centre, size
    corner = (x - width / 2, y - height / 2)
    look: dict[str, Any] = {"boxstyle": "round,pad=0.05", "facecolor": PAPER, "edgecolor": colour, "linewidth": 1.3}
    ax.add_patch(FancyBboxPatch(corner, width, height, zorder=3, **look))
    ax.text(x, y, text, ha="center", va="center", color=INK, fontsize=9, zorder=4)


def band(ax: Axes, x: np.ndarray, values: np.ndarray, colour: str, **line: Any) -> None:
    """The mean of ``values`` (x, samples), in the band of all of them."""
    ax.fill_between(x, values.min(axis=1), values.max(axis=1), color=(*to_rgb(colour), 0.18), linewidth=0)
    ax.plot(x, values.mean(axis=1), color=colour, **line)
