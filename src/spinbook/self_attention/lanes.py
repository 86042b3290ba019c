"""Run many orbits side by side, each with its own network, temperature and start, and gather statistics of them.

Of each orbit are kept its statistics, its last steps if asked for, and the window in which it ends. Arguments are not
checked here; ``bifurcations``, ``trajectories`` and ``lyapunov`` do that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from spinbook.annotations import ArrayLike, Float, Number
from spinbook.self_attention.network import Network
from spinbook.self_attention.sign_classes import SignClasses, sign_classes
from spinbook.self_attention.window import Window

__all__ = [
    "FIELDS",
    "LANES",
    "Lanes",
    "Numerics",
    "Observation",
    "Statistics",
    "run",
    "single",
    "stack",
    "turning_steps",
]

# The orbits that the compiled kernel takes at once: several vector registers, and too many for the compiler to unroll a
# loop over lanes before it can make vectors of it.
LANES = 32

# A single orbit is one lane of 32 until single orbits have cost as much time as compiling functions for one orbit,
# which are five times as fast.
_STEPS_WORTH_COMPILING = 5_000_000
_single_steps: Counter[tuple[int, ...]] = Counter()

FIELDS = ("output_semantic", "values", "queries", "keys", "attention")


class Lanes(NamedTuple):
    """n orbits: their sign classes with a leading axis, ``betas`` and ``gammas`` (n,), and the windows they start from.

    ``windows.attention`` is (n, K, M); ``length`` and ``position`` are single numbers that all share.
    """

    classes: SignClasses
    betas: Float[np.ndarray, " n"]
    gammas: Float[np.ndarray, " n"]
    windows: Window


class Numerics(NamedTuple):
    """The length and the precision of a run.

    ``transient`` steps are dropped, then ``steps`` steps gathered, in ``num_blocks`` blocks of nearly equal length. The
    tangents of ``num_exponents`` exponents start at random, the same for all lanes, drawn from ``seed``; they are
    orthonormalised every ``orthonormalise_every`` steps and at the end of each block: by default every 4 steps, and
    every 20 steps for a single tangent.
    """

    steps: int
    transient: int
    num_exponents: int = 0
    num_blocks: int = 1
    orthonormalise_every: int | None = None
    seed: int = 0

    @property
    def every(self) -> int:
        """Steps between two orthonormalisations."""
        usual = 20 if self.num_exponents == 1 else 4
        return usual if self.orthonormalise_every is None else self.orthonormalise_every

    def bounds(self) -> Int[np.ndarray, " bounds"]:
        """Where the blocks begin and end, in steps after the transient.

        >>> Numerics(steps=10, transient=0, num_blocks=4).bounds()
        array([ 0,  2,  5,  7, 10])
        """
        return np.linspace(0, self.steps, self.num_blocks + 1).astype(int)


class Observation(NamedTuple):
    """Which statistics to gather.

    ``field`` (one of ``FIELDS``) and ``component``: the variable of the histogram, which has ``num_bins`` bins over
    [-1, 1]; values outside count in the outermost bins. ``plane``: another component of the same field; whenever it is
    within ``tolerance`` of zero, the variable is noted as a crossing, up to ``max_crossings`` times. The last
    ``num_tail`` steps are kept. Without bins, only those.
    """

    field: str = FIELDS[0]
    component: int = 0
    plane: int = 0
    tolerance: float = 0.0
    num_bins: int = 0
    max_crossings: int = 0
    num_tail: int = 0


class Statistics(NamedTuple):
    """The statistics of n orbits, with leading axis n; B blocks of successive steps, E exponents.

    ``growth`` (n, B, E): mean logarithmic growth per step of each tangent. ``minimum``, ``maximum`` (n, B, M): of all
    components of the field. ``histogram`` (n, bins). ``crossings`` (n, max_crossings): NaN where there were fewer.
    ``num_crossings`` (n): all of them. ``tail`` (n, steps, 5, M): the last steps, fields as in ``FIELDS``. ``windows``:
    where the orbits ended.
    """

    growth: Float[np.ndarray, "n B E"]
    minimum: Float[np.ndarray, "n B M"]
    maximum: Float[np.ndarray, "n B M"]
    histogram: Int[np.ndarray, "n bins"]
    crossings: Float[np.ndarray, "n crossings"]
    num_crossings: Int[np.ndarray, " n"]
    tail: Float[np.ndarray, "n steps 5 M"]
    windows: Window


def stack(networks: Sequence[Network], betas: Float[ArrayLike, " n"], windows: Window) -> Lanes:
    """One lane for each network and beta; fewer sign classes than the largest network has are filled up with zeros.

    >>> from spinbook.self_attention import paper_network, token_window
    >>> start = token_window(paper_network())
    >>> stack([paper_network()] * 2, [1.0, 2.0], start).classes.signs.shape
    (2, 3, 3)
    """
    known = {id(network): sign_classes(network) for network in {id(x): x for x in networks}.values()}
    classes = [known[id(network)] for network in networks]
    C = max(len(x.signs) for x in classes)

    def padded(array: np.ndarray, axis: int) -> np.ndarray:
        missing = C - array.shape[axis]
        return np.pad(array, [(0, missing if k == axis else 0) for k in range(array.ndim)])

    return Lanes(
        SignClasses(
            np.stack([padded(x.signs, 0) for x in classes]),
            np.stack([padded(x.weights, 2) for x in classes]),
            np.stack([x.positions for x in classes]),
        ),
        np.asarray(betas, np.float64),
        np.array([network.gamma for network in networks]),
        windows,
    )


def single(network: Network, beta: Number, window: Window) -> Lanes:
    """One orbit as the only lane.

    >>> from spinbook.self_attention import paper_network, token_window
    >>> single(paper_network(), 1.0, token_window(paper_network())).windows.attention.shape
    (1, 4, 3)
    """
    return stack([network], np.reshape(beta, 1), window._replace(attention=window.attention[None]))


def turning_steps(numerics: Numerics) -> int:
    """The number of last steps of the transient in which tangents are followed, to turn towards their directions.

    >>> turning_steps(Numerics(steps=1, transient=100_000, num_exponents=1))
    2000
    """
    return min(numerics.transient, 2000) if numerics.num_exponents else 0


def _pays(lanes: Lanes, numerics: Numerics) -> bool:
    """Whether single orbits of this size, this one included, have been long enough to compile functions for them.

    A tangent costs as much as the orbit.
    """
    sizes = (*lanes.windows.attention.shape, lanes.classes.signs.shape[1])
    _single_steps[sizes] += numerics.transient + numerics.steps * (1 + numerics.num_exponents)
    return _single_steps[sizes] > _STEPS_WORTH_COMPILING


def run(lanes: Lanes, observation: Observation, numerics: Numerics) -> Statistics:
    """All orbits through the transient and the blocks, in groups of ``LANES``, in the calling thread.

    A single orbit in one of 32 lanes takes five times as long as with functions that are compiled for one orbit. They
    are compiled, in some seconds, as soon as that saves time, and give the same result to the bit.

    >>> from spinbook.self_attention import paper_network, token_window
    >>> start = token_window(paper_network())
    >>> lanes = single(paper_network(), 1.0, start)
    >>> run(lanes, Observation(), Numerics(steps=100, transient=10, num_exponents=2, num_blocks=5)).growth.shape
    (1, 5, 2)
    """
    L = 1 if len(lanes.betas) == 1 and _pays(lanes, numerics) else LANES
    groups = [slice(k, k + L) for k in range(0, len(lanes.betas), L)]
    parts = [
        _run_group(
            Lanes(
                SignClasses(*(x[group] for x in lanes.classes)),
                lanes.betas[group],
                lanes.gammas[group],
                lanes.windows._replace(attention=lanes.windows.attention[group]),
            ),
            observation,
            numerics,
            L,
        )
        for group in groups
    ]
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Statistics._fields
        if name != "windows"
    }
    attention = np.concatenate([part.windows.attention for part in parts])
    return Statistics(**joined, windows=parts[0].windows._replace(attention=attention))


def _run_group(lanes: Lanes, observation: Observation, numerics: Numerics, L: int) -> Statistics:
    """At most L orbits, by the functions compiled for L of them."""
    # Loaded only when orbits run: numba takes a second.
    from spinbook.self_attention import kernel

    n, K, M = lanes.windows.attention.shape
    E, B = numerics.num_exponents, numerics.num_blocks
    compiled = kernel.compiled(M, K, lanes.classes.signs.shape[1], L)
    state = np.zeros((compiled.layout.size // L, L))

    def lanes_last(values: np.ndarray) -> np.ndarray:
        """Blocks of L numbers; unused lanes repeat the last used lane."""
        rows = np.reshape(values, (n, -1)).T
        return np.concatenate([rows, np.repeat(rows[:, -1:], L - n, axis=1)], axis=1)

    at = compiled.layout
    for first, values in (
        (at.signs, lanes.classes.signs),
        (at.weights, lanes.classes.weights),
        (at.beta, lanes.betas),
        (at.gamma, lanes.gammas),
        (at.attention, lanes.windows.attention),
    ):
        rows = lanes_last(values)
        state[first // L : first // L + len(rows)] = rows
    flat = state.reshape(-1)
    positions = np.stack([lanes_last(x).reshape(-1) for x in lanes.classes.positions.swapaxes(0, 1)])
    position, length = int(lanes.windows.position), int(lanes.windows.length)
    tangents = np.random.default_rng(numerics.seed).normal(size=(E, compiled.tangent_size // L, 1)) * np.ones(L)
    tangents = tangents.reshape(E, compiled.tangent_size)
    field = getattr(compiled.layout, observation.field)
    histogram = np.zeros((L, observation.num_bins), np.int32)
    crossings = np.full((L, observation.max_crossings), np.nan)
    num_crossings = np.zeros(L, np.int64)
    tail = np.zeros((observation.num_tail, n, len(FIELDS), M))
    growth = np.zeros((B, E, L))
    extrema = np.empty((B, 2, M, L))
    extrema[:, 0], extrema[:, 1] = np.inf, -np.inf
    done = 0

    def advance(
        steps: int, tangents: np.ndarray, logs: np.ndarray, extrema: np.ndarray, bins: np.ndarray, rows: np.ndarray
    ) -> None:
        nonlocal done
        compiled.advance(
            flat,
            positions,
            (position + done) % len(positions),
            min(length + done, K),
            0 if done else length - 1,
            steps,
            tangents,
            numerics.every,
            logs,
            kernel.Watched(
                field,
                observation.component,
                observation.plane,
                observation.tolerance,
                extrema,
                bins,
                crossings,
                num_crossings,
            ),
            rows,
        )
        done += steps

    turning = turning_steps(numerics)
    unseen = extrema[0], histogram[:, :0], tail[:0]
    advance(numerics.transient - turning, tangents[:0], growth[0, :0], *unseen)
    advance(turning, tangents, np.zeros((E, L)), *unseen)
    bounds = numerics.bounds()
    for block, size in enumerate(np.diff(bounds)):
        first = bounds[block] - (numerics.steps - len(tail))
        rows = tail[max(first, 0) : max(first + size, 0)]
        advance(int(size), tangents, growth[block], extrema[block], histogram, rows)
        growth[block] /= size

    first = at.attention // L
    attention = state[first : first + K * M, :n].T.reshape(n, K, M)
    return Statistics(
        growth=growth[..., :n].transpose(2, 0, 1),
        minimum=extrema[:, 0, :, :n].transpose(2, 0, 1),
        maximum=extrema[:, 1, :, :n].transpose(2, 0, 1),
        histogram=histogram[:n],
        crossings=crossings[:n],
        num_crossings=num_crossings[:n],
        tail=tail.swapaxes(0, 1),
        windows=Window(attention, np.int64(min(length + done, K)), np.int64((position + done) % len(positions))),
    )
