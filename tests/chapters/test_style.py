"""What all figures share: looks that never run out in silence, and marks that end where they are told to."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from chapters import style


def test_a_curve_without_a_look_is_an_error_and_a_look_without_a_curve_is_not():
    assert list(style.dressed("abc", [1, 2])) == [("a", 1), ("b", 2)]
    with pytest.raises(ValueError, match="items: expected at most 2"):
        style.dressed("ab", (1, 2, 3), [4, 5, 6])


def test_a_band_spans_all_samples_around_their_mean():
    figure, ax = style.subplots()
    values = np.array([[1.0, 3.0, 5.0], [0.0, 2.0, 1.0]])
    style.band(ax, np.arange(2), values, style.INK)
    edge = ax.collections[0].get_paths()[0].vertices
    assert {(0.0, 1.0), (0.0, 5.0), (1.0, 0.0), (1.0, 2.0)} <= {tuple(point) for point in edge}
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [3.0, 1.0])
    plt.close(figure)


def test_decades_have_no_other_ticks():
    figure, ax = style.subplots()
    ax.semilogy([1e-9, 1.0])
    style.decades(ax.yaxis, 2)
    inside = [tick for tick in ax.yaxis.get_majorticklocs() if 1e-9 <= tick <= 1]
    np.testing.assert_allclose(inside, [1e-8, 1e-6, 1e-4, 1e-2, 1.0])
    assert len(ax.yaxis.get_minorticklocs()) == 0
    plt.close(figure)
