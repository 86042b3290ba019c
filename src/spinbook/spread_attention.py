"""Attention that counts how its neighbours fluctuate: the mended mean field of vector spins, in PyTorch.

With the same weights it gives the numbers of ``spinbook.spin_transformer.SpinTransformerModule`` in JAX with
``theory=spread`` and ``response=sphere.exact``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spinbook import tensors, validate
from spinbook.adaptive_tap import implicit
from spinbook.annotations import Bool, Float

__all__ = ["SpreadAttention"]

Inputs = Float[Tensor, "*batch N D"]
Mask = Bool[Tensor, "*#batch N N"] | None

# As in ``sphere.bessel_ratio``: the bounds converge fast from order 20 on.
_RAISED, _LEVELS = 20, 10


def _gain(squared: Tensor, beta: Tensor, order: float) -> Tensor:
    """f, with f h the exact mean of a spin in a field h of this squared length; ``order`` is R^2 = D/2 - 1."""
    t = beta**2 * order * squared
    n = order + _RAISED + torch.arange(_LEVELS + 1).to(t).reshape(-1, *(1,) * t.ndim)
    q = 1 / (n + 0.5 + ((n + 1.5) ** 2 + t).sqrt())
    for _ in range(_LEVELS):
        n = n[:-1]
        q = 1 / (n + 1 + ((n + 1) ** 2 + t * q[1:] / q[:-1]).sqrt())
    ratio = q[0]
    for k in reversed(range(_RAISED)):
        ratio = 1 / (2 * (order + k + 1) + t * ratio)
    return beta * order * ratio


class SpreadAttention(nn.Module):
    """x to m_i = f(|h_i|^2 + sum_j J_ij^2 (R^2 - |m_j|^2)) h_i, h_i = x_i + sum_j J_ij m_j; f h is the exact response.

    The means of vector spins of ``dim`` = D components and length R = sqrt(D/2 - 1): residual connection, attention and
    normalisation, repeated until nothing changes. The normalisation counts how the neighbours fluctuate, which naive
    attention leaves out and TAP overstates at large ``beta``. Inputs are scaled to the length R, and J^h_ij =
    softmax_j(q^h_i . k^h_j) with queries and keys from the linear map ``to_queries_keys``, the only parameter unless
    ``beta`` is an ``nn.Parameter``. Each of ``num_heads`` couples a slice of the components; J_ij^2 is their mean.

    Calls take ``x`` (..., N, D) and a boolean ``mask`` (N, N) or (..., N, N), True = may attend. A site whose row of
    the mask is False responds to its input alone; if its column is False too it is padding, and may be zero. Updates go
    on until one changes no entry by more than ``tol``, eps^0.7 unless given. After ``max_steps`` a call raises
    ``RuntimeError``; ``solve`` returns the evidence. Gradients are implicit and need no memory for the steps. Raises
    ``ValueError`` for shapes that do not fit, NaN, beta <= 0, two components or fewer for a head, masks that are not
    booleans, and zeros outside of padding. Source: as ``spinbook.vector.mean_field.spread_step``.

    >>> SpreadAttention(8, 2)(torch.ones(3, 5, 8), torch.ones(5, 5).tril().bool()).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self, dim: int, num_heads: int = 1, *, beta: float | Tensor = 1, tol: float | None = None, max_steps: int = 200
    ) -> None:
        super().__init__()
        self.dim = validate.count(dim, "dim", minimum=3)
        self.num_heads = validate.count(num_heads, "num_heads", minimum=1)
        if self.dim % self.num_heads or self.dim <= 2 * self.num_heads:
            raise ValueError(f"num_heads: expected a divisor of dim, {dim}, below its half, got {num_heads}")
        tensors.positive(beta, "beta", ndim=0)
        self.beta, self.max_steps = beta, validate.count(max_steps, "max_steps", minimum=1)
        self.tol = None if tol is None else validate.number(tol, "tol", above=0)
        self.to_queries_keys = nn.Linear(self.dim, 2 * self.dim, bias=False)

    def _solved(self, a: Tensor, allowed: Tensor) -> implicit.FixedPoints:
        beta = tensors.positive(self.beta, "beta", ndim=0, dtype=a.dtype, device=a.device)
        largest = a.detach().abs().amax(-1, keepdim=True)
        empty, padding = largest == 0, ~(allowed.any(-1) | allowed.any(-2))
        if (empty[..., 0] & ~padding).any():
            raise ValueError("x: expected vectors that are not zero, but for padding as the mask has it, got zero")
        # Divided first, so that no square overflows or vanishes.
        a, order = a / torch.where(empty, 1, largest), self.dim / 2 - 1
        x = order**0.5 * a / torch.where(empty, 1, a.norm(dim=-1, keepdim=True))
        by_heads = a.shape[0], a.shape[1], self.num_heads, -1
        q, k = (rows.reshape(by_heads).transpose(1, 2) for rows in self.to_queries_keys(x).chunk(2, dim=-1))
        hidden = ~allowed[:, None]
        J = torch.softmax((q @ k.mT).masked_fill(hidden, torch.finfo(a.dtype).min), dim=-1).masked_fill(hidden, 0)
        squared_couplings = J.square().mean(1)

        def update(m: Tensor) -> Tensor:
            h = x + (J @ m.reshape(by_heads).transpose(1, 2)).transpose(1, 2).reshape(x.shape)
            # Acceleration may try means beyond the sphere.
            variances = (order - m.square().sum(-1, keepdim=True)).clamp_min(0)
            return _gain(h.square().sum(-1, keepdim=True) + squared_couplings @ variances, beta, order) * h

        alone = _gain(x.square().sum(-1, keepdim=True), beta, order) * x
        tol = torch.finfo(a.dtype).eps ** 0.7 if self.tol is None else self.tol
        return implicit.solve(update, alone, tol=tol, max_steps=self.max_steps)

    @tensors.solver
    def solve(self, x: Inputs, mask: Mask = None) -> implicit.FixedPoints:
        """The means (..., N, D), with residual, number of steps and whether it converged, for each example (...)."""
        weight = self.to_queries_keys.weight
        a = tensors.real(x, "x", (None, self.dim), dtype=weight.dtype, device=weight.device)
        shape = *a.shape[:-1], a.shape[-2]
        allowed = torch.as_tensor(torch.ones(shape) > 0 if mask is None else mask, device=a.device)
        if a.numel() == 0 or allowed.dtype != torch.bool or allowed.shape not in (shape, shape[-2:]):
            got = f"{allowed.dtype} of shape {tuple(allowed.shape)} for x of shape {tuple(a.shape)}"
            raise ValueError(f"mask: expected booleans of shape {shape} or {shape[-2:]}, not empty, got {got}")
        flat = a[None].flatten(0, -3), allowed.expand(shape)[None].flatten(0, -3)
        found = self._solved(*flat)
        return implicit.FixedPoints(found.value.reshape(a.shape), *(e.reshape(shape[:-2]) for e in found[1:]))

    @tensors.solver
    def forward(self, x: Inputs, mask: Mask = None) -> Float[Tensor, "*batch N D"]:
        """The means (..., N, D); see the class."""
        found = self.solve(x, mask)
        if not found.converged.all():
            worst = found.residual[~found.converged].max().item()
            raise RuntimeError(f"expected a steady state in {self.max_steps} steps, got a residual of {worst:.2g}")
        return found.value
