"""One orbit: its fields, its continuation."""

import numpy as np
import pytest

from spinbook.self_attention import attention_window, couplings, mean_field, simulate
from spinbook.self_attention.lanes import FIELDS
from spinbook.self_attention.window import start_window


def by_definition(network, *, beta, steps, start):
    return mean_field.simulate(couplings(network, beta=beta), start_window(network, start), steps=steps)[1]


@pytest.mark.parametrize("routine", [simulate, by_definition])
def test_the_first_steps_are_those_of_the_authors_program(paper, authors, routine):
    for run in authors["runs"]:
        window = attention_window(paper, authors["window"], position=authors["window_position"])
        orbit = routine(paper, beta=run["beta"], steps=50, start=window if run["start"] == "window" else None)
        for name in FIELDS:
            # Regular temperatures: rounding grows by less than 1e4 in 50 steps.
            assert np.abs(np.asarray(getattr(orbit, name))[authors["steps"]] - run[name]).max() < 1e-12


@pytest.mark.parametrize("first", [1, 2, 3, 6])
def test_a_continued_orbit_is_the_uninterrupted_one(paper, first):
    whole = simulate(paper, beta=1.27, steps=20)
    begun = simulate(paper, beta=1.27, steps=first)
    rest = simulate(paper, beta=1.27, steps=20 - first, start=begun)
    for name in FIELDS:
        assert np.array_equal(np.concatenate([getattr(begun, name), getattr(rest, name)]), getattr(whole, name))


def test_a_transient_is_the_part_that_is_not_shown(paper):
    whole = simulate(paper, beta=1.27, steps=20)
    late = simulate(paper, beta=1.27, steps=13, transient=7)
    assert np.array_equal(whole.attention[7:], late.attention)
    assert np.array_equal(whole.window.attention, late.window.attention)
