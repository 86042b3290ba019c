"""Tangents of a window map in 106 bits, propagated forward and by the inverse transpose.

Numbers are unevaluated sums of two doubles, high + low with |low| <= ulp(high) / 2 (Dekker 1971), so that a relative
size of 1e-32 is resolved. Imported by ``spectrum`` when it first runs, because numba takes a second.

All tangents go through an operation side by side: in here they are the columns of arrays (2, rows, columns), high parts
first, with columns of zeros up to a multiple of eight, so that the compiler can make vectors of them.

Functions here take their arguments without checks; their callers have checked them.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

__all__ = ["forward", "inverse"]

# Without fast mathematics: the compiler must not take (a + b) - a for b.
_COMPILED: dict[str, Any] = {"error_model": "numpy", "nogil": True, "cache": True, "no_cfunc_wrapper": True}
# Functions that only compiled functions call need no entry from Python, which takes time to compile.
_INNER: dict[str, Any] = _COMPILED | {"no_cpython_wrapper": True}


def _typed(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return numba.types.float64(a, b, c), generate


_fused: Any = intrinsic(_typed)


@numba.njit(**_INNER)
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


@numba.njit(**_INNER)
def _multiply(a: float, x: float, b: float, y: float) -> tuple[float, float]:
    """(a + x) (b + y), with what rounding takes from the product of the high parts."""
    high = a * b
    error = _fused(a, b, -high) + (a * y + x * b)
    total = high + error
    return total, error - (total - high)


@numba.njit(**_INNER)
def _divide(a: float, x: float, b: float, y: float) -> tuple[float, float]:
    """(a + x) / (b + y): a quotient of doubles, and two corrections."""
    high, low = a / b, 0.0
    for _ in range(2):
        p, q = _multiply(high, low, b, y)
        r, _ = _add(a, x, -p, -q)
        high, low = _add(high, low, r / b, 0.0)
    return high, low


@numba.njit(**_INNER)
def _add_multiple(p: float, q: float, U: np.ndarray, i: int, V: np.ndarray, j: int) -> None:
    """Adds (p + q) times row i of U to row j of V."""
    for k in range(V.shape[2]):
        r, s = _multiply(p, q, U[0, i, k], U[1, i, k])
        V[0, j, k], V[1, j, k] = _add(V[0, j, k], V[1, j, k], r, s)


@numba.njit(**_INNER)
def _orthonormalise(new: np.ndarray, D: np.ndarray, logs: np.ndarray, rounded: bool, rows: np.ndarray) -> None:
    """D <- the tangents ``new``, orthonormalised in their order (modified Gram-Schmidt), and ``new`` <- 0.

    Both are (2, n, columns); log |R_kk| is added to ``logs``. If ``rounded``, ``new`` is rounded to 53 bits first. A
    tangent is taken out of all that follow at once, and divided by its length when all are done. ``rows`` (2, 2,
    columns) is scratch: the scalar products with one tangent, and the lengths.
    """
    n, E = D.shape[1], len(logs)
    for i in range(n):
        for k in range(D.shape[2]):
            D[0, i, k], D[1, i, k] = new[0, i, k], 0.0 if rounded else new[1, i, k]
            new[0, i, k], new[1, i, k] = 0.0, 0.0
    for k in range(E):
        # A factor of two takes numbers of any size out of the way of over- and underflow, and rounds nothing.
        largest = 0.0
        for i in range(n):
            size = abs(D[0, i, k])
            largest = size if size > largest else largest
        exponent = np.floor(np.log2(largest)) if largest > 0 else 0.0
        logs[k] += exponent * np.log(2.0)
        factor = 2.0**-exponent
        for i in range(n):
            D[0, i, k] *= factor
            D[1, i, k] *= factor
    for k in range(E):
        for j in range(D.shape[2]):
            rows[0, 0, j], rows[1, 0, j] = 0.0, 0.0
        for i in range(n):
            _add_multiple(D[0, i, k], D[1, i, k], D, i, rows, 0)
        p, q = rows[0, 0, k], rows[1, 0, k]
        # Only the relative error of the root counts: a double, corrected once by Newton's method.
        root = np.sqrt(p)
        r, s = _multiply(root, 0.0, root, 0.0)
        r, s = _add(p, q, -r, -s)
        rows[0, 1, k], rows[1, 1, k] = _add(root, 0.0, 0.5 * r / root, 0.0)
        logs[k] += np.log(rows[0, 1, k])
        for j in range(D.shape[2]):
            r, s = _divide(rows[0, 0, j], rows[1, 0, j], p, q)
            rows[0, 0, j], rows[1, 0, j] = (r, s) if j > k else (0.0, 0.0)
        for i in range(n):
            _add_multiple(-D[0, i, k], -D[1, i, k], rows, 0, D, i)
    for i in range(n):
        for k in range(E):
            D[0, i, k], D[1, i, k] = _divide(D[0, i, k], D[1, i, k], rows[0, 1, k], rows[1, 1, k])


@numba.njit(**_COMPILED)
def _forward(
    top: np.ndarray, D: np.ndarray, logs: np.ndarray, rounded: bool, new: np.ndarray, rows: np.ndarray
) -> None:
    M, n = top.shape[1:]
    for t in range(len(top)):
        for i in range(n):
            for a in range(M):
                _add_multiple(top[t, a, i], 0.0, D, i, new, a)
        for i in range(n - M):
            _add_multiple(1.0, 0.0, D, i, new, M + i)
        _orthonormalise(new, D, logs, rounded, rows)


@numba.njit(**_INNER)
def _solve(A: np.ndarray, b: np.ndarray) -> None:
    """b <- A^-1 b for A (2, M, M) and the first M rows of b, both overwritten: elimination with the largest pivots."""
    M = A.shape[1]
    for c in range(M):
        best = c
        for r in range(c + 1, M):
            if abs(A[0, r, c]) > abs(A[0, best, c]):
                best = r
        for h in range(2):
            for i in range(M):
                A[h, c, i], A[h, best, i] = A[h, best, i], A[h, c, i]
            for k in range(b.shape[2]):
                b[h, c, k], b[h, best, k] = b[h, best, k], b[h, c, k]
        for r in range(c + 1, M):
            p, q = _divide(A[0, r, c], A[1, r, c], A[0, c, c], A[1, c, c])
            _add_multiple(-p, -q, A, c, A, r)
            _add_multiple(-p, -q, b, c, b, r)
    for r in range(M - 1, -1, -1):
        for i in range(r + 1, M):
            _add_multiple(-A[0, r, i], -A[1, r, i], b, i, b, r)
        for k in range(b.shape[2]):
            b[0, r, k], b[1, r, k] = _divide(b[0, r, k], b[1, r, k], A[0, r, r], A[1, r, r])


@numba.njit(**_COMPILED)
def _inverse(
    top: np.ndarray,
    transposed: np.ndarray,
    weights: np.ndarray,
    Y: np.ndarray,
    logs: np.ndarray,
    rounded: bool,
    new: np.ndarray,
    rows: np.ndarray,
) -> None:
    M, n = top.shape[1:]
    for t in range(len(top)):
        for i in range(M):
            _add_multiple(1.0, 0.0, Y, n - M + i, new, i)
        _solve(transposed[t], new)
        for i in range(n - M):
            _add_multiple(weights[t], 0.0, Y, i, new, M + i)
            for a in range(M):
                _add_multiple(-top[t, a, i], 0.0, new, a, new, M + i)
        _orthonormalise(new, Y, logs, rounded, rows)


def _columns(tangents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tangents (E, 2, n) as the columns of an array (2, n, columns), zeros like it, and two rows of zeros."""
    E, _, n = tangents.shape
    D = np.zeros((2, n, -(-E // 8) * 8))
    D[:, :, :E] = tangents.transpose(1, 2, 0)
    return D, np.zeros_like(D), np.zeros_like(D[:, :2])


def forward(top: np.ndarray, tangents: np.ndarray, logs: np.ndarray, rounded: bool) -> None:
    """D <- J_T ... J_1 D with the logarithms of the stretching of every step added to ``logs`` (E,).

    ``tangents`` (E, 2, K M): D, tangents of the window of K vectors, newest first. J has the rows ``top`` (T, M, K M)
    of a step above those that shift the window by M. If ``rounded``, the result of every step is rounded to 53 bits, to
    measure the effect.
    """
    D, new, rows = _columns(tangents)
    _forward(top, D, logs, rounded, new, rows)
    tangents[:] = D[:, :, : len(tangents)].transpose(2, 0, 1)


def inverse(
    top: np.ndarray, oldest: np.ndarray, log_weight: np.ndarray, tangents: np.ndarray, logs: np.ndarray, rounded: bool
) -> None:
    """Y <- J_T^-T ... J_1^-T Y, with the logarithms of the stretching of every step added to ``logs`` (E,).

    ``tangents`` (E, 2, K M): Y. Of the window, the oldest vector enters a step by the block p G of ``top``, with G =
    ``oldest`` (T, M, M) and log p = ``log_weight`` (T,), which may be far below what a double holds. J^T y = q is
    solved from the oldest vector on: p G^T y_0 = q_{K-1}, y_{j+1} = q_j - B_j^T y_0. ``rounded`` as for ``forward``.
    """
    Y, new, rows = _columns(tangents)
    transposed = np.zeros((len(top), 2, *oldest.shape[1:]))
    transposed[:, 0] = oldest.swapaxes(1, 2)
    # Everything times p, so that nothing overflows; p goes into the logarithms.
    _inverse(top, transposed, np.exp(log_weight), Y, logs, rounded, new, rows)
    logs -= log_weight.sum()
    tangents[:] = Y[:, :, : len(tangents)].transpose(2, 0, 1)
