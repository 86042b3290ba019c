"""Benchmarks of ``experiments.comparison`` against the plain way to the same numbers. Each takes its size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from benchmarks import Benchmark
from experiments.comparison import blocks, training
from spinbook import fixed_point
from spinbook.entropy_production.relaxation import contraction_factor
from spinbook.spin_transformer import Relax, naive

__all__ = ["BENCHMARKS", "block", "contraction"]


def _relative(allowed):
    return lambda ours, baseline: float(np.max(np.abs(ours - baseline)) / np.max(np.abs(baseline)) / allowed)


def block(size=32, *, num_sites=17, dim=32, num_heads=4):
    """The vanilla block on a batch of ``size`` examples, against NumPy, one example after another."""
    keys = jax.random.split(jax.random.key(0), 3)
    module = blocks.Block(dim, blocks.Attention(dim, num_heads, key=keys[0]), blocks.FeedForward(dim, key=keys[1]))
    x = jax.random.normal(keys[2], (size, num_sites, dim), jnp.float32)
    compiled = jax.jit(jax.vmap(lambda example: module(example).value))
    qkv, output = np.asarray(module.mixer.to_queries_keys_values), np.asarray(module.mixer.to_output)
    up, down = np.asarray(module.feed_forward.up), np.asarray(module.feed_forward.down)

    def norm(y):
        centred = y - y.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-5))

    def plain(y):
        q, k, v = (norm(y) @ qkv.T).reshape(num_sites, 3, num_heads, -1).transpose(1, 2, 0, 3)
        weights = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(np.float32(dim // num_heads)))
        heads = weights / weights.sum(-1, keepdims=True) @ v
        y = y + heads.transpose(1, 0, 2).reshape(num_sites, dim) @ output.T
        hidden = norm(y) @ up.T
        return y + hidden * special.ndtr(hidden) @ down.T

    examples = np.asarray(x)
    return Benchmark(
        f"comparison.Block, {size} examples ({num_sites}, {dim}), forward, float32",
        lambda: jax.block_until_ready(compiled(x)),
        lambda: np.stack([plain(example) for example in examples]),
        _relative(1e-4),
    )


def contraction(size=8, *, num_sites=17, dim=72):
    """Contraction factors of ``size`` steady states in one compiled batch, against one Arnoldi iteration for each."""
    module = blocks.SpinBlock(dim, 1, naive, Relax(), key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (size, num_sites, dim), jnp.float32)
    compiled = jax.jit(jax.vmap(lambda example: training.hessenberg(*module.update(example))))
    return Benchmark(
        f"comparison.hessenberg, {size} states ({num_sites}, {dim}), float32",
        lambda: fixed_point.spectral_radii(np.asarray(compiled(x))),
        lambda: np.array([contraction_factor(*module.update(example)) for example in x]),
        _relative(1e-2),
    )


BENCHMARKS = (block, contraction)
