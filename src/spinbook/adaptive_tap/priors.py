"""Distributions of one vector spin without couplings: Gaussian, binary, spherical.

A prior rho gives the single-site partition function of the cavity method,

    Z(h, V) = integral dS rho(S) exp(h . S + S . V S / 2),

for a field h (..., dim) and a symmetric matrix V (..., dim, dim): its logarithm, and the mean and the covariance of S
under the integrand. All priors are normalised, Z(0, 0) = 1, and everything is differentiable by PyTorch. Another
prior is any object with the two methods of ``Prior``.

Methods take their arguments without checks: ``solve`` checks fields and matrices, the constructor its parameters.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from spinbook import tensors, validate
from spinbook.adaptive_tap.ising import TensorLike
from spinbook.annotations import Float

__all__ = ["Binary", "Gaussian", "Prior", "Spherical", "require_positive_definite"]


Vectors = Float[Tensor, "*batch dim"]
Matrices = Float[Tensor, "*batch dim dim"]


@runtime_checkable
class Prior(Protocol):
    """The methods of a prior that adaptive TAP calls. ``cavity_variances`` is a symmetric matrix for each field."""

    def log_partition(self, fields: Vectors, cavity_variances: Matrices) -> Float[Tensor, "*batch"]:
        """log Z(h, V)."""

    def moments(self, fields: Vectors, cavity_variances: Matrices) -> tuple[Vectors, Matrices]:
        """Mean dlog Z / dh and covariance d^2 log Z / dh^2."""


def require_positive_definite(matrix: Tensor, name: str, meaning: str) -> Tensor:
    """The lower Cholesky factor, or an error that quotes the smallest eigenvalue."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if failed.any():
        smallest = float(torch.linalg.eigvalsh(matrix.detach()).min())
        raise ValueError(f"{name}: expected {meaning} to be positive definite, got smallest eigenvalue {smallest:.6g}")
    return factor


class Gaussian:
    """rho = N(0, Sigma): mean (Sigma^-1 - V)^-1 h, covariance (Sigma^-1 - V)^-1.

    ``covariance`` is Sigma (dim, dim), or one matrix for each spin (num_spins, dim, dim); the unit matrix unless given.
    log Z = h . (Sigma^-1 - V)^-1 h / 2 - log det(1 - Sigma V) / 2. Raises ``ValueError`` with the smallest eigenvalue
    if Sigma is not symmetric and positive, or if Sigma^-1 - V is not positive, where the integral diverges.
    Source: deep implicit attention, the equations after the choice of N(0, 1).

    >>> mean, covariance = Gaussian().moments(torch.tensor([1.0, 2.0]), torch.zeros(2, 2))
    >>> mean.tolist(), covariance.diagonal().tolist()
    ([1.0, 2.0], [1.0, 1.0])
    """

    def __init__(self, covariance: Float[TensorLike, "*spins dim dim"] | None = None) -> None:
        self.covariance = None if covariance is None else validate.tensor(covariance, "covariance")
        if self.covariance is not None:
            shape = tuple(self.covariance.shape)
            if len(shape) not in (2, 3) or shape[-1] != shape[-2] or 0 in shape:
                raise ValueError(f"covariance: expected shape (dim, dim) or (num_spins, dim, dim), got {shape}")
            tensors.require_symmetric(self.covariance, "covariance")
            require_positive_definite(self.covariance, "covariance", "the matrix")

    def precision(self, like: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*spins dim dim"]:
        """Sigma^-1, of the dtype and on the device of a field.

        >>> Gaussian([[2.0]]).precision(torch.zeros(1)).tolist()
        [[0.5]]
        """
        if self.covariance is None:
            return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)
        return torch.linalg.inv(self.covariance.to(like))

    def _factor(self, fields: Tensor, cavity_variances: Tensor) -> tuple[Tensor, Tensor]:
        precision = self.precision(fields)
        factor = require_positive_definite(
            precision - cavity_variances, "cavity_variances", "the prior's precision minus V"
        )
        return factor, precision

    def log_partition(self, fields: Vectors, cavity_variances: Matrices) -> Float[Tensor, "*batch"]:
        """h . (Sigma^-1 - V)^-1 h / 2 - log det(1 - Sigma V) / 2."""
        factor, precision = self._factor(fields, cavity_variances)
        log_det = 2 * torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1) - torch.logdet(precision)
        mean = torch.cholesky_solve(fields[..., None], factor)[..., 0]
        return ((fields * mean).sum(-1) - log_det) / 2

    def moments(self, fields: Vectors, cavity_variances: Matrices) -> tuple[Vectors, Matrices]:
        """(Sigma^-1 - V)^-1 h and (Sigma^-1 - V)^-1."""
        factor, _ = self._factor(fields, cavity_variances)
        covariance = torch.cholesky_inverse(factor)
        mean = torch.cholesky_solve(fields[..., None], factor)[..., 0]
        return mean, covariance.expand(*mean.shape, mean.shape[-1])


