"""The compared modules in PyTorch behind one face, and a twin of the vanilla block to measure them by.

A module maps (batch, sites, dim) to a ``SettledBatch`` value, one verdict for each example. Wrappers add no parameters.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from experiments.comparison.blocks import require_sizes
from spinbook import validate
from spinbook.adaptive_tap import AdaptiveTAPAttention, MeanFieldAttention
from spinbook.adaptive_tap import couplings as coupling_tensors
from spinbook.free_energy import VectorSpinAttention
from spinbook.free_energy.couplings import QueryKeyCouplings

_DRAWING = threading.Lock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, PyTorch's global generator begins at this seed, for layers that draw their start; after, it is as before.

    All threads share that generator: a thread that enters waits until no other is inside, and a layer that is made
    outside meanwhile would take numbers away.
    """
    with _DRAWING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(validate.count(seed, "seed"))
        yield


class SettledBatch(NamedTuple):
    """``value`` (batch, sites, dim), and for each example whether it was found."""

    value: Float[Tensor, "B N D"]
    converged: Bool[Tensor, " B"]


def _settled(value: Tensor) -> SettledBatch:
    return SettledBatch(value, torch.ones(len(value), dtype=torch.bool, device=value.device))


def standardized(x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
    """(x - mean) / standard deviation over the components: layer normalisation without parameters.

    Takes its arguments without checks; its callers have checked them.

    >>> standardized(torch.arange(8.0)).abs().max().round(decimals=2)
    tensor(1.5300)
    """
    return functional.layer_norm(x, x.shape[-1:])


class Vanilla(nn.Module):
    """The pre-norm block of ``blocks.Block`` with attention and feed-forward network, with the same parameters.

    >>> Vanilla(8, 2)(torch.ones(3, 5, 8)).value.shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        require_sizes(dim=dim, num_heads=num_heads)
        self.num_heads = num_heads
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.to_queries_keys_values, self.to_output = (
            nn.Linear(dim, 3 * dim, bias=False),
            nn.Linear(dim, dim, bias=False),
        )
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        batch, sites, dim = x.shape
        width = dim // self.num_heads
        q, k, v = (
            self.to_queries_keys_values(self.norms[0](x))
            .reshape(batch, sites, 3, self.num_heads, width)
            .permute(2, 0, 3, 1, 4)
        )
        weights = torch.softmax(q @ k.mT / width**0.5, dim=-1)
        x = x + self.to_output((weights @ v).transpose(1, 2).reshape(x.shape))
        return _settled(x + self.down(functional.gelu(self.up(self.norms[1](x)))))


class MeanField(nn.Module):
    """S_i = sum_j J_ij S_j - f(S_i) + X_i with free couplings and a learned correction; X are standardised inputs.

    >>> MeanField(5, 8)(torch.ones(3, 5, 8)).value.shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, num_sites: int, dim: int, *, tol: float = 1e-3, max_steps: int = 100) -> None:
        super().__init__()
        self.module = MeanFieldAttention(num_sites, dim, tol=tol, max_steps=max_steps)

    def forward(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        found = self.module.solve(standardized(x))
        return SettledBatch(found.value, found.converged)


class AdaptiveTAP(nn.Module):
    """m = (1 - J)^-1 X with free symmetric couplings: adaptive TAP of Gaussian spins; X are standardised inputs.

    >>> AdaptiveTAP(5, 8)(torch.ones(3, 5, 8)).value.shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, num_sites: int, dim: int) -> None:
        super().__init__()
        # The literal parametrisation, which training can take out of the model's domain: that it does is a result.
        self.module = AdaptiveTAPAttention(num_sites, dim, symmetry=coupling_tensors.symmetrize)

    def forward(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        return _settled(self.module(standardized(x)))


class FreeEnergy(nn.Module):
    """-df/dh of vector spins whose couplings are symmetric functions of the fields h, the standardised inputs.

    >>> FreeEnergy(5, 8)(torch.ones(3, 5, 8)).value.shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, num_sites: int, dim: int) -> None:
        super().__init__()
        self.module = VectorSpinAttention(num_sites, dim, couplings=QueryKeyCouplings(num_sites, dim))

    def forward(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        return _settled(self.module(x))


class Stack(nn.Module):
    """x to the last of ``layers`` after all others; found where each of them was.

    >>> Stack([Vanilla(8, 2), Vanilla(8, 2)])(torch.ones(3, 5, 8)).value.shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        converged = torch.ones(len(x), dtype=torch.bool, device=x.device)
        for layer in self.layers:
            found = layer(x)
            x, converged = found.value, converged & found.converged
        return SettledBatch(x, converged)
