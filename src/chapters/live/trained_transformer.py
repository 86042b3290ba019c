"""All heads of a trained encoder on a window of text: markup of the live model, and the picture in its place."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters import trained_transformer as plot
from experiments import lens_record

LENSES = {
    "to [CLS]": ("attention to the first token", "first_token"),
    "value of [CLS]": ("length of its value over that of others", "first_value"),
    "P": ("P, concentration of the stationary distribution", "concentration"),
    "tokens read": ("number of tokens that a token reads", "attended"),
    "one distance": ("attention at one distance", "positional"),
    "irreversible": ("entropy production, nats a step", "irreversibility"),
}
"""Name of a button -> what it is in words, and its name in the record."""


def markup(*, window: int = 0, layer: int = 3, head: int = 5) -> str:
    """Weights of every head on one of the two recorded windows, and means of ``LENSES`` over all 32."""
    record, data = lens_record.recorded(), lens_record.sample()
    lenses = {name: (words, lens_record.by_head(record, key)) for name, (words, key) in LENSES.items()}
    return plot.live_markup(data.attention[:, window], data.tokens[window], lenses, start=(layer, head))


def still(*, window: int = 0, layer: int = 3, head: int = 5) -> Figure:
    """The attention to the first token in all heads, and the weights of one head."""
    seen = lens_record.by_head(lens_record.recorded(), "first_token")
    J = lens_record.sample().attention[layer - 1, window, head - 1]
    with plt.style.context("spinbook.book"):
        figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 2.9))
        L, H = seen.shape
        mesh = left.pcolormesh(np.arange(H + 1) + 0.5, np.arange(L + 1) + 0.5, seen, rasterized=True)
        left.set(xlabel="head", ylabel="layer", title="attention to [CLS]", xticks=range(1, H + 1, 2))
        figure.colorbar(mesh, ax=left)
        right.imshow(np.sqrt(J), interpolation="nearest")
        right.set(xlabel="token that is read", ylabel="token", title=f"layer {layer}, head {head}")
    return figure
