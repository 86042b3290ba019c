"""Films of three spins in a ring, as taken or reversed: markup of the live model, and the picture in its place."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters import scripts
from spinbook.ising import exact


def markup(*, asymmetry: float = 0.5, beta: float = 0.7, steps: int = 24, seed: int = 7) -> str:
    """The ring at the beginning and the seed of its films, for ``_static/live/entropy-production.js``."""
    content = {"asymmetry": float(asymmetry), "beta": float(beta), "steps": int(steps), "seed": int(seed)}
    return scripts.markup("entropy-production", content)


def _film(asymmetry: float, beta: float, steps: int, rng: np.random.Generator) -> np.ndarray:
    left = np.roll(np.eye(3), 1, axis=0)
    P = np.asarray(exact.transition_matrix(left + (1 - asymmetry) * left.T, 0.0, beta=beta), float)
    seen = [0]
    for _ in range(40 + steps):  # the first forty lead to the steady state
        seen.append(rng.choice(8, p=P[:, seen[-1]] / P[:, seen[-1]].sum()))
    return np.asarray(exact.states(3))[seen[-steps - 1 :]]


def still(*, asymmetry: float = 0.5, beta: float = 0.7, steps: int = 24, seed: int = 7) -> Figure:
    """A film at this asymmetry and one of a one-way ring, each beside its reverse."""
    rng = np.random.default_rng(seed)
    with plt.style.context("spinbook.book"):
        figure, axes = plt.subplots(2, 2, figsize=(7, 1.9))
        for row, a in zip(axes, (asymmetry, 1.0), strict=True):
            film = _film(a, beta, steps, rng).T
            for ax, shown, title in zip(row, (film, film[:, ::-1]), ("as taken", "reversed"), strict=True):
                ax.pcolormesh(shown > 0, cmap="Blues", vmin=0, vmax=1.3, edgecolors="white", linewidth=1.5)
                ax.set(xticks=[], yticks=[0.5, 1.5, 2.5], yticklabels="123", ylim=(3, 0), aspect="equal")
                ax.set_title(f"asymmetry {a:g}, {title}")
                ax.tick_params(length=0)
                ax.spines[:].set_visible(False)
        for ax in axes[1]:
            ax.set_xlabel(r"time $\longrightarrow$")
    return figure
