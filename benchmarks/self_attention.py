"""Benchmarks of ``spinbook.self_attention`` against plain NumPy loops and against its own definition in JAX.

Recorded elsewhere, in million steps x betas per second on one core of 2.5 GHz, without exponents, with the largest,
with all 12: the authors' program 0.0022, and 0.00005 for any exponents at all; the best prototypes 77, 58 and 7.6; JAX
16 and 2.6. An absolute rate depends on the machine; the ratios of one run are what compares.
"""

from __future__ import annotations

from functools import partial

import jax
import numpy as np

from benchmarks import Benchmark
from spinbook.self_attention import (
    MEASURED,
    bifurcation,
    paper_network,
    positional_bits,
    sample_finite,
    simulate,
    token_window,
)
from tests.self_attention import scan

__all__ = ["BENCHMARKS", "largest_exponent", "sample", "spectrum", "sweep", "sweep_in_jax"]

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
    """The last attention of ``size`` orbits, with histogram, crossings and extrema gathered, in one thread."""
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


def sweep_in_jax(size=2048, *, steps=2000):
    """The same against the definition in JAX, compiled, with all orbits in one array."""
    betas = np.linspace(*CONTRACTING, size)
    return Benchmark(
        f"bifurcation, {size} betas x {steps} steps, against JAX",
        partial(_final_attention, steps, betas),
        partial(_final_attention, steps, betas, run=scan.run, lanes_per_task=size),
        partial(_within, 4 * _ROUNDING),
    )


def largest_exponent(size=512, *, steps=2000):
    """The largest exponent of ``size`` orbits, against tangents by automatic differentiation in JAX."""
    betas = np.linspace(*CONTRACTING, size)

    def exponents(**options):
        diagram = bifurcation(
            paper_network(), betas, start=None, steps=steps, transient=500, num_exponents=1, **options
        )
        return diagram.exponents[:, 0].values

    # Two norms and two first tangents: the logarithm of a bounded factor over the number of steps.
    return Benchmark(
        f"largest exponent, {size} betas x {steps} steps, against JAX",
        exponents,
        partial(exponents, run=scan.run, lanes_per_task=size),
        partial(_within, 10 / steps),
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
            numerics=MEASURED._replace(num_blocks=2),
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


def sample(size=20_000, *, steps=200, replicas=8):
    """``replicas`` orbits of ``size`` units, against one bit for each unit in NumPy."""
    network = paper_network()
    beta = 0.8
    keys = jax.random.split(jax.random.key(0), replicas)
    expected = simulate(network, beta=beta, steps=steps).attention

    @jax.jit
    def ours(keys):
        one = partial(sample_finite, network=network, beta=beta, num_spins=size, steps=steps)
        return jax.vmap(lambda key: one(key).attention)(keys)

    def baseline():
        rng = np.random.default_rng(1)
        sizes = np.full(3, size // 3) + (np.arange(3) < size % 3)
        W = np.repeat(network.semantic_signs, sizes, axis=2).astype(float)
        positions = network.epsilon / 2 * np.einsum("xap,rp->rxa", network.positional_signs, positional_bits(2))
        trajectory = np.empty((replicas, steps, 3))
        for replica in range(replicas):
            A, window = token_window(network).attention[0], []
            for t in range(steps):
                x = np.where(rng.random(size) < 1 / (1 + np.exp(-2 * beta * A @ W[0])), 1.0, -1.0)
                m = (1 - network.epsilon) * W @ x / size + positions[t % 4]
                window = [m, *window][:4]
                logits = network.gamma * np.array([m[2] @ token[3] for token in window])
                weights = np.exp(logits - logits.max())
                A = weights @ np.array([token[1] for token in window]) / weights.sum()
                trajectory[replica, t] = A
        return trajectory

    def deviation(ours, baseline):
        # Root mean squares of the distance from the mean field, over replicas and steps, must agree. Their relative
        # scatter is 1 / sqrt(2 n) for n independent numbers; successive steps count for a tenth.
        spreads = [np.sqrt(np.mean((x - expected) ** 2)) for x in (ours, baseline)]
        independent = replicas * steps / 10
        return float(abs(np.log(spreads[0] / spreads[1])) / (5 / np.sqrt(independent)))

    return Benchmark(
        f"sample_finite, {replicas} x {steps} steps of {size} units", partial(ours, keys), baseline, deviation
    )


BENCHMARKS = (sweep, sweep_in_jax, largest_exponent, spectrum, sample)
