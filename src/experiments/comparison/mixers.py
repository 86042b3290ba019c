"""What other works put in the place of attention: mixers of sites, and the energy transformer.

Each maps (sites, dim) to (sites, dim) and goes into ``blocks.Block``, but ``EnergyBlock``, which is a block by itself.
"""

from __future__ import annotations

import math
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from experiments.comparison.blocks import QueryKeyValue, Settled, require_sizes, standardized, weight
from spinbook import validate

# What keeps a row of rectified weights from being all zero.
_LEAK = 1e-3


class NormalizedAttention(eqx.Module):
    """x to W_O [a v] with a_ij = (g (s_ij - mean_j s_ij) / std_j s_ij + b) / N, s = q k^T / sqrt(D / heads).

    Pure normalisation in the place of the softmax: weights may be negative and their scores have no scale. g and b are
    learned for each head and begin at 1, so that equal scores give the mean of the values, as softmax does. Source:
    Richter and Wattenhofer, "Normalized attention without probability cage" (2020); the division by N and the start
    are ours.

    >>> NormalizedAttention(8, 2, key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    maps: QueryKeyValue
    gain: Array
    offset: Array

    def __init__(self, dim: int, num_heads: int, *, key: PRNGKeyArray) -> None:
        self.maps = QueryKeyValue(dim, num_heads, key=key)
        self.gain, self.offset = jnp.ones(num_heads, jnp.float32), jnp.ones(num_heads, jnp.float32)

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        q, k, v = self.maps.split(x)
        scores = q @ jnp.swapaxes(k, -1, -2) / np.float32(math.sqrt(q.shape[-1]))
        weights = self.gain[:, None, None] * standardized(scores) + self.offset[:, None, None]
        return self.maps.joined(weights @ v / np.float32(len(x)))


class RectifiedAttention(eqx.Module):
    """x to W_O [a v] with a_ij = phi(q_i) . phi(k_j) / sum_l phi(q_i) . phi(k_l), phi(q) = max(q, 0) + 0.001.

    Generalised attention with rectified units, whose weights are positive and add up to one as softmax's do. It costs
    N D d in place of N^2 D. Source: Choromanski et al., "Rethinking attention with performers" (2020), without random
    projections.

    >>> RectifiedAttention(8, 2, key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    maps: QueryKeyValue

    def __init__(self, dim: int, num_heads: int, *, key: PRNGKeyArray) -> None:
        self.maps = QueryKeyValue(dim, num_heads, key=key)

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        q, k, v = self.maps.split(x)
        q, k = jax.nn.relu(q) + _LEAK, jax.nn.relu(k) + _LEAK
        total = q @ jnp.sum(k, axis=-2)[..., None]
        return self.maps.joined(q @ (jnp.swapaxes(k, -1, -2) @ v) / total)


class LocalPooling(eqx.Module):
    """x_i to the mean of x over the sites within one step of i on the grid, i among them, minus x_i.

    Pooling as published: 3 x 3 sites on an image, fewer at its edges, three in a row of sites. ``grid``: rows and
    columns, or the number of sites. Source: Yu et al., "MetaFormer is actually what you need for vision" (2021).

    >>> LocalPooling((3,))(jnp.array([[0.0], [3.0], [6.0]])).ravel().tolist()
    [1.5, 0.0, -1.5]
    """

    grid: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, grid: tuple[int, ...]) -> None:
        sizes = validate.known_numbers(grid, "grid")
        if sizes.ndim != 1 or sizes.size == 0:
            raise ValueError(f"grid: expected the number of sites along each axis, got shape {sizes.shape}")
        validate.require(lambda k: (k >= 1) & (k % 1 == 0) & (k < 2**31), sizes, "grid", "integers >= 1")
        self.grid = tuple(map(int, sizes))

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return jnp.asarray(_neighbourhood(self.grid), x.dtype) @ x - x


def _neighbourhood(grid: tuple[int, ...]) -> np.ndarray:
    """[i, j]: 1 / number of neighbours where j is within one step of i along every axis, else 0."""
    axes = [np.abs(np.subtract.outer(np.arange(size), np.arange(size))) <= 1 for size in grid]
    near = reduce(np.kron, [axis.astype(float) for axis in axes])
    return near / near.sum(axis=1, keepdims=True)


