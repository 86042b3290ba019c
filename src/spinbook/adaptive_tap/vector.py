"""Adaptive TAP of vector spins: exact for a Gaussian prior, iterated for others.

The model is p(S) ~ prod_i rho(S_i) exp(sum_{i<j} S_i . J_ij S_j + sum_i X_i . S_i), every pair counted once, with
J_ij^{ab} = J_ji^{ba} and J_ii = 0; couplings without this symmetry are a ``ValueError``. Couplings are (N, N, D, D),
fields (..., N, D) with a batch in the leading axes; an inverse temperature has to be multiplied into both. ``chi``
below is the inverse of Lambda - J as one matrix of N D rows.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from spinbook import tensors, validate
from spinbook.adaptive_tap import implicit
from spinbook.adaptive_tap.couplings import as_matrix
from spinbook.adaptive_tap.ising import TensorLike
from spinbook.adaptive_tap.priors import Gaussian, Prior, require_positive_definite
from spinbook.annotations import Float

__all__ = ["VectorResponse", "checked_couplings", "gaussian_mean", "solve", "solve_gaussian"]


class VectorResponse(NamedTuple):
    """The response for each example of the batch, with its evidence.

    ``magnetizations``: m_i = <S_i>. ``cavity_variances``: V_i. ``covariances``: those of each spin, chi_ii.
    ``residual``: the largest change that one more update would make to m or V; for a Gaussian prior the residual of the
    linear system. ``num_steps``: updates made. ``converged``: whether the residual is at most the tolerance.
    """

    magnetizations: Float[Tensor, "*batch N D"]
    cavity_variances: Float[Tensor, "*batch N D D"]
    covariances: Float[Tensor, "*batch N D D"]
    residual: Float[Tensor, "*batch"]
    num_steps: Int[Tensor, "*batch"]
    converged: Bool[Tensor, "*batch"]


def checked_couplings(couplings: Float[Tensor, "N N D D"]) -> Float[Tensor, "N N D D"]:
    """The couplings, or an error if there are self-couplings or asymmetric couplings.

    >>> checked_couplings(torch.ones(2, 2, 1, 1))
    Traceback (most recent call last):
    ValueError: couplings: expected J_ii = 0, got an entry of size 1 at spin 0
    """
    N, _, D, _ = shape = couplings.shape if couplings.ndim == 4 else (0, 0, 0, 0)
    if shape != (N, N, D, D) or couplings.numel() == 0:
        raise ValueError(f"couplings: expected shape (N, N, D, D), not empty, got shape {tuple(couplings.shape)}")
    own = torch.diagonal(couplings.detach(), dim1=0, dim2=1).abs().amax((0, 1))
    if own.any():
        site = int(own.argmax())
        raise ValueError(f"couplings: expected J_ii = 0, got an entry of size {float(own[site]):g} at spin {site}")
    tensors.require_symmetric(as_matrix(couplings), "couplings")
    return couplings


def _checked(couplings: TensorLike, fields: TensorLike) -> tuple[Tensor, Tensor]:
    dtype, device = validate.common_tensor_type(couplings, fields)
    J = checked_couplings(validate.tensor(couplings, "couplings", dtype=dtype, device=device))
    return J, tensors.real(fields, "fields", (J.shape[0], J.shape[2]), dtype=dtype, device=device)


def _block_diagonal(blocks: Tensor) -> Tensor:
    """(..., N, D, D) to (..., N D, N D)."""
    N, D, _ = blocks.shape[-3:]
    spread = torch.diag_embed(blocks.movedim(-3, -1), dim1=-4, dim2=-2)
    return spread.reshape(*blocks.shape[:-3], N * D, N * D)


def _diagonal_blocks(matrix: Tensor, N: int) -> Tensor:
    """(..., N D, N D) to (..., N, D, D)."""
    D = matrix.shape[-1] // N
    grid = matrix.reshape(*matrix.shape[:-2], N, D, N, D)
    return torch.diagonal(grid, dim1=-4, dim2=-2).movedim(-1, -3)


def _gaussian_factor(J: Tensor, X: Tensor, prior: Gaussian) -> tuple[Tensor, Tensor]:
    """The Cholesky factor of Sigma^-1 - J, and Sigma^-1 (N, D, D)."""
    N, D = X.shape[-2:]
    precision = prior.precision(X)
    if precision.ndim == 3 and precision.shape[0] != N:
        raise ValueError(f"covariance: expected one matrix for each of {N} spins, got {precision.shape[0]}")
    precision = precision.expand(N, D, D)
    matrix = _block_diagonal(precision) - as_matrix(J)
    return require_positive_definite(matrix, "couplings", "the prior's precision minus J"), precision


def gaussian_mean(
    couplings: Float[Tensor, "N N D D"], fields: Float[Tensor, "*batch N D"], prior: Gaussian
) -> Float[Tensor, "*batch N D"]:
    """m = (Sigma^-1 - J)^-1 X: what adaptive TAP converges to for a Gaussian prior, by one Cholesky factorisation.

    The single-site mean (Sigma^-1 - V_i)^-1 (sum_j J_ij m_j - V_i m_i + X_i) is m_i for every V_i if it is m_i for a
    single V_i: the Onsager term cancels. The model is Gaussian, so that this is its exact mean. Takes hollow, symmetric
    couplings and fields of one dtype, which are not checked; errors as for ``solve_gaussian``.

    >>> gaussian_mean(torch.zeros(2, 2, 1, 1), torch.ones(2, 1), Gaussian()).tolist()
    [[1.0], [1.0]]
    """
    return _solved(_gaussian_factor(couplings, fields, prior)[0], fields)


def _solved(factor: Tensor, X: Tensor) -> Tensor:
    columns = X.reshape(-1, factor.shape[-1]).T
    return torch.cholesky_solve(columns, factor).T.reshape(X.shape)


@tensors.solver
def solve_gaussian(
    couplings: Float[TensorLike, "N N D D"], fields: Float[TensorLike, "*batch N D"], prior: Gaussian | None = None
) -> VectorResponse:
    """m = (Sigma^-1 - J)^-1 X and V_i = Sigma_i^-1 - ([(Sigma^-1 - J)^-1]_ii)^-1: adaptive TAP, Gaussian prior.

    Lambda_i = Sigma_i^-1 for every V_i, so that one update gives V, and m does not depend on it. V and the
    covariances are the same for the whole batch. One factorisation and one inversion of N D x N D, differentiable to
    any order. Raises ``ValueError`` with the smallest eigenvalue if Sigma^-1 - J is not positive definite, where the
    model cannot be normalised, and for couplings that are not symmetric or have a diagonal.
    Source: deep implicit attention, "Slow and explicit", solved.

    >>> found = solve_gaussian([[[[0.0]], [[0.5]]], [[[0.5]], [[0.0]]]], [[3.0], [0.0]])
    >>> found.cavity_variances[:, 0, 0].tolist(), found.covariances[:, 0, 0]
    ([0.25, 0.25], tensor([1.3333, 1.3333], dtype=torch.float64))
    """
    J, X = _checked(couplings, fields)
    N, D = X.shape[-2:]
    factor, precision = _gaussian_factor(J, X, Gaussian() if prior is None else prior)
    m = _solved(factor, X)
    covariance = _diagonal_blocks(torch.cholesky_inverse(factor), N)
    V = precision - torch.linalg.inv(covariance)
    with torch.no_grad():
        again = torch.einsum("ijab,...jb->...ia", J, m) + X
        residual = (torch.einsum("iab,...ib->...ia", precision, m) - again).abs().amax((-2, -1))
        size = torch.maximum(X.abs(), m.abs()).amax((-2, -1))
    batch = X.shape[:-2]
    return VectorResponse(
        m,
        V.expand(*batch, N, D, D),
        covariance.expand(*batch, N, D, D),
        residual,
        torch.ones_like(residual, dtype=torch.int64),
        # Backward stability of the factorisation, with room for the number of rows.
        residual <= N * D * implicit.floor(X.dtype) * precision.abs().amax() * size,
    )


def _update(prior: Prior, J: Tensor, X: Tensor, m: Tensor, V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The next m and V, and the single-site covariances C at this one.

    With C = F F^T and M = 1 + F^T (V - J) F, chi = F M^-1 F^T. The mean moves by chi C^-1 (phi - m): Newton's step for
    phi(X + J m - V m) = m at fixed V, which for a Gaussian prior arrives at once.
    """
    N, D = X.shape[-2:]
    batch = X.shape[0]
    field = X + (m.reshape(batch, N * D) @ J.T).reshape(X.shape) - (V @ m[..., None])[..., 0]
    mean, C = prior.moments(field, V)
    # The variance of a saturated spin vanishes, and its factor must not.
    least = torch.finfo(C.dtype).eps * C.abs().amax() + torch.finfo(C.dtype).tiny ** 0.5
    F = torch.linalg.cholesky(C + least * torch.diag_embed(torch.ones_like(m)))
    # J between factors, block by block, without the zeros of a block-diagonal matrix.
    blocks = J.reshape(N, D, N, D)
    FJF = torch.einsum("bica,icjd,bjde->biaje", F, blocks, F).reshape(batch, N * D, N * D)
    inner = torch.eye(D).to(X) + F.mT @ V @ F
    M = _block_diagonal(inner) - FJF
    factor, info = torch.linalg.cholesky_ex(M)
    if (info > 0).any():
        # V is far too small there: raise it until Lambda - J is positive definite.
        lowest = torch.linalg.eigvalsh(M.detach())[..., 0]
        lift = torch.where(info > 0, 0.5 - 1.5 * lowest, 0)
        inner = inner + lift[:, None, None, None] * torch.eye(D).to(X)
        factor = torch.linalg.cholesky(M + lift[:, None, None] * torch.eye(N * D).to(X))
    K = torch.cholesky_inverse(factor)
    gap = torch.linalg.solve_triangular(F, (mean - m)[..., None], upper=False).reshape(batch, N * D, 1)
    new_m = m + (F @ torch.cholesky_solve(gap, factor).reshape(batch, N, D, 1))[..., 0]
    # Lambda - (chi_ii)^-1 = sum_j J_ij chi_ji (chi_ii)^-1, whatever V and the lift are. The difference itself would
    # divide its rounding errors by the variance of a saturated spin.
    reached = torch.einsum("icjd,bjde,bjeia->bica", blocks, F, K.reshape(batch, N, D, N, D))
    own = torch.linalg.solve(_diagonal_blocks(K, N), reached, left=False)
    new_V = torch.linalg.solve_triangular(F, own, upper=False, left=False)
    return new_m, (new_V + new_V.mT) / 2, C


