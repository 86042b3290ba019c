"""The figures of the chapter ``attention-dynamics``: each function draws given results and returns the figure.

Arguments are arrays or mappings of arrays as the chapter measured them; each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle
from matplotlib.ticker import NullLocator

from chapters import style

__all__ = [
    "REGIME_COLOURS",
    "attractors",
    "bifurcation",
    "blocks",
    "coexistence",
    "exponent_map",
    "hopfield",
    "layer",
    "memory",
    "transitions",
    "variations",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
REGIME_COLOURS = {
    "fixed point": style.GREY,
    "periodic": BLUE,
    "quasi-periodic": ORANGE,
    "chaotic": PURPLE,
    "undecided": style.FAINT,
}
REGIME_MARKERS = {"fixed point": "x", "periodic": "o", "quasi-periodic": "s", "chaotic": "^", "undecided": "+"}
REPEATING = ("fixed point", "periodic")
FAMILY = [PURPLE, BLUE, GREEN, ORANGE, OCHRE, BROWN]


def _circles(ax: Axes, x: float, ys: np.ndarray, colour: str, *, radius: float = 0.13, filled: bool = True) -> None:
    for y in ys:
        face = colour if filled else style.PAPER
        ax.add_patch(Circle((x, y), radius, facecolor=face, edgecolor=colour, linewidth=1.2, zorder=4))


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


def _density_image(ax: Axes, betas: np.ndarray, bins: np.ndarray, counts: np.ndarray, regimes: np.ndarray) -> None:
    """Every visited bin of the orbits that do not repeat, one column per beta: the darker, the more often visited."""
    visited = np.flatnonzero(counts.any(axis=0))
    rows = slice(visited[0], visited[-1] + 1)
    counts, bins = counts[:, rows], bins[rows]
    most = counts.max(axis=1, keepdims=True)
    level = np.zeros(counts.shape, np.float32)
    for share in (0.0, 0.05, 0.25):
        level += counts > share * most
    level[np.isin(regimes, REPEATING)] = 0
    # Averages over the columns of a pixel are taken of levels: taking them of colours needs four times the memory.
    shades = [to_rgba(OCHRE, alpha) for alpha in (0.0, 0.28, 0.5, 0.8)]
    half = (bins[1] - bins[0]) / 2 if len(bins) > 1 else 0.5
    ax.imshow(
        level.T,
        cmap=LinearSegmentedColormap.from_list("visits", shades),
        vmin=0.0,
        vmax=3.0,
        origin="lower",
        aspect="auto",
        interpolation="antialiased",
        interpolation_stage="data",
        extent=(betas[0], betas[-1], bins[0] - half, bins[-1] + half),
        zorder=1,
    )


def _bifurcation(
    ax: Axes,
    betas: np.ndarray,
    bins: np.ndarray,
    counts: np.ndarray,
    crossings: np.ndarray | None,
    regimes: np.ndarray,
    *,
    size: float,
) -> None:
    _density_image(ax, betas, bins, counts, regimes)
    dots: dict[str, Any] = {"linestyle": "none", "marker": ".", "markeredgewidth": 0, "rasterized": True}
    column, row = np.nonzero(np.where(np.isin(regimes, REPEATING)[:, None], counts, 0))
    ax.plot(betas[column], bins[row], color=style.INK, markersize=size, zorder=3, **dots)
    if crossings is not None:
        for regime in ("quasi-periodic", "chaotic"):
            values = crossings[regimes == regime]
            where = np.broadcast_to(betas[regimes == regime, None], values.shape)
            ax.plot(
                where.ravel(), values.ravel(), color=REGIME_COLOURS[regime], markersize=1.4 * size, zorder=2, **dots
            )
    visited = bins[counts.any(axis=0)]
    margin = 0.04 * (visited[-1] - visited[0]) + 2 * (bins[1] - bins[0])
    ax.set(xlim=(betas[0], betas[-1]), ylim=(visited[0] - margin, visited[-1] + margin))


@style.house
def bifurcation(
    betas: np.ndarray,
    bins: np.ndarray,
    counts: np.ndarray,
    crossings: np.ndarray,
    regimes: np.ndarray,
    exponents: np.ndarray,
    *,
    marks: Sequence[float] = (),
    zoom: tuple[float, float] | None = None,
) -> Figure:
    """Values of the first output overlap for every beta, coloured by regime, above the largest exponents.

    With n = len(betas) and b centres in ``bins``: ``counts`` (n, b) of all points, ``crossings`` (n, c) the values on
    the plane where the second output overlap vanishes (filled up with nan), ``regimes`` (n,) names, ``exponents`` (n, 1
    or more), of which two are drawn. ``marks`` are drawn as lines with their values above; ``zoom`` as a bracket.
    """
    figure, (top, bottom) = style.subplots(2, 1, height=5.0, height_ratios=(2.4, 1), sharex=True)
    figure.set_dpi(220)
    _bifurcation(top, betas, bins, counts, crossings, regimes, size=0.9)
    top.set_ylabel(r"first output overlap $m^o_{1,t}$")
    ceiling = top.get_ylim()[1]
    apart = 0.02 * (betas[-1] - betas[0])
    for number, beta in enumerate(marks):
        for ax in (top, bottom):
            ax.axvline(beta, color=style.GREY, linewidth=0.6, linestyle=(0, (2, 3)), zorder=4)
        if number and beta - marks[number - 1] < apart:
            continue
        close = [value for value in marks[number:] if value - beta < apart]
        top.annotate(
            ", ".join(f"{value:g}" for value in close),
            (beta, ceiling),
            xytext=(0, 2),
            textcoords="offset points",
            rotation=35,
            fontsize=7.5,
            color=style.GREY,
            ha="left",
            va="bottom",
            annotation_clip=False,
        )
    if zoom is not None:
        height = 0.9 * ceiling
        top.plot(zoom, [height, height], color=style.INK, linewidth=1.2, linestyle="-", marker="|", markersize=6)
        top.annotate(
            "next figure", (zoom[1], height), xytext=(4, 0), textcoords="offset points", ha="left", va="center"
        )
    _key(top, crossings_too=True)
    bottom.axhline(0.0, color=style.GREY, linewidth=0.8, linestyle="-")
    largest = max(float(np.nanmax(exponents[:, 0])), 1e-3)
    for order, (colour, width) in enumerate(zip((PURPLE, GREEN), (0.7, 0.6), strict=True)):
        if order < exponents.shape[1]:
            bottom.plot(betas, exponents[:, order], color=colour, linewidth=width, linestyle="-", zorder=3 - order)
            name = rf"$\lambda_{order + 1}$"
            bottom.text(
                0.012 + 0.04 * order, 0.93, name, transform=bottom.transAxes, color=colour, va="top", fontsize=11
            )
    bottom.set(ylim=(-1.6 * largest, 1.25 * largest), xlabel=r"inverse temperature of the output $\beta$")
    bottom.set_ylabel("Lyapunov exponents\nper step" if exponents.shape[1] > 1 else "largest exponent\nper step")
    return figure


def _key(ax: Axes, *, crossings_too: bool) -> None:
    """Names of the colours, as marks of readable size."""
    entries = [("fixed or periodic", style.INK, "o"), ("other: all points", OCHRE, "s")]
    if crossings_too:
        entries += [
            ("quasi-periodic, on the plane", REGIME_COLOURS["quasi-periodic"], "o"),
            ("chaotic, on the plane", REGIME_COLOURS["chaotic"], "o"),
        ]
    handles = [
        ax.plot([], [], color=colour, marker=marker, markersize=4, linestyle="none", label=text)[0]
        for text, colour, marker in entries
    ]
    ax.legend(handles=handles, loc="upper left", handletextpad=0.2, labelspacing=0.25, fontsize=8)


@style.house
def transitions(
    first: Mapping[str, np.ndarray],
    second: Mapping[str, np.ndarray],
    *,
    onset: float,
    chaos: tuple[float, float],
    multipliers: np.ndarray,
) -> Figure:
    """Leading exponents around the two transitions, and the multipliers of the cycle as it loses its stability.

    ``first`` and ``second`` hold ``beta`` (n,) and ``exponents`` (n, 2), ``second`` also ``other start`` (n,), the
    largest exponents from another start; ``onset`` and ``chaos`` (a bracket) are drawn as lines; ``multipliers`` (k,)
    are the complex multipliers at the onset of the first transition.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.75, width_ratios=(1.05, 0.8, 1.15))
    for ax, part, top in ((left, first, None), (right, second, None)):
        ax.axhline(0.0, color=style.GREY, linewidth=0.8, linestyle="-")
        for order, (colour, line) in enumerate(((PURPLE, "-"), (GREEN, "--"))):
            ax.plot(part["beta"], part["exponents"][:, order], color=colour, linestyle=line, linewidth=1.2)
        ax.set_xlabel(r"$\beta$")
        ax.locator_params(axis="x", nbins=4)
        ax.ticklabel_format(axis="x", useOffset=False)
        ax.set_ylim(top=top)
    left.axvline(onset, color=ORANGE, linewidth=1.0, linestyle=":")
    left.set_ylabel(r"$\lambda_1$ (solid), $\lambda_2$ (dashed)")
    right.axvspan(*chaos, color=ORANGE, linewidth=1.0, alpha=0.6)
    right.plot(second["beta"], second["other start"], color=BLUE, marker="x", markersize=3.5, linestyle="none")
    angle = np.linspace(0, 2 * np.pi, 200)
    middle.plot(np.cos(angle), np.sin(angle), color=style.GREY, linewidth=0.9, linestyle="-")
    middle.plot(multipliers.real, multipliers.imag, color=PURPLE, marker="o", markersize=5, linestyle="none")
    middle.set(aspect="equal", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    middle.set(xlabel="real part", ylabel="imaginary part")
    style.letters(*(left, middle, right))
    return figure


@style.house
def attractors(panels: Sequence[tuple[str, str, np.ndarray]]) -> Figure:
    """Orbits in the plane of the first two output overlaps, one panel each.

    ``panels`` holds (title, regime, points); points have shape (n, 2).
    """
    columns = 4
    rows = -(-len(panels) // columns)
    figure, axes = style.subplots(rows, columns, height=1.95 * rows + 0.1, squeeze=False)
    figure.set_dpi(220)
    for ax, (title, regime, points) in style.dressed(axes.flat, panels):
        few = len(np.unique(np.round(points, 6), axis=0)) < 200
        ax.plot(
            *points.T,
            color=REGIME_COLOURS[regime],
            marker=".",
            markersize=4.5 if few else 0.9,
            markeredgewidth=0,
            linestyle="none",
            rasterized=True,
        )
        ax.set_title(f"{title}\n", loc="left", fontsize=8.5)
        ax.text(0.0, 1.03, regime, transform=ax.transAxes, fontsize=8, color=REGIME_COLOURS[regime])
        ax.margins(0.08)
        ax.tick_params(labelsize=7)
        ax.locator_params(nbins=4)
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    figure.supxlabel("$m^o_{1,t}$", fontsize=10)
    figure.supylabel("$m^o_{2,t}$", fontsize=10)
    return figure


@style.house
def memory(columns: Sequence[Mapping[str, Any]]) -> Figure:
    """For each orbit: a short and a long stretch of it, its power spectrum, its autocorrelation. One column per orbit.

    Every column holds ``title``, ``regime``, ``orbit`` (n,), ``long_orbit`` (longer,), ``frequency`` and ``power``
    (f,), ``lags`` and ``autocorrelation`` (l,), and ``clip``, the largest power drawn (the true peak is written beside
    it).
    """
    figure, axes = style.subplots(4, len(columns), height=6.9, squeeze=False)
    figure.set_dpi(220)
    for number, column in enumerate(columns):
        top, long, middle, bottom = axes[:, number]
        colour = REGIME_COLOURS[column["regime"]]
        long.plot(column["long_orbit"], color=colour, linewidth=0.25, linestyle="-", rasterized=True)
        long.set(xlabel="step $t$ from the first one drawn", xlim=(0, len(column["long_orbit"])))
        top.plot(column["orbit"], color=colour, linewidth=0.6, linestyle="-")
        top.set(xlabel="step $t$ from the first one drawn", xlim=(0, len(column["orbit"])))
        top.set_title(column["title"], loc="center", fontsize=9.5)
        middle.plot(column["frequency"], column["power"], color=colour, linewidth=0.7, linestyle="-")
        middle.axvline(0.25, color=style.GREY, linewidth=0.8, linestyle=":")
        middle.set(xlabel="frequency $f$ per step", xlim=(-0.005, 0.505), ylim=(0, column["clip"]))
        peak = int(np.argmax(column["power"]))
        if column["power"][peak] > column["clip"]:
            middle.annotate(
                f"up to {column['power'][peak]:.1f}\nat $f = {column['frequency'][peak]:.3g}$",
                (column["frequency"][peak], column["clip"]),
                xytext=(-6, -2),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=8.5,
            )
        bottom.axvspan(0, 4, color=style.FAINT, linewidth=0)
        bottom.axhline(0.0, color=style.GREY, linewidth=0.8, linestyle="-")
        bottom.plot(column["lags"], column["autocorrelation"], color=colour, linewidth=0.9, linestyle="-")
        bottom.set(xlabel=r"lag $\ell$", xlim=(0, column["lags"][-1]))
    axes[0, 0].set_ylabel("$m^o_{1,t}$")
    axes[1, 0].set_ylabel("$m^o_{1,t}$")
    axes[2, 0].set_ylabel(r"power $|\mathcal{F}_f|^2$")
    axes[3, 0].set_ylabel(r"autocorrelation $R_\ell$")
    style.letters(*axes.flat)
    return figure


@style.house
def coexistence(
    betas: np.ndarray,
    amplitudes: np.ndarray,
    regimes: np.ndarray,
    *,
    times: np.ndarray,
    survival: Mapping[float, np.ndarray],
    lifetimes: Mapping[float, float],
    twin_times: np.ndarray,
    twins: np.ndarray,
) -> Figure:
    """Where many starts end, how long chaos lasts before it ends, and orbits that began next to each other.

    ``amplitudes`` and ``regimes`` have shape (betas, starts). ``survival`` maps beta to the share of orbits that are
    still chaotic at ``times``, ``lifetimes`` beta to the mean lifetime whose exponential is drawn. ``twins`` (orbits,
    blocks) holds the largest exponent of successive blocks that end at ``twin_times``.
    """
    figure, ((top, beside), (left, right)) = style.subplots(2, 2, height=5.2)
    beside.remove()
    top.set_subplotspec(top.get_gridspec()[0, :])
    x = np.broadcast_to(betas[:, None], amplitudes.shape)
    for regime, colour in REGIME_COLOURS.items():
        here = regimes == regime
        top.plot(
            x[here],
            amplitudes[here],
            # Undecided orbits must be visible here, where many orbits are.
            color=style.GREY if regime == "undecided" else colour,
            marker=REGIME_MARKERS[regime],
            markersize=3,
            markeredgewidth=0.5,
            linestyle="none",
            alpha=0.55,
            label=regime if here.any() else "_",
        )
    top.set(xlabel=r"$\beta$", ylabel="amplitude: largest $|m^o_1|$\non the attractor")
    top.ticklabel_format(axis="x", useOffset=False)
    legend = top.legend(loc="upper left", handletextpad=0.2)
    for handle in legend.legend_handles:
        handle.set_alpha(1.0)

    for colour, marker, (beta, alive) in style.dressed(FAMILY, style.MARKERS, survival.items()):
        seen = alive > 0
        left.plot(
            times[seen] / 1e3, alive[seen], color=colour, marker=marker, markersize=2.5, linestyle="none", markevery=2
        )
        law = np.exp(-times / lifetimes[beta])
        label = rf"{beta:g}: {lifetimes[beta]:,.0f}"
        left.plot(times[seen] / 1e3, law[seen], color=colour, linewidth=0.9, linestyle="-", label=label)
    left.set(yscale="log", ylim=(1e-4, 1.4), xlabel="steps / 1000", ylabel="share of orbits still chaotic")
    left.legend(
        title=r"$\beta$: mean lifetime", title_fontsize=8, fontsize=8, handlelength=1.2, ncol=2, loc="lower center"
    )
    for colour, line, values in style.dressed(FAMILY, style.LINE_STYLES, twins):
        right.plot(twin_times / 1e3, values, color=colour, linestyle=line, linewidth=1.1)
    right.axhline(0.0, color=style.GREY, linewidth=0.8, linestyle="-")
    right.set(xlabel="steps / 1000", ylabel=r"$\lambda_1$ of each block")
    style.letters(*(top, left, right))
    return figure


@style.house
def exponent_map(
    betas: np.ndarray,
    gammas: np.ndarray,
    exponents: np.ndarray,
    *,
    paper: tuple[float, tuple[float, float]],
) -> Figure:
    """The largest exponent over both inverse temperatures; ``exponents`` has shape (gammas, betas).

    ``paper`` is the source's gamma and its range of beta, drawn as a line.
    """
    figure, ax = style.subplots(height=3.9)
    figure.set_dpi(220)
    largest = float(np.nanmax(exponents))
    image = ax.pcolormesh(
        betas,
        gammas,
        np.clip(exponents, -2 * largest, None),
        cmap=style.DIVERGING + "_r",
        norm=TwoSlopeNorm(0.0, -2 * largest, largest),
        rasterized=True,
    )
    gamma, (low, high) = paper
    ax.plot([low, high], [gamma, gamma], color=style.INK, linestyle="--", linewidth=1.0)
    ax.annotate(
        "the source's $\\gamma$",
        (high, gamma),
        xytext=(-4, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 1.5},
    )
    ax.set(yscale="log", xlabel=r"inverse temperature of the output $\beta$")
    ax.set_ylabel(r"inverse temperature of the attention $\gamma$")
    bar = figure.colorbar(image, ax=ax, label=r"largest exponent $\lambda_1$ per step", pad=0.02)
    bar.outline.set_visible(False)
    return figure


@style.house
def variations(
    epsilons: np.ndarray,
    epsilon_shares: np.ndarray,
    *,
    betas: np.ndarray,
    by_context: Mapping[int, np.ndarray],
    seed_betas: np.ndarray,
    by_seed: np.ndarray,
    features: Sequence[int],
    feature_shares: np.ndarray,
) -> Figure:
    """Chaos under changes of epsilon, the window, the patterns or the number of features.

    ``epsilon_shares`` is the share of chaotic betas on ``epsilons``; ``by_context`` maps the window length to the
    largest exponent on ``betas``; ``by_seed`` (networks, seed_betas) are largest exponents of random networks in the
    order drawn; ``feature_shares`` (features, 3) are the shares of networks that are chaotic at some beta, that are
    quasi-periodic at most, and the rest.
    """
    figure, ((a, b), (c, d)) = style.subplots(2, 2, height=5.0, width_ratios=(1, 1.25))
    a.plot(epsilons, epsilon_shares, color=PURPLE, marker="o", linestyle="-", markersize=3.5, linewidth=1.0)
    a.set(xlabel=r"weight of the position $\varepsilon$", ylabel=r"share of $\beta$ with chaos", ylim=(-0.02, 1))
    a.set_xscale("symlog", linthresh=0.005)
    a.set_xticks([0, 0.01, 0.1, 0.5], ["0", "0.01", "0.1", "0.5"])
    a.xaxis.set_minor_locator(NullLocator())
    a.set_xlim(-0.001, 0.6)
    for colour, line, (length, values) in style.dressed(FAMILY, style.LINE_STYLES, by_context.items()):
        b.plot(betas, length * values, color=colour, linestyle=line, linewidth=1.0, label=f"$K = {length}$")
    b.axhline(0.0, color=style.GREY, linewidth=0.8, linestyle="-")
    b.set(xlabel=r"$\beta$", ylabel=r"$K\lambda_1$, exponent per window", ylim=(-0.9, None))
    b.legend(ncol=3, handlelength=1.6, columnspacing=1.0, loc="lower right")
    largest = float(np.nanmax(by_seed))
    image = c.pcolormesh(
        seed_betas,
        np.arange(1, len(by_seed) + 1),
        np.clip(by_seed, -2 * largest, None),
        cmap=style.DIVERGING + "_r",
        norm=TwoSlopeNorm(0.0, -2 * largest, largest),
        rasterized=True,
    )
    figure.colorbar(image, ax=c, label=r"$\lambda_1$", pad=0.02).outline.set_visible(False)
    c.set(xlabel=r"$\beta$", ylabel="network, by largest $\\lambda_1$")
    bottom = np.zeros(len(features))
    names = ("chaotic", "quasi-periodic", "periodic")
    for name, share, hatch in zip(names, feature_shares.T, ("", "//", ""), strict=True):
        colour = style.FAINT if name == "periodic" else REGIME_COLOURS[name]
        d.bar(
            [str(number) for number in features],
            share,
            bottom=bottom,
            color=colour,
            edgecolor=style.PAPER,
            hatch=hatch,
            label={"chaotic": "chaotic for some $\\beta$", "quasi-periodic": "quasi-periodic at most"}.get(
                name, "periodic throughout"
            ),
        )
        bottom = bottom + share
    d.set(xlabel="features $M$", ylabel="share of random networks", ylim=(0, 1.42), yticks=(0, 0.5, 1))
    d.legend(fontsize=8, loc="upper left", ncol=1, labelspacing=0.2)
    style.letters(*(a, b, c, d))
    return figure


@style.house
def blocks(
    strengths: Mapping[str, np.ndarray],
    shares: Mapping[str, np.ndarray],
    share_errors: Mapping[str, np.ndarray],
    exponents: Mapping[str, np.ndarray],
    exponent_errors: Mapping[str, np.ndarray],
) -> Figure:
    """Chaos of networks with a residual connection or a feed-forward layer of growing strength.

    Every mapping goes from the name of what is added to values on its ``strengths``, which begin with 0: the share of
    networks and temperatures with chaos, and the mean of the positive exponents over all, with standard errors.
    """
    figure, axes = style.subplots(1, 2, height=2.8, sharex=True)
    for ax, values, errors in zip(axes, (shares, exponents), (share_errors, exponent_errors), strict=True):
        for colour, marker, line, name in style.dressed(
            (BLUE, ORANGE, PURPLE), style.MARKERS, style.LINE_STYLES, values
        ):
            look = {"color": colour, "marker": marker, "linestyle": line, "markersize": 4.0, "linewidth": 0.9}
            ax.errorbar(strengths[name], values[name], errors[name], label=name, elinewidth=0.9, **look)
        ax.set_xlabel("strength of what is added")
        ax.set_ylim(bottom=0.0)
    axes[0].set_ylabel("share with chaos")
    axes[1].set_ylabel(r"mean of $\max(\lambda_1, 0)$")
    axes[0].legend(fontsize=8)
    style.letters(*axes)
    return figure
