"""Adaptive TAP, plain TAP and naive mean field of binary spins in equilibrium.

All three are stationary points of a free energy G(m) of the magnetizations, for
p(S) ~ exp(beta (sum_{i<j} J_ij S_i S_j + sum_i h_i S_i)) with every pair counted once, J_ij = J_ji and J_ii = 0. Below,
A = beta J and x = beta h, and v_i = 1 - m_i^2:

    naive       G = -sum_i s(m_i) - x.m - m.A m / 2,  s the entropy of one spin
    plain TAP   adds -sum_ij A_ij^2 v_i v_j / 4
    adaptive    adds log det(L - W) / 2 - sum_i (L_i - 1) / 2,  W_ij = A_ij sqrt(v_i v_j), [(L - W)^-1]_ii = 1

``solve_*`` go downhill on G, which is bounded below, so that they end in a stationary point at every coupling strength.
Where rounding hides whether G fell, its slope decides; and where it hides the residual, the solver stops there.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from spinbook import tensors, validate
from spinbook.adaptive_tap import implicit
from spinbook.annotations import ArrayLike, Float

__all__ = [
    "IsingModel",
    "IsingResponse",
    "checked_model",
    "solve_ising",
    "solve_naive_ising",
    "solve_tap_ising",
]

TensorLike = Tensor | ArrayLike
Couplings = Float[TensorLike, "*batch N N"]
Vectors = Float[TensorLike, "*batch N"]
Numbers = Float[TensorLike, "*batch"]


class IsingResponse(NamedTuple):
    """What was found for each model of the batch, and how good it is.

    ``magnetizations``: m_i = <S_i>. ``cavity_variances``: V_i, the variance of the cavity field on spin i,
    dimensionless (of beta sum_j J_ij S_j). ``susceptibilities``: chi_ij = dm_i / d(beta h_j) by the linear response
    of the theory, its estimate of <S_i S_j> - m_i m_j. ``log_partition``: -G, its estimate of log Z.
    ``residual``: the largest error of the self-consistency conditions for m and (adaptive TAP) for the diagonal of chi.
    ``num_steps``: updates tried. ``converged``: whether the residual is at most the tolerance, or at most the rounding
    error with which it can be computed: that grows with the couplings and with the condition of Lambda - A, and
    beyond beta J_ij of about 100 in double precision it is more than 1e-10.
    """

    magnetizations: Float[Tensor, "*batch N"]
    cavity_variances: Float[Tensor, "*batch N"]
    susceptibilities: Float[Tensor, "*batch N N"]
    log_partition: Float[Tensor, "*batch"]
    residual: Float[Tensor, "*batch"]
    num_steps: Int[Tensor, "*batch"]
    converged: Bool[Tensor, "*batch"]


class IsingModel(NamedTuple):
    """A = beta J and x = beta h, with the leading axes of both flattened into one."""

    A: Tensor
    x: Tensor
    batch: torch.Size


def checked_model(couplings: TensorLike, fields: TensorLike, beta: TensorLike) -> IsingModel:
    """A and x of a batch of models, or the error that names the argument."""
    dtype, device = validate.common_tensor_type(couplings, fields, beta)
    J = tensors.real(couplings, "couplings", (None, None), dtype=dtype, device=device)
    N = J.shape[-1]
    if J.shape[-2] != N or N == 0:
        raise ValueError(f"couplings: expected shape (..., N, N) with N >= 1, got shape {tuple(J.shape)}")
    tensors.symmetric_zero_diagonal(J, "couplings")
    h = tensors.real(fields, "fields", (N,), dtype=dtype, device=device)
    b = tensors.positive(beta, "beta", dtype=dtype, device=device)
    try:
        batch = torch.broadcast_shapes(J.shape[:-2], h.shape[:-1], b.shape)
    except RuntimeError as error:
        raise ValueError(f"fields: expected leading axes that broadcast with couplings and beta, got {error}") from None
    A = (b[..., None, None] * J).expand(*batch, N, N).reshape(-1, N, N)
    x = (b[..., None] * h).expand(*batch, N).reshape(-1, N)
    return IsingModel(A, x, batch)


def _sech2(theta: Tensor) -> Tensor:
    """1 / cosh(theta)^2 = 1 - tanh(theta)^2 without cancellation; kept so large that its inverse is finite."""
    e = torch.exp(-2 * theta.abs())
    return (4 * e / (1 + e) ** 2).clamp_min(torch.finfo(theta.dtype).tiny ** 0.5)


def _offset(diagonal: Tensor, matrix: Tensor) -> Tensor:
    return torch.diag_embed(diagonal) + matrix


class _Correction(NamedTuple):
    """What a theory adds to naive mean field at given m: its part of G, and V_i with dG/dm_i = ... + V_i m_i."""

    free_energy: Tensor
    cavity_variances: Tensor
    # v_i |chi_ii / v_i - 1|, the error of the second self-consistency condition.
    inconsistency: Tensor
    # Rounding errors to expect in the free energy and in v_i V_i, in units in the last place of one.
    free_energy_blur: Tensor
    cavity_blur: Tensor
    # What the next evaluation nearby starts from.
    memory: Tensor


def _scaled(A: Tensor, v: Tensor) -> Tensor:
    s = v.sqrt()
    return s[..., :, None] * A * s[..., None, :]


class _Naive:
    """Everything is scaled by sqrt(v_i v_j), so that saturated spins do no harm: the scaled inverse of chi has ones on
    the diagonal without couplings."""

    def correction(self, A: Tensor, v: Tensor, memory: Tensor) -> _Correction:
        zero = torch.zeros_like(v)
        return _Correction(zero.sum(-1), zero, zero, zero.sum(-1), zero, memory)

    def response(self, A: Tensor, m: Tensor, v: Tensor, at: _Correction) -> Tensor:
        """sqrt(v_i v_j) [chi^-1]_ij."""
        return _offset(torch.ones_like(v), -_scaled(A, v))

    def curvature(self, A: Tensor, m: Tensor, v: Tensor, at: _Correction) -> Tensor:
        """sqrt(v_i v_j) d^2 G / dm_i dm_j."""
        return self.response(A, m, v, at)


class _PlainTAP(_Naive):
    def correction(self, A: Tensor, v: Tensor, memory: Tensor) -> _Correction:
        V = (A * A @ v[..., None])[..., 0]
        blur = v * V
        return _Correction(-(v * V).sum(-1) / 4, V, torch.zeros_like(v), blur.sum(-1), blur, memory)

    def response(self, A: Tensor, m: Tensor, v: Tensor, at: _Correction) -> Tensor:
        s = v.sqrt()
        extra = 2 * _scaled(A, v) * A * m[..., :, None] * m[..., None, :]
        return _offset(1 + s * at.cavity_variances * s, -_scaled(A, v) - extra)


# More than 1, so that the lifted curvature is positive definite by a margin.
_LIFT = 1.5
# Twice the Newton steps that any model with couplings up to 1e3 was seen to take.
_MAX_INNER = 60


def _inverse(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Inverse and Cholesky factor of positive definite matrices."""
    factor = torch.linalg.cholesky(matrix)
    return torch.cholesky_inverse(factor), factor


