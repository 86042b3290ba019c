"""What figures share: the band of samples around their mean."""

import matplotlib.pyplot as plt
import numpy as np

from chapters import style


def test_a_band_spans_all_samples_around_their_mean():
    figure, ax = style.subplots()
    values = np.array([[1.0, 3.0, 5.0], [0.0, 2.0, 1.0]])
    style.band(ax, np.arange(2), values, style.INK)
    edge = ax.collections[0].get_paths()[0].vertices
    assert {(0.0, 1.0), (0.0, 5.0), (1.0, 0.0), (1.0, 2.0)} <= {tuple(point) for point in edge}
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [3.0, 1.0])
    plt.close(figure)
