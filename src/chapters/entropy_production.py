"""The figures of the chapter ``entropy-production``: each function draws given results and returns the figure.

What maximises entropy production is orange, what minimises it blue; the truth (enumerated, sampled or infinite) is in
ink. Seeds are shown as a band from the least to the largest. Each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters import style

__all__ = [
    "identity",
    "learning",
    "mechanism",
    "module",
    "phase_diagram",
    "settling",
    "vectors",
    "vibe_check",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
FAMILY = [PURPLE, GREEN, OCHRE, BROWN, BLUE, ORANGE]


@style.house
def module() -> Figure:
    """The forward pass of the module, its loop through time, and where its entropy production is read."""
    figure, ax = style.subplots(1, 1, height=2.7)
    style.box(ax, (0.0, 0.0), (1.7, 0.56), "inputs $x_i(t)$", GREEN, boxstyle="round,pad=0.05")
    style.box(ax, (3.0, 1.2), (2.7, 0.56), r"couplings $J(x)$, softmax", PURPLE, boxstyle="round,pad=0.05")
    style.box(ax, (3.0, 0.0), (2.4, 0.56), "$x_i$ + memory FFN$(x_i)$", GREEN, boxstyle="round,pad=0.05")
    style.box(ax, (6.2, 0.0), (2.2, 0.56), r"effective field $\theta_i(t)$", style.GREY, boxstyle="round,pad=0.05")
    style.box(ax, (9.2, 0.0), (1.8, 0.56), "outputs $m_i(t)$", BLUE, boxstyle="round,pad=0.05")
    style.box(ax, (6.2, 1.2), (2.2, 0.56), r"$\sum_j J_{ij}\,m_j(t-1)$", PURPLE, boxstyle="round,pad=0.05")
    style.box(ax, (6.2, -1.3), (2.4, 0.56), r"entropy production $\sigma$", ORANGE, boxstyle="round,pad=0.05")
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


@style.house
def identity(
    paths: np.ndarray,
    estimates: Mapping[str, np.ndarray],
    *,
    strengths: np.ndarray,
    ratios: Mapping[str, np.ndarray],
) -> Figure:
    """Entropy production of random systems by formulas against path probabilities; closures divided by the truth.

    ``paths`` and each of ``estimates`` are (systems,); each of ``ratios`` is (strengths, systems of that strength).
    """
    figure, (left, right) = style.subplots(1, 2, height=3.0)
    ends = np.array([0.7 * paths.min(), 1.4 * paths.max()])
    left.loglog(ends, ends, color=style.GREY, linestyle=":", linewidth=0.9)
    looks = style.dressed((style.INK, ORANGE), ("o", "s"), estimates.items())
    for colour, marker, (label, values) in looks:
        left.plot(
            paths,
            values,
            color=colour,
            marker=marker,
            markersize=3.5,
            markerfacecolor="none",
            linestyle="none",
            label=label,
        )
    left.set(xlabel=r"$\sigma$ from path probabilities (nats)", ylabel=r"$\sigma$ from correlations (nats)")
    left.legend(loc="upper left")
    for colour, line, marker, (label, values) in style.dressed(
        (ORANGE, PURPLE), ("--", "-."), ("s", "D"), ratios.items()
    ):
        middle, spread = style.averages(values, axis=1)
        right.errorbar(
            strengths, middle, spread, color=colour, linestyle=line, marker=marker, markersize=3.5, label=label
        )
    right.axhline(1, color=style.INK, linewidth=1.0, linestyle="-")
    right.set(xscale="log", xlabel="strength of the couplings $g$", ylabel="estimate / exact")
    style.plain_ticks(right.xaxis, [0.1, 0.3, 1.0, 2.0])
    right.legend(loc="upper left")
    for axis in (left.xaxis, left.yaxis):
        axis.set_minor_locator(ticker.NullLocator())
    style.letters(left, right)
    return figure


@style.house
def phase_diagram(
    betas: np.ndarray,
    widths: np.ndarray,
    production: np.ndarray,
    *,
    critical: tuple[np.ndarray, np.ndarray],
    cut_betas: np.ndarray,
    cuts: Mapping[str, np.ndarray],
    naive_betas: np.ndarray,
    naive: Mapping[str, np.ndarray],
    sampled_betas: np.ndarray,
    sampled: Mapping[str, tuple[np.ndarray, np.ndarray]],
    marks: Mapping[str, float],
) -> Figure:
    """Entropy production per spin over the plane (widths, betas), and cuts with naive mean field and sampling.

    ``critical`` is the line (widths, betas) of the transition, ``marks`` the critical beta of a cut, if it exists;
    ``sampled`` holds means and standard errors.
    """
    figure, axes = style.subplots(1, 1 + len(cuts), height=2.9, width_ratios=[1.35] + [1] * len(cuts))
    image = axes[0].pcolormesh(
        betas, widths, np.log10(production), cmap=style.SEQUENTIAL, shading="gouraud", rasterized=True
    )
    figure.colorbar(image, ax=axes[0], label=r"$\log_{10}\,\sigma / N$", fraction=0.06, pad=0.02)
    axes[0].plot(critical[1], critical[0], color=style.PAPER, linestyle="-", linewidth=3.2)
    axes[0].plot(critical[1], critical[0], color=style.INK, linestyle="--", linewidth=1.4)
    axes[0].set(xlabel=r"inverse temperature $\beta$", ylabel=r"disorder $J_\sigma$")
    axes[0].set(xlim=(betas[0], betas[-1]), ylim=(widths[0], widths[-1]))
    for ax, (title, values) in zip(axes[1:], cuts.items(), strict=True):
        ax.plot(cut_betas, values, color=style.INK, linestyle="-", label="infinite")
        ax.plot(naive_betas, naive[title], color=ORANGE, linestyle="--", marker="s", markersize=3, label="naive")
        mean, error = sampled[title]
        ax.errorbar(
            sampled_betas, mean, error, color=BLUE, marker="o", markersize=4, linestyle="none", label="sampled",
            markerfacecolor=style.PAPER,
        )  # fmt: skip
        if title in marks:
            ax.axvline(marks[title], color=style.GREY, linestyle=":", linewidth=0.9)
        ax.set_title(title, loc="center")
        ax.set(xlabel=r"$\beta$", ylim=(0, None))
        ax.xaxis.set_major_locator(ticker.MultipleLocator(1))
    axes[1].set_ylabel(r"$\sigma / N$ (nats per spin)")
    axes[-1].legend(loc="best")
    style.letters(*axes)
    return figure


@style.house
def vectors(
    dims: np.ndarray,
    errors: Mapping[str, np.ndarray],
    *,
    strengths: np.ndarray,
    ratios: Mapping[str, np.ndarray],
    printed: np.ndarray,
    consistent: np.ndarray,
) -> Figure:
    """Error of delayed correlations against D, sigma over the exact one, and its sign in near-symmetric systems.

    ``errors`` maps a form to values at ``dims``, ``ratios`` maps a form to values at ``strengths`` of the coupling.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.9)
    looks = list(style.dressed((ORANGE, BLUE), ("s", "o"), ("--", "-"), errors))
    for colour, marker, line, name in looks:
        left.loglog(dims, errors[name], color=colour, marker=marker, linestyle=line, label=name)
        middle.plot(strengths, ratios[name], color=colour, marker=marker, linestyle=line, label=name, markersize=3.5)
    left.set(xlabel="components $D$", ylabel="relative error of $D_{12}$")
    left.legend(loc="upper right", fontsize=7.5)
    left.set_ylim(None, 6 * max(float(np.max(values)) for values in errors.values()))
    left.yaxis.set_major_locator(ticker.FixedLocator([0.0003, 0.001, 0.003, 0.01, 0.03, 0.1]))
    left.yaxis.set_major_formatter(ticker.FuncFormatter(style.ordinary))
    left.yaxis.set_minor_locator(ticker.NullLocator())
    style.plain_ticks(left.xaxis, [float(d) for d in dims if d in (8, 32, 128) or len(dims) < 4])
    middle.axhline(1, color=style.INK, linestyle="-", linewidth=1.0)
    middle.set(xscale="log", xlabel="coupling $J$", ylabel=r"$\sigma$ / exact $\sigma$")
    style.plain_ticks(middle.xaxis, [t for t in (0.01, 0.1, 1.0) if strengths.min() <= t <= strengths.max()])
    order = np.argsort(printed)
    rank = np.arange(len(printed))
    right.plot(rank, printed[order], color=ORANGE, linestyle="--", label="as printed")
    right.plot(rank, np.sort(consistent), color=BLUE, linestyle="-", label="consistent")
    right.axhline(0, color=style.INK, linestyle="-", linewidth=0.9)
    right.set(xlabel="systems, sorted", ylabel=r"$\sigma$ (nats)")
    right.legend(loc="upper left", fontsize=7.5)
    style.letters(left, middle, right)
    return figure


