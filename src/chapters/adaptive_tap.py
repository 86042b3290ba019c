"""The figures of the chapter ``adaptive-tap``: each function draws given results and returns the figure.

Naive mean field is orange and dashed, plain TAP blue and solid, adaptive TAP green and dash-dotted, wherever they meet.
Each function says which shapes it expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters import style

__all__ = [
    "SIDE",
    "convergence",
    "correction",
    "errors",
    "gaussian",
    "headline",
    "initialisation",
    "message_passing",
    "network",
    "organisation",
    "places",
]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
COLOURS = {"naive": ORANGE, "TAP": BLUE, "adaptive": GREEN}
LINES = {"naive": "--", "TAP": "-", "adaptive": "-."}
MARKERS = {"naive": "s", "TAP": "o", "adaptive": "^"}
SIDE = 4
"""Patches along a side of the image."""


def _strengths(ax: Axes, strengths: np.ndarray) -> None:
    ax.set_xscale("log")
    shown = [value for value in (0.1, 0.2, 0.5, 1.0, 2.0) if strengths[0] <= value <= strengths[-1]]
    style.plain_ticks(ax.xaxis, shown)
    ax.set_xlabel(r"coupling strength $g$")


def _errors(ax: Axes, strengths: np.ndarray, quartiles: Mapping[str, np.ndarray]) -> None:
    for name, (low, middle, high) in quartiles.items():
        ax.plot(
            strengths,
            middle,
            color=COLOURS[name],
            linestyle=LINES[name],
            marker=MARKERS[name],
            markersize=4.0,
            label=name,
        )
        ax.fill_between(strengths, low, high, color=COLOURS[name], alpha=0.15, linewidth=0)
    ax.set_yscale("log")
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    _strengths(ax, strengths)


@style.house
def errors(strengths: np.ndarray, quartiles: Mapping[int, Mapping[str, np.ndarray]], *, quantity: str) -> Figure:
    """Medians of errors against the coupling strength, the middle half of the systems shaded, a panel for each size.

    ``quartiles[num_spins][method]`` is (3, strengths), with methods "naive", "TAP", "adaptive".
    """
    figure, axes = style.subplots(1, len(quartiles), height=3.0, sharey=True, squeeze=False)
    for ax, (num_spins, by_method) in zip(axes[0], quartiles.items(), strict=True):
        _errors(ax, strengths, by_method)
        ax.set_title(f"$N = {num_spins}$", loc="center")
    axes[0, 0].set_ylabel(quantity)
    axes[0, -1].legend(loc="lower right")
    if len(quartiles) > 1:
        style.letters(*axes[0])
    return figure


@style.house
def convergence(
    strengths: np.ndarray,
    fractions: Mapping[str, np.ndarray],
    *,
    traces: Mapping[str, np.ndarray],
    lowest: np.ndarray,
    converged: np.ndarray,
) -> Figure:
    """Where plain iteration converges, how it fails, and the smallest eigenvalue along the way.

    ``fractions[method]`` (strengths,) of the systems converge. ``traces`` maps a description to the smallest eigenvalue
    after each step. ``lowest`` eigenvalue met and ``converged`` are (strengths, systems) of adaptive TAP.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.8)
    for name, values in fractions.items():
        left.plot(strengths, values, color=COLOURS[name], linestyle=LINES[name], marker=MARKERS[name], markersize=4.0)
    left.set(ylabel="fraction converged", ylim=(-0.03, 1.12))
    _strengths(left, strengths)
    for name, height in (("naive", 0.42), ("TAP", 0.30), ("adaptive", 0.18)):
        left.text(0.06, height, name, color=COLOURS[name], fontsize=8.5, transform=left.transAxes)

    looks = ((GREEN, "-.", 8.0), (BROWN, "-", 5.0))
    for (colour, line, offset), (name, eigenvalues) in style.dressed(looks, traces.items()):
        steps = np.arange(len(eigenvalues))
        middle.plot(steps, eigenvalues, color=colour, linestyle=line, linewidth=1.3)
        style.label(middle, name, (float(steps[-1]), float(eigenvalues[-1])), colour, (-4, offset), ha="right")
    middle.axhline(0, color=style.INK, linewidth=0.9, linestyle=":")
    middle.set(xlabel="step", ylabel=r"smallest eigenvalue of $\Lambda - J$")
    middle.set_yscale("symlog", linthresh=1.0)

    columns = np.broadcast_to(strengths[:, None], lowest.shape)
    nudge = 1 + 0.06 * (np.arange(lowest.shape[1]) / max(lowest.shape[1] - 1, 1) - 0.5)
    for chosen, colour, marker, face in ((converged, GREEN, "^", GREEN), (~converged, BROWN, "o", "none")):
        right.plot(
            (columns * nudge)[chosen],
            lowest[chosen],
            color=colour,
            marker=marker,
            markersize=3.5,
            markerfacecolor=face,
            linestyle="none",
        )
    right.axhline(0, color=style.INK, linewidth=0.9, linestyle=":")
    right.set_yscale("symlog", linthresh=1.0)
    right.set_ylabel("lowest eigenvalue on the way")
    _strengths(right, strengths)
    right.text(0.04, 0.20, "converged", color=GREEN, fontsize=8.5, transform=right.transAxes)
    right.text(0.04, 0.10, "did not", color=BROWN, fontsize=8.5, transform=right.transAxes)
    style.letters(left, middle, right)
    return figure


