"""Sweeps of the mean-field map over temperatures, networks and starts, gathered while they run: one call, one Dataset.

Only the last steps of an orbit are kept in memory. The sweep is cut into tasks, which run in threads, in processes or
on a cluster. With a folder given, results survive an interruption (see ``spinbook.sweep``). ``attractors`` classifies
the orbits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from spinbook import sweep, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.replicas import mean_and_error
from spinbook.self_attention import lanes
from spinbook.self_attention.attractors import shortest_period
from spinbook.self_attention.double import inverse_temperatures, numbers
from spinbook.self_attention.lanes import FIELDS, Lanes, Numerics, Observation, Statistics
from spinbook.self_attention.network import Network
from spinbook.self_attention.sign_classes import SignClasses
from spinbook.self_attention.window import Window, start_window

__all__ = ["CONTINUATION", "DIAGRAM", "EXPONENTS_ONLY", "MEASURED", "bifurcation"]

CONTINUATION = "continuation"
DIAGRAM = Observation(plane=1, tolerance=1e-3, num_bins=2000, max_crossings=512, num_tail=1024)
"""What the paper's diagrams show: 2,000 bins, and up to 512 crossings of the plane of the second component."""
EXPONENTS_ONLY = DIAGRAM._replace(num_bins=2, max_crossings=0)
"""For sweeps of which only the exponents are wanted."""
MEASURED = Numerics(steps=75_000, transient=100_000, num_blocks=20)
"""How long an orbit of the book's diagrams is followed."""
SweepOfLanes = Callable[[Lanes, Observation, Numerics], Statistics]


def _networks(
    network: Network | Sequence[Network], gammas: Any, epsilons: Any
) -> tuple[list[Network], dict[str, np.ndarray]]:
    """All combinations, the last axis fastest, and the axes."""
    given: Any = network
    many = isinstance(given, Sequence) and not isinstance(given, str)
    grid: list[Network] = [validate.instance(x, Network, "network") for x in (given if many else [given])]
    if not grid:
        raise ValueError("network: expected at least one, got none")
    sizes = {(x.num_features, x.context, x.period) for x in grid}
    if len(sizes) > 1:
        raise ValueError(
            "network: expected networks with equally many features, tokens in the window and positions, "
            f"got (features, tokens, positions) = {sorted(sizes)}"
        )
    axes: dict[str, np.ndarray] = {"network": np.arange(len(grid))} if many else {}
    if gammas is not None:
        axes["gamma"] = numbers(gammas, "gammas", ndim=1)
        grid = [replace(x, gamma=gamma) for x in grid for gamma in axes["gamma"]]
    if epsilons is not None:
        axes["epsilon"] = numbers(epsilons, "epsilons", ndim=1)
        grid = [replace(x, epsilon=epsilon) for x in grid for epsilon in axes["epsilon"]]
    if not grid:
        raise ValueError("gammas, epsilons: expected at least one number each, got none")
    return grid, axes


def _written(networks: Sequence[Network]) -> str:
    """Networks as JSON: lists of the arguments that make them again."""

    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray) else value

    return json.dumps([{field.name: plain(getattr(x, field.name)) for field in fields(x)} for x in networks])


def _checked_numerics(numerics: Numerics, given: dict[str, int], most: int) -> Numerics:
    """The numerics with the given numbers in place of its own, all of them checked."""
    x = numerics._replace(**given)

    def count(name: str, **bounds: int) -> int:
        return validate.count(getattr(x, name), name if name in given else f"numerics.{name}", **bounds)

    steps = count("steps", minimum=2)
    return x._replace(
        steps=steps,
        transient=count("transient"),
        num_exponents=count("num_exponents", maximum=most),
        num_blocks=count("num_blocks", minimum=2, maximum=steps),
        seed=count("seed"),
        orthonormalise_every=validate.count(x.every, "numerics.orthonormalise_every", minimum=1),
    )


