"""Attention as a slope in the best diagonal metric: a lower bound on the antisymmetric share, over all metrics."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import eigsh

from spinbook.annotations import ArrayLike, Float


def share(jacobian: Float[ArrayLike, "n n"]) -> float:
    """|(J - J^T) / 2|^2 / |J|^2: zero for a slope in the plain metric, one half for independent numbers.

    >>> share([[0.0, 1.0], [-1.0, 0.0]])
    1.0
    """
    J = np.asarray(jacobian, float)
    return float((1 - np.sum(J * J.T) / np.sum(J * J)) / 2)


def least_share(jacobian: Float[ArrayLike, "n n"]) -> float:
    """(1 - lambda) / 2, below which the share of W J lies for no diagonal W; lambda is at most one.

    The share of W J is (1 - w.T w / w.S w) / 2 with T = J o J^T and S = diag sum_b J_ab^2, so that the largest
    eigenvalue of S^-1/2 T S^-1/2 bounds it. Zero if J is a symmetric matrix times a metric.

    >>> metric, H = np.diag([1.0, 3.0, 0.5]), np.array([[1.0, 2.0, 0.5], [2.0, -1.0, 1.0], [0.5, 1.0, 2.0]])
    >>> round(share(metric @ H), 2), round(abs(least_share(metric @ H)), 6)
    (0.18, 0.0)
    """
    J = np.asarray(jacobian, float)
    root = np.sqrt(np.maximum(np.sum(J * J, axis=1), np.finfo(float).tiny))
    M = (J / root[:, None]) * (J / root[:, None]).T
    largest = np.linalg.eigvalsh(M)[-1] if len(M) < 50 else eigsh(M, k=1, which="LA", v0=root, tol=1e-4)[0][0]
    return float((1 - largest) / 2)
