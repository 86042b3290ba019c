"""What the lesson collectives claims, measured on the variables that its cells leave behind."""

import numpy as np
from scipy.special import i0, i1, softmax

from companion.claims import Measurement


def mean_and_error(values):
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))


def collective(coupled, alone):
    others = ~np.eye(3, dtype=bool)
    return Measurement(coupled[others].min(), rival=alone[others].max())


def response_vectors(total, mean, second):
    return Measurement(abs(total - mean - second).max(), rival=abs(total - mean).max())


def response_is_a_mean(lengths):
    """The share of responses, and of mean spins, that are longer than a spin, mean over the three kinds of spins."""

    def too_long(which):
        shares = [mean_and_error((pair[:, which] > 1).mean(axis=1)) for pair in lengths.values()]
        values, errors = zip(*shares, strict=True)
        return np.mean(values), np.linalg.norm(errors) / len(errors)

    return Measurement(*too_long(1), control=too_long(0))


def channel_mixing(plane, moments, response, attention, num_draws):
    """|after - before| / (|after| + |before|) when all inputs are turned, and the result is turned back."""
    rng, c, s = np.random.default_rng(7), np.cos(0.7), np.sin(0.7)
    turn = np.array([[c, s], [-s, c]])

    def change(term, h):
        before, after = term(h), term(h @ turn) @ turn.T
        return np.linalg.norm(after - before) / (np.linalg.norm(before) + np.linalg.norm(after))

    induced_turned, means_turned = [], []
    for _ in range(num_draws):
        J, x = attention(rng.normal(size=(2, 2, 4))), rng.normal(size=(3, 2))
        fixed = J(x)
        induced_turned.append(change(lambda h, J=J: response(plane, J, h, 0.8)[1], x))
        means_turned.append(change(lambda h, J=fixed: moments(plane, J, h, 0.8)[0], x))
    return Measurement(*mean_and_error(induced_turned), rival=max(means_turned))


def block_is_no_gradient(ratio):
    return Measurement(*mean_and_error(ratio["fresh block"]), rival=max(ratio["magnet whose couplings read"]))


def test_by_hand(fixed, reads):
    weights = np.exp([2.5, -0.5, -0.5, -1.5])
    assert [round(w, 3) for w in weights] == [12.182, 0.607, 0.607, 0.223]
    Z = weights.sum()
    assert abs(Z - 13.619) < 1e-3
    mean, product = weights @ [1, 1, -1, -1] / Z, weights @ [1, -1, -1, 1] / Z
    assert [round(float(v), 3) for v in (mean, product, np.tanh(1), fixed, reads)] == [
        0.878,
        0.822,
        0.762,
        0.878,
        1.289,
    ]
    assert abs(product - mean**2 - 0.051) < 1e-3
    assert round(0.822 - 0.878**2, 3) == 0.051
    assert round(0.878 + 0.5 * 0.822, 3) == 1.289


def test_influence_is_mutual_by_hand(log_Z):
    """The slope of either mean by the other field, from log Z."""
    e = 1e-3
    mixed = sum(a * b * log_Z(1 + a * e, 1 + b * e, 0.25) for a in (1, -1) for b in (1, -1)) / (4 * e**2)
    assert abs(mixed - 0.051) < 1e-3


def test_weak_fields_pass_and_mix(plane, moments):
    J = 0.01 * np.array([[0, 2, -1], [0, 0, 3], [1, -2, 0]])
    h = 0.01 * np.array([[0.9, 0.3], [-0.2, 0.4], [0.1, -0.5]])
    mixed = 0.8**2 * (J + J.T) @ h
    assert np.allclose(moments(plane, J, h, 0.8)[0], 0.8 * h + mixed, atol=0.02 * abs(mixed).max())


def test_what_is_coupled_is_symmetric(coupled):
    assert np.abs(coupled - coupled.T).max() < 1e-8


