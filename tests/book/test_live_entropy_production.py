"""The live films of three spins: the numbers are the library's, and the model answers buttons, sliders and keys."""

from itertools import product

import numpy as np

from chapters.live import entropy_production as live
from spinbook.ising import exact
from tests.book.live import Model, Opening

STEPS = 24


def _ring(asymmetry: float) -> np.ndarray:
    left = np.roll(np.eye(3), 1, axis=0)
    return left + (1 - asymmetry) * left.T


def produced(asymmetry):
    return f"Entropy production: {float(exact.entropy_production(_ring(asymmetry), 0.0, beta=1.0)):.2f} nats per step"


MODEL = Model(
    "entropy-production",
    lambda: live.markup(asymmetry=0.5, beta=1.0, steps=STEPS, seed=7),
    {"asymmetry": 0.5, "beta": 1.0, "steps": STEPS, "seed": 7},
    lambda: Opening(["asymmetry 0.50", "β (coldness) 1.00"], ["Guess, with a button."]),
    # Evidence is said after the guess and not before, and a film has one guess.
    lambda: [
        ("now()", "!nats"),
        ("click('forwards').then(() => click('backwards'))", produced(0.5), ": it runs ", "of 1."),
        ("click('Next')", "Guess", "!nats"),
        ("slide(0, 'max').then(() => click('forwards'))", produced(1.0)),
    ],
)


def test_probabilities_entropy_production_and_evidence_are_those_of_the_library(each):
    cases = [(a, b) for a, b in product((0.0, 0.3, 1.0), (0.2, 1.0, 1.4))]
    uniforms = np.random.default_rng(0).random(STEPS + 1).tolist()
    found = each(
        cases,
        "{ const P = m.transitions(m.ring(c[0]), c[1]);"
        f"const p = m.stationary(P); const film = m.film({uniforms}, P, p);"
        "return {P, p, sigma: m.production(P, p), film, evidence: m.evidence(film, P, p)}; }",
    )
    for (asymmetry, beta), answer in zip(cases, found, strict=True):
        J, P, p = _ring(asymmetry), np.array(answer["P"]), np.array(answer["p"])
        truth = np.asarray(exact.transition_matrix(J, 0.0, beta=beta), float)
        assert np.abs(truth - P).max() < 1e-12
        # The library steps until distributions differ by 1e-12; slow chains leave a little more.
        assert np.abs(truth @ p - p).max() < 1e-15
        assert np.abs(np.asarray(exact.stationary_distribution(J, 0.0, beta=beta)) - p).max() < 1e-11
        sigma = float(exact.entropy_production(J, 0.0, beta=beta, distribution=p))
        assert abs(sigma - answer["sigma"]) < 1e-12
        seen = np.array(answer["film"])
        columns = [p, *truth.T[seen[:-1]]]
        drawn = [int(np.searchsorted(np.cumsum(c), u)) for c, u in zip(columns, uniforms, strict=True)]
        assert seen.tolist() == drawn
        steps = np.log(truth[seen[1:], seen[:-1]] / truth[seen[:-1], seen[1:]])
        evidence = np.log(p[seen[0]]) - np.log(p[seen]) + np.r_[0, np.cumsum(steps)]
        assert np.abs(evidence - np.array(answer["evidence"])).max() < 1e-12
