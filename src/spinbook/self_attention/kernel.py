"""The map and its tangents for 32 orbits at once, compiled by numba, in double precision on the CPU.

The definition is in ``mean_field``; this module does the same arithmetic in an order that is fast on a processor. A
lane is an orbit with its own network, temperature and start. The mean fields of a token do not change while it is in
the window, so only the newest token is computed. Arguments are not checked.

Functions are compiled when they are first called, which takes a few seconds for each combination of the numbers of
features, tokens in the window and sign classes. The next process compiles again, because numba's cache is off: it would
write into the folder of this file. Compiling is logged under the name ``spinbook``, at level INFO.
"""
# numba's decorators have no types.
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

from spinbook.self_attention.lanes import LANES

__all__ = ["compiled"]

# Fused multiply-adds are allowed, no other change of the arithmetic. Division by zero is not checked: the check would
# stand in the way of vectors, and every divisor is positive.
# An entry for callers in C or Python takes time to compile, and most functions need none.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"contract", "nsz"},
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,
}
_INNER: dict[str, Any] = _OPTIONS | {"no_cpython_wrapper": True}

_LOG2_E = 1.0 / math.log(2.0)
# log 2 in two parts, the first with so many trailing zeros that its product with any exponent is exact.
_LOG_2_HIGH, _LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TAYLOR = tuple(1.0 / math.factorial(n) for n in range(13))
_TINY = 1e-300
_SIGN_BIT = np.int64(-(2**63))


