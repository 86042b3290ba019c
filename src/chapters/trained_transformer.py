"""Maps of the measures of heads: a row for each layer, the first below, and a column for each head."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters import scripts, style

_KEPT = 8
"""Weights of a row that the live model shows; all others are small."""


def _map(ax: Axes, values: np.ndarray, title: str) -> None:
    layers, heads = values.shape
    edges = np.arange(heads + 1) + 0.5, np.arange(layers + 1) + 0.5
    mesh = ax.pcolormesh(*edges, values, rasterized=True)
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
