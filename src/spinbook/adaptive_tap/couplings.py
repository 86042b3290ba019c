"""Couplings J_ij^{ab} between the components of vector spins: symmetries, draws, counts.

A coupling tensor is (num_spins, num_spins, dim, dim); ``couplings[i, j]`` is the matrix that acts from spin j on spin
i. Symmetries are functions from such a tensor to the nearest one that has the symmetry; they can be composed, and
passed to the modules of ``attention``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spinbook import tensors, validate

__all__ = [
    "Bounded",
    "as_matrix",
    "count_free",
    "largest_eigenvalue",
    "sample",
    "symmetrize",
    "symmetrize_components",
    "symmetrize_separately",
    "unconstrained",
    "without_self_couplings",
]

# Couplings up to this largest eigenvalue are what they are; beyond, they approach a bound halfway from here to 1.
INNER = 0.9


def as_matrix(couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, "N*D N*D"]:
    """J_{(ia),(jb)} = J_ij^{ab}: the couplings as one matrix.

    >>> as_matrix(torch.zeros(3, 3, 2, 2)).shape
    torch.Size([6, 6])
    """
    N, _, D, _ = couplings.shape
    return couplings.permute(0, 2, 1, 3).reshape(N * D, N * D)


def unconstrained(couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, "N N D D"]:
    """J_ij^{ab} as it is.

    >>> unconstrained(torch.ones(2, 2, 1, 1)).sum().item()
    4.0
    """
    return couplings


def symmetrize(couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, "N N D D"]:
    """(J_ij^{ab} + J_ji^{ba}) / 2: the symmetry of couplings in an energy.

    >>> J = symmetrize(torch.rand(3, 3, 2, 2))
    >>> bool((as_matrix(J) == as_matrix(J).T).all())  # exact
    True
    """
    return (couplings + couplings.permute(1, 0, 3, 2)) / 2


def symmetrize_components(couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, "N N D D"]:
    """(J_ij^{ab} + J_ij^{ba}) / 2: every matrix is symmetric ("internal" in the source's code).

    >>> J = symmetrize_components(torch.rand(3, 3, 2, 2))
    >>> bool((J[0, 1] == J[0, 1].T).all())  # exact
    True
    """
    return (couplings + couplings.permute(0, 1, 3, 2)) / 2


def symmetrize_separately(couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, "N N D D"]:
    """The same symmetric matrix both ways: what the source does, N (N - 1) / 2 D (D + 1) / 2 couplings.

    >>> J = symmetrize_separately(torch.rand(3, 3, 2, 2))
    >>> bool((J[0, 1] == J[1, 0]).all() and (J[0, 1] == J[0, 1].T).all())  # exact
    True
    """
    J = symmetrize_components(couplings)
    return (J + J.permute(1, 0, 2, 3)) / 2


class Bounded(nn.Module):
    """c J, J hollow and symmetric, with a factor c(lambda) <= 1 so that a Gaussian model exists throughout training.

    lambda is the largest eigenvalue of J, and a model with the prior N(0, 1) exists while it is below 1. Up to lambda =
    ``inner`` nothing changes: c = 1. Beyond, c lambda = inner + w u / sqrt(1 + u^2) with u = (lambda - inner) / w and
    w = (1 - inner) / 2: twice differentiable, increasing, and below (1 + inner) / 2 for every J. So no step of an
    optimiser leaves the domain, and all directions of J keep a gradient. Couplings are symmetrised by ``symmetrize``;
    they may have more symmetry before.
    Cost: a Cholesky factorisation of N D rows, and the eigenvalues where lambda > inner.

    >>> J = Bounded()(torch.ones(3, 3, 2, 2))  # lambda = 4
    >>> round(float(largest_eigenvalue(J)), 4)
    0.95
    >>> torch.equal(Bounded()(J / 2), J / 2)  # exact
    True
    """

    inner: Tensor

    def __init__(self, inner: float = INNER) -> None:
        super().__init__()
        # With the couplings in ``state_dict``, whose meaning it is part of.
        self.register_buffer("inner", torch.tensor(inner, dtype=torch.float64))

    @tensors.solver
    def forward(self, couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, "N N D D"]:
        """c J."""
        J = without_self_couplings(symmetrize(couplings))
        with torch.no_grad():
            room = -as_matrix(J)
            room.diagonal().add_(self.inner)
            _, beyond = torch.linalg.cholesky_ex(room)
        # Eigenvalues cost several factorisations and are not needed inside; infinite couplings count as outside.
        if beyond == 0:
            return J
        size = largest_eigenvalue(validate.tensor(J, "couplings"))
        if size <= self.inner:
            return J
        width = (1 - self.inner) / 2
        u = (size - self.inner) / width
        return (self.inner + width * u / torch.sqrt(1 + u * u)) / size * J


def largest_eigenvalue(couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, ""]:
    """lambda of symmetric couplings as one matrix: below 1 a Gaussian model exists.

    >>> round(float(largest_eigenvalue(without_self_couplings(torch.ones(3, 3, 1, 1)))), 4)
    2.0
    """
    return torch.linalg.eigvalsh(as_matrix(couplings))[-1]


def without_self_couplings(couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, "N N D D"]:
    """J_ii^{ab} = 0, and the others as they are.

    >>> without_self_couplings(torch.ones(3, 3, 2, 2)).sum().item()
    24.0
    """
    others = 1 - torch.eye(couplings.shape[0], dtype=couplings.dtype, device=couplings.device)
    return others[:, :, None, None] * couplings


def sample(
    num_spins: int,
    dim: int,
    *,
    std: float | None = None,
    generator: torch.Generator | None = None,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "N N D D"]:
    """J_ij^{ab} ~ N(0, std^2) with std^2 = 1 / (N D^2) unless given, for i != j, and J_ii = 0; no symmetry.

    With that variance the matrix J_ij of one pair has Frobenius norm sqrt(1 / N), and all couplings of a spin together
    have norm one. Source: deep implicit attention, the paragraph on implementation.

    >>> sample(4, 3, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([4, 4, 3, 3])
    """
    N = validate.count(num_spins, "num_spins", minimum=1)
    D = validate.count(dim, "dim", minimum=1)
    scale = (N * D * D) ** -0.5 if std is None else std
    return without_self_couplings(scale * torch.randn(N, N, D, D, generator=generator, dtype=dtype))


def count_free(symmetry: Callable[[Tensor], Tensor], num_spins: int, dim: int) -> int:
    """Number of couplings that can be chosen freely under a symmetry: different values in a generic tensor.

    N (N - 1) / 2 D (D + 1) / 2 for sites and components symmetrised separately, as the source counts. The blocks J_ii,
    which the modules set to zero, do not count.

    >>> count_free(symmetrize_separately, 7, 3)
    126
    >>> count_free(unconstrained, 7, 3), count_free(symmetrize, 7, 3), count_free(symmetrize_components, 7, 3)
    (378, 189, 252)
    """
    generator = torch.Generator().manual_seed(0)
    values = symmetry(torch.rand(num_spins, num_spins, dim, dim, dtype=torch.float64, generator=generator))
    return int(torch.unique(values[~torch.eye(num_spins, dtype=torch.bool)]).numel())
