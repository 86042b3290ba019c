"""The vector-spin model as an attention module, and V^-1 as an attention matrix."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from spinbook import tensors, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.free_energy.model import VectorSpinModel

__all__ = ["VectorSpinAttention", "neumann_terms"]


class VectorSpinAttention(nn.Module):
    """x to -df/dh at h = LayerNorm(x) / sqrt(D): inputs are fields, outputs derivatives of the free energy.

    With couplings that do not depend on h this is <sigma_i> / sqrt(D), a weighted sum of the inputs with weights
    V^-1_ij / 2; with ``QueryKeyCouplings`` a term is added that mixes components. Arguments as for
    ``VectorSpinModel``, which is the attribute ``spin_model``; ``norm`` is the layer normalisation, over the D
    components with a gain and a bias for each. Inputs and outputs are (..., N, D).

    With couplings that are a parameter the output depends on the order of the spins; with ``QueryKeyCouplings`` the
    module is equivariant under permutations of them. Source: "The attention module".

    >>> VectorSpinAttention(32, 128)(torch.ones(1, 32, 128)).shape
    torch.Size([1, 32, 128])
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
        self.spin_model = VectorSpinModel(num_spins, dim, beta, couplings, generator=generator)
        self.norm = nn.LayerNorm(self.spin_model.dim)

    @tensors.solver
    def fields(self, x: Float[Tensor, "*batch N D"]) -> Float[Tensor, "*batch N D"]:
        """h = LayerNorm(x) / sqrt(D), so that |h_i| is about 1.

        >>> x = torch.arange(6.0).reshape(1, 2, 3)
        >>> VectorSpinAttention(2, 3).fields(x).norm(dim=-1).detach().round(decimals=3)
        tensor([[1., 1.]])
        """
        shape = self.spin_model.num_spins, self.spin_model.dim
        inputs = tensors.real(x, "x", shape, dtype=self.norm.weight.dtype)
        return self.norm(inputs) / self.spin_model.dim**0.5

    @tensors.solver
    def forward(self, x: Float[Tensor, "*batch N D"]) -> Float[Tensor, "*batch N D"]:
        """-df/dh of the normalised inputs."""
        return self.spin_model.field_gradient(self.fields(x))


def neumann_terms(
    t: Float[ArrayLike, "*batch N"], couplings: Float[ArrayLike, "*batch N N"], num_terms: int
) -> Float[Tensor, "num_terms *batch N N"]:
    """(diag(1/t) J)^k diag(1/t) for k = 0, 1, ...: the terms that sum to V^-1, if the spectral radius is below 1.

    Term 0 is the residual connection, which passes each input on to itself; term k reaches sites k couplings away. The
    spectral radius is that of diag(1/t) J. Source: footnote 7.

    >>> terms = neumann_terms([2.0, 2.0], [[0.0, 1.0], [1.0, 0.0]], 40)
    >>> terms.sum(0)
    tensor([[0.6667, 0.3333],
            [0.3333, 0.6667]], dtype=torch.float64)
    """
    dtype, device = validate.common_tensor_type(t, couplings)
    sites = tensors.positive(t, "t", dtype=dtype, device=device)
    n = sites.shape[-1] if sites.ndim else 1
    J = tensors.real(couplings, "couplings", (n, n), dtype=dtype, device=device)
    terms = [torch.diag_embed(1 / sites).expand(torch.broadcast_shapes(J.shape, (*sites.shape, n)))]
    for _ in range(validate.count(num_terms, "num_terms", minimum=1) - 1):
        terms.append(J @ terms[-1] / sites[..., :, None])
    return torch.stack(terms)
