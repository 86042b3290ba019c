"""How a benchmark is described, checked and timed. Refuses to time a result that is not finite or not the baseline's.

A benchmark is a pair of functions that compute the same thing, one with the library and one in the plainest way that
NumPy and SciPy offer. Both run in the same process, in turns, so that a busy machine slows both.
"""

from __future__ import annotations

import ctypes
import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

__all__ = ["Benchmark", "Timing", "added_memory", "measure", "middle", "seconds", "table", "verify", "with_memory"]

# Seconds before each timing.
PAUSE = 0.01


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
    """Medians over the repeats: seconds, and seconds of all processors together, of ours and of the baseline.

    ``ratios``: of the seconds of each repeat, which ours and the baseline ran one after the other. ``memory``: by how
    many bytes each raised the peak of the process's memory; None where the system does not say.
    """

    ours: float
    baseline: float
    ours_processor: float = math.nan
    baseline_processor: float = math.nan
    ratios: tuple[float, ...] = ()
    memory: tuple[int, int] | None = None

    @property
    def ratio(self) -> float:
        """How many times longer the baseline takes."""
        return self.baseline / self.ours

    @property
    def processor_ratio(self) -> float:
        """The same in seconds of processors, on which other work weighs less."""
        return self.baseline_processor / self.ours_processor


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


def seconds(function: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of the clock and of this process's processors that a call takes, until its result is there."""
    clock, processor = time.perf_counter(), time.process_time()
    jax.block_until_ready(function())
    return time.perf_counter() - clock, time.process_time() - processor


def _resident(name: str) -> int:
    """Bytes of memory of this process: now ("VmRSS"), or at most ("VmHWM")."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"no {name} in the status of the process")


def _give_back() -> None:
    """Return what was freed to the system, or a call that takes it up again would seem to need no memory."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def added_memory(function: Callable[[], Any]) -> int | None:
    """By how many bytes a call raises the peak of resident memory above what is resident before; None if not known.

    Where the C library gives back what it kept from earlier calls (glibc), this is all that the call needs at once, and
    a lower bound elsewhere.
    """
    try:
        gc.collect()
        _give_back()
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        before = _resident("VmRSS")
        jax.block_until_ready(function())
        return max(_resident("VmHWM") - before, 0)
    except OSError:
        return None


def middle(values: Sequence[float]) -> tuple[float, float]:
    """Two of the values that hold the true median between them in 15 of 16 cases, for at least five values.

    The k-th from either end, where k - 1 of n tosses of a coin or fewer fall on one side with a probability of 1/32 at
    most. Of fewer than five values the extremes: those of three hold the median in three of four cases.

    >>> middle([5.0, 1.0, 2.0, 4.0, 3.0])
    (1.0, 5.0)
    >>> middle([float(k) for k in range(25)])
    (7.0, 17.0)
    """
    n, ordered = len(values), sorted(values)
    k, tail = 0, 1 / 2**n
    while k < n // 2 and (tail := tail + math.comb(n, k + 1) / 2**n) <= 1 / 32:
        k += 1
    return ordered[k], ordered[n - 1 - k]


def measure(benchmark: Benchmark, *, repeats: int = 25, limit: float = math.inf) -> Timing:
    """Verify, which also compiles, then time ours and the baseline in turns; after ``limit`` seconds three times do.

    Before each there is a pause, in which threads of the other that still wait for work at full speed go to sleep.
    """
    verify(benchmark)
    rows: list[tuple[float, ...]] = []
    begun = time.perf_counter()

    def rested(function: Callable[[], Any]) -> tuple[float, float]:
        time.sleep(PAUSE)
        return seconds(function)

    while len(rows) < repeats and (len(rows) < 3 or time.perf_counter() - begun < limit):
        rows.append((*rested(benchmark.ours), *rested(benchmark.baseline)))
    ours, ours_processor, baseline, baseline_processor = map(statistics.median, zip(*rows, strict=True))
    ratios = tuple(row[2] / row[0] for row in rows)
    return Timing(ours, baseline, ours_processor, baseline_processor, ratios)


def with_memory(benchmark: Benchmark, timing: Timing) -> Timing:
    """The timing with the memory of one more call of each."""
    sizes = added_memory(benchmark.ours), added_memory(benchmark.baseline)
    return timing if None in sizes else replace(timing, memory=sizes)


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
