"""Benchmarks of ``spinbook.spin_transformer``: against a plain transformer block, and against the same map in PyTorch.

The block has the same sites, components and heads: attention, a feed-forward layer of four times the width, residual
connections. A ratio below one says how much dearer the physical module is. ``relaxation`` compares two programs of one
map: ours against a loop in PyTorch, or the authors' module where the package ``neqnn`` is installed.
"""

from __future__ import annotations

import importlib.util
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks import Benchmark
from spinbook.spin_transformer import (
    Learned,
    Rotary,
    SpinTransformerModule,
    Unroll,
    as_fields,
    naive,
    sphere_per_head,
    unit_length,
)


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


def forward(size=512, *, dim=512, num_heads=8):
    """The module at second order, against a plain block: two models, whose costs are compared."""
    key = jax.random.key(0)
    model = SpinTransformerModule(dim, num_heads, key=key, dtype=jnp.float32)
    arrays, rest = eqx.partition(model, eqx.is_array)
    parameters, x = _block_parameters(key, dim), _inputs(size, dim)
    ours = jax.jit(lambda arrays, x: jax.vmap(eqx.combine(arrays, rest))(x))
    plain = jax.jit(lambda parameters, x: jax.vmap(lambda x: _block(parameters, x, num_heads))(x))
    return Benchmark(
        f"spin_transformer.SpinTransformerModule, (1, {size}, {dim}), {num_heads} heads, forward, float32",
        lambda: jax.block_until_ready(ours(arrays, x)),
        lambda: jax.block_until_ready(plain(parameters, x)),
        _finite,
    )


class _Loop(torch.nn.Module):
    """The map of the module in PyTorch, updated K times."""

    def __init__(self, dim, num_heads, num_steps):
        super().__init__()
        self.num_heads, self.num_steps, self.radius = num_heads, num_steps, math.sqrt(dim / num_heads / 2 - 1)
        shapes = {"to_queries_keys": (2 * dim, dim), "to_v": (dim, dim), "up": (4 * dim, dim), "down": (dim, 4 * dim)}
        for name, shape in shapes.items():
            setattr(self, name, torch.nn.Parameter(torch.empty(shape)))
        self.sharpness = math.sqrt(dim / num_heads)

    def _heads(self, a):
        return a.unflatten(-1, (self.num_heads, -1)).transpose(0, 1)

    def _response(self, h):
        return h / (1 + torch.sqrt(1 + (h / self.radius).square().sum(-1, keepdim=True)))

    def forward(self, x):
        sites = len(x)
        a = torch.nn.functional.normalize(self._heads(x), dim=-1) * self.radius
        rows = a.transpose(0, 1).flatten(1)
        drive = self._heads(x + torch.nn.functional.gelu(rows @ self.up.T) @ self.down.T)
        q, k = (
            torch.nn.functional.normalize(self._heads(p), dim=-1)
            for p in (rows @ self.to_queries_keys.T).chunk(2, dim=-1)
        )
        pairs = q.shape[-1] // 2
        angles = torch.arange(sites)[:, None] * 10_000.0 ** (-torch.arange(pairs) / pairs)
        turn = torch.polar(torch.ones_like(angles), angles)
        q, k = (torch.view_as_real(torch.view_as_complex(p.unflatten(-1, (-1, 2))) * turn).flatten(-2) for p in (q, k))
        logits = (self.sharpness * q @ k.mT).masked_fill(torch.ones(sites, sites).triu(1).bool(), -torch.inf)
        couplings = logits.softmax(-1)
        m = self._response(self._heads(rows @ self.to_v.T))
        for _ in range(self.num_steps):
            m = self._response(drive + couplings @ m)
        return m.transpose(0, 1).flatten(1)


def _in_pytorch(module, dim, num_heads, num_steps, package):
    """The name of the baseline, and the function that takes (sites, dim), with the weights of ours."""
    ours = module.to_queries_keys.weight, module.start.weight, module.memory.up, module.memory.down
    if package is None:
        loop = _Loop(dim, num_heads, num_steps)
        name, function, theirs = "a loop in PyTorch", loop, (loop.to_queries_keys, loop.to_v, loop.up, loop.down)
    else:
        options = {"causal": True, "rope": True, "ffn": True, "init": "learned"}
        made = importlib.import_module(package).SpinModelTransformerModule(
            dim=dim, num_heads=num_heads, num_steps=num_steps, **options
        )
        name, theirs = package, (made.to_qk.weight, made.to_v.weight, made.ffn[0].weight, made.ffn[2].weight)

        def function(x):
            return made(x[None]).magnetizations[0]

    with torch.no_grad():
        for weight, values in zip(theirs, ours, strict=True):
            weight.copy_(torch.tensor(np.asarray(values)))
    return name, function


def relaxation(size=128, *, dim=256, num_heads=4, num_steps=1):
    """The module with all options of a transformer, against the same map in PyTorch; the authors' where installed."""
    package = "neqnn" if importlib.util.find_spec("neqnn") else None
    module = SpinTransformerModule(
        dim,
        num_heads,
        key=jax.random.key(0),
        theory=naive,
        spheres=sphere_per_head,
        dynamics=Unroll(num_steps),
        inputs=as_fields,
        start=Learned,
        feed_forward=4 * dim,
        query_key_maps=(unit_length, Rotary()),
        sharpness=math.sqrt(dim / num_heads),
        dtype=jnp.float32,
    )
    arrays, rest = eqx.partition(module, eqx.is_array)
    x = _inputs(size, dim)[0]
    mask = np.tril(np.ones((size, size), bool))
    name, baseline = _in_pytorch(module, dim, num_heads, num_steps, package)
    given = torch.tensor(np.asarray(x))
    compiled = jax.jit(lambda arrays, x: eqx.combine(arrays, rest)(x, mask))

    def plain():
        with torch.no_grad():
            return baseline(given).numpy()

    return Benchmark(
        f"spin_transformer.relaxation, ({size}, {dim}), K = {num_steps}, forward, float32, {name}",
        lambda: jax.block_until_ready(compiled(arrays, x)),
        plain,
        lambda ours, plain: float(np.max(np.abs(ours - plain)) / np.max(np.abs(plain)) / 1e-3),
    )


BENCHMARKS = (forward, relaxation)