def _checked_observation(observation: Observation, num_features: int, steps: int) -> Observation:
    def count(name: str, **bounds: int) -> int:
        return validate.count(getattr(observation, name), f"observation.{name}", **bounds)

    if observation.field not in FIELDS:
        raise ValueError(f"observation.field: expected one of {', '.join(FIELDS)}, got {observation.field!r}")
    return observation._replace(
        component=count("component", maximum=num_features - 1),
        plane=count("plane", maximum=num_features - 1),
        tolerance=float(inverse_temperatures(observation.tolerance, "observation.tolerance", ndim=0)),
        num_bins=count("num_bins", minimum=2),
        max_crossings=count("max_crossings"),
        num_tail=min(count("num_tail"), steps),
    )


def _start_windows(network: Network, starts: Any) -> list[Window]:
    windows = [start_window(network, start) for start in starts]
    if not windows:
        raise ValueError("starts: expected at least one window, got none")
    if len({(int(window.length), int(window.position)) for window in windows}) > 1:
        raise ValueError("starts: expected windows of the same length and position, got different ones")
    return windows


def _gather(
    task: Lanes, run: SweepOfLanes, observation: Observation, numerics: Numerics, tolerance: float
) -> dict[str, np.ndarray]:
    result = run(task, observation, numerics)
    states = result.tail[:, :, FIELDS.index("attention")]
    period, recurrence_error = shortest_period(states, tolerance=tolerance)
    return {
        "growth": result.growth,
        "minimum": result.minimum,
        "maximum": result.maximum,
        "histogram": result.histogram,
        "crossings": result.crossings,
        "num_crossings": result.num_crossings,
        "period": period,
        "recurrence_error": recurrence_error,
        "attention": result.windows.attention,
        "position": np.full(len(period), int(result.windows.position)),
    }


def _dataset(gathered: dict[str, np.ndarray], axes: dict[str, np.ndarray], attributes: dict[str, Any]) -> xr.Dataset:
    """Fold the lanes of every variable into the dimensions, and add the derived variables."""
    dims = tuple(axes)
    shape = tuple(map(len, axes.values()))
    field = attributes["field"]
    variable = f"{field}[{attributes['component']}]"
    crossing = f"|{field}[{attributes['plane']}]| < {attributes['plane_tolerance']:g}"

    def along(values: np.ndarray, *more: str, **about: str) -> tuple[Any, ...]:
        return (*dims, *more), values.reshape(*shape, *values.shape[1:]), about

    histogram = gathered["histogram"]
    points = (histogram > 0).sum(axis=1)
    variables = {
        "histogram": along(histogram, "bin", long_name=f"steps with {variable} in the bin"),
        "distinct_points": along(points, long_name="occupied bins of the histogram"),
        "crossing_values": along(gathered["crossings"], "crossing", long_name=f"{variable} where {crossing}"),
        "num_crossings": along(gathered["num_crossings"], long_name="number of crossings, kept or not"),
        "minimum": along(gathered["minimum"], "block", "feature", long_name=f"least {field} of each block of steps"),
        "maximum": along(gathered["maximum"], "block", "feature", long_name=f"largest {field} of each block of steps"),
        "period": along(gathered["period"], long_name="shortest period of the last steps, 0 for none", units="steps"),
        "recurrence_error": along(gathered["recurrence_error"], long_name="largest difference after one period"),
        "final_attention": along(gathered["attention"], "slot", "feature", long_name="last attention, newest first"),
        "final_position": along(gathered["position"], long_name="position of the next token"),
    }
    if attributes["num_exponents"]:
        growth = gathered["growth"]
        order = np.argsort(-growth.mean(axis=1), axis=-1, kind="stable")
        growth = np.take_along_axis(growth, order[:, None], axis=-1)
        exponents, errors = mean_and_error(growth.swapaxes(1, 2))
        variables |= {
            "exponents": along(exponents, "exponent", long_name="Lyapunov exponents", units="1/step"),
            "standard_errors": along(errors, "exponent", long_name="their standard errors", units="1/step"),
            "block_exponents": along(growth, "block", "exponent", long_name="exponents of each block", units="1/step"),
        }
    edges = np.linspace(-1, 1, histogram.shape[1] + 1)
    return xr.Dataset(variables, axes | {"bin": (edges[1:] + edges[:-1]) / 2}, attributes)


