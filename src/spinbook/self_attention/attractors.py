"""Classify what an orbit ends in: a fixed point, a periodic, quasi-periodic or chaotic orbit, or undecided.

The evidence: the largest Lyapunov exponent with its error, whether the last states repeat, and whether the two halves
of the run agree. The map is driven by the positions, so that time shifts only by multiples of their period R are
symmetries. A fixed point here is therefore a fixed point of the R-step map: an orbit that repeats after R steps, or
after a divisor of R.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool
from scipy.stats import norm

from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Int
from spinbook.self_attention.double import inverse_temperatures, numbers

__all__ = ["REGIMES", "Verdicts", "classify_sweep", "shortest_period", "verdicts"]

REGIMES = ("fixed point", "periodic", "quasi-periodic", "chaotic", "undecided")
"""What an orbit can be, by the indices in ``Verdicts.regime``."""
FIXED_POINT, PERIODIC, QUASI_PERIODIC, CHAOTIC, UNDECIDED = range(len(REGIMES))

_LOG_FACTOR = 10.0
_SIGMAS = 3.0
# An exponent less well known than this is not called zero.
_COARSEST = 2e-3


def shortest_period(
    states: Float[ArrayLike, "n T M"], *, tolerance: float = 1e-6
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The least p <= T / 2 with |x_t - x_{t-p}| <= tolerance for all t and components; 0 if no p is small enough.

    Also the largest such difference for that p, NaN without p. Cost: T^2 M / 4 at most for each orbit, mostly far less.

    >>> t = np.arange(40)
    >>> shortest_period(np.cos(2 * np.pi * t / 5)[None, :, None])[0].tolist()
    [5]
    """
    x = np.ascontiguousarray(numbers(states, "states"))
    if x.ndim != 3:
        raise ValueError(f"states: expected shape (orbits, steps, features), got {x.shape}")
    tolerance = float(inverse_temperatures(tolerance, "tolerance", ndim=0))
    periods = np.zeros(len(x), np.int64)
    errors = np.full(len(x), np.nan)
    n, T, _ = x.shape
    if T < 2:
        return periods, errors
    # Comparing the last state with all others leaves few candidate periods.
    near = np.abs(x[:, -2 : -(T // 2) - 2 : -1] - x[:, -1:]).max(axis=2, initial=0.0) <= tolerance
    for lane in range(n):
        for p in np.flatnonzero(near[lane]) + 1:
            error = np.abs(x[lane, p:] - x[lane, :-p]).max(initial=0.0)
            if error <= tolerance:
                periods[lane], errors[lane] = p, error
                break
    return periods, errors


def _at_least(value: Any, smallest: float) -> Any:
    """The numbers of a floating array, at least ``smallest``; other values unchanged."""
    floating = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return np.maximum(value, smallest) if floating else value


class Verdicts(NamedTuple):
    """For each orbit: an index of ``REGIMES``, how far to trust it (0 to 1), whether both halves of the run agree."""

    regime: Int[np.ndarray, " n"]
    confidence: Float[np.ndarray, " n"]
    settled: Bool[np.ndarray, " n"]


def verdicts(blocks: Float[ArrayLike, "n B"], period: Int[ArrayLike, " n"], *, steps: int, map_period: int) -> Verdicts:
    """Regimes from the largest exponent in B blocks of successive steps, and the period of the last states or 0.

    With lambda the mean, s its standard error and z = max(3 s, 10 / steps):

    - repeats, and lambda <= z: fixed point if the period divides ``map_period``, otherwise periodic;
    - does not repeat: chaotic for lambda > z, quasi-periodic for lambda within z of zero;
    - all other cases, as when the error of the exponent is too large to call it zero or the halves disagree: undecided.

    An orbit that repeats in the end but did not from the start has its final regime and ``settled`` false. Chaos that
    outlasts the run cannot be told from a chaotic attractor. The confidence is the probability, for a normal error,
    that lambda is on its side of 10 / steps; halved if not settled, and 0 for undecided. On a torus the tangents grow
    by a bounded factor only, so that the exponent is zero within its logarithm over the number of steps; factors up to
    e^10 count as bounded.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> blocks = np.array([[0.1], [0.0], [-0.1]]) + rng.normal(scale=1e-4, size=(3, 20))
    >>> [REGIMES[k] for k in verdicts(blocks, [0, 0, 28], steps=20_000, map_period=4).regime]
    ['chaotic', 'quasi-periodic', 'periodic']
    """
    steps = validate.count(steps, "steps", minimum=1)
    map_period = validate.count(map_period, "map_period", minimum=1)
    # Minus infinity, at beta = 0, would make every difference NaN.
    x = np.maximum(validate.known_numbers(_at_least(blocks, -1e3), "blocks"), -1e3)
    validate.require(lambda b: b <= 1e3, x, "blocks", "exponents of at most 1000 per step")
    if x.ndim != 2 or x.shape[1] < 2:
        raise ValueError(f"blocks: expected shape (orbits, blocks) with at least two blocks, got {x.shape}")
    p = inverse_temperatures(period, "period", ndim=1)
    validate.require(lambda n: n < 2**53, p, "period", "numbers of steps below 2^53")
    p = p.astype(np.int64)
    if p.shape != x.shape[:1]:
        raise ValueError(f"period: expected one for each of {len(x)} orbits, got shape {p.shape}")
    B = x.shape[1]
    resolution = _LOG_FACTOR / steps

    def estimate(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return part.mean(axis=1), part.std(axis=1, ddof=1) / np.sqrt(part.shape[1])

    def sign(value: np.ndarray, band: np.ndarray) -> np.ndarray:
        return np.where(value > band, 1, np.where(value < -band, -1, 0))

    mean, error = estimate(x)
    (first, first_error), (second, second_error) = estimate(x[:, : B // 2]), estimate(x[:, B // 2 :])
    bands = [np.maximum(_SIGMAS * e, 2 * resolution) for e in (first_error, second_error)]
    difference = _SIGMAS * np.hypot(first_error, second_error) + 2 * resolution
    settled = (sign(first, bands[0]) == sign(second, bands[1])) | (np.abs(first - second) <= difference)
    value = np.where(settled, mean, second)
    scale = np.hypot(np.where(settled, error, second_error), 0.1 * resolution)
    band = np.maximum(_SIGMAS * scale, resolution)

    repeats = p > 0
    # Repeating states contradict a positive exponent, unless the orbit came to rest within the last blocks.
    settled &= ~(repeats & (value > band))
    ended = repeats & ((value <= band) | (x[:, -1] < 0))
    regime = np.full(len(x), UNDECIDED)
    regime[ended] = np.where(map_period % np.maximum(p[ended], 1) == 0, FIXED_POINT, PERIODIC)
    open_ = ~repeats & settled
    regime[open_ & (value > band)] = CHAOTIC
    regime[open_ & (np.abs(value) <= band) & (band <= max(_COARSEST, resolution))] = QUASI_PERIODIC

    below = norm.cdf((resolution - value) / scale)
    above_minus = norm.cdf((value + resolution) / scale)
    # Where the orbit came to rest only at the end, the mean over all blocks is meaningless.
    probability = np.select(
        [regime == CHAOTIC, regime == QUASI_PERIODIC, (regime <= PERIODIC) & (value <= band), regime <= PERIODIC],
        [1 - below, below + above_minus - 1, below, np.ones(len(x))],
        0.0,
    )
    return Verdicts(regime, probability * np.where(settled, 1.0, 0.5), settled)


def classify_sweep(diagram: xr.Dataset) -> xr.Dataset:
    """``verdicts`` of a Dataset of ``bifurcation`` with ``num_exponents >= 1``: regime, confidence, settled.

    ``regime`` holds indices of ``REGIMES``, which are also in its attribute ``flag_meanings``.

    >>> from spinbook.self_attention import bifurcation, paper_network
    >>> diagram = bifurcation(paper_network(), [0.5, 1.28], steps=4000, transient=2000, num_exponents=1)
    >>> [REGIMES[k] for k in classify_sweep(diagram).regime.values]
    ['fixed point', 'chaotic']
    """
    if "block_exponents" not in diagram:
        raise ValueError("diagram: expected a sweep with num_exponents >= 1, got one without exponents")
    dims = diagram.period.dims
    blocks = diagram.block_exponents.isel(exponent=0).transpose(*dims, "block").values
    result = verdicts(
        blocks.reshape(-1, blocks.shape[-1]),
        diagram.period.values.reshape(-1),
        steps=diagram.attrs["steps"],
        map_period=diagram.attrs["map_period"],
    )
    variables = {name: (dims, values.reshape(diagram.period.shape)) for name, values in result._asdict().items()}
    coords = {name: diagram.coords[name] for name in dims}
    classified = xr.Dataset(variables, coords)
    classified.regime.attrs["flag_meanings"] = ", ".join(REGIMES)
    return classified
