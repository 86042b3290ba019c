"""The live model of the lesson attention-dynamics iterates the map of the library, and answers slider and buttons."""

import numpy as np
import pytest

from chapters.live import attention_dynamics as live
from spinbook.self_attention import lyapunov_exponents, paper_network, simulate
from tests.book.live import Model, Opening, carried

NETWORK = paper_network()

MODEL = Model(
    "attention-dynamics",
    lambda: live.markup(beta=1.2),
    {
        "semantic": NETWORK.semantic_signs.tolist(),
        "positional": NETWORK.positional_signs.tolist(),
        "gamma": NETWORK.gamma,
        "epsilon": NETWORK.epsilon,
        "beta": 1.2,
    },
    lambda: Opening(["β 1.200"], ["the tokens repeat after 4"]),
    lambda: [
        (
            "click(2)",
            "β = 1.280: exponent 0.1",
            "chaos. The copies, one millionth apart at first, are told apart after",
        ),
        ("click(1)", "β = 1.255", "a torus, or a very long cycle"),
        ("slide(0, 'min').then(() => click(4))", "β = 1.000", "repeat after 4"),
        ("click(5)", "β = 1.200"),
    ],
)


@pytest.fixture(scope="module")
def start():
    return simulate(NETWORK, beta=1.2, steps=1, transient=3999).window.attention


def test_the_first_window_is_that_of_the_library(start):
    assert carried(MODEL)["start"] == start.tolist()


def test_tokens_are_those_of_the_library(each, start):
    betas = 1.0, 1.255, 1.28, 2.6
    for beta, one in zip(betas, each(betas, "m.run(d, d.start, c, 24)"), strict=True):
        library = simulate(NETWORK, beta=beta, steps=24, start=start)
        # At 1.28 the orbit is chaotic: 24 steps enlarge the last bit 10,000 times.
        assert np.abs(library.attention - np.array(one["attention"])).max() < 1e-10
        assert np.abs(library.output_semantic - np.array(one["outputs"])).max() < 1e-10


def test_exponents_are_those_of_the_library_on_a_cycle_and_within_their_scatter_in_chaos(each, start):
    found = each((1.2, 1.28), "m.exponent(d, m.run(d, d.start, c, 2000).window, c, 4000)")
    # On the cycle only the first tangents differ, by their alignment over the number of tokens. In chaos 4,000 tokens
    # scatter with a standard deviation of 0.007, of which four are allowed; logarithms of base two would be 0.064 off.
    for beta, exponent, allowed in zip((1.2, 1.28), found, (1e-4, 0.03), strict=True):
        library = lyapunov_exponents(NETWORK, beta=beta, steps=40_000, transient=2000, start=start)
        assert abs(exponent["rate"] - library.exponents[0]) < allowed
        assert exponent["error"] < allowed / 3
