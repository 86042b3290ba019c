"""How a benchmark is described, checked and timed.

A benchmark is a pair of functions that compute the same thing, one with the library and one in the plainest way that
NumPy, SciPy or PyTorch offer. Both run in the same process, in turns, so that a busy machine slows both, and are timed
only if the two results agree.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

__all__ = ["Benchmark", "Timing", "measure"]

PAUSE = 0.01
"""Seconds before each timing, in which threads of the other function that still wait for work go to sleep."""


@dataclass(frozen=True)
class Benchmark:
    """``ours`` and ``baseline`` take nothing and return an array; ``deviation`` compares the two results.

    The deviation is in units of what rounding or sampling allows: the results agree if it is at most 1.
    """

    name: str
    ours: Callable[[], Any]
    baseline: Callable[[], np.ndarray]
    deviation: Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Timing:
    """Medians of seconds, and the ratio baseline / ours: its median and the quartiles of the repeats."""

    ours: float
    baseline: float
    ratio: float
    low: float
    high: float


def measure(benchmark: Benchmark, *, repeats: int = 15, limit: float = 2.5) -> Timing:
    """Run both once, which also compiles, compare the results, then time both in turns; at least three times.

    Raises ``ValueError`` if ours is not finite or is not the baseline's result.
    """
    ours, baseline = np.asarray(benchmark.ours()), np.asarray(benchmark.baseline())
    if not np.isfinite(ours).all() or ours.shape != baseline.shape:
        raise ValueError(f"{benchmark.name}: expected finite numbers of shape {baseline.shape}, got {ours.shape}")
    # Not `deviation > 1`, which a NaN in the baseline would pass.
    if not (deviation := benchmark.deviation(ours, baseline)) <= 1:
        raise ValueError(f"{benchmark.name}: expected the baseline's result, got one {deviation:.3g} tolerances away")
    rows, begun = [], time.perf_counter()
    while len(rows) < 3 or (len(rows) < repeats and time.perf_counter() - begun < limit):
        rows.append((_seconds(benchmark.ours), _seconds(benchmark.baseline)))
    fast, slow = zip(*rows, strict=True)
    low, ratio, high = statistics.quantiles([b / a for a, b in rows], n=4)
    return Timing(statistics.median(fast), statistics.median(slow), ratio, low, high)


def _seconds(function: Callable[[], Any]) -> float:
    time.sleep(PAUSE)
    begun = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - begun