def _self_consistent(W: Tensor, start: Tensor) -> Tensor:
    """L with [(diag L - W)^-1]_ii = 1 and diag L - W positive definite, by Newton's method.

    L minimises sum_i L_i - log det(diag L - W), which is convex and self-concordant: there is exactly one, and steps
    shortened by 1 / (1 + decrement) find it from any admissible start. From outside, where diag L - W is far from
    singular, they come quickly; from near the edge, where all decrements are about sqrt(N), they crawl. So ``start``
    is used only where the solution is near.
    """
    dominant = 1 + W.abs().sum(-1)
    outside = torch.linalg.cholesky_ex(_offset(start, -W)).info > 0
    L = torch.where(outside[..., None], dominant, start)
    settled = torch.finfo(W.dtype).eps ** 0.75
    for k in range(_MAX_INNER):
        K, _ = _inverse(_offset(L, -W))
        excess = torch.diagonal(K, dim1=-2, dim2=-1) - 1
        step = torch.linalg.solve(K * K, excess)
        decrement = (excess * step).sum(-1).clamp_min(0).sqrt()
        # Below 1/4 full steps converge quadratically; above they may leave the domain.
        length = torch.where(decrement < 0.25, torch.ones_like(decrement), 1 / (1 + decrement))
        L = L + length[..., None] * step
        if k == 0:
            L = torch.where((decrement > 1)[..., None], dominant, L)
        if bool((decrement <= settled).all()):
            break
    return L


