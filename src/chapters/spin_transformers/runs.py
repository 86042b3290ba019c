"""The source's runs of many vector spins: its random numbers, and what it follows of every spin from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_RESTS = 1e-6


class Run(NamedTuple):
    """What is followed: the last means ``m`` (N, D), and by steps (T, N) or (T,) what the fields say.

    ``previous``, ``start`` and ``field`` are cosines of each mean with itself one step before, with the start and with
    its field; ``length`` is that of the mean, and ``change`` that of the change of all means over that of all means.
    """

    m: Float[Array, "N D"]
    previous: Float[np.ndarray, "T N"]
    start: Float[np.ndarray, "T N"]
    field: Float[np.ndarray, "T N"]
    length: Float[np.ndarray, "T N"]
    change: Float[np.ndarray, " T"]


def drawn(seed: int, num_sites: int, dim: int) -> tuple[Float[Array, "N N"], Float[Array, "N D"]]:
    """Couplings of variance 1/N and directions of the fields, with the random numbers of the source.

    These are those of a JAX whose draws depended on their number, in single precision.

    >>> J, directions = drawn(2666, 4, 6)
    >>> J.shape, jnp.linalg.norm(directions, axis=1).round(4).tolist()
    ((4, 4), [1.0, 1.0, 1.0, 1.0])
    """
    with jax.threefry_partitionable(False):
        x_key, J_key = jax.random.split(jax.random.PRNGKey(seed))
        x = jax.random.normal(x_key, (num_sites, dim), jnp.float32)
        J = jax.random.normal(J_key, (num_sites, num_sites), jnp.float32)
    return J / np.float32(np.sqrt(num_sites)), x / jnp.linalg.norm(x, axis=1, keepdims=True)


@jax.jit
def _seen(new: Array, m: Array, start: Array, x: Array) -> tuple[Array, ...]:
    length = jnp.linalg.norm(new, axis=1)
    cosines = [jnp.sum(new * a, axis=1) / length / jnp.linalg.norm(a, axis=1) for a in (m, start, x)]
    return *cosines, length, jnp.linalg.norm(new - m) / jnp.linalg.norm(m)


def follow(
    couplings: Float[Array, "N N"],
    fields: Float[Array, "N D"],
    *,
    beta: float,
    step: Callable[..., Array],
    steps: int = 20,
    begin: Float[Array, "N D"] | None = None,
) -> Run:
    """The steps m, step(m), ... of mean-field dynamics, from "all ones" scaled to length 1 or from ``begin``.

    ``step(m, J, x, beta=beta)`` is one of ``spinbook.vector.mean_field``. A run that rests, with a change below 1e-6,
    is not stepped further: what is seen of its last step is repeated.

    >>> from spinbook.vector.mean_field import naive_step
    >>> J, directions = drawn(2666, 4, 6)
    >>> follow(J, directions, beta=1.0, step=naive_step, steps=3).length.shape
    (3, 4)
    """
    start: Any = jnp.full(fields.shape, fields.shape[1] ** -0.5, fields.dtype)
    m: Any = start if begin is None else begin
    seen: list[tuple[Any, ...]] = []
    for _ in range(steps):
        if seen and seen[-1][-1] < _RESTS:
            seen.append(seen[-1])
            continue
        new = step(m, couplings, fields, beta=np.asarray(beta, fields.dtype))
        seen.append(_seen(new, m, start, fields))
        m = new
    return Run(m, *(np.array(values) for values in zip(*seen, strict=True)))
