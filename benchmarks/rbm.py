"""Benchmarks of ``spinbook.rbm`` against plain NumPy and SciPy. Each takes its size; none knows how it is timed."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, norm

from benchmarks import Benchmark
from experiments.datasets import digits
from spinbook import rbm
from spinbook.rbm import exact, gibbs, hidden_given_visible

__all__ = ["BENCHMARKS", "interactions", "mixture_log_density", "retrieve", "simulate"]

EPSILON = np.finfo(np.float64).eps


def _within(tolerance, ours, baseline):
    """Largest difference in units of the tolerance."""
    return float(np.max(np.abs(ours - baseline)) / tolerance)


def _queries_and_patterns(size):
    patterns = np.asarray(digits.load().patterns)[:size]
    return patterns + np.random.default_rng(0).normal(scale=0.5, size=patterns.shape), patterns


def _score_error(queries, patterns):
    """Bound on the rounding error of a scalar product: dim eps |q| |x|."""
    lengths = [np.linalg.norm(vectors, axis=1).max() for vectors in (queries, patterns)]
    return patterns.shape[1] * EPSILON * max(lengths) ** 2


def retrieve(size=1797):
    """softmax(q X^T) X for as many noisy digits as there are patterns, against one query at a time."""
    queries, patterns = _queries_and_patterns(size)
    on_device = jnp.asarray(queries), jnp.asarray(patterns)

    def baseline():
        retrieved = np.empty_like(queries)
        for k, query in enumerate(queries):
            scores = patterns @ query
            weights = np.exp(scores - scores.max())
            retrieved[k] = weights @ patterns / weights.sum()
        return retrieved

    # An error d in every score changes a weight by a factor of at most exp(2 d); both sides make it. The entries of
    # the patterns are at most 1, and the two sums over patterns round by size * eps each.
    tolerance = 4 * _score_error(queries, patterns) + 4 * size * EPSILON
    return Benchmark(
        f"retrieve, {len(queries)} queries x {len(patterns)} digits x 64",
        partial(rbm.retrieve, *on_device),
        baseline,
        partial(_within, tolerance),
    )


def mixture_log_density(size=200):
    """log p(v) of noisy digits, against SciPy's normal densities, one per pattern, and their weighted sum."""
    visible, patterns = _queries_and_patterns(size)
    on_device = jnp.asarray(visible), jnp.asarray(patterns)

    def baseline():
        exponents = np.sum(patterns**2, axis=1) / 2
        log_weights = exponents - logsumexp(exponents)
        components = [multivariate_normal(pattern, 1.0).logpdf(visible) for pattern in patterns]
        return logsumexp(log_weights[:, None] + components, axis=0)

    # |v|^2 / 2, v x and |x|^2 / 2 enter on both sides with the error of a scalar product at most, as does the sum of
    # the dim logarithms in the normalisation; logsumexp adds size * eps.
    tolerance = 8 * _score_error(visible, patterns) + 4 * size * EPSILON
    return Benchmark(
        f"mixture_log_density, {len(visible)} points x {len(patterns)} digits x 64",
        partial(rbm.mixture_log_density, *on_device),
        baseline,
        partial(_within, tolerance),
    )


def interactions(size=14):
    """Moebius coefficients of ``size`` units with random energies, against the signed sum over subsets of each set."""
    energies = np.random.default_rng(1).normal(size=2**size)
    on_device = jnp.asarray(energies)

    def baseline():
        numbers = np.arange(2**size)
        orders = np.bitwise_count(numbers).astype(int)
        coefficients = np.empty(2**size)
        for subset in numbers:
            inside = (numbers & ~subset) == 0
            signs = 1 - 2 * ((orders[subset] - orders[inside]) % 2)
            coefficients[subset] = -np.sum(signs * energies[inside])
        return coefficients

    # Butterflies and pairwise sums alike add 2^n numbers in n levels: error n eps sum |E| on each side. NumPy adds
    # blocks of up to 128 one by one with eight accumulators, as many as 16 levels more.
    tolerance = (2 * size + 16) * EPSILON * np.abs(energies).sum()
    return Benchmark(
        f"exact.interactions, {size} units",
        partial(exact.interactions, on_device),
        baseline,
        partial(_within, tolerance),
    )


def _chain_statistics(trajectory):
    """Time averages of v_i(t) and v_i(t) v_j(t + 1) for each chain: (steps, chains, V) to (chains, V + V^2)."""
    trajectory = trajectory.astype(np.float64)
    lagged = np.einsum("tci,tcj->cij", trajectory[:-1], trajectory[1:]) / (len(trajectory) - 1)
    return np.hstack([trajectory.mean(axis=0), lagged.reshape(len(lagged), -1)])


def _standard_errors_apart(ours, baseline):
    """Largest difference of mean statistics, in units of what chance exceeds in one of a million comparisons.

    Chains are independent, whatever the correlations within one, so that their scatter gives the standard error.
    """
    samples = [_chain_statistics(trajectory) for trajectory in (ours, baseline)]
    variance = sum(sample.var(axis=0, ddof=1) / len(sample) for sample in samples)
    scores = np.abs(samples[0].mean(axis=0) - samples[1].mean(axis=0)) / np.sqrt(variance)
    return float(scores.max() / norm.isf(0.5e-6 / scores.size))


def simulate(size=500, *, steps=100, num_visible=16, num_hidden=8):
    """``size`` Gibbs chains with Bernoulli hidden units, against one chain at a time."""
    rng = np.random.default_rng(2)
    weights = rng.normal(scale=0.5, size=(num_visible, num_hidden))
    bias = rng.normal(scale=0.5, size=num_visible)
    start = rng.integers(0, 2, size=(size, num_visible)).astype(np.float64)
    on_device = jax.random.key(3), jnp.asarray(start), jnp.asarray(weights), jnp.asarray(bias)

    # Called outside compiled code, `simulate` compiles its loop at every call; here only the sampling is timed.
    @jax.jit
    def ours(key, visible, weights, bias):
        return gibbs.simulate(key, visible, weights, hidden_given_visible.bernoulli(0.5), bias, steps=steps)

    def baseline():
        rng = np.random.default_rng(4)
        trajectory = np.empty((steps, size, num_visible))
        for chain in range(size):
            v = start[chain]
            for t in range(steps):
                h = rng.random(num_hidden) < expit(v @ weights)
                v = (rng.random(num_visible) < expit(bias + weights @ h)).astype(np.float64)
                trajectory[t, chain] = v
        return trajectory

    return Benchmark(
        f"gibbs.simulate, {size} chains x {steps} steps, {num_visible} + {num_hidden} units",
        partial(ours, *on_device),
        baseline,
        _standard_errors_apart,
    )


BENCHMARKS = (retrieve, mixture_log_density, interactions, simulate)
