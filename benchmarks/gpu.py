"""The hot paths on a GPU against the same functions on the processors beside it. Each takes its size.

``ours`` is the GPU, with its arrays there before; a result counts when it is done. Without a GPU the processors stand
in for it, so that these functions can be tested anywhere; ``python -m benchmarks --gpu`` refuses to record that.
"""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks import Benchmark, free_energy, ising, spin_transformer
from spinbook.adaptive_tap import AdaptiveTAPAttention, couplings
from spinbook.free_energy import VectorSpinModel
from spinbook.ising import stochastic
from spinbook.self_attention import couplings as of_heads
from spinbook.self_attention import mean_field as attention
from spinbook.self_attention import paper_network, token_window
from spinbook.spin_transformer import SpinTransformerModule
from spinbook.vector import mean_field as vector

__all__ = ["BENCHMARKS", "BESIDE_A_BLOCK"]


def _apart(tolerance, ours, baseline):
    """Largest difference as a share of the largest number, in units of the tolerance."""
    return float(np.max(np.abs(ours - baseline)) / np.max(np.abs(baseline)) / tolerance)


def _in_jax(name, compute, arguments, deviation):
    """``arguments`` lie on the device before; what the function makes for itself is made there."""

    def on(device):
        placed = jax.device_put(arguments, device)

        def call():
            with jax.default_device(device):
                return jax.block_until_ready(compute(*placed))

        return call

    return Benchmark(name, on(jax.devices()[0]), on(jax.devices("cpu")[0]), deviation)


def _in_pytorch(name, model, x):
    """What a model of double precision returns, with the gradient of its squared length."""

    def on(device):
        placed, given = model(device), x.to(device)

        def call():
            source = given.clone().requires_grad_()
            out = placed(source)
            (gradient,) = torch.autograd.grad(out.square().sum(), source)
            return torch.stack([out.detach(), gradient]).cpu().numpy()

        return call

    return Benchmark(name, on("cuda" if torch.cuda.is_available() else "cpu"), on("cpu"), partial(_apart, 1e-8))


def module(size=512, *, batch=8, dim=512, num_heads=8, gradient=False):
    """A module of spins, and the gradient of a loss with respect to its inputs, in single precision."""
    made = SpinTransformerModule(dim, num_heads, key=jax.random.key(0), dtype=jnp.float32)
    arrays, rest = eqx.partition(made, eqx.is_array)
    x = jax.random.normal(jax.random.key(1), (batch, size, dim), jnp.float32)

    def forward(arrays, x):
        return jax.vmap(eqx.combine(arrays, rest))(x)

    backward = jax.grad(lambda arrays, x: jnp.mean(jnp.square(forward(arrays, x))), argnums=1)
    way = "gradient of its inputs" if gradient else "forward"
    # A solver of single precision stops where its changes are rounding; a gradient is a sum over all sites.
    return _in_jax(
        f"SpinTransformerModule, ({batch}, {size}, {dim}), {num_heads} heads, {way}, float32",
        jax.jit(backward if gradient else forward),
        (arrays, x),
        partial(_apart, 1e-2 if gradient else 1e-3),
    )


def tap(size=2048, *, dim=256):
    """One update of TAP for vector spins in single precision."""
    keys = jax.random.split(jax.random.key(0))
    J = jax.random.normal(keys[0], (size, size), jnp.float32) / np.float32(2 * np.sqrt(size))
    h = jax.random.normal(keys[1], (size, dim), jnp.float32)
    compute = jax.jit(lambda J, h: vector.tap_step(jnp.zeros_like(h), J, h, beta=1.0))
    return _in_jax(f"vector.mean_field.tap_step, {size} sites x {dim}, float32", compute, (J, h), partial(_apart, 1e-3))


def spins(size=4096, *, num_spins=2048, steps=20, beta=1.5):
    """Glauber dynamics of many replicas; rounding decides some of the draws, so that means are compared."""
    J, h = ising.system(num_spins, jnp.float32)
    start = jnp.ones((size, num_spins), jnp.float32)
    key = jax.random.key(2)
    return _in_jax(
        f"ising.stochastic.simulate, {num_spins} spins x {size} replicas x {steps} steps, float32",
        lambda start, J, h: stochastic.simulate(key, start, J, h, beta=beta, steps=steps).spins.mean(axis=1),
        (start, J, h),
        ising.standard_errors_apart,
    )


def orbit(steps=2000):
    """One orbit of the map of self-attention: small products, one after the other."""
    network, window = paper_network(), token_window(paper_network())
    # Below the onset of chaos rounding does not grow.
    compute = jax.jit(lambda x: attention.simulate(of_heads(network, beta=1.0), x, steps=steps)[1].attention)
    return _in_jax(
        f"self_attention.mean_field.simulate, one orbit x {steps} steps", compute, (window,), partial(_apart, 1e-8)
    )


def adaptive_tap(size=64, *, batch=4, dim=16):
    """Adaptive TAP attention with its gradient."""
    generator = torch.Generator().manual_seed(0)
    J = couplings.symmetrize(couplings.sample(size, dim, generator=generator, dtype=torch.float64))
    x = torch.randn(batch, size, dim, generator=generator, dtype=torch.float64) / dim**0.5
    return _in_pytorch(
        f"AdaptiveTAPAttention, {batch} x {size} spins x {dim}, with gradient",
        lambda device: AdaptiveTAPAttention(size, dim, J).to(device),
        x,
    )


def mean_spins(size=256, *, batch=8, dim=64):
    """Mean spins of the approximate free energy with their gradient."""
    J, h = free_energy.system(batch, size, dim)
    return _in_pytorch(
        f"VectorSpinModel, {batch} x {size} spins x {dim}, with gradient",
        lambda device: VectorSpinModel(size, dim, 1.0, J).to(device).magnetizations,
        h,
    )


BENCHMARKS = (module, partial(module, gradient=True), tap, spins, adaptive_tap, mean_spins, orbit)
BESIDE_A_BLOCK = (spin_transformer.forward, spin_transformer.backward, spin_transformer.stack)
"""The module beside a vanilla block, both on the GPU."""