def _reinterpreted(source: Any, target: Any) -> Any:
    """The 64 bits of a number as another type. Going through memory instead would keep loops from becoming vectors."""

    def typed(typing_context: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return intrinsic(typed)


_bits_of: Any = _reinterpreted(numba.types.float64, numba.types.int64)
_float_of: Any = _reinterpreted(numba.types.int64, numba.types.float64)


@numba.njit(forceinline=True, **_INNER)
def _exp(x: float) -> float:
    """e^x for x <= 0, within a few units in the last place; from -300 on it stays at e^-300, about 5e-131.

    x = n log 2 + r. A call of the C library would not be vectorised, and smaller results would make the numbers that
    follow denormal, which is a hundred times slower.
    """
    x = max(x, -300.0)
    n = math.floor(x * _LOG2_E + 0.5)
    r = (x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    p = _TAYLOR[12]
    for k in range(10):
        p = p * r + _TAYLOR[11 - k]
    return (1.0 + (p * r * r + r)) * _float_of((np.int64(n) + 1023) << 52)


@numba.njit(forceinline=True, **_INNER)
def _tanh(x: float) -> float:
    """(1 - e^{-2|x|}) / (1 + e^{-2|x|}) with the sign of x: exactly odd, absolute error 2e-16."""
    e = _exp(-2.0 * abs(x))
    return _float_of(_bits_of((1.0 - e) / (1.0 + e)) | (_bits_of(x) & _SIGN_BIT))


@cache
def compiled(M: int, K: int, C: int) -> tuple[Callable[..., None], int]:
    """``advance`` for M features, K tokens in the window and C sign classes, and how many numbers its state has.

    The sizes are constants for the compiler, so that it can separate the parts of the state and work on whole vectors.
    The state has rows of one number for each lane. The caller fills those in front: signs (C, M), weights (4, M, C),
    beta, gamma, and the attention of the window (K, M). A tangent has a row for each entry of the derivative of the
    newest attention vector, (M), and of the hyperbolic tangents of the tokens in the window, newest first, (K, C).
    """
    logging.getLogger("spinbook").info("compiling the map of %d features, %d tokens and %d classes", M, K, C)
    L = LANES
    # Each start by its own name: numbers that compiled functions close over are constants for the compiler.
    SIGNS = 0
    WEIGHTS = SIGNS + C * M * L
    BETA = WEIGHTS + 4 * M * C * L
    GAMMA = BETA + L
    ATTENTION = GAMMA + L
    # The token that is made: from which attention, its fields, the values and keys of the window, and its softmax.
    SOURCE = ATTENTION + K * M * L
    OUTPUT = SOURCE + M * L
    VALUES = OUTPUT + M * L
    QUERIES = VALUES + K * M * L
    KEYS = QUERIES + M * L
    TANH = KEYS + K * M * L
    SOFTMAX = TANH + C * L
    SCRATCH = SOFTMAX + K * L
    # What its tangents share.
    THROUGH_KEYS = SCRATCH + L
    THROUGH_SOFTMAX = THROUGH_KEYS + C * L
    T_QUERIES = THROUGH_SOFTMAX + K * M * L
    T_TANH = T_QUERIES + M * L
    T_SOFTMAX = T_TANH + C * L
    FIELDS_AT = (OUTPUT, VALUES, QUERIES, KEYS, ATTENTION)
    # In a tangent, where the hyperbolic tangents begin, and how many rows matter for the next step.
    Y = M * L
    KEPT = M + (K - 1) * C

    @numba.njit(forceinline=True, **_INNER)
    def dot(x: float, n: int, u: np.ndarray, i: int, v: np.ndarray, j: int, stride: int) -> float:
        """x and the sum of n products: of rows of u from i on, with those of v, ``stride`` numbers apart."""
        for k in range(n):
            x += u[i + k * L] * v[j + k * stride]
        return x

    @numba.njit(**_INNER)
    def overlaps(s: np.ndarray, positions: np.ndarray) -> None:
        """The token that the attention in ``SOURCE`` makes, as the newest of the window."""
        for i in range((K - 1) * M * L - 1, -1, -1):
            s[VALUES + M * L + i] = s[VALUES + i]
        for i in range((K - 1) * M * L - 1, -1, -1):
            s[KEYS + M * L + i] = s[KEYS + i]
        for c in range(C):
            for lane in range(L):
                field = dot(0.0, M, s, SIGNS + c * M * L + lane, s, SOURCE + lane, L)
                s[TANH + c * L + lane] = _tanh(field * s[BETA + lane])
        for a in range(M):
            w, at = WEIGHTS + a * C * L, a * L
            for lane in range(L):
                s[OUTPUT + at + lane] = dot(0.0, C, s, w + lane, s, TANH + lane, L)
            for lane in range(L):
                x = positions[M * L + at + lane]
                s[VALUES + at + lane] = dot(x, C, s, w + M * C * L + lane, s, TANH + lane, L)
            for lane in range(L):
                x = positions[2 * M * L + at + lane]
                s[QUERIES + at + lane] = dot(x, C, s, w + 2 * M * C * L + lane, s, TANH + lane, L)
            for lane in range(L):
                x = positions[3 * M * L + at + lane]
                s[KEYS + at + lane] = dot(x, C, s, w + 3 * M * C * L + lane, s, TANH + lane, L)

    @numba.njit(**_INNER)
    def attend(s: np.ndarray, filled: int) -> None:
        """The attention of the newest token over the ``filled`` tokens of the window."""
        for j in range(K):
            for lane in range(L):
                x = dot(0.0, M, s, QUERIES + lane, s, KEYS + j * M * L + lane, L)
                s[SOFTMAX + j * L + lane] = x * s[GAMMA + lane]
        for i in range(filled * L, K * L):
            s[SOFTMAX + i] = -1e300
        for lane in range(L):
            x = s[SOFTMAX + lane]
            for j in range(1, K):
                x = max(x, s[SOFTMAX + j * L + lane])
            s[SCRATCH + lane] = x
        for j in range(K):
            for lane in range(L):
                s[SOFTMAX + j * L + lane] = _exp(s[SOFTMAX + j * L + lane] - s[SCRATCH + lane])
        for lane in range(L):
            x = 0.0
            for j in range(K):
                x += s[SOFTMAX + j * L + lane]
            x = 1.0 / x
            for j in range(K):
                s[SOFTMAX + j * L + lane] *= x
        for i in range((K - 1) * M * L - 1, -1, -1):
            s[ATTENTION + M * L + i] = s[ATTENTION + i]
        for a in range(M):
            for lane in range(L):
                s[ATTENTION + a * L + lane] = dot(0.0, K, s, SOFTMAX + lane, s, VALUES + a * L + lane, M * L)

    @numba.njit(**_INNER)
    def linearise(s: np.ndarray) -> None:
        """What all tangents of a step share; ``TANH`` is replaced by its derivative, beta (1 - tanh^2)."""
        for c in range(C):
            for lane in range(L):
                w = WEIGHTS + (3 * M * C + c) * L + lane
                s[THROUGH_KEYS + c * L + lane] = dot(0.0, M, s, QUERIES + lane, s, w, C * L)
                y = s[TANH + c * L + lane]
                s[TANH + c * L + lane] = s[BETA + lane] * (1.0 - y * y)
        for j in range(K):
            for lane in range(L):
                p = s[SOFTMAX + j * L + lane] * s[GAMMA + lane]
                for a in range(M):
                    s[THROUGH_SOFTMAX + (j * M + a) * L + lane] = p * (
                        s[VALUES + (j * M + a) * L + lane] - s[ATTENTION + a * L + lane]
                    )

    @numba.njit(**_INNER)
    def push(s: np.ndarray, d: np.ndarray) -> None:
        """One tangent through one step.

        dA = sum_j p_j (dm^v_j + gamma (m^v_j - A) (dm^q . m^k_j + m^q . dm^k_j)), where dm of every token is a linear
        function of the derivatives of its hyperbolic tangents, which the tangent holds.
        """
        for i in range((K - 1) * C * L - 1, -1, -1):
            d[Y + C * L + i] = d[Y + i]
        for c in range(C):
            for lane in range(L):
                x = dot(0.0, M, s, SIGNS + c * M * L + lane, d, lane, L)
                d[Y + c * L + lane] = x * s[TANH + c * L + lane]
        for a in range(M):
            for lane in range(L):
                w = WEIGHTS + (2 * M + a) * C * L + lane
                s[T_QUERIES + a * L + lane] = dot(0.0, C, s, w, d, Y + lane, L)
        for c in range(C):
            for lane in range(L):
                s[T_TANH + c * L + lane] = dot(0.0, K, s, SOFTMAX + lane, d, Y + c * L + lane, C * L)
        for j in range(K):
            for lane in range(L):
                x = dot(0.0, M, s, T_QUERIES + lane, s, KEYS + j * M * L + lane, L)
                s[T_SOFTMAX + j * L + lane] = dot(x, C, s, THROUGH_KEYS + lane, d, Y + j * C * L + lane, L)
        for a in range(M):
            for lane in range(L):
                x = dot(0.0, C, s, WEIGHTS + (M + a) * C * L + lane, s, T_TANH + lane, L)
                d[a * L + lane] = dot(x, K, s, T_SOFTMAX + lane, s, THROUGH_SOFTMAX + a * L + lane, M * L)

    # Three small functions, because the compiler vectorises the lanes only then.
    @numba.njit(**_INNER)
    def project(d: np.ndarray, g: np.ndarray, overlap: np.ndarray) -> None:
        for lane in range(L):
            x = 0.0
            for i in range(KEPT):
                x += d[i * L + lane] * g[i * L + lane]
            overlap[lane] = x

    @numba.njit(**_INNER)
    def subtract(d: np.ndarray, g: np.ndarray, overlap: np.ndarray) -> None:
        for lane in range(L):
            x = overlap[lane]
            for i in range(KEPT):
                d[i * L + lane] -= x * g[i * L + lane]

    @numba.njit(**_INNER)
    def normalise(d: np.ndarray, squares: np.ndarray) -> None:
        for lane in range(L):
            x = 1.0 / math.sqrt(max(squares[lane], _TINY))
            for i in range(KEPT):
                d[i * L + lane] *= x

    @numba.njit(**_INNER)
    def orthonormalise(s: np.ndarray, tangents: np.ndarray, logs: np.ndarray) -> None:
        """Modified Gram-Schmidt; adds the logarithms of the lengths to a sum."""
        scratch = s[SCRATCH : SCRATCH + L]
        for e in range(len(tangents)):
            for f in range(e):
                project(tangents[e], tangents[f], scratch)
                subtract(tangents[e], tangents[f], scratch)
            project(tangents[e], tangents[e], scratch)
            # A tangent of length zero stays at zero, and its exponent is minus infinity.
            for lane in range(L):
                logs[e, lane] += 0.5 * math.log(scratch[lane])
            normalise(tangents[e], scratch)

    @numba.njit(**_INNER)
    def observe(field: np.ndarray, component: int, extrema: np.ndarray, histogram: np.ndarray) -> None:
        """Add one step to the statistics."""
        for a in range(M):
            for lane in range(L):
                extrema[0, a, lane] = min(extrema[0, a, lane], field[a * L + lane])
            for lane in range(L):
                extrema[1, a, lane] = max(extrema[1, a, lane], field[a * L + lane])
        bins = histogram.shape[1]
        for lane in range(L):
            x = field[component * L + lane]
            histogram[lane, min(max(int((x + 1.0) * (0.5 * bins)), 0), bins - 1)] += 1

    @numba.njit(**_INNER)
    def note(s: np.ndarray, row: np.ndarray) -> None:
        """All fields of the newest token, of as many lanes as the row has."""
        for lane in range(len(row)):
            for k in range(len(FIELDS_AT)):
                for a in range(M):
                    row[lane, k, a] = s[FIELDS_AT[k] + a * L + lane]

    @numba.njit(**_OPTIONS)
    def advance(
        s: np.ndarray,
        positions: np.ndarray,
        position: int,
        length: int,
        behind: int,
        steps: int,
        tangents: np.ndarray,
        every: int,
        logs: np.ndarray,
        field: int,
        component: int,
        extrema: np.ndarray,
        histogram: np.ndarray,
        record: np.ndarray,
    ) -> None:
        """``steps`` steps from a window of ``length`` tokens; the next one carries ``position``.

        Before them, the last ``behind`` tokens of the window are made from the attention that made them.

        The tangents, if there are any, are orthonormalised ``every`` so many steps and at the end, and the logarithms
        of what they had grown to are added to ``logs``. A histogram with bins counts one component of a field, and
        ``extrema`` are those of all components. The last steps go into ``record``, as many as it has room for.
        """
        for n in range(-behind, steps):
            maker = ATTENTION + max(-n, 0) * M * L
            for i in range(M * L):
                s[SOURCE + i] = s[maker + i]
            overlaps(s, positions[(position + n) % len(positions)])
            if n < 0:
                continue
            attend(s, length + n)
            if len(tangents) > 0:
                linearise(s)
                for e in range(len(tangents)):
                    push(s, tangents[e])
                if (n + 1) % every == 0 or n + 1 == steps:
                    orthonormalise(s, tangents, logs)
            if histogram.shape[1] > 0:
                at = FIELDS_AT[field]
                observe(s[at : at + M * L], component, extrema, histogram)
            if n >= steps - len(record):
                note(s, record[n - steps + len(record)])

    return advance, T_SOFTMAX + K * L
