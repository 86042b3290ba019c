"""How fast neighbouring orbits separate: Lyapunov exponents with error bars, their sum, the dimension they imply."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.replicas import mean_and_error
from spinbook.self_attention import lanes
from spinbook.self_attention.double import inverse_temperatures, numbers
from spinbook.self_attention.lanes import Numerics, Observation
from spinbook.self_attention.network import Network
from spinbook.self_attention.sign_classes import sign_classes
from spinbook.self_attention.trajectories import simulate
from spinbook.self_attention.window import Window, start_window

__all__ = [
    "LogDeterminant",
    "LyapunovExponents",
    "kaplan_yorke_dimension",
    "lyapunov_exponents",
    "mean_log_determinant",
]


class LyapunovExponents(NamedTuple):
    """Natural logarithms per step, in descending order.

    ``exponents`` (E,); ``standard_errors`` (E,) from the scatter of the means of ``blocks`` (B, E) of successive steps.
    ``window``: where the orbit ended.
    """

    exponents: Float[np.ndarray, " E"]
    standard_errors: Float[np.ndarray, " E"]
    blocks: Float[np.ndarray, "B E"]
    window: Window


def lyapunov_exponents(
    network: Network,
    *,
    beta: Number,
    steps: int,
    transient: int,
    num_exponents: int = 1,
    start: Any = None,
    num_blocks: int = 20,
    orthonormalise_every: int = 4,
) -> LyapunovExponents:
    """lambda_k = 1/T sum_t log R_kk(t): E tangents pushed through T steps, with D = Q R every few of them, D <- Q.

    Of the window of K attention vectors, so that there are K M in all; the positions, which only rotate, add zeros
    that are left out. One exponent per *step*, not per period of the positions. ``start`` as for ``simulate``.

    How far to trust them. The limit does not depend on the norm or the first tangents; T steps differ from it by the
    logarithm of a bounded factor over T, besides the scatter that ``standard_errors`` measures. The error bars assume
    that blocks are longer than the memory of the orbit. Rounding: between two orthonormalisations a tangent must not
    fall below 1e-16 of the first one. In the chaotic regimes of the paper's network the softmax extinguishes
    directions much faster than that even within one step, and the trailing exponents are then noise, whatever
    ``orthonormalise_every``: at beta = 2 all but three. Two checks: exponents that are right do not change between
    ``orthonormalise_every=4`` and 1, and all K M are right only if they add up to ``mean_log_determinant``.

    Cost: ``simulate``'s times 2 for one exponent, 15 for all 12 of the paper's network. Raises ``ValueError`` for
    beta <= 0, more than K M exponents, and a window that does not fit. Source: Poc-Lopez and Aguilera's code; the
    method is that of Benettin et al. (1980).

    >>> from spinbook.self_attention import paper_network
    >>> lyapunov_exponents(paper_network(), beta=1.0, steps=4000, transient=400, num_exponents=2).exponents.round(3)
    array([-0.083, -0.083])
    """
    validate.instance(network, Network, "network")
    maximum = network.context * network.num_features
    num_blocks = validate.count(num_blocks, "num_blocks", minimum=2)
    numerics = Numerics(
        steps=validate.count(steps, "steps", minimum=num_blocks),
        transient=validate.count(transient, "transient"),
        num_exponents=validate.count(num_exponents, "num_exponents", minimum=1, maximum=maximum),
        num_blocks=num_blocks,
        orthonormalise_every=validate.count(orthonormalise_every, "orthonormalise_every", minimum=1),
    )
    inverse = inverse_temperatures(beta, "beta", ndim=0)
    validate.require(lambda x: x > 0, inverse, "beta", "a number > 0 (at 0 all exponents are minus infinity)")
    orbit = lanes.single(network, inverse, start_window(network, start))
    result = lanes.run(orbit, Observation(), numerics)
    blocks = result.growth[0]
    blocks = blocks[:, np.argsort(-blocks.mean(axis=0), kind="stable")]
    end = result.windows
    return LyapunovExponents(*mean_and_error(blocks.T), blocks, end._replace(attention=end.attention[0]))


class LogDeterminant(NamedTuple):
    """Mean of log |det J| per step of an orbit, its standard error from ``blocks`` (B,), and where the orbit ended."""

    value: float
    standard_error: float
    blocks: Float[np.ndarray, " B"]
    window: Window


def mean_log_determinant(
    network: Network, *, beta: Number, steps: int, transient: int = 0, start: Any = None, num_blocks: int = 20
) -> LogDeterminant:
    """<log |det J|> = <M log p_K + log |det(dm^v + gamma (m^v - A) (x) m^q dm^k)|>: the sum of all K M exponents.

    J, the Jacobian of one step in the window of K attention vectors, shifts all but the oldest, so that its
    determinant is that of d A_t / d A_{t-K} alone, (M, M): with p_K the softmax weight of the oldest token, m^v and
    m^k its mean fields and d their derivatives with respect to the attention that made it. No tangent is followed, and
    nothing is orthonormalised: an independent route. Where fewer than M sign classes occur, which
    make the map singular, rounding leaves some tens below zero.

    Arguments as for ``lyapunov_exponents``; the orbit is the same but for the first K + 1 steps, which fill the window.
    Memory: some hundred numbers per step.

    >>> from spinbook.self_attention import paper_network
    >>> round(mean_log_determinant(paper_network(), beta=1.0, steps=200, transient=200).value, 2)
    -4.76
    """
    validate.instance(network, Network, "network")
    K, M = network.context, network.num_features
    num_blocks = validate.count(num_blocks, "num_blocks", minimum=2)
    steps = validate.count(steps, "steps", minimum=num_blocks)
    # The first window must be full for the oldest of its tokens to exist.
    inverse = float(inverse_temperatures(beta, "beta", ndim=0))
    if inverse == 0:
        raise ValueError("beta: expected a number > 0 (at 0 the logarithm is minus infinity), got 0")
    window = simulate(network, beta=beta, steps=1, transient=K + validate.count(transient, "transient"), start=start)
    orbit = simulate(network, beta=beta, steps=steps, start=window)
    signs, weights, positions = sign_classes(network)

    attention = np.concatenate([window.window.attention[::-1], orbit.attention])
    phase = (int(window.window.position) + np.arange(-K, steps)) % network.period
    # Tokens -K + 1, ..., steps - 1 of the orbit: made by the attention before them, in the position of their own.
    tanh = np.tanh(inverse * attention[:-1] @ signs.T)
    values, keys = (tanh @ weights[k].T + positions[phase[1:], k] for k in (1, 3))
    logits = network.gamma * np.stack(
        [np.einsum("ta,ta->t", orbit.queries, keys[K - 1 - j : K - 1 - j + steps]) for j in range(K)]
    )
    log_weight = logits[-1] - logsumexp(logits, axis=0)
    slopes = inverse * (1 - tanh[:steps] ** 2)
    by_attention = np.einsum("xac,tc,cb->xtab", weights[[1, 3]], slopes, signs)
    through_softmax = np.einsum("td,tdb->tb", orbit.queries, by_attention[1])
    matrices = (
        by_attention[0] + network.gamma * (values[:steps] - orbit.attention)[:, :, None] * through_softmax[:, None]
    )
    with np.errstate(divide="ignore"):
        logs = M * log_weight + np.linalg.slogdet(matrices).logabsdet
    blocks = np.array([part.mean() for part in np.array_split(logs, num_blocks)])
    return LogDeterminant(float(logs.mean()), float(mean_and_error(blocks)[1]), blocks, orbit.window)


def kaplan_yorke_dimension(exponents: Float[ArrayLike, " E"], *, zero: float = 0.0) -> float:
    """D = j + (lambda_1 + ... + lambda_j) / |lambda_{j+1}|, with the largest j for which the sum is not negative.

    0 for a point or a cycle of a map (all exponents negative), 1 for an invariant circle, more for chaos. Leading
    exponents are enough, as many as it takes for their sum to be negative; otherwise ``ValueError``. Measured
    exponents that should be zero scatter around it: those of at most ``zero`` in size count as 0. That D is the
    information dimension of typical attractors is a conjecture. Source: Kaplan and Yorke (1979).

    >>> round(kaplan_yorke_dimension([0.1, 0.0, -0.4]), 3)
    2.25
    >>> kaplan_yorke_dimension([-2e-5, -0.3]), kaplan_yorke_dimension([-2e-5, -0.3], zero=1e-4)
    (0.0, 1.0)
    """
    values = np.sort(numbers(exponents, "exponents", ndim=1))[::-1]
    zero = float(numbers(zero, "zero", ndim=0))
    if values.size == 0:
        raise ValueError("exponents: expected at least one number, got none")
    validate.require(lambda x: np.abs(x) < 1e300, values, "exponents", "numbers whose sum is finite")
    values = np.where(np.abs(values) <= zero, 0.0, values)
    sums = np.cumsum(values)
    if values[0] < 0:
        return 0.0
    if sums[-1] >= 0:
        raise ValueError(
            f"exponents: expected enough of them for a negative sum, got {len(values)} with the sum {sums[-1]:.3g}"
        )
    j = int(np.argmax(sums < 0))
    return j + float(sums[j - 1] / abs(values[j]))
