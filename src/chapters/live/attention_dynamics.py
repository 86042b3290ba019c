"""Two copies of an attention loop that start a millionth apart: markup of the live model, and its picture."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters import scripts
from spinbook.self_attention import paper_network, simulate

NETWORK = paper_network()
APART = 1e-6


def _window(beta: float) -> np.ndarray:
    """A window (K, M) after many tokens, before a token at position 0."""
    return simulate(NETWORK, beta=beta, steps=1, transient=3999).window.attention


def markup(*, beta: float = 1.28) -> str:
    """The paper's network, a window and the first temperature, for ``_static/live/attention-dynamics.js``."""
    content = {
        "semantic": NETWORK.semantic_signs.tolist(),
        "positional": NETWORK.positional_signs.tolist(),
        "epsilon": NETWORK.epsilon,
        "gamma": NETWORK.gamma,
        "start": _window(beta).tolist(),
        "beta": float(beta),
    }
    return scripts.markup("attention-dynamics", content)


def still(*, beta: float = 1.28) -> Figure:
    """An overlap of both copies, their distance, and the tokens in the plane of two overlaps."""
    start = _window(beta)
    copies = [
        simulate(NETWORK, beta=beta, steps=400, start=window) for window in (start, start + APART / start.size**0.5)
    ]
    distance = np.linalg.norm(copies[0].attention - copies[1].attention, axis=1)
    with plt.style.context("spinbook.book"):
        figure, (orbit, parting, plane) = plt.subplots(1, 3, figsize=(7, 2.5))
        for copy, line in zip(copies, ("C3-", "C1--"), strict=True):
            orbit.plot(copy.output_semantic[:120, 0], line, linewidth=1)
        parting.semilogy(np.maximum(distance, 1e-17), "C0-", linewidth=1)
        plane.plot(*copies[0].output_semantic[:, :2].T, "C3.", markersize=2)
        orbit.set(xlabel="token", ylabel="first overlap")
        parting.set(xlabel="token", ylabel="distance of the copies")
        plane.set(xlabel="first overlap", ylabel="second overlap")
    return figure
