"""Three coupled spins, of which one receives data: markup of the live model, and the picture in its place."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters import scripts
from spinbook.adaptive_tap import exact, ising

FIELDS = np.array([0.5, 0.0, 0.0])
REACH = 1.0
"""The coupling is moved between -REACH and REACH."""


def markup(*, coupling: float = 0.6) -> str:
    """The fields and the first coupling, for ``_static/live/adaptive-tap.js``."""
    content = {"fields": FIELDS.tolist(), "coupling": float(coupling), "reach": REACH}
    return scripts.markup("adaptive-tap", content)


def still(*, coupling: float = 0.6) -> Figure:
    """The mean of the first spin against the coupling, and the three means at one coupling."""
    couplings = np.append(np.linspace(-REACH, REACH, 41), coupling)
    systems = couplings[:, None, None] * (np.ones((3, 3)) - np.eye(3))
    answers = {
        "true": exact.magnetizations(systems, FIELDS).numpy(),
        "naive mean field": ising.solve_naive_ising(systems, FIELDS).magnetizations.numpy(),
        "adaptive TAP": ising.solve_ising(systems, FIELDS).magnetizations.numpy(),
    }
    with plt.style.context("spinbook.book"):
        figure, (bars, curves) = plt.subplots(1, 2, figsize=(7, 2.9), width_ratios=(1, 1.5))
        looks = (("k", "-", -0.28), ("C1", "--", 0.0), ("C2", "-.", 0.28))
        for (name, means), (colour, line, aside) in zip(answers.items(), looks, strict=True):
            bars.bar(np.arange(3) + aside, means[-1], 0.26, color=colour)
            curves.plot(couplings[:-1], means[:-1, 0], color=colour, linestyle=line, label=name)
        curves.axvline(coupling, color="0.7", linestyle=":")
        bars.set_xticks(range(3), ["first", "second", "third"])
        bars.set(xlabel="spin", ylabel="mean", ylim=(0, 1.05))
        curves.set(xlabel="coupling", ylabel="mean of the first spin", ylim=(0, 1.05))
        curves.legend(loc="lower center")
    return figure
