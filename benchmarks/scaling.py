"""How the time of a hot path grows with a size: the slope of its logarithm, beside the one that its operations have.

Each path is run at three or more sizes, each twice the one before. Processor time is fitted, which a second core does
not change, five times over: the extremes of five slopes hold the one that a machine without noise would show in 15 of
16 cases. At the sizes that a minute allows, terms of lower order and what a call costs at least still count, so that
slopes below the expected one are usual; a slope above it by more than a little would be a fault.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks import free_energy, seconds
from spinbook.adaptive_tap import AdaptiveTAPAttention, couplings
from spinbook.free_energy import VectorSpinModel
from spinbook.ising import mean_field, stochastic
from spinbook.self_attention import EXPONENTS_ONLY, bifurcation, paper_network
from spinbook.spin_transformer import SpinTransformerModule, Unroll
from spinbook.vector import mean_field as vector

__all__ = ["PATHS", "Path", "Slope", "slope"]


@dataclass(frozen=True)
class Path:
    """``make(size)`` gives a function that takes nothing; its time should grow as size to the power ``expected``."""

    name: str
    of: str
    expected: float
    sizes: tuple[int, ...]
    make: Callable[[int], Callable[[], Any]]


@dataclass(frozen=True)
class Slope:
    """``exponent`` of the medians, ``least`` and ``most`` of single rounds, and the median ``seconds`` of each size."""

    exponent: float
    least: float
    most: float
    seconds: tuple[float, ...]


def slope(path: Path, *, repeats: int = 5) -> Slope:
    """The exponent by least squares of the logarithm of processor time on that of size."""
    functions = [path.make(size) for size in path.sizes]
    for function in functions:
        jax.block_until_ready(function())
    # Sizes in turns, so that what else the machine does weighs on all.
    rounds = [[seconds(function)[1] for function in functions] for _ in range(repeats)]
    times = tuple(statistics.median(column) for column in zip(*rounds, strict=True))

    def fitted(times: Sequence[float]) -> float:
        if not min(times) > 0:
            raise ValueError(f"{path.name}, {path.of}: expected times that can be fitted, got {times}")
        return float(np.polyfit(np.log(path.sizes), np.log(times), 1)[0])

    singles = [fitted(times) for times in rounds]
    return Slope(fitted(times), min(singles), max(singles), times)


def _vectors(sites: int, dim: int, step: Any) -> Callable[[], Any]:
    keys = jax.random.split(jax.random.key(0), 2)
    J = jax.random.normal(keys[0], (sites, sites), jnp.float32) / math.sqrt(sites) / 2
    x = jax.random.normal(keys[1], (sites, dim), jnp.float32)
    m = jnp.zeros_like(x)
    return lambda: step(m, J, x, beta=1.0)


def _ising(spins: int, step: Any) -> Callable[[], Any]:
    keys = jax.random.split(jax.random.key(0), 2)
    J = jax.random.normal(keys[0], (spins, spins), jnp.float32) / math.sqrt(spins)
    return step(J, jax.random.normal(keys[1], (spins,), jnp.float32))


def _sampled(J: Any, h: Any) -> Callable[[], Any]:
    start = jnp.ones((256, len(h)), jnp.float32)
    return lambda: stochastic.simulate(jax.random.key(0), start, J, h, beta=1.0, steps=10).spins


def _followed(J: Any, h: Any) -> Callable[[], Any]:
    start = jnp.zeros((16, len(h)), jnp.float32)
    return lambda: mean_field.simulate(start, J, h, beta=0.5, steps=10)


def _swept(num_betas: int) -> Callable[[], Any]:
    betas = np.linspace(0.5, 1.2, num_betas)
    options: dict[str, Any] = {"start": None, "steps": 4000, "transient": 0, "num_exponents": 1, "num_threads": 1}
    return lambda: bifurcation(paper_network(), betas, observation=EXPONENTS_ONLY, **options).exponents.values


def _module(sites: int, dim: int) -> Callable[[], Any]:
    module = SpinTransformerModule(dim, 4, key=jax.random.key(0), dynamics=Unroll(4), dtype=jnp.float32)
    compiled = jax.jit(lambda x: module(x))
    x = jax.random.normal(jax.random.key(1), (sites, dim), jnp.float32)
    return lambda: compiled(x)


def _gaussian(sites: int) -> Callable[[], Any]:
    generator = torch.Generator().manual_seed(0)
    J = couplings.symmetrize(couplings.sample(sites, 8, generator=generator, dtype=torch.float64))
    x = torch.randn(1, sites, 8, generator=generator, dtype=torch.float64)
    module = AdaptiveTAPAttention(sites, 8, J)
    return lambda: module(x).detach().numpy()


def _saddle(sites: int, dim: int) -> Callable[[], Any]:
    J, h = free_energy.system(4, sites, dim)
    model = VectorSpinModel(sites, dim, 1.0, J)
    return lambda: model.magnetizations(h).detach().numpy()


PATHS = (
    Path("vector.mean_field.naive_step", "sites", 2, (512, 1024, 2048), lambda n: _vectors(n, 128, vector.naive_step)),
    Path("vector.mean_field.tap_step", "sites", 2, (256, 512, 1024), lambda n: _vectors(n, 64, vector.tap_step)),
    Path("vector.mean_field.tap_step", "components", 1, (64, 128, 256), lambda n: _vectors(512, n, vector.tap_step)),
    Path("SpinTransformerModule, 4 updates", "sites", 2, (256, 512, 1024), lambda n: _module(n, 128)),
    Path("SpinTransformerModule, 4 updates", "components", 1, (128, 256, 512), lambda n: _module(512, n)),
    Path("ising.stochastic.simulate", "spins", 2, (512, 1024, 2048), lambda n: _ising(n, _sampled)),
    Path("ising.mean_field.simulate, TAP", "spins", 2, (512, 1024, 2048), lambda n: _ising(n, _followed)),
    Path("self_attention.bifurcation, largest exponent", "betas", 1, (64, 128, 256, 512), _swept),
    Path("adaptive_tap.AdaptiveTAPAttention", "sites", 3, (64, 128, 256), _gaussian),
    Path("free_energy.VectorSpinModel", "sites", 3, (64, 128, 256), lambda n: _saddle(n, 32)),
    Path("free_energy.VectorSpinModel", "components", 1, (32, 64, 128), lambda n: _saddle(64, n)),
)
