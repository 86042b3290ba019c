"""The compared modules in JAX behind one face: a module maps (sites, dim) to a ``Settled`` value.

Calls take their arguments without checks; sizes are checked where a module is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from experiments.memory import MemoryModule
from spinbook import validate
from spinbook.spin_transformer import Relax, SpinTransformerModule, Theory, Unroll

_EPSILON = 1e-5


class Settled(NamedTuple):
    """``value`` (sites, dim), and whether it was found; a module without a solver finds it always."""

    value: Float[Array, "N D"]
    converged: Bool[Array, ""]


def _settled(value: Array) -> Settled:
    return Settled(value, jnp.asarray(True))


def standardized(x: Float[Array, "*batch D"]) -> Float[Array, "*batch D"]:
    """(x - mean) / standard deviation over the components: layer normalisation without parameters.

    >>> round(float(jnp.abs(standardized(jnp.arange(8.0))).max()), 2)
    1.53
    """
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + _EPSILON)


def require_sizes(*, num_heads: int = 1, **sizes: int) -> None:
    """Raise ``ValueError`` unless all sizes of a module are at least 1 and its heads divide ``dim``.

    >>> require_sizes(dim=8, num_heads=3)
    Traceback (most recent call last):
    ValueError: num_heads: expected a divisor of dim, 8, got 3
    """
    for name, size in (sizes | {"num_heads": num_heads}).items():
        validate.count(size, name, minimum=1)
    if sizes.get("dim", 0) % num_heads:
        raise ValueError(f"num_heads: expected a divisor of dim, {sizes['dim']}, got {num_heads}")


class _Norm(eqx.Module):
    gain: Array
    bias: Array

    def __init__(self, dim: int) -> None:
        self.gain, self.bias = jnp.ones(dim, jnp.float32), jnp.zeros(dim, jnp.float32)

    def __call__(self, x: Array) -> Array:
        return self.gain * standardized(x) + self.bias


def weight(key: PRNGKeyArray, outputs: int, inputs: int) -> Array:
    """Uniform within 1 / sqrt(inputs), as both frameworks draw linear maps."""
    return jax.random.uniform(key, (outputs, inputs), jnp.float32, -1, 1) / np.float32(np.sqrt(inputs))


class QueryKeyValue(eqx.Module):
    """Queries, keys and values of several heads, and the map that joins what the heads found."""

    to_queries_keys_values: Array
    to_output: Array
    num_heads: int = eqx.field(static=True)

    def __init__(self, dim: int, num_heads: int, *, key: PRNGKeyArray) -> None:
        require_sizes(dim=dim, num_heads=num_heads)
        a, b = jax.random.split(key)
        self.to_queries_keys_values, self.to_output = weight(a, 3 * dim, dim), weight(b, dim, dim)
        self.num_heads = num_heads

    def split(self, x: Float[Array, "N D"]) -> Float[Array, "3 H N d"]:
        """Queries, keys and values, head by head."""
        parts = (x @ self.to_queries_keys_values.T).reshape(len(x), 3, self.num_heads, -1)
        return jnp.moveaxis(parts, 0, 2)

    def joined(self, found: Float[Array, "H N d"]) -> Float[Array, "N D"]:
        """W_O of the heads side by side."""
        return jnp.moveaxis(found, 0, 1).reshape(found.shape[1], -1) @ self.to_output.T


class Attention(QueryKeyValue):
    """x to W_O [softmax(q k^T / sqrt(D / heads)) v], q, k, v = W x: multi-head attention without biases.

    >>> Attention(8, 2, key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        q, k, v = self.split(x)
        weights = jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / np.float32(np.sqrt(q.shape[-1])), axis=-1)
        return self.joined(weights @ v)