def bifurcation(
    network: Network | Sequence[Network],
    betas: Float[ArrayLike, " B"],
    *,
    steps: int | None = None,
    transient: int | None = None,
    num_exponents: int | None = None,
    numerics: Numerics = MEASURED,
    observation: Observation = DIAGRAM,
    period_tolerance: float = 1e-6,
    gammas: Float[ArrayLike, " G"] | None = None,
    epsilons: Float[ArrayLike, " H"] | None = None,
    start: Any = CONTINUATION,
    starts: Sequence[Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    num_threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    run: SweepOfLanes = lanes.run,
    lanes_per_task: int = lanes.LANES,
) -> xr.Dataset:
    """x_0 -> x_transient, dropped; x_transient -> x_{transient + steps}, gathered: for every combination of parameters.

    Dimensions, in this order and only where asked for: ``network`` (a list of networks given), ``gamma`` and
    ``epsilon`` (which replace those of the networks), ``start``, and always ``beta``.

    Where the orbits start. ``start="continuation"``: as in the paper, the orbit at the highest beta starts from the
    default token, and its final window is the start of all other betas. ``start=None``: every orbit from the default
    token. A window or a trajectory: every orbit from there. ``starts``, a list of windows or an array (n, K, M): each
    of them, along the dimension ``start``.

    How long: ``numerics``, by default 75,000 steps in 20 blocks after a transient of 100,000, without exponents;
    ``steps``, ``transient`` and ``num_exponents`` take the place of its own where they are given. What is gathered of
    an orbit: ``observation``, by default that of the paper's diagrams; a part of it changes as in
    ``DIAGRAM._replace(num_bins=100)``:

    - ``histogram`` (bin) of one component of one field, over [-1, 1]; ``distinct_points``: its occupied bins;
    - ``crossing_values`` (crossing): the same component whenever that of the plane is within ``tolerance`` of zero, at
      most ``max_crossings`` of them and then NaN; ``num_crossings``: how many there were;
    - ``minimum``, ``maximum`` (block, feature): of all components in each block of successive steps;
    - with ``num_exponents``: ``exponents``, ``standard_errors`` (exponent), descending, and ``block_exponents``;
    - ``period``: the shortest period of the last attention vectors, in steps; 0 if there is no period up to half of
      ``num_tail``. ``period_tolerance`` is the allowed difference, ``recurrence_error`` the observed one. An orbit that
      follows the positions has the period R = 2^P, the smallest possible for epsilon > 0, and others have multiples of
      it;
    - ``final_attention`` (slot, feature) and ``final_position``: the window at the end, to continue from.

    Cost: on one core some 25 million steps a second without exponents, 15 with the largest, 3 with all 12 of the
    paper's network. Memory: about 13 kB for each orbit with the default options. A ``folder`` keeps what is finished;
    the same call with the same folder continues an interrupted sweep, and the result is the same. ``executor``: where
    the tasks run instead of in ``num_threads`` threads; ``time_limit``: the seconds that a task may take (see
    ``spinbook.sweep``). Neither changes a bit of the result. ``progress`` shows a bar; every process compiles the map
    before its first task is done. ``run``: another routine with the arguments and the result of ``lanes.run``.

    The attributes say what was computed: ``networks`` is the list of them in JSON, each the arguments of ``Network``
    (before ``gammas`` and ``epsilons`` replace theirs); ``tangent_seed`` is that of the first tangents, the only
    random numbers of a sweep.

    Raises ``ValueError`` for beta < 0, epsilon outside [0, 1), windows that do not fit, and a folder with another
    sweep. Source: Poc-Lopez and Aguilera (2024), section 4.1 and figure 3.

    >>> from spinbook.self_attention import paper_network
    >>> diagram = bifurcation(paper_network(), [0.5, 1.255], steps=200, transient=400, num_exponents=1)
    >>> diagram.histogram.dims, diagram.exponents.shape
    (('beta', 'bin'), (2, 1))
    """
    grid, axes = _networks(network, gammas, epsilons)
    K, M = grid[0].context, grid[0].num_features
    beta = inverse_temperatures(betas, "betas", ndim=1)
    period_tolerance = float(inverse_temperatures(period_tolerance, "period_tolerance", ndim=0))
    windows = None if starts is None else _start_windows(grid[0], starts)
    if windows is not None:
        axes["start"] = np.arange(len(windows))
    axes["beta"] = beta

    given = {"steps": steps, "transient": transient, "num_exponents": num_exponents}
    numerics = _checked_numerics(
        validate.instance(numerics, Numerics, "numerics"), {k: v for k, v in given.items() if v is not None}, K * M
    )
    observation = _checked_observation(validate.instance(observation, Observation, "observation"), M, numerics.steps)
    size = validate.count(lanes_per_task, "lanes_per_task", minimum=1)

    # Lanes in the order of the dimensions, beta last.
    per_network = len(beta) * (1 if windows is None else len(windows))
    n = per_network * len(grid)
    blank = Window(np.zeros((1, K, M)), np.int64(1), np.int64(0))
    every_lane = lanes.stack([x for x in grid for _ in range(per_network)], np.resize(beta, n), blank)
    gathered: dict[str, np.ndarray] = {}

    def compute(name: str, which: np.ndarray, attention: np.ndarray, length: int, position: int) -> None:
        """The lanes ``which``, from these windows, into ``gathered``."""
        parts = [slice(k, k + size) for k in range(0, len(which), size)]
        tasks = [
            Lanes(
                SignClasses(*(x[which[part]] for x in every_lane.classes)),
                every_lane.betas[which[part]],
                every_lane.gammas[which[part]],
                Window(attention[part], np.int64(length), np.int64(position)),
            )
            for part in parts
        ]
        results = sweep.iterate(
            partial(_gather, run=run, observation=observation, tolerance=period_tolerance, numerics=numerics),
            tasks,
            identity=sweep.fingerprint(
                run.__module__, sweep.code_version(run), tasks, observation, period_tolerance, numerics
            ),
            folder=None if folder is None else os.path.join(folder, name),
            executor=executor,
            num_threads=num_threads,
            time_limit=time_limit,
            progress=progress,
            label={"highest": "highest beta", "others": "other betas", "all": "all betas"}[name],
        )
        # Each result is released as soon as it is copied, so that a sweep is in memory only once.
        for k, result in results:
            for key, values in result.items():
                if key not in gathered:
                    gathered[key] = np.empty((n, *values.shape[1:]), values.dtype)
                gathered[key][which[parts[k]]] = values

    if windows is None and isinstance(start, str) and start == CONTINUATION:
        begun = CONTINUATION
        highest = np.arange(len(grid)) * per_network + int(np.argmax(beta))
        tokens = np.stack([start_window(x, None).attention for x in grid])
        compute("highest", highest, tokens, 1, 0)
        others = np.setdiff1d(np.arange(n), highest)
        if others.size:
            final, position = gathered["attention"][highest], int(gathered["position"][highest[0]])
            length = min(K, 1 + numerics.transient + numerics.steps)
            compute("others", others, final[others // per_network], length, position)
    else:
        begun = "token" if windows is None and start is None else "given"
        begin = [start_window(x, start) for x in grid] if windows is None else windows * len(grid)
        attention = np.repeat(np.stack([window.attention for window in begin]), len(beta), axis=0)
        compute("all", np.arange(n), attention, int(begin[0].length), int(begin[0].position))

    attributes = {
        "field": observation.field,
        "component": observation.component,
        "plane": observation.plane,
        "plane_tolerance": observation.tolerance,
        "period_tolerance": float(period_tolerance),
        "map_period": grid[0].period,
        "start": begun,
        "networks": _written([network] if isinstance(network, Network) else network),
        **{"tangent_seed" if name == "seed" else name: value for name, value in numerics._asdict().items()},
    }
    return _dataset(gathered, axes, attributes)
