"""Sampling of binary spins that are all updated at once, many replicas side by side.

Given the state s' before, spins are independent with P(s_i = 1 | s') = 1 / (1 + exp(-2 beta (h_i + sum_j J_ij s'_j))).
Leading axes of the spins are independent replicas; the random numbers of a replica depend on the key, the step and the
number of the replica alone, and not on how many there are or how long they run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from spinbook import simulation, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Key, Positive, checked
from spinbook.simulation import Simulation

__all__ = ["simulate", "step"]


def _up_or_down(spins: Array | np.ndarray, name: str) -> None:
    validate.require(lambda x: abs(x) == 1, spins, name, "spins that are -1 or 1")


Spins = Annotated[Float[ArrayLike, "*batch N"], _up_or_down]
Couplings = Float[ArrayLike, "N N"]
Fields = Float[ArrayLike, "*#batch #N"]


def _rotate(x: Array, distance: int) -> Array:
    return (x << np.uint32(distance)) | (x >> np.uint32(32 - distance))


def _threefry(keys: tuple[Array, Array], x0: Array, x1: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds: two random words for each pair of counters.

    It is the generator of ``jax.random``, which on CPUs runs it as a loop over arrays in memory. Written out, it fuses
    with the comparison that uses the words, and a step of the sampler takes half the time.
    Source: Salmon, Moraes, Dror & Shaw (2011).
    """
    schedule = (*keys, keys[0] ^ keys[1] ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + schedule[0], x1 + schedule[1]
    for block in range(5):
        for distance in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
            x0 = x0 + x1
            x1 = _rotate(x1, distance) ^ x0
        x0 = x0 + schedule[(block + 1) % 3]
        x1 = x1 + schedule[(block + 2) % 3] + np.uint32(block + 1)
    return x0, x1


def _uniform(key: PRNGKeyArray, shape: tuple[int, int], dtype: Any) -> Array:
    """Numbers in the middle of 2^23 or 2^52 equal parts of (0, 1), so that u and 1 - u are equally likely."""
    k0, k1 = jax.random.bits(key, (2,), jnp.uint32)
    rows, columns = (jax.lax.broadcasted_iota(jnp.uint32, shape, axis) for axis in (0, 1))
    x0, x1 = _threefry((k0, k1), rows, columns)
    # Signed integers become floating numbers several times faster than unsigned ones.
    high = (x0 >> np.uint32(9)).astype(jnp.int32)
    if dtype != jnp.float64:
        return (high.astype(jnp.float32) + np.float32(0.5)) * np.float32(2.0**-23)
    low = (x1 >> np.uint32(3)).astype(jnp.int32)
    return ((low.astype(dtype) + 0.5) * 2.0**-29 + high.astype(dtype)) * 2.0**-23


def _advanced(key: PRNGKeyArray, s: Array, doubled_couplings: Array, doubled_fields: Array) -> Array:
    u = _uniform(key, (s.shape[0], s.shape[1]), s.dtype)
    x = (s @ doubled_couplings + jnp.broadcast_to(doubled_fields, s.shape)).astype(u.dtype)
    # u < 1 / (1 + exp(-x)), without the division; an overflow of the exponential means -1 for certain.
    one = jnp.ones((), s.dtype)
    return jnp.where(u * (1 + jnp.exp(-x)) < 1, one, -one)


def _rows(s: Array, J: Array, h: Array, beta: Array) -> tuple[Array, Array, Array]:
    """The replicas in one axis, 2 beta J transposed, and 2 beta h."""
    rows, h = simulation.rows(s, h, 1)
    return rows, 2 * beta * J.T, 2 * beta * h


@checked(static=())
def step(key: Key, spins: Spins, couplings: Couplings, fields: Fields, *, beta: Positive) -> Float[Array, "*batch N"]:
    """s_i = 1 with probability 1 / (1 + exp(-2 beta (h_i + sum_j J_ij s'_j))), and -1 otherwise; s' = ``spins``.

    ``spins`` is (..., N) of -1 and 1, leading axes being independent replicas; ``couplings`` (N, N) may have any
    symmetry and a diagonal; ``fields`` is a number, (N,) or (..., N). Probabilities are resolved to 2^-24 in float32.
    Raises ``ValueError`` for couplings that are not square, shapes that do not fit, NaN, spins other than -1 and 1, and
    beta <= 0. Source: Bal (2023), labels pcond and pcondwithbeta.

    >>> import jax
    >>> step(jax.random.key(0), [[1, 1], [-1, 1]], [[0.0, 1.0], [-1.0, 0.0]], 0.0, beta=30.0).tolist()
    [[1.0, -1.0], [1.0, 1.0]]
    """
    return _advanced(key, *_rows(spins, couplings, fields, beta)).reshape(spins.shape)


@checked(static=("steps", "transient", "correlations", "observable"))
def simulate(
    key: Key,
    spins: Spins,
    couplings: Couplings,
    fields: Fields,
    *,
    beta: Positive,
    steps: int,
    transient: int = 0,
    correlations: bool = False,
    observable: Callable[[Array], Any] | None = None,
) -> Simulation:
    """s(1), ..., s(steps) from s(0) = ``spins``: averages over all steps after the first ``transient`` ones.

    Step t is ``step`` with the key fold_in(key, t - 1). The result is a ``Simulation`` with the last state and, as
    attributes, the means ``magnetizations`` and, if asked for, ``correlations`` and ``delayed_correlations``, each with
    standard errors. With transient = steps - 1 they are those at one time, over replicas only. ``observable``, a
    function of one state (..., N), is recorded after every step, the transient included. Arguments and errors as for
    ``step``. Cost: 2 R N^2 a step; correlations add 4 R N^2. Memory: a few times the spins, 2 N^2 for each of at most
    16 groups of replicas for correlations, and what is observed. Compiled once for each shape and observable: pass the
    same function again, not a new lambda.

    >>> import jax
    >>> start = jax.numpy.ones((1000, 2))
    >>> result = simulate(jax.random.key(0), start, [[0.0, 1.0], [-1.0, 0.0]], 0.5, beta=0.7, steps=60, transient=10)
    >>> result.spins.shape, result.magnetizations.shape, abs(float(result.magnetizations[0]) - 0.265) < 0.02
    ((1000, 2), (2,), True)
    """
    start, doubled_couplings, doubled_fields = _rows(spins, couplings, fields, beta)
    return simulation.run(
        key,
        start,
        lambda key, rows: _advanced(key, rows, doubled_couplings, doubled_fields),
        shape=spins.shape,
        steps=steps,
        transient=transient,
        correlations=correlations,
        observable=observable,
        # Sums of spins are exact as integers.
        sum_dtype=jnp.int32,
    )
