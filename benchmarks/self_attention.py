"""Benchmarks of ``spinbook.self_attention`` against plain NumPy loops and against its own definition in JAX.

Recorded elsewhere, in million steps x betas per second on one core of 2.5 GHz, without exponents, with the largest,
with all 12: the authors' program 0.0022, and 0.00005 for any exponents at all; the best prototypes 77, 58 and 7.6; JAX
16 and 2.6. An absolute rate depends on the machine; the ratios of one run are what compares.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import Benchmark
from spinbook.self_attention import (
    bifurcation,
    paper_network,
    positional_bits,
    token_window,
)

# The fixed points of the four-step map: orbits contract, so that programs that round differently stay together.
CONTRACTING = (0.2, 1.2)


def _within(tolerance, ours, baseline):
    """Largest difference in units of the tolerance."""
    return float(np.max(np.abs(ours - baseline)) / tolerance)


class _Plain:
    """The map as one would write it in NumPy: one orbit, the whole window at every step, every unit of 99."""

    def __init__(self, beta):
        network = paper_network()
        self.W = np.repeat(network.semantic_signs, 33, axis=2).astype(float)
        bits = positional_bits(2)
        self.positions = network.epsilon / 2 * np.einsum("xap,rp->rxa", network.positional_signs, bits)
        self.beta, self.gamma, self.share = beta, network.gamma, (1 - network.epsilon) / 99
        self.window = [token_window(network).attention[0]]
        self.t = 0

    def step(self):
        A = np.array(self.window)
        tanh = np.tanh(self.beta * A @ self.W[0])
        m = self.share * np.einsum("xai,ji->xja", self.W, tanh)
        m += self.positions[(self.t - np.arange(len(A))) % 4].swapaxes(0, 1)
        logits = self.gamma * m[3] @ m[2, 0]
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        attention = weights @ m[1]
        self.window = [attention, *self.window][:4]
        self.t += 1
        return tanh, m, weights, attention

    def step_with_jacobian(self):
        """And the derivative of the new window with respect to the old one, (12, 12); the window must be full."""
        tanh, m, weights, attention = self.step()
        slopes = self.beta * (1 - tanh**2)
        by = self.share * np.einsum("xai,ji,bi->xjab", self.W, slopes, self.W[0])
        J = np.zeros((4, 3, 4, 3))
        J[[1, 2, 3], :, [0, 1, 2]] = np.eye(3)
        through_logits = self.gamma * weights[:, None] * (m[1] - attention)
        for j in range(4):
            J[0, :, j] = weights[j] * by[1, j] + np.outer(through_logits[j], m[2, 0] @ by[3, j])
            J[0, :, 0] += np.outer(through_logits[j], m[3, j] @ by[2, 0])
        return J.reshape(12, 12)


def _final_attention(steps, betas, **options):
    diagram = bifurcation(paper_network(), betas, start=None, steps=steps, transient=0, **options)
    return diagram.final_attention[:, 0].values


# Twice the exact steps round by some eps times gamma; the slowest contraction is by exp(-0.01), which adds 100 of them.
_ROUNDING = 100 * 127 * np.finfo(np.float64).eps


def sweep(size=64, *, steps=600):
    """The last attention of ``size`` orbits, with histogram and extrema gathered, in one thread."""
    betas = np.linspace(*CONTRACTING, size)

    def baseline():
        final = []
        for beta in betas:
            orbit = _Plain(beta)
            for _ in range(steps):
                orbit.step()
            final.append(orbit.window[0])
        return np.array(final)

    return Benchmark(
        f"bifurcation, {size} betas x {steps} steps, against a NumPy loop",
        partial(_final_attention, steps, betas, num_threads=1),
        baseline,
        partial(_within, 4 * _ROUNDING),
    )


def spectrum(size=32, *, steps=400):
    """All 12 exponents of ``size`` orbits, in one thread, against Jacobians and QR decompositions in NumPy."""
    betas = np.linspace(*CONTRACTING, size)

    def ours():
        diagram = bifurcation(
            paper_network(),
            betas,
            start=None,
            steps=steps,
            transient=100,
            num_exponents=12,
            num_blocks=2,
            num_threads=1,
        )
        return diagram.exponents.values

    def baseline():
        spectra = []
        for beta in betas:
            orbit = _Plain(beta)
            for _ in range(4):
                orbit.step()
            Q, logs = np.eye(12), np.zeros(12)
            for t in range(4, 100 + steps):
                Q = orbit.step_with_jacobian() @ Q
                if t % 4 == 3:
                    Q, R = np.linalg.qr(Q)
                    logs += np.log(np.abs(np.diag(R))) * (t >= 100)
            spectra.append(np.sort(logs / steps)[::-1])
        return np.array(spectra)

    return Benchmark(
        f"all 12 exponents, {size} betas x {steps} steps, against a NumPy loop",
        ours,
        baseline,
        partial(_within, 10 / steps),
    )


BENCHMARKS = (
    sweep,
    spectrum,
)