def test_circles_at_equal_heights_divide_a_sphere_evenly(ball):
    assert np.allclose(np.linalg.norm(ball, axis=1), np.sqrt(3))
    assert np.abs(ball.mean(axis=0)).max() < 1e-12
    assert np.abs(ball.T @ ball / len(ball) - np.eye(3)).max() < 0.03
    h = np.array([1.0, -0.5, 0.8])
    k = np.sqrt(3) * np.linalg.norm(h)
    p = softmax(ball @ h)
    assert abs(np.linalg.norm(p @ ball) / np.sqrt(3) - (1 / np.tanh(k) - 1 / k)) < 0.01


def test_attention_of_two_words_by_hand(slope):
    A = slope(lambda h: softmax(np.outer(h, h), axis=1) @ h, np.array([1.0, 0.0])).T
    assert [round(float(v), 3) for v in (A[1, 0], A[0, 1], np.exp(1) / (1 + np.exp(1)))] == [0.5, 0.072, 0.731]
    assert 6.5 < A[1, 0] / A[0, 1] < 7.5


def test_reciprocity_fails_for_mean_spins_alone_when_couplings_read(plane, moments, slope, attention, one_sided):
    rng = np.random.default_rng(3)
    J, x = attention(rng.normal(size=(2, 2, 4))), rng.normal(size=(3, 2))
    assert one_sided(slope(lambda y: moments(plane, J(y), y, 0.8)[0], x).reshape(6, 6)) > 0.01


def test_a_block_adds_nearly_as_one_sided_a_matrix_as_a_random_one(ratio):
    one_sided = {name: np.mean(values) for name, values in ratio.items()}
    assert 0.8 < one_sided["what a fresh block adds"] < 1
    assert one_sided["fresh block"] < 0.5 * one_sided["what a fresh block adds"]
    assert abs(one_sided["random matrix"] - 1) < 0.03


def test_no_block_with_a_causal_mask_is_reciprocal(one_sided):
    """Of a block-triangular matrix only the diagonal blocks can be symmetric."""
    A = np.tril(np.ones((4, 4)))
    assert one_sided(A) > 0.3


def test_exercise_1(moments):
    angles = 2 * np.pi * np.arange(200) / 200
    one = np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=-1)[:, None]
    for h in (0.01, 1.0, 30.0):
        mean, z = moments(one, np.zeros((1, 1)), np.array([[h, 0.0]]), 1.0)[0][0, 0], np.sqrt(2) * h
        assert abs(mean - np.sqrt(2) * i1(z) / i0(z)) < 1e-9
        assert h != 0.01 or abs(mean / h - 1) < 1e-4
        assert h != 30.0 or abs(mean / np.sqrt(2) - 1) < 0.02


def test_exercise_2(moments):
    two = np.array([[[a], [b]] for a in (1.0, -1.0) for b in (1.0, -1.0)])
    C = moments(two, np.array([[0, 0.3], [0.3, 0]]), np.zeros((2, 1)), 1.5)[1]
    assert abs(C[0, 1] - np.tanh(2 * 1.5 * 0.3)) < 1e-12


def test_exercise_3(plane, moments, h, long):
    hollow = 0.4 * (1 - np.eye(3))
    means = [moments(plane, hollow + c * np.eye(3), h, 0.8)[0] for c in (0, 0.4)]
    assert np.abs(means[0] - means[1]).max() < 1e-12
    share = long.to_numpy()
    assert (share[2] <= 0.7 * share[1]).all()


def test_exercise_4(plane, F, response, slope, one_sided, h):
    def J(x):
        return np.exp(-((x[:, None] - x) ** 2).sum(axis=-1))

    def output(x):
        return sum(response(plane, J, x, 0.8))

    total = -slope(lambda x: F(plane, J(x), x, 0.8), h).reshape(h.shape)
    assert np.abs(total - output(h)).max() < 1e-8
    assert one_sided(slope(output, h, step=1e-3).reshape(6, 6)) < 1e-4
