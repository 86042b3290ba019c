"""Transformer modules made of vector spins: inputs are fields, attention is the couplings, outputs are magnetizations.

A module takes (sites, dim) to (sites, dim): its inputs, scaled to the radius of the spins' sphere, act as fields x_i on
the spins and choose their couplings J_ij by softmax; its outputs are the steady magnetizations m_i of the spins, found
as a fixed point and differentiated implicitly, or reached by a number of steps. Batches take ``jax.vmap``. Nothing here
trains, normalises outputs or adds parameters to those of the couplings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from spinbook import fixed_point, sphere, validate
from spinbook.annotations import ArrayLike, Bool, Float
from spinbook.fixed_point import Adjoint, FixedPoint
from spinbook.sphere import Response, squared_length
from spinbook.vector import fluctuations
from spinbook.vector.fluctuations import COMPONENTS, Rule, received, tap_field
from spinbook.vector.heads import by_heads, from_heads

__all__ = [
    "Relax",
    "SpinTransformer",
    "SpinTransformerModule",
    "Spins",
    "Unroll",
    "naive",
    "one_sphere",
    "sphere_per_head",
    "tap",
]


class Spins(NamedTuple):
    """Spins on one sphere for each site, by heads: ``inputs`` (heads, N, d), ``couplings`` (heads, N, M).

    ``sources`` (heads, M, d) are the fields of the spins that the couplings read, or None where these are the spins
    themselves. Without couplings among themselves, spins of a context answer to their own fields alone.
    """

    inputs: Float[Array, "H N d"]
    couplings: Float[Array, "H N M"]
    sources: Float[Array, "H M d"] | None
    response: Response
    beta: Array


def naive(fields: Float[Array, "H N d"], spins: Spins) -> Float[Array, "H N d"]:
    """theta_i = x_i + sum_j J_ij phi(theta_j): residual and attention, the first order in the couplings.

    Fields (heads, N, d) in, fields out; a theory to pass to a module. Source: Bal (2023), label naivemvector, at t = t
    - 1.

    >>> one = jnp.ones((1, 2, 4))
    >>> naive(one, Spins(one, jnp.zeros((1, 2, 2)), None, sphere.large_d, jnp.ones(()))).shape
    (1, 2, 4)
    """
    sources = fields if spins.sources is None else spins.sources
    m = spins.response(sources, spins.beta, axes=COMPONENTS)
    return spins.inputs + received(spins.couplings, m)


def tap(
    fields: Float[Array, "H N d"], spins: Spins, *, covariances: Rule = fluctuations.of_senders
) -> Float[Array, "H N d"]:
    """theta_i = x_i + sum_j J_ij phi(theta_j) + (1/2) (beta Var_i)^-1 d^2 m_i / da^2: with the second order.

    Fields (heads, N, d) in, fields out; a theory to pass to a module. All heads of a site are one vector, so that the
    last term joins them. ``covariances`` says whose fluctuations count: the gradient that the source prints holds the
    wrong index, ``fluctuations.of_receivers``, in its fourth digit; bind it with ``functools.partial``.
    Source: Bal (2023), label ftheta, at t = t - 1, with the index of gamma corrected.

    >>> one = jnp.ones((1, 2, 4))
    >>> tap(one, Spins(one, jnp.zeros((1, 2, 2)), None, sphere.large_d, jnp.ones(()))).shape
    (1, 2, 4)
    """
    dim = fields.shape[0] * fields.shape[2]
    gains = spins.response.gains(fields, spins.beta, axes=COMPONENTS)
    sources, source_gains = fields, gains
    if spins.sources is not None:
        sources, source_gains = spins.sources, spins.response.gains(spins.sources, spins.beta, axes=COMPONENTS)
    m = source_gains.f[:, None] * sources
    before = covariances(source_gains, squared_length(m, COMPONENTS), dim, spins.beta)
    drive = spins.inputs + received(spins.couplings, m)
    return tap_field(fields, gains, drive, m, before, spins.couplings)


Theory = Callable[[Array, Spins], Array]


def one_sphere(num_heads: int) -> int:
    """1: a site is one spin of ``dim`` components, and each head couples a slice of them.

    >>> one_sphere(8)
    1
    """
    return 1


def sphere_per_head(num_heads: int) -> int:
    """``num_heads``: a site is as many spins of ``dim / num_heads`` components, which know nothing of each other.

    >>> sphere_per_head(8)
    8
    """
    return num_heads


@dataclass(frozen=True)
class Relax:
    """Solve for the steady state, to a change of the fields of ``tol`` in an update; NaN comes out where that fails.

    ``tol`` is by default eps^0.7, 1.4e-5 in float32; ``max_steps`` bounds the updates and those of the gradient's
    linear system; ``history`` is the memory of the acceleration, see ``fixed_point.solve``. Gradients are implicit:
    they do not depend on how the state was found, and cost about as much as finding it.

    >>> Relax().max_steps
    100
    """

    tol: float | None = None
    max_steps: int = 100
    history: int = 1

    def __call__(self, update: Callable[[Array], Array], start: Array) -> FixedPoint:
        tol = float(jnp.finfo(start.dtype).eps) ** 0.7 if self.tol is None else self.tol
        adjoint = Adjoint(self.history, self.max_steps)
        return fixed_point.solve(
            update, start, tol=tol, max_steps=self.max_steps, history=self.history, adjoint=adjoint
        )

    def output(self, value: Array, converged: Array) -> Array:
        return jnp.where(converged, value, jnp.nan)


@dataclass(frozen=True)
class Unroll:
    """Make ``num_steps`` updates, whether or not they converge; gradients go through every one of them.

    One naive update from the inputs is a plain block: residual, attention, normalisation.

    >>> Unroll(2).num_steps
    2
    """

    num_steps: int

    def __post_init__(self) -> None:
        validate.count(self.num_steps, "num_steps", minimum=1)

    def __call__(self, update: Callable[[Array], Array], start: Array) -> FixedPoint:
        def advance(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            new = update(state[0])
            return (new, jnp.max(jnp.abs(new - state[0]))), None

        # A start that is a constant of the compiled function can give NaN, see ``fixed_point``; this one is an input.
        state = (start, jnp.full((), jnp.inf, start.dtype))
        (value, residual), _ = jax.lax.scan(advance, state, length=self.num_steps)
        return FixedPoint(value, residual, jnp.asarray(self.num_steps, jnp.int32), jnp.asarray(False))

    def output(self, value: Array, converged: Array) -> Array:
        return value


@partial(jax.jit, static_argnames=("theory", "response", "dynamics"))
def _settle(
    inputs: Float[Array, "S H N d"],
    couplings: Float[Array, "S H N M"],
    context: Float[Array, "S H M d"] | None,
    beta: Array,
    theory: Theory,
    response: Response,
    dynamics: Relax | Unroll,
) -> FixedPoint:
    """The magnetizations (spheres, heads, sites, d), with evidence of the fields that they answer to."""

    def update(fields: Array) -> Array:
        def sphere_by_sphere(f: Array, x: Array, J: Array, c: Array | None) -> Array:
            return theory(f, Spins(x, J, c, response, beta))

        return jax.vmap(sphere_by_sphere)(fields, inputs, couplings, context)

    solution = dynamics(update, inputs)
    return solution._replace(value=jax.vmap(lambda f: response(f, beta, axes=COMPONENTS))(solution.value))


class SpinTransformerModule(eqx.Module):
    """m = phi(x + J(x) m + second order): the steady magnetizations of spins in fields x with softmax couplings.

    Inputs (sites, ``dim``) are scaled to the radius of the sphere and act as fields; they are also mapped to queries
    and keys by one bias-free linear map drawn from ``key``, the only parameters, and J^h_ij = softmax_j(q^h_i . k^h_j)
    with softmax temperature 1. With ``num_heads`` heads each J^h couples a slice of the components. Two readings are
    offered as ``spheres``: ``one_sphere`` (default), one spin of ``dim`` components for each site, so that heads share
    one norm and the second order joins them; ``sphere_per_head``, as many independent smaller models, which is what
    the source's code runs. With one head they are the same, and with the defaults the source's arithmetic.

    ``theory`` is ``tap`` or ``naive``, ``response`` the mean of a spin in its field, ``dynamics`` ``Relax()`` for the
    steady state or ``Unroll(k)`` for k updates. ``dtype`` is that of the weights, by default JAX's. ``beta`` may be a
    JAX array, and is then trained like any parameter.

    Calls take ``x`` (N, D), a boolean ``mask`` (N, N), True = may attend, and ``context`` (M, D), whose spins answer to
    their own fields and are attended to in the place of x; the mask is (N, M) then. A row of the mask without True
    leaves its site alone with its field. A site whose row and column are without True is padding: nothing else depends
    on it, and it may be zero, with zero as its result. The result (N, D) has the dtype of the weights; with weights of
    half precision everything between is float32. Batches take ``jax.vmap``. Cost of an update: 2 N^2 D for the naive
    theory, 6 N^2 D for TAP.

    Raises ``ValueError`` for a ``dim`` that heads do not divide, two components or fewer for a head, beta <= 0, shapes
    that do not fit, NaN, inputs of length zero but for padding (NaN comes out where values are hidden), and masks that
    are not booleans.
    Source: Bal (2023), section "A simple JAX implementation", labels softmaxcouplings and crosssoftmaxcouplings.

    >>> module = SpinTransformerModule(8, 2, key=jax.random.key(0))
    >>> x = jax.random.normal(jax.random.key(1), (5, 8))
    >>> module(x).shape, module(x, context=jnp.ones((3, 8))).shape, module.couplings(x).shape
    ((5, 8), (5, 8), (2, 5, 5))
    """

    to_queries_keys: eqx.nn.Linear
    beta: float | Array
    dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    theory: Theory = eqx.field(static=True)
    response: Response = eqx.field(static=True)
    spheres: Callable[[int], int] = eqx.field(static=True)
    dynamics: Relax | Unroll = eqx.field(static=True)

    def __init__(
        self,
        dim: int,
        num_heads: int = 1,
        *,
        beta: float | Array = 1.0,
        key: PRNGKeyArray,
        theory: Theory = tap,
        response: Response = sphere.large_d,
        spheres: Callable[[int], int] = one_sphere,
        dynamics: Relax | Unroll = Relax(),
        dtype: Any = None,
    ) -> None:
        key = validate.key(key)
        self.dim = validate.count(dim, "dim", minimum=1)
        self.num_heads = validate.count(num_heads, "num_heads", minimum=1)
        if self.dim % self.num_heads:
            raise ValueError(f"num_heads: expected a divisor of dim, {self.dim}, got {self.num_heads}")
        if self.dim // self.num_heads <= 2:
            raise ValueError(
                f"num_heads: expected more than 2 components for each head, got {self.dim // self.num_heads}"
            )
        validate.positive(beta, "beta", ndim=0)
        # A masked array without masked entries passes every check, and no function of JAX.
        given: Any = beta
        self.beta = jnp.asarray(np.asarray(given)) if np.ma.isMaskedArray(given) else beta
        self.theory, self.response, self.spheres, self.dynamics = theory, response, spheres, dynamics
        self.to_queries_keys = eqx.nn.Linear(self.dim, 2 * self.dim, use_bias=False, dtype=dtype, key=key)

    @property
    def _precision(self) -> Any:
        """The dtype of all arithmetic: that of the weights, but for half precision, in which nothing can be solved."""
        return np.promote_types(self.to_queries_keys.weight.dtype, np.float32)

    def _scaled(self, a: Array, name: str, padding: Array | None) -> Array:
        """Inputs by spheres and heads, (spheres, heads, sites, d), scaled to the radius; padding may be zero."""
        spheres = self.spheres(self.num_heads)
        parts = a.reshape(len(a), spheres, self.dim // spheres)
        parts = sphere.balanced(parts)
        if padding is None:
            lengths = jnp.linalg.norm(parts, axis=-1, keepdims=True)
            validate.require(lambda n: n > 0, lengths[..., 0], name, "vectors that are not zero")
        else:
            empty = jnp.all(parts == 0, axis=-1, keepdims=True)
            refused = empty & ~padding[:, None, None]
            # A length of zero has no derivative, and the NaN would reach every parameter.
            lengths = jnp.linalg.norm(jnp.where(empty, 1, parts), axis=-1, keepdims=True)
            lengths = jnp.where(refused, 0, lengths)
            expected = "vectors that are not zero, but for padding, which the mask keeps apart both ways"
            validate.require(lambda n: n > 0, lengths[..., 0], name, expected)
            # Nor has the direction of zero: padding stays where it is.
            parts = jnp.where(empty, 0, parts)
        scaled = sphere.radius(self.dim // spheres) * parts / lengths
        heads = by_heads(scaled.reshape(len(a), self.dim), self.num_heads)
        return heads.reshape(spheres, -1, *heads.shape[1:])

    def _inputs(self, x: Any, mask: Any, context: Any) -> tuple[Array, Array | None, Array | None]:
        """Inputs and context scaled, and the mask."""
        a = validate.matrix(x, "x", columns=self.dim, dtype=self._precision)
        if context is None:
            allowed = self._mask(mask, (len(a), len(a)))
            # A site of one layer is the same site of the next: nothing may come in or go out.
            apart = None if allowed is None else ~(jnp.any(allowed, axis=0) | jnp.any(allowed, axis=1))
            return self._scaled(a, "x", apart), None, allowed
        c = validate.matrix(context, "context", columns=self.dim, dtype=self._precision)
        allowed = self._mask(mask, (len(a), len(c)))
        silent, unheard = (None, None) if allowed is None else (~jnp.any(allowed, axis=k) for k in (1, 0))
        return self._scaled(a, "x", silent), self._scaled(c, "context", unheard), allowed

    def _rows(self, a: Array) -> Array:
        return from_heads(a.reshape(self.num_heads, *a.shape[2:]))

    def _projected(self, a: Array, weight: Array) -> Array:
        return by_heads(self._rows(a) @ weight.T.astype(a.dtype), self.num_heads).reshape(a.shape)

    def _mask(self, mask: Any, shape: tuple[int, int]) -> Array | None:
        if mask is None:
            return None
        allowed = jnp.asarray(mask)
        if allowed.dtype != bool or allowed.shape != shape:
            raise ValueError(f"mask: expected booleans of shape {shape}, got {allowed.dtype} of shape {allowed.shape}")
        return allowed

    def _couplings(self, x: Array, context: Array, mask: Array | None) -> Array:
        queries = self._projected(x, self.to_queries_keys.weight[: self.dim])
        keys = self._projected(context, self.to_queries_keys.weight[self.dim :])
        logits = queries @ jnp.swapaxes(keys, -1, -2)
        if mask is None:
            return jax.nn.softmax(logits, axis=-1)
        J = jax.nn.softmax(jnp.where(mask, logits, jnp.finfo(logits.dtype).min), axis=-1)
        return jnp.where(mask, J, 0)

    def couplings(
        self,
        x: Float[ArrayLike, "N D"],
        mask: Bool[ArrayLike, "N M"] | None = None,
        context: Float[ArrayLike, "M D"] | None = None,
    ) -> Float[Array, "H N M"]:
        """J^h_ij = softmax_j(q^h_i . k^h_j), (heads, sites, sites or context sites); 0 where the mask is False."""
        a, c, allowed = self._inputs(x, mask, context)
        J = self._couplings(a, a if c is None else c, allowed)
        return J.reshape(self.num_heads, *J.shape[2:]).astype(self.to_queries_keys.weight.dtype)

    def _settle(self, x: Any, mask: Any, context: Any) -> FixedPoint:
        a, c, allowed = self._inputs(x, mask, context)
        J = self._couplings(a, a if c is None else c, allowed)
        solution = _settle(a, J, c, jnp.asarray(self.beta, a.dtype), self.theory, self.response, self.dynamics)
        return solution._replace(value=self._rows(solution.value).astype(self.to_queries_keys.weight.dtype))

    def __call__(
        self,
        x: Float[ArrayLike, "N D"],
        mask: Bool[ArrayLike, "N M"] | None = None,
        context: Float[ArrayLike, "M D"] | None = None,
    ) -> Float[Array, "N D"]:
        """The magnetizations (sites, dim)."""
        solution = self._settle(x, mask, context)
        return self.dynamics.output(solution.value, solution.converged)

    def steady_state(
        self,
        x: Float[ArrayLike, "N D"],
        mask: Bool[ArrayLike, "N M"] | None = None,
        context: Float[ArrayLike, "M D"] | None = None,
    ) -> FixedPoint:
        """The magnetizations and the evidence that an update leaves them alone.

        ``residual`` is the largest change of a component of the fields in another update, ``converged`` whether it was
        within the tolerance of ``dynamics``, never for ``Unroll``. A component of the magnetizations changes by at most
        beta / 2 times as much.
        """
        return self._settle(x, mask, context)


class SpinTransformer(eqx.Module):
    """``depth`` modules in a row, with couplings of their own: the magnetizations of one are the fields of the next.

    Arguments as for ``SpinTransformerModule``; the mask and the context are those of every module. Compiled once
    whatever the depth. ``steady_state`` says of every module whether it converged.
    Source: Bal (2023), section "A simple JAX implementation".

    >>> stack = SpinTransformer(3, 8, 2, key=jax.random.key(0))
    >>> stack(jax.random.normal(jax.random.key(1), (5, 8))).shape
    (5, 8)
    """

    modules: SpinTransformerModule
    depth: int = eqx.field(static=True)

    def __init__(
        self,
        depth: int,
        dim: int,
        num_heads: int = 1,
        *,
        beta: float | Array = 1.0,
        key: PRNGKeyArray,
        theory: Theory = tap,
        response: Response = sphere.large_d,
        spheres: Callable[[int], int] = one_sphere,
        dynamics: Relax | Unroll = Relax(),
        dtype: Any = None,
    ) -> None:
        key = validate.key(key)
        self.depth = validate.count(depth, "depth", minimum=1)

        def module(key: PRNGKeyArray) -> SpinTransformerModule:
            return SpinTransformerModule(
                dim,
                num_heads,
                beta=beta,
                key=key,
                theory=theory,
                response=response,
                spheres=spheres,
                dynamics=dynamics,
                dtype=dtype,
            )

        self.modules = eqx.filter_vmap(module)(jax.random.split(key, self.depth))

    def __call__(
        self,
        x: Float[ArrayLike, "N D"],
        mask: Bool[ArrayLike, "N M"] | None = None,
        context: Float[ArrayLike, "M D"] | None = None,
    ) -> Float[Array, "N D"]:
        """The magnetizations of the last module (sites, dim); NaN if ``Relax`` finds no steady state of a module."""

        def layer(x: Array, module: SpinTransformerModule) -> tuple[Array, None]:
            return module(x, mask, context), None

        return self._scan(layer, x, mask, context)[0]

    def steady_state(
        self,
        x: Float[ArrayLike, "N D"],
        mask: Bool[ArrayLike, "N M"] | None = None,
        context: Float[ArrayLike, "M D"] | None = None,
    ) -> FixedPoint:
        """The magnetizations of every module (depth, sites, dim), and the evidence of each (depth,).

        Each entry as in the ``steady_state`` of a module. A module that does not converge passes on the best state that
        it met, so that the evidence of those after it is their own: ``jnp.argmin(found.converged)`` is the first that
        failed, where not all converged, and from where on a call of a stack that is to ``Relax`` is NaN.

        >>> stack = SpinTransformer(3, 8, 2, key=jax.random.key(0))
        >>> stack.steady_state(jax.random.normal(jax.random.key(1), (5, 8))).converged.tolist()
        [True, True, True]
        """

        def layer(x: Array, module: SpinTransformerModule) -> tuple[Array, FixedPoint]:
            found = module.steady_state(x, mask, context)
            return found.value, found

        return self._scan(layer, x, mask, context)[1]

    def _scan(
        self, layer: Callable[[Array, SpinTransformerModule], tuple[Array, Any]], x: Any, mask: Any, context: Any
    ) -> tuple[Array, Any]:
        arrays, rest = eqx.partition(self.modules, eqx.is_array)
        # Within the loop values are hidden, and nothing would be refused.
        self.modules._inputs(x, mask, context)
        start = validate.matrix(x, "x", columns=self.modules.dim, dtype=self.modules.to_queries_keys.weight.dtype)
        return jax.lax.scan(lambda x, arrays: layer(x, eqx.combine(arrays, rest)), start, arrays)
