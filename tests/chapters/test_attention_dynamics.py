"""Both drawings show what the source's figures show; the stored numbers are whole."""

import numpy as np

from chapters.attention_dynamics import authors
from chapters.attention_dynamics import drawings as plot


def written(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def test_hopfield_has_three_overlaps_of_each_kind_and_three_attention_values():
    texts = set(written(plot.hopfield()))
    assert {f"$m^{kind}_{a}$" for kind in "qk" for a in (1, 2, 3)} <= texts
    assert {f"$A_{a}$" for a in (1, 2, 3)} <= texts


def test_layer_has_four_tokens_in_the_window_and_one_that_enters():
    texts = written(plot.layer())
    assert [text for text in texts if text.startswith("$x_")] == [
        "$x_{t-3}$",
        "$x_{t-2}$",
        "$x_{t-1}$",
        "$x_t$",
        "$x_{t+1}$",
    ]


def test_layer_counts_positions_in_two_bits_from_zero_to_three_and_on_to_zero():
    figure = plot.layer()
    squares = [patch for patch in figure.axes[0].patches if abs(getattr(patch, "get_width", lambda: 0)() - 0.18) < 1e-9]
    filled = [to != (1.0, 1.0, 1.0, 1.0) for to in (square.get_facecolor() for square in squares)]
    assert [2 * high + low for high, low in zip(filled[::2], filled[1::2], strict=True)] == [0, 1, 2, 3, 0]


def test_stored_windows_hold_overlaps_that_their_patterns_can_have():
    assert list(authors.EXPONENTS) == sorted(authors.EXPONENTS)
    assert all(1.2738 < beta < 1.2739 for beta in authors.EXPONENTS)
    for window in (authors.CYCLE, *authors.WINDOWS.values()):
        assert window.shape[-2:] == (4, 3)
        assert 0 < np.abs(window).max() < 1
    # The values of the three younger tokens of a window are not its attention: two blocks that changed places.
    for A, v, q, k in authors.WINDOWS.values():
        weights = np.exp(127 * k @ q[0])
        assert np.abs(weights @ v / weights.sum() - A[0]).max() < 1e-3