class _Adaptive(_Naive):
    def correction(self, A: Tensor, v: Tensor, memory: Tensor) -> _Correction:
        W = _scaled(A, v)
        L = _self_consistent(W, memory)
        K, factor = _inverse(_offset(L, -W))
        log_det = 2 * torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)
        # V_i = sum_j A_ij chi_ji / chi_ii; (L_i - 1) / v_i would divide rounding errors by v_i.
        kept = (W * K).sum(-1)
        inconsistency = v * (torch.diagonal(K, dim1=-2, dim2=-1) - 1)
        # A Cholesky factor is that of a matrix whose entries are off by eps sqrt(L_i L_j) or so; what that does to
        # log det is |K| : sqrt(L_i L_j), and to K it is the outer product of |K| sqrt(L) with itself.
        root = L.detach().sqrt()
        reach = (K.detach().abs() @ root[..., None])[..., 0]
        cavity_blur = reach * (W.detach().abs() @ reach[..., None])[..., 0]
        # L is stationary here, so that its error is of second order in G; in kept it would be of first.
        free_energy = (log_det - (L - 1).sum(-1)) / 2
        return _Correction(free_energy, kept / v, inconsistency, (root * reach).sum(-1), cavity_blur, L)

    def response(self, A: Tensor, m: Tensor, v: Tensor, at: _Correction) -> Tensor:
        return _offset(at.memory, -_scaled(A, v))

    def curvature(self, A: Tensor, m: Tensor, v: Tensor, at: _Correction) -> Tensor:
        """The response matrix and what the change of V with m adds: m_i dV_i/dm_j, scaled."""
        M = self.response(A, m, v, at)
        K, _ = _inverse(M)
        # (K * K)^-1 - 1 = -Q + Q (K * K)^-1 Q with Q = K * K - 1, which has no diagonal: no cancellation at small v.
        Q = K * K - torch.diag_embed(torch.diagonal(K * K, dim1=-2, dim2=-1))
        s = v.rsqrt()
        right = Q * s[..., None, :]
        change = right.mT @ torch.linalg.solve(K * K, right) - s[..., :, None] * right
        return M + 2 * m[..., :, None] * change * m[..., None, :]


_NAIVE, _PLAIN_TAP, _ADAPTIVE = _Naive(), _PlainTAP(), _Adaptive()


# Rounding errors of sums over some ten terms, each in units in the last place of its largest part.
_ROUNDINGS = 16
# Armijo's constant: the decrease asked for, as a part of what the slope promises.
_ARMIJO = 1e-4


class _Point(NamedTuple):
    theta: Tensor
    free_energy: Tensor
    # dG/dm_i = theta_i - x_i - (A m)_i + V_i m_i with m = tanh(theta).
    gradient: Tensor
    residual: Tensor
    # Rounding errors to expect in G and in the residual.
    blur: Tensor
    floor: Tensor
    at: _Correction


def _evaluate(theory: _Naive, model: IsingModel, theta: Tensor, memory: Tensor) -> _Point:
    m, v = torch.tanh(theta), _sech2(theta)
    at = theory.correction(model.A, v, memory)
    Am = (model.A @ m[..., None])[..., 0]
    gradient = theta - model.x - Am + at.cavity_variances * m
    terms = torch.stack([theta * m - torch.logaddexp(theta, -theta), -model.x * m, -Am * m / 2])
    free_energy = terms.sum(dim=(0, -1)) + at.free_energy
    wrong = (torch.tanh(theta - gradient) - m).abs()
    residual = torch.maximum(wrong.amax(-1), at.inconsistency.abs().amax(-1))
    with torch.no_grad():
        unit = _ROUNDINGS * torch.finfo(theta.dtype).eps
        blur = unit * (1 + terms.abs().sum(dim=(0, -1)) + at.free_energy.abs() + at.free_energy_blur)
        local = theta.abs() + model.x.abs() + (model.A.abs() @ m.abs()[..., None])[..., 0]
        floor = unit * (1 + v * local + at.cavity_blur * m.abs()).amax(-1)
    return _Point(theta, free_energy, gradient, residual, blur, floor, at)


