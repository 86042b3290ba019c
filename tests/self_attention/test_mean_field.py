"""The definition of the map: against the authors' program, against a loop over units, and its symmetries."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from spinbook.self_attention import attention_window, couplings, mean_field, positional_bits, token_window
from spinbook.self_attention.lanes import FIELDS


def unit_by_unit(network, beta, token, steps):
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

    attention = overlaps(token, 0)[1]
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
    token = np.array([1.0, -1.0, -1.0, 1.0, 1.0])
    outputs, attentions = unit_by_unit(other, 1.3, token, 12)
    _, orbit = mean_field.simulate(couplings(other, beta=1.3), token_window(other, token), steps=12)
    positional = np.array([other.positional_signs[0] @ positional_bits(3)[t % 8] for t in range(12)]) / 3
    assert np.abs(orbit.attention - attentions).max() < 1e-13
    assert np.abs(orbit.output_semantic + other.epsilon * positional - outputs).max() < 1e-13
    assert np.abs(mean_field.overlaps(couplings(other, beta=1.3), attentions[-2], 11)[0] - outputs[-1]).max() < 1e-13


def test_the_initial_token_is_forgotten_after_its_attention_has_made_the_next(paper):
    after, new = mean_field.step(couplings(paper, beta=1.27), token_window(paper))
    # One token in the window: its attention is its own value.
    assert np.abs(new.attention - new.values).max() < 1e-16
    assert (int(after.length), int(after.position)) == (2, 1)


def test_entries_beyond_the_length_of_the_window_are_ignored(paper):
    c, start = couplings(paper, beta=1.27), token_window(paper)
    filled = start._replace(attention=start.attention + np.array([[0.0], [9.0], [-9.0], [1.0]]))
    (_, one), (_, two) = (mean_field.simulate(c, window, steps=5) for window in (start, filled))
    assert np.array_equal(one.attention, two.attention)


def test_without_positions_attention_does_not_know_the_order_of_the_window(paper):
    # Only the newest token asks; the three before it may be permuted. A soft attention, so that all of them count.
    A = np.random.default_rng(0).uniform(-1, 1, (4, 3))
    differences = []
    for epsilon in (0.0, 0.02):
        network = replace(paper, epsilon=epsilon, gamma=2.0)
        c = couplings(network, beta=1.3)
        one, two = (
            mean_field.step(c, attention_window(network, A[[0, *order]]))[1].attention
            for order in ([1, 2, 3], [3, 1, 2])
        )
        differences.append(np.abs(one - two).max())
    assert differences[0] < 1e-15
    assert differences[1] > 1e-4


def test_without_positions_the_map_is_odd(paper):
    # All spins reversed: m^q . m^k stays, everything else changes sign.
    network = replace(paper, epsilon=0.0)
    A = np.random.default_rng(1).uniform(-1, 1, (4, 3))
    c = couplings(network, beta=1.3)
    plus, minus = (mean_field.step(c, attention_window(network, sign * A))[1] for sign in (1, -1))
    for name in FIELDS:
        assert np.abs(getattr(plus, name) + getattr(minus, name)).max() < 1e-15


def test_the_map_has_the_period_of_the_positions(paper):
    A = np.random.default_rng(2).uniform(-1, 1, (4, 3))
    c = couplings(paper, beta=1.3)
    attention = [mean_field.step(c, attention_window(paper, A, position=p))[1].attention for p in (0, 4, 1)]
    assert np.array_equal(attention[0], attention[1])
    assert np.abs(attention[0] - attention[2]).max() > 1e-4


def test_at_gamma_zero_attention_is_the_mean_value_of_the_window(paper):
    network = replace(paper, gamma=0.0)
    _, orbit = mean_field.simulate(couplings(network, beta=1.3), token_window(network), steps=9)
    assert np.abs(orbit.attention[-1] - orbit.values[-4:].mean(axis=0)).max() < 1e-15


def test_at_beta_zero_only_the_positions_are_left(paper):
    _, orbit = mean_field.simulate(couplings(paper, beta=0.0), token_window(paper), steps=9)
    assert np.abs(orbit.output_semantic).max() == 0
    expected = paper.epsilon / 2 * paper.positional_signs[1] @ positional_bits(2).T
    assert np.abs(orbit.values - expected.T[np.arange(9) % 4]).max() < 1e-17


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


def test_single_precision_stays_single(paper):
    _, orbit = mean_field.simulate(couplings(paper, beta=np.float32(1.0)), token_window32(paper), steps=4)
    assert orbit.attention.dtype == jnp.float32


def token_window32(network):
    start = token_window(network)
    return start._replace(attention=start.attention.astype(np.float32))
