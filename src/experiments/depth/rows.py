"""The rows of the depth experiment: causal stacks of one width and one number of weights.

Softmax attention, pure normalisation, a rectified kernel and the free energy are mixers of heads in one and the same
stack, ``comparison.transient.VanillaStack``, and begin with the same weights; the modules of spins are whole layers.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from experiments.comparison import transient
from experiments.comparison.transient import LanguageModel, VanillaStack
from spinbook import validate
from spinbook.spin_transformer import AtFields, one_sphere, tap

__all__ = ["ROWS", "free_energy", "made", "normalized", "rectified", "use"]

_LEAK, _EPSILON = 1e-3, 1e-5


def _scores(q: Array, k: Array) -> Array:
    return q @ jnp.swapaxes(k, -1, -2) / np.float32(math.sqrt(q.shape[-1]))


def normalized(q: Array, k: Array, v: Array, scales: Array | None) -> Float[Array, "H N d"]:
    """sum_j (g (s_ij - mean s_i) / std s_i + b) / i v_j over the i sites j up to i; s = q k^T / sqrt(d).

    Pure normalisation, ``comparison.mixers.NormalizedAttention``, behind a causal mask. ``scales`` (2, heads) are g, b.

    Takes its arguments without checks; its callers have checked them.

    >>> normalized(*jnp.ones((3, 1, 2, 4), jnp.float32), jnp.ones((2, 1), jnp.float32))[0, 1].round(5).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    assert scales is not None
    sites = q.shape[-2]
    mask = np.tril(np.ones((sites, sites), np.float32))
    number = mask.sum(axis=-1, keepdims=True)
    centred = mask * _scores(q, k)
    centred = mask * (centred - jnp.sum(centred, axis=-1, keepdims=True) / number)
    spread = jnp.sqrt(jnp.sum(centred**2, axis=-1, keepdims=True) / number + np.float32(_EPSILON))
    gain, offset = scales[..., None, None]
    weights: Array = mask * (gain * centred / spread + offset) / number
    return weights @ v


def rectified(q: Array, k: Array, v: Array, scales: Array | None = None) -> Float[Array, "H N d"]:
    """sum_j phi(q_i) . phi(k_j) v_j / sum_j phi(q_i) . phi(k_j) over the j up to i, phi(q) = max(q, 0) + 0.001.

    ReLU attention, ``comparison.mixers.RectifiedAttention``, behind a causal mask, and here in N^2 D.

    Takes its arguments without checks; its callers have checked them.

    >>> rectified(*jnp.ones((3, 1, 2, 4), jnp.float32))[0, 1].round(5).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    weights = (jax.nn.relu(q) + np.float32(_LEAK)) @ jnp.swapaxes(jax.nn.relu(k) + np.float32(_LEAK), -1, -2)
    weights = jnp.where(np.tril(np.ones(weights.shape[-2:], bool)), weights, 0)
    return weights @ v / jnp.sum(weights, axis=-1, keepdims=True)


def free_energy(q: Array, k: Array, v: Array, scales: Array | None = None) -> Float[Array, "H N d"]:
    """sqrt(d) m_i, m_i = g / (1/2 + sqrt(1/4 + |g|^2)), g = h_i + 2 sum_{j<i} J_ij m_j, h the values, divided by |h|.

    The saddle point of vector spins, t_i = (1/2 + sqrt(1/4 + |g|^2)) / 2 and m = V^-1 h / 2 with V = diag(t) - J, for
    couplings J = tanh(q k^T / sqrt(d)) / sqrt(N d) that only look back. V is triangular, so that sites follow one
    another. Symmetric couplings, of which alone m is the derivative of a free energy, would let a site hear of later
    ones. N steps in a row.

    Takes its arguments without checks; its callers have checked them.

    >>> free_energy(*jnp.ones((3, 1, 2, 4), jnp.float32))[0, 0].round(3).tolist()
    [0.618..., 0.618..., 0.618..., 0.618...]
    """
    sites, d = v.shape[-2:]
    J = jnp.tanh(_scores(q, k)) / np.float32(math.sqrt(sites * d))
    # Of what comes later all is zero when a site is reached, and at the site itself.
    h = v * jax.lax.rsqrt(jnp.sum(v * v, axis=-1, keepdims=True) + np.float32(_EPSILON))

    def settle(m: Array, i: Array) -> tuple[Array, None]:
        g = h[:, i] + 2 * jnp.einsum("hj,hjd->hd", J[:, i], m)
        mean = g / (0.5 + jnp.sqrt(0.25 + jnp.sum(g * g, axis=-1, keepdims=True)))
        return m.at[:, i].set(mean), None

    found: Array = jax.lax.scan(settle, jnp.zeros_like(h), jnp.arange(sites))[0]
    return np.float32(math.sqrt(d)) * found


_MIXERS: dict[str, transient.Mixer] = {
    "vanilla": transient.softmax,
    "pure normalisation": normalized,
    "ReLU attention": rectified,
    "free energy": free_energy,
}
_MEMORY, _TAP, _IDENTITY = "spins with memory", "TAP spins", "identity mixer"
ROWS = ("vanilla", _IDENTITY, _MEMORY, _TAP, "free energy", "pure normalisation", "ReLU attention")
"""The rows by name, those of the gate first."""


def use(name: str) -> str:
    """The number of updates with which a row is trained and used, as ``LanguageModel`` takes it.

    >>> use("TAP spins"), use("spins with memory")
    ('inf', '1')
    """
    return {_TAP: "inf", _MEMORY: "1"}.get(validate.choice(name, ROWS, "name"), "once")


def made(name: str, depth: int, dim: int, num_heads: int, *, key: PRNGKeyArray) -> LanguageModel:
    """The model of a row before training: about 11 D^2 weights in a layer, the same start wherever parts are the same.

    Raises ``ValueError`` for a name that is no row, and as the stacks do.

    >>> made("identity mixer", 2, 16, 2, key=jax.random.key(0)).stack.up.shape
    (2, 88, 16)
    """
    name = validate.choice(name, ROWS, "name")
    stack_key = jax.random.fold_in(validate.key(key), 1)
    stack: transient.SpinTransformer | VanillaStack
    if name == _MEMORY:
        stack = transient.spins(depth, dim, num_heads, key=stack_key)
    elif name == _TAP:
        # A steady state forgets its start, so that the weights of the values are hidden units here.
        options = {"theory": tap, "spheres": one_sphere, "start": AtFields, "feed_forward": 9 * dim // 2}
        stack = transient.spins(depth, dim, num_heads, key=stack_key, **options)
    else:
        mixer, scaled = _MIXERS.get(name), name == "pure normalisation"
        stack = VanillaStack(depth, dim, num_heads, mixer=mixer, scaled=scaled, key=stack_key)
    return transient.assembled(stack, dim, num_heads, key=key)
