"""Gibbs sampling of vector spins on spheres, for any number of them.

Spins are unit vectors here, sigma_i / sqrt(D), in the units of ``VectorSpinModel``: fields are divided by sqrt(D), and
each pair of spins counts twice. All random numbers come from the generator that is passed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spinbook import tensors, validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["simulate", "spin_given_field", "uniform"]


def uniform(*shape: int, generator: torch.Generator, dtype: torch.dtype | None = None) -> Float[Tensor, "*batch D"]:
    """Unit vectors of shape (..., D), uniform over directions: a start for a chain.

    >>> uniform(3, 2, 5, generator=torch.Generator().manual_seed(0)).norm(dim=-1).round(decimals=3)
    tensor([[1., 1.],
            [1., 1.],
            [1., 1.]])
    """
    normal = torch.randn(shape, generator=generator, dtype=dtype, device=generator.device)
    return normal / torch.linalg.vector_norm(normal, dim=-1, keepdim=True)


def spin_given_field(field: Float[Tensor, "*batch D"], *, generator: torch.Generator) -> Float[Tensor, "*batch D"]:
    """s with density proportional to exp(field . s) on the unit sphere: von Mises-Fisher, by Wood's rejection.

    ``field`` (..., D) has every factor in it, and is not checked. Exact for any D >= 1 and any strength; about 1.5
    proposals for each spin.
    Source: Wood, Communications in Statistics 23 (1994) 157, with the beta variable from a random direction.

    >>> spin_given_field(torch.zeros(4, 3), generator=torch.Generator().manual_seed(0)).shape
    torch.Size([4, 3])
    """
    d = field.shape[-1]
    options: dict[str, Any] = {"generator": generator, "dtype": field.dtype, "device": field.device}
    if d == 1:
        up = torch.rand(field.shape, **options) < torch.sigmoid(2 * field)
        return torch.where(up, 1.0, -1.0).to(field.dtype)
    largest = field.abs().amax(-1, keepdim=True)
    direction = field / torch.where(largest > 0, largest, 1)
    length = torch.linalg.vector_norm(direction, dim=-1)
    first = torch.zeros_like(field)
    first[..., 0] = 1
    mean = torch.where((length > 0)[..., None], direction / torch.where(length > 0, length, 1)[..., None], first)
    m = d - 1
    # Wood's b = m / (2 k + sqrt(4 k^2 + m^2)) with q = 2 k / m: no field is too strong. Below x = (1 - b) / (1 + b).
    q = 2 * length * largest[..., 0] / m
    b = 1 / (q + torch.hypot(q, torch.ones_like(q)))
    # 2 k b / m, which goes from 0 to 1/2.
    pull = 1 / (1 + torch.hypot(1 / q, torch.ones_like(q)))
    spins = torch.full_like(field, torch.nan)
    # A field of NaN has no direction, so the loop must not wait for it.
    open_ = torch.isfinite(length)
    while open_.any():
        normal = torch.randn(field.shape, **options)
        along = (normal * mean).sum(-1)
        across = normal - along[..., None] * mean
        across = across / torch.linalg.vector_norm(across, dim=-1, keepdim=True)
        z = (1 + along / torch.linalg.vector_norm(normal, dim=-1)) / 2
        below = 1 - (1 - b) * z
        # 1 - w, and the acceptance from it: k (w - x) + m log((1 - x w) / (1 - x^2)) without cancellation.
        gap = 2 * b * z / below
        share = z / below
        work = m * pull * (1 / (1 + b) - share)
        entropy = m * torch.log((1 + b) / 2 * (1 + (1 - b) * share))
        enough = work + entropy >= torch.log(torch.rand(z.shape, **options))
        proposal = (1 - gap)[..., None] * mean + torch.sqrt(torch.clamp(gap * (2 - gap), min=0))[..., None] * across
        spins = torch.where((open_ & enough)[..., None], proposal, spins)
        open_ = open_ & ~enough
    return spins


def simulate(
    spins: Float[ArrayLike, "*batch N D"],
    couplings: Float[ArrayLike, "*#batch N N"],
    h: Float[ArrayLike, "*#batch N D"],
    *,
    beta: Float[ArrayLike, "*#batch"] = 1.0,
    steps: int,
    generator: torch.Generator,
) -> Float[Tensor, "steps *batch N D"]:
    """The states after each of ``steps`` Gibbs sweeps of every chain, with chains in the leading axes.

    A sweep draws s_i from exp(beta D s_i . (h_i + 2 sum_j J_ij s_j)), for i = 1 to N in turn; ``spins`` are unit
    vectors. ``ValueError`` for couplings that are not symmetric or have a diagonal, beta <= 0, and shapes that do not
    fit.

    >>> generator = torch.Generator().manual_seed(0)
    >>> start = uniform(10, 3, 4, generator=generator)
    >>> simulate(start, torch.zeros(3, 3), torch.zeros(3, 4), steps=5, generator=generator).shape
    torch.Size([5, 10, 3, 4])
    """
    dtype, device = validate.common_tensor_type(spins, h, couplings, beta)
    s = tensors.real(spins, "spins", (None, None), dtype=dtype, device=device).clone()
    n, d = s.shape[-2:]
    H = tensors.real(h, "h", (n, d), dtype=dtype, device=device)
    J = tensors.real(couplings, "couplings", (n, n), dtype=dtype, device=device)
    tensors.symmetric_zero_diagonal(J, "couplings")
    b = tensors.positive(beta, "beta", dtype=dtype, device=device)
    for leading, name in ((H.shape[:-2], "h"), (J.shape[:-2], "couplings"), (b.shape, "beta")):
        tensors.fitting(leading, s.shape[:-2], name)
    trajectory = torch.empty((validate.count(steps, "steps", minimum=1), *s.shape), dtype=s.dtype, device=s.device)
    for k in range(steps):
        for i in range(n):
            local = H[..., i, :] + 2 * (J[..., i, :, None] * s).sum(-2)
            s[..., i, :] = spin_given_field(b[..., None] * d * local, generator=generator)
        trajectory[k] = s
    return trajectory
