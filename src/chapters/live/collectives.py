"""Three spins in the plane and their fields: markup of the live model, and the picture in its place."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from scipy.special import softmax

from chapters import scripts

FIELDS = np.array([[0.4, 1.6], [-0.9, 0.3], [0.9, -0.6]])
SCORES = np.array([[2.0, 0.8], [-0.8, 1.5]])
"""The matrix A of couplings that read the fields, softmax(h A h^T)."""
SITES = ((0.0, 1.25), (-1.5, -1.15), (1.5, -1.15))
SCALE = 0.8
"""Arrows are drawn at this size, so that circles of neighbours stay apart."""


def markup(*, beta: float = 1.0, coupling: float = 0.8) -> str:
    """The first fields, the scores and the first values of the sliders, for ``_static/live/collectives.js``."""
    content = {
        "fields": FIELDS.tolist(),
        "scores": SCORES.tolist(),
        "beta": float(beta),
        "coupling": float(coupling),
        "sites": [list(site) for site in SITES],
        "scale": SCALE,
    }
    return scripts.markup("collectives", content)


def still(*, beta: float = 1.0, coupling: float = 0.8) -> Figure:
    """Fields and mean spins, for the same coupling between any two spins."""
    angles = 2 * np.pi * np.arange(24) / 24
    circle = np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    states = np.array(list(itertools.product(circle, repeat=3)))
    # Half of the coupling from i to j and half from j to i; the spins have equal lengths.
    pairs = ((states.sum(axis=1) ** 2).sum(axis=1) - 6) / 2
    weights = softmax(beta * (coupling * pairs + np.einsum("ia,kia->k", FIELDS, states)))
    means = np.tensordot(weights, states, 1)
    with plt.style.context("spinbook.book"):
        figure, ax = plt.subplots(figsize=(3.6, 3.3))
        for site, field, mean in zip(np.array(SITES), FIELDS, means, strict=True):
            ax.add_patch(plt.Circle(site, np.sqrt(2) * SCALE, fill=False, color="0.5"))
            for vector, colour, width in ((field, "C2", 1.5), (mean, "C0", 3)):
                arrow = {"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0}
                ax.annotate("", site + SCALE * vector, site, arrowprops=arrow)
        ax.set(xlim=(-2.9, 2.9), ylim=(-2.5, 2.9), aspect="equal")
        ax.axis("off")
    return figure
