"""One or two spins at any dimension D >= 1, by quadrature over angles.

Units and counting are those of ``VectorSpinModel``: fields divided by sqrt(D), and couplings counted twice, so that two
spins have the energy -2 J_12 sigma_1 . sigma_2 - h_1 . sigma_1 - h_2 . sigma_2. Everything is differentiable in fields,
couplings and beta.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spinbook import tensors, validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["free_energy", "log_partition", "magnetizations"]

Fields = Float[ArrayLike, "*batch N D"]
Couplings = Float[ArrayLike, "*batch N N"] | None
Numbers = Float[ArrayLike, "*batch"]

# Strengths whose square is less than this times D are summed as a series of three terms.
_WEAK = 1e-4


@lru_cache(maxsize=64)
def _angles(num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
    return math.pi / 2 * (nodes + 1), weights


def _nodes(dim: int, squared: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """cos(theta), and the logarithm of the weights of the normalised measure sin(theta)^(dim - 2) d theta.

    As many as the strongest field needs.
    """
    if dim == 1:
        ends = torch.tensor([1.0, -1.0], dtype=like.dtype, device=like.device)
        return ends, torch.full_like(ends, -math.log(2))
    # The integrand varies over angles of 1 / sqrt(dim + strength). Rounded up, so that few rules are ever built.
    strength = float(squared.detach().max()) ** 0.5 if squared.numel() else 0.0
    num_nodes = 32 * math.ceil(1 + 0.25 * math.sqrt(dim + strength))
    theta, weights = _angles(num_nodes)
    logarithms = np.log(weights) + (dim - 2) * np.log(np.sin(theta))
    logarithms -= np.logaddexp.reduce(logarithms)
    cosines, logs = (torch.tensor(x, dtype=like.dtype, device=like.device) for x in (np.cos(theta), logarithms))
    return cosines, logs


def _log_mean(squared: Tensor, dim: int) -> Tensor:
    """ln <exp(k u)> over u = one component of a random unit vector, from k^2: ln of Gamma(D/2) (2/k)^nu I_nu(k)."""
    d = dim
    weak = squared < _WEAK * d
    k = torch.sqrt(torch.where(weak, _WEAK * d, squared))
    cosines, logs = _nodes(d, squared, squared)
    integral = torch.logsumexp(k[..., None] * cosines + logs, dim=-1)
    x = torch.where(weak, squared, 0.0) / d
    series = x / 2 * (1 - x / (2 * (d + 2)) * (1 - 4 * x / (3 * (d + 4))))
    return torch.where(weak, series, integral)


def _inputs(h: Any, couplings: Any, beta: Any) -> tuple[Tensor, Tensor, Tensor]:
    dtype, device = validate.common_tensor_type(h, couplings, beta)
    H = tensors.real(h, "h", (None, None), dtype=dtype, device=device)
    n, d = H.shape[-2:]
    if n not in (1, 2) or d < 1:
        raise ValueError(f"h: expected shape (..., N, D) with N = 1 or 2 and D >= 1, got {tuple(H.shape)}")
    J = torch.zeros(n, n) if couplings is None else couplings
    J = tensors.real(J, "couplings", (n, n), dtype=dtype, device=device)
    tensors.symmetric_zero_diagonal(J, "couplings")
    return H, J, tensors.positive(beta, "beta", dtype=dtype, device=device)


def _log_partition(H: Tensor, J: Tensor, beta: Tensor) -> Tensor:
    d = H.shape[-1]
    gram = H @ H.mT
    squares = gram.diagonal(dim1=-2, dim2=-1)
    scale = beta * d
    if H.shape[-2] == 1:
        return _log_mean(scale**2 * squares[..., 0], d)
    coupling = 2 * J[..., 0, 1]
    # The first spin is turned through its angle to the larger of the two fields, which the second spin feels.
    swap = squares[..., 0] > squares[..., 1]
    own = torch.where(swap, squares[..., 1], squares[..., 0])
    other = torch.where(swap, squares[..., 0], squares[..., 1])
    length = torch.sqrt(other + torch.finfo(H.dtype).tiny)
    along = gram[..., 0, 1] / length
    across = torch.clamp(own - along**2, min=0)
    cosines, logs = _nodes(d, (scale * (torch.sqrt(own) + length + 2 * coupling.abs())) ** 2, H)
    ones = torch.ones_like(cosines)
    scale, coupling, length, along, across, other = torch.broadcast_tensors(
        *(x[..., None] for x in (scale, coupling, length, along, across, other))
    )
    felt = torch.clamp(other + coupling**2 + 2 * coupling * length * cosines, min=0)
    exponent = scale * along * cosines + logs + _log_mean(scale**2 * felt, d)
    if d > 1:
        exponent = exponent + _log_mean(scale**2 * across * (ones - cosines**2), d - 1)
    return torch.logsumexp(exponent, dim=-1)


def log_partition(h: Fields, couplings: Couplings = None, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch"]:
    """ln(Z / Z_0) = ln <exp(-beta E)> over directions; for one spin ln[Gamma(D/2) (2/k)^nu I_nu(k)], nu = D/2 - 1.

    With k = beta D |h| for fields ``h`` (..., N, D), N = 1 or 2, divided by sqrt(D). Two spins: the integral over the
    second is that of one spin in the field h_2 + 2 J_12 sigma_1, that over the first has one angle left. By Gauss rules
    in the angles, with an error near rounding; a Bessel function of order D/2 would underflow. ``ValueError`` for more
    than two spins. Cost: (D + k) numbers for two spins, as a table.

    >>> log_partition(torch.ones(1, 1, dtype=torch.float64)).exp()  # D = 1, an Ising spin: cosh
    tensor(1.5431, dtype=torch.float64)
    """
    return _log_partition(*_inputs(h, couplings, beta))


def free_energy(h: Fields, couplings: Couplings = None, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch"]:
    """f = -ln(Z / Z_0) / (beta D): what ``VectorSpinModel.free_energy`` approximates. Arguments of ``log_partition``.

    >>> free_energy(torch.zeros(2, 5, dtype=torch.float64), [[0.0, 0.1], [0.1, 0.0]]).item() < 0
    True
    """
    H, J, b = _inputs(h, couplings, beta)
    return -_log_partition(H, J, b) / (b * H.shape[-1])


def magnetizations(h: Fields, couplings: Couplings = None, *, beta: Numbers = 1.0) -> Float[Tensor, "*batch N D"]:
    """m_i = <sigma_i> / sqrt(D) = -df/dh_i, by autodiff. Arguments as for ``log_partition``.

    >>> magnetizations(torch.ones(1, 1, dtype=torch.float64))  # tanh
    tensor([[0.7616]], dtype=torch.float64)
    """
    H, J, b = _inputs(h, couplings, beta)
    batch = torch.broadcast_shapes(H.shape[:-2], J.shape[:-2], b.shape)
    H, b = H.expand(*batch, *H.shape[-2:]), b.expand(batch)
    return tensors.gradient(_log_partition, H, J, b) / (b[..., None, None] * H.shape[-1])
