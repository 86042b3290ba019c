"""The figures of the lesson on a trained transformer: each function draws measures of heads.

A map of heads has a row for each layer, the first below, and a column for each head.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters import scripts, style

__all__ = ["cosines", "heads", "irreversible", "laws", "live_markup", "two_networks"]

BLUE, ORANGE, GREEN, PURPLE, OCHRE, BROWN = style.QUALITATIVE
SHOWN = ("attended", "concentration", "irreversibility", "positional", "first_token", "second_eigenvalue")
_KEPT = 8
"""Weights of a row that the live model shows; all others are small."""


def _map(ax: Axes, values: np.ndarray, title: str) -> None:
    layers, heads = values.shape
    edges = np.arange(heads + 1) + 0.5, np.arange(layers + 1) + 0.5
    mesh = ax.pcolormesh(*edges, values, cmap=style.SEQUENTIAL, rasterized=True)
    ax.set_title(title, loc="center", fontsize=9)
    ax.set(yticks=np.arange(1, layers + 1), xticks=np.unique(np.linspace(1, heads, min(heads, 4)).astype(int)))
    ax.figure.colorbar(mesh, ax=ax, pad=0.02)


@style.house
def heads(dataset: Any, names: Sequence[str] | None = None) -> Figure:
    """Maps of the measures of ``spinbook.lens.measure``, means over windows, a panel each: layer against head.

    ``names``: the measures to draw; all measures of heads by default.
    """
    measures = [name for name, values in dataset.data_vars.items() if {"layer", "head"} <= set(values.dims)]
    chosen = list(names) if names is not None else measures
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure, axes = style.subplots(rows, columns, height=1.9 * rows + 0.3, squeeze=False)
    for ax, name in zip(axes.flat, chosen, strict=False):
        values = dataset[name].mean("window").transpose("layer", "head").values
        _map(ax, values, dataset[name].attrs.get("long_name", name))
    for ax in axes.flat[len(chosen) :]:
        ax.axis("off")
    for ax in axes[:, 0]:
        ax.set_ylabel("layer")
    for ax in axes[-1]:
        ax.set_xlabel("head")
    return figure


def live_markup(
    attention: np.ndarray,
    tokens: Sequence[str],
    measures: Mapping[str, tuple[str, np.ndarray]],
    *,
    start: tuple[int, int],
) -> str:
    """The numbers of the live model and the scripts that draw it, as markup for the page.

    ``attention`` (L, H, N, N) of one window, of which the largest weights of each row are kept, in 255 parts;
    ``measures``: name -> words and values (L, H); ``start``: layer and head, counted from one.
    """
    J = np.asarray(attention, float)
    order = np.argsort(-J, axis=-1, kind="stable")[..., :_KEPT]
    weights = np.round(255 * np.take_along_axis(J, order, axis=-1)).astype(np.uint8)
    packed = np.stack([order.astype(np.uint8), weights], axis=-1)
    content = {
        "layers": J.shape[0],
        "heads": J.shape[1],
        "kept": _KEPT,
        "tokens": [str(token) for token in tokens],
        "weights": base64.b64encode(packed.tobytes()).decode(),
        "measures": [
            {"name": name, "words": words, "values": [[float(f"{v:.4g}") for v in row] for row in np.asarray(values)]}
            for name, (words, values) in measures.items()
        ],
        "start": list(start),
    }
    return scripts.markup("trained-transformer", content)


@style.house
def cosines(courses: Mapping[str, np.ndarray], errors: Mapping[str, np.ndarray]) -> Figure:
    """The mean cosine of two tokens by depth, a curve for each network or change of it; named beside its end."""
    figure, ax = style.subplots(1, 1, height=3.2, width="page")
    colours = (BLUE, ORANGE, PURPLE, GREEN, OCHRE, BROWN)
    for (name, values), colour, line, marker in zip(
        courses.items(), colours, style.LINE_STYLES, style.MARKERS, strict=False
    ):
        depth = np.arange(len(values))
        ax.errorbar(
            depth, values, errors.get(name), color=colour, linestyle=line, marker=marker, markersize=4, label=name
        )
    ax.set(xlabel="layers passed", ylabel="mean cosine of two tokens", ylim=(-0.03, 1.05))
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


@style.house
def laws(measured: np.ndarray, predicted: Mapping[str, np.ndarray]) -> Figure:
    """The error of naive delayed correlations of each head: predicted against measured, one panel for each law."""
    figure, axes = style.subplots(1, len(predicted), height=2.6, sharex=True, sharey=True)
    ends = np.array([0.05, 1.0])
    for letter, ax, colour, (name, values) in style.dressed("abc", axes, (ORANGE, PURPLE, BLUE), predicted.items()):
        ax.plot(ends, ends, color=style.GREY, linewidth=1.0, linestyle="-")
        ax.plot(measured.ravel(), np.ravel(values), color=colour, marker="o", markersize=3, linestyle="none")
        ax.set(xscale="log", yscale="log", xlabel="measured")
        ax.set_title(name, loc="center")
        for axis in (ax.xaxis, ax.yaxis):
            style.plain_ticks(axis, [0.05, 0.1, 0.2, 0.5, 1])
        style.panel_label(ax, letter)
    axes[0].set_ylabel("predicted")
    return figure


@style.house
def irreversible(sigma: np.ndarray, scores: Mapping[str, np.ndarray]) -> Figure:
    """Entropy production of each head against each of the ``scores``; colour and marker by layer."""
    figure, axes = style.subplots(1, len(scores), height=2.7, sharey=True)
    for letter, ax, (name, values) in style.dressed("abc", axes, scores.items()):
        for k, (x, y) in enumerate(zip(values, sigma, strict=True)):
            colour, marker = style.QUALITATIVE[k], style.MARKERS[k]
            ax.plot(x, y, color=colour, marker=marker, markersize=4, linestyle="none", label=f"layer {k + 1}")
        ax.set(xlabel=name, yscale="log")
        style.panel_label(ax, letter)
    axes[0].set_ylabel("entropy production")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(sigma))
    return figure


@style.house
def two_networks(courses: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """A panel for each measure, by layer or depth: words -> curves of both networks, and of their controls, dashed."""
    columns = 3
    rows = -(-len(courses) // columns)
    figure, axes = style.subplots(rows, columns, height=2.1 * rows + 0.5, squeeze=False)
    looks = zip((BLUE, BLUE, ORANGE, ORANGE), ("-", "--", "-", "--"), ("o", "", "^", ""), strict=True)
    known = dict(zip(next(iter(courses.values())), looks, strict=True))
    for letter, ax, (words, curves) in style.dressed("abcdef", axes.flat, courses.items()):
        for name, values in curves.items():
            colour, line, marker = known[name]
            x = np.arange(len(values)) + (len(values) == 6)
            ax.plot(x, values, color=colour, linestyle=line, marker=marker, markersize=4, label=name)
        ax.set_title(words, loc="center")
        ax.set(xticks=x)
        style.panel_label(ax, letter)
    for ax in axes[-1]:
        ax.set_xlabel("layer")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
