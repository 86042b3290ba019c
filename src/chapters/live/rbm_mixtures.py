"""The live model of rbm-mixtures: a query among five patterns in a plane, and the picture that attention returns."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters import scripts
from experiments.datasets import digits
from spinbook import rbm

_NAMES, _REACH = "ABCDE", 2.8
_PLACES = np.array([[1.8, 0.8], [1.0, 1.7], [-1.9, 0.5], [-0.4, -1.9], [1.6, -1.2]])
# Borders of the shades of the energy, measured from its minimum; the script has the same.
_SHADES = np.array([0.0, 0.05, 0.15, 0.35, 0.65, 1.1, 1.7, 2.5, 3.5, 5.0])


def _pictures() -> np.ndarray:
    """The ink, from 0 to 1, of a handwritten 3, 8, 0, 6 and 1."""
    images = digits.load()
    labels = np.asarray(images.labels)
    return (1 + np.asarray(images.patterns)[[np.flatnonzero(labels == digit)[17] for digit in (3, 8, 0, 6, 1)]]) / 2


def markup(*, beta: float = 1.0, query: Sequence[float] = (0.5, 0.35)) -> str:
    """The patterns with their pictures, the first query and the scripts that move it."""
    content = {
        "names": list(_NAMES),
        "patterns": _PLACES.tolist(),
        "pictures": np.round(_pictures(), 3).tolist(),
        "query": [float(value) for value in query],
        "beta": beta,
        "reach": _REACH,
    }
    return scripts.markup("rbm-mixtures", content)


def still(*, beta: float = 1.0, query: Sequence[float] = (0.5, 0.35)) -> Figure:
    """The plane with the energy, the weights, one step and the end of many, and the returned picture."""
    line = np.linspace(-_REACH, _REACH, 121)
    plane_points = np.stack(np.meshgrid(line, line), axis=-1)  # indexed [y, x]
    energy = np.asarray(rbm.modern_hopfield_energy(plane_points, _PLACES, beta=beta))
    shares = np.asarray(rbm.responsibilities(query, _PLACES, beta=beta))
    path = [np.asarray(query)]
    for _ in range(500):
        path.append(np.asarray(rbm.retrieve(path[-1], _PLACES, beta=beta)))
    with plt.style.context("spinbook.book"):
        figure, (plane, answer) = plt.subplots(1, 2, figsize=(7, 3.6), width_ratios=(1, 0.6))
        plane.contourf(line, line, energy - energy.min(), _SHADES, cmap="Blues_r", alpha=0.35)
        for place, share, name in zip(_PLACES, shares, _NAMES, strict=True):
            plane.plot(*zip(query, place, strict=True), "C1-", lw=0.4 + 6 * share)
            plane.plot(*place, "C1o", ms=12)
            plane.text(*place, name, color="white", ha="center", va="center_baseline")
        plane.plot(*path[1], "ko", ms=8, mfc="none")
        plane.plot(*path[-1], "kx", ms=8, mew=2)
        plane.plot(*query, "C0o", ms=8)
        plane.set(xlim=(-_REACH, _REACH), ylim=(-_REACH, _REACH), aspect="equal", xticks=[], yticks=[])
        plane.set_title(rf"$\beta = {beta:g}$", loc="center")
        answer.imshow((shares @ _pictures()).reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
        answer.set(xticks=[], yticks=[])
        answer.set_title("returned", loc="center")
    return figure
