"""Sweeps of the mean-field map over temperatures, networks and starts, gathered while they run: one call, one Dataset.

Only the last steps of an orbit are kept in memory. The sweep is cut into tasks, which run in threads, in processes or
on a cluster. With a folder given, results survive an interruption (see ``spinbook.sweep``). ``attractors`` classifies
the orbits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr

from spinbook import __version__, sweep, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.replicas import mean_and_error
from spinbook.self_attention import lanes
from spinbook.self_attention.attractors import shortest_period
from spinbook.self_attention.lanes import FIELDS, LANES, Lanes, Numerics, Observation, checked_numerics
from spinbook.self_attention.network import Network
from spinbook.self_attention.window import Window, start_window

__all__ = ["DIAGRAM", "EXPONENTS_ONLY", "bifurcation"]

DIAGRAM = Observation(num_bins=2000, num_tail=1024)
"""What the paper's diagrams show, in 2,000 bins."""
EXPONENTS_ONLY = DIAGRAM._replace(num_bins=2)
"""For sweeps of which only the exponents are wanted."""


def _numbers(values: Any, name: str) -> np.ndarray:
    array = validate.known_numbers(values, name)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name}: expected a list of at least one number, got shape {array.shape}")
    return array


def _networks(network: Any, gammas: Any) -> tuple[list[Network], dict[str, np.ndarray]]:
    """All combinations, the last axis fastest, and the axes."""
    grid = [network] if isinstance(network, Network) else list(network)
    if not grid:
        raise ValueError("network: expected at least one, got none")
    axes: dict[str, np.ndarray] = {} if isinstance(network, Network) else {"network": np.arange(len(grid))}
    if gammas is not None:
        axes["gamma"] = _numbers(gammas, "gammas")
        grid = [replace(x, gamma=value) for x in grid for value in axes["gamma"]]
    return grid, axes


def _gather(task: Lanes, observation: Observation, numerics: Numerics) -> dict[str, np.ndarray]:
    """What is kept of some lanes, each array with a leading axis for them."""
    result = lanes.run(task, observation, numerics)
    period, recurrence_error = shortest_period(result.tail[:, :, FIELDS.index("attention")])
    gathered = {name: getattr(result, name) for name in ("growth", "minimum", "maximum", "histogram")}
    return gathered | {
        "period": period,
        "recurrence_error": recurrence_error,
        "final_attention": result.windows.attention,
        "final_position": np.full(len(period), int(result.windows.position)),
    }


def _dataset(gathered: dict[str, np.ndarray], axes: dict[str, np.ndarray], attributes: dict[str, Any]) -> xr.Dataset:
    """Fold the lanes of every variable into the dimensions, and add the derived variables."""
    growth, histogram = gathered.pop("growth"), gathered["histogram"]
    inner = {
        "minimum": ("block", "feature"),
        "maximum": ("block", "feature"),
        "histogram": ("bin",),
        "final_attention": ("slot", "feature"),
        "exponents": ("exponent",),
        "standard_errors": ("exponent",),
        "block_exponents": ("block", "exponent"),
    }
    gathered["distinct_points"] = (histogram > 0).sum(axis=1)
    if growth.shape[2]:
        order = np.argsort(-growth.mean(axis=1), axis=-1, kind="stable")
        gathered["block_exponents"] = growth = np.take_along_axis(growth, order[:, None], axis=-1)
        gathered["exponents"], gathered["standard_errors"] = mean_and_error(growth.swapaxes(1, 2))
    shape = tuple(map(len, axes.values()))
    variables = {
        name: ((*axes, *inner.get(name, ())), values.reshape(*shape, *values.shape[1:]))
        for name, values in gathered.items()
    }
    edges = np.linspace(-1, 1, histogram.shape[1] + 1)
    return xr.Dataset(variables, axes | {"bin": (edges[1:] + edges[:-1]) / 2}, attributes)


