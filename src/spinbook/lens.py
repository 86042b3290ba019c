"""Measures of a trained network: functions of its attention weights and of its vectors.

What comes in are plain arrays, of whatever library: attention weights (..., N, N) whose row i says to whom token i
listens, and hidden states (..., N, D). All is computed in double precision.

Rows that sum to one make a head the transition matrix of a Markov chain in which attention walks from a token to one
that it listens to. Its stationary distribution pi is where the walk is found after long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.csgraph
import scipy.special
import xarray as xr

from spinbook import sphere, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.lens_sample import repeated_block, sample
from spinbook.precision import enable_x64
from spinbook.vector import closure as vector_closure
from spinbook.vector.mean_field import collective_mode

__all__ = [
    "SinkLaw",
    "attended",
    "closure",
    "concentration",
    "irreversibility",
    "measure",
    "repeated_block",
    "sample",
    "second_eigenvalue",
    "sink_law",
    "stationary",
    "token_cosine",
]

_ROW_SUM = 1e-2
"""Rows may miss one by as much: half precision, over some hundred tokens."""


def _plain(values: Any, name: str) -> np.ndarray:
    """Double precision. A tensor of PyTorch that has a gradient is detached from it."""
    return validate.known_numbers(values.detach().cpu().double() if hasattr(values, "detach") else values, name)


def _attention(attention: Any, name: str = "attention") -> np.ndarray:
    """Finite weights that are nowhere negative, (..., N, N) with N > 1, rows made to sum to one exactly."""
    J = _plain(attention, name)
    if J.ndim < 2 or J.shape[-1] != J.shape[-2] or J.shape[-1] < 2:
        raise ValueError(f"{name}: expected square matrices (..., N, N) of two tokens or more, got shape {J.shape}")
    if J.size and (J.min() < 0 or np.abs(J.sum(-1) - 1).max() > _ROW_SUM):
        raise ValueError(
            f"{name}: expected weights >= 0 whose rows sum to one, got a least weight of {J.min():.3g} and sums from "
            f"{J.sum(-1).min():.3g} to {J.sum(-1).max():.3g}; leave out padding, and dropout"
        )
    return J / J.sum(-1, keepdims=True)


def _vectors(vectors: Any, name: str) -> np.ndarray:
    x = _plain(vectors, name)
    if x.ndim < 2 or x.shape[-2] < 2 or x.shape[-1] < 1:
        raise ValueError(f"{name}: expected vectors (..., N, D) of two tokens or more, got shape {x.shape}")
    return x


def _lengths(vectors: np.ndarray) -> np.ndarray:
    """|x| with the last axis kept; squares of small numbers would vanish."""
    largest = np.abs(vectors).max(-1, keepdims=True)
    return np.asarray(largest * np.linalg.norm(vectors / np.where(largest > 0, largest, 1), axis=-1, keepdims=True))


def stationary(attention: Float[ArrayLike, "*batch N N"]) -> Float[np.ndarray, "*batch N"]:
    """pi with pi_j = sum_i pi_i J_ij and sum_i pi_i = 1, the left eigenvector of the weights with eigenvalue one.

    1 / N everywhere for heads that listen to all alike, and near one on a sink; under a causal mask all of it is on the
    first token. Nothing is subtracted on the way, so that every pi_j is right to rounding, however little groups of
    tokens listen to each other. N^3 operations. Raises ``ValueError`` for what are no attention weights, and where
    there are two groups of tokens or more that listen to themselves only, so that pi is not unique.
    Source: Grassmann, Taksar & Heyman (1985).

    >>> stationary([[0.5, 0.5], [0.25, 0.75]]).round(3).tolist()
    [0.333, 0.667]
    """
    J = _attention(attention)
    N = J.shape[-1]
    flat = J.reshape(-1, N, N)
    kept = np.stack([_closed(weights > 0) for weights in flat]) if len(flat) else np.zeros((0, N), bool)
    pi = np.zeros((len(flat), N))
    for group in np.unique(kept, axis=0):
        which, tokens = np.flatnonzero((kept == group).all(-1)), np.flatnonzero(group)
        pi[np.ix_(which, tokens)] = _without_subtraction(flat[np.ix_(which, tokens, tokens)])
    return pi.reshape(J.shape[:-1])


def _closed(links: np.ndarray) -> np.ndarray:
    """The tokens among which the walk ends, those of the only group that no link leaves."""
    if links.all():
        return np.ones(len(links), bool)
    count, group = scipy.sparse.csgraph.connected_components(links, connection="strong")
    sources, targets = np.nonzero(links)
    left = np.unique(group[sources[group[sources] != group[targets]]])
    closed = np.setdiff1d(np.arange(count), left)
    if len(closed) > 1:
        raise ValueError(
            f"attention: expected tokens that are connected, got {len(closed)} groups that never listen to each other"
        )
    return np.asarray(group == closed[0])


def _without_subtraction(J: np.ndarray) -> np.ndarray:
    """pi of connected tokens, (B, N): each token in turn is left out, its visits going to those before it."""
    P = J.copy()
    N = P.shape[-1]
    for k in range(N - 1, 0, -1):
        leaving = P[:, k, :k].sum(-1)
        P[:, :k, :k] += P[:, :k, k, None] * (P[:, k, None, :k] / leaving[:, None, None])
        P[:, :k, k] /= leaving[:, None]
    # In logarithms, because rare tokens may lie between frequent ones.
    log_pi = np.zeros(P.shape[:-1])
    with np.errstate(divide="ignore"):
        for k in range(1, N):
            log_pi[:, k] = scipy.special.logsumexp(log_pi[:, :k] + np.log(P[:, :k, k]), axis=-1)
    return np.asarray(scipy.special.softmax(log_pi, axis=-1))


def concentration(distribution: Float[ArrayLike, "*batch N"]) -> Float[np.ndarray, " *batch"]:
    """P = N sum_i pi_i^2: one for a uniform distribution, N where all of it is on one token.

    N / P is the number of tokens that share it. Raises ``ValueError`` for numbers below zero.

    >>> float(concentration([0.25] * 4)), float(concentration([1, 0, 0, 0]))
    (1.0, 4.0)
    """
    pi = _plain(distribution, "distribution")
    validate.require(lambda p: p >= 0, pi, "distribution", "probabilities")
    pi = pi / pi.sum(-1, keepdims=True)
    return np.asarray(pi.shape[-1] * np.sum(pi**2, axis=-1))


def second_eigenvalue(attention: Float[ArrayLike, "*batch N N"]) -> Float[np.ndarray, " *batch"]:
    """The second largest absolute eigenvalue of the weights: by how much a step shrinks what differs between tokens.

    The largest is one. 1 / (1 - lambda_2) steps are the memory of the walk; near one there is no gap, and tokens fall
    into groups. About 10 N^3 operations. Errors as ``stationary``.

    >>> float(second_eigenvalue([[0.5, 0.5], [0.25, 0.75]]).round(6))
    0.25
    """
    values = np.sort(np.abs(np.linalg.eigvals(_attention(attention))), axis=-1)
    return np.asarray(values[..., -2])


def attended(attention: Float[ArrayLike, "*batch N N"]) -> Float[np.ndarray, " *batch"]:
    """The mean over tokens i of 1 / sum_j J_ij^2, the effective number of tokens that a token listens to.

    One for a head that retrieves, N for one that averages. Errors as ``stationary``.

    >>> float(attended([[0.5, 0.5], [0.0, 1.0]]))
    1.5
    """
    return np.asarray(np.mean(1 / np.sum(_attention(attention) ** 2, axis=-1), axis=-1))


def _swap(J: np.ndarray) -> np.ndarray:
    """max over pairs i != j of min(J_ij, J_ji): above one half where a head can exchange the contents of two tokens."""
    both = np.minimum(J, np.swapaxes(J, -1, -2))
    both[..., np.arange(J.shape[-1]), np.arange(J.shape[-1])] = 0
    return np.asarray(both.max(axis=(-1, -2)))


def irreversibility(attention: Float[ArrayLike, "*batch N N"]) -> Float[np.ndarray, " *batch"]:
    """sigma = 1/2 sum_ij (F_ij - F_ji) ln(F_ij / F_ji) with F_ij = pi_i J_ij: entropy production, in nats a step.

    How fast a record of the walk tells its direction in time. Zero for symmetric weights, and for a star in which all
    exchange with one token only. Infinite where the walk goes from i to j and never back, as weights that underflow in
    half precision seem to say. Flows that rounding cannot tell from zero count as zero. Errors as ``stationary``.
    Source: Schnakenberg (1976).

    >>> round(float(irreversibility([[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]])), 4)
    1.7578
    """
    J = _attention(attention)
    flow = stationary(J)[..., None] * J
    back = np.swapaxes(flow, -1, -2)
    kept = np.maximum(flow, back) > J.shape[-1] * np.finfo(float).eps
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(kept, (flow - back) * np.log(flow / back), 0)
    return np.asarray(np.sum(terms, axis=(-1, -2)) / 2)


def _positional(J: np.ndarray) -> np.ndarray:
    """max over distances d of mean_i J_(i, i + d), for |d| up to N / 2: near one where a head looks at fixed distance.

    About 1 / N for a head that knows no places.
    """
    reach = J.shape[-1] // 2
    means = [np.diagonal(J, d, axis1=-2, axis2=-1).mean(-1) for d in range(-reach, reach + 1)]
    return np.asarray(np.max(means, axis=0))


def token_cosine(states: Float[ArrayLike, "*batch N D"]) -> Float[np.ndarray, " *batch"]:
    """The mean cosine of two different tokens, (|sum_i u_i|^2 - N) / (N (N - 1)) with directions u_i.

    One where tokens have collapsed to one direction, NaN where a vector has none.

    >>> float(token_cosine([[1.0, 0.0], [0.0, 2.0]]))
    0.0
    """
    x = _vectors(states, "states")
    with np.errstate(invalid="ignore"):
        u = x / _lengths(x)
    N = x.shape[-2]
    return np.asarray((np.sum(u.sum(-2) ** 2, axis=-1) - N) / (N * (N - 1)))


class SinkLaw(NamedTuple):
    """Relative errors of naive delayed correlations, by four laws, and P: see ``sink_law``."""

    uniform: float
    with_sinks: float
    linear: float
    concentration: float
    one_mode: float


def sink_law(attention: Float[ArrayLike, "N N"], magnetizations: Float[ArrayLike, "N D"], *, beta: Number) -> SinkLaw:
    """r P / sqrt(q + 2 r P + (r P)^2) ``with_sinks``; ``uniform`` with P = 1; ``linear``, |A C - A C_0| / |A C|.

    ``vector.mean_field.collective_mode`` gives r and q. A fluctuation that all spins share lives on the stationary
    distribution of the couplings, so that it is P times as large as where all columns weigh the same. This assumes
    that the second eigenvalue is far below one, and that the sink hears of itself no more than others hear of it.
    ``linear`` assumes neither: A_ij = beta v_i J_ij with v_i the variance of a spin per component, C = C_0 + A C A^T
    with C_0 = D diag(v), solved for all tokens, N^3. ``one_mode`` takes the leading eigenvalue a of A, its left and
    right vectors l and r, l.r = 1, and one step of A: C = A C_1 A^T, C_1 = c r r^T, c = a^2 sum_i l_i^2 D v_i /
    (1 - a^2 (1 - sum_i l_i^2 r_i^2)), but for the diagonals of C and C_1, D v, since spins keep their length. It needs
    a gap, and no even columns. NaN where the fluctuation does not die out, and where there is none. Errors as
    ``stationary`` and ``collective_mode``.

    >>> law = sink_law(np.full((4, 4), 0.25), np.zeros((4, 6)), beta=1.0)
    >>> [round(number, 6) for number in (law.uniform, law.with_sinks, law.linear, law.concentration)]
    [0.111111, 0.111111, 0.111111, 1.0]
    """
    J = _attention(attention)
    _, r, q = collective_mode(J, magnetizations, beta=beta)
    P = float(concentration(stationary(J)))
    uniform, sinks = (float(s / np.sqrt(q + 2 * s + s**2)) for s in (r, r * P))
    m = _plain(magnetizations, "magnetizations")
    v = (sphere.squared_radius(m.shape[1]) - np.sum(m**2, axis=1)) / m.shape[1]
    A = float(np.asarray(beta)) * v[:, None] * J
    eigenvalues, left, right = scipy.linalg.eig(A, left=True)
    # Of weights that are not negative it is real, also where others are as long.
    leading = eigenvalues.real.argmax()
    a, sent, heard = (part.real for part in (eigenvalues[leading], left[:, leading], right[:, leading]))
    if a >= 1:
        return SinkLaw(uniform, sinks, math.nan, P, math.nan)

    def error(C: np.ndarray) -> float:
        """What is wrong with A C if spins are independent."""
        size = float(np.linalg.norm(A @ C))
        return float(np.linalg.norm(A @ C - A * v)) / size if size > 0 else math.nan

    sent = sent / (sent @ heard)
    c = a**2 * np.sum(sent**2 * v) / (1 - a**2 * (1 - np.sum((sent * heard) ** 2)))
    mode = np.where(np.eye(len(J)), v, c * np.outer(heard, heard))
    return SinkLaw(
        uniform,
        sinks,
        error(scipy.linalg.solve_discrete_lyapunov(A, np.diag(v))),
        P,
        error(np.where(np.eye(len(J)), v, A @ mode @ A.T)),
    )


def closure(
    attention: Float[ArrayLike, "N N"], values: Float[ArrayLike, "N D"], *, beta: Number
) -> vector_closure.Closure:
    """m_i = f_i h_i, C = A C A^T off the diagonal, C_ii = R^2 - |m_i|^2: a head as vector spins in their steady state.

    The weights of the head are couplings J, and fields x lie along its values, scaled by one number so that their mean
    squared length is that of a spin, R^2. Spin i is drawn from the density exp(beta h_i . s_i) on the sphere of radius
    R, with h_i = x_i + sum_j J_ij s_j and the spins of the step before. The result has the mean of every spin, its
    correlations with all others at one time and one step later, and the evidence for them:
    ``vector.closure.steady_state`` says how. No spectrum is assumed and nothing is fitted. It is right up to terms of
    order 1/D where no direction holds much of what a field fluctuates; on trained heads of 32 components within a few
    per cent. Tens of milliseconds for 64 tokens, after a second for compiling. Raises ``ValueError`` as ``stationary``
    does, for values of another shape or all zero, and for D < 3 and beta <= 0.

    >>> found = closure([[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], beta=1.0)
    >>> found.delayed_correlations.shape, bool(found.converged)
    ((2, 2), True)
    """
    J, v = _attention(attention), _vectors(values, "values")
    if not v.any():
        raise ValueError("values: expected vectors that give the fields a direction, got zeros only")
    fields = v * np.sqrt(sphere.squared_radius(v.shape[-1]) / np.mean(np.sum(v**2, axis=-1)))
    with enable_x64(True):
        found = vector_closure.steady_state(J, fields, beta=beta)
    # In NumPy, since arithmetic of JAX outside of the context would warn that it rounds to single precision.
    return vector_closure.Closure(*map(np.asarray, found))  # type: ignore[arg-type]


_HEAD_MEASURES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "attended": ("tokens listened to", attended),
    "concentration": ("concentration P", lambda J: concentration(stationary(J))),
    "second_eigenvalue": ("second eigenvalue", second_eigenvalue),
    "irreversibility": ("entropy production (nats a step)", irreversibility),
    "positional": ("attention at one distance", _positional),
    "swap": ("exchange of two tokens", _swap),
    "first_token": ("attention to the first token", lambda J: J[..., 1:, 0].mean(-1)),
}


def measure(
    attentions: Sequence[Float[ArrayLike, "B H N N"]], hidden_states: Sequence[Float[ArrayLike, "B N D"]] | None = None
) -> xr.Dataset:
    """Every measure of heads and depths that attention weights and hidden states give, by window, layer and head.

    ``attentions``: for each layer weights (B, H, N, N) of B windows; ``hidden_states``: the states (B, N, D) before the
    first layer and after each. Both are what ``transformers`` returns with ``output_attentions=True,
    output_hidden_states=True`` in evaluation mode and without padding, from a model loaded with
    ``attn_implementation="eager"``; tensors are taken as they are. The Dataset has ``attended``, ``concentration``,
    ``second_eigenvalue``, ``irreversibility``, ``positional`` (the largest mean weight at one distance, up to N / 2),
    ``swap`` (the largest min(J_ij, J_ji) of two tokens) and ``first_token`` over (window, layer, head), and
    ``token_cosine`` over (window, depth); layers count from one, depth from zero. Each has its words in
    ``attrs["long_name"]``. A causal mask alone makes the concentration N, and irreversibility and swap zero. Raises
    ``ValueError`` for what are no attention weights (``stationary``), for layers of different shapes and for states
    that do not go with them.

    >>> J = np.full((1, 2, 4, 4), 0.25)
    >>> found = measure([J, J], [np.eye(4)[None]] * 3)
    >>> dict(found.sizes), round(float(found.concentration.mean()), 6)
    ({'window': 1, 'layer': 2, 'head': 2, 'depth': 3}, 1.0)
    """
    if attentions is None or any(J is None for J in attentions):
        raise ValueError(
            "attentions: expected an array for each layer, got None; transformers returns them with "
            "output_attentions=True if the model was loaded with attn_implementation='eager'"
        )
    layers = [_attention(J, "attentions") for J in attentions]
    if not layers or layers[0].ndim != 4 or any(J.shape != layers[0].shape for J in layers):
        shapes = sorted({J.shape for J in layers})
        raise ValueError(f"attentions: expected a layer or more, all of one shape (B, H, N, N), got shapes {shapes}")
    J = np.stack(layers, axis=1)
    B, L, H, N, _ = J.shape
    if unseen := np.argwhere(J.max(axis=(1, 2, 3), initial=0) == 0).tolist():
        raise ValueError(
            f"attentions: expected tokens that are seen by some token in some head, got none who sees token "
            f"{unseen[0][1]} of window {unseen[0][0]}; leave out padding"
        )
    found = xr.Dataset(coords={"window": np.arange(B), "layer": np.arange(1, L + 1), "head": np.arange(1, H + 1)})
    for name, (words, function) in _HEAD_MEASURES.items():
        found[name] = ("window", "layer", "head"), function(J), {"long_name": words}
    if hidden_states is not None:
        states = [_vectors(x, "hidden_states") for x in hidden_states]
        if len(states) != L + 1 or any(x.ndim != 3 or x.shape[:2] != (B, N) for x in states):
            shapes = sorted({x.shape for x in states})
            raise ValueError(
                f"hidden_states: expected {L + 1} arrays of shape ({B}, {N}, D), got {len(states)} of shapes {shapes}"
            )
        cosine = np.stack([token_cosine(x) for x in states], axis=1)
        found["token_cosine"] = ("window", "depth"), cosine, {"long_name": "mean cosine of two tokens"}
        found = found.assign_coords(depth=np.arange(L + 1))
    return found
