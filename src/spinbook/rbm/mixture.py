"""The modern Hopfield energy as a mixture of normal densities, and softmax attention as its posterior mean.

Patterns are rows, (num_patterns, dim). The inverse temperature beta multiplies the scalar products inside the
logarithm, and the density is exp(-beta E): a mixture of normal densities around the patterns, all of variance 1 / beta.
Queries are compared with the patterns as they are, and each pattern is both key and value.

Cost of the functions of queries: one or two products of (queries, dim) with the patterns, and memory for an array
(queries, num_patterns).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array

from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Positive, checked

__all__ = [
    "mixture_log_density",
    "mixture_log_partition",
    "mixture_weights",
    "modern_hopfield_energy",
    "posterior_mean",
    "responsibilities",
    "retrieve",
]

Patterns = Float[ArrayLike, "num_patterns dim"]
Queries = Float[ArrayLike, "*batch dim"]


@checked(static=())
def modern_hopfield_energy(visible: Queries, patterns: Patterns, *, beta: Positive = 1.0) -> Float[Array, "*batch"]:
    """E(v) = |v|^2 / 2 - (1 / beta) log sum_mu exp(beta x_mu . v).

    ``visible`` is (..., dim), ``patterns`` (num_patterns, dim); the result is (...). Its gradient is v minus
    ``retrieve(v)``, so that retrieving is a gradient step of size one. With 1 / beta = sqrt(dim) that step is scaled
    dot-product attention; with E = |v|^2 / 2 - logsumexp(X v / sqrt(dim)) it is not. Raises ``ValueError`` for shapes
    that do not fit, no patterns, NaN, and beta <= 0. Source: Bal (2020), section 1 (label mhnenergy), at beta = 1.

    >>> float(modern_hopfield_energy([2.0, 0.0], [[1.0, 0.0]]))
    0.0
    """
    v, X = visible, patterns
    return jnp.sum(v * v, axis=-1) / 2 - logsumexp(beta * (v @ X.T), axis=-1) / beta


@checked(static=())
def mixture_weights(patterns: Patterns, *, beta: Positive = 1.0) -> Float[Array, " num_patterns"]:
    """w_mu = exp(beta |x_mu|^2 / 2) / sum_nu exp(beta |x_nu|^2 / 2).

    The prior weight of each pattern. Equal only for equal norms: a slightly longer pattern takes all the weight as
    beta or the dimension grows. Source: Bal (2020), section 2, modern Hopfield networks as mixtures. With the
    Z printed there, which holds the factor (2 pi)^{dim/2} that the Z_mu lack, w_mu = Z_mu / Z would sum to
    (2 pi)^{-dim/2} and not to 1.

    >>> [round(float(w), 3) for w in mixture_weights([[1.0, 0.0], [0.0, 2.0]])]
    [0.182, 0.818]
    """
    return jax.nn.softmax(beta * jnp.sum(patterns * patterns, axis=-1) / 2)


@checked(static=())
def mixture_log_partition(patterns: Patterns, *, beta: Positive = 1.0) -> Float[Array, ""]:
    """log Z = (dim / 2) log(2 pi / beta) + log sum_mu exp(beta |x_mu|^2 / 2), Z = integral of exp(-beta E(v)).

    Source: Bal (2020), section 2, the Gaussian integral after the modern Hopfield energy, at beta = 1.

    >>> round(float(mixture_log_partition([[0.0, 0.0]])), 4)
    1.8379
    """
    X = patterns
    return X.shape[1] / 2 * jnp.log(2 * jnp.pi / beta) + logsumexp(beta * jnp.sum(X * X, axis=-1) / 2)


@checked(static=())
def mixture_log_density(visible: Queries, patterns: Patterns, *, beta: Positive = 1.0) -> Float[Array, "*batch"]:
    """log p(v) = -beta E(v) - log Z, equal to log sum_mu w_mu N(v; x_mu, 1 / beta).

    ``visible`` is (..., dim), ``patterns`` (num_patterns, dim); the result is (...). Errors as for
    ``modern_hopfield_energy``. Source: Bal (2020), section 2, modern Hopfield networks as mixtures, at beta = 1.

    >>> round(float(mixture_log_density([0.0], [[0.0]])), 4)
    -0.9189
    """
    energy = modern_hopfield_energy(visible, patterns, beta=beta)
    return -beta * energy - mixture_log_partition(patterns, beta=beta)


@checked(static=())
def responsibilities(
    queries: Queries, patterns: Patterns, *, beta: Positive = 1.0
) -> Float[Array, "*batch num_patterns"]:
    """P(mu | q) = softmax_mu(beta x_mu . q), the posterior probability that query q came from pattern mu.

    The norms of the patterns cancel: they lower the density at q and raise the prior weight by the same factor.
    ``queries`` is (..., dim). Errors as for ``modern_hopfield_energy``.

    >>> responsibilities([0.0, 0.0], [[1.0, 0.0], [0.0, 5.0]]).tolist()
    [0.5, 0.5]
    """
    return jax.nn.softmax(beta * (queries @ patterns.T), axis=-1)


@checked(static=())
def posterior_mean(queries: Queries, patterns: Patterns, *, beta: Positive = 1.0) -> Float[Array, "*batch dim"]:
    """E[x_mu | q] = sum_mu x_mu w_mu N(q; x_mu, 1 / beta) / sum_nu w_nu N(q; x_nu, 1 / beta), by Bayes' rule.

    Equal to ``retrieve``, but computed from the mixture weights and the normal densities, without the softmax of
    scalar products. ``queries`` is (..., dim). Errors as for ``modern_hopfield_energy``.

    >>> posterior_mean([[0.0, 0.0]], [[1.0, 0.0], [-1.0, 0.0]]).shape
    (1, 2)
    """
    # The differences are formed and squared, and not expanded into the scalar products of the softmax, so that the two
    # routes are independent. One pattern after the other, so that no (queries, num_patterns, dim) array exists.
    q, X = queries, patterns
    squared_distances = jnp.moveaxis(
        jax.lax.map(lambda x: jnp.sum((q - jnp.broadcast_to(x, q.shape)) ** 2, axis=-1), X), 0, -1
    )
    log_prior = jax.nn.log_softmax(beta * jnp.sum(X * X, axis=-1) / 2)
    log_likelihood = -beta * squared_distances / 2 + X.shape[1] / 2 * jnp.log(beta / (2 * jnp.pi))
    log_joint = jnp.broadcast_to(log_prior, log_likelihood.shape) + log_likelihood
    return jnp.exp(log_joint - logsumexp(log_joint, axis=-1, keepdims=True)) @ X


@checked(static=())
def retrieve(queries: Queries, patterns: Patterns, *, beta: Positive = 1.0) -> Float[Array, "*batch dim"]:
    """q' = softmax(beta q X^T) X, one update of every query: softmax attention with the patterns as keys and values.

    ``queries`` is (..., dim), ``patterns`` (num_patterns, dim). The result lies in the convex hull of the patterns, and
    the energy never increases. Weights grow with the length of a pattern: scale data to a common length unless their
    lengths have a meaning. Errors as for ``modern_hopfield_energy``. Source: Bal (2020), section 1 (label
    mhnupdate), at beta = 1.

    >>> retrieve([[0.0, 0.0]], [[1.0, 0.0], [3.0, 4.0]]).tolist()
    [[2.0, 2.0]]
    """
    return responsibilities(queries, patterns, beta=beta) @ patterns
