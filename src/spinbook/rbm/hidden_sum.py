"""log of the sum or integral of q(h) e^{t h} over the states of one hidden unit, done numerically for each prior.

An independent route to the closed forms of ``cumulant_generating_functions``, with the same names, makers and
parameters but no code in common, and slower by the number of nodes. Where the integral diverges or the nodes do not
suffice, known t raise ``ValueError``; traced t give +inf and NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.rbm import priors
from spinbook.rbm.priors import HiddenPrior

__all__ = ["bernoulli", "constant", "exponential", "gaussian", "laplace", "poisson"]

HiddenSum = Callable[[Any], Array]


@cache
def _normal_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes h and log weights of Gauss-Hermite quadrature for the standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(96)
    return nodes, np.log(weights / weights.sum())


@cache
def _half_line_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes h and log weights for integrals over h > 0: the trapezoidal rule in u, h = exp(u - e^{-u})."""
    u = np.arange(-4.0, 20.0, 1 / 32)
    log_h = u - np.exp(-u)
    return np.exp(log_h), log_h + np.log1p(np.exp(-u)) - math.log(32)


@cache
def _counts(max_count: int) -> tuple[np.ndarray, np.ndarray]:
    """h = 0, 1, ..., max_count and -log h!."""
    return np.arange(max_count + 1.0), np.array([-math.lgamma(h + 1) for h in range(max_count + 1)])


def _exponents(t: Array, h: Array, log_w: Array) -> Array:
    """t h + log w, with the nodes h in a new last axis."""
    products = jnp.multiply.outer(t, h)
    return products + jnp.broadcast_to(log_w, products.shape)


@jax.jit
def _normal(t: Array, h: Array, log_w: Array) -> Array:
    return jnp.where(jnp.abs(t) <= 10, logsumexp(_exponents(t, h, log_w), axis=-1), jnp.nan)


@jax.jit
def _bernoulli(t: Array, p: Array) -> Array:
    return logsumexp(jnp.stack(jnp.broadcast_arrays(jnp.log(1 - p), jnp.log(p) + t), axis=-1), axis=-1)


@jax.jit
def _poisson(t: Array, rate: Array, h: Array, log_w: Array) -> tuple[Array, Array]:
    """The sum, NaN where it is cut off too early, and where it is not."""
    n = h.size
    log_mean = jnp.log(rate) + t
    excess = jnp.minimum(log_mean - math.log(n), 0)
    log_bound = n + n * excess - n * jnp.exp(excess)
    complete = log_bound <= math.log(jnp.finfo(t.dtype).eps)
    return jnp.where(complete, logsumexp(_exponents(log_mean, h, log_w), axis=-1) - rate, jnp.nan), complete


@jax.jit
def _exponential(t: Array, rate: Array, h: Array, log_w: Array) -> Array:
    integral = jnp.log(rate) + logsumexp(_exponents(t - rate, h, log_w), axis=-1)
    return jnp.where(t < rate, integral, jnp.inf)


@jax.jit
def _laplace(t: Array, scale: Array, h: Array, log_w: Array) -> Array:
    sides = [_exponents(sign * t - 1 / scale, h, log_w) for sign in (1, -1)]
    integral = logsumexp(jnp.concatenate(sides, axis=-1), axis=-1) - jnp.log(2 * scale)
    return jnp.where(jnp.abs(t) * scale < 1, integral, jnp.inf)


def _made(prior: HiddenPrior, value: Any, formula: Callable[[Array, Array], Array]) -> HiddenSum:
    checked = prior.checked(value)

    def total(t: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
        return formula(*prior.arguments(t, checked, "the integral diverges"))

    return total


def gaussian(t: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
    """log sum_k w_k e^{t h_k} with the 96 nodes of Gauss-Hermite quadrature, for |t| <= 10.

    >>> round(float(gaussian(3.0)), 4)
    4.5
    """
    t = validate.finite(t, "t")
    expected = "|t| <= 10 (beyond, 96 nodes do not reach the integrand)"
    validate.require(lambda t: np.abs(t) <= 10, t, "t", expected)
    return _normal(t, *(jnp.asarray(x, t.dtype) for x in _normal_nodes()))


def bernoulli(probability: Float[ArrayLike, "*units"] = 0.5) -> HiddenSum:
    """log(q(0) + q(1) e^t): two states.

    >>> round(float(bernoulli(0.3)(4.0)), 3)
    2.838
    """
    return _made(priors.BERNOULLI, probability, _bernoulli)


def poisson(rate: Float[ArrayLike, "*units"] = 1.0, *, max_count: int = 256) -> HiddenSum:
    """log sum_{h=0}^{max_count} e^{-rate} rate^h / h! e^{t h}.

    The terms left out are at most the fraction e^{n - m} (m / n)^n of the sum, with m = rate e^t and n = max_count + 1
    (Chernoff's bound). ``ValueError`` if that exceeds the rounding error of the dtype: raise ``max_count`` then.

    >>> round(float(poisson(2.0)(1.0)), 4)
    3.4366
    """
    checked = priors.POISSON.checked(rate)
    max_count = validate.count(max_count, "max_count", minimum=1)

    def total(t: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
        t, rates = priors.POISSON.arguments(t, checked)
        value, complete = _poisson(t, rates, *(jnp.asarray(x, t.dtype) for x in _counts(max_count)))
        expected = f"rate e^t so small that counts above max_count = {max_count} are negligible"
        validate.require(lambda _, complete: complete, t, "t", expected, (complete,))
        return value

    return total


def _in_single_precision(total: Callable[..., Array], t: Array, parameter: Array) -> Array:
    """The sum over the nodes of the half line, which no half precision can hold, in float32 at least."""
    wide = np.promote_types(t.dtype, np.float32)
    nodes = (jnp.asarray(x, wide) for x in _half_line_nodes())
    return total(t.astype(wide), parameter.astype(wide), *nodes).astype(t.dtype)


def exponential(rate: Float[ArrayLike, "*units"] = 1.0) -> HiddenSum:
    """log of the integral of rate e^{-rate h} e^{t h} over h > 0, by double exponential quadrature; t < rate.

    Good to about 1e-12 in float64 while rate - t lies between 1e-6 and 1e4.

    >>> round(float(exponential(1.0)(0.5)), 4)
    0.6931
    """
    return _made(priors.EXPONENTIAL, rate, partial(_in_single_precision, _exponential))


def laplace(scale: Float[ArrayLike, "*units"] = 1.0) -> HiddenSum:
    """log of the integral of e^{-|h| / scale} / (2 scale) e^{t h} over all h, by quadrature; |t| < 1 / scale.

    Good to about 1e-12 in float64 while 1 / scale - |t| and 1 / scale + |t| lie between 1e-6 and 1e4.

    >>> round(float(laplace(1.0)(0.5)), 4)
    0.2877
    """
    return _made(priors.LAPLACE, scale, partial(_in_single_precision, _laplace))


def constant(value: Float[ArrayLike, "*units"] = 1.0) -> HiddenSum:
    """log e^{t value} = t value: a single state, and nothing to sum.

    >>> float(constant(2.0)(1.5))
    3.0
    """
    return _made(priors.CONSTANT, value, lambda t, value: t * value)
