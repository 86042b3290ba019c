"""What a drawn figure holds, for the tests of figures."""

import numpy as np
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure


def drawn(figure: Figure) -> list[np.ndarray]:
    """The y values of every line of the figure."""
    return [np.asarray(line.get_ydata(), dtype=float) for ax in figure.axes for line in ax.lines]


def shows(figure: Figure, values: np.ndarray) -> bool:
    """Whether a line of the figure has these values, to the last bit."""
    return any(np.array_equal(line, values, equal_nan=True) for line in drawn(figure))


def shows_nearly(figure: Figure, values: np.ndarray) -> bool:
    """Whether a line of the figure has these values, but for rounding."""
    return any(line.shape == np.shape(values) and np.allclose(line, values) for line in drawn(figure))


def half_lengths(bars: ErrorbarContainer) -> list[float]:
    """What every bar of the errors spans, up and down alike."""
    return [(segment[1, 1] - segment[0, 1]) / 2 for segment in bars.lines[2][0].get_segments()]


def written(figure: Figure) -> list[str]:
    """What is written in the panels of the figure."""
    return [text.get_text() for ax in figure.axes for text in ax.texts]
