"""The average over infinitely many units as a finite sum over sign patterns."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from spinbook.self_attention.network import Network, positional_bits

__all__ = ["SignClasses", "sign_classes"]


class SignClasses(NamedTuple):
    """Double precision, whatever JAX is set to: the signs are exact, and lower precision would save nothing.

    ``signs`` (C, M): the patterns s of the output signs that occur, up to a global sign. ``weights`` (4, M, C):
    (1 - epsilon) c^alpha_{s,a}. ``positions`` (R, 4, M): what the positional bits add at each of R = 2^P positions.
    """

    signs: Float[np.ndarray, "C M"]
    weights: Float[np.ndarray, "4 M C"]
    positions: Float[np.ndarray, "R 4 M"]


def _occurring(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """Distinct columns of W^o up to a sign, first sign +, and c^alpha_{s,a} = sum of the weights of that class."""
    W = network.semantic_signs.astype(np.float64)
    columns = (W * W[0, 0]).transpose(2, 0, 1)
    signs, which = np.unique(columns[:, 0], axis=0, return_inverse=True)
    member = which.reshape(-1) == np.arange(len(signs))[:, None]
    return signs, np.einsum("ci,i,ixa->xac", member, network.segment_weights, columns)


def _truncated(network: Network, order: int) -> tuple[np.ndarray, np.ndarray]:
    """All 2^(M-1) classes, and c^alpha_{s,a} = 2^(1-M) sum_B (prod_{b in B} s_b) <prod_{b in B} W^o_b W^alpha_a>."""
    W = network.semantic_signs.astype(np.float64)
    M = network.num_features
    signs = np.hstack([np.ones((2 ** (M - 1), 1)), positional_bits(M - 1)]) if M > 1 else np.ones((1, 1))
    c = np.zeros((4, M, len(signs)))
    for size in range(1, min(order, M) + 1, 2):
        for B in map(list, combinations(range(M), size)):
            averages = np.einsum("i,i,xai->xa", network.segment_weights, W[0, B].prod(axis=0), W)
            c += averages[..., None] * signs[:, B].prod(axis=1)
    return signs, c / len(signs)


def sign_classes(network: Network) -> SignClasses:
    """<W^alpha_a f(W^o . A)> = sum_s c^alpha_{s,a} f(s . A) for every odd f, exactly.

    Units whose output signs agree up to a global sign share one term, so there are at most 2^(M-1) terms, and at most
    as many as segments. With ``correlation_order`` set, all 2^(M-1) are there, and averages of longer products are
    dropped: an approximation that is exact for patterns drawn independently for every unit. Source: Poc-Lopez and
    Aguilera (2024), equation (16) and appendix B.

    >>> from spinbook.self_attention.network import paper_network
    >>> signs, weights, positions = sign_classes(paper_network())
    >>> signs.shape, weights.shape, positions.shape
    ((3, 3), (4, 3, 3), (4, 4, 3))
    """
    order = network.correlation_order
    signs, c = _occurring(network) if order is None else _truncated(network, order)
    P = network.positional_signs.shape[2]
    positions = np.einsum("xap,rp->rxa", network.positional_signs, positional_bits(P)) * network.epsilon / max(P, 1)
    return SignClasses(signs, (1 - network.epsilon) * c, positions)
