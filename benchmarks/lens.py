"""Benchmarks of ``spinbook.lens`` against one head after another. Each takes its size."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from benchmarks import Benchmark
from spinbook import lens


def _one_head(J):
    """The measures of one head (N, N), in the order of ``lens.measure``; one eigensystem gives two of them."""
    N = len(J)
    values, left = scipy.linalg.eig(J, left=True, right=False)
    order = np.argsort(-np.abs(values))
    pi = np.abs(left[:, order[0]])
    pi /= pi.sum()
    flow = pi[:, None] * J
    i, j = np.triu_indices(N, 1)
    currents = flow[i, j] - flow[j, i]
    return [
        np.mean([1 / (row @ row) for row in J]),
        N * pi @ pi,
        np.abs(values[order[1]]),
        currents @ np.log(flow[i, j] / flow[j, i]),
        max(np.trace(J, d) / (N - abs(d)) for d in range(-(N // 2), N // 2 + 1)),
        np.minimum(J[i, j], J[j, i]).max(),
        J[1:, 0].mean(),
    ]


def measure(size=32, *, num_layers=6, num_heads=12, num_tokens=64, dim=384):
    """Every measure of all heads on ``size`` windows; a third of the heads have a sink, and a third a position."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(num_layers, size, num_heads, num_tokens, num_tokens))
    logits[:, :, ::3, :, 0] += 4
    logits[:, :, 1::3] += 4 * np.eye(num_tokens, k=-1)
    J = np.exp(logits)
    J /= J.sum(axis=-1, keepdims=True)
    states = rng.normal(size=(num_layers + 1, size, num_tokens, dim))

    def ours():
        found = lens.measure(J, states)
        heads = [found[name] for name in found if name != "token_cosine"]
        return np.concatenate([np.stack(heads, axis=-1).ravel(), found.token_cosine.to_numpy().ravel()])

    def baseline():
        heads = [
            _one_head(J[layer, window, head])
            for window in range(size)
            for layer, head in np.ndindex(*J.shape[:1], num_heads)
        ]
        pairs = np.triu_indices(num_tokens, 1)
        directions = [
            x / np.linalg.norm(x, axis=-1, keepdims=True) for window in range(size) for x in states[:, window]
        ]
        return np.concatenate([np.ravel(heads), [(u @ u.T)[pairs].mean() for u in directions]])

    # Eigenvalues of matrices that are not symmetric are the least certain.
    return Benchmark(
        f"lens.measure, {num_layers * num_heads} heads on {size} windows of {num_tokens} tokens",
        ours,
        baseline,
        lambda ours, baseline: float(np.max(np.abs(ours - baseline) / (1e-9 * (1 + np.abs(baseline))))),
    )


BENCHMARKS = (measure,)
