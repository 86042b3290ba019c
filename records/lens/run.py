"""The lens on a trained encoder, with its controls, by its plan; and on a causal network of our own.

``lens.json.gz`` was made before, and can be remade at, the tag ``before-2.0``: ``git checkout before-2.0``, then
``python -m experiments.lens_record --out FOLDER --plan book/plan-of-the-lens.md``, half an hour on one core, with the
files of the network and of the text in ``$SPINBOOK_DATA``. ``causal.json.gz`` is of the network that the option
``--network causal`` trains first; ``minilm.npz`` has two windows of the encoder in nine bits a number. This script
measures a small untrained encoder as the plan says, but for "rest"; ``lens-spins`` has the heads as spins, and
``lens-reaction`` the echo.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from experiments import encoder, records
from experiments.lens_record import NETWORKS, jacobians, networks
from spinbook import lens

WINDOWS, TOKENS = 2, 12
PARTS = ("residual", "own", "forward")
"""What is left out: residual connections, the division by each token's own length, feed-forward networks."""


def growth(key, layer, x):
    """|f'(x) u| / |u| along a random direction."""
    u = jax.random.normal(key, x.shape, x.dtype)
    return jnp.linalg.norm(jax.jvp(lambda x: encoder.block(x, layer).outputs, (x,), (u,))[1]) / jnp.linalg.norm(u)


def added(x, layer):
    return encoder.block(x, layer).outputs - x


def attended(x, layer):
    return encoder.block(x, layer).attended


def long_keys(keys, attention):
    """The correlation, over tokens, of the logarithms of the length of a key and of the attention that it gets."""
    x, y = np.log(np.linalg.norm(keys, axis=-1)), np.log(attention.sum(-2))
    return np.array([np.corrcoef(*pair)[0, 1] for pair in zip(x, y, strict=True)])


def gamma(queries, keys):
    """mean_ij |q_i| |k_j| / sqrt(d), which multiplies the cosine of query and key."""
    q, k = (np.linalg.norm(x, axis=-1).mean(-1) for x in (queries, keys))
    return q * k / np.sqrt(queries.shape[-1])


def key_lengths(queries, keys):
    """What keys of equal length change: 1 - R^2 of the logits within rows, and half the change of the weights.

    The last is that change where queries have equal lengths, too.
    """
    q, k = (np.asarray(x, float) for x in (queries, keys))
    lengths = [np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k)]
    even = [x / n * np.sqrt(np.mean(n**2, axis=-2, keepdims=True)) for x, n in zip((q, k), lengths, strict=True)]
    pairs = (q, k), (q, even[1]), even
    logits = [a @ np.swapaxes(b, -1, -2) / np.sqrt(q.shape[-1]) for a, b in pairs]
    a, b = (x - x.mean(-1, keepdims=True) for x in logits[:2])
    shared, own, equal = (np.sum(x * y, axis=(-1, -2)) for x, y in ((a, b), (a, a), (b, b)))
    weights = [scipy.special.softmax(x, axis=-1) for x in logits]
    return 1 - shared**2 / (own * equal), *(np.abs(weights[0] - x).sum(-1).mean(-1) / 2 for x in weights[1:])


def heads(network, traces, number):
    """Measures of all heads and layers on a window."""
    found = lens.measure(
        [t.attention[None] for t in traces], [traces[0].inputs[None], *(t.outputs[None] for t in traces)]
    )
    rows = []
    for layer, t in zip(network.layers, traces, strict=True):
        lengths = key_lengths(t.queries, t.keys)
        sizes = np.linalg.norm(np.asarray(t.values, float), axis=-1)
        middle, forward = np.asarray(t.middle, float), np.asarray(t.forward, float)
        cosine = (middle * forward).sum(-1) / np.linalg.norm(middle, axis=-1) / np.linalg.norm(forward, axis=-1)
        rows.append(
            {
                **dict(zip(("share", "total_variation", "qk_norm"), lengths, strict=True)),
                "long_keys": long_keys(t.keys, t.attention),
                "gamma": gamma(t.queries, t.keys),
                "first_value": sizes[:, 0] / sizes[:, 1:].mean(-1),
                "first_own": t.attention[:, 0, 0],
                "first_share": lens.stationary(t.attention)[:, 0],
                "growth": growth(jax.random.key(number), layer, t.inputs),
                "forward_cosine": cosine.mean(),
            }
        )
    measures = {str(name): np.asarray(values[0]) for name, values in found.data_vars.items()}
    return measures | {name: np.array([row[name] for row in rows]) for name in rows[0]}


