"""Machines of several layers of units in {0, 1}, every layer summed exactly; at most 20 units in a layer.

``weights[k]`` joins layer k to layer k + 1, layer 0 being the visible one; ``biases[k]`` belongs to layer k + 1. Bonds
run between neighbouring layers only. With one matrix of weights this is a restricted Boltzmann machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.rbm import exact

__all__ = ["effective_energy"]


def effective_energy(
    visible: Float[ArrayLike, "*batch V"],
    weights: Sequence[Float[ArrayLike, "_ _"]],
    biases: Sequence[Float[ArrayLike, " _"]],
) -> Float[Array, "*batch"]:
    """E(v) = -log sum_{h1 ... hL} exp(v W1 h1 + b1 h1 + h1 W2 h2 + b2 h2 + ...).

    ``visible`` is (..., V); ``weights`` holds matrices (V, H1), (H1, H2), ..., ``biases`` vectors (H1,), (H2,), ....
    The layers are summed from the top down, so that the cost is 2^(H_k + H_{k+1}) for each pair of neighbours and not
    2 to the number of all units. Raises ``ValueError`` for shapes that do not fit and for NaN.
    Source: Bal (2020), section 2, on stacking layers.

    >>> round(float(effective_energy([1.0, 1.0], [[[0.0], [0.0]]], [[0.0]])), 6)
    -0.693147
    """
    if not weights or len(weights) != len(biases):
        raise ValueError(f"biases: expected as many as weights, one or more, got {len(biases)} for {len(weights)}")
    dtype = validate.common_dtype(visible, *weights, *biases)
    W = [validate.matrix(matrix, "weights", dtype=dtype) for matrix in weights]
    b = [
        validate.vectors(bias, "biases", dim=matrix.shape[1], dtype=dtype)
        for bias, matrix in zip(biases, W, strict=True)
    ]
    if any(below.shape[1] != above.shape[0] for below, above in itertools.pairwise(W)):
        raise ValueError(f"weights: expected matrices that fit one another, got {[matrix.shape for matrix in W]}")
    v = validate.vectors(visible, "visible", dim=W[0].shape[0], dtype=dtype)
    # log of the sum over everything above a layer, for each of its states; nothing is above the top.
    above = jnp.zeros(2 ** W[-1].shape[1], dtype)
    for matrix, bias in zip(reversed(W[1:]), reversed(b[1:]), strict=True):
        lower, upper = (exact.states(n).astype(dtype) for n in matrix.shape)
        above = logsumexp(lower @ matrix @ upper.T + upper @ bias + above, axis=-1)
    h = exact.states(W[0].shape[1]).astype(dtype)
    return -logsumexp((v @ W[0]) @ h.T + h @ b[0] + above, axis=-1)
