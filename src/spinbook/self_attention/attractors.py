"""Classify what an orbit ends in: a fixed point, a periodic, quasi-periodic or chaotic orbit, or undecided.

The evidence: the largest Lyapunov exponent with its error, whether the last states repeat, and whether the two halves
of the run agree. The map is driven by the positions, so that time shifts only by multiples of their period R are
symmetries. A fixed point here is therefore a fixed point of the R-step map: an orbit that repeats after R steps, or
after a divisor of R.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Bool

from spinbook.annotations import ArrayLike, Float, Int
from spinbook.replicas import mean_and_error

__all__ = ["REGIMES", "classify_sweep", "shortest_period", "verdicts"]

REGIMES = ("fixed point", "periodic", "quasi-periodic", "chaotic", "undecided")
"""What an orbit can be, by the indices that ``verdicts`` returns."""
FIXED_POINT, PERIODIC, QUASI_PERIODIC, CHAOTIC, UNDECIDED = range(len(REGIMES))

_LOG_FACTOR = 10.0
_SIGMAS = 3.0
# An exponent less well known than this is not called zero.
_COARSEST = 2e-3


def shortest_period(
    states: Float[np.ndarray, "n T M"], *, tolerance: float = 1e-6
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The least p <= T / 2 with |x_t - x_{t-p}| <= tolerance for all t and components; 0 if no p is small enough.

    Also the largest such difference for that p, NaN without p. Cost: T^2 M / 4 at most for each orbit, mostly far less.

    >>> t = np.arange(40)
    >>> shortest_period(np.cos(2 * np.pi * t / 5)[None, :, None])[0].tolist()
    [5]
    """
    x = np.ascontiguousarray(states)
    n, T, _ = x.shape
    periods, errors = np.zeros(n, np.int64), np.full(n, np.nan)
    # Comparing the last state with all others leaves few candidate periods.
    near = np.abs(x[:, -2 : -(T // 2) - 2 : -1] - x[:, -1:]).max(axis=2, initial=0.0) <= tolerance
    for lane in range(n):
        for p in np.flatnonzero(near[lane]) + 1:
            error = np.abs(x[lane, p:] - x[lane, :-p]).max(initial=0.0)
            if error <= tolerance:
                periods[lane], errors[lane] = p, error
                break
    return periods, errors


def verdicts(
    blocks: Float[ArrayLike, "n B"], period: Int[ArrayLike, " n"], *, steps: int, map_period: int
) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Regimes from the largest exponent in B blocks of successive steps, and the period of the last states or 0.

    With lambda the mean, s its standard error and z = max(3 s, 10 / steps):

    - repeats, and lambda <= z: fixed point if the period divides ``map_period``, otherwise periodic;
    - does not repeat: chaotic for lambda > z, quasi-periodic for lambda within z of zero;
    - all other cases, as when the error of the exponent is too large to call it zero or the halves disagree: undecided.

    Also whether each orbit has settled. One that repeats in the end but did not from the start has its final regime and
    has not. Chaos that outlasts the run cannot be told from a chaotic attractor. On a torus the tangents grow by a
    bounded factor only, so that the exponent is zero within its logarithm over the number of steps; factors up to e^10
    count as bounded.

    >>> rng = np.random.default_rng(0)
    >>> blocks = np.array([[0.1], [0.0], [-0.1]]) + rng.normal(scale=1e-4, size=(3, 20))
    >>> [REGIMES[k] for k in verdicts(blocks, [0, 0, 28], steps=20_000, map_period=4)[0]]
    ['chaotic', 'quasi-periodic', 'periodic']
    """
    # Minus infinity, at beta = 0, would make every difference NaN.
    x, p = np.maximum(blocks, -1e3), np.asarray(period)
    half = x.shape[1] // 2
    resolution = _LOG_FACTOR / steps

    def sign(value: np.ndarray, band: np.ndarray) -> np.ndarray:
        return np.where(value > band, 1, np.where(value < -band, -1, 0))

    (mean, error), (first, first_error), (second, second_error) = map(mean_and_error, (x, x[:, :half], x[:, half:]))
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
    return regime, settled


def classify_sweep(diagram: xr.Dataset) -> xr.Dataset:
    """``verdicts`` of a Dataset of ``bifurcation`` with ``num_exponents >= 1``: regime, settled.

    ``regime`` holds indices of ``REGIMES``.

    >>> from spinbook.self_attention import bifurcation, paper_network
    >>> diagram = bifurcation(paper_network(), [0.5, 1.28], steps=4000, transient=2000, num_exponents=1)
    >>> [REGIMES[k] for k in classify_sweep(diagram).regime.values]
    ['fixed point', 'chaotic']
    """
    if "block_exponents" not in diagram:
        raise ValueError("diagram: expected a sweep with num_exponents >= 1, got one without exponents")
    dims = diagram.period.dims
    blocks = diagram.block_exponents.isel(exponent=0).transpose(*dims, "block").values
    found = verdicts(
        blocks.reshape(-1, blocks.shape[-1]),
        diagram.period.values.reshape(-1),
        steps=diagram.attrs["steps"],
        map_period=diagram.attrs["map_period"],
    )
    shaped = {
        name: (dims, x.reshape(diagram.period.shape)) for name, x in zip(("regime", "settled"), found, strict=True)
    }
    return xr.Dataset(shaped, {name: diagram.coords[name] for name in dims})