class Identity(eqx.Module):
    """x to x: no site hears of another.

    >>> Identity()(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return x


class Pooling(eqx.Module):
    """x_i to mean_j x_j - x_i: every site hears the same, whatever is on it.

    The average is over all sites, since a class token has no neighbours. Source: PoolFormer, which pools locally.

    >>> Pooling()(jnp.eye(2)).tolist()
    [[-0.5, 0.5], [0.5, -0.5]]
    """

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return jnp.mean(x, axis=-2, keepdims=True) - x


class FeedForward(eqx.Module):
    """W_2 gelu(W_1 x + b_1) + b_2 with 4 D hidden units, for each site by itself.

    >>> FeedForward(8, key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    up: Array
    up_bias: Array
    down: Array
    down_bias: Array

    def __init__(self, dim: int, *, key: PRNGKeyArray) -> None:
        require_sizes(dim=dim)
        a, b = jax.random.split(key)
        self.up, self.down = weight(a, 4 * dim, dim), weight(b, dim, 4 * dim)
        self.up_bias, self.down_bias = jnp.zeros(4 * dim, jnp.float32), jnp.zeros(dim, jnp.float32)

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return jax.nn.gelu(x @ self.up.T + self.up_bias, approximate=False) @ self.down.T + self.down_bias


class Block(eqx.Module):
    """x' = x + mixer(norm(x)), then x' + feed_forward(norm(x')): the pre-norm block, of exchangeable parts.

    ``normalize`` False leaves both norms out, ``feed_forward`` None the second half, and ``residual`` False both sums.

    >>> key = jax.random.key(0)
    >>> Block(8, Attention(8, 2, key=key), FeedForward(8, key=key))(jnp.ones((5, 8), jnp.float32)).value.shape
    (5, 8)
    """

    norms: tuple[_Norm, ...]
    mixer: Callable[[Array], Array]
    feed_forward: FeedForward | None
    residual: bool = eqx.field(static=True)

    def __init__(
        self,
        dim: int,
        mixer: Callable[[Array], Array],
        feed_forward: FeedForward | None,
        *,
        residual: bool = True,
        normalize: bool = True,
    ) -> None:
        self.norms = tuple(_Norm(dim) for _ in range(1 if feed_forward is None else 2)) if normalize else ()
        self.mixer, self.feed_forward, self.residual = mixer, feed_forward, residual

    def __call__(self, x: Float[Array, "N D"]) -> Settled:
        for k, layer in enumerate((self.mixer, self.feed_forward)):
            if layer is not None:
                change = layer(self.norms[k](x) if self.norms else x)
                x = x + change if self.residual else change
        return _settled(x)


class Averaged(eqx.Module):
    """Every site gets the mean over the sites of what ``block`` makes: answers are read off the average.

    >>> Averaged(Block(8, Identity(), None))(jnp.ones((5, 8), jnp.float32)).value.shape
    (5, 8)
    """

    block: Block

    def __call__(self, x: Float[Array, "N D"]) -> Settled:
        y = self.block(x).value
        return _settled(jnp.broadcast_to(jnp.mean(y, axis=0), y.shape))


class SpinBlock(eqx.Module):
    """m(x) of a ``SpinTransformerModule``: residual, attention and normalisation are one response; nothing is added.

    The inputs are scaled to the radius of the sphere by the module itself. Where the steady state is not found the
    value is the last state, and ``converged`` says so.

    >>> from spinbook.spin_transformer import tap
    >>> SpinBlock(8, 2, tap, Relax(), key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).value.shape
    (5, 8)
    """

    module: SpinTransformerModule

    def __init__(
        self, dim: int, num_heads: int, theory: Theory, dynamics: Relax | Unroll, *, key: PRNGKeyArray
    ) -> None:
        self.module = SpinTransformerModule(
            dim, num_heads, key=key, theory=theory, dynamics=dynamics, dtype=jnp.float32
        )

    def __call__(self, x: Float[Array, "N D"]) -> Settled:
        found = self.module.steady_state(x)
        # A number of updates is what was asked for, not a solver that failed.
        asked = isinstance(self.module.dynamics, Unroll)
        return Settled(found.value, found.converged | asked)


class Memory(eqx.Module):
    """m(x) of a ``MemoryModule`` after ``steps`` time steps from rest under constant inputs.

    At rest there is nothing to attend to, so that the first step is the feed-forward network alone.

    >>> Memory(8, 3, key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).value.shape
    (5, 8)
    """

    module: MemoryModule
    steps: int = eqx.field(static=True)

    def __init__(self, dim: int, steps: int, *, key: PRNGKeyArray) -> None:
        require_sizes(dim=dim, steps=steps)
        module = MemoryModule(dim, key=key)
        self.module = jax.tree.map(lambda a: a.astype(jnp.float32) if eqx.is_inexact_array(a) else a, module)
        self.steps = steps

    def __call__(self, x: Float[Array, "N D"]) -> Settled:
        # Without a gradient beta stays 1, as in the other modules of spins.
        held = eqx.tree_at(lambda m: m.beta, self.module, jax.lax.stop_gradient(self.module.beta))
        return _settled(held(x, steps=self.steps).magnetizations)


class Stack(eqx.Module):
    """x to the last of ``layers`` after all others; found where each of them was.

    >>> layer = Block(8, Identity(), None)
    >>> Stack((layer, layer))(jnp.ones((5, 8), jnp.float32)).converged.item()
    True
    """

    layers: tuple[Callable[[Array], Settled], ...]

    def __call__(self, x: Float[Array, "N D"]) -> Settled:
        converged = jnp.asarray(True)
        for layer in self.layers:
            found = layer(x)
            x, converged = found.value, converged & found.converged
        return Settled(x, converged)
