"""Moments of a distribution over all states, and the distribution of independent spins."""

import numpy as np

from spinbook.ising import exact


def _states(p):
    return np.asarray(exact.states(len(p).bit_length() - 1), float)


def independent(magnetizations):
    m = np.asarray(magnetizations, float)
    return np.prod((1 + np.asarray(exact.states(len(m)), float) * m) / 2, axis=1)


def mean(p):
    return np.asarray(p) @ _states(p)


def covariance(p):
    centred = _states(p) - mean(p)
    return centred.T @ (np.asarray(p)[:, None] * centred)