# 2^12 states for each spin are still summed quickly.
_MAX_COMPONENTS = 12


class Binary:
    """rho = uniform on {-1, +1}^dim: every component of a spin is an Ising spin.

    Sums over the 2^dim states of a spin, so that V may couple its components; at most 12 of them. For dim = 1 the
    mean is tanh(h) for any V. Source: deep implicit attention, eq. partfunbinaryspins, whose Z = cosh(h) lacks
    e^{V/2}.

    >>> mean, covariance = Binary().moments(torch.zeros(3), torch.zeros(3, 3))
    >>> covariance.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def _exponents(self, fields: Tensor, cavity_variances: Tensor) -> tuple[Tensor, Tensor]:
        dim = fields.shape[-1]
        if dim > _MAX_COMPONENTS:
            raise ValueError(f"fields: expected at most {_MAX_COMPONENTS} components, got {dim}")
        bits = torch.arange(2**dim, device=fields.device)[:, None] >> torch.arange(dim, device=fields.device) & 1
        S = (2 * bits - 1).to(fields.dtype)
        return S, fields @ S.T + ((S @ cavity_variances) * S).sum(-1) / 2

    def log_partition(self, fields: Vectors, cavity_variances: Matrices) -> Float[Tensor, "*batch"]:
        """log of the mean of exp(h . S + S . V S / 2) over the states."""
        S, exponents = self._exponents(fields, cavity_variances)
        return torch.logsumexp(exponents, dim=-1) - S.shape[-1] * math.log(2)

    def moments(self, fields: Vectors, cavity_variances: Matrices) -> tuple[Vectors, Matrices]:
        """Weighted mean and covariance of the states."""
        S, exponents = self._exponents(fields, cavity_variances)
        p = torch.softmax(exponents, dim=-1)
        mean = p @ S
        centred = S - mean[..., None, :]
        return mean, (centred * p[..., None]).mT @ centred


_NEWTON_STEPS = 60


@torch.no_grad()
def _saddle(fields: Tensor, cavity_variances: Tensor, square: float) -> tuple[Tensor, Tensor, Tensor]:
    """The stationary point, on the real axis right of all singularities, of

        phi(t) = t R^2 - log det(t - V/2) / 2 + h . (t - V/2)^-1 h / 4,

    with phi'' and phi''' there. phi' + R^2 is convex and falls, so that Newton's method from the left cannot overshoot.
    """
    half, basis = torch.linalg.eigh(cavity_variances / 2)
    h2 = (fields[..., None, :] @ basis)[..., 0, :] ** 2
    dim, gap = fields.shape[-1], half[..., -1:] - half
    # With all eigenvalues at the largest (smallest), the equation would be quadratic: this bounds u = t - max(V)/2.
    upper = (dim / 2 + (dim**2 / 4 + square * h2.sum(-1)).sqrt()) / (2 * square)
    u = torch.maximum(upper - gap[..., 0], torch.full_like(upper, 0.5 / square))
    for _ in range(_NEWTON_STEPS):
        G = 1 / (u[..., None] + gap)
        value = (G / 2 + h2 * G**2 / 4).sum(-1) - square
        slope = (G**2 / 2 + h2 * G**3 / 2).sum(-1)
        # Rounding of the bound may start the iteration on the right; it returns from there.
        step = value / slope
        u = torch.maximum(u + step, u / 2)
        if (step.abs() <= 4 * torch.finfo(u.dtype).eps * u).all():
            break
    G = 1 / (u[..., None] + gap)
    second = (G**2 / 2 + h2 * G**3 / 2).sum(-1)
    third = -(G**3 + 1.5 * h2 * G**4).sum(-1)
    return u + half[..., -1], second, third


# The integrand falls like exp(-y^2 / 4) or faster along the contour, and is analytic for |Im y| < 1.06.
_STEP, _NUM_NODES = 0.2, 65


class Spherical:
    """rho = uniform on the sphere |S| = R in any dimension, exactly, for any V.

    Z = Gamma(D/2) R^{2-D} / (2 pi i) times the integral of exp(phi(t)) over a contour from -i infinity to i infinity,
    right of the spectrum of V/2, with phi(t) = t R^2 - log det(t - V/2) / 2 + h . (t - V/2)^-1 h / 4: a spin whose
    length is free, and a multiplier t that fixes it. Quadrature along the path of steepest descent through the saddle
    point, to third order there, with 65 nodes: errors of about 1e-13 in float64. Cost: 65 inversions of dim x dim per
    spin.

    >>> mean, covariance = Spherical(2.0).moments(torch.tensor([0.0, 0.0]), torch.zeros(2, 2))
    >>> [[round(x, 4) + 0.0 for x in row] for row in covariance.tolist()]
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(self, radius: float) -> None:
        self.radius = float(tensors.positive(radius, "radius", ndim=0))

    def _weights(self, fields: Tensor, cavity_variances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log Z, the weight of each node (..., nodes) and G = (t - V/2)^-1 at each (..., nodes, dim, dim)."""
        square = self.radius**2
        dim = fields.shape[-1]
        place, second, third = _saddle(fields, cavity_variances, square)
        y = _STEP * torch.arange(_NUM_NODES, dtype=fields.dtype, device=fields.device)
        width = second.rsqrt()[..., None]
        bend = -(third / (6 * second))[..., None] * width**2
        t = torch.complex(place[..., None] - bend * y**2, width * y)
        velocity = torch.complex(-2 * bend * y, width.expand_as(t.real))
        # The eigenvalues alone: the derivative of eigenvectors does not exist where two coincide.
        half = torch.linalg.eigvalsh(cavity_variances) / 2
        eye = torch.eye(dim, dtype=t.dtype, device=t.device)
        G = torch.linalg.inv(t[..., None, None] * eye - cavity_variances[..., None, :, :] / 2)
        h = fields[..., None, :].to(t.dtype)
        log_det = (t[..., None] - half[..., None, :]).log().sum(-1)
        phi = t * square - log_det / 2 + (h[..., None, :] @ G @ h[..., :, None])[..., 0, 0] / 4
        # At the saddle phi is real and largest; it is factored out.
        peak = phi.real[..., :1]
        terms = torch.exp(phi - peak) * velocity
        # The other half of the contour is the complex conjugate; i dy / (2 pi i) leaves the real part.
        halves = torch.full_like(y, _STEP / math.pi)
        halves[0] /= 2
        weights = terms * halves / 1j
        total = weights.real.sum(-1)
        constant = math.lgamma(dim / 2) + (2 - dim) * math.log(self.radius)
        return constant + peak[..., 0] + total.log(), weights / total[..., None], G

    def log_partition(self, fields: Vectors, cavity_variances: Matrices) -> Float[Tensor, "*batch"]:
        """log of the mean of exp(h . S + S . V S / 2) over the sphere."""
        return self._weights(fields, cavity_variances)[0]

    def moments(self, fields: Vectors, cavity_variances: Matrices) -> tuple[Vectors, Matrices]:
        """The average over the contour of G h / 2, and of G / 2 plus the scatter of G h / 2."""
        _, weights, G = self._weights(fields, cavity_variances)
        means = (G @ fields[..., None, :, None].to(G.dtype))[..., 0] / 2
        mean = (weights[..., None] * means).sum(-2).real
        centred = means - mean[..., None, :]
        spread = (weights[..., None] * centred).mT @ centred
        covariance = ((weights[..., None, None] * G).sum(-3) / 2 + spread).real
        return mean, (covariance + covariance.mT) / 2
