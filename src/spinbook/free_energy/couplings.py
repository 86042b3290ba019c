"""Coupling matrices: drawn, projected, or computed from the inputs by queries and keys.

All are symmetric with a zero diagonal. The Gaussian integral over the spins depends on the symmetric part of J only,
while det V and V^-1 depend on all of it; so a matrix is made symmetric before it becomes a coupling. A diagonal J_ii
adds the constant -D J_ii to the energy of spins of fixed length. If J depends on h this is a force on h, so the
diagonal is removed.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spinbook import tensors, validate

__all__ = ["QueryKeyCouplings", "sample", "symmetric_traceless"]


def symmetric_traceless(matrix: Float[Tensor, "*batch N N"]) -> Float[Tensor, "*batch N N"]:
    """J_ij = (M_ij + M_ji) / 2 for i != j, J_ii = 0: the nearest symmetric matrix with zero diagonal.

    Takes its arguments without checks; its callers have checked them.

    >>> symmetric_traceless(torch.tensor([[5.0, 1.0], [3.0, 7.0]])).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    hollow = 1 - torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return (matrix + matrix.mT) / 2 * hollow


def sample(
    num_spins: int, dim: int, *, generator: torch.Generator | None = None, dtype: torch.dtype | None = None
) -> Float[Tensor, "N N"]:
    """J = symmetric_traceless(M), M_ij normal with standard deviation 1/sqrt(N D): the source's initial couplings.

    The projection averages two independent entries, so that J_ij itself has standard deviation 1/sqrt(2 N D). The
    source prints N(0, 1/sqrt(N D)) and means the standard deviation of M.

    >>> sample(4, 9, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([4, 4])
    """
    n = validate.count(num_spins, "num_spins", minimum=1)
    d = validate.count(dim, "dim", minimum=1)
    return symmetric_traceless(torch.randn(n, n, generator=generator, dtype=dtype) / (n * d) ** 0.5)


class QueryKeyCouplings(nn.Module):
    """J(H) = symmetric_traceless(tanh(sqrt(D) Q K^T)) / sqrt(N D), with queries Q = H W_Q^T and keys K = H W_K^T.

    H is (..., N, D) as ``VectorSpinModel`` takes it, already divided by sqrt(D). No |J_ij| exceeds 1/sqrt(N D), and
    permuting the spins permutes J: the couplings depend on the contents of the spins and not on their places. ``query``
    and ``key`` are bias-free linear maps of the D components. Source: the last list before "Comparison with vanilla
    transformers", where the matrix is printed without being made symmetric and traceless.

    >>> QueryKeyCouplings(4, 9)(torch.ones(2, 4, 9)).shape
    torch.Size([2, 4, 4])
    """

    def __init__(self, num_spins: int, dim: int) -> None:
        super().__init__()
        self.num_spins = validate.count(num_spins, "num_spins", minimum=1)
        self.dim = validate.count(dim, "dim", minimum=1)
        self.to_queries = nn.Linear(self.dim, self.dim, bias=False)
        self.to_keys = nn.Linear(self.dim, self.dim, bias=False)

    def as_written(self, h: Float[Tensor, "*batch N D"]) -> Float[Tensor, "*batch N N"]:
        """tanh(sqrt(D) Q K^T) / sqrt(N D), as the source prints it: neither symmetric nor traceless.

        >>> QueryKeyCouplings(4, 9).as_written(torch.ones(2, 4, 9)).shape
        torch.Size([2, 4, 4])
        """
        H = tensors.real(h, "h", (self.num_spins, self.dim), dtype=self.to_queries.weight.dtype)
        scores = self.to_queries(H) @ self.to_keys(H).mT
        return torch.tanh(self.dim**0.5 * scores) / (self.num_spins * self.dim) ** 0.5

    def forward(self, h: Float[Tensor, "*batch N D"]) -> Float[Tensor, "*batch N N"]:
        """J(H), symmetric with zero diagonal."""
        return symmetric_traceless(self.as_written(h))

    def channel_mixing(
        self, h: Float[Tensor, "*batch N D"], correlations: Float[Tensor, "*batch N N"]
    ) -> Float[Tensor, "*batch N D"]:
        """sum_jk C_jk dJ_jk/dh_i = [A H W^T + A^T H W]_i, W = W_Q^T W_K, A_ij = C_ij (1 - N D T_ij^2) / sqrt(N).

        C are the correlations <sigma_i . sigma_j> / D, A_ii = 0, and T is ``as_written``. A mixes tokens, where the
        tanh is not saturated, and W mixes components: what input-dependent couplings add to the derivative of the free
        energy. Closed form of what ``VectorSpinModel.channel_mixing`` gets by autodiff.

        >>> QueryKeyCouplings(4, 9).channel_mixing(torch.ones(4, 9), torch.ones(4, 4)).shape
        torch.Size([4, 9])
        """
        n = self.num_spins
        H = tensors.real(h, "h", (n, self.dim), dtype=self.to_queries.weight.dtype)
        C = tensors.real(correlations, "correlations", (n, n), dtype=H.dtype)
        unsaturated = 1 - n * self.dim * self.as_written(H) ** 2
        A = symmetric_traceless(C) * unsaturated / n**0.5
        W = self.to_queries.weight.mT @ self.to_keys.weight
        return A @ H @ W.mT + A.mT @ H @ W
