"""The map of the source's network, with each of its three kinds of units written out, in thirty digits.

From the equations: a unit that the attention A makes has the mean tanh(beta W^o . A); the averages of a token are over
its units and its positional bits; A_t is the softmax average of the values of four tokens. Four steps are one period.
"""

import mpmath
import numpy as np
import pytest

from spinbook import self_attention as sa

FEATURES, CONTEXT = 3, 4
EPSILON, PAIR = "0.02", [[-1, -1], [-1, 1], [1, -1], [1, 1]]


@pytest.fixture(scope="module")
def signs():
    network = sa.paper_network()
    return network.semantic_signs.tolist(), network.positional_signs.tolist()


def token(attention, position, beta, signs):
    """Values, queries and keys of the token that an attention makes at a position."""
    semantic, positional = signs
    eps, bits = mpmath.mpf(EPSILON), PAIR[position % 4]
    units = [mpmath.tanh(beta * sum(semantic[0][a][i] * attention[a] for a in range(FEATURES))) for i in range(3)]

    def average(kind, a):
        inner = sum(semantic[kind][a][i] * units[i] for i in range(3)) / 3
        outer = sum(positional[kind][a][p] * bits[p] for p in range(2)) / 2
        return (1 - eps) * inner + eps * outer

    return [[average(kind, a) for a in range(FEATURES)] for kind in (1, 2, 3)]


def period(flat, beta, signs):
    """Four steps: the window of four attentions, newest first, as twelve numbers."""
    gamma = mpmath.mpf("2.2") * 100 / mpmath.sqrt(3)
    window = [list(flat[3 * k : 3 * k + 3]) for k in range(CONTEXT)]
    for t in range(4):
        tokens = [token(window[age], t - age, beta, signs) for age in range(CONTEXT)]
        query = tokens[0][1]
        logits = [gamma * sum(q * k for q, k in zip(query, key, strict=True)) for _, _, key in tokens]
        weights = [mpmath.exp(x - max(logits)) for x in logits]
        new = [sum(w * tokens[k][0][a] for k, w in enumerate(weights)) / sum(weights) for a in range(FEATURES)]
        window = [new, *window[:-1]]
    return [x for attention in window for x in attention]


def derivative(flat, beta, signs):
    step = mpmath.mpf(10) ** (-mpmath.mp.dps // 3)
    columns = []
    for k in range(12):
        ends = []
        for sign in (1, -1):
            moved = list(flat)
            moved[k] += sign * step
            ends.append(period(moved, beta, signs))
        columns.append([(a - b) / (2 * step) for a, b in zip(*ends, strict=True)])
    return mpmath.matrix(columns).T


def cycle(beta, signs):
    """The fixed point of four steps, by Newton's method, and the derivative there."""
    flat = [mpmath.mpf(0)] * 12
    for _ in range(14):
        slope = derivative(flat, beta, signs)
        gap = [a - b for a, b in zip(period(flat, beta, signs), flat, strict=True)]
        move = mpmath.lu_solve(slope - mpmath.eye(12), mpmath.matrix(gap))
        flat = [x - move[k] for k, x in enumerate(flat)]
        if max(abs(x) for x in move) < mpmath.mpf(10) ** (-mpmath.mp.dps // 2):
            return flat, derivative(flat, beta, signs)
    raise AssertionError("Newton's method did not arrive")


def largest(beta, signs):
    values, _ = mpmath.eig(cycle(beta, signs)[1])
    return max(abs(v) for v in values)


@pytest.mark.slow
def test_the_ripple_of_period_four_loses_its_stability_where_the_book_says(signs):
    # Claim attention-dynamics.first-transition: 1.243445.
    with mpmath.workdps(30):
        ends = (mpmath.mpf("1.2434"), mpmath.mpf("1.2435"))
        beta = mpmath.findroot(lambda b: largest(b, signs) - 1, ends, solver="secant", tol=1e-9, maxsteps=6)
        assert mpmath.nstr(beta, 7) == "1.243445"


def test_exponents_below_it_are_the_logarithms_of_the_multipliers(signs):
    with mpmath.workdps(30):
        values, _ = mpmath.eig(cycle(mpmath.mpf("1.22"), signs)[1])
        expected = sorted((float(mpmath.log(abs(v))) / 4 for v in values), reverse=True)[:2]
    found = sa.lyapunov_exponents(
        sa.paper_network(), beta=1.22, steps=40_000, transient=8_000, num_exponents=2
    ).exponents
    # The pair is conjugate: its tangents turn, and T steps differ from the limit by a bounded factor over T.
    assert expected[0] == pytest.approx(expected[1], abs=1e-12)
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=5 / 40_000)
