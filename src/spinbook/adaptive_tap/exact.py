"""Exact answers for few binary spins in equilibrium, by going through all their states; at most 14 spins.

The model is that of ``ising``: p(S) ~ exp(beta (sum_{i<j} J_ij S_i S_j + sum_i h_i S_i)) with every pair counted once.
Everything is differentiable by PyTorch, to any order.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from spinbook import validate
from spinbook.adaptive_tap.ising import Couplings, Numbers, Vectors, checked_model
from spinbook.annotations import Float

__all__ = ["ExactMoments", "log_partition", "magnetizations", "moments", "states", "susceptibilities"]

_MAX_SPINS = 14


class ExactMoments(NamedTuple):
    """``log_partition``: log Z. ``magnetizations``: <S_i>. ``susceptibilities``: <S_i S_j> - <S_i> <S_j>."""

    log_partition: Float[Tensor, "*batch"]
    magnetizations: Float[Tensor, "*batch N"]
    susceptibilities: Float[Tensor, "*batch N N"]


def states(num_spins: int) -> Float[Tensor, "states N"]:
    """S_i = 2 b_i - 1 with b_i bit i of the row number: all 2^N states.

    >>> states(2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    N = validate.count(num_spins, "num_spins", minimum=1, maximum=_MAX_SPINS)
    bits = torch.arange(2**N)[:, None] >> torch.arange(N) & 1
    return (2 * bits - 1).to(torch.get_default_dtype())


def moments(couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0) -> ExactMoments:
    """log Z, <S_i> and <S_i S_j> - <S_i> <S_j> by summing over all 2^N states.

    Leading axes are a batch, and broadcast. Cost and memory: 2^N N^2 and 2^N N for each model of the batch. Errors as
    for ``solve_ising``, and for more than 14 spins.

    >>> found = moments([[0.0, 0.5], [0.5, 0.0]], [0.3, -0.2])
    >>> [round(m, 4) for m in found.magnetizations.tolist()]
    [0.2056, -0.0645]
    """
    model = checked_model(couplings, fields, beta)
    N = model.x.shape[-1]
    if N > _MAX_SPINS:
        raise ValueError(f"couplings: expected at most {_MAX_SPINS} spins, got {N} (that is 2^{N} states)")
    S = states(N).to(model.x)
    exponents = ((S @ model.A) * S).sum(-1) / 2 + model.x @ S.T
    log_z = torch.logsumexp(exponents, dim=-1)
    p = torch.exp(exponents - log_z[:, None])
    m = p @ S
    # Centred before squaring, so that the variance of a nearly saturated spin keeps its digits.
    centred = S - m[:, None, :]
    chi = torch.einsum("bs,bsi,bsj->bij", p, centred, centred)
    batch = model.batch
    return ExactMoments(log_z.reshape(batch), m.reshape(*batch, N), chi.reshape(*batch, N, N))


def log_partition(couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch"]:
    """log Z = log sum_S exp(beta (sum_{i<j} J_ij S_i S_j + sum_i h_i S_i)); see ``moments``.

    >>> round(float(log_partition([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0])), 4)
    1.3863
    """
    return moments(couplings, fields, beta=beta).log_partition


def magnetizations(couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch N"]:
    """<S_i>; see ``moments``.

    >>> magnetizations([[0.0, 1.0], [1.0, 0.0]], [0.0, 0.0]).tolist()
    [0.0, 0.0]
    """
    return moments(couplings, fields, beta=beta).magnetizations


def susceptibilities(couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch N N"]:
    """<S_i S_j> - <S_i> <S_j> = d<S_i> / d(beta h_j); see ``moments``.

    >>> susceptibilities([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return moments(couplings, fields, beta=beta).susceptibilities
