"""What the lesson free-energy claims, measured on the variables that its cells leave behind."""

from itertools import pairwise

import numpy as np
import torch
from scipy.optimize import minimize

from companion.claims import Measurement
from experiments import records
from experiments.comparison import summary
from spinbook.free_energy import VectorSpinModel, neumann_terms


def one_minimum(lam, a):
    """Stationary points of phi right of the largest eigenvalue of the couplings, and on the whole axis."""

    def slope(t):
        V = t[:, None] - lam
        return 1 - (1 / V).mean(axis=1) / 2 - (a / V**2).mean(axis=1) / 4

    def changes(values):
        return float((np.diff(np.sign(values)) != 0).sum())

    edges = np.concatenate([[-10.0], lam, [10.0]])
    between = [np.linspace(low, high, 20_001)[1:-1] for low, high in pairwise(edges)]
    found = [changes(slope(t)) for t in between]
    return Measurement(found[-1], rival=sum(found))


def paths(chain, ends, truth):
    t = VectorSpinModel(4, 64, 1.0, chain).saddle_point(np.zeros((4, 64))).value
    direct = neumann_terms(t, chain, 2).numpy().sum(axis=0)[0, 3] / 2
    return Measurement(ends / truth, rival=direct / truth)


def collapse(scales, kept, bars):
    at_eight, at_one = list(scales).index(8), list(scales).index(1)
    return Measurement(kept[at_eight], bars[at_eight], rival=(kept[at_one], bars[at_one]))


def test_by_hand(x, on_a_sphere, magnet, pair):
    weights = np.linalg.inv([[x, -1], [-1, x]])
    assert np.allclose(weights, [[1, 0.618], [0.618, 1]], atol=5e-4)
    assert np.allclose(magnet(pair, 1e-6 * np.eye(2, 64))[0], weights, atol=1e-6)
    series = [round(x**-k, 3) for k in (1, 2, 3, 4)]
    assert series == [0.618, 0.382, 0.236, 0.146]
    # The correlation of two spins without fields, and by the rule the weight of the field of one in the other.
    assert [round(on_a_sphere(1.0, 1.0, D), 3) for D in (64, 3)] == [0.620, 0.672]


def test_the_recipe_finds_the_springs_of_the_library(magnet, J, H):
    expected = VectorSpinModel(*H.shape, 1.0, J).magnetizations(H).numpy()
    assert np.abs(magnet(J, H)[1] - expected).max() < 1e-10


def test_an_answer_is_the_variance_times_beta_d(on_a_sphere):
    """Of a component along the field: the slope of the mean against the variance, by quadrature for D = 3."""
    beta, h, e = 2.0, 0.6, 1e-5
    slope = (on_a_sphere(h + e, beta, 3) - on_a_sphere(h - e, beta, 3)) / (2 * e)
    u = np.linspace(-1, 1, 200_001)
    p = np.exp(beta * 3 * h * u)
    p /= p.sum()
    assert abs(slope - beta * 3 * ((p * u**2).sum() - (p * u).sum() ** 2)) < 1e-4


def test_the_error_of_a_spring_is_largest_for_two_components(excess, off):
    worst = [excess[D].max() for D in sorted(excess)]
    assert all(more > less for more, less in pairwise(worst))
    assert worst[-1] < 0.16
    assert off[64] < 0.5 < 3 < off[3]


def test_the_negative_weights_are_the_magnets(weights):
    assert weights["softmax"].min() > 0 > weights["magnet"].min()
    assert np.allclose(weights["magnet"], weights["magnet"].T)
    assert abs(weights["magnet"].sum(axis=1) - 1).max() > 0.1
    topic = np.kron(np.eye(3), np.ones((4, 4))) - np.eye(12)
    other = 1 - topic - np.eye(12)
    for w in weights.values():
        assert (w * topic).sum() / topic.sum() > 1.5 * (w * other).sum() / other.sum()
    assert abs(np.diag(weights["softmax"]).mean() / np.diag(weights["magnet"]).mean() - 1) < 0.2


def test_using_this_agrees_with_the_records():
    leads = []
    made = [records.of_book("comparison", file) for file in ("comparison", "longer")]
    for record in made:
        rows = {(row.task, row.row): row for row in summary.summarize(record)}
        block, module = rows["digits", "vanilla"], rows["digits", "free energy, symmetric"]
        leads.append(summary.wins(block, module))
        if len(leads) == 1:
            lookups = [rows["recall", kind].score for kind in ("vanilla", "free energy, symmetric")]
            assert abs(lookups[0] - lookups[1]) < 0.01
    assert leads[0] == 1  # the block in all pairs of runs
    assert leads[1] < 1
    updates = [record["recipe"]["num_updates"] for record in made]
    assert updates[1] == 5 * updates[0]


def test_exercise_1():
    rng = np.random.default_rng(0)
    J, H = symmetric(rng, 6), rng.normal(size=(6, 16)) / 4
    t = VectorSpinModel(6, 16, 1.0, J).saddle_point(H).value.numpy()

    def phi(t):
        V = np.diag(t) - J - 0.7 * np.eye(6)
        sign, logarithm = np.linalg.slogdet(V)
        return t.sum() - logarithm / 2 + np.trace(H.T @ np.linalg.solve(V, H)) / 4 if sign > 0 else np.inf

    assert np.abs(minimize(phi, t + 0.8, tol=1e-10).x - t - 0.7).max() < 1e-4


def symmetric(rng, N):
    draw = rng.normal(size=(N, N)) / 4
    return (draw + draw.T) / 2 * (1 - np.eye(N))


def test_exercise_2(on_a_sphere, on_a_spring):
    assert abs(on_a_spring(1.0, 1.0) - 0.618) < 5e-4
    excess = [on_a_sphere(1.0, 1.0, D) / on_a_spring(1.0, 1.0) - 1 for D in range(2, 100)]
    assert next(D for D, share in enumerate(excess, start=2) if share < 0.01) == 25
    assert abs(25 * 0.618 * excess[23] - 0.15) < 0.01


def test_exercise_3(misses, x):
    assert 2 < misses[0] < 2.5
    assert misses[1] < 0.01
    positive = (torch.eye(2) + torch.eye(2).flip(0)) / 2
    assert float(2 * ((positive - torch.eye(2).flip(0)) ** 2).sum()) == 2
    assert np.allclose(np.eye(2) - np.linalg.inv([[x, -1], [-1, x]]), [[0, -0.618], [-0.618, 0]], atol=5e-4)


def test_exercise_4():
    rng = np.random.default_rng(1)
    J, H, sign = symmetric(rng, 6), rng.normal(size=(6, 16)) / 4, np.array([1, 1, -1, 1, 1, 1.0])
    plain = VectorSpinModel(6, 16, 1.0, J).magnetizations(H).numpy()
    turned = VectorSpinModel(6, 16, 1.0, J * np.outer(sign, sign)).magnetizations(H * sign[:, None]).numpy()
    assert np.abs(turned - plain * sign[:, None]).max() < 1e-10
