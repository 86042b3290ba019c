"""Benchmarks of ``spinbook.spin_transformer`` against a plain transformer block. Each takes its size.

The block has the same sites, components and heads: attention, a feed-forward layer of four times the width, residual
connections. On two cores of 2.5 GHz it was recorded at .049 s forward and .172 s with backward for 512 sites of 512
components and eight heads, the source's program at .304 and 1.96 s; only ratios carry over to another machine. Here a
ratio below one says how much dearer a physical module is: the goal is one third, the bar one quarter.

``relaxation`` is another race: the module with a learned start, rotary positions, cosines, a feed-forward field and a
causal mask, after K updates or in its steady state, against the same map in PyTorch with the same weights: a plain loop
written here, or the authors' module (``package="neqnn"``) where it is installed. A ratio above one says that ours is
faster.
"""

from __future__ import annotations

import importlib
import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks import Benchmark
from spinbook.spin_transformer import (
    Learned,
    Relax,
    Rotary,
    SpinTransformer,
    SpinTransformerModule,
    Unroll,
    as_fields,
    naive,
    sphere_per_head,
    unit_length,
)

__all__ = ["BENCHMARKS", "RELAXATIONS", "backward", "forward", "products", "relaxation", "stack"]


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


def products(size=512, *, dim=512, num_heads=8):
    """Multiplications in the matrix products of the module and of the block, and how often the module is evaluated.

    Of the block 12 N D^2 for queries, keys, values, output and feed-forward layer, and 2 N^2 D for attention. Of the
    module 2 N D^2 for queries and keys, N^2 D for logits, and 3 N^2 D for each evaluation of the right side of its
    equation: what spins receive, the overlaps sum_k J^k_ij theta^k_i . m^k_j, and what these send. Number of heads and
    element-wise work do not count; the number of evaluations is that of the input of ``forward``.
    """
    module = SpinTransformerModule(dim, num_heads, key=jax.random.key(0), dtype=jnp.float32)
    evaluations = int(module.steady_state(_inputs(size, dim)[0]).num_steps) + 1
    block = 12 * size * dim**2 + 2 * size**2 * dim
    ours = 2 * size * dim**2 + size**2 * dim * (1 + 3 * evaluations)
    return {"evaluations": evaluations, "products": [ours, block]}


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


class _Loop(torch.nn.Module):
    """The map of the module in PyTorch, updated K times, or until it moves no component by more than 1e-5."""

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
        for _ in range(100 if self.num_steps is None else self.num_steps):
            before, m = m, self._response(drive + couplings @ m)
            if self.num_steps is None and float((m - before).detach().abs().max()) < 1e-5:
                break
        return m.transpose(0, 1).flatten(1)


def _in_pytorch(module, dim, num_heads, num_steps, package):
    """The name of the baseline, the function that takes (sites, dim), and its weights in the order of ours."""
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
    return name, function, theirs


def relaxation(size=128, *, dim=256, num_heads=4, num_steps=1, gradient=False, package=None):
    """The module with all options of a transformer, against the same in PyTorch; ``num_steps`` None: steady state.

    ``package`` is that whose module the baseline is, or None for a loop.
    """
    module = SpinTransformerModule(
        dim,
        num_heads,
        key=jax.random.key(0),
        theory=naive,
        spheres=sphere_per_head,
        dynamics=Relax() if num_steps is None else Unroll(num_steps),
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
    name, baseline, weights = _in_pytorch(module, dim, num_heads, num_steps, package)
    given = torch.tensor(np.asarray(x))

    def forward(arrays, x):
        return eqx.combine(arrays, rest)(x, mask)

    def trained(arrays, x):
        by_arrays, by_x = jax.grad(lambda a, x: jnp.sum(forward(a, x) ** 3), argnums=(0, 1))(arrays, x)
        memory = by_arrays.memory
        slopes = by_x, by_arrays.to_queries_keys.weight, by_arrays.start.weight, memory.up, memory.down
        return jnp.concatenate([a.ravel() for a in slopes])

    def plain():
        with torch.no_grad():
            return baseline(given).numpy()

    def plain_trained():
        needed = (given.clone().requires_grad_(), *weights)
        total = (baseline(needed[0]) ** 3).sum()
        # A steady state forgets its start.
        slopes = torch.autograd.grad(total, needed, materialize_grads=True)
        return torch.cat([a.ravel() for a in slopes]).numpy()

    compiled = jax.jit(trained if gradient else forward)
    what = "steady state" if num_steps is None else f"K = {num_steps}"
    way = "backward" if gradient else "forward"
    return Benchmark(
        f"spin_transformer.relaxation, ({size}, {dim}), {what}, {way}, float32, {name}",
        lambda: jax.block_until_ready(compiled(arrays, x)),
        plain_trained if gradient else plain,
        # The solvers of a steady state stop at a change of 1e-5, and gradients are sums of as many terms as there are
        # sites.
        lambda ours, plain: float(np.max(np.abs(ours - plain)) / np.max(np.abs(plain)) / 1e-3),
    )


RELAXATIONS = tuple(
    partial(relaxation, size, dim=dim, num_steps=num_steps, gradient=gradient)
    for size, dim in ((128, 256), (256, 512))
    for num_steps in (1, 8, None)
    for gradient in (False, True)
)

BENCHMARKS = (forward, backward, stack, *RELAXATIONS)