def bifurcation(
    network: Network | Sequence[Network],
    betas: Float[ArrayLike, " B"],
    *,
    steps: int = 75_000,
    transient: int = 100_000,
    num_exponents: int = 0,
    num_blocks: int = 20,
    observation: Observation = DIAGRAM,
    gammas: Float[ArrayLike, " G"] | None = None,
    start: Any = "continuation",
    starts: Any = None,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> xr.Dataset:
    """x_0 -> x_transient, dropped; x_transient -> x_{transient + steps}, gathered: for every combination of parameters.

    Dimensions, in this order and only where asked for: ``network`` (a list of networks given), ``gamma`` (which
    replaces that of the networks), ``start``, and always ``beta``.

    Where the orbits start. ``start="continuation"``: as in the paper, the orbit at the highest beta starts from the
    default token, and its final window is the start of all other betas. ``start=None``: every orbit from the default
    token. A window or a trajectory: every orbit from there. ``starts``, a list of windows or an array (n, K, M): each
    of them, along the dimension ``start``.

    ``steps`` are gathered in ``num_blocks`` blocks of nearly equal length. What is gathered of an orbit:
    ``observation``, by default that of the paper's diagrams; a part of it changes as in
    ``DIAGRAM._replace(num_bins=100)``:

    - ``histogram`` (bin) of one component of one field, over [-1, 1]; ``distinct_points``: its occupied bins;
    - ``minimum``, ``maximum`` (block, feature): of all components in each block of successive steps;
    - with ``num_exponents``: ``exponents``, ``standard_errors`` (exponent), descending, and ``block_exponents``;
    - ``period``: the shortest period of the last attention vectors within 1e-6, in steps; 0 if there is no period up to
      half of ``num_tail``. ``recurrence_error`` is the observed difference;
    - ``final_attention`` (slot, feature) and ``final_position``: the window at the end, to continue from.

    Cost: on one core some 25 million steps a second without exponents, 15 with the largest, 3 with all 12 of the
    paper's network. Memory: about 9 kB for each orbit with the default options. A ``folder`` keeps what is finished;
    the same call with the same folder continues an interrupted sweep, and the result is the same. ``options`` are those
    of ``spinbook.sweep.iterate``, such as ``executor`` and ``progress``; none changes a bit of the result. A task is 32
    orbits, and every process compiles the map before its first.

    Raises ``ValueError`` for beta < 0, windows that do not fit, and a folder with another sweep. Source: Poc-Lopez and
    Aguilera (2024), section 4.1 and figure 3.

    >>> from spinbook.self_attention import paper_network
    >>> diagram = bifurcation(paper_network(), [0.5, 1.255], steps=200, transient=400, num_exponents=1)
    >>> diagram.histogram.dims, diagram.exponents.shape
    (('beta', 'bin'), (2, 1))
    """
    grid, axes = _networks(network, gammas)
    K, M = grid[0].context, grid[0].num_features
    beta = _numbers(betas, "betas")
    validate.require(lambda x: x >= 0, beta, "betas", "numbers >= 0")
    numerics = checked_numerics(steps, transient, num_exponents, num_blocks, K * M)
    observation = observation._replace(num_tail=min(observation.num_tail, steps))
    if starts is not None:
        windows = [start_window(grid[0], x) for x in starts]
        if len({(int(window.length), int(window.position)) for window in windows}) != 1:
            raise ValueError("starts: expected windows of one length and position, got none or different ones")
        axes["start"] = np.arange(len(windows))
    axes["beta"] = beta

    # Lanes in the order of the dimensions, beta last.
    n = int(np.prod([len(axis) for axis in axes.values()]))
    per_network = n // len(grid)
    every = lanes.stack(
        [x for x in grid for _ in range(per_network)],
        np.resize(beta, n),
        Window(np.zeros((K, M)), np.int64(0), np.int64(0)),
    )
    gathered: dict[str, np.ndarray] = {}

    def compute(label: str, which: np.ndarray, attention: np.ndarray, length: int, position: int) -> None:
        """The lanes ``which``, from these windows, into ``gathered``."""
        parts = [slice(k, k + LANES) for k in range(0, len(which), LANES)]
        tasks = []
        for part in parts:
            classes, of_betas, gammas = jax.tree.map(lambda x, here=which[part]: x[here], every[:3])
            windows = Window(attention[part], np.int64(length), np.int64(position))
            tasks.append(Lanes(classes, of_betas, gammas, windows))
        results = sweep.iterate(
            partial(_gather, observation=observation, numerics=numerics),
            tasks,
            identity=sweep.fingerprint(__version__, tasks, observation, numerics),
            folder=None if folder is None else os.path.join(folder, label.partition(" ")[0]),
            label=label,
            **options,
        )
        # Each result is released as soon as it is copied, so that a sweep is in memory only once.
        for k, result in results:
            for key, values in result.items():
                if key not in gathered:
                    gathered[key] = np.empty((n, *values.shape[1:]), values.dtype)
                gathered[key][which[parts[k]]] = values

    if starts is None and isinstance(start, str) and start == "continuation":
        highest = np.arange(len(grid)) * per_network + int(np.argmax(beta))
        compute("highest beta", highest, np.stack([start_window(x, None).attention for x in grid]), 1, 0)
        others = np.setdiff1d(np.arange(n), highest)
        if others.size:
            final, position = gathered["final_attention"][highest], int(gathered["final_position"][highest[0]])
            length = min(K, 1 + numerics.transient + numerics.steps)
            compute("other betas", others, final[others // per_network], length, position)
    else:
        begin = [start_window(x, start) for x in grid] if starts is None else windows * len(grid)
        attention = np.repeat(np.stack([window.attention for window in begin]), len(beta), axis=0)
        compute("all betas", np.arange(n), attention, int(begin[0].length), int(begin[0].position))

    described = {"field": observation.field, "component": observation.component, "map_period": grid[0].period}
    return _dataset(gathered, axes, described | numerics._asdict())
