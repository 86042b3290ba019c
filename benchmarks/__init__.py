"""How a benchmark is described, checked and timed. Refuses to time a result that is not finite or not the baseline's.

A benchmark is a pair of functions that compute the same thing, one with the library and one in the plainest way that
NumPy and SciPy offer. Both run in the same process, in turns, so that a busy machine slows both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

__all__ = ["Benchmark", "Timing", "measure", "table", "verify"]


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
    """Medians over the repeats, in seconds."""

    ours: float
    baseline: float

    @property
    def ratio(self) -> float:
        """How many times longer the baseline takes."""
        return self.baseline / self.ours


def verify(benchmark: Benchmark) -> None:
    """Run both functions once and raise ``ValueError`` if ours is not finite or disagrees with the baseline."""
    ours = np.asarray(benchmark.ours())
    if not np.isfinite(ours).all():
        raise ValueError(f"{benchmark.name}: expected finite numbers, got {np.sum(~np.isfinite(ours))} that are not")
    baseline = np.asarray(benchmark.baseline())
    if ours.shape != baseline.shape:
        raise ValueError(f"{benchmark.name}: expected shape {baseline.shape} as the baseline's, got {ours.shape}")
    deviation = benchmark.deviation(ours, baseline)
    # Not `deviation > 1`, which a NaN in the baseline would pass.
    if not deviation <= 1:
        raise ValueError(f"{benchmark.name}: expected the baseline's result, got one {deviation:.3g} tolerances away")


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def measure(benchmark: Benchmark, *, repeats: int = 5) -> Timing:
    """Verify, which also compiles, then time ours and the baseline in turns."""
    verify(benchmark)
    seconds = [(_seconds(benchmark.ours), _seconds(benchmark.baseline)) for _ in range(repeats)]
    ours, baseline = map(statistics.median, zip(*seconds, strict=True))
    return Timing(ours, baseline)


def table(rows: list[tuple[str, Timing | None]]) -> str:
    """One line per benchmark; ``None`` stands for one that failed."""
    width = max(len(name) for name, _ in rows)
    lines = [f"{'benchmark':<{width}}  {'ours (s)':>10}  {'baseline (s)':>12}  {'ratio':>7}"]
    for name, timing in rows:
        cells = (
            f"{'failed':>10}  {'-':>12}  {'-':>7}"
            if timing is None
            else f"{timing.ours:>10.2e}  {timing.baseline:>12.2e}  {timing.ratio:>7.3g}"
        )
        lines.append(f"{name:<{width}}  {cells}")
    return "\n".join(lines)