@style.house
def gaussian(radii: np.ndarray, deviations: Mapping[str, np.ndarray], *, residuals: Mapping[str, np.ndarray]) -> Figure:
    """Two readings of one symbol, and two ways to the mean of a Gaussian model.

    ``deviations`` "spin's variance" and "prior's covariance" (radii,): largest relative error of V by either reading.
    ``residuals`` maps a description of an iteration to |change| after each step.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.9)
    looks = {"spin's variance": (GREEN, "-.", "^", -15), "prior's covariance": (ORANGE, "--", "s", 8)}
    for name, values in deviations.items():
        colour, line, marker, offset = looks[name]
        left.plot(radii, values, color=colour, linestyle=line, marker=marker, markersize=4.0)
        style.label(
            left, rf"$\Sigma_i$: {name}", (float(radii[-1]), float(values[-1])), colour, (-4, offset), ha="right"
        )
    left.set(xlabel="spectral radius of $J$", ylabel="relative error of $V$")
    left.set_yscale("log")
    left.set_ylim(1e-19, 30)
    left.yaxis.set_major_locator(ticker.LogLocator(base=1e4))
    left.yaxis.set_minor_locator(ticker.NullLocator())
    dresses = ((ORANGE, "--", -13.0), (GREEN, "-.", 4.0), (BROWN, "-", -3.0))
    for (colour, line, offset), (name, values) in style.dressed(dresses, residuals.items()):
        steps = np.arange(len(values))
        right.plot(steps, values, color=colour, linestyle=line)
        style.label(right, name, (float(steps[-1]), float(values[-1])), colour, (4, offset))
    right.set(xlabel="step", ylabel="largest change of a mean")
    right.set_yscale("log")
    # Room for the lowest label above the numbers of the axis.
    right.margins(y=0.15)
    right.yaxis.set_minor_locator(ticker.NullLocator())
    style.letters(left, right)
    return figure


@style.house
def correction(
    spins: np.ndarray,
    truth: np.ndarray,
    *,
    fitted: np.ndarray,
    random: np.ndarray,
    quartiles: Mapping[str, np.ndarray],
) -> Figure:
    """The Onsager term V_i m_i against the mean, its fits by networks, and the resulting errors of the means.

    ``spins``, ``truth``, ``fitted`` and ``random`` are matching flat arrays of one component; ``quartiles[name]`` are
    the three of the errors of the magnetisations, with names in the order in which they are drawn.
    """
    figure, (left, middle, right) = style.subplots(1, 3, height=2.8, width_ratios=(1, 1, 1.25))
    left.plot(spins, truth, color=style.INK, marker=".", markersize=2.5, linestyle="none")
    left.set(xlabel=r"mean $m_i$", ylabel="correction $V_i m_i$")
    limits = float(np.abs(truth).max()) * 1.1
    for values, colour, marker in ((random, PURPLE, "v"), (fitted, BLUE, "o")):
        middle.plot(truth, values, color=colour, marker=marker, markersize=2.2, linestyle="none")
    middle.plot([-limits, limits], [-limits, limits], color=style.GREY, linestyle=":", linewidth=1.0)
    middle.set(xlabel="true correction", ylabel="output of the network", xlim=(-limits, limits))
    middle.text(0.05, 0.92, "trained", color=BLUE, fontsize=8.5, transform=middle.transAxes)
    middle.text(0.05, 0.82, "random", color=PURPLE, fontsize=8.5, transform=middle.transAxes)
    names = list(quartiles)
    for row, (low, centre, high) in enumerate(quartiles.values()):
        right.plot([low, high], [row, row], color=style.GREY, linewidth=3.0, linestyle="-", solid_capstyle="butt")
        right.plot([centre], [row], color=style.INK, marker="o", markersize=4.5, linestyle="none")
    right.set(xlabel="error of the means", ylim=(len(names) - 0.5, -0.5))
    right.set_xscale("log")
    right.set_yticks(range(len(names)), names)
    right.xaxis.set_minor_formatter(ticker.NullFormatter())
    style.letters(left, middle, right)
    return figure


@style.house
def initialisation(factors: Mapping[str, np.ndarray], sweeps: Mapping[str, np.ndarray]) -> Figure:
    """Accuracy, and the share of responses that did not converge, against a factor on the initial couplings or fields.

    Both map "couplings" and "fields": ``sweeps`` to (len(factors), 2, seeds), accuracy and share.
    """
    figure, axes = style.subplots(1, 2, height=2.8)
    looks = ((BLUE, "-", "o"), (ORANGE, "--", "s"))
    for k, (ax, label) in enumerate(zip(axes, ("accuracy on unseen digits", "share not found"), strict=True)):
        for (colour, line, marker), (name, values) in style.dressed(looks, sweeps.items()):
            ax.plot(factors[name], values[:, k].mean(axis=-1), color=colour, linestyle=line, label=name)
            for seed in range(values.shape[-1]):
                ax.plot(
                    factors[name], values[:, k, seed], color=colour, marker=marker, markersize=3.5, linestyle="none"
                )
        ax.axvline(1.0, color=style.GREY, linestyle=":", linewidth=1.0)
        ax.set(xscale="log", xlabel="factor at the start", ylabel=label, ylim=(-0.04, 1.04))
        style.plain_ticks(ax.xaxis, sorted({float(factor) for values in factors.values() for factor in values}))
    axes[1].legend(loc="upper left")
    style.letters(*axes)
    return figure


@style.house
def message_passing(predicted: np.ndarray, errors: Mapping[str, np.ndarray]) -> Figure:
    """Mean square error after each step: the predicted line, and means with standard errors for several corrections.

    ``errors[name]`` is (matrices, steps + 1), ``predicted`` (steps + 1,).
    """
    figure, ax = style.subplots(width="column", height=2.9)
    steps = np.arange(len(predicted))
    ax.plot(steps, predicted, color=style.INK, linestyle="-", linewidth=1.2)
    style.label(
        ax, "state evolution", (float(steps[3]), float(predicted[3])), style.INK, (-6, -8), ha="right", va="top"
    )
    looks = ((GREEN, "^"), (BLUE, "o"), (ORANGE, "s"))
    for (colour, marker), (name, rows) in style.dressed(looks, errors.items()):
        middle, spread = style.averages(rows, axis=0)
        ax.errorbar(steps, middle, spread, color=colour, marker=marker, markersize=4.0, linestyle="none", label=name)
    ax.set(xlabel="step", ylabel="mean square error", ylim=(0, None))
    ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.6))
    return figure


def places() -> np.ndarray:
    """Where the 17 spins are drawn, (17, 2): the class token left of the 4 x 4 patches, which are as in the image."""
    grid = [(column, SIDE - 1 - row) for row in range(SIDE) for column in range(SIDE)]
    return np.array([(-1.6, (SIDE - 1) / 2), *grid], dtype=float)


def _network(ax: Axes, norms: np.ndarray, *, top: float, scale: float = 1.0) -> None:
    """The strongest tenth of the couplings between the patches in their places and the class token."""
    at = places()
    for i, j in np.argwhere(norms >= np.quantile(norms[norms > 0], 0.9)):
        onto_class = i == 0
        ax.plot(
            *at[[i, j]].T,
            color=ORANGE if onto_class else BLUE,
            linestyle="-",
            linewidth=2.2 * scale * norms[i, j] / top,
            alpha=0.75,
            zorder=1 + int(onto_class),
        )
    ax.plot(*at[1:].T, color=style.INK, marker="o", markersize=2.8 * scale, linestyle="none", zorder=5)
    ax.plot(*at[:1].T, color=ORANGE, marker="D", markersize=4.5 * scale, linestyle="none", zorder=5)
    ax.set(xlim=(-2.1, SIDE - 0.5), ylim=(-0.6, SIDE - 0.4), aspect="equal")
    ax.axis("off")


@style.house
def network(norms: np.ndarray, *, top: float) -> Figure:
    """One frame of the animation: the couplings (17, 17) as lines, of which the widest stands for the norm ``top``."""
    figure, ax = style.subplots(width="column", height=2.6)
    _network(ax, norms, top=top, scale=1.8)
    return figure


@style.house
def organisation(updates: Sequence[int], norms: np.ndarray) -> Figure:
    """Couplings between the class token and the patches at several times: pictures of the network above, |J_ij| below.

    ``norms`` is (times, 17, 17); row i holds what acts on spin i. Of each picture the strongest tenth is drawn.
    """
    figure, axes = style.subplots(2, len(updates), height=2.9, squeeze=False)
    top = float(norms.max())
    for graph, matrix, update, values in zip(axes[0], axes[1], updates, norms, strict=True):
        _network(graph, values, top=top)
        graph.set_title(f"{update} updates", loc="center", fontsize=8.5)
        image = matrix.imshow(values, vmin=0, vmax=top, cmap=style.SEQUENTIAL, interpolation="nearest")
        matrix.set(xticks=[0, 16], yticks=[0, 16], xlabel="from $j$")
        matrix.tick_params(labelleft=matrix is axes[1, 0])
    axes[1, 0].set_ylabel("onto $i$")
    figure.colorbar(image, ax=axes[1].tolist(), label="$|J_{ij}|$", fraction=0.03, pad=0.01)
    return figure


@style.house
def headline(
    updates: Sequence[int],
    accuracies: np.ndarray,
    organised: np.ndarray,
    patterns: np.ndarray,
    *,
    published: float,
    asked: tuple[int, float],
    fallen: np.ndarray | None = None,
) -> Figure:
    """Long trainings: errors on the test set after each look, and how much of the change of the couplings is made.

    ``accuracies``, ``organised`` and ``patterns``, the correlation of the couplings with the last ones, are (runs,
    looks), with ``looks`` the length of ``updates``, the first of which is the start. ``published`` is an accuracy, and
    ``asked`` an update with the part that is expected after it. ``fallen`` has the accuracies of a further training.
    """
    figure, (left, right) = style.subplots(1, 2, height=2.7)
    trained = np.asarray(updates) > 0
    times = np.asarray(updates)[trained]
    about = {"linewidth": 0.8, "alpha": 0.7}
    for k, (accuracy, part, pattern) in enumerate(zip(accuracies, organised, patterns, strict=True)):
        first = k == 0
        blue = about | {"color": BLUE, "linestyle": "-"}
        left.plot(times, 100 * (1 - accuracy[trained]), **blue, label="one seed each" if first else None)
        right.plot(times, part[trained], **blue, label="change that is made" if first else None)
        green = about | {"color": GREEN, "linestyle": "-."}
        right.plot(times, pattern[trained], **green, label="correlation with the last" if first else None)
    if fallen is not None:
        grey = {"color": style.GREY, "linestyle": ":", "linewidth": 1.1}
        left.plot(times, 100 * (1 - np.asarray(fallen)[trained]), **grey, label="exact gradient")
    left.axhline(100 * (1 - published), color=ORANGE, linestyle="--", label="published")
    right.plot(*asked, marker="D", color=ORANGE, linestyle="none", label="asked for, at least")
    for ax in (left, right):
        ax.set(xscale="log", xlabel="updates")
    left.set(yscale="log", ylabel="errors on the test set (%)", ylim=(0.6, 150))
    left.legend(loc="upper center")
    style.plain_ticks(left.yaxis, (1, 3, 10, 30, 90))
    right.set(ylabel="norms of the couplings", ylim=(0, 1.5), yticks=np.linspace(0, 1, 6))
    right.legend(loc="upper left")
    style.letters(left, right)
    return figure
