"""A stack of layers against the sum over all states of all layers at once."""

import itertools

import numpy as np
import pytest

from chapters.rbm_mixtures import stack
from spinbook import rbm
from spinbook.rbm import cumulant_generating_functions as K
from spinbook.rbm import exact


def _by_brute_force(v, weights, biases):
    total = 0.0
    sizes = [len(b) for b in biases]
    for bits in itertools.product([0.0, 1.0], repeat=sum(sizes)):
        layers, rest = [v], list(bits)
        for size in sizes:
            layers.append(np.array(rest[:size]))
            rest = rest[size:]
        exponent = sum(low @ W @ high for low, W, high in zip(layers, weights, layers[1:], strict=False))
        exponent += sum(b @ h for b, h in zip(biases, layers[1:], strict=True))
        total += np.exp(exponent)
    return -np.log(total)


@pytest.mark.parametrize("sizes", [(3, 2), (3, 2, 4), (2, 3, 1, 2)])
def test_layers_summed_one_after_the_other_give_the_sum_over_all_states(sizes):
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=pair) for pair in itertools.pairwise(sizes)]
    biases = [rng.normal(size=n) for n in sizes[1:]]
    v = np.asarray(exact.states(sizes[0]))
    expected = [_by_brute_force(state, weights, biases) for state in v]
    assert np.allclose(stack.effective_energy(v, weights, biases), expected, atol=1e-12, rtol=0)


def test_one_layer_is_a_restricted_boltzmann_machine():
    rng = np.random.default_rng(2)
    W, p = rng.normal(size=(4, 3)), np.array([0.2, 0.5, 0.9])
    v = np.asarray(exact.states(4))
    biases = np.log(p / (1 - p))
    constant = np.log1p(np.exp(biases)).sum()
    expected = np.asarray(rbm.effective_energy(v, W, K.bernoulli(p))) - constant
    assert np.allclose(stack.effective_energy(v, [W], [biases]), expected, atol=1e-12, rtol=0)


def test_a_layer_without_bonds_adds_a_constant_only():
    rng = np.random.default_rng(3)
    W, v = rng.normal(size=(3, 2)), np.asarray(exact.states(3))
    alone = np.asarray(stack.effective_energy(v, [W], [np.zeros(2)]))
    below = np.asarray(stack.effective_energy(v, [W, np.zeros((2, 2))], [np.zeros(2), np.zeros(2)]))
    assert np.allclose(alone - below, 2 * np.log(2), atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "biases", "message"),
    [
        ([], [], "one or more"),
        ([np.zeros((2, 3))], [], "as many as weights"),
        ([np.zeros((2, 3)), np.zeros((2, 2))], [np.zeros(3), np.zeros(2)], "fit one another"),
    ],
)
def test_layers_that_do_not_fit_are_refused(weights, biases, message):
    with pytest.raises(ValueError, match=message):
        stack.effective_energy([0.0, 1.0], weights, biases)
