"""What the lesson entropy-production claims, measured on the variables that its cells leave behind."""

from itertools import pairwise, product

import numpy as np
import torch

from companion.claims import Measurement
from spinbook import entropy_production as library
from spinbook import sphere
from spinbook.ising import exact

PAIR = np.array([[0, 1], [-1, 0]])
ONE_WAY = np.array([[0, 1], [0, 0]])
DOWN, UP = 0, 1  # the two directions of training, the first axis of the page's tensors


def over_seeds(values):
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


def steps_needed(right):
    """For nine films of ten, in each group."""
    return np.argmax(right >= 0.9, axis=0) + 1


def same_sigma_other_films(by_beta):
    ratio, both_warm = (over_seeds(steps_needed(by_beta[b]) / steps_needed(by_beta[0.5])) for b in (1.5, 0.7))
    return Measurement(*ratio, rival=both_warm)


def lean_into_drive(record):
    gained = record[-1, 1] - record[0, 1]
    return Measurement(*over_seeds(gained[UP]), control=over_seeds(gained[DOWN]))


def maximal_uncertainty(net, forward, estimate, n, tokens, beta, R):
    """The estimate over what it would be for the same couplings without any field, where Var is 1/2."""
    draw, normalize = torch.Generator().manual_seed(1), torch.nn.functional.normalize
    symbols = torch.randint(8, (net["Q"].shape[1], 32, tokens), generator=draw)
    m, now, largest = torch.zeros(tokens, n), 0.0, 0.0
    with torch.no_grad():
        for step in range(5):
            noise = torch.randn(*symbols.shape, n, generator=draw) / n**0.5
            x = normalize(torch.eye(8)[symbols] @ net["E"], dim=-1) + noise
            J, gamma, m = forward(net, R * normalize(x, dim=-1), m)
            if step > 1:
                now = now + estimate(J, gamma, m).mean(-1)
                largest = largest + beta**2 / 2 * ((J - J.mT) ** 2).sum((-2, -1)).mean(-1) * n / 4
    free = (now / largest).numpy()
    return Measurement(*over_seeds(free[UP]), rival=over_seeds(free[DOWN]))


def instantaneous(jump, counted, stationary, transitions, J, old):
    P = transitions(J, old, 1.0)
    p = stationary(P)
    at_rest = (P * p * np.log(P / P.T)).sum()
    return Measurement(1 - jump[0][1] / jump[0][0], control=abs(counted(p, J, old, 1.0)[0] / at_rest - 1))


def test_the_pair_by_hand(sigma, counted, stationary, transitions):
    wanted = np.e / (np.e + 1 / np.e)
    there, back = wanted**2, (1 - wanted) ** 2
    assert [round(p, 3) for p in (wanted, there, wanted * (1 - wanted), back)] == [0.881, 0.776, 0.105, 0.014]
    assert abs(np.log(there / back) - 4) < 1e-12
    assert round(4 * (there - back), 2) == round(sigma(PAIR, 0.0, 1.0), 2) == 3.05
    assert round(np.exp(4)) == 55
    P = transitions(PAIR, 0.0, 1.0)
    by_pairs, estimate = counted(stationary(P), PAIR, 0.0, 1.0)
    assert abs(by_pairs - sigma(PAIR, 0.0, 1.0)) < 1e-12
    assert abs(estimate - 4) < 1e-12


def test_the_pair_with_inputs_by_hand(sigma, counted, stationary, transitions, states):
    P = transitions(PAIR, 1.0, 1.0)
    p = stationary(P)
    means = p @ states(2)
    assert [round(x, 3) for x in (*means, *(1 - means**2))] == [0.580, 0.203, 0.664, 0.959]
    assert round(counted(p, PAIR, 1.0, 1.0)[1], 2) == 2.55
    # The first spin has the mean tanh 2 or 0 and the second 0 or tanh 2, hence slopes of half of tanh 2.
    by_hand = np.tanh(2) * (1 - means**2).sum()
    assert abs(sigma(PAIR, 1.0, 1.0) - by_hand) < 1e-12
    assert round(by_hand, 2) == 1.56


def test_sigma_is_the_library_s_by_enumeration(sigma, ring):
    for a, b in ((0.5, 0.7), (1.0, 1.5)):
        assert abs(sigma(ring(a), 0.0, b) / float(exact.entropy_production(ring(a), 0.0, beta=b)) - 1) < 1e-4


