"""The attractor of one orbit and those that coexist with it, from several starts. The rules are in ``attractors``."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from scipy.sparse.csgraph import connected_components

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.self_attention.attractors import REGIMES, UNDECIDED, classify_sweep
from spinbook.self_attention.bifurcations import DIAGRAM, MEASURED, bifurcation
from spinbook.self_attention.double import inverse_temperatures, numbers
from spinbook.self_attention.network import Network
from spinbook.self_attention.window import attention_window, start_window

__all__ = ["Classification", "classify", "random_windows"]

# Histograms of this many bins, of two runs on one chaotic attractor, differ by some per cent of their steps.
_COARSE_BINS, _VARIATION = 50, 0.1


class Classification(NamedTuple):
    """The verdict on the orbit from ``start``, and what the other starts say.

    ``regime``: one of ``REGIMES``. ``period``: of the final states, in steps; 0 if they do not repeat. ``confidence``:
    from 0 to 1. ``settled``: whether both halves of the run agree; false for a transient longer than the one dropped.
    ``exponents``, ``standard_errors`` (E,). ``num_attractors``: distinct ones among all starts whose regime is
    decided. ``regimes``, ``periods``: of all starts, that of the orbit itself first, then its perturbed continuation,
    then the random ones. ``diagram``: the Dataset of ``bifurcation`` behind it, along ``start``.
    """

    regime: str
    period: int
    confidence: float
    settled: bool
    exponents: Float[np.ndarray, " E"]
    standard_errors: Float[np.ndarray, " E"]
    distinct_points: int
    num_attractors: int
    regimes: tuple[str, ...]
    periods: tuple[int, ...]
    diagram: xr.Dataset


def random_windows(key: PRNGKeyArray, network: Network, num_windows: int) -> Float[np.ndarray, "n K M"]:
    """A ~ U(-1, 1), independently for each entry of each window: starts for ``bifurcation(..., starts=...)``.

    >>> import jax
    >>> from spinbook.self_attention import paper_network
    >>> random_windows(jax.random.key(0), paper_network(), 5).shape
    (5, 4, 3)
    """
    validate.instance(network, Network, "network")
    key = validate.key(key)
    shape = validate.count(num_windows, "num_windows"), network.context, network.num_features
    return np.asarray(jax.random.uniform(key, shape, minval=-1.0, maxval=1.0), np.float64)


def _alike(diagram: xr.Dataset, tolerance: float) -> np.ndarray:
    """Which pairs of starts ended on one attractor: with equal extrema if they repeat, similar histograms if not."""
    one = diagram.isel(beta=0)
    extrema = np.hstack([one[name].isel(block=-1).values for name in ("minimum", "maximum")])
    apart = np.abs(extrema[:, None] - extrema).max(axis=-1)
    counts = one.histogram.values.reshape(len(extrema), _COARSE_BINS, -1).sum(axis=-1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    variation = np.abs(shares[:, None] - shares).sum(axis=-1) / 2
    period = one.period.values
    repeat = (period[:, None] > 0) & (period > 0)
    alike: np.ndarray = (period[:, None] == period) & np.where(repeat, apart <= tolerance, variation <= _VARIATION)
    return alike


def classify(
    network: Network,
    *,
    beta: Float[ArrayLike, ""],
    steps: int = 20_000,
    transient: int = 100_000,
    num_exponents: int = 2,
    start: Any = None,
    num_random_starts: int = 6,
    key: PRNGKeyArray | None = None,
    perturbation: float = 1e-6,
    num_tail: int = 1000,
    period_tolerance: float = 1e-6,
) -> Classification:
    """Fixed point, periodic, quasi-periodic, chaotic or undecided: the rules of ``verdicts``, for several starts.

    The orbit from ``start`` (the default token; or a window, or a trajectory) runs for ``transient`` + ``steps``
    steps. Its last window, with every entry moved by up to ``perturbation``, and ``num_random_starts`` random windows
    (drawn from ``key``, ``jax.random.key(0)`` by default) run as long. If the perturbed orbit ends elsewhere, the
    first one was not on an attractor yet, or at its edge: ``settled`` is then false and the confidence halved. Other
    ends of the random windows do not count against the verdict; they are coexisting attractors, and ``num_attractors``
    says how many were met.

    Periods are in steps. The map has the period R = ``network.period`` itself, so a fixed point of the R-step map shows
    the period R (or a divisor), and is called a fixed point. Periods up to ``num_tail`` / 2 are found.

    Cost: two sweeps of few orbits, about a second with the default options. Raises ``ValueError`` as ``bifurcation``
    does. Source: Poc-Lopez and Aguilera (2024), section 4.1, where this is done by eye and by counting points.

    >>> from spinbook.self_attention import paper_network
    >>> verdict = classify(paper_network(), beta=2.5, steps=4000, transient=4000)
    >>> verdict.regime, verdict.period, verdict.settled
    ('periodic', 96, True)
    """
    validate.instance(network, Network, "network")
    betas = inverse_temperatures(beta, "beta", ndim=0)[None]
    key = jax.random.key(0) if key is None else validate.key(key)
    perturbation = float(numbers(perturbation, "perturbation", ndim=0))
    period_tolerance = float(inverse_temperatures(period_tolerance, "period_tolerance", ndim=0))
    num_random = validate.count(num_random_starts, "num_random_starts")
    sweep = partial(
        bifurcation,
        network,
        betas,
        steps=steps,
        transient=transient,
        num_exponents=validate.count(num_exponents, "num_exponents", minimum=1),
        numerics=MEASURED._replace(orthonormalise_every=4),
        observation=DIAGRAM._replace(max_crossings=0, num_tail=validate.count(num_tail, "num_tail")),
        period_tolerance=period_tolerance,
        num_threads=1,
    )
    itself = sweep(starts=[start_window(network, start)])
    end = itself.isel(start=0, beta=0)
    keys = jax.random.split(key)
    nudge, others = random_windows(keys[0], network, 1), random_windows(keys[1], network, num_random)
    windows = [*(end.final_attention.values + perturbation * nudge), *others]
    again = sweep(starts=[attention_window(network, A, position=int(end.final_position)) for A in windows])
    diagram = xr.concat([itself, again], dim="start").assign_coords(start=np.arange(len(windows) + 1))

    judged = classify_sweep(diagram).isel(beta=0)
    regime = judged.regime.values
    alike = _alike(diagram, 10 * period_tolerance)
    decided = regime != UNDECIDED
    num_attractors = connected_components(alike[np.ix_(decided, decided)])[0] if decided.any() else 0
    returns = bool(alike[0, 1])
    return Classification(
        regime=REGIMES[regime[0]],
        period=int(end.period),
        confidence=float(judged.confidence[0]) * (1.0 if returns else 0.5),
        settled=bool(judged.settled[0]) and returns,
        exponents=end.exponents.values,
        standard_errors=end.standard_errors.values,
        distinct_points=int(end.distinct_points),
        num_attractors=int(num_attractors),
        regimes=tuple(REGIMES[k] for k in regime),
        periods=tuple(int(p) for p in diagram.period.isel(beta=0)),
        diagram=diagram,
    )