@style.house
def vibe_check(
    angles: np.ndarray,
    curves: Mapping[str, np.ndarray],
    estimate: np.ndarray,
    *,
    dims: np.ndarray,
    share: np.ndarray,
) -> Figure:
    """Entropy production against the angle between two spins, over the leading order; the angles' share against D.

    ``angles`` in degrees; ``curves`` maps a label to values at ``angles``, ``estimate`` is the source's, at most one.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9, width_ratios=(1.4, 1))
    for colour, line, (label, values) in style.dressed((PURPLE, GREEN, BLUE), ("-.", "--", "-"), curves.items()):
        left.plot(angles, values, color=colour, linestyle=line, label=label)
    left.plot(angles, estimate, color=ORANGE, linestyle=":", linewidth=2.2, label=r"estimate, $\cos^2\alpha$")
    left.set(
        xlabel=r"angle $\alpha$ between the spins (degrees)", ylabel=r"$\sigma$ / leading order", ylim=(-0.03, 1.5)
    )
    left.xaxis.set_major_locator(ticker.MultipleLocator(45))
    left.legend(loc="upper center", ncols=2)
    right.loglog(dims, share, color=BLUE, marker="o", linestyle="-")
    right.loglog(dims, share[0] * dims[0] / dims, color=style.GREY, linestyle=":", linewidth=0.9)
    right.text(float(dims[1]), float(0.55 * share[1]), "slope −1", color=style.GREY, fontsize=8.5, ha="right")
    right.set(xlabel="components $D$", ylabel="share due to angles")
    style.plain_ticks(right.xaxis, [float(d) for d in dims])
    right.yaxis.set_major_locator(ticker.FixedLocator([0.003, 0.01, 0.03, 0.1]))
    right.yaxis.set_major_formatter(ticker.FuncFormatter(style.ordinary))
    right.yaxis.set_minor_locator(ticker.NullLocator())
    style.letters(left, right)
    return figure


@style.house
def settling(
    left_over: Mapping[str, np.ndarray], *, betas: np.ndarray, first: np.ndarray, rest: np.ndarray, factors: np.ndarray
) -> Figure:
    """Distance from the new steady state against iterations, and the distance after the first, against beta.

    ``left_over`` maps a label to (steps, seeds), relative to step 0; ``first`` and ``rest`` are (betas, seeds) after a
    change of inputs and from rest; ``factors`` (betas, seeds) are contraction factors.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9)
    for colour, line, (label, values) in style.dressed(FAMILY, ("-", "--", "-.", ":"), left_over.items()):
        style.band(left, np.arange(len(values)), values, colour, linestyle=line, label=label)
    left.set(yscale="log", xlabel="iteration", ylabel="distance left", ylim=(1e-6, 1.5), xlim=(0, 12))
    left.yaxis.set_minor_locator(ticker.NullLocator())
    left.legend(loc="lower left")
    style.band(right, betas, first, BLUE, linestyle="-", label="after a change of inputs")
    style.band(right, betas, rest, ORANGE, linestyle="--", label="from rest")
    style.band(right, betas, factors, style.GREY, linestyle=":", label="contraction factor")
    right.set(xscale="log", xlabel=r"inverse temperature $\beta$", ylabel="left by the first iteration", ylim=(0, 1.0))
    style.plain_ticks(right.xaxis, [float(b) for b in betas])
    right.legend(loc="upper left")
    style.letters(left, right)
    return figure


