"""The compared modules in PyTorch behind one face, and a twin of the vanilla block to measure them by.

A module maps (batch, sites, dim) to a ``SettledBatch`` value, one verdict for each example. Wrappers add no parameters.
What else can be asked of some of them is a protocol: ``Solving``, ``Contracting``, ``Symmetric``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from experiments.comparison.blocks import require_sizes
from spinbook import validate
from spinbook.adaptive_tap import AdaptiveTAPAttention, MeanFieldAttention
from spinbook.adaptive_tap import couplings as coupling_tensors
from spinbook.fixed_point import spectral_radii
from spinbook.free_energy import VectorSpinAttention
from spinbook.free_energy.couplings import QueryKeyCouplings

__all__ = [
    "AdaptiveTAP",
    "Contracting",
    "FreeEnergy",
    "MeanField",
    "SettledBatch",
    "Solving",
    "Stack",
    "Symmetric",
    "Vanilla",
    "seeded",
    "standardized",
]

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
    """``value`` (batch, sites, dim), and for each example whether and in how many updates it was found."""

    value: Float[Tensor, "B N D"]
    converged: Bool[Tensor, " B"]
    num_steps: Int[Tensor, " B"]


@runtime_checkable
class Solving(Protocol):
    """A module with a solver that takes steps."""

    def evidence(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        """The value, without gradient, with whether and in how many steps it was found."""


@runtime_checkable
class Contracting(Protocol):
    """A module whose value is the fixed point of an update."""

    def contraction_factors(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, " B"]:
        """max |lambda| of the update's Jacobian at the fixed point of each example."""


@runtime_checkable
class Symmetric(Protocol):
    """A module whose couplings are symmetric, so that it produces no entropy."""

    symmetric: Literal[True]


def _settled(value: Tensor) -> SettledBatch:
    ones = torch.ones(len(value), dtype=torch.int64, device=value.device)
    return SettledBatch(value, ones.bool(), ones)


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
        return SettledBatch(found.value, found.converged, found.num_steps)

    @torch.no_grad()
    def evidence(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        """The value, without gradient, with whether and in how many steps it was found."""
        found: SettledBatch = self(x)
        return found

    def contraction_factors(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, " B"]:
        """max |lambda| of the update's Jacobian at the solution of each example."""
        fields = standardized(x)
        with torch.no_grad():
            spins = self.module.solve(fields).value
            jacobians = []
            for s, h in zip(spins, fields, strict=True):
                jacobian = torch.func.jacrev(lambda y, h=h: self.module.step(y[None], h[None])[0])(s)
                jacobians.append(jacobian.reshape(s.numel(), s.numel()))
            return torch.from_numpy(spectral_radii(torch.stack(jacobians).cpu().numpy()))


class AdaptiveTAP(nn.Module):
    """m = (1 - J)^-1 X with free symmetric couplings: adaptive TAP of Gaussian spins; X are standardised inputs.

    >>> AdaptiveTAP(5, 8)(torch.ones(3, 5, 8)).value.shape
    torch.Size([3, 5, 8])
    """

    symmetric: Literal[True] = True

    def __init__(self, num_sites: int, dim: int) -> None:
        super().__init__()
        # The literal parametrisation, which training can take out of the model's domain: that it does is a result.
        self.module = AdaptiveTAPAttention(num_sites, dim, symmetry=coupling_tensors.symmetrize)

    def forward(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        return _settled(self.module(standardized(x)))

    def contraction_factors(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, " B"]:
        """max |lambda| of J: of the update m = X + J m, which is not made, since the solution is known."""
        matrix = coupling_tensors.as_matrix(self.module.coupling_tensor().detach())
        return torch.linalg.eigvalsh(matrix).abs().amax().expand(len(x))


class FreeEnergy(nn.Module):
    """-df/dh of vector spins whose couplings are symmetric functions of the fields h, the standardised inputs.

    >>> FreeEnergy(5, 8)(torch.ones(3, 5, 8)).value.shape
    torch.Size([3, 5, 8])
    """

    symmetric: Literal[True] = True

    def __init__(self, num_sites: int, dim: int) -> None:
        super().__init__()
        self.module = VectorSpinAttention(num_sites, dim, couplings=QueryKeyCouplings(num_sites, dim))

    def forward(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        return _settled(self.module(x))

    def evidence(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        """The same with the steps of Newton's method that found the saddle point."""
        found = self.module.spin_model.saddle_point(self.module.fields(x).detach())
        return SettledBatch(self.module(x).detach(), found.converged, found.num_steps)


class Stack(nn.Module):
    """x to the last of ``layers`` after all others; found where each of them was, in the sum of their updates.

    >>> Stack([Vanilla(8, 2), Vanilla(8, 2)])(torch.ones(3, 5, 8)).num_steps.tolist()
    [2, 2, 2]
    """

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Float[Tensor, "B N D"]) -> SettledBatch:
        converged = torch.ones(len(x), dtype=torch.bool, device=x.device)
        num_steps = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        for layer in self.layers:
            found = layer(x)
            x, converged, num_steps = found.value, converged & found.converged, num_steps + found.num_steps
        return SettledBatch(x, converged, num_steps)

    def inputs(self, x: Float[Tensor, "B N D"]) -> tuple[Float[Tensor, "B N D"], ...]:
        """What each of the layers gets, without gradient.

        >>> [y.shape for y in Stack([Vanilla(8, 2)]).inputs(torch.ones(3, 5, 8))]
        [torch.Size([3, 5, 8])]
        """
        given = []
        with torch.no_grad():
            for layer in self.layers:
                given.append(x)
                x = layer(x).value
        return tuple(given)