def test_the_sum_over_pairs_is_exact(rows):
    _, truth, pairs, estimate, _ = np.array(rows).T
    assert np.allclose(pairs, truth, rtol=1e-9)
    assert (estimate > 0).all()


def test_the_loss_is_the_library_s_estimate(estimate, n):
    J, theta = torch.rand(5, 5), 3 * torch.randn(5, n)
    gamma = (1 + (theta**2).sum(-1, keepdim=True) / (n / 2 - 1)).sqrt()
    J_, theta_ = J.numpy(), theta.numpy()
    truth = library.vector_mean_field(J_, theta_, theta_, beta=1.0, response=sphere.large_d)
    assert abs(float(estimate(J, gamma, theta / (1 + gamma))) / float(truth) - 1) < 1e-4


def test_the_network_answers_with_nearly_the_opposite(net, n, R, updates):
    if updates < 100:  # the quick profile does not train for long enough
        return
    with torch.no_grad():
        E = torch.nn.functional.normalize(net["E"], dim=-1)
        x = E + torch.randn(E.shape) / n**0.5
        x = R * torch.nn.functional.normalize(x, dim=-1)
        answer = torch.nn.functional.gelu(x @ net["W"]) @ net["V"]
        cosine = torch.nn.functional.cosine_similarity(x, answer, dim=-1)[UP].mean()
        left = (x + answer)[UP].norm(dim=-1).mean() / R
    assert cosine < -0.95
    assert left < 0.3


def test_the_cold_ring_mostly_stands_still(ring, sigma, transitions, stationary):
    a = np.linspace(0.01, 1, 400)
    a = a[np.argmin([abs(sigma(ring(v), 0.0, 1.5) - 0.3) for v in a])]
    P = transitions(ring(a), 0.0, 1.5)
    assert (np.diag(P) * stationary(P)).sum() > 0.5


def test_ten_steps_after_the_jump_the_formula_is_right(jump):
    assert abs(jump[-1][1] / jump[-1][0] - 1) < 0.01
    assert min(full for full, _ in jump) > 0


def test_the_step_of_the_jump_is_the_library_s_budget(jump, J, old, new, stationary, transitions, states):
    order = [(states(6) == state).all(axis=1).argmax() for state in np.asarray(exact.states(6))]
    settled = stationary(transitions(J, old, 1.0))[order]
    assert np.isclose(jump[0][0], float(library.entropy_budget(settled, J, new, beta=1.0).total), rtol=1e-4)


def test_exercise_1(sigma):
    for b in (0.5, 2.0):
        assert abs(sigma(ONE_WAY, 0.0, b) - b * np.tanh(b)) < 1e-9
        assert abs(sigma(PAIR, 0.0, b) - 4 * b * np.tanh(b)) < 1e-9


def test_exercise_2(transitions):
    P, seen = transitions(PAIR, 0.0, 1.0), {}
    for path in product(range(4), repeat=6):
        chance = 0.25 * np.prod([P[b, a] for a, b in pairwise(path)])
        film = tuple(state // 2 for state in path)  # the first spin only
        seen[film] = seen.get(film, 0) + chance
    assert max(abs(seen[film] - seen[film[::-1]]) for film in seen) < 1e-12


def test_exercise_3(J, old, new, sigma, transitions, stationary):
    symmetric = J + J.T
    assert abs(sigma(symmetric, old, 1.0)) < 1e-9
    p, P = stationary(transitions(symmetric, old, 1.0)), transitions(symmetric, new, 1.0)
    assert (P * p * np.log(P * p / (P.T * (P @ p)[:, None]))).sum() > 0.1


def test_exercise_4(estimate, n):
    scores = torch.randn(6, 6).masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)
    J, theta = scores.softmax(dim=-1), torch.randn(6, n)
    gamma = (1 + (theta**2).sum(-1, keepdim=True) / (n / 2 - 1)).sqrt()
    m = theta / (1 + gamma)
    changed = J.clone().fill_diagonal_(0)
    assert torch.isclose(estimate(J, gamma, m), estimate(changed, gamma, m), rtol=1e-4)
    spread, sharp = torch.zeros(2, 5, 5)
    spread[4, :4], sharp[4, 0] = 0.25, 1.0
    free = torch.ones(5, 1), torch.zeros(5, n)
    assert torch.isclose(estimate(sharp, *free), 4 * estimate(spread, *free))
