"""Thermodynamics of coupled vector spins at the saddle point of their partition function.

Units of this package: spins sigma_i of length sqrt(D) with the energy E = -sum_ij J_ij sigma_i . sigma_j - sum_i
h_i . sigma_i, in which the sum counts every pair twice. Fields come in and mean spins go out divided by sqrt(D), and
energies and entropies are per vector dimension, that is, divided by D, for all N spins together. All of it is exact as
D goes to infinity; at finite D the error is of order 1/D, and of order 1/D^2 for ``*_next_order``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from spinbook import tensors, validate
from spinbook.adaptive_tap import implicit
from spinbook.annotations import ArrayLike, Float
from spinbook.free_energy import couplings as coupling_matrices
from spinbook.free_energy import saddle

__all__ = ["VectorSpinModel"]

Fields = Float[ArrayLike, "*batch N D"]
Start = Float[ArrayLike, "*batch N"] | None


def _converged(found: saddle.Saddle) -> saddle.Saddle:
    if not found.converged.all():
        worst = float(found.residual[~found.converged].max())
        raise RuntimeError(
            f"h: expected fields with a saddle point within reach, got a residual of {worst:.2g} after "
            f"{int(found.num_steps.max())} Newton steps (see saddle_point)"
        )
    return found


class VectorSpinModel(nn.Module):
    """Z(h) = integral of exp(-beta E) over N spins on spheres of radius sqrt(D), by steepest descent in t.

    ``beta``: a number, or one for each example; a tensor keeps its gradient, an ``nn.Parameter`` is registered.
    ``couplings``: without it, a parameter drawn by ``couplings.sample`` (with ``generator``); a matrix (N, N), which is
    a parameter if it is an ``nn.Parameter`` and fixed otherwise, symmetric with zero diagonal; or a function of the
    fields h, for example ``QueryKeyCouplings``, which returns such matrices, one for each example. Gradients with
    respect to a matrix are symmetric with zero diagonal, so that gradient descent leaves it so.

    Fields ``h`` are (..., N, D), **already divided by sqrt(D)**. Every method solves for the saddle itself, with a t
    for each spin. ``t0`` (N) or (..., N) is a start; with ``t0`` of shape (1) all sites share one t, and spins have
    their length only on average over the sites. ``RuntimeError`` where the solver does not converge, and ``ValueError``
    for h, couplings, beta or t0 outside their domain. Results follow the widest dtype among them.

    >>> model = VectorSpinModel(4, 9, couplings=torch.zeros(4, 4))
    >>> model.free_energy(torch.zeros(1, 4, 9)).abs()
    tensor([0.])
    """

    def __init__(
        self,
        num_spins: int,
        dim: int,
        beta: float | Tensor = 1.0,
        couplings: Float[ArrayLike, "N N"] | Callable[[Tensor], Tensor] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.num_spins = validate.count(num_spins, "num_spins", minimum=1)
        self.dim = validate.count(dim, "dim", minimum=1)
        tensors.positive(beta, "beta")
        self.beta = beta
        if couplings is None:
            couplings = nn.Parameter(coupling_matrices.sample(self.num_spins, self.dim, generator=generator))
        self.couplings: Any
        if callable(couplings) or (isinstance(couplings, Tensor) and couplings.requires_grad):
            self.couplings = couplings
        else:
            self.register_buffer("couplings", validate.tensor(couplings, "couplings", ndim=2))
        if not callable(couplings):
            self._matrix(self.couplings)

    def _matrix(self, H: Tensor) -> Tensor:
        """The couplings in these fields, symmetric with zero diagonal."""
        J = self.couplings(H) if callable(self.couplings) else self.couplings
        J = tensors.real(J, "couplings", (self.num_spins, self.num_spins), dtype=H.dtype, device=H.device)
        return coupling_matrices.symmetric_traceless(tensors.symmetric_zero_diagonal(J, "couplings"))

    def _inputs(self, h: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Fields, couplings and beta in one dtype, on one device."""
        fixed = None if callable(self.couplings) else self.couplings
        dtype, device = validate.common_tensor_type(h, fixed, self.beta)
        H = tensors.real(h, "h", (self.num_spins, self.dim), dtype=dtype, device=device)
        beta = tensors.positive(self.beta, "beta", dtype=dtype, device=device)
        tensors.fitting(beta.shape, H.shape[:-2], "beta")
        return H, self._matrix(H), beta

    def _auxiliaries(self, t: Any, name: str, like: Tensor) -> Tensor:
        value = tensors.real(t, name, (None,), dtype=like.dtype, device=like.device)
        if value.shape[-1] not in (1, self.num_spins):
            raise ValueError(f"{name}: expected shape (..., {self.num_spins}) or (..., 1), got {tuple(value.shape)}")
        return value

    @tensors.solver
    def _at(self, t: Any, h: Any) -> saddle.Point:
        H, J, beta = self._inputs(h)
        return saddle.at(self._auxiliaries(t, "t", H), J, H @ H.mT, beta, name="t")

    def _minimum(self, h: Any, t0: Any, **numerics: Any) -> tuple[Tensor, Tensor, saddle.Saddle]:
        H, J, beta = self._inputs(h)
        initial = None if t0 is None else self._auxiliaries(t0, "t0", H)
        if initial is not None:
            tensors.fitting(initial.shape[:-1], H.shape[:-2], "t0")
        return H, beta, saddle.minimum(J, H @ H.mT, beta, t0=initial, **numerics)

    def _saddle(self, h: Any, t0: Any = None) -> tuple[Tensor, Tensor, saddle.Saddle]:
        H, beta, found = self._minimum(h, t0)
        return H, beta, _converged(found)

    def phi(self, t: Float[ArrayLike, "*batch N"], h: Fields) -> Float[Tensor, "*batch"]:
        """phi(t) = beta sum_i t_i - 1/2 ln det V + beta/4 tr(H^T V^-1 H), V = diag(t) - J. Source: eq:varphinorm.

        ``t`` is (..., N), or (..., 1) for one t at all sites; its leading axes broadcast with those of ``h``, so that a
        grid of t may be used with one system. ``ValueError`` where V is not positive definite; see ``saddle.real_phi``.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).phi(torch.ones(1, 4), torch.zeros(1, 4, 9))
        tensor([4.])
        """
        return self._at(t, h).phi

    def gradient(self, t: Float[ArrayLike, "*batch N"], h: Fields) -> Float[Tensor, "*batch N"]:
        """d phi / d t_i = beta (1 - <|sigma_i|^2> / D), with the mean at this t. Arguments as for ``phi``.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).gradient(torch.ones(1, 4), torch.zeros(1, 4, 9))
        tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
        """
        return self._at(t, h).slope

    def hessian(self, t: Float[ArrayLike, "*batch N"], h: Fields) -> Float[Tensor, "*batch N N"]:
        """d^2 phi / d t_i d t_j = 1/2 (V^-1_ij)^2 + beta/2 V^-1_ij [V^-1 H H^T V^-1]_ij. Arguments as for ``phi``.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).hessian(torch.ones(1, 4), torch.zeros(1, 4, 9)).shape
        torch.Size([1, 4, 4])
        """
        return self._at(t, h).curvature

    @tensors.solver
    def saddle_point(
        self, h: Fields, *, t0: Start = None, tol: float = 1e-12, max_steps: int = 100
    ) -> implicit.FixedPoints:
        """t* = argmin phi(t) over V > 0, with residual, number of Newton steps, and whether it converged.

        ``residual`` is max_i |d phi / d t_i| / beta at this very t, the largest violation of the constraint
        <|sigma_i|^2> = D in units of D, summed over the sites for a single t. ``converged``: whether it is at most
        ``tol``, or what rounding allows if that is more. ``value`` is twice differentiable in h, couplings and beta.

        >>> found = VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).saddle_point(torch.ones(1, 4, 9))
        >>> found.value.shape, found.converged
        (torch.Size([1, 4]), tensor([True]))
        """
        tolerance = float(tensors.positive(tol, "tol", ndim=0))
        *_, found = self._minimum(h, t0, tol=tolerance, max_steps=validate.count(max_steps, "max_steps", minimum=1))
        return implicit.FixedPoints(found.t, found.residual, found.num_steps, found.converged)

    def _log_partition(self, beta: Tensor, phi: Tensor) -> Tensor:
        return phi - self.num_spins / 2 * (1 + torch.log(2 * beta))

    @tensors.solver
    def free_energy(self, h: Fields, *, t0: Start = None) -> Float[Tensor, "*batch"]:
        """f = -(1/beta) (-(N/2) (1 + ln 2 beta) + phi(t*)), the limit of -ln(Z / Z_0) / (beta D) for large D.

        Z_0 = Z at beta = 0, so that f does not contain the entropy of free spins. Because of the factor delta(D -
        |sigma_i|^2) in Z, Z_0 = (pi^(D/2) D^(D/2 - 1) / Gamma(D/2))^N; the source's factor is sqrt(D) larger per spin,
        which vanishes only as (ln D) / D. Source: eq:afe.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).free_energy(torch.ones(1, 4, 9)).shape
        torch.Size([1])
        """
        _, beta, found = self._saddle(h, t0)
        return -self._log_partition(beta, found.phi) / beta

    @tensors.solver
    def free_energy_next_order(self, h: Fields) -> Float[Tensor, "*batch"]:
        """f - (1/(beta D)) (N ln(sqrt(2) beta) - 1/2 ln det Hess phi(t*)): with the Gaussian fluctuations of t.

        The error is of order 1/D^2. Not in the source, which drops the term as ln R.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).free_energy_next_order(torch.ones(1, 4, 9)).shape
        torch.Size([1])
        """
        return self._next_order(*self._inputs(h))

    def _next_order(self, H: Tensor, J: Tensor, beta: Tensor) -> Tensor:
        found = _converged(saddle.minimum(J, H @ H.mT, beta))
        fluctuations = self.num_spins * torch.log(math.sqrt(2) * beta) - torch.logdet(found.curvature) / 2
        return -(self._log_partition(beta, found.phi) + fluctuations / self.dim) / beta

    @tensors.solver
    def magnetizations(self, h: Fields, *, t0: Start = None) -> Float[Tensor, "*batch N D"]:
        """m_i = <sigma_i> / sqrt(D) = 1/2 sum_j V^-1_ij h_j at t*, for these couplings.

        Equal to -df/dh for couplings that do not depend on h. The source's eq:spinev has beta/2, because it leaves the
        1/beta of (1/beta) d ln Z / dh out: right for beta = 1. Its error at finite D: about -0.15 / D for one spin.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).magnetizations(torch.ones(1, 4, 9)).shape
        torch.Size([1, 4, 9])
        """
        H, _, found = self._saddle(h, t0)
        return found.inverse @ H / 2

    @tensors.solver
    def magnetizations_next_order(self, h: Fields) -> Float[Tensor, "*batch N D"]:
        """-d f_next_order / dh, for couplings that do not depend on h: <sigma_i> / sqrt(D) with an error of 1/D^2.

        By autodiff through the saddle. ``ValueError`` for couplings computed from the inputs.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).magnetizations_next_order(torch.ones(4, 9)).shape
        torch.Size([4, 9])
        """
        self._require_fixed("magnetizations_next_order")
        return -tensors.gradient(self._next_order, *self._inputs(h))

    @tensors.solver
    def correlations(self, h: Fields) -> Float[Tensor, "*batch N N"]:
        """C_ij = <sigma_i . sigma_j> / D = V^-1_ij / (2 beta) + m_i . m_j, which is -df/dJ_ij.

        The derivative counts J_ij and J_ji apart, as the energy does. C_ii = 1 is the constraint that fixes t*.

        >>> VectorSpinModel(2, 9, couplings=torch.zeros(2, 2)).correlations(torch.zeros(2, 9)).abs().round(decimals=3)
        tensor([[1., 0.],
                [0., 1.]])
        """
        return self._correlations(*self._saddle(h))

    def _correlations(self, H: Tensor, beta: Tensor, found: saddle.Saddle) -> Tensor:
        m = found.inverse @ H / 2
        return found.inverse / (2 * beta[..., None, None]) + m @ m.mT

    @tensors.solver
    def internal_energy(self, h: Fields, *, t0: Start = None) -> Float[Tensor, "*batch"]:
        """u = <E> / D = d(beta f)/d beta = N/(2 beta) - sum_i t*_i - 1/4 tr(H^T V^-1 H), for each example.

        The same number as -sum_ij J_ij C_ij - sum_i h_i . m_i.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).internal_energy(torch.zeros(1, 4, 9)).tolist()
        [0.0]
        """
        H, beta, found = self._saddle(h, t0)
        sites = found.t.expand(*found.t.shape[:-1], self.num_spins).sum(-1)
        return self.num_spins / (2 * beta) - sites - ((H @ H.mT) * found.inverse).sum((-2, -1)) / 4

    @tensors.solver
    def specific_heat(self, h: Fields) -> Float[Tensor, "*batch"]:
        """c = -beta^2 du/d beta = N/2 - beta^2 v . Hess^-1 v, v_i = 1 - |m_i|^2, with k_B = 1.

        That is du/dT, and beta^2 times the variance of E, divided by D.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).specific_heat(torch.ones(1, 4, 9)).shape
        torch.Size([1])
        """
        H, beta, found = self._saddle(h)
        v = 1 - ((found.inverse @ H / 2) ** 2).sum(-1)
        response = torch.linalg.solve(found.curvature, v[..., None])[..., 0]
        return self.num_spins / 2 - beta**2 * (v * response).sum(-1)

    @tensors.solver
    def susceptibilities(self, h: Fields) -> Float[Tensor, "*batch N D N D"]:
        """chi_ia,jb = d<sigma_ia>/dh_jb = 1/2 V^-1_ij delta_ab - beta sum_kl V^-1_ik m_ka [Hess^-1]_kl m_lb V^-1_lj.

        The same with and without the factors sqrt(D), and equal to beta times the covariance of sigma_ia and sigma_jb;
        the second term is the stiffness of the spins along m. Memory: N^2 D^2 numbers for each example.

        >>> model = VectorSpinModel(2, 3, couplings=torch.zeros(2, 2))
        >>> model.susceptibilities(torch.ones(1, 2, 3)).shape
        torch.Size([1, 2, 3, 2, 3])
        """
        H, beta, found = self._saddle(h)
        P = found.inverse
        # The change of m with each auxiliary variable, and of each auxiliary variable with h.
        moved = P[..., :, None, :] * (P @ H / 2).mT[..., None, :, :]
        flat = moved.reshape(*moved.shape[:-3], -1, self.num_spins)
        stiff = flat @ torch.linalg.solve(found.curvature, flat.mT) * beta[..., None, None]
        free = P[..., :, None, :, None] * torch.eye(self.dim).to(P)[:, None, :] / 2
        return free - stiff.reshape(free.shape)

    @tensors.solver
    def channel_mixing(self, h: Fields) -> Float[Tensor, "*batch N D"]:
        """sum_jk C_jk dJ_jk/dh_i: what the dependence of the couplings on h adds to -df/dh; zero for fixed couplings.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).channel_mixing(torch.ones(1, 4, 9)).abs().sum()
        tensor(0.)
        """
        return self._field_gradient(h)[1]

    def _field_gradient(self, h: Any) -> tuple[Tensor, Tensor]:
        H, beta, found = self._saddle(h)
        m = found.inverse @ H / 2
        if not callable(self.couplings):
            return m, torch.zeros_like(m)
        C = self._correlations(H, beta, found)
        return m, tensors.gradient(lambda H, C: C * self._matrix(H), H, C)

    @tensors.solver
    def field_gradient(self, h: Fields) -> Float[Tensor, "*batch N D"]:
        """-df/dh_i = m_i + sum_jk C_jk dJ_jk/dh_i: tokens mixed by V^-1, and components by input-dependent couplings.

        ``magnetizations`` plus ``channel_mixing``. Only the first is the mean of a spin: with J(h) the total derivative
        of ln Z with respect to h is not, although the source calls it so (eq:spinevgeneral).

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).field_gradient(torch.ones(1, 4, 9)).shape
        torch.Size([1, 4, 9])
        """
        m, mixing = self._field_gradient(h)
        return m + mixing

    def _require_fixed(self, method: str) -> None:
        if callable(self.couplings):
            raise ValueError(f"couplings: expected a matrix for {method}, got couplings computed from the fields")

    @tensors.solver
    def log_prob(
        self, h: Fields, *, field_stiffness: float = 1.0, free_energy: Callable[[Tensor], Tensor] | None = None
    ) -> Float[Tensor, "*batch"]:
        """ln p(h) = -beta D (f(h) - f(0)) - beta D kappa/2 |h|^2 - beta N D/(2 kappa) - N D/2 ln(2 pi/(beta D kappa)).

        The density of the fields h (as passed, all N D components) when spins and fields are drawn together, from
        exp(-beta (E + kappa/2 sum_i |sqrt(D) h_i|^2)): the fields need an energy of their own, with ``field_stiffness``
        kappa, since Z(h) grows with |h| and has no integral over all h. It is normalised up to the error of f, which
        ``free_energy`` replaces, for instance by ``self.free_energy_next_order``. The source's p(h) has no kappa and
        hence no normalisation, and no beta in its exponent. ``ValueError`` for couplings computed from the fields.

        >>> VectorSpinModel(4, 9, couplings=torch.zeros(4, 4)).log_prob(torch.ones(1, 4, 9)).shape
        torch.Size([1])
        """
        self._require_fixed("log_prob")
        H, _, beta = self._inputs(h)
        kappa = tensors.positive(field_stiffness, "field_stiffness", ndim=0, dtype=H.dtype, device=H.device)
        f = self.free_energy if free_energy is None else free_energy
        # beta may have an entry for each example, so the zero field needs as many.
        difference = f(H) - f(torch.zeros_like(H))
        size = self.num_spins * self.dim
        own = beta * self.dim * (kappa / 2 * (H**2).sum((-2, -1)) + self.num_spins / (2 * kappa))
        return -beta * self.dim * difference - own - size / 2 * torch.log(2 * math.pi / (beta * self.dim * kappa))
