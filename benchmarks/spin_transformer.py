"""Benchmarks of ``spinbook.spin_transformer`` against a plain transformer block. Each takes its size.

The block has the same sites, components and heads: attention, a feed-forward layer of four times the width, residual
connections. On two cores of 2.5 GHz it was recorded at .049 s forward and .172 s with backward for 512 sites of 512
components and eight heads, the source's program at .304 and 1.96 s; only ratios carry over to another machine. Here a
ratio below one says how much dearer a physical module is: the goal is one third, the bar one quarter.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import Benchmark
from spinbook.spin_transformer import SpinTransformer, SpinTransformerModule

__all__ = ["BENCHMARKS", "backward", "forward", "stack"]


def _uniform(key, outputs, inputs):
    return jax.random.uniform(key, (outputs, inputs), jnp.float32, -1, 1) / np.float32(math.sqrt(inputs))


def _block_parameters(key, dim):
    keys = jax.random.split(key, 4)
    shapes = ((3 * dim, dim), (dim, dim), (4 * dim, dim), (dim, 4 * dim))
    return [_uniform(k, *shape) for k, shape in zip(keys, shapes, strict=True)]


def _block(parameters, x, num_heads):
    """Attention and feed-forward with residual connections; the cheapest block, without normalisation."""
    qkv, out, up, down = parameters
    sites, dim = x.shape
    width = dim // num_heads
    q, k, v = (a.reshape(sites, num_heads, width).transpose(1, 0, 2) for a in jnp.split(x @ qkv.T, 3, -1))
    attention = jax.nn.softmax(q @ k.transpose(0, 2, 1) / np.float32(math.sqrt(width)), axis=-1)
    x = x + (attention @ v).transpose(1, 0, 2).reshape(sites, dim) @ out.T
    return x + jax.nn.gelu(x @ up.T) @ down.T


def _finite(ours, baseline):
    """The two are different models: what counts is that neither is NaN, which would make a solver stop early."""
    return 0.0 if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((ours, baseline))) else math.inf


def _inputs(num_sites, dim):
    return jax.random.normal(jax.random.key(1), (1, num_sites, dim), jnp.float32)


def _compared(name, model, parameters, block, x, gradient):
    arrays, rest = eqx.partition(model, eqx.is_array)

    def ours(arrays, x):
        return jax.vmap(eqx.combine(arrays, rest))(x)

    def plain(parameters, x):
        return jax.vmap(lambda x: block(parameters, x))(x)

    def trained(function):
        gradient = jax.value_and_grad(lambda a: jnp.mean(jnp.square(function(*a))))

        def numbers(a):
            loss, slopes = gradient(a)
            # The two have different parameters: one number for all slopes, so that none is left out.
            return jnp.stack([loss, sum(jnp.mean(jnp.abs(leaf)) for leaf in jax.tree.leaves(slopes))])

        return jax.jit(numbers)

    fast, slow = (trained(f) if gradient else jax.jit(lambda a, f=f: f(*a)) for f in (ours, plain))
    return Benchmark(
        name,
        lambda: jax.block_until_ready(fast((arrays, x))),
        lambda: jax.block_until_ready(slow((parameters, x))),
        _finite,
    )


def _module(size, dim, num_heads, gradient):
    key = jax.random.key(0)
    what = "forward and backward" if gradient else "forward"
    return _compared(
        f"spin_transformer.SpinTransformerModule, (1, {size}, {dim}), {num_heads} heads, {what}, float32",
        SpinTransformerModule(dim, num_heads, key=key, dtype=jnp.float32),
        _block_parameters(key, dim),
        lambda parameters, x: _block(parameters, x, num_heads),
        _inputs(size, dim),
        gradient,
    )


def forward(size=512, *, dim=512, num_heads=8):
    """The module alone."""
    return _module(size, dim, num_heads, False)


def backward(size=512, *, dim=512, num_heads=8):
    """The module with the gradient of a loss with respect to its parameters and inputs."""
    return _module(size, dim, num_heads, True)


def stack(size=512, *, dim=512, num_heads=8, depth=6):
    """Modules in a row, with gradient."""
    key = jax.random.key(0)
    layers = [_block_parameters(k, dim) for k in jax.random.split(key, depth)]
    parameters = [jnp.stack(group) for group in zip(*layers, strict=True)]

    def blocks(parameters, x):
        return jax.lax.scan(lambda x, layer: (_block(layer, x, num_heads), None), x, parameters)[0]

    return _compared(
        f"spin_transformer.SpinTransformer, depth {depth}, (1, {size}, {dim}), {num_heads} heads, forward and backward",
        SpinTransformer(depth, dim, num_heads, key=key, dtype=jnp.float32),
        parameters,
        blocks,
        _inputs(size, dim),
        True,
    )


BENCHMARKS = (forward, backward, stack)
