"""Mean-field responses of vector spins as attention modules: inputs are fields, outputs are magnetizations.

The output is the fixed point of one equation, S_i = response(sum over couplings - correction(S_i) + X_i). Inputs are
used as they are, without embedding or normalisation; they should be of order one. ``AdaptiveTAPAttention`` computes the
correction from the couplings, ``MeanFieldAttention`` learns it. ``SoftmaxCouplings`` put a transformer into the same
equation, of which ``transformer_block`` is one step.

Modules solve in float32 or float64, with ``torch.autocast`` off, between the graphs of ``torch.compile``. They take
their batch in the leading axis, and are differentiated by ``backward`` or ``torch.autograd.functional``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from spinbook import tensors, validate
from spinbook.adaptive_tap import couplings as coupling_tensors
from spinbook.adaptive_tap import implicit, vector
from spinbook.adaptive_tap.ising import TensorLike
from spinbook.adaptive_tap.priors import Gaussian, Prior
from spinbook.annotations import Float

__all__ = [
    "AdaptiveTAPAttention",
    "CouplingTensor",
    "EquilibriumAttention",
    "FeedForward",
    "MeanFieldAttention",
    "NoCorrection",
    "SoftmaxCouplings",
    "transformer_block",
]

# A residual of this many roundings, relative to numbers of order one, unless another tolerance is asked for.
_ROUNDINGS = 1000


def _spins(x: TensorLike, num_spins: int, dim: int, like: Tensor) -> Tensor:
    spins = validate.tensor(x, "x", dtype=like.dtype, device=like.device)
    if spins.ndim != 3 or spins.shape[0] == 0 or spins.shape[1:] != (num_spins, dim):
        raise ValueError(f"x: expected shape (batch, {num_spins}, {dim}), got shape {tuple(spins.shape)}")
    return spins


def _require_converged(converged: Tensor, residual: Tensor) -> None:
    if not converged.all():
        worst, failed = float(residual.detach()[~converged].max()), int((~converged).sum())
        raise RuntimeError(
            f"{failed} of {converged.numel()} examples did not converge, with residuals up to {worst:.2g}"
        )


class _Coupled(nn.Module):
    """A module with free ``couplings`` (num_spins, num_spins, dim, dim), to which its ``symmetry`` is applied."""

    symmetry: Callable[[Tensor], Tensor]

    def __init__(
        self, num_spins: int, dim: int, couplings: TensorLike | None, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.num_spins = validate.count(num_spins, "num_spins", minimum=1)
        self.dim = validate.count(dim, "dim", minimum=1)
        if couplings is None:
            given = coupling_tensors.sample(self.num_spins, self.dim, generator=generator)
        else:
            given, wanted = validate.tensor(couplings, "couplings").detach().clone(), (num_spins, num_spins, dim, dim)
            if given.shape != wanted:
                raise ValueError(f"couplings: expected shape {wanted}, got shape {tuple(given.shape)}")
        self.couplings = nn.Parameter(given)

    def coupling_tensor(self) -> Float[Tensor, "N N D D"]:
        """J as it is used: the parameter with its symmetry and without self-couplings.

        >>> AdaptiveTAPAttention(7, 3).coupling_tensor().shape
        torch.Size([7, 7, 3, 3])
        """
        return coupling_tensors.without_self_couplings(self.symmetry(self.couplings))


class AdaptiveTAPAttention(_Coupled):
    """x to the m_i that solve m_i = mean(X_i + sum_j J_ij m_j - V_i m_i, V_i) with self-consistent V_i.

    The slow and explicit module, with the ``prior`` of each spin (``Gaussian`` unless given). For a Gaussian prior the
    output is (Sigma^-1 - J)^-1 X, by one Cholesky factorisation for the whole batch and without cavity variances. For
    other priors it is iterated with implicit gradients, and ``RuntimeError`` is raised if the iteration does not
    converge in ``max_steps``. ``solve`` returns the evidence and the variances.

    ``couplings`` (num_spins, num_spins, dim, dim) are a parameter. They must have a zero block diagonal and J_ij^{ab} =
    J_ji^{ba}, unless a ``symmetry`` from ``couplings`` is given, which is then applied to them. Drawn couplings have
    the source's variance 1 / (N D^2) before symmetrisation, scaled down to a largest eigenvalue of 1/2 where they would
    exceed it. At 1 the Gaussian model ceases to exist, so the symmetry for the prior N(0, 1) is ``couplings.Bounded``
    unless given: it leaves couplings unchanged up to a largest eigenvalue of 0.9, or half of the way from that of the
    given couplings to 1, which ``state_dict`` keeps. With another symmetry, such as the source's
    ``couplings.symmetrize_separately``, a call raises ``ValueError`` once the couplings have left the domain.
    Source: "Slow and explicit".

    >>> AdaptiveTAPAttention(7, 3)(torch.ones(2, 7, 3)).shape
    torch.Size([2, 7, 3])
    """

    def __init__(
        self,
        num_spins: int,
        dim: int,
        couplings: Float[TensorLike, "N N D D"] | None = None,
        *,
        prior: Prior | None = None,
        symmetry: Callable[[Tensor], Tensor] | None = None,
        tol: float | None = None,
        max_steps: int = 200,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(num_spins, dim, couplings, generator)
        self.prior = Gaussian() if prior is None else prior
        self.tol, self.max_steps = tol, validate.count(max_steps, "max_steps", minimum=1)
        J = self.couplings.detach()
        if couplings is None:
            J.copy_((coupling_tensors.symmetrize if symmetry is None else symmetry)(J))
            # A symmetry may return asymmetric couplings, an error below; their symmetric part sets the scale.
            J /= (2 * coupling_tensors.largest_eigenvalue(coupling_tensors.symmetrize(J))).clamp_min(1)
        if symmetry is None:
            vector.checked_couplings(J)
            symmetry = coupling_tensors.symmetrize
            if isinstance(self.prior, Gaussian):
                # Raises for couplings without a model.
                vector.gaussian_mean(J, J.new_zeros(self.num_spins, self.dim), self.prior)
                if self.prior.covariance is None:
                    # Changes neither the present couplings nor those close to them.
                    halfway = (1 + float(coupling_tensors.largest_eigenvalue(J))) / 2
                    symmetry = coupling_tensors.Bounded(max(coupling_tensors.INNER, halfway))
        self.symmetry = symmetry
        vector.checked_couplings(self.coupling_tensor())

    @tensors.solver
    def solve(self, x: Float[TensorLike, "batch N D"]) -> vector.VectorResponse:
        """Magnetizations, cavity variances and covariances with the evidence.

        >>> AdaptiveTAPAttention(7, 3).solve(torch.ones(2, 7, 3)).cavity_variances.shape
        torch.Size([2, 7, 3, 3])
        """
        X, J = _spins(x, self.num_spins, self.dim, self.couplings), self.coupling_tensor()
        if isinstance(self.prior, Gaussian):
            return vector.solve_gaussian(J, X, self.prior)
        tol = _ROUNDINGS * torch.finfo(J.dtype).eps if self.tol is None else self.tol
        return vector.solve(J, X, self.prior, tol=tol, max_steps=self.max_steps)

    @tensors.solver
    def forward(self, x: Float[TensorLike, "batch N D"]) -> Float[Tensor, "batch N D"]:
        """m; see the class."""
        if isinstance(self.prior, Gaussian):
            X = _spins(x, self.num_spins, self.dim, self.couplings)
            return vector.gaussian_mean(self.coupling_tensor(), X, self.prior)
        found = self.solve(x)
        _require_converged(found.converged, found.residual)
        return found.magnetizations


class CouplingTensor(_Coupled):
    """S to sum_j J_ij S_j with free couplings J_ij^{ab}, symmetric or not, and J_ii = 0.

    ``couplings`` (num_spins, num_spins, dim, dim) is a parameter, drawn with variance 1 / (N D^2) unless given.
    ``symmetry`` is a function of the module ``couplings``; ``unconstrained`` unless given.

    >>> CouplingTensor(7, 3)(torch.ones(2, 7, 3))(torch.ones(2, 7, 3)).shape
    torch.Size([2, 7, 3])
    """

    def __init__(
        self,
        num_spins: int,
        dim: int,
        couplings: Float[TensorLike, "N N D D"] | None = None,
        *,
        symmetry: Callable[[Tensor], Tensor] = coupling_tensors.unconstrained,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(num_spins, dim, couplings, generator)
        self.symmetry = symmetry

    def forward(self, inputs: Float[Tensor, "batch N D"]) -> Callable[[Tensor], Tensor]:
        """The sum over couplings as a function of the spins; the inputs do not matter."""
        transposed = coupling_tensors.as_matrix(self.coupling_tensor()).T.contiguous()
        return lambda spins: (spins.flatten(1) @ transposed).reshape(spins.shape)


class SoftmaxCouplings(nn.Module):
    """S to sum_j J_ij S_j with J_ij = softmax_j(X_i W_Q . X_j W_K / sqrt(dim / num_heads)) W_V, J_ii included.

    With several heads the components are cut into as many blocks, each with a softmax of its own. ``to_queries``,
    ``to_keys`` and ``to_values`` are linear maps without bias. Any number of spins.
    Source: deep implicit attention, eqs. softmaxcouplings, vanilla-attention.

    >>> SoftmaxCouplings(4, 2)(torch.ones(2, 7, 4))(torch.ones(2, 7, 4)).shape
    torch.Size([2, 7, 4])
    """

    def __init__(self, dim: int, num_heads: int = 1) -> None:
        super().__init__()
        self.dim = validate.count(dim, "dim", minimum=1)
        self.num_heads = validate.count(num_heads, "num_heads", minimum=1)
        if self.dim % self.num_heads:
            raise ValueError(f"num_heads: expected a divisor of dim = {self.dim}, got {self.num_heads}")
        self.to_queries = nn.Linear(self.dim, self.dim, bias=False)
        self.to_keys = nn.Linear(self.dim, self.dim, bias=False)
        self.to_values = nn.Linear(self.dim, self.dim, bias=False)

    def _heads(self, vectors: Tensor) -> Tensor:
        return vectors.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _weights(self, inputs: Tensor) -> Tensor:
        """The softmax of the scaled overlaps of queries and keys, (batch, heads, N, N): rows sum to one."""
        Q, K = self._heads(self.to_queries(inputs)), self._heads(self.to_keys(inputs))
        return torch.softmax(Q @ K.mT / (self.dim / self.num_heads) ** 0.5, dim=-1)

    def coupling_tensor(self, inputs: Float[Tensor, "batch N D"]) -> Float[Tensor, "batch N N D D"]:
        """J_ij^{ab} for these inputs, as the modules with free couplings store it.

        >>> SoftmaxCouplings(4, 2).coupling_tensor(torch.ones(2, 7, 4)).shape
        torch.Size([2, 7, 7, 4, 4])
        """
        each = self._weights(inputs).repeat_interleave(self.dim // self.num_heads, dim=1)
        return torch.einsum("baij,ac->bijac", each, self.to_values.weight)

    def forward(self, inputs: Float[Tensor, "batch N D"]) -> Callable[[Tensor], Tensor]:
        """The sum over the couplings J(X) as a function of the spins, without storing J."""
        weights = self._weights(inputs)

        def mixed(spins: Tensor) -> Tensor:
            return (weights @ self._heads(self.to_values(spins))).transpose(1, 2).reshape(spins.shape)

        return mixed


class FeedForward(nn.Sequential):
    """W_2 gelu(W_1 S + b_1) + b_2 for each spin by itself, with ``hidden_dim`` units, 4 dim unless given.

    >>> FeedForward(3)(torch.ones(2, 7, 3)).shape
    torch.Size([2, 7, 3])
    """

    def __init__(self, dim: int, hidden_dim: int | None = None) -> None:
        dim = validate.count(dim, "dim", minimum=1)
        units = 4 * dim if hidden_dim is None else validate.count(hidden_dim, "hidden_dim", minimum=1)
        super().__init__(nn.Linear(dim, units), nn.GELU(), nn.Linear(units, dim))


class NoCorrection(nn.Module):
    """f(S) = 0, with which the equation is naive mean field.

    >>> NoCorrection()(torch.ones(2)).tolist()
    [0.0, 0.0]
    """

    def forward(self, spins: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """0."""
        return torch.zeros_like(spins)


class EquilibriumAttention(nn.Module):
    """x to the S that solve S = response(interaction(X)(S) - correction(S) + X).

    ``interaction`` maps inputs (batch, N, D) to the sum over couplings, a function of the spins; ``correction`` maps
    the spins to the self-correction, zero by default; ``response`` is that of one spin to its field, by default linear
    (a Gaussian spin). A deep equilibrium layer: Anderson acceleration to a residual of ``tol`` (1000 roundings unless
    given), in units of the largest entry if ``relative``, with implicit gradients whose memory does not grow with the
    number of steps; ``eliminate`` and ``last_update`` as for ``implicit.solve``. ``forward`` raises ``RuntimeError`` if
    it does not converge in ``max_steps``; ``solve`` returns the last state with the evidence. Whether a fixed point
    exists and is unique depends on the modules. Source: eq. diaupdate.

    >>> EquilibriumAttention(SoftmaxCouplings(4), FeedForward(4))(torch.ones(2, 7, 4)).shape
    torch.Size([2, 7, 4])
    """

    def __init__(
        self,
        interaction: nn.Module,
        correction: nn.Module | None = None,
        *,
        response: Callable[[Tensor], Tensor] | None = None,
        tol: float | None = None,
        relative: bool = False,
        eliminate: bool = True,
        last_update: bool = False,
        max_steps: int = 200,
    ) -> None:
        super().__init__()
        self.interaction = interaction
        self.correction = NoCorrection() if correction is None else correction
        self.response = response
        self.tol, self.relative, self.eliminate, self.last_update = tol, relative, eliminate, last_update
        self.max_steps = validate.count(max_steps, "max_steps", minimum=1)

    def step(self, spins: Float[Tensor, "batch N D"], x: Float[Tensor, "batch N D"]) -> Float[Tensor, "batch N D"]:
        """response(interaction(X)(S) - correction(S) + X), once.

        >>> module = EquilibriumAttention(CouplingTensor(7, 3))
        >>> module.step(torch.zeros(2, 7, 3), torch.ones(2, 7, 3)).round(decimals=3).unique().tolist()
        [1.0]
        """
        return self._step(self.interaction(x), spins, x)

    def _step(self, over_couplings: Callable[[Tensor], Tensor], spins: Tensor, x: Tensor) -> Tensor:
        fields = over_couplings(spins) - self.correction(spins) + x
        return fields if self.response is None else self.response(fields)

    @tensors.solver
    def solve(self, x: Float[Tensor, "batch N D"]) -> implicit.FixedPoints:
        """The fixed point from S = 0, with residual, number of steps and whether it converged, for each example.

        >>> EquilibriumAttention(CouplingTensor(7, 3)).solve(torch.ones(2, 7, 3)).converged
        tensor([True, True])
        """
        inputs = validate.tensor(x, "x")
        if inputs.ndim != 3 or inputs.numel() == 0:
            raise ValueError(f"x: expected shape (batch, num_spins, dim), got shape {tuple(inputs.shape)}")
        tol = _ROUNDINGS * torch.finfo(inputs.dtype).eps if self.tol is None else self.tol
        # Couplings are computed once, not in every step.
        over_couplings, start = self.interaction(inputs), torch.zeros_like(inputs)
        return implicit.solve(
            lambda spins: self._step(over_couplings, spins, inputs),
            start,
            tol=tol,
            relative=self.relative,
            eliminate=self.eliminate,
            last_update=self.last_update,
            max_steps=self.max_steps,
        )

    @tensors.solver
    def forward(self, x: Float[Tensor, "batch N D"]) -> Float[Tensor, "batch N D"]:
        """The fixed point; see the class."""
        found = self.solve(x)
        _require_converged(found.converged, found.residual)
        return found.value


class MeanFieldAttention(EquilibriumAttention):
    """x to the S that solve S_i = sum_j J_ij S_j - f(S_i) + X_i, with free couplings J and a learned correction f.

    The fast and neural module: ``couplings`` and ``symmetry`` as for ``CouplingTensor``, which is the attribute
    ``interaction``; ``correction`` is a ``FeedForward`` unless given, and ``NoCorrection()`` leaves naive mean field.
    ``options`` are those of ``EquilibriumAttention``. Source: "Fast and neural", eq. diaupdate.

    >>> MeanFieldAttention(7, 3)(torch.ones(2, 7, 3)).shape
    torch.Size([2, 7, 3])
    """

    interaction: CouplingTensor

    def __init__(
        self,
        num_spins: int,
        dim: int,
        couplings: Float[TensorLike, "N N D D"] | None = None,
        *,
        symmetry: Callable[[Tensor], Tensor] = coupling_tensors.unconstrained,
        correction: nn.Module | None = None,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> None:
        interaction = CouplingTensor(num_spins, dim, couplings, symmetry=symmetry, generator=generator)
        correction = FeedForward(dim).to(interaction.couplings) if correction is None else correction
        super().__init__(interaction, correction, **options)

    @property
    def couplings(self) -> Tensor:
        """The free couplings (num_spins, num_spins, dim, dim), before their symmetry."""
        return self.interaction.couplings

    def coupling_tensor(self) -> Float[Tensor, "N N D D"]:
        """J as it is used; see ``CouplingTensor``."""
        return self.interaction.coupling_tensor()

    @tensors.solver
    def solve(self, x: Float[TensorLike, "batch N D"]) -> implicit.FixedPoints:
        """The fixed point from S = 0 with its evidence; see ``EquilibriumAttention``."""
        return super().solve(_spins(x, self.interaction.num_spins, self.interaction.dim, self.couplings))


def transformer_block(
    x: Float[Tensor, "batch N D"], interaction: nn.Module, feed_forward: Callable[[Tensor], Tensor]
) -> Float[Tensor, "batch N D"]:
    """X'_i + FeedForward(X'_i) with X'_i = sum_j J_ij(X) X_j + X_i: attention and feed-forward, without normalisations.

    One naive mean-field step from S = X, and the self-correction -f taken at its result instead of at S.
    Source: deep implicit attention, eq. vanilla-attention and the equation after it.

    >>> transformer_block(torch.ones(2, 7, 4), SoftmaxCouplings(4), FeedForward(4)).shape
    torch.Size([2, 7, 4])
    """
    naive = interaction(x)(x) + x
    return naive + feed_forward(naive)
