"""Sizes, fonts and palettes of every figure in the book, in a light and a dark variant.

A figure is drawn once, with the light colours below. What saves it exchanges them for their dark counterparts,
``DARK``, and reads ``RC`` and ``PAPER``; colours outside the palette, colour maps among them, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, ParamSpec, TypeVar

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

__all__ = [
    "DARK",
    "DIVERGING",
    "FAINT",
    "GREY",
    "INK",
    "LINE_STYLES",
    "MARKERS",
    "PAPER",
    "QUALITATIVE",
    "RC",
    "SEQUENTIAL",
    "WIDTHS",
    "arrow",
    "averages",
    "band",
    "box",
    "contour_lines",
    "decades",
    "dressed",
    "house",
    "label",
    "landscape",
    "letters",
    "ordinary",
    "panel_label",
    "places",
    "plain_ticks",
    "subplots",
]

P = ParamSpec("P")
R = TypeVar("R")

PAPER = "#ffffff"
INK = "#1b1f24"
GREY = "#5f6773"
FAINT = "#d5d9df"
QUALITATIVE = ["#0069a8", "#c94f00", "#00805c", "#9a4294", "#9a7400", "#7a2e2e"]
SEQUENTIAL = "viridis"
DIVERGING = "PuOr"

DARK = {
    # Matplotlib's own black, in case an artist was made outside the house style; INK, further down, is what returns.
    "#000000": "#e6e9ee",
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

WIDTHS = {"page": 7.0, "column": 4.6}
"""Figure widths in inches."""

LINE_STYLES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2))]
MARKERS = ["o", "s", "^", "D", "v", "P"]

RC: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.facecolor": PAPER,
    "axes.grid": False,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.8,
    "axes.prop_cycle": cycler(color=QUALITATIVE, linestyle=LINE_STYLES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "errorbar.capsize": 2.0,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.edgecolor": PAPER,
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "image.cmap": SEQUENTIAL,
    "legend.edgecolor": FAINT,
    "legend.facecolor": PAPER,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "mathtext.fontset": "cm",
    "savefig.facecolor": PAPER,
    "svg.fonttype": "path",
    "text.color": INK,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.5,
}


def house(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of a figure function: everything it draws is drawn in the house style."""
    return mpl.rc_context(RC)(function)


def subplots(
    nrows: int = 1,
    ncols: int = 1,
    *,
    width: Literal["page", "column"] = "page",
    height: float = 2.8,
    **options: Any,
) -> tuple[Figure, Any]:
    """``matplotlib.pyplot.subplots`` in the house style.

    ``width`` names an entry of ``WIDTHS``, ``height`` is in inches; other keywords go to
    ``matplotlib.pyplot.subplots``.

    >>> figure, axes = subplots(1, 2, height=2.0)
    >>> figure.get_size_inches().tolist()
    [7.0, 2.0]
    >>> plt.close(figure)
    """
    if width not in WIDTHS:
        raise ValueError(f"width: expected one of {sorted(WIDTHS)}, got {width!r}")
    with mpl.rc_context(RC):
        return plt.subplots(nrows, ncols, figsize=(WIDTHS[width], height), **options)


def panel_label(ax: Axes, label: str) -> None:
    """Write a bold panel letter above the left end of the axes."""
    ax.set_title(label, loc="left", fontweight="bold", color=INK)


def dressed(*looks_and_items: Iterable[Any]) -> Iterator[Any]:
    """The items that the last argument holds, each behind its own look from every argument before.

    There may be more looks (colours, lines, markers, axes) than items, but not fewer: a curve without a look is an
    error.

    >>> list(dressed("abc", {"naive": 2, "TAP": 3}.items()))
    [('a', ('naive', 2)), ('b', ('TAP', 3))]
    """
    *looks, items = (list(column) for column in looks_and_items)
    for column in looks:
        if len(column) < len(items):
            raise ValueError(f"items: expected at most {len(column)}, as many as there are looks, got {len(items)}")
    return zip(*(column[: len(items)] for column in looks), items, strict=True)


def letters(*axes: Axes) -> None:
    """Write panel letters, in the order given."""
    for letter, ax in dressed("abcdefghijkl", axes):
        panel_label(ax, letter)


def label(
    ax: Axes,
    text: str,
    point: tuple[float, float],
    colour: str,
    offset: tuple[float, float] = (4.0, -3.0),
    *,
    ha: str = "left",
    va: str = "baseline",
    box: bool = False,
) -> None:
    """Write ``text`` in the colour of its curve, ``offset`` points from ``point``; ``box`` clears the ground for it."""
    ax.annotate(
        text,
        point,
        bbox={"facecolor": PAPER, "edgecolor": PAPER, "pad": 0.6} if box else None,
        zorder=8,
        xytext=offset,
        textcoords="offset points",
        color=colour,
        fontsize=8.5,
        annotation_clip=False,
        ha=ha,
        va=va,
    )


