"""The start of a run: after one token, from a window of attention vectors, or from the end of another run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.self_attention.network import Network, positional_bits

__all__ = ["Window", "attention_window", "start_window", "token_window"]


class Window(NamedTuple):
    """The state of the map: attention vectors and the phase of the positions. NumPy, or JAX in ``mean_field``.

    ``attention`` (K, M): the last K attention vectors, newest first. ``length``: how many of them are there, the others
    are ignored. ``position``: of the next token; positions count modulo R = 2^P.
    """

    attention: Float[Any, "K M"]
    length: Int[Any, ""]
    position: Int[Any, ""]


def token_window(network: Network) -> Window:
    """A_0 = m^v_0 of the token W^o_1: the window after one token, which made its attention and is then forgotten.

    The token is the first output feature at position 0, as in the paper's runs; the next position is 0 again. Source:
    the authors' code, which starts its runs so; its program for finite N keeps the initial token instead.

    >>> from spinbook.self_attention import paper_network
    >>> token_window(paper_network()).attention[0].round(4).tolist()
    [0.3467, 0.3267, 0.98]
    """
    W = network.semantic_signs.astype(np.float64)
    attention = np.zeros((network.context, network.num_features))
    attention[0] = (1 - network.epsilon) * W[1] @ (network.segment_weights * W[0, 0])
    P = network.positional_signs.shape[2]
    attention[0] += network.epsilon * (network.positional_signs[1] @ positional_bits(P)[0]) / max(P, 1)
    return Window(attention, np.int64(1), np.int64(0))


def attention_window(network: Network, attention: Float[ArrayLike, "K M"], *, position: int = 0) -> Window:
    """A_{t-1}, ..., A_{t-K} as they are, newest first; the next token carries ``position``.

    Raises ``ValueError`` unless there are exactly K = ``network.context`` vectors of M features.

    >>> from spinbook.self_attention import paper_network
    >>> attention_window(paper_network(), np.zeros((3, 3)))
    Traceback (most recent call last):
    ValueError: attention: expected shape (4, 3), tokens of the window and features, got (3, 3)
    """
    A, K, M = validate.known_numbers(attention, "attention"), network.context, network.num_features
    if A.shape != (K, M):
        raise ValueError(f"attention: expected shape {(K, M)}, tokens of the window and features, got {A.shape}")
    return Window(A, np.int64(K), np.int64(validate.count(position, "position")))


def start_window(network: Network, start: Any) -> Window:
    """``start`` as a window: ``None`` (default token), a window, K attention vectors, or anything with a ``window``.

    >>> from spinbook.self_attention import paper_network
    >>> start_window(paper_network(), None).length
    np.int64(1)
    """
    start = getattr(start, "window", start)
    if start is None:
        return token_window(network)
    if not isinstance(start, Window):
        return attention_window(network, start)
    length = validate.count(start.length, "start.length", minimum=1, maximum=network.context)
    full = attention_window(network, start.attention, position=start.position)
    return full._replace(length=np.int64(length))