def _direction(theory: _Naive, model: IsingModel, point: _Point) -> Tensor:
    """Newton's step for theta; where G curves downwards, the curvature is lifted until the step descends."""
    v = _sech2(point.theta)
    curvature = theory.curvature(model.A, torch.tanh(point.theta), v, point.at)
    factor, info = torch.linalg.cholesky_ex(curvature)
    if bool((info > 0).any()):
        lowest = torch.linalg.eigvalsh(curvature)[..., 0]
        lift = torch.where(info > 0, _LIFT * (1 - lowest), torch.zeros_like(lowest))
        factor = torch.linalg.cholesky(curvature + torch.diag_embed(lift[..., None].expand_as(v)))
    s = v.sqrt()
    return -torch.cholesky_solve((s * point.gradient)[..., None], factor)[..., 0] / s


def _descend(theory: _Naive, model: IsingModel, tol: float, max_steps: int) -> tuple[_Point, Tensor]:
    point = _evaluate(theory, model, model.x, torch.ones_like(model.x))
    direction = _direction(theory, model, point)
    length = torch.ones_like(point.residual)
    num_steps = torch.zeros_like(point.residual, dtype=torch.int64)
    stalled = torch.zeros_like(point.residual, dtype=torch.bool)
    for _ in range(max_steps):
        open_ = (point.residual > tol) & ~stalled
        if not bool(open_.any()):
            break
        trial = _evaluate(theory, model, point.theta + length[..., None] * direction, point.at.memory)
        slope = (_sech2(point.theta) * point.gradient * direction).sum(-1)
        change = trial.free_energy - point.free_energy
        # Where the change of G is lost in its rounding, the slope at the trial says whether it went down: for a
        # parabola both rules are the same.
        beyond = (_sech2(trial.theta) * trial.gradient * direction).sum(-1)
        down = (change.abs() <= point.blur + trial.blur) & (beyond <= (1 - 2 * _ARMIJO) * slope.abs())
        better = (change <= _ARMIJO * length * slope) | down
        # Below the floor only steps that still help are made, and the first that does not is the last.
        floored = point.residual <= point.floor
        better = torch.where(floored, trial.residual <= point.residual / 2, better)
        stalled = stalled | (open_ & floored & ~better)
        num_steps += open_
        point = implicit.select(open_ & better, trial, point)
        length = torch.where(better, (4 * length).clamp_max(1), length / 4)
        direction = implicit.select(open_ & better, _direction(theory, model, point), direction)
    return point, num_steps


def _attached(theory: _Naive, model: IsingModel, point: _Point) -> _Point:
    """The same point, with the derivatives that the implicit function theorem gives it."""
    v = _sech2(point.theta)
    s = v.sqrt()
    with torch.no_grad():
        curvature = theory.curvature(model.A, torch.tanh(point.theta), v, point.at)

    def slope(scaled: Tensor) -> Tensor:
        return s * _evaluate(theory, model, scaled / s, point.at.memory).gradient

    theta = point.theta + (implicit.attached(s * point.theta, slope, curvature) - s * point.theta) / s
    return _evaluate(theory, model, theta, point.at.memory)


def _response(theory: _Naive, model: IsingModel, point: _Point, num_steps: Tensor, tol: float) -> IsingResponse:
    m, v = torch.tanh(point.theta), _sech2(point.theta)
    response = theory.response(model.A, m, v, point.at)
    s = v.sqrt()
    # A singular matrix gives numbers that are not finite, and no error in words of the linear algebra.
    chi = s[..., :, None] * torch.linalg.inv_ex(response).inverse * s[..., None, :]
    chi = (chi + chi.mT) / 2
    values: tuple[Tensor, ...] = (m, point.at.cavity_variances, chi, -point.free_energy)
    if any(value.requires_grad for value in values):
        values = tuple(implicit.differentiable_once(value) for value in values)
    residual = point.residual.detach()
    evidence = residual, num_steps, residual <= point.floor.clamp_min(tol)
    return IsingResponse(*(entry.reshape(model.batch + entry.shape[1:]) for entry in (*values, *evidence)))


