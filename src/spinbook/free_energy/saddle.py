"""phi(t), its derivatives and its minimum with evidence, twice differentiable.

Fields enter through the matrix of their scalar products, ``gram`` = H H^T, so that the dimension D of the spins is not
needed. Leading axes are a batch everywhere; ``beta`` has the shape of the batch, or is a scalar. Functions take their
arguments without checks: ``VectorSpinModel`` has checked them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from spinbook import tensors
from spinbook.adaptive_tap import implicit

__all__ = ["Point", "Saddle", "at", "minimum", "real_phi", "start"]

# One t for each site, or one for all.
Auxiliaries = Float[Tensor, "*#batch K"]
Matrices = Float[Tensor, "*#batch N N"]
Numbers = Float[Tensor, "*#batch"]

# Part of the predicted decrease of phi that a step must deliver, and of the way to the boundary that it may go.
_SUFFICIENT = 1e-4
_TO_BOUNDARY = 0.9
# Above this violation of the constraints the cheap start is in the wrong region.
_FAR = 0.6


class Saddle(NamedTuple):
    """The minimum of phi: its value, its place, V^-1 and the Hessian there, all differentiable; and the evidence."""

    phi: Numbers
    t: Auxiliaries
    inverse: Matrices
    curvature: Matrices
    residual: Numbers
    num_steps: Int[Tensor, "*#batch"]
    converged: Bool[Tensor, "*#batch"]


class Point(NamedTuple):
    """phi at some t, infinite outside of V > 0, with gradient, Hessian, ln det V and V^-1 there."""

    inside: Bool[Tensor, "*#batch"]
    phi: Numbers
    # The rounding error of a number of the size of the terms of phi.
    noise: Numbers
    slope: Auxiliaries
    curvature: Matrices
    logdet: Numbers
    inverse: Matrices
    residual: Numbers


def _diagonal(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1)


def _v(t: Tensor, couplings: Tensor) -> Tensor:
    n = couplings.shape[-1]
    return torch.diag_embed(t.expand(*t.shape[:-1], n)) - couplings


class _Inverse(torch.autograd.Function):
    """ln det V and P = V^-1, known already, as functions of V: d ln det V = tr P dV, dP = -P dV P.

    Derivatives of Cholesky factors would cost several times as much.
    """

    @staticmethod
    def forward(ctx: Any, V: Tensor, logdet: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
        logdet, inverse = logdet.clone(), inverse.clone()
        ctx.save_for_backward(inverse)
        return logdet, inverse

    @staticmethod
    def backward(ctx: Any, of_logdet: Tensor, of_inverse: Tensor) -> tuple[Tensor, None, None]:
        (P,) = ctx.saved_tensors
        return of_logdet[..., None, None] * P - P @ ((of_inverse + of_inverse.mT) / 2) @ P, None, None


def at(t: Auxiliaries, couplings: Matrices, gram: Matrices, beta: Numbers, *, name: str = "") -> Point:
    """phi(t) = beta sum_i t_i - 1/2 ln det V + beta/4 tr(H^T V^-1 H), V = diag(t) - J, and its derivatives.

    By one Cholesky factorisation. Convex where V > 0, which is where the Gaussian integral behind it exists.
    d phi / d t_i = beta - 1/2 [V^-1]_ii - beta/4 [V^-1 H H^T V^-1]_ii, which is beta (1 - <|sigma_i|^2> / D): the
    saddle is where the spins have their length on average. d^2 phi / d t_i d t_j = 1/2 (V^-1_ij)^2 + beta/2 V^-1_ij
    [V^-1 H H^T V^-1]_ij, entry-wise products of positive matrices: phi is strictly convex. Both are summed over the
    sites for scalar t. The second term of the Hessian in the source has its row sums on the diagonal instead, which is
    the same for scalar t only. With a ``name`` for t, a t outside of V > 0 is a ``ValueError`` that says what works.
    Source: eq:varphinorm of Bal (2021) and the first formula after it.

    >>> zero = torch.zeros(1, 1)
    >>> point = at(torch.ones(1), zero, zero, torch.tensor(1.0))
    >>> point.phi.item(), point.slope.item(), point.curvature.item()
    (1.0, 0.5, 0.5)
    """
    with torch.no_grad():
        factor, failed = torch.linalg.cholesky_ex(_v(t, couplings))
        inside = failed == 0
        if name and not inside.all():
            largest = float(torch.linalg.eigvalsh(couplings)[..., -1].amax())
            works = f"{1.25 * largest:.4g}" if largest > 0 else "1"
            raise ValueError(
                f"{name}: expected diag({name}) - couplings positive definite, got one that is not: the largest "
                f"eigenvalue of the couplings is {largest:.4g}, and {name} = {works} at every site works"
            )
        # The remains of a failed factorisation may have no inverse, which would spoil the batch.
        factor = torch.where(inside[..., None, None], factor, torch.eye(couplings.shape[-1]).to(factor))
        logdet, inverse = 2 * _diagonal(factor).log().sum(-1), torch.cholesky_inverse(factor)
    return _evaluated(t, couplings, gram, beta, inside, logdet, inverse)


def _evaluated(
    t: Tensor, couplings: Tensor, gram: Tensor, beta: Tensor, inside: Tensor, logdet: Tensor, inverse: Tensor
) -> Point:
    n, b = couplings.shape[-1], torch.as_tensor(beta)[..., None]
    if torch.is_grad_enabled():
        logdet, inverse = _Inverse.apply(_v(t, couplings), logdet, inverse)
    linear, quadratic = beta * t.expand(*t.shape[:-1], n).sum(-1), beta / 4 * (gram * inverse).sum((-2, -1))
    value = torch.where(inside, linear - logdet / 2 + quadratic, torch.inf)
    noise = 8 * torch.finfo(t.dtype).eps * (n + linear.abs() + logdet.abs() + quadratic)
    transmitted = inverse @ gram @ inverse
    slope = b - _diagonal(inverse) / 2 - b / 4 * _diagonal(transmitted)
    curvature = inverse / 2 * (inverse + b[..., None] * transmitted)
    if t.shape[-1] != n:
        slope, curvature = slope.sum(-1, keepdim=True), curvature.sum((-2, -1), keepdim=True)
    residual = torch.where(inside, slope.abs().amax(-1) / beta, torch.inf)
    return Point(inside, value, noise, slope, curvature, logdet, inverse, residual)


def real_phi(
    t: Auxiliaries | Complex[Tensor, "*#batch K"], couplings: Matrices, gram: Matrices, beta: Numbers | float
) -> Numbers:
    """Re phi(t) by an LU factorisation, wherever V is regular: for complex t, beyond V > 0, and for any square J.

    For pictures of phi. Outside V > 0 no Gaussian integral converges to it, and for J that is not symmetric it is not
    the exponent of the integral, which depends on the symmetric part of J only.

    >>> zero = torch.zeros(1, 1)
    >>> real_phi(torch.tensor([-1.0]), zero, zero, 1.0).item()
    -1.0
    """
    V = _v(t, couplings)
    logarithm = torch.linalg.slogdet(V).logabsdet
    sites = t.expand(*t.shape[:-1], V.shape[-1])
    # Broadcast first: for some shapes solve would mistake a matrix for a stack of vectors.
    solved = torch.linalg.solve(*torch.broadcast_tensors(V, gram.to(V.dtype)))
    return beta * sites.real.sum(-1) - logarithm / 2 + beta / 4 * _diagonal(solved).real.sum(-1)


def _single_site(squares: Tensor, beta: Tensor) -> Tensor:
    """s with 1/(2 beta s) + |u|^2 / (4 s^2) = 1: the saddle of a spin alone in a field u, from |u|^2."""
    free = 0.5 / beta[..., None]
    return (free + torch.sqrt(free**2 + squares)) / 2


def start(couplings: Matrices, gram: Matrices, beta: Numbers) -> tuple[Auxiliaries, Point]:
    """t_i = s(|u_i|) + sum_j J_ij^2 g_j: each site alone in the field u_i = h_i + sum_j J_ij g_j h_j of the others.

    Here g_j = 1 / s(|h_j|) is V^-1_jj without couplings and s(u) the exact saddle of one spin. The start is wrong at
    second order in J, and without fields at third. Where it leaves V > 0, or violates the constraints by more than 60
    per cent, as with strong couplings, it is s(|h_i|) + r_i lambda instead, with row norms r_i and the largest
    eigenvalue lambda of J_ij / sqrt(r_i r_j): inside V > 0 for every J. Returned with the point there.

    >>> strong = torch.tensor([[0.0, 3.0], [3.0, 0.0]])
    >>> start(strong, torch.zeros(2, 2), torch.tensor(1.0))[0]
    tensor([3.5000, 3.5000])
    """
    J = couplings
    alone = _single_site(_diagonal(gram), beta)
    g = 1 / alone
    mixing = torch.eye(J.shape[-1]).to(J) + J * g[..., None, :]
    received = ((mixing @ gram) * mixing).sum(-1)
    t = _single_site(received, beta) + (J**2 @ g[..., None])[..., 0]
    point = at(t, J, gram, beta)
    near = point.residual <= _FAR
    if near.all():
        return t, point
    rows = torch.linalg.vector_norm(J, dim=-1)
    rows = torch.where(rows > 0, rows, 1)
    scaled = J / torch.sqrt(rows[..., :, None] * rows[..., None, :])
    # The trace of J vanishes, so that lambda >= 0 but for rounding.
    largest = torch.linalg.eigvalsh(scaled)[..., -1:].clamp(min=0)
    t = torch.where(near[..., None], t, alone + rows * largest)
    return t, at(t, J, gram, beta)


def _direction(point: Point) -> Tensor:
    factor, failed = torch.linalg.cholesky_ex(point.curvature)
    step = -torch.cholesky_solve(point.slope[..., None], factor)[..., 0]
    # The Hessian is indefinite by rounding: go downhill in the scale of each coordinate.
    return torch.where((failed == 0)[..., None], step, -point.slope / _diagonal(point.curvature))


def _to_boundary(t: Tensor, step: Tensor, couplings: Tensor) -> Tensor:
    """The largest a with V(t + a step) positive semidefinite."""
    V = _v(t, couplings)
    factor, _ = torch.linalg.cholesky_ex(V)
    half = torch.linalg.solve_triangular(factor, _v(step, torch.zeros_like(V)), upper=False)
    relative = torch.linalg.solve_triangular(factor, half.mT, upper=False)
    smallest = torch.linalg.eigvalsh((relative + relative.mT) / 2)[..., 0]
    return torch.where(smallest < 0, -1 / smallest, torch.inf)


@torch.no_grad()
def _newton(
    couplings: Tensor, gram: Tensor, beta: Tensor, t0: Tensor | None, tol: float, max_steps: int
) -> tuple[Tensor, Point, Tensor, Tensor]:
    if t0 is None:
        t, point = start(couplings, gram, beta)
    else:
        t, point = t0, at(t0, couplings, gram, beta, name="t0")
    num_steps = torch.zeros(point.phi.shape, dtype=torch.int64, device=t.device)
    length = torch.ones_like(point.phi)

    def solved() -> Tensor:
        # A few times the change of the residual by the rounding of t alone.
        sensitivity = point.curvature.abs().sum(-1).amax(-1) * t.abs().amax(-1) / beta
        return point.residual <= torch.clamp(16 * torch.finfo(t.dtype).eps * (1 + sensitivity), min=tol)

    converged = solved()
    for _ in range(max_steps):
        if converged.all():
            break
        step = _direction(point)
        trial = t + length[..., None] * step
        new = at(trial, couplings, gram, beta)
        # Below the noise a decrease cannot be measured; there full Newton steps are right.
        expected = _SUFFICIENT * length * (point.slope * step).sum(-1)
        lower = new.phi <= point.phi + expected + point.noise
        accepted = lower & ~converged
        num_steps += ~converged
        shorter = length / 2
        outside = ~converged & ~new.inside
        if outside.any():
            nearly = _TO_BOUNDARY * torch.minimum(length, _to_boundary(t, step, couplings))
            shorter = torch.where(outside, nearly, shorter)
        t, point = implicit.select(accepted, (trial, new), (t, point))
        length = torch.where(lower, 1, shorter)
        converged = solved()
    return t, point, num_steps, converged


@tensors.solver
def minimum(
    couplings: Matrices,
    gram: Matrices,
    beta: Numbers,
    *,
    t0: Auxiliaries | None = None,
    tol: float = 1e-12,
    max_steps: int = 100,
) -> Saddle:
    """min_t phi(t) over V > 0, by damped Newton, with its place t* and V^-1 there.

    The minimum exists and is unique for every symmetric J and beta > 0: phi is strictly convex, and infinite at the
    boundary and far away. A step that leaves V > 0 (a Cholesky factorisation decides) goes nine tenths of the way to
    the boundary; a step that does not lower phi is halved. Each example has its own step length and stops by itself.

    ``t0`` is (..., N), or (..., 1) for one t at all sites; without it there is one t for each site, from ``start``.
    ``ValueError`` if V(t0) is not positive definite. Whether it converged is for the caller to check. Derivatives with
    respect to couplings, Gram matrix and beta are implicit, and may be taken twice. Cost of a step: two Cholesky
    factorisations, an inverse, two products of N x N.

    >>> free = minimum(torch.zeros(3, 3), torch.zeros(3, 3), torch.tensor(2.0))
    >>> free.t, free.num_steps.item()
    (tensor([0.2500, 0.2500, 0.2500]), 0)
    """
    batch = torch.broadcast_shapes(couplings.shape[:-2], gram.shape[:-2], beta.shape)
    J = couplings.expand(*batch, *couplings.shape[-2:])
    G, beta = gram.expand(*batch, *gram.shape[-2:]), beta.expand(batch)
    initial = None if t0 is None else t0.expand(*batch, t0.shape[-1])
    t, point, num_steps, converged = _newton(J, G, beta, initial, tol, max_steps)
    residual = point.residual
    if torch.is_grad_enabled() and any(value.requires_grad for value in (J, G, beta)):

        def here(t: Tensor) -> Point:
            return _evaluated(t, J, G, beta, point.inside, point.logdet, point.inverse)

        t = implicit.attached(t, lambda t: here(t).slope, point.curvature, orders=2)
        point = here(t)
    return Saddle(point.phi, t, point.inverse, point.curvature, residual, num_steps, converged)
