"""Run many orbits side by side, each with its own network, temperature and start, and gather statistics of them.

Of each orbit are kept its statistics, its last steps if asked for, and the window in which it ends. Arguments are not
checked here; ``bifurcations`` and ``trajectories`` do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.self_attention.network import Network
from spinbook.self_attention.sign_classes import SignClasses, sign_classes
from spinbook.self_attention.window import Window

__all__ = ["FIELDS", "LANES", "Lanes", "Numerics", "Observation", "Statistics", "checked_numerics", "run", "stack"]

# The orbits that the compiled kernel takes at once: several vector registers, and too many for the compiler to unroll a
# loop over lanes before it can make vectors of it.
LANES = 32

FIELDS = ("output_semantic", "values", "queries", "keys", "attention")
# The last steps of the transient, in which tangents turn towards their directions.
_TURNING = 2000


class Lanes(NamedTuple):
    """n orbits: their sign classes with a leading axis, ``betas`` and ``gammas`` (n,), and the windows they start from.

    ``windows.attention`` is (n, K, M); ``length`` and ``position`` are single numbers that all share.
    """

    classes: SignClasses
    betas: Float[np.ndarray, " n"]
    gammas: Float[np.ndarray, " n"]
    windows: Window


class Numerics(NamedTuple):
    """The length of a run: ``transient`` steps are dropped, then ``steps`` gathered, in blocks of nearly equal length.

    The tangents of ``num_exponents`` exponents start at random, the same for all lanes. They are orthonormalised every
    4 steps, every 20 steps for a single tangent, and at the end of each block.
    """

    steps: int
    transient: int
    num_exponents: int = 0
    num_blocks: int = 1


def checked_numerics(steps: int, transient: int, num_exponents: int, num_blocks: int, most_exponents: int) -> Numerics:
    """The numbers as ``Numerics``, or the error that names the argument."""
    num_blocks = validate.count(num_blocks, "num_blocks", minimum=2)
    return Numerics(
        validate.count(steps, "steps", minimum=num_blocks),
        validate.count(transient, "transient"),
        validate.count(num_exponents, "num_exponents", maximum=most_exponents),
        num_blocks,
    )


class Observation(NamedTuple):
    """Which statistics to gather.

    ``field`` (one of ``FIELDS``) and ``component``: the variable of the histogram, which has ``num_bins`` bins over
    [-1, 1]; values outside count in the outermost bins. The last ``num_tail`` steps are kept. Without bins, only those.
    """

    field: str = FIELDS[0]
    component: int = 0
    num_bins: int = 0
    num_tail: int = 0


class Statistics(NamedTuple):
    """The statistics of n orbits, with leading axis n; B blocks of successive steps, E exponents.

    ``growth`` (n, B, E): mean logarithmic growth per step of each tangent. ``minimum``, ``maximum`` (n, B, M): of all
    components of the field. ``histogram`` (n, bins). ``tail`` (n, steps, 5, M): the last steps, fields as in
    ``FIELDS``. ``windows``: where the orbits ended.
    """

    growth: Float[np.ndarray, "n B E"]
    minimum: Float[np.ndarray, "n B M"]
    maximum: Float[np.ndarray, "n B M"]
    histogram: Int[np.ndarray, "n bins"]
    tail: Float[np.ndarray, "n steps 5 M"]
    windows: Window


def stack(networks: Sequence[Network], betas: Float[ArrayLike, " n"], windows: Window) -> Lanes:
    """One lane for each network and beta, from its own window or from the same.

    Fewer sign classes than the largest network has are filled up with zeros.

    >>> from spinbook.self_attention import paper_network, token_window
    >>> stack([paper_network()] * 2, [1.0, 2.0], token_window(paper_network())).windows.attention.shape
    (2, 4, 3)
    """
    known = {id(network): sign_classes(network) for network in {id(x): x for x in networks}.values()}
    classes = [known[id(network)] for network in networks]
    C = max(len(x.signs) for x in classes)
    each = (len(networks), *windows.attention.shape[-2:])
    return Lanes(
        SignClasses(
            np.stack([np.pad(x.signs, ((0, C - len(x.signs)), (0, 0))) for x in classes]),
            np.stack([np.pad(x.weights, ((0, 0), (0, 0), (0, C - len(x.signs)))) for x in classes]),
            np.stack([x.positions for x in classes]),
        ),
        np.asarray(betas, np.float64),
        np.array([network.gamma for network in networks]),
        windows._replace(attention=np.broadcast_to(windows.attention, each)),
    )


def run(lanes: Lanes, observation: Observation, numerics: Numerics) -> Statistics:
    """At most 32 orbits through the transient and the blocks, in the calling thread, at the cost of 32.

    >>> from spinbook.self_attention import paper_network, token_window
    >>> lanes = stack([paper_network()], [1.0], token_window(paper_network()))
    >>> run(lanes, Observation(), Numerics(steps=100, transient=10, num_exponents=2, num_blocks=5)).growth.shape
    (1, 5, 2)
    """
    # Loaded only when orbits run: numba takes a second.
    from spinbook.self_attention import kernel

    L, E, B = LANES, numerics.num_exponents, numerics.num_blocks
    n, K, M = lanes.windows.attention.shape
    C = lanes.classes.signs.shape[1]
    if n > L:
        raise ValueError(f"lanes: expected at most {L} orbits, got {n}")
    advance, size = kernel.compiled(M, K, C)

    def rows(values: Any) -> np.ndarray:
        """A number for each lane in each row; unused lanes repeat the last used one."""
        return np.pad(np.reshape(values, (n, -1)).T, ((0, 0), (0, L - n)), mode="edge")

    given = [rows(x) for x in (*lanes.classes[:2], lanes.betas, lanes.gammas, lanes.windows.attention)]
    state = np.concatenate([*given, np.zeros((size // L - sum(map(len, given)), L))])
    flat = state.reshape(-1)
    positions = np.stack([rows(x).reshape(-1) for x in lanes.classes.positions.swapaxes(0, 1)])
    position, length = int(lanes.windows.position), int(lanes.windows.length)
    tangents = np.random.default_rng(0).normal(size=(E, M + K * C, 1)) * np.ones(L)
    tangents = tangents.reshape(E, (M + K * C) * L)
    histogram = np.zeros((L, observation.num_bins), np.int32)
    tail = np.zeros((observation.num_tail, n, len(FIELDS), M))
    growth = np.zeros((B, E, L))
    extrema = np.stack([np.full((B, M, L), np.inf), np.full((B, M, L), -np.inf)], axis=1)
    done = 0

    def follow(steps: int, tangents: np.ndarray, logs: np.ndarray, *seen: np.ndarray) -> None:
        nonlocal done
        advance(
            *(flat, positions, (position + done) % len(positions), min(length + done, K), 0 if done else length - 1),
            *(steps, tangents, 20 if E == 1 else 4, logs, FIELDS.index(observation.field), observation.component),
            *seen,
        )
        done += steps

    turning = min(numerics.transient, _TURNING) if E else 0
    unseen = extrema[0], histogram[:, :0], tail[:0]
    follow(numerics.transient - turning, tangents[:0], growth[0, :0], *unseen)
    follow(turning, tangents, np.zeros((E, L)), *unseen)
    bounds = np.linspace(0, numerics.steps, B + 1).astype(int)
    for block, length_of_block in enumerate(np.diff(bounds)):
        first = bounds[block] - (numerics.steps - len(tail))
        record = tail[max(first, 0) : max(first + length_of_block, 0)]
        follow(int(length_of_block), tangents, growth[block], extrema[block], histogram, record)
        growth[block] /= length_of_block

    begin = sum(map(len, given[:-1]))
    attention = state[begin : begin + K * M, :n].T.reshape(n, K, M)
    return Statistics(
        growth=growth[..., :n].transpose(2, 0, 1),
        minimum=extrema[:, 0, :, :n].transpose(2, 0, 1),
        maximum=extrema[:, 1, :, :n].transpose(2, 0, 1),
        histogram=histogram[:n],
        tail=tail.swapaxes(0, 1),
        windows=Window(attention, np.int64(min(length + done, K)), np.int64((position + done) % len(positions))),
    )
