"""Twelve trembling arrows, one of which attends to the others: markup of the live model, and its still picture."""

from __future__ import annotations

import jax
import matplotlib.pyplot as plt
import numpy as np
import scipy.special
from matplotlib.figure import Figure

from chapters import scripts
from spinbook import sphere

_PLACE = np.arange(1, 12)
_TURN = 0.6 + 1.2 * (5 * _PLACE % 11 - 5) / 5  # a fan, in mixed order
_TILT = 0.25 * np.sin(3 * _PLACE)
_FAN = np.stack([np.cos(_TILT) * np.cos(_TURN), np.cos(_TILT) * np.sin(_TURN), np.sin(_TILT)], axis=1)
FIELDS = sphere.radius(3) * np.vstack([[0.25, 0, 0], np.where(_PLACE == 4, 0.275, 0.5)[:, None] * _FAN])
"""The first arrow, which attends, has a weak field, and so has the one that it attends to in the end."""
LOGITS = np.where(_PLACE == 4, 1.0, 0.7 * np.cos(2.1 * _PLACE) - 0.25)


def markup(*, sharpness: float = 0.0, beta: float = 10.0) -> str:
    """The fields, the logits of the first row and the first settings, for ``_static/live/spin-transformers.js``."""
    content = {"fields": FIELDS.tolist(), "logits": LOGITS.tolist(), "beta": float(beta), "sharpness": float(sharpness)}
    return scripts.markup("spin-transformers", content)


def couplings(sharpness: float) -> np.ndarray:
    """The row of the first arrow, (11,): a softmax of the sharpness times the logits."""
    row: np.ndarray = scipy.special.softmax(sharpness * LOGITS)
    return row


def still(*, sharpness: float = 0.0, beta: float = 10.0) -> Figure:
    """The arrows seen from above at the first sharpness and where attention is on one, sampled and predicted."""
    free = np.asarray(sphere.magnetization(FIELDS, beta=beta))
    keys = jax.random.split(jax.random.key(2666))
    others = sphere.sample(keys[0], np.broadcast_to(FIELDS[1:], (2000, 11, 3)), beta=beta)
    with plt.style.context("spinbook.book"):
        figure, axes = plt.subplots(1, 2, figsize=(6, 3))
        for ax, row in zip(axes, (couplings(sharpness), couplings(12.0)), strict=True):
            guess = np.asarray(sphere.magnetization(FIELDS[0] + row @ free[1:], beta=beta))
            tips = np.asarray(sphere.sample(keys[1], FIELDS[0] + np.einsum("j,rjd->rd", row, others), beta=beta))
            ax.add_patch(plt.Circle((0, 0), sphere.radius(3), fill=False, color="0.7"))
            ax.plot(*tips[:200, :2].T, ".", color="0.7", ms=2)
            looks = [(m, "0.5", 1) for m in free[1:]] + [(tips.mean(axis=0), "C0", 3), (guess, "C1", 1.5)]
            for tip, colour, width in looks:
                ax.annotate("", tip[:2], (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": width})
            ax.plot(*free[0, :2], "x", color="k")
            ax.set(aspect="equal", title=f"attends to {1 / np.sum(row**2):.1f} of 11")
            ax.axis("off")
    return figure
