"""Pairs of independent walkers."""

import numpy as np


def both(probability: np.ndarray) -> np.ndarray:
    """p^2: how often two walkers both step to the right who do so with probability p each."""
    return probability**2