@tensors.solver
def _solve(
    theory: _Naive, couplings: TensorLike, fields: TensorLike, beta: TensorLike, tol: float, max_steps: int
) -> IsingResponse:
    model = checked_model(couplings, fields, beta)
    # What was asked for, or what rounding allows for numbers of order one if that is more.
    tol = max(float(tensors.positive(tol, "tol", ndim=0)), 16 * torch.finfo(model.x.dtype).eps)
    max_steps = validate.count(max_steps, "max_steps", minimum=1)
    with torch.no_grad():
        point, num_steps = _descend(theory, model, tol, max_steps)
    if torch.is_grad_enabled() and (model.A.requires_grad or model.x.requires_grad):
        point = _attached(theory, model, point)
    return _response(theory, model, point, num_steps, tol)


def solve_ising(
    couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0, tol: float = 1e-10, max_steps: int = 500
) -> IsingResponse:
    """m_i = tanh(x_i + sum_j A_ij m_j - V_i m_i), 1 - m_i^2 = [(Lambda - A)^-1]_ii, Lambda_i = V_i + 1 / (1 - m_i^2).

    Adaptive TAP with A = beta J and x = beta h, for p(S) ~ exp(beta (sum_{i<j} J_ij S_i S_j + sum_i h_i S_i)). The
    error of m is of third order in A, as for plain TAP, but smaller by a constant factor. Given m there is exactly
    one Lambda that leaves Lambda - A positive definite, found by Newton's method; m goes downhill on the free energy
    of the module's docstring, by Newton's method where that is convex, so that the damping chooses itself. At strong
    coupling there may be several solutions; the one reached from theta = x is returned. Susceptibilities are those of
    linear response at fixed V, (Lambda - A)^-1.

    Leading axes are a batch, and broadcast. Differentiable once in couplings, fields and beta by the implicit function
    theorem. Cost per step: some ten Cholesky factorisations of N x N. Raises ``ValueError`` for couplings that are not
    symmetric or have a diagonal, for beta <= 0 and for shapes that do not fit.
    Source: Opper and Winther (2001); deep implicit attention, eqs. cavitymean, viselfcons.

    >>> response = solve_ising([[0.0, 0.5], [0.5, 0.0]], [0.3, -0.2])
    >>> [round(m, 4) for m in response.magnetizations.tolist()], bool(response.converged)
    ([0.2136, -0.0776], True)
    """
    return _solve(_ADAPTIVE, couplings, fields, beta, tol, max_steps)


def solve_tap_ising(
    couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0, tol: float = 1e-10, max_steps: int = 500
) -> IsingResponse:
    """m_i = tanh(x_i + sum_j A_ij m_j - V_i m_i) with V_i = sum_j A_ij^2 (1 - m_j^2).

    Plain TAP: the second order of Plefka's expansion, with the couplings as they are and no average over them; the
    error of m is of third order in A. Susceptibilities are the inverse of d^2 G / dm_i dm_j. Everything else as for
    ``solve_ising``. Source: Thouless, Anderson and Palmer (1977).

    >>> response = solve_tap_ising([[0.0, 0.5], [0.5, 0.0]], [0.3, -0.2])
    >>> [round(m, 4) for m in response.magnetizations.tolist()]
    [0.2067, -0.0779]
    """
    return _solve(_PLAIN_TAP, couplings, fields, beta, tol, max_steps)


def solve_naive_ising(
    couplings: Couplings, fields: Vectors, *, beta: Numbers = 1.0, tol: float = 1e-10, max_steps: int = 500
) -> IsingResponse:
    """m_i = tanh(x_i + sum_j A_ij m_j), and V_i = 0.

    Naive mean field; the error of m is of second order in A. Susceptibilities (diag(1 / (1 - m_i^2)) - A)^-1; -G is a
    lower bound of log Z. Everything else as for ``solve_ising``.

    >>> response = solve_naive_ising([[0.0, 0.5], [0.5, 0.0]], [0.3, -0.2])
    >>> [round(m, 4) for m in response.magnetizations.tolist()]
    [0.2587, -0.0705]
    """
    return _solve(_NAIVE, couplings, fields, beta, tol, max_steps)
