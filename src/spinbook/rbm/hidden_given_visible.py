"""Samplers of one hidden unit given its input t: exact draws from q(h) e^{t h} / E[e^{t h}].

``gaussian`` is a plain sampler; the others are makers that take the parameters of the prior and return one. A sampler
is called as ``sampler(key, t)`` and returns independent draws of the shape and dtype of t, one for each entry.
Where the tilted prior cannot be normalised, known t raise ``ValueError`` and traced ones give NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.rbm import priors
from spinbook.rbm.priors import HiddenPrior

__all__ = ["bernoulli", "constant", "exponential", "gaussian", "laplace", "poisson"]

Sampler = Callable[[PRNGKeyArray, Any], Array]


@jax.jit
def _gaussian(key: PRNGKeyArray, t: Array) -> Array:
    return t + jax.random.normal(key, t.shape, t.dtype)


@jax.jit
def _bernoulli(key: PRNGKeyArray, t: Array, p: Array) -> Array:
    return jax.random.bernoulli(key, jax.nn.sigmoid(t + jnp.log(p) - jnp.log1p(-p))).astype(t.dtype)


@jax.jit
def _poisson(key: PRNGKeyArray, t: Array, rate: Array) -> Array:
    # JAX draws these with a single generator; a key of another generator may seed it.
    if str(jax.random.key_impl(key)) != "threefry2x32":
        key = jax.random.wrap_key_data(jax.random.bits(key, (2,), "uint32"), impl="threefry2x32")
    return jax.random.poisson(key, rate * jnp.exp(t)).astype(t.dtype)


@jax.jit
def _exponential(key: PRNGKeyArray, t: Array, rate: Array) -> Array:
    return jax.random.exponential(key, t.shape, t.dtype) / jnp.where(t < rate, rate - t, jnp.nan)


@jax.jit
def _laplace(key: PRNGKeyArray, t: Array, scale: Array) -> Array:
    key_sign, key_size = jax.random.split(key)
    sign = jnp.where(jax.random.uniform(key_sign, t.shape, t.dtype) < (1 + scale * t) / 2, 1, -1).astype(t.dtype)
    rate = jnp.where(jnp.abs(t) * scale < 1, 1 / scale - sign * t, jnp.nan)
    return sign * jax.random.exponential(key_size, t.shape, t.dtype) / rate


def _made(prior: HiddenPrior, value: Any, draw: Callable[[PRNGKeyArray, Array, Array], Array]) -> Sampler:
    checked = prior.checked(value)

    def sampler(key: PRNGKeyArray, t: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
        key = validate.key(key)
        return draw(key, *prior.arguments(t, checked, "the hidden unit cannot be normalised"))

    return sampler


def gaussian(key: PRNGKeyArray, t: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
    """h ~ N(t, 1): the standard normal prior, shifted.

    >>> import jax
    >>> gaussian(jax.random.key(0), [0.0, 100.0]).shape
    (2,)
    """
    key = validate.key(key)
    t = validate.finite(t, "t")
    return _gaussian(key, t)


def bernoulli(probability: Float[ArrayLike, "*units"] = 0.5) -> Sampler:
    """P(h = 1) = p e^t / (1 - p + p e^t), the logistic function of t + log(p / (1 - p)).

    >>> import jax
    >>> bernoulli(0.5)(jax.random.key(0), [-1000.0, 1000.0]).tolist()
    [0.0, 1.0]
    """
    return _made(priors.BERNOULLI, probability, _bernoulli)


def poisson(rate: Float[ArrayLike, "*units"] = 1.0) -> Sampler:
    """h ~ Poisson(rate e^t).

    >>> import jax
    >>> poisson(1.0)(jax.random.key(0), [-1000.0]).tolist()
    [0.0]
    """
    return _made(priors.POISSON, rate, _poisson)


def exponential(rate: Float[ArrayLike, "*units"] = 1.0) -> Sampler:
    """h ~ Exponential(rate - t), t < rate.

    >>> import jax
    >>> exponential(1.0)(jax.random.key(0), [0.0, 0.5]).shape
    (2,)
    """
    return _made(priors.EXPONENTIAL, rate, _exponential)


def laplace(scale: Float[ArrayLike, "*units"] = 1.0) -> Sampler:
    """Density of h proportional to e^{-|h| / scale + t h}, |t| < 1 / scale.

    Exponential of rate 1 / scale - t above 0 and 1 / scale + t below; positive with probability (1 + scale t) / 2.

    >>> import jax
    >>> laplace(1.0)(jax.random.key(0), [0.0, 0.5]).shape
    (2,)
    """
    return _made(priors.LAPLACE, scale, _laplace)


def constant(value: Float[ArrayLike, "*units"] = 1.0) -> Sampler:
    """h = value: a frozen unit, whatever t is.

    >>> import jax
    >>> constant(2.0)(jax.random.key(0), [0.0, 5.0]).tolist()
    [2.0, 2.0]
    """
    return _made(priors.CONSTANT, value, lambda key, t, value: jnp.broadcast_to(value, t.shape))
