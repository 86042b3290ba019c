"""Exact answers for few binary spins in equilibrium, by going through all their states; at most 14 spins.

The model is that of ``ising``: p(S) ~ exp(beta (sum_{i<j} J_ij S_i S_j + sum_i h_i S_i)) with every pair counted once.
Leading axes are a batch, and broadcast. Everything is differentiable by PyTorch, to any order. Cost and memory: 2^N N^2
and 2^N N for each model of the batch. Errors as for ``solve_ising``, and for more than 14 spins.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spinbook.adaptive_tap.ising import Couplings, Numbers, Vectors, checked_model
from spinbook.annotations import Float

__all__ = ["log_partition", "magnetizations", "susceptibilities"]

_MAX_SPINS = 14


def _summed(couplings: Couplings, fields: Vectors, beta: Numbers) -> tuple[Tensor, Tensor, Tensor]:
    """log Z, <S_i> and <S_i S_j> - <S_i> <S_j>."""
    A, x, batch = checked_model(couplings, fields, beta)
    N = x.shape[-1]
    if N > _MAX_SPINS:
        raise ValueError(f"couplings: expected at most {_MAX_SPINS} spins, got {N} (that is 2^{N} states)")
    S = (2 * (torch.arange(2**N)[:, None] >> torch.arange(N) & 1) - 1).to(x)
    exponents = ((S @ A) * S).sum(-1) / 2 + x @ S.T
    log_z = torch.logsumexp(exponents, dim=-1)
    p = torch.exp(exponents - log_z[:, None])
    m = p @ S
    # Centred before squaring, so that the variance of a nearly saturated spin keeps its digits.
    centred = S - m[:, None, :]
    chi = torch.einsum("bs,bsi,bsj->bij", p, centred, centred)
    return log_z.reshape(batch), m.reshape(*batch, N), chi.reshape(*batch, N, N)


def log_partition(couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch"]:
    """log Z = log sum_S exp(beta (sum_{i<j} J_ij S_i S_j + sum_i h_i S_i)).

    >>> round(float(log_partition([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0])), 4)
    1.3863
    """
    return _summed(couplings, fields, beta)[0]


def magnetizations(couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch N"]:
    """<S_i>.

    >>> [round(m, 4) for m in magnetizations([[0.0, 0.5], [0.5, 0.0]], [0.3, -0.2]).tolist()]
    [0.2056, -0.0645]
    """
    return _summed(couplings, fields, beta)[1]


def susceptibilities(couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch N N"]:
    """<S_i S_j> - <S_i> <S_j> = d<S_i> / d(beta h_j).

    >>> susceptibilities([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _summed(couplings, fields, beta)[2]
