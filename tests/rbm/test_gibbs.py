"""Block Gibbs sampling against the enumerated distribution of the visible units."""

import jax
import numpy as np
import pytest
from scipy import stats

from spinbook.rbm import cumulant_generating_functions as K
from spinbook.rbm import effective_energy, exact, gibbs
from spinbook.rbm.visible_terms import linear

CHAINS = 8_000
W = np.array([[0.9, -0.7], [0.8, 1.0], [-0.7, 0.9]])
A = np.array([-0.3, -0.8, -0.1])

# What the priors do to the hidden units is tested with their samplers; here, that both halves of a step fit together.
PRIORS = [
    ("gaussian", ()),
    ("bernoulli", (np.array([0.3, 0.6]),)),
]


def prior(module, name, parameters):
    return getattr(module, name)(*parameters) if parameters else getattr(module, name)


def enumerated(name, parameters):
    return np.asarray(jax.nn.softmax(-effective_energy(exact.states(3), W, prior(K, name, parameters), linear(A))))


def numbers(states):
    return (np.asarray(states) @ [1, 2, 4]).astype(int)


def assert_sampled_from(states, p):
    """Chi-square over the eight states: the chains are independent, so that their number is the sample size."""
    counts = np.bincount(numbers(states), minlength=8)
    assert stats.chisquare(counts, p * len(states)).pvalue > 1e-4


@pytest.mark.parametrize(("name", "parameters"), PRIORS)
def test_chains_from_one_state_arrive_at_the_enumerated_distribution(name, parameters):
    sampler = prior(gibbs.hidden_given_visible, name, parameters)
    start = np.zeros((CHAINS, 3))
    trajectory = np.asarray(gibbs.simulate(jax.random.key(1), start, W, sampler, A, steps=15))
    p = enumerated(name, parameters)
    assert trajectory.shape == (15, CHAINS, 3)
    assert_sampled_from(trajectory[-1], p)
    # The same frequencies without the correlations between the units would fail: 7 +- 4 is what chance gives.
    states = np.asarray(exact.states(3))
    on = p @ states
    uncoupled = np.prod(np.where(states == 1, on, 1 - on), axis=1)
    assert CHAINS * np.sum((p - uncoupled) ** 2 / uncoupled) > 25


def test_one_step_leaves_the_enumerated_distribution_unchanged():
    p = enumerated("poisson", (1.0,))
    start = np.asarray(exact.states(3))[np.random.default_rng(0).choice(8, CHAINS, p=p / p.sum())]
    assert_sampled_from(start, p)
    stepped = gibbs.step(jax.random.key(1), start, W, gibbs.hidden_given_visible.poisson(1.0), A)
    assert_sampled_from(stepped, p)
    assert np.any(np.asarray(stepped) != start)


def test_one_step_with_a_frozen_hidden_unit_draws_the_visible_ones_independently():
    v = np.asarray(gibbs.step(jax.random.key(3), np.zeros((CHAINS, 3)), W, gibbs.hidden_given_visible.constant(1.0), A))
    on = 1 / (1 + np.exp(-A - W.sum(1)))
    np.testing.assert_allclose(v.mean(0), on, atol=4 * np.max(np.sqrt(on * (1 - on) / CHAINS)))
    assert np.abs(np.corrcoef(v.T) - np.eye(3)).max() < 4 / np.sqrt(CHAINS)


def test_both_layers_are_drawn_with_numbers_of_their_own():
    drawn = []

    def sampler(key, t):
        drawn.append(np.asarray(jax.random.uniform(key, t.shape)))
        return 0 * t

    # Without bonds the visible units know nothing of the hidden ones, of which there are as many.
    v = np.asarray(gibbs.step(jax.random.key(4), np.zeros((CHAINS, 3)), np.zeros((3, 3)), sampler, A))
    for i in range(3):
        assert abs(np.corrcoef(drawn[0][:, i], v[:, i])[0, 1]) < 4 / np.sqrt(CHAINS)


def test_simulation_is_repeated_stepping():
    key, v, sampler = jax.random.key(5), np.zeros((CHAINS, 3)), gibbs.hidden_given_visible.constant(1.0)
    trajectory = np.asarray(gibbs.simulate(key, v, W, sampler, A, steps=3))
    for k, state in zip(jax.random.split(key, 3), trajectory, strict=True):
        v = gibbs.step(k, v, W, sampler, A)
        np.testing.assert_array_equal(v, state)


@pytest.mark.parametrize("batch", [(), (4,), (2, 4)])
def test_leading_axes_are_chains(batch):
    v, sampler = jax.ShapeDtypeStruct((*batch, 3), float), gibbs.hidden_given_visible.laplace(0.4)
    simulated = jax.eval_shape(lambda v: gibbs.simulate(jax.random.key(0), v, W, sampler, A, steps=2), v)
    assert simulated.shape == (2, *batch, 3)


def test_jit_changes_nothing_and_integers_are_accepted():
    key, v = jax.random.key(0), np.zeros((CHAINS, 3), int)
    sampler = gibbs.hidden_given_visible.constant(1.0)
    jitted = jax.jit(lambda key, v: gibbs.step(key, v, W, sampler, A))(key, v)
    np.testing.assert_array_equal(jitted, gibbs.step(key, v, W, sampler, A))
    single = jax.eval_shape(lambda key: gibbs.step(key, v, W.astype(np.float32), sampler, A), key)
    assert single.dtype == np.float32  # the states follow the weights
