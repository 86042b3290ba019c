"""One orbit of the mean-field map in double precision on the CPU: step by step, and its Lyapunov exponents.

On another device use ``mean_field``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbook import validate
from spinbook.annotations import Float, Number
from spinbook.replicas import mean_and_error
from spinbook.self_attention import lanes
from spinbook.self_attention.network import Network
from spinbook.self_attention.window import Window, start_window

__all__ = ["LyapunovExponents", "Trajectory", "lyapunov_exponents", "simulate"]


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


class LyapunovExponents(NamedTuple):
    """Natural logarithms per step, in descending order.

    ``exponents`` (E,); ``standard_errors`` (E,) from the scatter of the means of ``blocks`` (B, E) of successive steps.
    ``window``: where the orbit ended.
    """

    exponents: Float[np.ndarray, " E"]
    standard_errors: Float[np.ndarray, " E"]
    blocks: Float[np.ndarray, "B E"]
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
    steps = validate.count(steps, "steps", minimum=1)
    numerics = lanes.Numerics(steps, validate.count(transient, "transient"))
    orbit = lanes.stack([network], [validate.number(beta, "beta", least=0)], start_window(network, start))
    result = lanes.run(orbit, lanes.Observation(num_tail=steps), numerics)
    # Copies, so that keeping one field does not keep all of them.
    fields = {name: result.tail[0, :, k].copy() for k, name in enumerate(lanes.FIELDS)}
    return Trajectory(**fields, window=result.windows._replace(attention=result.windows.attention[0]))


def lyapunov_exponents(
    network: Network,
    *,
    beta: Number,
    steps: int,
    transient: int,
    num_exponents: int = 1,
    start: Any = None,
    num_blocks: int = 20,
) -> LyapunovExponents:
    """lambda_k = 1/T sum_t log R_kk(t): E tangents pushed through T steps, with D = Q R every few of them, D <- Q.

    Of the window of K attention vectors, so that there are K M in all; the positions, which only rotate, add zeros
    that are left out. One exponent per *step*, not per period of the positions. ``start`` as for ``simulate``.

    How far to trust them: T steps differ from the limit by the logarithm of a bounded factor over T, besides the
    scatter that ``standard_errors`` measures in blocks, which have to be longer than the memory of the orbit. In the
    chaotic regimes of the paper's network the softmax extinguishes directions within one step, to less than the
    rounding of others, and the trailing exponents are noise: at beta = 2 all but three.

    Cost: ``simulate``'s times 2 for one exponent, 15 for all 12 of the paper's network. Raises ``ValueError`` for
    beta <= 0, more than K M exponents, and a window that does not fit. Source: Poc-Lopez and Aguilera's code; the
    method is that of Benettin et al. (1980).

    >>> from spinbook.self_attention import paper_network
    >>> lyapunov_exponents(paper_network(), beta=1.0, steps=4000, transient=400, num_exponents=2).exponents.round(3)
    array([-0.083, -0.083])
    """
    most = network.context * network.num_features
    numerics = lanes.checked_numerics(steps, transient, num_exponents, num_blocks, most)
    # At beta = 0 all exponents are minus infinity.
    orbit = lanes.stack([network], [validate.number(beta, "beta", above=0)], start_window(network, start))
    result = lanes.run(orbit, lanes.Observation(), numerics)
    blocks = result.growth[0]
    blocks = blocks[:, np.argsort(-blocks.mean(axis=0), kind="stable")]
    window = result.windows._replace(attention=result.windows.attention[0])
    return LyapunovExponents(*mean_and_error(blocks.T), blocks, window)
