"""One orbit of the mean-field map, step by step, in double precision on the CPU.

On another device use ``mean_field``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from spinbook import validate
from spinbook.annotations import Float, Number
from spinbook.self_attention import lanes
from spinbook.self_attention.double import inverse_temperatures
from spinbook.self_attention.lanes import Numerics, Observation
from spinbook.self_attention.network import Network
from spinbook.self_attention.window import Window, start_window

__all__ = ["Trajectory", "simulate"]


class Trajectory(NamedTuple):
    """The mean fields of every step, (steps, features) each, and the window after the last one, to continue from.

    ``output_semantic``: (1 - epsilon) <W^o_a tanh(...)>, without the positional term; the variable that the paper
    plots. ``values``, ``queries``, ``keys``: mean fields of the token of that step. ``attention``: computed with its
    query.
    """

    output_semantic: Float[Any, "steps M"]
    values: Float[Any, "steps M"]
    queries: Float[Any, "steps M"]
    keys: Float[Any, "steps M"]
    attention: Float[Any, "steps M"]
    window: Window


def simulate(network: Network, *, beta: Number, steps: int, transient: int = 0, start: Any = None) -> Trajectory:
    """m^alpha_t and A_t for t = transient, ..., transient + steps - 1.

    ``start``: by default the token W^o_1 at position 0, whose attention is the first; or a window (``token_window``,
    ``attention_window``, K attention vectors), or another trajectory, to continue where that ended. Step 0 is the first
    token made, and it carries the position of the window, 0 by default.

    The map is driven by the positions and so has the period R = ``network.period`` itself: for epsilon > 0, an orbit
    of the smallest possible period repeats after R steps. Where the dynamics are chaotic two correct programs disagree
    after some hundred steps; compare averages there. Cost: about a microsecond per step, and memory for 5 M numbers
    per step. Raises ``ValueError`` for beta < 0 and a window that does not fit. Source: Poc-Lopez and Aguilera (2024),
    equations (13) to (16).

    >>> from spinbook.self_attention import paper_network
    >>> simulate(paper_network(), beta=1.27, steps=8).output_semantic.shape
    (8, 3)
    """
    validate.instance(network, Network, "network")
    steps = validate.count(steps, "steps", minimum=1)
    result = lanes.run(
        lanes.single(network, inverse_temperatures(beta, "beta", ndim=0), start_window(network, start)),
        Observation(num_tail=steps),
        Numerics(steps=steps, transient=validate.count(transient, "transient")),
    )
    # Copies, so that keeping one field does not keep all of them.
    fields = {name: result.tail[0, :, k].copy() for k, name in enumerate(lanes.FIELDS)}
    end = result.windows
    return Trajectory(**fields, window=end._replace(attention=end.attention[0]))
