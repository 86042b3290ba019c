"""Benchmarks of ``spinbook.rbm`` against plain NumPy and SciPy. Each takes its size; none knows how it is timed."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np

from benchmarks import Benchmark
from experiments.datasets import digits
from spinbook import rbm

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


BENCHMARKS = (retrieve,)
