"""Cumulants kappa_n of the hidden priors and the power series of K(t) that they make.

They show where the cumulant series converges and where it does not; to compute K use the closed forms of
``cumulant_generating_functions``. Each function takes the order first, then the parameters of the prior, and returns
kappa_1, ..., kappa_order along the first axis (parameters that are arrays give further axes).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import validate
from spinbook.annotations import ArrayLike, Float

__all__ = [
    "bernoulli",
    "constant",
    "exponential",
    "gaussian",
    "laplace",
    "poisson",
    "series",
]


def _order(order: Any) -> int:
    # 170! is the largest factorial that a float64 holds; float32 gives infinity from order 36 on.
    return validate.count(order, "order", minimum=1, maximum=170)


def _growing(base: Array, order: int) -> Array:
    """(n - 1)! base^n for n = 1, ..., order, along a new first axis."""
    ratios = np.maximum(np.arange(order), 1).reshape(-1, *[1] * base.ndim)
    return jnp.cumprod(jnp.asarray(ratios, base.dtype) * base[None], axis=0)


def _only(order: int, n: int) -> np.ndarray:
    """1 at entry n, counted from one, of a sequence of zeros."""
    return (np.arange(1, order + 1) == n).astype(float)


def gaussian(order: int) -> Float[Array, " order"]:
    """kappa_2 = 1, all others 0: the standard normal.

    Source: Bal (2020), section 2, classical discrete Hopfield networks.

    >>> gaussian(4).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    return jnp.asarray(_only(_order(order), 2))


@jax.jit
def _bernoulli(p: Array, signed: Array) -> Array:
    n, k = np.indices(signed.shape)
    powers = jnp.arange(signed.shape[0] + 1).astype(p.dtype).reshape(-1, *[1] * p.ndim)
    terms = (p[None] ** powers)[k + 1] * ((1 - p)[None] ** powers)[np.maximum(n - k, 0)]
    return jnp.einsum("nk,nk...->n...", signed, terms)


def bernoulli(order: int, probability: Float[ArrayLike, "*units"] = 0.5) -> Float[Array, "order ..."]:
    """kappa_1 = p, kappa_{n+1} = p (1 - p) d kappa_n / dp: p, pq, pq (1 - 2p), pq (1 - 6pq), ... with q = 1 - p.

    The recursion is solved by kappa_{n+1} = sum_k (-1)^k A(n, k) p^{k+1} q^{n-k} with the Eulerian numbers A(n, k),
    because p is the logistic function of its own log odds. The alternating sum loses a factor (R/2)^n of the relative
    accuracy, R being the radius of convergence: in float64 about 1e-12 at n = 20 and 1e-8 at n = 40 for p = 0.3.

    >>> [round(float(k), 4) for k in bernoulli(4, 0.3)]
    [0.3, 0.21, 0.084, -0.0546]
    """
    p = validate.probability(probability, "probability")
    order = _order(order)
    signed = np.zeros((order, order))
    signed[0, 0] = 1
    eulerian = [1]
    for n in range(1, order):
        signed[n, :n] = [(-1) ** k * A for k, A in enumerate(eulerian)]
        padded = [0, *eulerian, 0]
        eulerian = [(k + 1) * padded[k + 1] + (n + 1 - k) * padded[k] for k in range(n + 1)]
    return _bernoulli(p, jnp.asarray(signed, p.dtype))


def poisson(order: int, rate: Float[ArrayLike, "*units"] = 1.0) -> Float[Array, "order ..."]:
    """kappa_n = rate for every n.

    Source: Bal (2020), section 2, modern discrete Hopfield networks.

    >>> poisson(3, rate=2.0).tolist()
    [2.0, 2.0, 2.0]
    """
    lam = validate.positive(rate, "rate")
    return jnp.broadcast_to(lam, (_order(order), *lam.shape))


def exponential(order: int, rate: Float[ArrayLike, "*units"] = 1.0) -> Float[Array, "order ..."]:
    """kappa_n = (n - 1)! / rate^n.

    >>> exponential(4).tolist()
    [1.0, 1.0, 2.0, 6.0]
    """
    return _growing(1 / validate.positive(rate, "rate"), _order(order))


def laplace(order: int, scale: Float[ArrayLike, "*units"] = 1.0) -> Float[Array, "order ..."]:
    """kappa_n = 2 (n - 1)! scale^n for even n, 0 for odd n.

    The distribution is symmetric, so that the growth like (n - 1)! quoted in the source holds for even n only.

    >>> laplace(4).tolist()
    [0.0, 2.0, 0.0, 12.0]
    """
    kappas = _growing(validate.positive(scale, "scale"), _order(order))
    return kappas.at[0::2].set(0).at[1::2].multiply(2)


def constant(order: int, value: Float[ArrayLike, "*units"] = 1.0) -> Float[Array, "order ..."]:
    """kappa_1 = value, all others 0: a hidden unit frozen at ``value``.

    Source: Bal (2020), section 2, modern Hopfield networks as mixtures.

    >>> constant(3, value=2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    c = validate.finite(value, "value")
    return jnp.multiply.outer(jnp.asarray(_only(_order(order), 1), c.dtype), c)


@jax.jit
def _series(t: Array, kappas: Array) -> Array:
    # Horner's scheme with the factorial spread over the steps: n! alone would overflow long before the sum does.
    def add(total: Array, term: tuple[Array, Array]) -> tuple[Array, None]:
        n, kappa = term
        return t / n * (jnp.broadcast_to(kappa, t.shape) + total), None

    t = jnp.broadcast_to(t, np.broadcast_shapes(t.shape, kappas.shape[1:]))
    start = jnp.zeros_like(t)
    orders = jnp.arange(1, kappas.shape[0] + 1).astype(t.dtype)
    return jax.lax.scan(add, start, (orders, kappas), reverse=True)[0]


def series(t: Float[ArrayLike, "*shape"], kappas: Float[ArrayLike, "order ..."]) -> Float[Array, "*shape"]:
    """sum_{n=1}^{order} kappa_n t^n / n!, the partial sum of K(t) over the cumulants given.

    ``kappas`` has the order along its first axis; further axes broadcast against ``t``. The sum approaches K(t) only
    for |t| below the radius of convergence of the prior (``convergence_radius``); beyond it, more terms make it worse.
    Source: Bal (2020), section 2, the cumulant generating function.

    >>> kappas = bernoulli(12, 0.3)
    >>> round(float(series(2.0, kappas)), 3), round(float(series(4.0, kappas)), 2)  # K is 1.071 and 2.838
    (1.071, 3.97)
    """
    dtype = validate.common_dtype(t, kappas)
    t = validate.finite(t, "t", dtype=dtype)
    k = validate.finite(kappas, "kappas", dtype=dtype)
    if k.ndim == 0 or k.shape[0] == 0:
        raise ValueError(f"kappas: expected at least one cumulant along the first axis, got shape {k.shape}")
    return _series(t, k)
