"""The lists of compared modules: what each is made of, and how wide it is under a budget of parameters.

Every module stands alone, or in a stack of its kind, between the same embedding of features and positions and the same
linear readout. ``MODULES`` are those that stand alone, ``stacked`` makes the rows of the comparison of depths. The
width is the one, among those that four heads divide where there are heads, that brings the number of all trainable
numbers, embedding and readout included, nearest to that of the vanilla model: what has fewer parameters per component
is given more components.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax

from experiments.comparison import blocks, mixers, torch_blocks
from experiments.comparison.tasks import Task
from spinbook import validate
from spinbook.spin_transformer import Relax, Theory, Unroll, naive, tap

VANILLA_WIDTH = 32
# For every solver that iterates: far below what a gradient of 32 examples resolves.
_TOLERANCE, _MAX_STEPS = 1e-3, 100
_HEADS = 4


class Module(NamedTuple):
    """One row. ``make`` (key, sites, width) gives the module, in JAX, or in PyTorch where ``framework`` says so.

    ``own`` (sites, width) counts its parameters. ``family`` is for grouping in tables and pictures. ``normalized``:
    whether the readout standardises what it reads, which it does unless the row is about leaving that out. Widths are
    multiples of ``multiple``. ``depth``: how many blocks there are, of which the vanilla model has as many.
    """

    name: str
    family: str
    make: Callable[[Any, int, int], Any]
    own: Callable[[int, int], int]
    framework: str = "jax"
    normalized: bool = True
    multiple: int = _HEADS
    depth: int = 1


# Its signature is that of its base, which a type checker does not see.
_attend: Any = blocks.Attention


def _vanilla(key: Any, sites: int, dim: int, **options: Any) -> blocks.Block:
    a, b = jax.random.split(key)
    return blocks.Block(dim, _attend(dim, _HEADS, key=a), blocks.FeedForward(dim, key=b), **options)


def _without_feed_forward(key: Any, sites: int, dim: int) -> blocks.Block:
    return blocks.Block(dim, _attend(dim, _HEADS, key=key), None)


def _mixer(mixer: Callable[[], Any], key: Any, sites: int, dim: int) -> blocks.Block:
    return blocks.Block(dim, mixer(), blocks.FeedForward(dim, key=key))


def _averaged(key: Any, sites: int, dim: int) -> blocks.Averaged:
    return blocks.Averaged(_mixer(blocks.Identity, key, sites, dim))


def _spins(theory: Theory, dynamics: Relax | Unroll, heads: int) -> Callable[[Any, int, int], Any]:
    return lambda key, sites, dim: blocks.SpinBlock(dim, heads, theory, dynamics, key=key)


def _spin_modules() -> list[Module]:
    return [
        Module(f"{theory} spins, {how}, {heads} head{'s' * (heads > 1)}", "spin transformer", make, _query_key)
        for theory, equations in (("naive", naive), ("TAP", tap))
        for how, dynamics in (("one step", Unroll(1)), ("converged", Relax(tol=_TOLERANCE, max_steps=_MAX_STEPS)))
        for heads in (1, _HEADS)
        for make in (_spins(equations, dynamics, heads),)
    ]


def _block(sites: int, dim: int) -> int:
    return 12 * dim * dim + 9 * dim


def _mlp_block(sites: int, dim: int) -> int:
    return 8 * dim * dim + 9 * dim


def _query_key(sites: int, dim: int) -> int:
    return 2 * dim * dim


def _symmetric(sites: int, dim: int) -> int:
    return sites * (sites - 1) // 2 * dim * dim


MODULES: tuple[Module, ...] = (
    Module("vanilla", "transformer", _vanilla, _block),
    *_spin_modules(),
    Module(
        "memory, three steps",
        "parallel block",
        lambda key, sites, dim: blocks.Memory(dim, 3, key=key),
        lambda n, d: 10 * d * d + 5 * d,
    ),
    Module(
        "mean-field implicit",
        "deep implicit",
        lambda key, sites, dim: torch_blocks.MeanField(sites, dim, tol=_TOLERANCE, max_steps=_MAX_STEPS),
        lambda n, d: n * (n - 1) * d * d + 8 * d * d + 5 * d,
        "torch",
        multiple=1,
    ),
    Module(
        "adaptive TAP, Gaussian",
        "deep implicit",
        lambda key, sites, dim: torch_blocks.AdaptiveTAP(sites, dim),
        _symmetric,
        "torch",
        multiple=1,
    ),
    Module(
        "free energy, symmetric",
        "free energy",
        lambda key, sites, dim: torch_blocks.FreeEnergy(sites, dim),
        lambda n, d: 2 * d * d + 2 * d,
        "torch",
    ),
    Module("identity mixer", "other mixers", partial(_mixer, blocks.Identity), _mlp_block),
    Module("identity mixer, averaged", "other mixers", _averaged, _mlp_block),
    Module("pooling mixer", "other mixers", partial(_mixer, blocks.Pooling), _mlp_block),
    Module("no residual", "ablations", partial(_vanilla, residual=False), _block),
    Module(
        "no normalisation",
        "ablations",
        partial(_vanilla, normalize=False),
        lambda n, d: _block(n, d) - 4 * d,
        normalized=False,
    ),
    Module("no feed-forward", "ablations", _without_feed_forward, lambda n, d: 4 * d * d + 2 * d),
)


def _attention(make: Callable[..., Any]) -> Callable[[Any, int, int], Any]:
    def block(key: Any, sites: int, dim: int) -> blocks.Block:
        a, b = jax.random.split(key)
        return blocks.Block(dim, make(dim, _HEADS, key=a), blocks.FeedForward(dim, key=b))

    return block


def _site_mlp(key: Any, sites: int, dim: int) -> blocks.Block:
    a, b = jax.random.split(key)
    return blocks.Block(dim, mixers.SiteMLP(sites, key=a), blocks.FeedForward(dim, key=b))


def _gated(key: Any, sites: int, dim: int) -> blocks.Block:
    return blocks.Block(dim, mixers.GatedMLP(sites, dim, key=key), None)


def _energy(key: Any, sites: int, dim: int) -> mixers.EnergyBlock:
    return mixers.EnergyBlock(dim, _HEADS, key=key)


@cache
def _rows(grid: tuple[int, ...]) -> dict[str, Module]:
    """One layer of each row of the comparison of depths, by name; pooling has to know the grid."""
    known = {module.name: module for module in MODULES}
    alone = (
        "vanilla",
        "no residual",
        "no normalisation",
        "no feed-forward",
        "identity mixer",
        "naive spins, one step, 4 heads",
        "TAP spins, one step, 4 heads",
        "memory, three steps",
        "adaptive TAP, Gaussian",
        "free energy, symmetric",
    )
    others = (
        Module(
            "pure normalisation",
            "attention",
            _attention(mixers.NormalizedAttention),
            lambda n, d: _block(n, d) + 2 * _HEADS,
        ),
        Module("ReLU attention", "attention", _attention(mixers.RectifiedAttention), _block),
        Module("local pooling", "other mixers", partial(_mixer, partial(mixers.LocalPooling, grid)), _mlp_block),
        Module("MLP-mixer", "other mixers", _site_mlp, lambda n, d: _mlp_block(n, d) + 4 * n * n + 3 * n),
        Module("gMLP", "other mixers", _gated, lambda n, d: 6 * d * d + 11 * d + n * n + n),
        Module("FNet", "other mixers", partial(_mixer, mixers.Fourier), _mlp_block),
        Module("energy transformer", "energy", _energy, lambda n, d: 6 * d * d + d + 1),
    )
    return {name: known[name] for name in alone} | {module.name: module for module in others}


ROWS: tuple[str, ...] = tuple(_rows((1,)))


def _stack(module: Module, depth: int) -> Callable[[Any, int, int], Any]:
    def make(key: Any, sites: int, dim: int) -> Any:
        if module.framework == "torch":
            # Layers draw from the generator of the framework, one after another.
            return torch_blocks.Stack(module.make(None, sites, dim) for _ in range(depth))
        return blocks.Stack(tuple(module.make(k, sites, dim) for k in jax.random.split(key, depth)))

    return make


def stacked(name: str, depth: int, grid: tuple[int, ...] = ()) -> Module:
    """``depth`` layers of the row ``name`` of ``ROWS``, one after another; the same object for the same arguments.

    ``grid``: how the sites lie, which local pooling has to know. Raises ``KeyError`` for a name that is not a row,
    and ``ValueError`` for a depth below 1.

    >>> stacked("FNet", 2).own(16, 8), stacked("FNet", 1).own(16, 8)
    (1168, 584)
    """
    return _stacked(name, validate.count(depth, "depth", minimum=1), tuple(grid))


@cache
def _stacked(name: str, depth: int, grid: tuple[int, ...]) -> Module:
    layer = _rows(grid)[name]
    own = layer.own
    return layer._replace(make=_stack(layer, depth), own=lambda n, d: depth * own(n, d), depth=depth)


def num_parameters(module: Module, task: Task, dim: int) -> int:
    """Trainable numbers of the module with its embedding, positions and readout; tied ones are counted once.

    >>> from experiments.comparison.tasks import recall
    >>> num_parameters(MODULES[0], recall(num_train=1), 32)
    14120
    """
    dim = validate.count(dim, "dim", minimum=1)
    outside = (task.num_features + task.num_sites) * dim + (dim + 1) * task.num_classes
    return outside + module.own(task.num_sites, dim)


def width(module: Module, task: Task) -> int:
    """The width with the number of parameters nearest to that of the vanilla model of width 32 and of the same depth.

    >>> from experiments.comparison.tasks import recall
    >>> [width(module, recall(num_train=1)) for module in MODULES[:2]]
    [32, 72]
    """
    wanted = num_parameters(stacked("vanilla", module.depth), task, VANILLA_WIDTH)
    return min(
        range(module.multiple, 1000, module.multiple), key=lambda dim: abs(num_parameters(module, task, dim) - wanted)
    )
