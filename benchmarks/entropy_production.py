"""Benchmarks of ``spinbook.entropy_production`` against the formulas as printed. Each takes its size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import Benchmark
from spinbook import entropy_production, sphere


def _relative_difference(ours, baseline):
    return float(np.abs(ours - baseline).max() / np.abs(baseline).max())


def vector_mean_field(size=64, *, dim=64, beta=1.0):
    """Value and gradient for ``size`` spins, against traces of products of (D, D) covariances in JAX, compiled too."""
    keys = jax.random.split(jax.random.key(0), 2)
    J = jax.random.normal(keys[0], (size, size)) / np.sqrt(size)
    theta = jax.random.normal(keys[1], (size, dim))

    def production(J, theta):
        return entropy_production.vector_mean_field(J, theta, theta, beta=beta, response=sphere.large_d)

    def plain(J, theta):
        covariance = sphere.covariance_large_d(theta, beta=beta)
        overlaps = jnp.einsum("iab,jba->ij", covariance, covariance)
        return beta**2 / 2 * jnp.sum((J - J.T) ** 2 * overlaps)

    ours, baseline = (jax.jit(jax.grad(f, argnums=1)) for f in (production, plain))
    name = f"entropy_production.vector_mean_field, {size} spins of {dim} components, with gradient"
    # Sums of size^2 terms in another order, cancelling to a hundredth.
    allowed = 100 * size * float(jnp.finfo(J.dtype).eps)
    return Benchmark(
        name, lambda: ours(J, theta), lambda: baseline(J, theta), lambda a, b: _relative_difference(a, b) / allowed
    )


BENCHMARKS = (vector_mean_field,)
