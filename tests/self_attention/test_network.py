"""Networks of signs: the authors', and random ones."""

import jax
import numpy as np
import pytest

from spinbook import self_attention as sa


def test_positions_count_in_binary_with_the_most_significant_bit_first():
    for P in (0, 1, 3):
        digits = [[2.0 * int(digit) - 1 for digit in f"{r:0{P}b}"] if P else [] for r in range(2**P)]
        assert np.array_equal(sa.positional_bits(P), np.array(digits).reshape(2**P, P))


def test_the_signs_are_those_of_the_authors_seed_1(authors):
    # Their program stores all pair correlations and the fourth-order ones, which it computes from its own signs.
    network = sa.paper_network()
    for matrix, letter in enumerate("ovqk"):
        W = network.semantic_signs.astype(float)
        ours = np.vstack([W[0], W[0].prod(axis=0)]) @ W[matrix].T / 3
        assert np.abs(ours - authors["correlations"][letter]).max() < 1e-15


def test_the_paper_s_parameters():
    network = sa.paper_network()
    assert (network.num_features, network.context, network.period, network.epsilon) == (3, 4, 4, 0.02)
    assert network.gamma == pytest.approx(2.2 * 100 / np.sqrt(3), rel=1e-15)
    assert network.semantic_signs.size + network.positional_signs.size == 60


def test_random_signs_are_fair_and_independent_between_matrices():
    network = sa.random_network(jax.random.key(3), num_features=5, num_segments=2000, num_positional_bits=2)
    assert network.gamma == pytest.approx(220 / np.sqrt(5), rel=1e-15)
    W = network.semantic_signs.reshape(20, 2000).astype(float)
    # 20 means and 190 correlations of 2000 signs each: 5 standard errors.
    assert np.abs(W.mean(axis=1)).max() < 5 / np.sqrt(2000)
    assert np.abs(np.triu(W @ W.T / 2000, 1)).max() < 5 / np.sqrt(2000)
