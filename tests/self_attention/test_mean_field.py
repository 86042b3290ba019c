"""The definition of the map against a loop over units, compiled, in batches and differentiated."""

import jax
import jax.numpy as jnp
import numpy as np

from spinbook.self_attention import couplings, mean_field, positional_bits, token_window


def unit_by_unit(network, beta, steps):
    """The recursion as the paper writes it, with every unit and every token of the window written out."""
    W, V = (signs.astype(float) for signs in (network.semantic_signs, network.positional_signs))
    share = network.segment_weights
    epsilon, P = network.epsilon, V.shape[2]
    bits = positional_bits(P)

    def overlaps(mean_bits, position):
        m = np.zeros((4, network.num_features))
        for x in range(4):
            for a in range(network.num_features):
                semantic = sum(share[i] * W[x, a, i] * mean_bits[i] for i in range(len(share)))
                positional = sum(V[x, a, p] * bits[position % 2**P, p] for p in range(P)) / P
                m[x, a] = (1 - epsilon) * semantic + epsilon * positional
        return m

    attention = overlaps(W[0, 0], 0)[1]
    window, outputs, attentions = [], [], []
    for t in range(steps):
        mean_bits = [np.tanh(beta * sum(W[0, :, i] * attention)) for i in range(len(share))]
        m = overlaps(mean_bits, t)
        window = [m, *window][: network.context]
        weights = np.array([np.exp(network.gamma * m[2] @ n[3]) for n in window])
        attention = sum(w * n[1] for w, n in zip(weights / weights.sum(), window, strict=True))
        outputs.append(m[0])
        attentions.append(attention)
    return np.array(outputs), np.array(attentions)


def test_every_unit_written_out_gives_the_same_orbit(other):
    outputs, attentions = unit_by_unit(other, 1.3, 12)
    _, orbit = mean_field.simulate(couplings(other, beta=1.3), token_window(other), steps=12)
    positional = np.array([other.positional_signs[0] @ positional_bits(3)[t % 8] for t in range(12)]) / 3
    assert np.abs(orbit.attention - attentions).max() < 1e-13
    assert np.abs(orbit.output_semantic + other.epsilon * positional - outputs).max() < 1e-13
    assert np.abs(mean_field.overlaps(couplings(other, beta=1.3), attentions[-2], 11)[0] - outputs[-1]).max() < 1e-13


def test_the_initial_token_is_forgotten_after_its_attention_has_made_the_next(paper):
    after, new = mean_field.step(couplings(paper, beta=1.27), token_window(paper))
    # One token in the window: its attention is its own value.
    assert np.abs(new.attention - new.values).max() < 1e-16
    assert (int(after.length), int(after.position)) == (2, 1)


def test_it_can_be_compiled_batched_and_differentiated(paper):
    start = token_window(paper)

    @jax.jit
    def last(beta):
        return mean_field.simulate(couplings(paper, beta=beta), start, steps=5)[1].attention[-1]

    betas = jnp.array([0.4, 0.9])
    batch = jax.vmap(last)(betas)
    assert np.abs(batch[1] - last(0.9)).max() < 1e-15
    slope = jax.jit(jax.jacfwd(last))(0.9)
    h = 1e-5
    # Central differences: h^2 f''' / 6 and eps / h, about 1e-10 each.
    assert np.abs(slope - (last(0.9 + h) - last(0.9 - h)) / (2 * h)).max() < 1e-8
