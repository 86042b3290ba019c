"""Where orbits start."""

import numpy as np

from spinbook.self_attention import simulate, token_window
from spinbook.self_attention.window import start_window


def test_the_default_token_is_the_first_output_pattern_and_its_attention_its_value(paper):
    # 99 units, 33 of each segment, at position 0.
    W = np.repeat(paper.semantic_signs, 33, axis=2).astype(float)
    token = W[0, 0]
    value = 0.98 * W[1] @ token / 99 + 0.02 * paper.positional_signs[1] @ np.array([-1, -1]) / 2
    window = token_window(paper)
    assert np.abs(window.attention[0] - value).max() < 1e-15
    assert (int(window.length), int(window.position)) == (1, 0)


def test_a_start_may_be_a_window_a_trajectory_an_array_or_nothing(paper):
    orbit = simulate(paper, beta=1.0, steps=6)
    for start in (orbit, orbit.window):
        assert np.array_equal(start_window(paper, start).attention, orbit.attention[:-5:-1])
    assert np.array_equal(start_window(paper, orbit.attention[:4]).attention, orbit.attention[:4])
    assert np.array_equal(start_window(paper, None).attention, token_window(paper).attention)
