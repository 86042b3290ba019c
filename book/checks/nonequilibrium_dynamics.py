"""What the lesson nonequilibrium-dynamics claims, measured on the variables that its cells leave behind."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import erf

from companion.claims import Measurement


def over_modules(numbers):
    return float(numbers.mean()), float(numbers.std(ddof=1) / np.sqrt(len(numbers)))


def without_spins(net, x, R, parallel=True):
    """A block in NumPy: attention over the values and a feed-forward network, added to x and squashed."""
    Q, K, V, W1, W2 = (np.asarray(net[name][0]) for name in ("Q", "K", "V", "W1", "W2"))

    def squash(h):
        return h / (1 + np.sqrt(1 + (h**2).sum(-1, keepdims=True) / R**2))

    def feed(a):
        hidden = a @ W1.T
        return hidden * (1 + erf(hidden / np.sqrt(2))) / 2 @ W2.T

    def to_length(h, length):
        return length * h / np.linalg.norm(h, axis=1, keepdims=True)

    a = to_length(x, R)
    scores = x.shape[1] ** 0.5 * to_length(a @ Q.T, 1) @ to_length(a @ K.T, 1).T
    attention = np.tril(np.exp(scores))
    attended = x + attention / attention.sum(axis=1, keepdims=True) @ squash(a @ V.T)
    return squash(attended + feed(a if parallel else to_length(attended, R)))


def one_update_is_a_block(block, net, x, R):
    x = np.asarray(x[0])
    return Measurement(
        float(np.abs(block - without_spins(net, x, R)).max()),
        rival=float(np.abs(block - without_spins(net, x, R, parallel=False)).max()),
    )


def four_updates(left):
    return Measurement(*over_modules(left[1.0][4]), rival=over_modules(left[1.0][1]))


def rest_forgets(net, x, start, settle, R):
    """How far apart two starts are, over R: after forty updates, and after one."""
    apart = jnp.abs(settle(net, x, start, 40) - settle(net, x, 0 * x, 40)).max((1, 2, 3)) / R
    return Measurement(float(apart[-1]), rival=float(apart[1]))


def nearer_without_training(net, x, start, settle, phi):
    """The distance from rest after one update from the input over that from the values."""
    rest = settle(net, x, start, 60)[-1]

    def distance(m):
        return np.asarray(jnp.sqrt(((settle(net, x, m, 1)[-1] - rest) ** 2).sum((1, 2))))

    order = np.random.default_rng(0).permutation(x.shape[1])
    own = distance(start)
    return Measurement(
        *over_modules(distance(phi(x)) / own),
        rival=over_modules(distance(start[:, order]) / own),
    )


def test_the_table_by_hand(phi, D):
    weak = 1e-5 * jnp.eye(1, D)
    for mean, row in ((0.0, (0.5, 0.75, 0.875, 0.9375)), (2.0, (1.5, 1.25, 1.125, 1.0625))):
        m = mean * weak
        for by_hand in row:
            m = phi(weak + m)
            assert abs(float(m[0, 0]) / 1e-5 - by_hand) < 1e-8


def test_the_library_s_module_is_ours(block, net, x, start, settle):
    assert float(jnp.abs(block - settle(net, x, start, 1)[1, 0]).max()) < 1e-12


def test_all_modules_are_at_rest_after_a_hundred_updates(net, x, values, settle):
    for b in (1.0, 8.0):
        path = settle(net, x, values(net, x, b), 100, b)
        assert float(jnp.abs(path[-1] - path[-2]).max()) < 1e-9


def test_no_token_is_further_than_the_bound_allows(net, x, start, settle):
    path = settle(net, x, start, 60)
    furthest = jnp.sqrt(((path - path[-1]) ** 2).sum(-1)).max(-1)
    assert bool((furthest[1:11] <= furthest[:10] / 2).all())


def test_one_update_leaves_less_than_half(left):
    assert left[1.0][1].max() < 0.5


def test_the_feed_forward_network_keeps_its_gradient(falls):
    assert 0.7 < falls["W2"].min() <= falls["W2"].max() < 1.4


def test_the_first_model_at_rest_is_hardly_better_than_a_blind_guess(by_seed):
    assert round(np.log(36), 2) == 3.58
    assert 3.3 < by_seed["1 update", "at rest"].mean() < np.log(36)


def test_the_other_models_lose_more_by_many_times_the_margin(mean, bar, uses):
    for use in uses[2:]:
        assert mean[use] - bar[use] > 6 * 0.01
    assert mean["vanilla", "once"] + bar["vanilla", "once"] < 0
    assert mean["at rest", "1"] > 1.5


def test_the_losses_are_those_of_the_title_page_and_of_the_first_screen(by_seed, mean):
    shown = [("1 update", "1"), ("at rest", "at rest"), ("vanilla", "once")]
    assert [round(by_seed[use].mean(), 3) for use in shown] == [1.604, 1.706, 1.557]
    assert round(mean["at rest", "at rest"], 3) == 0.102


def test_the_squash_is_an_rms_norm_when_cold(phi, R, D):
    h = jnp.arange(1.0, D + 1)[None]
    assert np.allclose(phi(h, 1e6), R * h / jnp.linalg.norm(h), rtol=1e-4)
    assert round(R / D**0.5, 1) == 0.7


def test_exercise_1(net, x, settle):
    other = x.at[:, 0].set(-x[:, 0])
    once, twice = ([settle(net, inputs, 0 * x, K)[-1][:, 1:] for inputs in (x, other)] for K in (1, 2))
    assert float(jnp.abs(once[0] - once[1]).max()) == 0
    assert float(jnp.abs(twice[0] - twice[1]).max()) > 1e-3


def test_exercise_2(phi, D):
    weak = 1e-4 * jnp.eye(1, D)
    for b in (0.5, 1.0, 1.9):
        m = jax.lax.fori_loop(0, 400, lambda _, m, b=b: phi(weak + m, b), 0 * weak)
        assert abs(float(m[0, 0]) / (1e-4 / (2 / b - 1)) - 1) < 1e-4


def test_exercise_3(net, x, drive, phi):
    def alike(inputs, m, updates):
        f = drive(net, inputs)[0]
        for _ in range(updates):
            m = phi(f + m.mean(axis=1, keepdims=True))
        return m

    settled = alike(x, 0 * x, 60)
    rest, first_step = alike(-x, settled, 60), alike(-x, settled, 1)
    assert float(jnp.abs(rest - rest.mean(axis=1, keepdims=True)).max()) > 0.1
    assert float(jnp.abs(first_step - rest).max()) > 0.01


def test_exercise_4(phi, sites):
    chain, draws = np.eye(sites, k=-1), np.random.default_rng(0)
    f = draws.normal(size=(2, sites, 32))
    f[1, 1:] = f[0, 1:]
    for first, means in ((0, [np.zeros((sites, 32))] * 2), (1, list(f))):
        for updates in range(sites - first):
            assert (np.abs(means[0] - means[1]).max(axis=1) > 0).sum() == first + updates
            means = [np.asarray(phi(field + chain @ m)) for field, m in zip(f, means, strict=True)]