def slopes(network, traces):
    """Antisymmetric shares of what layers add, of their attention and of their feed-forward networks, and errors."""
    functions, found = ((added, "inputs"), (attended, "inputs"), (encoder.feed_forward, "middle")), []
    for t, layer in zip(traces, network.layers, strict=True):
        of = jacobians.antisymmetric_share
        found.append([of(jax.random.key(0), f, getattr(t, x), (layer,)) for f, x in functions])
    return {"antisymmetric": np.array(found)[None, ..., 0], "antisymmetric_error": np.array(found)[None, ..., 1]}


def changed(x, layer, residual=True, own=True, forward=True, sink=""):
    """A layer without a part, or with something done to the value of the first token."""

    def normalised(x, norm):
        off = x - x.mean(-1, keepdims=True)
        return encoder.normalised(x, norm) if own else norm[0] * off / jnp.sqrt(jnp.mean(off**2)) + norm[1]

    attention, _, _, v = encoder.attend(x, layer)
    token = {"value zero": 0, "another value zero": 5}.get(sink)
    v = v if token is None else v.at[:, token].set(0)
    out = attention @ v
    if sink == "mean contribution":
        share = attention[..., 0]
        out = out + (share.mean(-1, keepdims=True) - share)[..., None] * v[:, :1]
    x = normalised(
        residual * x + encoder.from_heads(out) @ layer.from_values[0] + layer.from_values[1], layer.first_norm
    )
    return normalised(residual * x + forward * encoder.feed_forward(x, layer), layer.second_norm)


def passed(x, network, **changes):
    """States of all depths."""
    states = [x]
    for layer in network.layers:
        states.append(changed(states[-1], layer, **changes))
    return states


def sentence(network, tokens, another):
    """Cosines of tokens by depth without a part; of the sentence with what it is when something is done to [CLS]."""
    start = encoder.embed(jnp.asarray(tokens), network)
    by_depth = [[lens.token_cosine(x) for x in passed(start, network, **{part: False})] for part in PARTS]
    alone, x = [], start[1:]
    for layer in network.layers:
        alone.append(encoder.block(x, layer))
        x = alone[-1].outputs
    sinks = [passed(start, network, sink=s)[-1][1:] for s in ("value zero", "mean contribution", "another value zero")]
    whole, *others = (
        np.asarray(states, float).mean(0)
        for states in (
            encoder.run(tokens, network)[-1].outputs[1:],
            x,
            *sinks,
            encoder.run(another, network)[-1].outputs[1:],
        )
    )
    pi = lens.stationary(np.stack([t.attention for t in alone]))
    return {
        "ablations": by_depth,
        "sentence": [whole @ m / np.linalg.norm(whole) / np.linalg.norm(m) for m in others],
        "alone_concentration": lens.concentration(pi),
        "alone_first": pi[..., 0],
        "alone_last": pi[..., -1],
    }


if __name__ == "__main__":
    given, begin, body = records.arguments(__doc__), time.perf_counter(), {}
    trained, rng = networks.small(), np.random.default_rng(0)
    texts = rng.integers(40, size=(WINDOWS, TOKENS))
    with jax.numpy_dtype_promotion("standard"):
        for name in NETWORKS:
            network = networks.control(name, trained)
            windows = rng.permuted(texts, axis=1) if name == "other order" else texts
            traces = [encoder.run(window, network) for window in windows]
            found = [heads(network, t, number) for number, t in enumerate(traces)]
            stacked = {key: np.stack([measures[key] for measures in found]) for key in found[0]}
            if name != "trained":
                error = np.sqrt(WINDOWS)
                stacked = {key: np.stack([v.mean(0), v.std(0, ddof=1) / error]) for key, v in stacked.items()}
            parts = {"heads": stacked}
            if name != "other order":
                parts["jacobians"] = slopes(network, traces[0])
            if name == "trained":
                parts["sentence"] = sentence(network, texts[0], texts[1])
            body[name] = {part: {k: records.numbers(v, 4) for k, v in a.items()} for part, a in parts.items()}
    known = {"format": 1, "sizes": {"windows": WINDOWS}, "plan": None, "files": [], "networks": body, "complete": False}
    records.write(given.out / "lens.json.gz", known | records.circumstances(begin))
