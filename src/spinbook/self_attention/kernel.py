"""The map and its tangents for one orbit or 32 at once, compiled by numba, in double precision on the CPU.

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

import itertools
import logging
import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import intrinsic

__all__ = ["Kernel", "Layout", "Watched", "compiled", "layout"]

_log_to = logging.getLogger("spinbook")

# Fused multiply-adds are allowed, no other change of the arithmetic. Division by zero is not checked: the check would
# stand in the way of vectors, and every divisor is positive.
# Nobody calls from C, and functions that only compiled functions call need no entry from Python either; each takes time
# to compile.
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
_ODD = tuple(2.0 / (2 * n + 1) for n in range(11))
_ROOT_HALF = math.sqrt(0.5)
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
    p = p * r + _TAYLOR[11]
    p = p * r + _TAYLOR[10]
    p = p * r + _TAYLOR[9]
    p = p * r + _TAYLOR[8]
    p = p * r + _TAYLOR[7]
    p = p * r + _TAYLOR[6]
    p = p * r + _TAYLOR[5]
    p = p * r + _TAYLOR[4]
    p = p * r + _TAYLOR[3]
    p = p * r + _TAYLOR[2]
    return (1.0 + (p * r * r + r)) * _float_of((np.int64(n) + 1023) << 52)


@numba.njit(forceinline=True, **_INNER)
def _tanh(x: float) -> float:
    """(1 - e^{-2|x|}) / (1 + e^{-2|x|}) with the sign of x: exactly odd, absolute error 2e-16."""
    e = _exp(-2.0 * abs(x))
    return _float_of(_bits_of((1.0 - e) / (1.0 + e)) | (_bits_of(x) & _SIGN_BIT))


@numba.njit(forceinline=True, **_INNER)
def _log(x: float) -> float:
    """log x for normal x > 0, absolute error 2e-16 (1 + |log x|).

    x = m 2^n with sqrt(1/2) <= m < sqrt(2), and log m = 2 artanh r with r = (m - 1) / (m + 1), |r| < 0.172.
    """
    n = (_bits_of(x) - _bits_of(_ROOT_HALF)) >> 52
    m = _float_of(_bits_of(x) - (n << 52))
    r = (m - 1.0) / (m + 1.0)
    q = r * r
    p = _ODD[10]
    p = p * q + _ODD[9]
    p = p * q + _ODD[8]
    p = p * q + _ODD[7]
    p = p * q + _ODD[6]
    p = p * q + _ODD[5]
    p = p * q + _ODD[4]
    p = p * q + _ODD[3]
    p = p * q + _ODD[2]
    p = p * q + _ODD[1]
    return n * _LOG_2_HIGH + (n * _LOG_2_LOW + (p * q * r + _ODD[0] * r))


class Layout(NamedTuple):
    """Where each quantity begins in the state of a group of lanes, in numbers.

    A quantity has a block of one number per lane for each of its entries, in the order given here: the networks (signs
    (C, M), weights (4, M, C), beta, gamma), the attention of the window (K, M), the token that is made (``source``,
    the attention vector it is made from, its fields, the keys and values of the window, its hyperbolic tangents and its
    softmax), and what its tangents share. ``size``: how many numbers there are.
    """

    signs: int
    weights: int
    beta: int
    gamma: int
    attention: int
    source: int
    output_semantic: int
    values: int
    queries: int
    keys: int
    tanh: int
    softmax: int
    scratch: int
    through_keys: int
    through_softmax: int
    tangent_queries: int
    tangent_tanh: int
    tangent_softmax: int
    size: int


def layout(M: int, K: int, C: int, L: int) -> Layout:
    """The layout for M features, K tokens in the window and C sign classes, of L orbits.

    >>> layout(3, 4, 3, 32).weights // 32
    9
    """
    blocks = {
        "signs": C * M,
        "weights": 4 * M * C,
        "beta": 1,
        "gamma": 1,
        "attention": K * M,
        "source": M,
        "output_semantic": M,
        "values": K * M,
        "queries": M,
        "keys": K * M,
        "tanh": C,
        "softmax": K,
        "scratch": 1,
        "through_keys": C,
        "through_softmax": K * M,
        "tangent_queries": M,
        "tangent_tanh": C,
        "tangent_softmax": K,
    }
    ends = dict(zip(blocks, itertools.accumulate(L * count for count in blocks.values()), strict=True))
    return Layout(**{name: end - L * blocks[name] for name, end in ends.items()}, size=max(ends.values()))


class Watched(NamedTuple):
    """Which statistics ``advance`` gathers of the blocks that begin at ``field``, if the histogram has bins, and where.

    A histogram of one component; its crossings, the values where another component, ``plane``, is within ``tolerance``
    of zero; and the extrema of all components. Compiled functions accept a named tuple.
    """

    field: int
    component: int
    plane: int
    tolerance: float
    extrema: np.ndarray
    histogram: np.ndarray
    crossings: np.ndarray
    num_crossings: np.ndarray


class Kernel(NamedTuple):
    """The compiled function for one combination of sizes, and the layout of the flat state that it works on.

    ``tangent_size``: numbers of one tangent, in blocks of one per lane: the derivative of the newest attention vector,
    (M), and of the hyperbolic tangents of the tokens in the window, newest first, (K, C).
    """

    advance: Callable[..., None]
    layout: Layout
    tangent_size: int


@cache
def compiled(M: int, K: int, C: int, L: int) -> Kernel:
    """Functions for M features, K tokens in the window and C sign classes, of L orbits; compiled at their first call.

    The sizes are constants for the compiler, so that it can separate the parts of the state and work on whole vectors.

    >>> compiled(3, 4, 3, 32).layout.weights, compiled(3, 4, 3, 32).tangent_size
    (288, 480)
    """
    _log_to.info("compiling the map of %d features, %d tokens and %d classes for %d orbits", M, K, C, L)
    at = layout(M, K, C, L)
    # By name: numbers that compiled functions close over are constants for the compiler.
    SIGNS, WEIGHTS, BETA, GAMMA = at.signs, at.weights, at.beta, at.gamma
    ATTENTION, SOURCE, OUTPUT = at.attention, at.source, at.output_semantic
    VALUES, QUERIES, KEYS = at.values, at.queries, at.keys
    TANH, SOFTMAX, SCRATCH = at.tanh, at.softmax, at.scratch
    THROUGH_KEYS, THROUGH_SOFTMAX = at.through_keys, at.through_softmax
    T_QUERIES, T_TANH, T_SOFTMAX = at.tangent_queries, at.tangent_tanh, at.tangent_softmax
    # In a tangent, where the hyperbolic tangents begin, and how many blocks matter for the next step.
    Y = M * L
    KEPT = M + (K - 1) * C

    @numba.njit(**_INNER)
    def overlaps(s: np.ndarray, positions: np.ndarray) -> None:
        """The token that the attention in ``SOURCE`` makes, as the newest of the window."""
        for i in range((K - 1) * M * L - 1, -1, -1):
            s[VALUES + M * L + i] = s[VALUES + i]
        for i in range((K - 1) * M * L - 1, -1, -1):
            s[KEYS + M * L + i] = s[KEYS + i]
        for c in range(C):
            for lane in range(L):
                field = 0.0
                for b in range(M):
                    field += s[SIGNS + (c * M + b) * L + lane] * s[SOURCE + b * L + lane]
                s[TANH + c * L + lane] = _tanh(field * s[BETA + lane])
        for a in range(M):
            for lane in range(L):
                m = 0.0
                for c in range(C):
                    m += s[WEIGHTS + (a * C + c) * L + lane] * s[TANH + c * L + lane]
                s[OUTPUT + a * L + lane] = m
            for lane in range(L):
                m = positions[(M + a) * L + lane]
                for c in range(C):
                    m += s[WEIGHTS + ((M + a) * C + c) * L + lane] * s[TANH + c * L + lane]
                s[VALUES + a * L + lane] = m
            for lane in range(L):
                m = positions[(2 * M + a) * L + lane]
                for c in range(C):
                    m += s[WEIGHTS + ((2 * M + a) * C + c) * L + lane] * s[TANH + c * L + lane]
                s[QUERIES + a * L + lane] = m
            for lane in range(L):
                m = positions[(3 * M + a) * L + lane]
                for c in range(C):
                    m += s[WEIGHTS + ((3 * M + a) * C + c) * L + lane] * s[TANH + c * L + lane]
                s[KEYS + a * L + lane] = m

    @numba.njit(**_INNER)
    def attend(s: np.ndarray, filled: int) -> None:
        """The attention of the newest token over the ``filled`` tokens of the window."""
        for j in range(K):
            for lane in range(L):
                x = 0.0
                for b in range(M):
                    x += s[QUERIES + b * L + lane] * s[KEYS + (j * M + b) * L + lane]
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
                x = 0.0
                for j in range(K):
                    x += s[SOFTMAX + j * L + lane] * s[VALUES + (j * M + a) * L + lane]
                s[ATTENTION + a * L + lane] = x

    @numba.njit(**_INNER)
    def linearise(s: np.ndarray) -> None:
        """What all tangents of a step share; ``TANH`` is replaced by its derivative, beta (1 - tanh^2)."""
        for c in range(C):
            for lane in range(L):
                x = 0.0
                for a in range(M):
                    x += s[QUERIES + a * L + lane] * s[WEIGHTS + ((3 * M + a) * C + c) * L + lane]
                s[THROUGH_KEYS + c * L + lane] = x
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
                x = 0.0
                for b in range(M):
                    x += s[SIGNS + (c * M + b) * L + lane] * d[b * L + lane]
                d[Y + c * L + lane] = x * s[TANH + c * L + lane]
        for a in range(M):
            for lane in range(L):
                x = 0.0
                for c in range(C):
                    x += s[WEIGHTS + ((2 * M + a) * C + c) * L + lane] * d[Y + c * L + lane]
                s[T_QUERIES + a * L + lane] = x
        for c in range(C):
            for lane in range(L):
                x = 0.0
                for j in range(K):
                    x += s[SOFTMAX + j * L + lane] * d[Y + (j * C + c) * L + lane]
                s[T_TANH + c * L + lane] = x
        for j in range(K):
            for lane in range(L):
                x = 0.0
                for b in range(M):
                    x += s[T_QUERIES + b * L + lane] * s[KEYS + (j * M + b) * L + lane]
                for c in range(C):
                    x += s[THROUGH_KEYS + c * L + lane] * d[Y + (j * C + c) * L + lane]
                s[T_SOFTMAX + j * L + lane] = x
        for a in range(M):
            for lane in range(L):
                x = 0.0
                for c in range(C):
                    x += s[WEIGHTS + ((M + a) * C + c) * L + lane] * s[T_TANH + c * L + lane]
                for j in range(K):
                    x += s[THROUGH_SOFTMAX + (j * M + a) * L + lane] * s[T_SOFTMAX + j * L + lane]
                d[a * L + lane] = x

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
    def normalise(d: np.ndarray, logs: np.ndarray, inverse: np.ndarray) -> None:
        for lane in range(L):
            x = 0.0
            for i in range(KEPT):
                x += d[i * L + lane] * d[i * L + lane]
            # A tangent of length zero stays at zero, and its exponent is minus infinity.
            logs[lane] += 0.5 * _log(max(x, _TINY)) if x > 0.0 else -math.inf
            inverse[lane] = 1.0 / math.sqrt(max(x, _TINY))
        for lane in range(L):
            x = inverse[lane]
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
            normalise(tangents[e], logs[e], scratch)

    @numba.njit(**_INNER)
    def observe(s: np.ndarray, watched: Watched) -> None:
        """Add one step to the statistics."""
        field, extrema = s[watched.field : watched.field + M * L], watched.extrema
        for a in range(M):
            for lane in range(L):
                extrema[0, a, lane] = min(extrema[0, a, lane], field[a * L + lane])
            for lane in range(L):
                extrema[1, a, lane] = max(extrema[1, a, lane], field[a * L + lane])
        histogram, crossings, num_crossings = watched.histogram, watched.crossings, watched.num_crossings
        bins = histogram.shape[1]
        for lane in range(L):
            x = field[watched.component * L + lane]
            histogram[lane, min(max(int((x + 1.0) * (0.5 * bins)), 0), bins - 1)] += 1
            if abs(field[watched.plane * L + lane]) < watched.tolerance:
                n = num_crossings[lane]
                if n < crossings.shape[1]:
                    crossings[lane, n] = x
                num_crossings[lane] = n + 1

    @numba.njit(**_INNER)
    def note(s: np.ndarray, row: np.ndarray) -> None:
        """All fields of the newest token, of as many lanes as the row has."""
        for lane in range(len(row)):
            for a in range(M):
                row[lane, 0, a] = s[OUTPUT + a * L + lane]
                row[lane, 1, a] = s[VALUES + a * L + lane]
                row[lane, 2, a] = s[QUERIES + a * L + lane]
                row[lane, 3, a] = s[KEYS + a * L + lane]
                row[lane, 4, a] = s[ATTENTION + a * L + lane]

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
        watched: Watched,
        record: np.ndarray,
    ) -> None:
        """``steps`` steps from a window of ``length`` tokens; the next one carries ``position``.

        Before them, the last ``behind`` tokens of the window are made from the attention that made them.

        The tangents, if there are any, are orthonormalised ``every`` so many steps and at the end, and the logarithms
        of what they had grown to are added to ``logs``. The last steps go into ``record``, as many as it has room for.
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
            if watched.histogram.shape[1] > 0:
                observe(s, watched)
            if n >= steps - len(record):
                note(s, record[n - steps + len(record)])

    return Kernel(advance, at, (M + K * C) * L)
