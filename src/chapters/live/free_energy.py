"""Four coupled arrows in four fields: markup of the live model, and the picture in its place."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters import scripts
from spinbook.free_energy import VectorSpinModel

NAMES = "ABCD"
FIELDS = np.array([[1.0, 0.25], [0.1, 0.6], [-0.15, -0.3], [-0.6, 0.75]])
BONDS = np.diag([1.0, 1.0, -1.0], k=1) + np.diag([1.0, 1.0, -1.0], k=-1)
"""A and B pull at each other, and B and C; C and D push."""


def markup(*, temperature: float = 0.6, coupling: float = 0.5) -> str:
    """The fields, the couplings ``coupling * BONDS`` and the first temperature, for ``_static/live/free-energy.js``."""
    content = {
        "names": list(NAMES),
        "fields": FIELDS.tolist(),
        "couplings": (coupling * BONDS).tolist(),
        "temperature": float(temperature),
    }
    return scripts.markup("free-energy", content)


def still(*, temperature: float = 0.6, coupling: float = 0.5) -> Figure:
    """Fields and mean directions in the plane, and the table of weights."""
    J = coupling * BONDS
    t = VectorSpinModel(4, 2, 1 / temperature, J).saddle_point(FIELDS).value.numpy()
    weights = np.linalg.inv(np.diag(t) - J) / 2
    with plt.style.context("spinbook.book"):
        figure, (plane, table) = plt.subplots(1, 2, figsize=(6, 2.9))
        plane.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.7"))
        for tips, colour, width in ((FIELDS, "0.5", 1), (weights @ FIELDS, "C0", 2)):
            for name, tip in zip(NAMES, tips, strict=True):
                plane.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": width})
                plane.annotate(name, tip * (1 + 0.14 / np.linalg.norm(tip)), color=colour, ha="center", va="center")
        plane.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
        plane.axis("off")
        top = np.abs(weights).max()
        table.imshow(weights, cmap="RdBu", vmin=-1.6 * top, vmax=1.6 * top)
        for (row, column), weight in np.ndenumerate(weights):
            table.text(column, row, f"{weight:.2f}".replace("-", "\N{MINUS SIGN}"), ha="center", va="center")
        table.set(xlabel="field at", ylabel="weight in the direction of")
        table.set_xticks(range(4), NAMES)
        table.set_yticks(range(4), NAMES)
    return figure