@tensors.solver
def solve(
    couplings: Float[TensorLike, "N N D D"],
    fields: Float[TensorLike, "*batch N D"],
    prior: Prior,
    *,
    tol: float = 1e-10,
    max_steps: int = 200,
) -> VectorResponse:
    """m_i = mean(X_i + sum_j J_ij m_j - V_i m_i, V_i), C_i = [(Lambda - J)^-1]_ii, Lambda_i = V_i + C_i^-1.

    Adaptive TAP for any prior of ``priors``, with mean and covariance C_i of one spin from its single-site partition
    function. Each update factorises Lambda - J once, and takes from it Newton's step for m at fixed V and the
    diagonal blocks for V; Anderson acceleration does the rest. For non-Gaussian priors V belongs to an example, not
    to the model. Where Lambda - J is not positive definite, V is raised until it is. Differentiable once, by the
    implicit function theorem. Cost per update and example: a Cholesky factorisation and an inversion of N D x N D. A
    Gaussian prior is accepted, as a check on ``solve_gaussian``. Errors as there. Source: deep implicit attention,
    eq. veccavmeans and "Generalizing the cavity variance calculation", where Sigma_i is the current covariance C_i of
    the spin, not that of the prior.

    >>> from spinbook.adaptive_tap.priors import Binary
    >>> J = [[[[0.0]], [[0.5]]], [[[0.5]], [[0.0]]]]
    >>> found = solve(torch.tensor(J, dtype=torch.float64), [[0.3], [-0.2]], Binary())
    >>> [round(m, 4) for m in found.magnetizations[:, 0].tolist()], bool(found.converged)
    ([0.2136, -0.0776], True)
    """
    J4, X = _checked(couplings, fields)
    N, D = X.shape[-2:]
    batch = X.shape[:-2]
    if isinstance(prior, Gaussian):
        # A model that cannot be normalised has no solution.
        _gaussian_factor(J4, X, prior)
    J, flat = as_matrix(J4), X.reshape(-1, N, D)

    def f(state: Tensor) -> Tensor:
        m, V = state[:, :, 0], state[:, :, 1:]
        new_m, new_V, _ = _update(prior, J, flat, m, V)
        return torch.cat([new_m[:, :, None], new_V], dim=2)

    V = flat.new_zeros(*flat.shape, D)
    with torch.no_grad():
        start, _ = prior.moments(flat, V)
    found = implicit.solve(f, torch.cat([start[:, :, None], V], dim=2), tol=tol, max_steps=max_steps)
    m, V = found.value[:, :, 0], found.value[:, :, 1:]
    field = flat + (m.reshape(-1, N * D) @ J.T).reshape(flat.shape) - (V @ m[..., None])[..., 0]
    _, C = prior.moments(field, V)
    values = m.reshape(X.shape), V.reshape(*X.shape, D), C.reshape(*X.shape, D)
    evidence = (entry.reshape(batch) for entry in (found.residual, found.num_steps, found.converged))
    return VectorResponse(*values, *evidence)
