"""The stored numbers of the authors are whole."""

import numpy as np

from chapters.attention_dynamics import authors


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
