"""The finite sum over sign classes against the sum over all units."""

import jax
import numpy as np
import pytest

from spinbook.self_attention import Network, random_network
from spinbook.self_attention.sign_classes import sign_classes


def averaged(network, f, A):
    """(1 - epsilon) <W^alpha_a f(W^o . A)>, unit by unit."""
    W = network.semantic_signs.astype(float)
    return (1 - network.epsilon) * np.einsum("i,xai,i->xa", network.segment_weights, W, f(A @ W[0]))


@pytest.mark.parametrize(("features", "segments"), [(1, 4), (4, 200), (9, 5)])
def test_the_sum_over_classes_is_the_average_over_units(features, segments):
    network = random_network(jax.random.key(features), num_features=features, num_segments=segments)
    classes = sign_classes(network)
    assert len(classes.signs) <= min(segments, 2 ** (features - 1))
    A = np.random.default_rng(0).normal(size=features)
    for f in (np.tanh, np.sin, lambda x: x**3):
        assert (
            np.abs(classes.weights @ f(classes.signs @ A) - averaged(network, f, A)).max()
            < 1e-13 * np.abs(A).sum() ** 3
        )


def test_unequal_segments_count_by_their_weight(other):
    classes = sign_classes(other)
    A = np.array([0.3, -0.8])
    assert np.abs(classes.weights @ np.tanh(classes.signs @ A) - averaged(other, np.tanh, A)).max() < 1e-15


def test_each_position_adds_its_bits(paper):
    positions = sign_classes(paper).positions
    for r, bits in enumerate([(-1, -1), (-1, 1), (1, -1), (1, 1)]):
        assert np.abs(positions[r] - 0.02 / 2 * paper.positional_signs @ np.array(bits)).max() < 1e-17


def test_without_positional_bits_there_is_one_position_that_adds_nothing(paper):
    network = Network(paper.semantic_signs, np.ones((4, 3, 0)), epsilon=0.0)
    assert network.period == 1
    assert np.array_equal(sign_classes(network).positions, np.zeros((1, 4, 3)))
