"""All exponents of one orbit, with a bound for each: tangents forward, and by the inverse transpose, in 106 bits."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int
from scipy.special import log_softmax

from spinbook import validate
from spinbook.annotations import Float, Number
from spinbook.replicas import mean_and_error
from spinbook.self_attention.double import inverse_temperatures
from spinbook.self_attention.network import Network
from spinbook.self_attention.sign_classes import SignClasses, sign_classes
from spinbook.self_attention.trajectories import simulate
from spinbook.self_attention.window import Window

__all__ = ["Spectrum", "Steps", "derivatives", "lyapunov_spectrum"]


class Steps(NamedTuple):
    """The derivative of A_t in the window before it, for T successive steps.

    ``top`` (T, M, K M): d A_t / d (A_{t-1}, ..., A_{t-K}). Its last block is p G with ``oldest`` = G (T, M, M) and
    p = exp(``log_weight``) (T,), the softmax weight of the token that leaves the window next.
    """

    top: Float[np.ndarray, "T M KM"]
    oldest: Float[np.ndarray, "T M M"]
    log_weight: Float[np.ndarray, " T"]


class Spectrum(NamedTuple):
    """K M exponents per step, natural logarithms, in descending order.

    ``exponents`` (K M,), ``standard_errors`` (K M,) from the scatter of the means of successive blocks. ``forward`` and
    ``inverse`` (K M,): the same exponents by the two routes. ``bounds`` (K M,): how far rounding may have moved each.
    ``log_determinant``: the mean of log |det J|, which is the sum of all of them.
    ``window``: where the orbit ended.
    """

    exponents: Float[np.ndarray, " KM"]
    standard_errors: Float[np.ndarray, " KM"]
    bounds: Float[np.ndarray, " KM"]
    forward: Float[np.ndarray, " KM"]
    inverse: Float[np.ndarray, " KM"]
    log_determinant: float
    window: Window


def derivatives(
    classes: SignClasses,
    attention: Float[np.ndarray, "tokens M"],
    phases: Int[np.ndarray, " tokens"],
    *,
    beta: float,
    gamma: float,
    context: int,
) -> Steps:
    """B_j = w_j (dm^v_j + gamma (m^v_j - A_t) (x) m^q dm^k_j), and in B_0 what the query adds, gamma C dm^q.

    w_j is the softmax weight of the token of age j, dm its derivative in the attention vector that made it, and
    C = sum_{i < j} w_i w_j (m^v_i - m^v_j) (x) (m^k_i - m^k_j), the covariance of values and keys, whose relative
    error stays small in this form also where one weight is nearly 1. ``attention`` (T + K - 1, M): what made the tokens
    of T steps with K = ``context``, the oldest first; ``phases``: the positions that these tokens carry.

    Takes its arguments without checks; its callers have checked them.

    >>> from spinbook.self_attention import paper_network
    >>> network = paper_network()
    >>> zeros = np.zeros((9, 3))
    >>> steps = derivatives(sign_classes(network), zeros, np.arange(9) % 4, beta=1.0, gamma=1.0, context=4)
    >>> steps.top.shape, steps.oldest.shape
    ((6, 3, 12), (6, 3, 3))
    """
    T, M = len(attention) - context + 1, attention.shape[1]
    tanh = np.tanh(beta * attention @ classes.signs.T)
    fields = np.einsum("xac,tc->txa", classes.weights, tanh) + classes.positions[phases]
    slopes = np.einsum("xac,tc,cb->txab", classes.weights[1:], beta * (1 - tanh**2), classes.signs)
    ages = context - 1 + np.arange(T)[:, None] - np.arange(context)
    values, keys = fields[ages, 1], fields[ages, 3]
    query = fields[context - 1 :, 2]
    log_weights = log_softmax(gamma * np.einsum("tja,ta->tj", keys, query), axis=1)
    weights = np.exp(log_weights)
    output = np.einsum("tj,tja->ta", weights, values)
    through_keys = np.einsum("ta,tjab->tjb", query, slopes[ages, 2])
    blocks = slopes[ages, 0] + gamma * (values - output[:, None])[..., None] * through_keys[:, :, None]
    top = weights[..., None, None] * blocks
    for i, j in combinations(range(context), 2):
        change = np.einsum("ta,tab->tb", keys[:, i] - keys[:, j], slopes[context - 1 :, 1])
        covariance = (values[:, i] - values[:, j])[..., None] * change[:, None]
        top[:, 0] += gamma * (weights[:, i] * weights[:, j])[:, None, None] * covariance
    return Steps(top.swapaxes(1, 2).reshape(T, M, context * M), blocks[:, -1].copy(), log_weights[:, -1].copy())


def lyapunov_spectrum(
    network: Network,
    *,
    beta: Number,
    steps: int,
    transient: int,
    start: Any = None,
    num_blocks: int = 20,
    turning: int = 1000,
) -> Spectrum:
    """lambda_k = 1/T sum_t log R_kk(t) with J_t Q_t = Q_{t+1} R(t), all K M of them, each with what rounding may do.

    Two routes to the same Q. Forward, tangents are stretched by J; what is smaller than the rounding of the largest is
    lost, and the trailing exponents come out too *large*. By the inverse transpose, J^-T Q_t = Q_{t+1} R^-T, directions
    come in the reverse order: now the leading ones are lost, and come out too *small*. The inverse needs no inverted
    matrix of size K M, since a step only shifts the window but for the block of the token that leaves it, (M, M), whose
    tiny softmax weight is kept as a logarithm. Both use 106 bits and orthonormalise at every step.

    ``bounds`` are estimates, not theorems: a route is taken to be wrong by at most what rounding every step to 53 bits
    changes, and by at most what the routes are apart, since what is lost makes one too large and the other too small;
    the smaller of the two is given, at least 1e-12. The leading exponents are taken from the first route and the others
    from the second, with the seam where these changes are least in sum. In the chaos of the paper's network at beta =
    1.28, where by ``lyapunov_exponents`` the last six are wrong by up to a half, bounds are below 1e-8; at beta = 2
    three in the middle stay uncertain, and say so. The sum of all must be the mean of log |det J|, which needs neither
    route. The tangents turn for the last ``turning`` steps of the transient, after which the two Q are the same.

    Cost: for the paper's network some 60 microseconds per step, and four seconds of compiling the first time. Raises
    ``ValueError`` as ``lyapunov_exponents`` does, and where a step is singular (fewer than M sign classes). Source:
    this book; the order of the inverse route is in Ginelli et al. (2007).

    >>> from spinbook.self_attention import paper_network
    >>> found = lyapunov_spectrum(paper_network(), beta=1.0, steps=400, transient=400, turning=200)
    >>> bool(abs(found.exponents.sum() - found.log_determinant) < 1e-8), bool(found.bounds.max() < 1e-8)
    (True, True)
    """
    # Loaded only when tangents are followed: numba takes a second.
    from chapters.attention_dynamics import extended

    validate.instance(network, Network, "network")
    K, M = network.context, network.num_features
    num_blocks = validate.count(num_blocks, "num_blocks", minimum=2)
    steps = validate.count(steps, "steps", minimum=num_blocks)
    transient = validate.count(transient, "transient")
    turning = validate.count(turning, "turning", maximum=transient)
    inverse = float(inverse_temperatures(beta, "beta", ndim=0))
    if inverse == 0:
        raise ValueError("beta: expected a number > 0 (at 0 all exponents are minus infinity), got 0")
    classes = sign_classes(network)

    tangents = np.zeros((4, K * M, 2, K * M))
    tangents[:, :, 0] = np.linalg.qr(np.random.default_rng(0).normal(size=(K * M, K * M)))[0]
    D, D_rounded, Y, Y_rounded = tangents
    # The first window must be full for the oldest of its tokens to exist.
    window = simulate(network, beta=beta, steps=1, transient=K + transient - turning, start=start).window
    sizes = [turning, *np.diff(np.linspace(0, steps, num_blocks + 1).astype(int))]
    blocks = []
    for size in map(int, sizes):
        if size == 0:
            continue
        orbit = simulate(network, beta=beta, steps=size, start=window)
        made_by = np.concatenate([window.attention[::-1], orbit.attention[:-1]])
        phases = (int(window.position) + np.arange(1 - K, size)) % network.period
        local = derivatives(classes, made_by, phases, beta=inverse, gamma=network.gamma, context=K)
        volumes = np.linalg.slogdet(local.oldest).logabsdet
        if not np.isfinite(volumes).all():
            raise ValueError("network: expected a map whose steps can be inverted, got one with a singular derivative")
        logs = np.zeros((4, K * M))
        extended.forward(local.top, D, logs[0], False)
        extended.forward(local.top, D_rounded, logs[1], True)
        extended.inverse(local.top, local.oldest, local.log_weight, Y, logs[2], False)
        extended.inverse(local.top, local.oldest, local.log_weight, Y_rounded, logs[3], True)
        logs[2:] = -logs[2:, ::-1]
        blocks.append([*logs / size, np.full(K * M, np.mean(volumes + M * local.log_weight))])
        window = orbit.window
    kept = np.array(blocks[-num_blocks:])
    forward, forward_rounded, backward, backward_rounded, determinant = kept.mean(axis=0)
    # Below 1e-12 both are right, and the seam must not separate two exponents that rotate into each other.
    moved = np.maximum(np.abs([forward - forward_rounded, backward - backward_rounded]), 1e-12)
    seam = min(range(K * M, -1, -1), key=lambda k: moved[0, :k].sum() + moved[1, k:].sum())
    head = np.arange(K * M) < seam
    joined = np.where(head, kept[:, 0], kept[:, 2])
    bounds = np.minimum(np.where(head, *moved), np.maximum(np.abs(forward - backward), 1e-12))
    order = np.argsort(-joined.mean(axis=0), kind="stable")
    exponents, errors = mean_and_error(joined[:, order].T)
    return Spectrum(exponents, errors, bounds[order], forward[order], backward[order], float(determinant[0]), window)
