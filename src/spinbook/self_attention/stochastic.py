"""The same network with finitely many units, sampled token by token.

``trajectories.simulate`` predicts what this module samples. The conventions of time, position and start are those of
``mean_field``: the initial token is not kept in the window, and step t carries position t.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from spinbook import validate
from spinbook.annotations import Float
from spinbook.checked import Key, NonNegative, PositiveCount, checked
from spinbook.self_attention.lanes import FIELDS
from spinbook.self_attention.network import Network
from spinbook.self_attention.sign_classes import sign_classes
from spinbook.self_attention.trajectories import Trajectory
from spinbook.self_attention.window import Window, start_window

__all__ = ["sample_finite", "segment_sizes"]


def segment_sizes(network: Network, num_spins: int) -> Int[np.ndarray, " S"]:
    """N split over the segments in proportion to their weights, rounded so that the sum stays N.

    >>> from spinbook.self_attention import paper_network
    >>> segment_sizes(paper_network(), 100).tolist()
    [34, 33, 33]
    """
    N = validate.count(num_spins, "num_spins", minimum=1, maximum=2**53)
    shares = network.segment_weights * N
    # The rounding guards against 32.999... for a share that is 33.
    sizes = np.floor(shares + 1e-9).astype(np.int64)
    largest_remainders = np.argsort(sizes - shares, kind="stable")[: N - sizes.sum()]
    sizes[largest_remainders] += 1
    if sizes.min() == 0:
        raise ValueError(f"num_spins: expected enough for one unit in each of {len(sizes)} segments, got {N}")
    return sizes


@partial(jax.jit, static_argnames="steps")
def _sample(
    key: PRNGKeyArray,
    signs: Float[Array, "4 M S"],
    positions: Float[Array, "R 4 M"],
    sizes: Float[Array, " S"],
    parameters: Float[Array, " 3"],
    window: Window,
    steps: int,
) -> tuple[Any, Any]:
    beta, gamma, semantic_weight = parameters
    K = len(window.attention)

    def token(key: PRNGKeyArray, attention: Array, position: Array) -> tuple[Array, Array]:
        """Overlaps of a token drawn from the attention, (4, M): the semantic part, and all."""
        up = jax.nn.sigmoid(2 * beta * attention @ signs[0])
        # The units of a segment have the same field: the number of +1 is binomial.
        mean = 2 * jax.random.binomial(key, sizes, up, dtype=sizes.dtype) / sizes - 1
        semantic = semantic_weight * signs @ (sizes / sizes.sum() * mean)
        return semantic, semantic + positions[position % len(positions)]

    def advance(state: Any, step: tuple[PRNGKeyArray, Array]) -> tuple[Any, Any]:
        """Step n; for n < 0 only a token of the window is drawn, from the attention that made it."""
        now, values, keys = state
        step_key, n = step
        maker = jnp.where(n < 0, window.attention[-n], now.attention[0])
        semantic, (_, value, query, new_key) = token(step_key, maker, window.position + n)
        values = jnp.concatenate([value[None], values[:-1]])
        keys = jnp.concatenate([new_key[None], keys[:-1]])
        logits = jnp.where(jnp.arange(K) < now.length, gamma * keys @ query, -jnp.inf)
        attention = jax.nn.softmax(logits) @ values
        after = Window(
            jnp.concatenate([attention[None], now.attention[:-1]]),
            jnp.minimum(now.length + 1, K),
            now.position + 1,
        )
        now = jax.tree.map(partial(jnp.where, n < 0), now, after)
        return (now, values, keys), (semantic[0], value, query, new_key, attention)

    ns = jnp.arange(1 - K, steps)
    state = window, jnp.zeros_like(window.attention), jnp.zeros_like(window.attention)
    (end, _, _), fields = jax.lax.scan(advance, state, (jax.random.split(key, len(ns)), ns))
    return end, jax.tree.map(lambda x: x[K - 1 :], fields)


@checked()
def sample_finite(
    key: Key, network: Network, *, beta: NonNegative, num_spins: int, steps: PositiveCount, start: Any = None
) -> Trajectory:
    """x_i = 1 with probability 1 / (1 + e^{-2 beta W^o_i . A}); m^alpha = (1 - eps) W^alpha x / N + eps W^alpha p / P.

    One orbit of N = ``num_spins`` units per token, (steps, M) fields as ``simulate`` returns them: overlaps of the
    drawn tokens, and the attention over them. ``start`` as for ``simulate``; the tokens of a window are drawn from its
    attention vectors. The difference to ``simulate`` falls as 1 / sqrt(N) where the dynamics contract.

    Units of one segment have the same patterns, so only how many of them are +1 is drawn, a binomial number: exact, at
    a cost that does not depend on N. Segments get integer sizes, see ``segment_sizes``; where N does not divide by
    them, the correlations differ by some 1/N. JAX: an ensemble is ``jax.vmap`` over keys, and the dtype follows
    ``beta``; in single precision segments of more than 2^24 units are not exact. Raises
    ``ValueError`` for beta < 0, fewer units than segments, and a window that does not fit. Source: Poc-Lopez and
    Aguilera (2024), equations (6) to (8) and (15), with the conventions of their mean-field program.

    >>> import jax
    >>> from spinbook.self_attention import paper_network
    >>> sample_finite(jax.random.key(0), paper_network(), beta=0.8, num_spins=300, steps=7).attention.shape
    (7, 3)
    """
    dtype = beta.dtype
    start = start_window(network, start)
    window, fields = _sample(
        key,
        jnp.asarray(network.semantic_signs, dtype),
        jnp.asarray(sign_classes(network).positions, dtype),
        jnp.asarray(segment_sizes(network, num_spins), dtype),
        jnp.stack([beta, jnp.asarray(network.gamma, dtype), jnp.asarray(1 - network.epsilon, dtype)]),
        Window(jnp.asarray(start.attention, dtype), jnp.asarray(start.length), jnp.asarray(start.position)),
        steps,
    )
    return Trajectory(**dict(zip(FIELDS, fields, strict=True)), window=window)
