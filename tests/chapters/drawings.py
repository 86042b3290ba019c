"""What a drawn figure holds, for the tests of figures."""

from typing import Any

import numpy as np
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure


def drawn(figure: Figure) -> list[np.ndarray]:
    """The y values of every line of the figure."""
    return [np.asarray(line.get_ydata(), dtype=float) for ax in figure.axes for line in ax.lines]


def curves(figure: Figure) -> list[np.ndarray]:
    """The x and y values of every line of the figure."""
    return [np.stack(line.get_data()).astype(float) for ax in figure.axes for line in ax.lines]


def arrays(given: Any) -> list[np.ndarray]:
    """Every array of dictionaries, lists and tuples of arrays."""
    parts = list(given.values()) if isinstance(given, dict) else given
    return [array for part in parts for array in arrays(part)] if isinstance(parts, list | tuple) else [parts]


def shows(figure: Figure, *given: Any) -> bool:
    """Whether a line of the figure has the values of each array, to the last bit."""
    lines = drawn(figure)
    return all(any(np.array_equal(line, values, equal_nan=True) for line in lines) for values in arrays(given))


def shows_curve(figure: Figure, x: np.ndarray, y: np.ndarray) -> bool:
    """Whether a line of the figure goes through these points, to the last bit."""
    return any(np.array_equal(a, x) and np.array_equal(b, y, equal_nan=True) for a, b in curves(figure))


def shows_nearly(figure: Figure, *given: Any) -> bool:
    """Whether a line of the figure has the values of each array, but for rounding."""
    lines = drawn(figure)
    return all(any(line.shape == np.shape(v) and np.allclose(line, v) for line in lines) for v in arrays(given))


def half_lengths(bars: ErrorbarContainer) -> list[float]:
    """What every bar of the errors spans, up and down alike."""
    return [(segment[1, 1] - segment[0, 1]) / 2 for segment in bars.lines[2][0].get_segments()]


def written(figure: Figure) -> list[str]:
    """What is written in the panels of the figure."""
    return [text.get_text() for ax in figure.axes for text in ax.texts]
