"""The average over infinitely many units as a finite sum over sign patterns."""

from __future__ import annotations

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


def sign_classes(network: Network) -> SignClasses:
    """<W^alpha_a f(W^o . A)> = sum_s c^alpha_{s,a} f(s . A) for every odd f, exactly.

    Units whose output signs agree up to a global sign share one term, so there are at most 2^(M-1) terms, and at most
    as many as segments. Source: Poc-Lopez and Aguilera (2024), equation (16) and appendix B.

    >>> from spinbook.self_attention.network import paper_network
    >>> signs, weights, positions = sign_classes(paper_network())
    >>> signs.shape, weights.shape, positions.shape
    ((3, 3), (4, 3, 3), (4, 4, 3))
    """
    W = network.semantic_signs.astype(np.float64)
    # Distinct columns of W^o up to a sign, the first sign +, and the weights of their classes.
    columns = (W * W[0, 0]).transpose(2, 0, 1)
    signs, which = np.unique(columns[:, 0], axis=0, return_inverse=True)
    member = which.reshape(-1) == np.arange(len(signs))[:, None]
    c = np.einsum("ci,i,ixa->xac", member, network.segment_weights, columns)
    P = network.positional_signs.shape[2]
    positions = np.einsum("xap,rp->rxa", network.positional_signs, positional_bits(P)) * network.epsilon / max(P, 1)
    return SignClasses(signs, (1 - network.epsilon) * c, positions)
