"""Tangents of a window map in 106 bits, forward and by the inverse transpose. Knows no network and no temperature.

Numbers are unevaluated sums of two doubles, high + low with |low| <= ulp(high) / 2 (Dekker 1971), so that a relative
size of 1e-32 is still seen beside one. Imported by ``spectrum`` when it first runs, because numba takes a second.

Functions here take their arguments without checks; their callers have checked them.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["forward", "inverse"]

_SPLITTER = 134217729.0  # 2^27 + 1
# Without fast mathematics: the compiler must not take (a + b) - a for b.
_COMPILED: dict[str, Any] = {"error_model": "numpy", "nogil": True, "cache": True}


@numba.njit(**_COMPILED)
def _add(a: float, x: float, b: float, y: float) -> tuple[float, float]:
    """(a + x) + (b + y), with the sum of the low parts kept (Knuth's two-sum, twice)."""
    high = a + b
    shifted = high - a
    error = (a - (high - shifted)) + (b - shifted)
    low = x + y
    shifted = low - x
    rest = (x - (low - shifted)) + (y - shifted)
    error += low
    total = high + error
    error = error - (total - high) + rest
    high = total + error
    return high, error - (high - total)


@numba.njit(**_COMPILED)
def _multiply(a: float, x: float, b: float, y: float) -> tuple[float, float]:
    """(a + x) (b + y) with Dekker's product of the high parts."""
    high = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    error = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    error += a * y + x * b
    total = high + error
    return total, error - (total - high)


@numba.njit(**_COMPILED)
def _divide(a: float, x: float, b: float, y: float) -> tuple[float, float]:
    """(a + x) / (b + y): a quotient of doubles, and two corrections."""
    high, low = a / b, 0.0
    for _ in range(2):
        p, q = _multiply(high, low, b, y)
        r, _ = _add(a, x, -p, -q)
        high, low = _add(high, low, r / b, 0.0)
    return high, low


@numba.njit(**_COMPILED)
def _inner(U: np.ndarray, V: np.ndarray) -> tuple[float, float]:
    """u . v of two vectors (2, n) of high and low parts."""
    high, low = 0.0, 0.0
    for i in range(U.shape[1]):
        p, q = _multiply(U[0, i], U[1, i], V[0, i], V[1, i])
        high, low = _add(high, low, p, q)
    return high, low


@numba.njit(**_COMPILED)
def _orthonormalise(D: np.ndarray, logs: np.ndarray) -> None:
    """The tangents D (E, 2, n) in their order, by the modified Gram-Schmidt process; adds log |R_kk| to ``logs``."""
    n = D.shape[2]
    for k in range(len(D)):
        # A factor of two takes numbers of any size out of the way of over- and underflow, and rounds nothing.
        largest = 0.0
        for i in range(n):
            largest = max(largest, abs(D[k, 0, i]))
        if largest > 0:
            exponent = np.floor(np.log2(largest))
            D[k] *= 2.0**-exponent
            logs[k] += exponent * np.log(2.0)
        for j in range(k):
            p, q = _inner(D[j], D[k])
            for i in range(n):
                r, s = _multiply(p, q, D[j, 0, i], D[j, 1, i])
                D[k, 0, i], D[k, 1, i] = _add(D[k, 0, i], D[k, 1, i], -r, -s)
        p, q = _inner(D[k], D[k])
        # Of the root only the relative error counts: a double corrected once by Newton's method.
        root = np.sqrt(p)
        r, s = _multiply(root, 0.0, root, 0.0)
        r, s = _add(p, q, -r, -s)
        p, q = _add(root, 0.0, 0.5 * r / root, 0.0)
        logs[k] += np.log(p)
        for i in range(n):
            D[k, 0, i], D[k, 1, i] = _divide(D[k, 0, i], D[k, 1, i], p, q)


@numba.njit(**_COMPILED)
def forward(top: np.ndarray, D: np.ndarray, logs: np.ndarray, rounded: bool) -> None:
    """D <- J_T ... J_1 D with the logarithms of what every step stretches added to ``logs`` (E,).

    ``D`` (E, 2, K M): tangents of the window of K vectors, newest first. J has the rows ``top`` (T, M, K M) of a step
    above those that shift the window by M. If ``rounded``, what a step makes of D is rounded to 53 bits, to see
    what that changes.
    """
    M, n = top.shape[1:]
    new = np.zeros((2, M))
    for t in range(len(top)):
        for k in range(len(D)):
            for a in range(M):
                high, low = 0.0, 0.0
                for i in range(n):
                    p, q = _multiply(top[t, a, i], 0.0, D[k, 0, i], D[k, 1, i])
                    high, low = _add(high, low, p, q)
                new[0, a], new[1, a] = high, low
            D[k, :, M:] = D[k, :, : n - M].copy()
            D[k, :, :M] = new
        if rounded:
            D[:, 1] = 0.0
        _orthonormalise(D, logs)


@numba.njit(**_COMPILED)
def _solve(A: np.ndarray, b: np.ndarray) -> None:
    """b <- A^-1 b for A (2, M, M) and b (2, M), both overwritten: elimination with the largest pivot of a column."""
    M = A.shape[1]
    for c in range(M):
        best = c
        for r in range(c + 1, M):
            if abs(A[0, r, c]) > abs(A[0, best, c]):
                best = r
        for h in range(2):
            for i in range(M):
                A[h, c, i], A[h, best, i] = A[h, best, i], A[h, c, i]
            b[h, c], b[h, best] = b[h, best], b[h, c]
        for r in range(c + 1, M):
            p, q = _divide(A[0, r, c], A[1, r, c], A[0, c, c], A[1, c, c])
            for i in range(c, M):
                u, v = _multiply(p, q, A[0, c, i], A[1, c, i])
                A[0, r, i], A[1, r, i] = _add(A[0, r, i], A[1, r, i], -u, -v)
            u, v = _multiply(p, q, b[0, c], b[1, c])
            b[0, r], b[1, r] = _add(b[0, r], b[1, r], -u, -v)
    for r in range(M - 1, -1, -1):
        for i in range(r + 1, M):
            u, v = _multiply(A[0, r, i], A[1, r, i], b[0, i], b[1, i])
            b[0, r], b[1, r] = _add(b[0, r], b[1, r], -u, -v)
        b[0, r], b[1, r] = _divide(b[0, r], b[1, r], A[0, r, r], A[1, r, r])


@numba.njit(**_COMPILED)
def inverse(
    top: np.ndarray, oldest: np.ndarray, log_weight: np.ndarray, Y: np.ndarray, logs: np.ndarray, rounded: bool
) -> None:
    """Y <- J_T^-T ... J_1^-T Y, with the logarithms of what every step stretches added to ``logs`` (E,).

    Of the window, the oldest vector enters a step by the block p G of ``top``, with G = ``oldest`` (T, M, M) and
    log p = ``log_weight`` (T,), which may be far below what a double holds. J^T y = q is solved from the oldest vector
    on: p G^T y_0 = q_{K-1}, y_{j+1} = q_j - B_j^T y_0. ``rounded`` as for ``forward``.
    """
    M, n = top.shape[1:]
    A, y = np.zeros((2, M, M)), np.zeros((2, M))
    new = np.zeros((2, n))
    for t in range(len(top)):
        # Everything times p, so that nothing overflows; p goes into the logarithms.
        weight = np.exp(log_weight[t])
        for k in range(len(Y)):
            A[0] = oldest[t].T
            A[1] = 0.0
            y[:] = Y[k, :, n - M :]
            _solve(A, y)
            new[:, :M] = y
            for i in range(n - M):
                high, low = _multiply(weight, 0.0, Y[k, 0, i], Y[k, 1, i])
                for a in range(M):
                    p, q = _multiply(top[t, a, i], 0.0, y[0, a], y[1, a])
                    high, low = _add(high, low, -p, -q)
                new[0, M + i], new[1, M + i] = high, low
            Y[k] = new
            logs[k] -= log_weight[t]
        if rounded:
            Y[:, 1] = 0.0
        _orthonormalise(Y, logs)
