"""phi(t), its derivatives and its minimum with evidence, differentiable to all orders.

Fields enter through the matrix of their scalar products, ``gram`` = H H^T, so that the dimension D of the spins is not
needed. A t for which V is not positive definite is a ``ValueError``, except in ``real_phi``.
Leading axes are a batch everywhere; ``beta`` has the shape of the batch, or is a scalar. Arguments are tensors of one
dtype, which ``VectorSpinModel`` has checked.

Functions here take their arguments without checks; their callers have checked them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from spinbook import transforms

__all__ = [
    "Saddle",
    "SaddlePoint",
    "gradient",
    "hessian",
    "log_det",
    "minimum",
    "per_auxiliary",
    "phi",
    "real_phi",
    "start",
]

# Part of the predicted decrease of phi that a step must deliver, and of the way to the boundary that it may go.
_SUFFICIENT = 1e-4
_TO_BOUNDARY = 0.9
# Above this violation of the constraints the cheap start is in the wrong region.
_FAR = 0.6


class SaddlePoint(NamedTuple):
    """The saddle point of each example, with its evidence.

    ``value``: t*. ``residual``: max_i |d phi / d t_i| / beta at this very t, which is the largest violation of the
    constraint <|sigma_i|^2> = D in units of D (summed over the sites for scalar t). ``num_steps``: Newton steps tried.
    ``converged``: whether the residual is at most the tolerance, or what rounding allows if that is more.
    """

    value: Float[Tensor, "*#batch K"]
    residual: Float[Tensor, "*#batch"]
    num_steps: Int[Tensor, "*#batch"]
    converged: Bool[Tensor, "*#batch"]


class Saddle(NamedTuple):
    """The minimum of phi: its value, its place, and V^-1 there, all differentiable; and the evidence."""

    phi: Float[Tensor, "*#batch"]
    t: Float[Tensor, "*#batch K"]
    inverse: Float[Tensor, "*#batch N N"]
    residual: Float[Tensor, "*#batch"]
    num_steps: Int[Tensor, "*#batch"]
    converged: Bool[Tensor, "*#batch"]


def _diagonal(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1)


def per_auxiliary(values: Float[Tensor, "*#batch N"], num_auxiliaries: int) -> Float[Tensor, "*#batch K"]:
    """Sum over the sites that share an auxiliary variable: over all sites for a single variable, no sum for N of them.

    >>> per_auxiliary(torch.ones(2, 5), 1).tolist()
    [[5.0], [5.0]]
    """
    return values if values.shape[-1] == num_auxiliaries else values.sum(-1, keepdim=True)


def _matrix_per_auxiliary(matrix: Tensor, num_auxiliaries: int) -> Tensor:
    return matrix if matrix.shape[-1] == num_auxiliaries else matrix.sum((-2, -1), keepdim=True)


def _v(t: Tensor, couplings: Tensor) -> Tensor:
    n = couplings.shape[-1]
    return torch.diag_embed(t.expand(*t.shape[:-1], n)) - couplings


def _cholesky(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ln det and inverse by Cholesky factorisation, and whether it exists; 0 and the identity where it does not."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    definite = failed == 0
    if not definite.all():
        # The remains of a failed factorisation may have no inverse, which would spoil the batch.
        identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        factor = torch.where(definite[..., None, None], factor, identity)
    return 2 * _diagonal(factor).log().sum(-1), torch.cholesky_inverse(factor), definite


class _LogDetAndInverse(torch.autograd.Function):
    """``_cholesky`` with derivatives of any order.

    PyTorch's own forward-mode rules for ``cholesky_inverse`` and ``cholesky_solve`` are wrong in several releases (its
    issues 196682 and 196694), and rules built from the inverse are cheaper here.
    """

    @staticmethod
    def forward(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _cholesky(matrix)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor, Tensor]) -> None:
        _, inverse, definite = output
        ctx.mark_non_differentiable(definite)
        ctx.save_for_backward(inverse)
        ctx.save_for_forward(inverse)

    @staticmethod
    def backward(ctx: Any, of_logdet: Tensor, of_inverse: Tensor, _: Tensor | None) -> Tensor:
        (P,) = ctx.saved_tensors
        return of_logdet[..., None, None] * P - P @ ((of_inverse + of_inverse.mT) / 2) @ P

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> tuple[Tensor, Tensor, None]:
        (P,) = ctx.saved_tensors
        change = P @ ((tangent + tangent.mT) / 2) @ P
        return (P * tangent).sum((-2, -1)), -change, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None], matrix: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], int]:
        (dim,) = in_dims
        moved = matrix.expand(info.batch_size, *matrix.shape) if dim is None else matrix.movedim(dim, 0)
        return _LogDetAndInverse.apply(moved), 0


def log_det(matrix: Float[Tensor, "*#batch N N"]) -> Float[Tensor, "*#batch"]:
    """ln det M of positive definite matrices, with derivatives of any order in any mode; NaN for others.

    >>> log_det(torch.eye(3) * 2)  # 3 ln 2
    tensor(2.0794)
    """
    logdet, _, definite = _LogDetAndInverse.apply(matrix)
    return torch.where(definite, logdet, torch.nan)


def _log_det_and_inverse(t: Tensor, couplings: Tensor) -> tuple[Tensor, Tensor]:
    """Of V(t), or an error that says where V is positive definite."""
    logdet, inverse, definite = _LogDetAndInverse.apply(_v(t, couplings))
    inside = transforms.known(definite)
    if inside is None:
        return torch.where(definite, logdet, torch.nan), torch.where(definite[..., None, None], inverse, torch.nan)
    if not inside:
        raise ValueError(_outside("t", couplings))
    return logdet, inverse


def _outside(name: str, couplings: Tensor) -> str:
    largest = float(torch.linalg.eigvalsh(couplings.detach())[..., -1].amax())
    works = f"{1.25 * largest:.4g}" if largest > 0 else "1"
    return (
        f"{name}: expected diag({name}) - couplings positive definite, got one that is not: the largest eigenvalue of "
        f"the couplings is {largest:.4g}, and {name} = {works} at every site works"
    )


def _traced(gram: Tensor, inverse: Tensor) -> Tensor:
    return (gram * inverse).sum((-2, -1))


def phi(
    t: Float[Tensor, "*#batch K"],
    couplings: Float[Tensor, "*#batch N N"],
    gram: Float[Tensor, "*#batch N N"],
    beta: Float[Tensor, "*#batch"],
) -> Float[Tensor, "*#batch"]:
    """phi(t) = beta sum_i t_i - 1/2 ln det V + beta/4 tr(H^T V^-1 H), with V = diag(t) - J.

    Convex where V > 0, which is where the Gaussian integral behind it exists; ``ValueError`` elsewhere. One t for all
    sites (K = 1) or one for each (K = N). Cost: a Cholesky factorisation. Source: eq:varphinorm of Bal (2021).

    >>> one, zero = torch.ones(1), torch.zeros(1, 1)
    >>> phi(one, zero, zero, torch.tensor(1.0)).item()
    1.0
    """
    logdet, inverse = _log_det_and_inverse(t, couplings)
    sites = t.expand(*t.shape[:-1], couplings.shape[-1])
    return beta * sites.sum(-1) - logdet / 2 + beta / 4 * _traced(gram, inverse)


def _derivatives(inverse: Tensor, gram: Tensor, beta: Tensor, num_auxiliaries: int) -> tuple[Tensor, Tensor]:
    b = torch.as_tensor(beta)[..., None]
    transmitted = inverse @ gram @ inverse
    slope = b - _diagonal(inverse) / 2 - b / 4 * _diagonal(transmitted)
    curvature = inverse / 2 * (inverse + b[..., None] * transmitted)
    return per_auxiliary(slope, num_auxiliaries), _matrix_per_auxiliary(curvature, num_auxiliaries)


def gradient(
    t: Float[Tensor, "*#batch K"],
    couplings: Float[Tensor, "*#batch N N"],
    gram: Float[Tensor, "*#batch N N"],
    beta: Float[Tensor, "*#batch"],
) -> Float[Tensor, "*#batch K"]:
    """d phi / d t_i = beta - 1/2 [V^-1]_ii - beta/4 [V^-1 H H^T V^-1]_ii, summed over i for scalar t.

    Divided by beta it is 1 - <|sigma_i|^2> / D: the saddle is where the spins have their length on average. Source:
    the first formula after eq:varphinorm.

    >>> one, zero = torch.ones(1), torch.zeros(1, 1)
    >>> gradient(one, zero, zero, torch.tensor(1.0)).item()
    0.5
    """
    _, inverse = _log_det_and_inverse(t, couplings)
    return _derivatives(inverse, gram, beta, t.shape[-1])[0]


def hessian(
    t: Float[Tensor, "*#batch K"],
    couplings: Float[Tensor, "*#batch N N"],
    gram: Float[Tensor, "*#batch N N"],
    beta: Float[Tensor, "*#batch"],
) -> Float[Tensor, "*#batch K K"]:
    """d^2 phi / d t_i d t_j = 1/2 (V^-1_ij)^2 + beta/2 V^-1_ij [V^-1 H H^T V^-1]_ij, summed over i, j for scalar t.

    Entry-wise products of positive definite and positive semidefinite matrices, hence positive definite: phi is
    strictly convex and its minimum unique. The source's second term has its row sums on the diagonal instead, which is
    the same for scalar t only.

    >>> one, zero = torch.ones(1), torch.zeros(1, 1)
    >>> hessian(one, zero, zero, torch.tensor(1.0)).item()
    0.5
    """
    _, inverse = _log_det_and_inverse(t, couplings)
    return _derivatives(inverse, gram, beta, t.shape[-1])[1]


def real_phi(
    t: Float[Tensor, "*#batch K"] | Complex[Tensor, "*#batch K"],
    couplings: Float[Tensor, "*#batch N N"],
    gram: Float[Tensor, "*#batch N N"],
    beta: Float[Tensor, "*#batch"] | float,
) -> Float[Tensor, "*#batch"]:
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


def start(
    couplings: Float[Tensor, "*#batch N N"], gram: Float[Tensor, "*#batch N N"], beta: Float[Tensor, "*#batch"]
) -> Float[Tensor, "*#batch N"]:
    """t_i = s(|u_i|) + sum_j J_ij^2 g_j: each site alone in the field u_i = h_i + sum_j J_ij g_j h_j of the others.

    Here g_j = 1 / s(|h_j|) is V^-1_jj without couplings and s(u) the exact saddle of one spin. The start is wrong at
    second order in J, and without fields at third. Where it leaves V > 0, or violates the constraints by more than 60
    per cent, as with strong couplings, it is s(|h_i|) + r_i lambda instead, with row norms r_i and the largest
    eigenvalue lambda of J_ij / sqrt(r_i r_j): inside V > 0 for every J.

    >>> strong = torch.tensor([[0.0, 3.0], [3.0, 0.0]])
    >>> start(strong, torch.zeros(2, 2), torch.tensor(1.0))
    tensor([3.5000, 3.5000])
    """
    t, _ = _start(couplings, gram, beta)
    return t


def _start(couplings: Tensor, gram: Tensor, beta: Tensor) -> tuple[Tensor, _Point]:
    J, n = couplings, couplings.shape[-1]
    alone = _single_site(_diagonal(gram), beta)
    g = 1 / alone
    mixing = torch.eye(n, dtype=J.dtype, device=J.device) + J * g[..., None, :]
    received = ((mixing @ gram) * mixing).sum(-1)
    t = _single_site(received, beta) + (J**2 @ g[..., None])[..., 0]
    point = _evaluate(t, J, gram, beta)
    near = point.residual <= _FAR
    if near.all():
        return t, point
    rows = torch.linalg.vector_norm(J, dim=-1)
    rows = torch.where(rows > 0, rows, 1)
    scaled = J / torch.sqrt(rows[..., :, None] * rows[..., None, :])
    largest = torch.linalg.eigvalsh(scaled)[..., -1:]
    # The trace of J vanishes, so that lambda >= 0 but for rounding.
    t = torch.where(near[..., None], t, alone + rows * largest.clamp(min=0))
    return t, _evaluate(t, J, gram, beta)


class _Point(NamedTuple):
    inside: Tensor
    phi: Tensor
    # The rounding error of a number of the size of the terms of phi.
    noise: Tensor
    slope: Tensor
    curvature: Tensor
    inverse: Tensor
    residual: Tensor


def _evaluate(t: Tensor, couplings: Tensor, gram: Tensor, beta: Tensor) -> _Point:
    logdet, inverse, inside = _cholesky(_v(t, couplings))
    n = couplings.shape[-1]
    linear, quadratic = beta * t.expand(*t.shape[:-1], n).sum(-1), beta / 4 * _traced(gram, inverse)
    value = torch.where(inside, linear - logdet / 2 + quadratic, torch.inf)
    noise = 8 * torch.finfo(t.dtype).eps * (n + linear.abs() + logdet.abs() + quadratic)
    slope, curvature = _derivatives(inverse, gram, beta, t.shape[-1])
    residual = torch.where(inside, slope.abs().amax(-1) / beta, torch.inf)
    return _Point(inside, value, noise, slope, curvature, inverse, residual)


def _direction(point: _Point) -> Tensor:
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


def _floor(t: Tensor, point: _Point, beta: Tensor) -> Tensor:
    """A few times the change of the residual by the rounding of t alone."""
    sensitivity = point.curvature.abs().sum(-1).amax(-1) * t.abs().amax(-1) / beta
    return 16 * torch.finfo(t.dtype).eps * (1 + sensitivity)


def _choose(mask: Tensor, new: _Point, old: _Point) -> _Point:
    return _Point(*(torch.where(mask.reshape(mask.shape + (1,) * (a.ndim - mask.ndim)), a, b)
                    for a, b in zip(new, old, strict=True)))  # fmt: skip


def _newton(
    couplings: Tensor, gram: Tensor, beta: Tensor, t0: Tensor | None, tol: float, max_steps: int
) -> tuple[Tensor, _Point, Tensor, Tensor]:
    if t0 is None:
        t, point = _start(couplings, gram, beta)
    else:
        # Tensors that PyTorch saves for the gradient must not be arguments themselves, as they would be without a step.
        t = t0.clone()
        point = _evaluate(t, couplings, gram, beta)
        if not point.inside.all():
            raise ValueError(_outside("t0", couplings))
    num_steps = torch.zeros(point.phi.shape, dtype=torch.int64, device=t.device)
    length = torch.ones_like(point.phi)
    converged = point.residual <= torch.clamp(_floor(t, point, beta), min=tol)
    for _ in range(max_steps):
        if transforms.decided(converged, "a saddle point"):
            break
        step = _direction(point)
        trial = t + length[..., None] * step
        new = _evaluate(trial, couplings, gram, beta)
        # Below the noise a decrease cannot be measured; there full Newton steps are right.
        expected = _SUFFICIENT * length * (point.slope * step).sum(-1)
        lower = new.phi <= point.phi + expected + point.noise
        accepted = lower & ~converged
        num_steps += ~converged
        if accepted.all():
            t, point, length = trial, new, torch.ones_like(length)
        else:
            shorter = length / 2
            outside = ~converged & ~new.inside
            if outside.any():
                nearly = _TO_BOUNDARY * torch.minimum(length, _to_boundary(t, step, couplings))
                shorter = torch.where(outside, nearly, shorter)
            t = torch.where(accepted[..., None], trial, t)
            point = _choose(accepted, new, point)
            length = torch.where(lower, 1, shorter)
        converged = point.residual <= torch.clamp(_floor(t, point, beta), min=tol)
    return t, point, num_steps, converged


class _Minimum(torch.autograd.Function):
    """min phi, argmin phi and V^-1 there, as functions of couplings, Gram matrix and beta.

    The first needs no derivative of the second (envelope theorem): its backward pass solves nothing. The other two cost
    one solve with the Hessian (implicit function theorem). All backward passes are built from the outputs, which carry
    their own derivatives along, so that any order of derivative is right.
    """

    @staticmethod
    def forward(
        couplings: Tensor, gram: Tensor, beta: Tensor, t0: Tensor | None, tol: float, max_steps: int
    ) -> tuple[Tensor, ...]:
        t, point, num_steps, converged = _newton(couplings, gram, beta, t0, tol, max_steps)
        return point.phi, t, point.inverse, point.residual, num_steps, converged

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, gram, beta, *_ = inputs
        _, t, inverse, residual, num_steps, converged = output
        ctx.mark_non_differentiable(residual, num_steps, converged)
        ctx.save_for_backward(gram, beta, t, inverse)
        ctx.save_for_forward(gram, beta, t, inverse)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        of_phi, of_t, of_inverse, *_ = gradients
        G, beta, t, P = ctx.saved_tensors
        n, k = P.shape[-1], t.shape[-1]
        b = beta[..., None, None]
        A = P @ G @ P
        to_couplings, to_gram, to_beta = torch.zeros_like(P), torch.zeros_like(P), torch.zeros_like(beta)
        if of_phi is not None:
            c = of_phi[..., None, None]
            to_couplings = c * (P / 2 + b / 4 * A)
            to_gram = c * b / 4 * P
            to_beta = of_phi * (t.expand(*t.shape[:-1], n).sum(-1) + _traced(G, P) / 4)
        if of_inverse is not None:
            # dP = P (dJ - diag(dt)) P
            pulled = P @ ((of_inverse + of_inverse.mT) / 2) @ P
            to_couplings = to_couplings + pulled
            through_t = -per_auxiliary(_diagonal(pulled), k)
            of_t = through_t if of_t is None else of_t + through_t
        if of_t is not None:
            curvature = _matrix_per_auxiliary(P * (P / 2 + b / 2 * A), k)
            w = torch.linalg.solve(curvature, of_t[..., None])[..., 0]
            w = w.expand(*w.shape[:-1], n)
            weighted = P * w[..., None, :]
            B = weighted @ P
            C = weighted @ A
            to_couplings = to_couplings + B / 2 + b / 4 * (C + C.mT)
            to_gram = to_gram + b / 4 * B
            to_beta = to_beta - (w * (1 - _diagonal(A) / 4)).sum(-1)
        return to_couplings, to_gram, to_beta, None, None, None

    @staticmethod
    def jvp(
        ctx: Any, dJ: Tensor | None, dG: Tensor | None, dbeta: Tensor | None, *_: None
    ) -> tuple[Tensor | None, ...]:
        G, beta, t, P = ctx.saved_tensors
        n, k = P.shape[-1], t.shape[-1]
        b = beta[..., None, None]
        A = P @ G @ P
        dJ = torch.zeros_like(P) if dJ is None else (dJ + dJ.mT) / 2
        dG = torch.zeros_like(P) if dG is None else dG
        dbeta = torch.zeros_like(beta) if dbeta is None else dbeta
        sites = t.expand(*t.shape[:-1], n).sum(-1)
        dphi = _traced(P / 2 + b / 4 * A, dJ) + beta / 4 * _traced(P, dG) + dbeta * (sites + _traced(G, P) / 4)
        moved = P @ dJ @ P / 2 + b / 4 * (P @ dG @ P + 2 * P @ dJ @ A)
        dslope = dbeta[..., None] * (1 - _diagonal(A) / 4) - _diagonal(moved)
        curvature = _matrix_per_auxiliary(P * (P / 2 + b / 2 * A), k)
        dt = -torch.linalg.solve(curvature, per_auxiliary(dslope, k)[..., None])[..., 0]
        return dphi, dt, P @ (dJ - torch.diag_embed(dt.expand(*dt.shape[:-1], n))) @ P, None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        couplings: Tensor,
        gram: Tensor,
        beta: Tensor,
        t0: Tensor | None,
        tol: float,
        max_steps: int,
    ) -> tuple[tuple[Tensor, ...], int]:
        def leading(value: Tensor | None, dim: int | None) -> Tensor | None:
            if value is None:
                return None
            return value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)

        moved = (leading(x, dim) for x, dim in zip((couplings, gram, beta, t0), in_dims[:4], strict=True))
        return _Minimum.apply(*moved, tol, max_steps), 0


@transforms.uncompiled
def minimum(
    couplings: Float[Tensor, "*#batch N N"],
    gram: Float[Tensor, "*#batch N N"],
    beta: Float[Tensor, "*#batch"],
    *,
    t0: Float[Tensor, "*#batch K"] | None = None,
    tol: float = 1e-12,
    max_steps: int = 100,
) -> Saddle:
    """min_t phi(t) over V > 0, by damped Newton, with its place t* and V^-1 there.

    The minimum exists and is unique for every symmetric J and beta > 0: phi is strictly convex, and infinite at the
    boundary and far away. A step that leaves V > 0 (a Cholesky factorisation decides) goes nine tenths of the way to
    the boundary; a step that does not lower phi is halved. Each example has its own step length and stops by itself.

    ``t0`` is (..., N), or (..., 1) for one t at all sites; without it there is one t for each site, from ``start``.
    ``ValueError`` if V(t0) is not positive definite. Whether it converged is for the caller to check. Derivatives with
    respect to couplings, Gram matrix and beta are implicit and may be differentiated again; those with respect to
    symmetric matrices are symmetric. Cost of a step: two Cholesky factorisations, an inverse, two products of N x N.

    >>> free = minimum(torch.zeros(3, 3), torch.zeros(3, 3), torch.tensor(2.0))
    >>> free.t, free.num_steps.item()
    (tensor([0.2500, 0.2500, 0.2500]), 0)
    """
    batch = torch.broadcast_shapes(couplings.shape[:-2], gram.shape[:-2], beta.shape)
    J = couplings.expand(*batch, *couplings.shape[-2:])
    G = gram.expand(*batch, *gram.shape[-2:])
    initial = None if t0 is None else t0.detach().expand(*batch, t0.shape[-1])
    return Saddle(*_Minimum.apply(J, G, beta.expand(batch), initial, tol, max_steps))
