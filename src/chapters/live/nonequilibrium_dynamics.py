"""Four tokens that make updates towards their state of rest: markup of the live model, and the picture in its place."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters import scripts
from spinbook import sphere

FIELDS = np.array([[1.4, 0.5], [-0.6, 1.3], [1.1, -0.9], [-0.5, -0.5]])
"""Over the radius, as everything here."""
SCORES, SHARPNESS = np.array([[0.0, -1.0], [1.0, 0.0]]), 2.0
"""Couplings are the causal softmax(SHARPNESS u SCORES u^T) of the directions u of the fields."""
VALUES = np.array([[np.cos(2.4), -np.sin(2.4)], [np.sin(2.4), np.cos(2.4)]])
PLACES = ((0.0, 0.0), (2.4, 0.0), (4.8, 0.0), (7.2, 0.0))
R = sphere.radius(32)


def markup(*, updates: int = 1, beta: float = 1.0) -> str:
    """The fields, the couplings and the first K and beta, for ``_static/live/nonequilibrium-dynamics.js``."""
    content = {
        "fields": FIELDS.tolist(),
        "scores": SCORES.tolist(),
        "values": VALUES.tolist(),
        "sharpness": SHARPNESS,
        "beta": float(beta),
        "updates": int(updates),
        "places": [list(place) for place in PLACES],
    }
    return scripts.markup("nonequilibrium-dynamics", content)


def path(beta: float, updates: int) -> np.ndarray:
    """The means after 0, 1, ..., updates, (updates + 1, 4, 2)."""

    def answer(h: np.ndarray) -> np.ndarray:
        in_space = R * np.pad(h, ((0, 0), (0, 30)))
        return np.asarray(sphere.magnetization_large_d(in_space, beta=beta))[:, :2] / R

    u = FIELDS / np.linalg.norm(FIELDS, axis=1, keepdims=True)
    J = np.tril(np.exp(SHARPNESS * u @ SCORES @ u.T))
    means = [answer(u @ VALUES.T)]
    for _ in range(updates):
        means.append(answer(FIELDS + J / J.sum(axis=1, keepdims=True) @ means[-1]))
    return np.array(means)


def still(*, updates: int = 1, beta: float = 1.0) -> Figure:
    """Fields, means after the updates and means at rest, and the share of the distance that is left."""
    means = path(beta, 100)
    gaps = np.linalg.norm(means - means[-1], axis=(1, 2))
    with plt.style.context("spinbook.book"):
        figure, (plane, curve) = plt.subplots(1, 2, figsize=(7, 2.2), width_ratios=(2.2, 1))
        looks = ((FIELDS, "C2", 1.2, "field"), (means[-1], "C1", 1.6, "at rest"), (means[updates], "C0", 2.4, "now"))
        for vectors, colour, width, label in looks:
            for place, vector in zip(PLACES, vectors, strict=True):
                arrow = {"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0}
                plane.annotate("", np.add(place, vector), place, arrowprops=arrow)
            plane.plot([], [], colour, lw=width, label=label)
        for place in PLACES:
            plane.add_patch(plt.Circle(place, 1, fill=False, color="0.7"))
        plane.set(xlim=(-1.2, 8.9), ylim=(-2.4, 1.9), aspect="equal")
        plane.axis("off")
        plane.legend(loc="lower center", ncols=3)
        curve.semilogy(gaps[:13] / gaps[0], "C0o-")
        curve.semilogy(updates, gaps[updates] / gaps[0], "C1o", markersize=8)
        curve.set(xlabel="updates", ylabel="share left", xticks=[0, 4, 8, 12])
    return figure