class SiteMLP(eqx.Module):
    """x to W_2 gelu(W_1 x + b_1) + b_2 along the sites, with twice as many hidden units: the same for each component.

    Source: Tolstikhin et al., "MLP-Mixer: an all-MLP architecture for vision" (2021).

    >>> SiteMLP(5, key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    up: Array
    up_bias: Array
    down: Array
    down_bias: Array

    def __init__(self, num_sites: int, *, key: PRNGKeyArray) -> None:
        require_sizes(num_sites=num_sites)
        a, b = jax.random.split(key)
        self.up, self.down = weight(a, 2 * num_sites, num_sites), weight(b, num_sites, 2 * num_sites)
        self.up_bias, self.down_bias = jnp.zeros(2 * num_sites, jnp.float32), jnp.zeros(num_sites, jnp.float32)

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        hidden = jax.nn.gelu(self.up @ x + self.up_bias[:, None], approximate=False)
        return self.down @ hidden + self.down_bias[:, None]


class GatedMLP(eqx.Module):
    """x to W_2 [u * (S norm(v) + b)] + b_2 with (u, v) = gelu(W_1 x + b_1), 4 D hidden units, S along the sites.

    S begins near zero and b at one, so that no site hears of another at the start. It is the whole block but for norm
    and residual: there is no feed-forward network beside it. Source: Liu et al., "Pay attention to MLPs" (2021).

    >>> GatedMLP(5, 8, key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).shape
    (5, 8)
    """

    up: Array
    up_bias: Array
    norm_gain: Array
    norm_bias: Array
    sites: Array
    sites_bias: Array
    down: Array
    down_bias: Array

    def __init__(self, num_sites: int, dim: int, *, key: PRNGKeyArray) -> None:
        require_sizes(num_sites=num_sites, dim=dim)
        a, b, c = jax.random.split(key, 3)
        self.up, self.down = weight(a, 4 * dim, dim), weight(b, dim, 2 * dim)
        self.up_bias, self.down_bias = jnp.zeros(4 * dim, jnp.float32), jnp.zeros(dim, jnp.float32)
        self.norm_gain, self.norm_bias = jnp.ones(2 * dim, jnp.float32), jnp.zeros(2 * dim, jnp.float32)
        self.sites = np.float32(1e-2) * weight(c, num_sites, num_sites)
        self.sites_bias = jnp.ones(num_sites, jnp.float32)

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        u, v = jnp.split(jax.nn.gelu(x @ self.up.T + self.up_bias, approximate=False), 2, axis=-1)
        gate = self.sites @ (self.norm_gain * standardized(v) + self.norm_bias) + self.sites_bias[:, None]
        return (u * gate) @ self.down.T + self.down_bias


class Fourier(eqx.Module):
    """x to Re F_N x F_D, F the unitary discrete Fourier transforms of sites and components; nothing is learned.

    Unitary, so that the length of x stays what the norm before it made it. Source: Lee-Thorp et al., "FNet: mixing
    tokens with Fourier transforms" (2021).

    >>> Fourier()(jnp.ones((4, 4), jnp.float32))[0].round(6).tolist()
    [4.0, 0.0, 0.0, 0.0]
    """

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return jnp.real(jnp.fft.fft2(x, norm="ortho")).astype(x.dtype)


class EnergyBlock(eqx.Module):
    """x_{t+1} = x_t - a dE/dg at g = norm(x_t), ``steps`` times: attention and memory as descent on one energy.

    E = -(1/b) sum_{h, C} log sum_{B != C} exp(b K_hB . Q_hC) - (1/2) sum_{B, mu} max(xi_mu . g_B, 0)^2 with K = W_K g,
    Q = W_Q g, b = 1 / sqrt(D / heads), 4 D memories xi. The norm has one gain for all components, which keeps E from
    rising. Residual and feed-forward network are in it; nothing is added. Source: Hoover et al., "Energy transformer"
    (2023).

    >>> EnergyBlock(8, 2, steps=3, key=jax.random.key(0))(jnp.ones((5, 8), jnp.float32)).value.shape
    (5, 8)
    """

    to_keys: Array
    to_queries: Array
    memories: Array
    gain: Array
    bias: Array
    num_heads: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    rate: float = eqx.field(static=True)

    def __init__(self, dim: int, num_heads: int, *, steps: int = 4, rate: float = 0.25, key: PRNGKeyArray) -> None:
        require_sizes(dim=dim, num_heads=num_heads, steps=steps)
        rate = validate.number(rate, "rate", above=0)
        a, b, c = jax.random.split(key, 3)
        self.to_keys, self.to_queries = weight(a, dim, dim), weight(b, dim, dim)
        self.memories = weight(c, 4 * dim, dim)
        self.gain, self.bias = jnp.ones(1, jnp.float32), jnp.zeros(dim, jnp.float32)
        self.num_heads, self.steps, self.rate = num_heads, steps, rate

    def norm(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """g: standardised, times one gain, plus a bias."""
        return self.gain * standardized(x) + self.bias

    def energy(self, g: Float[Array, "N D"]) -> Float[Array, ""]:
        """E(g) of attention and memories.

        >>> EnergyBlock(8, 2, key=jax.random.key(0)).energy(jnp.ones((5, 8), jnp.float32)).shape
        ()
        """
        sites, dim = g.shape
        k, q = ((g @ w.T).reshape(sites, self.num_heads, -1) for w in (self.to_keys, self.to_queries))
        beta = np.float32(1 / math.sqrt(dim / self.num_heads))
        scores = beta * jnp.einsum("chd,bhd->hcb", q, k)
        # A site does not attend to itself.
        scores = jnp.where(np.eye(sites, dtype=bool), -jnp.inf, scores)
        attention = -jnp.sum(jax.nn.logsumexp(scores, axis=-1)) / beta
        return attention - jnp.sum(jax.nn.relu(g @ self.memories.T) ** 2) / 2

    def __call__(self, x: Float[Array, "N D"]) -> Settled:
        def step(x: Array, _: None) -> tuple[Array, None]:
            return x - np.float32(self.rate) * jax.grad(self.energy)(self.norm(x)), None

        value = jax.lax.scan(step, x, None, length=self.steps)[0]
        return Settled(value, jnp.asarray(True))