def ordinary(value: float, _: object = None) -> str:
    """An ordinary number, for matplotlib's ``FuncFormatter``: a figure with a lambda could not be drawn again."""
    return f"{value:g}"


def plain_ticks(axis: Axis, ticks: Sequence[float] | np.ndarray) -> None:
    """Label a logarithmic axis with ordinary numbers at ``ticks``."""
    axis.set_major_locator(ticker.FixedLocator(list(ticks)))
    axis.set_major_formatter(ticker.FuncFormatter(ordinary))
    axis.set_minor_locator(ticker.NullLocator())


def decades(axis: Axis, step: int = 1) -> None:
    """Ticks at every ``step``-th power of ten only.

    Over many decades minor ticks crowd the axis, and take seconds to lay out.
    """
    axis.set_major_locator(ticker.LogLocator(base=10.0**step, numticks=20))
    axis.set_minor_locator(ticker.NullLocator())


def arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str = GREY,
    *,
    width: float = 1.3,
    size: float = 10.0,
    bend: float = 0.0,
    **options: Any,
) -> None:
    """An arrow between two points in data coordinates, ending exactly there, bent by a part of its length."""
    look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": size, "shrinkA": 0, "shrinkB": 0, "zorder": 2}
    look |= {"color": colour, "linewidth": width, "connectionstyle": f"arc3,rad={bend}"} | options
    ax.add_patch(FancyArrowPatch(posA=start, posB=end, **look))


def box(
    ax: Axes,
    centre: tuple[float, float],
    size: tuple[float, float],
    text: str,
    colour: str,
    *,
    ink: str = INK,
    fontsize: float = 9.0,
    boxstyle: str = "round,pad=0,rounding_size=0.12",
) -> None:
    """A rounded box on paper with its text in the middle; ``size`` is (width, height) in data coordinates."""
    (x, y), (width, height) = centre, size
    corner = (x - width / 2, y - height / 2)
    look: dict[str, Any] = {"boxstyle": boxstyle, "facecolor": PAPER, "edgecolor": colour, "linewidth": 1.3}
    ax.add_patch(FancyBboxPatch(corner, width, height, zorder=3, **look))
    ax.text(x, y, text, ha="center", va="center", color=ink, fontsize=fontsize, zorder=4)


def places(ax: Axes, points: np.ndarray, colour: str) -> None:
    """Dots at ``points`` (N, 2), above what else is there, each with a rim of paper."""
    ax.plot(*points.T, color=colour, marker="o", markersize=5.5, linestyle="none", markeredgecolor=PAPER, zorder=5)


def contour_lines(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    heights: np.ndarray,
    levels: Sequence[float] | np.ndarray,
    colour: str,
    *,
    width: float = 0.4,
) -> None:
    """Lines where ``heights`` (len(y), len(x)) reach the ``levels``.

    A plain collection of lines: a contour set would get filled when the dark variant exchanges its colours.
    """
    drawn = ax.contour(x, y, heights, levels=levels)
    segments = [segment for level in drawn.allsegs for segment in level if len(segment)]
    drawn.remove()
    ax.add_collection(LineCollection(segments, colors=[colour], linewidths=width, label="contour lines"))


def landscape(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    heights: np.ndarray,
    levels: np.ndarray,
    colour: str,
    *,
    opacity: tuple[float, float] = (0.62, 0.0),
) -> None:
    """``heights`` (len(y), len(x)) as shades of one colour between ``levels``, dark where they are low, with its lines.

    One colour with falling ``opacity``, so that the dark variant exchanges it like any other.
    """
    shades = [(*to_rgb(colour), float(depth)) for depth in np.linspace(*opacity, len(levels) - 1)]
    ax.contourf(x, y, heights, levels=levels, colors=shades)
    contour_lines(ax, x, y, heights, levels[1:], colour)


def averages(samples: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The means of ``samples`` along an axis, and their standard errors.

    >>> [x.tolist() for x in averages(np.array([[1.0, 3.0]]), axis=1)]
    [[2.0], [1.0]]
    """
    return samples.mean(axis=axis), samples.std(axis=axis, ddof=1) / np.sqrt(samples.shape[axis])


def band(ax: Axes, x: np.ndarray, values: np.ndarray, colour: str, **line: Any) -> None:
    """The mean of ``values`` (x, samples), in the band of all of them."""
    ax.fill_between(x, values.min(axis=1), values.max(axis=1), color=(*to_rgb(colour), 0.18), linewidth=0)
    ax.plot(x, values.mean(axis=1), color=colour, **line)
