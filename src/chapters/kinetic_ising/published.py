"""The random numbers of the figures of Bal (2023) on binary spins: its fields, couplings and starts, drawn again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import Float

# The seed and the sizes of the figures of Bal (2023), section "A simple JAX implementation" of binary spins.
_PUBLISHED_SEED, _PUBLISHED_SPINS, _PUBLISHED_SAMPLES = 2666, 512, 100


def published_system(sample: int | None = None) -> tuple[Float[Array, "512"], Float[Array, "512 512"]]:
    """The fields and couplings, in single precision, of the figures of Bal (2023), without its factor beta.

    X = 0.5, mu = 1, sigma = 0.1. ``sample`` None is the system of its first three figures, 0 to 99 are the hundred of
    its fourth. The source drew them with the random numbers that were JAX's default then, which are switched on for the
    draw. Raises ``ValueError`` for other samples.

    >>> fields, couplings = published_system()
    >>> couplings.shape, round(float(fields[0]), 6), round(float(couplings[0, 0]), 6)
    ((512, 512), -0.297437, 0.002925)
    """
    if sample is not None:
        sample = validate.count(sample, "sample", maximum=_PUBLISHED_SAMPLES - 1)
    n = _PUBLISHED_SPINS
    with jax.threefry_partitionable(False):
        key, _ = jax.random.split(jax.random.PRNGKey(_PUBLISHED_SEED))
        if sample is not None:
            key = jax.random.split(key, _PUBLISHED_SAMPLES)[sample]
        field_key, coupling_key = jax.random.split(key)
        h = 0.5 * jax.random.uniform(field_key, (n,), jnp.float32, -1.0, 1.0)
        z = jax.random.normal(coupling_key, (n, n), jnp.float32)
    return h, 1 / n + 0.1 * n**-0.5 * z


def published_starts() -> tuple[Float[Array, "100 512"], Float[Array, "512"]]:
    """The hundred random starts of the third figure of Bal (2023), of standard deviation 5, and that of its fourth.

    They are not magnetizations; the first step maps them to magnetizations. Random numbers as in ``published_system``.

    >>> wide, one = published_starts()
    >>> wide.shape, one.shape
    ((100, 512), (512,))
    """
    with jax.threefry_partitionable(False):
        _, key = jax.random.split(jax.random.PRNGKey(_PUBLISHED_SEED))
        wide = jax.random.normal(key, (_PUBLISHED_SAMPLES, _PUBLISHED_SPINS), jnp.float32)
        one = jax.random.normal(key, (1, _PUBLISHED_SPINS), jnp.float32)[0]
    return 5 * wide, one
