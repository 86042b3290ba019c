"""Measures the reaction in the layer that could answer it: feed-forward k + 1 against the echo in attention k + 1.

Definitions and answers are in the plan of the lens; ``records/lens-reaction/run.py`` measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments import encoder
from experiments.encoder import Encoder, Trace
from experiments.lens_record import echoes

SHIFTS = (1, 7, 20)
DIRECTIONS = ("echo", "message 1", "message 7", "message 20", "input", "random")
"""The order of ``response``, and, without the last two, of ``ablation`` and ``sentence``."""


def _carried(x: np.ndarray, norm: Any, before: Any) -> np.ndarray:
    """What a part (..., N, D) of a sum becomes in its normalisation, with the divisor as it is."""
    off = x - x.mean(-1, keepdims=True)
    return np.asarray(norm[0] * off / np.asarray(before).std(-1)[:, None], np.float32)


def parts(network: Encoder, traces: Sequence[Trace], k: int) -> dict[str, np.ndarray]:
    """Of the feed-forward network of layer k + 1, (N, D) each: output, input, the parts of the input, and raw ones.

    ``echo`` is what attention k + 1 brings a token of its own message in attention k, ``message s`` what it brings by
    the same way of the message of the token s places on, ``induced`` all that it brings from others. ``raw`` ones are
    before the normalisation. Layers count from zero.
    """
    old, new = network.layers[k], network.layers[k + 1]
    s, t = traces[k], traces[k + 1]
    given = np.asarray(echoes.contributions(s.attention, s.values, old.from_values[0]), np.float32)
    for norm, before in ((old.first_norm, s.inputs + s.attended), (old.second_norm, s.middle + s.forward)):
        given = _carried(given.swapaxes(0, 1), norm, before).swapaxes(0, 1)
    N = len(given)
    J = np.asarray(t.attention) * (1 - np.eye(N, dtype=np.float32))
    values = (given.reshape(N * N, -1) @ np.asarray(new.to_values[0])).reshape(N, N, len(J), -1)
    W, found = np.asarray(new.from_values[0]), {}
    for shift in (0, *SHIFTS):
        back = np.einsum("hij,jihd->ihd", J, np.roll(values, -shift, axis=1), optimize=True).reshape(N, -1) @ W
        found["echo" if shift == 0 else f"message {shift}"] = back
    got = np.asarray(echoes.contributions(t.attention, t.values, new.from_values[0]), np.float32)
    found["induced"] = got.sum(1) - got[np.arange(N), np.arange(N)]
    carried = {name: _carried(x, new.first_norm, t.inputs + t.attended) for name, x in found.items()}
    raw = {f"raw {name}": found[name] for name in ("induced", "echo")}
    return {"output": np.asarray(t.forward), "input": np.asarray(t.middle)} | carried | raw


@jax.jit
def along(x: Any, layer: Any, u: Any) -> tuple[Any, Any]:
    """sum u . F'(x) u / sum |u|^2, and the same with a finite step."""
    forward = partial(encoder.feed_forward, layer=layer)
    y, slope = jax.jvp(forward, (x,), (u,))
    size = jnp.sum(u * u)
    return jnp.sum(u * slope) / size, jnp.sum(u * (y - forward(x - u))) / size