def _along_training(
    updates: np.ndarray, panels: Mapping[str, Mapping[str, np.ndarray]], looks: Mapping[str, tuple[str, str]]
) -> tuple[Figure, Sequence[Axes]]:
    """A panel for each measure with a band for each condition, which maps to (records, seeds)."""
    figure, axes = style.subplots(1, len(panels), height=2.9)
    for ax, (title, curves) in zip(axes, panels.items(), strict=True):
        for name, values in curves.items():
            colour, line = looks[name]
            style.band(ax, updates, values, colour, linestyle=line, label=name)
        ax.set(xlabel="updates", ylabel=title)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7.5)
    style.letters(*axes)
    return figure, axes


@style.house
def mechanism(updates: np.ndarray, panels: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """What happens to attention and embeddings along training; every panel maps a condition to (records, seeds)."""
    looks = {
        "maximised, causal": (ORANGE, "-"),
        "maximised, no mask": (OCHRE, "--"),
        "minimised, causal": (BLUE, "-."),
        "minimised, no mask": (PURPLE, ":"),
    }
    figure, axes = _along_training(updates, panels, looks)
    for ax in axes:
        ax.set_ylim(0, None)
    return figure


@style.house
def learning(
    updates: np.ndarray, accuracy: Mapping[str, np.ndarray], *, final: Mapping[str, np.ndarray], chance: float
) -> Figure:
    """Accuracy on sequences not seen before against updates, and after the last update, with labels for the curves.

    ``accuracy`` maps a way of learning to (records, seeds), ``final`` to (seeds,).
    """
    figure, (left, right) = style.subplots(1, 2, height=3.2, width_ratios=(1.1, 1))
    colours = [style.INK, GREEN, PURPLE, BROWN, BLUE, ORANGE, OCHRE, style.GREY]
    lines = ["-", "--", "-.", ":", "-.", "-", "--", ":"]
    for k, (name, values) in enumerate(accuracy.items()):
        style.band(left, updates, values, colours[k], linestyle=lines[k], label=name)
        right.plot(
            final[name], np.full(len(final[name]), -k), color=colours[k], marker="o", markersize=4, linestyle="none",
            alpha=0.7,
        )  # fmt: skip
    for ax in (left, right):
        (ax.axhline if ax is left else ax.axvline)(chance, color=style.GREY, linestyle=":", linewidth=0.9)
    left.set(xlabel="updates", ylabel="accuracy", ylim=(0, 1.02))
    right.set(xlabel="accuracy after the last update", xlim=(0, 1.03))
    right.set_yticks([-k for k in range(len(accuracy))], list(accuracy))
    for k, text in enumerate(right.get_yticklabels()):
        text.set_color(colours[k])
    style.letters(left, right)
    return figure
