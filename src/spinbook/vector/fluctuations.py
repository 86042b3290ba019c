"""The second order in J: what fluctuations of the spins of the step before change in the mean of a spin.

The field of spin i is x_i + sum_j J_ij s_j, with s_j the spins before, independent, of mean m_j and covariance Var_j.
Vectors are stored by heads, (heads, sites, D / heads): head h is the h-th slice of the components, and ``couplings[h]``
acts on that slice, so that J_ij stands for the block-diagonal matrix of the numbers J^h_ij. All slices of a spin
together are one vector on one sphere; with one head the coupling of two spins is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from spinbook.sphere import Gains, squared_length, squared_radius

__all__ = [
    "COMPONENTS",
    "Covariances",
    "FieldMoments",
    "Rule",
    "field_moments",
    "magnetization_change",
    "of_receivers",
    "of_senders",
    "onsager_field",
    "received",
    "spread",
    "tap_field",
]


# Where the components of a vector lie that is stored by heads, (H, N, d).
COMPONENTS = (0, 2)


class Covariances(NamedTuple):
    """Var_j = transverse 1 - along m_j m_j^T as it enters the sum over j for spin i, and the trace that is used for it.

    Arrays (1, senders), or (receivers, 1) for an expression that depends on i.
    """

    transverse: Float[Array, "#N #M"]
    along: Float[Array, "#N #M"]
    trace: Float[Array, "#N #M"]


Rule = Callable[[Gains, Array, int, Array], Covariances]


def _row(gains: Gains, beta: Array) -> tuple[Array, Array]:
    return gains.f / beta, -gains.f1 / (beta * gains.f**2)


def of_senders(gains: Gains, squared_magnetizations: Array, dim: int, beta: Array) -> Covariances:
    """Var_j of the response of spin j, and R^2 - |m_j|^2 for its trace, which the sphere demands."""
    transverse, along = _row(gains, beta)
    return Covariances(transverse[None], along[None], (squared_radius(dim) - squared_magnetizations)[None])


def of_receivers(gains: Gains, squared_magnetizations: Array, dim: int, beta: Array) -> Covariances:
    """As ``of_senders``, but with gamma_i where gamma_j belongs: the index of the source (secondordercorrections)."""
    transverse, along = _row(gains, beta)
    return Covariances(transverse[:, None], along[:, None], (squared_radius(dim) - squared_magnetizations)[None])


def _dot(a: Array, b: Array) -> Array:
    return jnp.sum(jnp.sum(a * b, axis=2), axis=0)


def received(couplings: Float[Array, "H N M"], magnetizations: Float[Array, "H M d"]) -> Float[Array, "H N d"]:
    """sum_j J_ij m_j."""
    return couplings @ magnetizations


class FieldMoments(NamedTuple):
    """E[dh dh^T] theta, tr E[dh dh^T] and theta . E[dh dh^T] theta, for dh = v + sum_j J_ij (s_j - m_j)."""

    product: Float[Array, "H N d"]
    trace: Float[Array, " N"]
    expectation: Float[Array, " N"]


def _sent(squared_couplings: Array, numbers: Array) -> Array:
    """sum_j (J^h_ij)^2 y_ij as (H, N), for y that depends on j, on i, or on both."""
    if numbers.shape[-2] == 1:
        return jnp.squeeze(squared_couplings @ jnp.swapaxes(numbers, -1, -2), -1)
    return jnp.sum(squared_couplings * numbers, axis=-1)


def field_moments(
    fields: Float[Array, "H N d"],
    shift: Float[Array, "H N d"],
    magnetizations: Float[Array, "H M d"],
    covariances: Covariances,
    couplings: Float[Array, "H N M"],
) -> FieldMoments:
    """E[dh dh^T] theta_i, tr E[dh dh^T] and theta_i . E[dh dh^T] theta_i, for dh = v_i + sum_j J_ij (s_j - m_j).

    ``fields`` are the theta_i, ``shift`` the v_i, ``magnetizations`` the m_j before. With several heads the first is,
    for head h, v^h (v . theta) + sum_j J^h_ij [J^h_ij a_j theta^h - b_j m^h_j sum_k J^k_ij m^k_j . theta^k], where
    Var_j = a_j 1 - b_j m_j m_j^T: heads meet in the products J^h_ij J^k_ij.

    >>> a = jnp.ones((1, 2, 4))
    >>> one = jnp.ones((1, 2))
    >>> field_moments(a, a, a, Covariances(one, one, one), jnp.ones((1, 2, 2))).product.shape
    (1, 2, 4)
    """
    heads = len(couplings)
    transverse, along, trace = covariances
    own = jnp.sum(magnetizations * magnetizations, axis=-1)
    isotropic = (trace + along * jnp.sum(own, axis=0, keepdims=True)) / heads
    # Head by head: XLA's loops over all heads at once take ten times longer, here and in the transpose, and one head
    # after another keeps its matrices in the cache.
    by_head = couplings, fields, magnetizations

    def overlap(total: Array, head: tuple[Array, Array, Array]) -> tuple[Array, None]:
        J, theta, m = head
        return total + J * (theta @ m.T), None

    overlaps = jax.lax.scan(overlap, jnp.zeros_like(couplings[0]), by_head)[0]
    weighted = along * overlaps
    correlated = jax.lax.map(lambda head: (head[0] * weighted) @ head[2], by_head)
    squared_couplings = couplings * couplings
    sent_transverse = _sent(squared_couplings, transverse[None])
    sent_trace = _sent(squared_couplings, isotropic[None] - along[None] * own[:, None, :])
    along_shift = _dot(fields, shift)
    product = shift * along_shift[None, :, None] + sent_transverse[..., None] * fields - correlated
    return FieldMoments(product, squared_length(shift, COMPONENTS) + jnp.sum(sent_trace, axis=0), _dot(fields, product))


def magnetization_change(fields: Float[Array, "H N d"], gains: Gains, moments: FieldMoments) -> Float[Array, "H N d"]:
    """d^2 m_i / da^2 = E[phi''(theta_i)(dh, dh)]."""
    _, f1, f2 = gains
    scale = f1 * moments.trace + f2 * moments.expectation
    return scale[None, :, None] * fields + 2 * f1[None, :, None] * moments.product


def onsager_field(fields: Float[Array, "H N d"], gains: Gains, moments: FieldMoments) -> Float[Array, "H N d"]:
    """(1/2) (beta Var_i)^-1 d^2 m_i / da^2, the field that the second order adds."""
    f, f1, f2 = gains
    along = f + f1 * squared_length(fields, COMPONENTS)
    scale = (f1 * moments.trace + (f2 - 2 * f1**2 / f) * moments.expectation) / (2 * along)
    return scale[None, :, None] * fields + (f1 / f)[None, :, None] * moments.product


def spread(magnetizations: Float[Array, "H M d"], couplings: Float[Array, "H N M"]) -> Float[Array, " N"]:
    """tr Cov(h_i) = sum_j mean_h (J^h_ij)^2 (R^2 - |m_j|^2): what the fluctuations of h_i add to its squared length.

    ``spinbook.spread_attention`` has it in PyTorch; ``closure`` and ``phases`` contain it.

    >>> spread(jnp.zeros((1, 2, 4)), jnp.full((1, 2, 2), 0.5)).tolist()
    [0.5, 0.5]
    """
    heads, _, components = magnetizations.shape
    variances = squared_radius(heads * components) - squared_length(magnetizations, COMPONENTS)
    return jnp.mean(couplings * couplings, axis=0) @ variances


def tap_field(
    fields: Float[Array, "H N d"],
    gains: Gains,
    drive: Float[Array, "H N d"],
    magnetizations: Float[Array, "H M d"],
    covariances: Covariances,
    couplings: Float[Array, "H N M"],
) -> Float[Array, "H N d"]:
    """theta_i = x_i + sum_j J_ij m_j + (1/2) (beta Var_i)^-1 d^2 m_i / da^2, the TAP equation of vector spins.

    Its right side at theta_i = ``fields``, where the response has the ``gains``; ``drive`` is the sum of the first two
    terms, and ``covariances`` are those of the spins before, of means m_j = ``magnetizations``.
    """
    around = field_moments(fields, drive - fields, magnetizations, covariances, couplings)
    return drive + onsager_field(fields, gains, around)
