"""The echo at the layer that could have heard it, against loops over tokens and derivatives by differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import encoder
from experiments.lens_record import metric, reaction
from tests.test_lens import tiny


@pytest.fixture(scope="module")
def network():
    ones = jnp.ones(8), jnp.zeros(8)
    words, places = (jnp.asarray(np.random.default_rng(k).normal(size=(24, 8))) for k in (1, 2))
    whole = encoder.Encoder(words, places, ones, (tiny(seed=0), tiny(seed=1)))
    return jax.tree.map(lambda a: a.astype(jnp.float32), whole)


def test_the_echo_is_what_a_token_gave_and_a_message_is_what_another_one_gave(network):
    """The part of the second attention that goes when what token i gave to the others is taken out of their states."""
    s = encoder.block(encoder.embed(jnp.arange(24), network), network.layers[0], 2)
    t = encoder.block(s.outputs, network.layers[1], 2)
    part = reaction.parts(network, [s, t], 0)
    i, shift, d = 5, 7, 4
    for name, origin in (("echo", i), ("message 7", i + shift)):
        expected = np.zeros(8)
        for j in range(24):
            if j == i:
                continue
            J, W = np.asarray(s.attention[:, j, origin]), np.asarray(network.layers[0].from_values[0])
            given = sum(J[h] * np.asarray(s.values[h, origin]) @ W[h * d : (h + 1) * d] for h in range(2))
            for norm, before in (
                (network.layers[0].first_norm, s.inputs + s.attended),
                (network.layers[0].second_norm, s.middle + s.forward),
            ):
                given = np.asarray(norm[0]) * (given - given.mean()) / np.asarray(before[j]).std()
            value = given @ np.asarray(network.layers[1].to_values[0])
            for h in range(2):
                back = value[h * d : (h + 1) * d] @ np.asarray(network.layers[1].from_values[0])[h * d : (h + 1) * d]
                expected += float(t.attention[h, i, j]) * back
        gain, before = np.asarray(network.layers[1].first_norm[0]), np.asarray(t.inputs + t.attended)[i]
        carried = gain * (expected - expected.mean()) / before.std()
        assert part[name][i] == pytest.approx(carried, rel=1e-4, abs=1e-6)


def test_the_response_of_a_network_that_subtracts_is_minus_one(network):
    layer = network.layers[1]
    x, u = jnp.asarray(np.random.default_rng(3).normal(size=(2, 24, 8)), jnp.float32)
    slope, step = reaction.along(x, layer, 1e-3 * u)
    F = encoder.feed_forward
    ahead, behind = F(x + 1e-2 * u, layer), F(x - 1e-2 * u, layer)
    assert float(slope) == pytest.approx(float(jnp.sum(u * (ahead - behind)) / 2e-2 / jnp.sum(u * u)), rel=1e-2)
    assert float(step) == pytest.approx(float(slope), rel=0.1)


def test_no_metric_hides_a_slope_and_independent_numbers_are_far_from_one():
    rng = np.random.default_rng(1)
    H = rng.normal(size=(120, 120))
    hidden = np.exp(rng.normal(size=120))[:, None] * (H + H.T)
    assert metric.share(hidden) > 0.2
    assert abs(metric.least_share(hidden)) < 1e-9
    assert 0.3 < metric.least_share(H) < metric.share(H)
