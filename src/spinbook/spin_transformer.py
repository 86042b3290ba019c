"""Transformer modules made of vector spins: inputs are fields, attention is the couplings, outputs are magnetizations.

A module takes (sites, dim) to (sites, dim): its inputs, scaled to the radius of the spins' sphere, act as fields x_i on
the spins and choose their couplings J_ij by softmax; its outputs are the steady magnetizations m_i of the spins, found
as a fixed point and differentiated implicitly, or reached by a number of steps. Batches take ``jax.vmap``. Outputs are
not normalised.
"""

from __future__ import annotations

import copy
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
from spinbook.entropy_production import mean_field
from spinbook.fixed_point import FixedPoint
from spinbook.sphere import Response, squared_length
from spinbook.vector import fluctuations
from spinbook.vector.fluctuations import COMPONENTS, Rule, received, tap_field
from spinbook.vector.heads import by_heads, from_heads

__all__ = [
    "AtFields",
    "AtRest",
    "Learned",
    "Readout",
    "Relax",
    "Rotary",
    "SpinTransformer",
    "SpinTransformerModule",
    "Spins",
    "Unroll",
    "as_directions",
    "as_fields",
    "as_magnetizations",
    "naive",
    "one_sphere",
    "sphere_per_head",
    "spread",
    "tap",
    "unit_length",
]

Sites = Float[ArrayLike, "N D"]
Mask = Bool[ArrayLike, "N M"] | None
Context = Float[ArrayLike, "M D"] | None


class Spins(NamedTuple):
    """Spins on one sphere for each site, by heads: ``inputs`` (heads, N, d), ``couplings`` (heads, N, M).

    ``sources`` (heads, M, d) are the fields of the spins that the couplings read, or None where these are the spins
    themselves. Spins of a context have no couplings among each other, so each depends on its own field alone.
    """

    inputs: Float[Array, "H N d"]
    couplings: Float[Array, "H N M"]
    sources: Float[Array, "H M d"] | None
    response: Response
    beta: Array


def naive(fields: Float[Array, "H N d"], spins: Spins) -> Float[Array, "H N d"]:
    """theta_i = x_i + sum_j J_ij phi(theta_j): residual and attention, the first order in the couplings.

    Fields (heads, N, d) in, fields out; a theory to pass to a module. Takes its arguments without checks. Source: Bal
    (2023), label naivemvector, with equal means at t and t - 1.

    >>> one = jnp.ones((1, 2, 4))
    >>> naive(one, Spins(one, jnp.zeros((1, 2, 2)), None, sphere.large_d, jnp.ones(()))).shape
    (1, 2, 4)
    """
    sources = fields if spins.sources is None else spins.sources
    m = spins.response(sources, spins.beta, axes=COMPONENTS)
    return spins.inputs + received(spins.couplings, m)


def spread(fields: Float[Array, "H N d"], spins: Spins) -> Float[Array, "H N d"]:
    """theta_i with phi(theta_i) = f(|h_i|^2 + sum_j J_ij^2 (R^2 - |m_j|^2)) h_i, h_i = x_i + sum_j J_ij m_j.

    ``naive`` with one more line, which counts that the neighbours fluctuate, see ``spinbook.vector.mean_field``'s
    ``spread_step``; m_j = phi(theta_j), so that theta_i is the field of a free spin with the same mean. Fields (heads,
    N, d) in, fields out; a theory to pass to a module. Takes its arguments without checks.

    >>> one = jnp.ones((1, 2, 4))
    >>> spread(one, Spins(one, jnp.zeros((1, 2, 2)), None, sphere.large_d, jnp.ones(()))).shape
    (1, 2, 4)
    """
    response, beta = spins.response, spins.beta
    m = response(fields if spins.sources is None else spins.sources, beta, axes=COMPONENTS)
    h = spins.inputs + received(spins.couplings, m)
    squared = squared_length(h, COMPONENTS) + fluctuations.spread(m, spins.couplings)
    new = response.gain(squared, h.shape[0] * h.shape[2], beta)[None, :, None] * h
    return response.inverse(new, beta, axes=COMPONENTS)


def tap(
    fields: Float[Array, "H N d"], spins: Spins, *, covariances: Rule = fluctuations.of_senders
) -> Float[Array, "H N d"]:
    """theta_i = x_i + sum_j J_ij phi(theta_j) + (1/2) (beta Var_i)^-1 d^2 m_i / da^2: with the second order.

    Fields (heads, N, d) in, fields out; a theory to pass to a module. All heads of a site are one vector, so that the
    last term joins them. ``covariances`` says whose fluctuations count: the gradient that the source prints holds the
    wrong index, ``fluctuations.of_receivers``, in its fourth digit; bind it with ``functools.partial``. Takes its
    arguments without checks. Source: Bal (2023), label ftheta, with equal means at t and t - 1, the index of gamma
    corrected.

    >>> one = jnp.ones((1, 2, 4))
    >>> tap(one, Spins(one, jnp.zeros((1, 2, 2)), None, sphere.large_d, jnp.ones(()))).shape
    (1, 2, 4)
    """
    dim = fields.shape[0] * fields.shape[2]
    gains = spins.response.gains(fields, spins.beta, axes=COMPONENTS)
    sources, source_gains = fields, gains
    if spins.sources is not None:
        sources, source_gains = spins.sources, spins.response.gains(spins.sources, spins.beta, axes=COMPONENTS)
    m = source_gains.f[None, :, None] * sources
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
    """``num_heads``: a site is as many independent spins of ``dim / num_heads`` components.

    >>> sphere_per_head(8)
    8
    """
    return num_heads


def as_directions(x: Array, directions: Array, response: Response, beta: Array) -> Array:
    """x_i = R a_i / |a_i|: of the input a only the direction counts, as in the source of 2023.

    A way in which inputs act, to pass to a module: arrays are (spheres, heads, N, d), the inputs as given (``x``) and
    scaled to the radius (``directions``). Couplings, feed-forward field and a learned start always use ``directions``.
    Takes its arguments without checks.
    """
    return directions


def as_fields(x: Array, directions: Array, response: Response, beta: Array) -> Array:
    """x_i = a_i: the length of a field says how hard it pins its spin. Arguments as for ``as_directions``."""
    return x


def as_magnetizations(x: Array, directions: Array, response: Response, beta: Array) -> Array:
    """phi(x_i) = a_i: the field conjugate to the magnetization of the layer below, which alone would give it back.

    NaN for magnetizations on or beyond the sphere. Arguments as for ``as_directions``.
    """

    def of_sphere(m: Array) -> Array:
        squares = jnp.expand_dims(squared_length(m, COMPONENTS), COMPONENTS)
        m = jnp.where(squares < sphere.squared_radius(m.shape[0] * m.shape[2]), m, jnp.nan)
        return response.inverse(m, beta, axes=COMPONENTS)

    return jax.vmap(of_sphere)(x)


Inputs = Callable[[Array, Array, Response, Array], Array]


class _Start(eqx.Module):
    """The effective fields before the first update, of the fields x_i and the directions of the inputs."""

    def __init__(self, dim: int, *, key: PRNGKeyArray, dtype: Any = None) -> None:
        pass


class AtFields(_Start):
    """theta_i(0) = x_i: the spins start in their fields, without neighbours."""

    def __call__(self, fields: Float[Array, "N D"], directions: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return fields


class AtRest(_Start):
    """theta_i(0) = 0: the spins start without magnetization, so that the first naive update sees no neighbours."""

    def __call__(self, fields: Float[Array, "N D"], directions: Float[Array, "N D"]) -> Float[Array, "N D"]:
        # Not a constant of the compiled function, which can give NaN, see ``fixed_point``.
        return 0 * fields


class Learned(_Start):
    """theta_i(0) = W a_i, for inputs a_i scaled to the radius: values, as fields.

    ``weight`` is (dim, dim), without bias. The first naive update attends to their means phi(W a_j): K = 1 is a
    parallel transformer block. A steady state forgets where it started, and then ``weight`` gets no gradient.

    >>> Learned(4, key=jax.random.key(0)).weight.shape
    (4, 4)
    """

    weight: Array

    def __init__(self, dim: int, *, key: PRNGKeyArray, dtype: Any = None) -> None:
        self.weight = eqx.nn.Linear(dim, dim, use_bias=False, dtype=dtype, key=key).weight

    def __call__(self, fields: Float[Array, "N D"], directions: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return directions @ self.weight.T


Start = AtFields | AtRest | Learned


class _FeedForward(eqx.Module):
    """W_2 gelu(W_1 a), without biases."""

    up: Array
    down: Array

    def __init__(self, dim: int, hidden_dim: int, *, key: PRNGKeyArray, dtype: Any) -> None:
        first, second = jax.random.split(key)
        self.up = eqx.nn.Linear(dim, hidden_dim, use_bias=False, dtype=dtype, key=first).weight
        self.down = eqx.nn.Linear(hidden_dim, dim, use_bias=False, dtype=dtype, key=second).weight

    def __call__(self, directions: Float[Array, "N D"]) -> Float[Array, "N D"]:
        hidden = jax.nn.gelu(directions @ self.up.T, approximate=False)
        return hidden @ self.down.T


def unit_length(a: Float[Array, "*batch N d"]) -> Float[Array, "*batch N d"]:
    """a / |a|, with 0 for 0: of queries and keys the logits are then cosines. A map to pass to a module.

    Takes its arguments without checks.

    >>> unit_length(jnp.array([[3.0, 4.0], [0.0, 0.0]])).round(3).tolist()
    [[0.6..., 0.8...], [0.0, 0.0]]
    """
    a = sphere.balanced(a)
    squares = jnp.sum(a * a, axis=-1, keepdims=True)
    # The root has no derivative at zero, and its NaN would reach every parameter.
    return a * jax.lax.rsqrt(jnp.where(squares > 0, squares, 1))


@dataclass(frozen=True)
class Rotary:
    """Turns the components (2k, 2k + 1) of site n by the angle n base^(-2k / d): a map of queries and keys.

    Their product then depends on positions only through the distance of two sites, so that a window may move along its
    stream. Sites are counted from 0, those of a context too.

    Source: Su et al. (2021), RoFormer, equation 34.

    >>> Rotary()(jnp.ones((2, 4))).round(3).tolist()
    [[1.0, 1.0, 1.0, 1.0], [-0.30..., 1.38..., 0.99..., 1.01...]]
    """

    base: float = 10_000.0

    def __call__(self, a: Float[Array, "*batch N d"]) -> Float[Array, "*batch N d"]:
        sites, dim = a.shape[-2:]
        # In double precision, whatever the dtype: the angle of a late site has few digits in single.
        angles = np.arange(sites)[:, None] * self.base ** -(np.arange(0, dim, 2) / dim)
        cos, sin = (jnp.asarray(f(angles), a.dtype) for f in (np.cos, np.sin))
        even, odd = a[..., 0::2], a[..., 1::2]
        return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(a.shape)


class Readout(NamedTuple):
    """The result of a call of a module, its state, and its irreversibility.

    ``magnetizations`` (N, D); ``state`` (N, D), the effective fields at the end, to start the next call from, whose
    means are the magnetizations; and the evidence ``residual`` and ``converged`` as in
    ``SpinTransformerModule.steady_state``. ``entropy_production`` (spheres,) in nats is the frozen-drive
    irreversibility of the last update, sigma = (beta^2 / 2) sum_ij (J_ij - J_ji)^2 T_ij, see
    ``spinbook.entropy_production.mean_field.vector_mean_field``: a proxy along a transient, and in a steady state the
    entropy production of naive mean field under constant inputs.
    """

    magnetizations: Float[Array, "N D"]
    state: Float[Array, "N D"]
    entropy_production: Float[Array, " S"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@dataclass(frozen=True)
class Relax:
    """Solve for the steady state, until an update changes the fields by at most ``tol``; NaN where that fails.

    ``tol`` is by default eps^0.7, 1.4e-5 in float32. Gradients are implicit: they do not depend on how the state was
    found, and cost about as much as finding it.

    >>> Relax().max_steps
    100
    """

    tol: float | None = None
    max_steps: int = 100

    def __call__(self, update: Callable[[Array], Array], start: Array) -> tuple[Array, FixedPoint]:
        """The state at rest twice, as the one before the last update and the last, with the evidence."""
        tol = float(jnp.finfo(start.dtype).eps) ** 0.7 if self.tol is None else self.tol
        found = fixed_point.solve(update, start, tol=tol, max_steps=self.max_steps, history=1)
        return found.value, found

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

    def __call__(self, update: Callable[[Array], Array], start: Array) -> tuple[Array, FixedPoint]:
        """The state before the last update, and the last with its evidence."""

        def advance(states: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            return (states[1], update(states[1])), None

        (before, value), _ = jax.lax.scan(advance, (start, start), length=self.num_steps)
        residual = jnp.max(jnp.abs(value - before))
        return before, FixedPoint(value, residual, jnp.asarray(self.num_steps, jnp.int32), jnp.asarray(False))

    def output(self, value: Array, converged: Array) -> Array:
        return value


class _Problem(NamedTuple):
    """Inputs, couplings and options of a call, by spheres and heads; ``context``: the fields of the context's spins."""

    fields: Float[Array, "S H N d"]
    start: Float[Array, "S H N d"]
    couplings: Float[Array, "S H N M"]
    context: Float[Array, "S H M d"] | None
    beta: Array


def _update(problem: _Problem, theory: Theory, response: Response) -> Callable[[Array], Array]:
    def of_sphere(fields: Array, x: Array, J: Array, context: Array | None) -> Array:
        return theory(fields, Spins(x, J, context, response, problem.beta))

    others = problem.fields, problem.couplings, problem.context

    def update(fields: Array) -> Array:
        if len(fields) > 1:
            return jax.vmap(of_sphere)(fields, *others)
        # A single sphere is faster without ``vmap``, with the same bits.
        return of_sphere(fields[0], *jax.tree.map(lambda array: array[0], others))[None]

    return update


def _means(fields: Array, response: Response, beta: Array) -> Array:
    return jax.vmap(lambda f: response(f, beta, axes=COMPONENTS))(fields)


def _joined(fields: Array) -> Float[Array, "S N E"]:
    return jax.vmap(from_heads)(fields)


@partial(jax.jit, static_argnames="response")
def _irreversibility(problem: _Problem, now: Array, before: Array, response: Response) -> Float[Array, " S"]:
    """The proxy between two times."""

    def of_sphere(J: Array, theta: Array, old: Array) -> Array:
        return mean_field.vector_mean_field(J, theta, old, beta=problem.beta, response=response)

    return jax.vmap(of_sphere)(problem.couplings, _joined(now), _joined(before))


@partial(jax.jit, static_argnames=("theory", "response", "dynamics"))
def _settle(
    problem: _Problem, theory: Theory, response: Response, dynamics: Relax | Unroll
) -> tuple[Array, Array, FixedPoint]:
    """The magnetizations (spheres, heads, sites, d), the fields before the last update, and the last with evidence."""
    before, solution = dynamics(_update(problem, theory, response), problem.start)
    return _means(solution.value, response, problem.beta), before, solution


class _Sites(NamedTuple):
    """Inputs as rows (N, D), and scaled to the radius by spheres and heads."""

    rows: Array
    directions: Float[Array, "S H N d"]


class SpinTransformerModule(eqx.Module):
    """m = phi(x + J(x) m + second order): the steady magnetizations of spins in fields x with softmax couplings.

    Inputs (sites, ``dim``) are scaled to the radius of the sphere and act as fields; they are also mapped to queries
    and keys by one bias-free linear map drawn from ``key``, the only parameters, and J^h_ij = softmax_j(q^h_i . k^h_j)
    with softmax temperature 1. With ``num_heads`` heads each J^h couples a slice of the components. ``beta`` may be a
    JAX array, and is then trained like any parameter. The defaults are the source's arithmetic.

    ``theory``: ``tap``, ``spread`` or ``naive``; ``response``: the mean of a spin in its field. For the averages of
    sampled spins take ``theory=spread`` and ``response=sphere.exact``, as ``spinbook.spread_attention`` in PyTorch.
    ``spheres``: with ``one_sphere`` a site is one spin, so that heads share one norm and the second order joins them;
    with ``sphere_per_head`` one independent smaller model for each head, as in the source's code.
    ``dynamics``: ``Relax()`` for the steady state or ``Unroll(k)`` for k updates. ``inputs``: ``as_directions``, so
    that m(10 x) = m(x), ``as_fields`` or ``as_magnetizations``. ``start``: ``AtFields``, ``AtRest`` or ``Learned``, the
    effective fields before the first update. ``feed_forward``: hidden units of
    W_2 gelu(W_1 a), which is added to the fields. ``query_key_maps``: functions (heads, N, d) to the same, applied to
    queries and to keys in order, as ``(unit_length, Rotary())``. ``sharpness``: a factor of all logits; as a JAX array
    it is trained. ``dtype``: of the weights and all arithmetic, single or double precision, by default JAX's.

    Calls take ``x`` (N, D), a boolean ``mask`` (N, N), True = may attend, and ``context`` (M, D): then sites attend to
    the spins of the context, each in its own field, and not to x, and the mask is (N, M). A site whose row of the mask
    is all False responds to its own field alone. A site whose row and column are False is padding: no other site
    depends on it, its input may be zero, and its result is then zero. Batches take ``jax.vmap``. Cost of an update:
    2 N^2 D for the naive theory, 6 N^2 D for TAP.

    Raises ``ValueError`` for a ``dim`` that heads do not divide, two components or fewer for a head, beta <= 0,
    sharpness <= 0, shapes that do not fit, NaN, inputs of length zero outside of padding, and masks that are not
    booleans. Where values are hidden, as in a batch under ``jax.vmap``, the outputs are NaN instead.
    Source: Bal (2023), section "A simple JAX implementation", labels softmaxcouplings and crosssoftmaxcouplings; the
    further options: Bal (2026), "Nonequilibrium Dynamics in Spin-Model Transformers", for several spins of a site and
    the naive theory.

    >>> module = SpinTransformerModule(8, 2, key=jax.random.key(0))
    >>> x = jax.random.normal(jax.random.key(1), (5, 8))
    >>> module(x).shape, module(x, context=jnp.ones((3, 8))).shape, module.couplings(x).shape
    ((5, 8), (5, 8), (2, 5, 5))
    """

    to_queries_keys: eqx.nn.Linear
    beta: float | Array
    sharpness: float | Array
    start: Start
    memory: _FeedForward | None
    dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    theory: Theory = eqx.field(static=True)
    response: Response = eqx.field(static=True)
    spheres: Callable[[int], int] = eqx.field(static=True)
    dynamics: Relax | Unroll = eqx.field(static=True)
    inputs: Inputs = eqx.field(static=True)
    query_key_maps: tuple[Callable[[Array], Array], ...] = eqx.field(static=True)

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
        inputs: Inputs = as_directions,
        start: type[Start] = AtFields,
        feed_forward: int | None = None,
        query_key_maps: tuple[Callable[[Array], Array], ...] = (),
        sharpness: float | Array = 1.0,
        dtype: Any = None,
    ) -> None:
        self.dim = validate.count(dim, "dim", minimum=1)
        self.num_heads = validate.count(num_heads, "num_heads", minimum=1)
        if self.dim % self.num_heads:
            raise ValueError(f"num_heads: expected a divisor of dim, {self.dim}, got {self.num_heads}")
        if self.dim // self.num_heads <= 2:
            raise ValueError(
                f"num_heads: expected more than 2 components for each head, got {self.dim // self.num_heads}"
            )
        validate.positive(beta, "beta", "")
        validate.positive(sharpness, "sharpness", "")
        self.beta, self.sharpness = beta, sharpness
        self.theory, self.response, self.spheres, self.dynamics = theory, response, spheres, dynamics
        self.inputs, self.query_key_maps = inputs, tuple(query_key_maps)
        self.to_queries_keys = eqx.nn.Linear(self.dim, 2 * self.dim, use_bias=False, dtype=dtype, key=key)
        # Couplings are drawn from the key itself, whatever the other options are.
        start_key, memory_key = (jax.random.fold_in(key, part) for part in (1, 2))
        self.start = start(self.dim, key=start_key, dtype=dtype)
        self.memory = None
        if feed_forward is not None:
            self.memory = _FeedForward(self.dim, feed_forward, key=memory_key, dtype=dtype)

    def under(self, dynamics: Relax | Unroll) -> SpinTransformerModule:
        """The same parameters with other ``dynamics``: train with one number of updates, evaluate with another.

        >>> module = SpinTransformerModule(8, key=jax.random.key(0))
        >>> module.under(Unroll(1)).dynamics
        Unroll(num_steps=1)
        """
        other = copy.copy(self)
        object.__setattr__(other, "dynamics", dynamics)
        return other

    def _by_spheres(self, rows: Array) -> Float[Array, "S H N d"]:
        heads = by_heads(rows, self.num_heads)
        return heads.reshape(self.spheres(self.num_heads), -1, *heads.shape[1:])

    def _sites(self, rows: Array, name: str, padding: Array) -> _Sites:
        """Rows, and the rows scaled to the radius by spheres and heads; of padding zero stays zero."""
        spheres = self.spheres(self.num_heads)
        parts = rows.reshape(len(rows), spheres, -1)
        parts = sphere.balanced(parts)
        empty = jnp.all(parts == 0, axis=-1, keepdims=True)
        known = ~empty | padding[:, None, None]
        expected = "vectors that are not zero, but for padding, which the mask keeps apart both ways"
        validate.require(lambda known: known, known[..., 0], name, expected)
        # Neither length nor direction of zero has a derivative, and the NaN would reach every parameter.
        lengths = jnp.linalg.norm(jnp.where(empty, 1, parts), axis=-1, keepdims=True)
        scaled = jnp.where(empty, 0, sphere.radius(self.dim // spheres) * parts / lengths)
        scaled = jnp.where(known, scaled, jnp.nan)
        return _Sites(rows, self._by_spheres(scaled.reshape(rows.shape)))

    def _checked(self, x: Any, mask: Any, context: Any) -> tuple[_Sites, _Sites | None, Array | None]:
        """Inputs and context as they came and scaled, and the mask."""
        dtype = self.to_queries_keys.weight.dtype
        a = validate.finite(x, "x", f"N {self.dim}", dtype=dtype)
        c = a if context is None else validate.finite(context, "context", f"M {self.dim}", dtype=dtype)
        allowed = None if mask is None else jnp.asarray(mask)
        silent, unheard = jnp.zeros(len(a), bool), jnp.zeros(len(c), bool)
        if allowed is not None:
            shape = len(a), len(c)
            if allowed.dtype != bool or allowed.shape != shape:
                raise ValueError(
                    f"mask: expected booleans of shape {shape}, got {allowed.dtype} of shape {allowed.shape}"
                )
            silent, unheard = (~jnp.any(allowed, axis=axis) for axis in (1, 0))
        if context is None:
            # A site is the same site in the next layer: padding may neither receive nor send.
            return self._sites(a, "x", silent & unheard), None, allowed
        return self._sites(a, "x", silent), self._sites(c, "context", unheard), allowed

    def _rows(self, a: Array) -> Array:
        return from_heads(a.reshape(self.num_heads, *a.shape[2:]))

    def _fields(self, sites: _Sites) -> Array:
        beta = jnp.asarray(self.beta, sites.rows.dtype)
        own = self.inputs(self._by_spheres(sites.rows), sites.directions, self.response, beta)
        if self.memory is None:
            return own
        return own + self._by_spheres(self.memory(self._rows(sites.directions)))

    def _problem(self, x: Any, mask: Any, context: Any, state: Sites | None) -> _Problem:
        sites, senders, allowed = self._checked(x, mask, context)
        fields = self._fields(sites)
        if state is None:
            start = self._by_spheres(self.start(self._rows(fields), self._rows(sites.directions)))
        else:
            axes = f"{len(sites.rows)} {self.dim}"
            start = self._by_spheres(validate.finite(state, "state", axes, dtype=sites.rows.dtype))
        J = self._couplings(sites.directions, (sites if senders is None else senders).directions, allowed)
        others = None if senders is None else self._fields(senders)
        return _Problem(fields, start, J, others, jnp.asarray(self.beta, fields.dtype))

    def _projected(self, a: Array, weight: Array) -> Array:
        heads = by_heads(self._rows(a) @ weight.T, self.num_heads)
        for turned in self.query_key_maps:
            heads = turned(heads)
        return heads.reshape(a.shape)

    def _couplings(self, x: Array, context: Array, mask: Array | None) -> Array:
        queries = self._projected(x, self.to_queries_keys.weight[: self.dim])
        keys = self._projected(context, self.to_queries_keys.weight[self.dim :])
        logits = jnp.asarray(self.sharpness, x.dtype) * queries @ jnp.swapaxes(keys, -1, -2)
        if mask is None:
            return jax.nn.softmax(logits, axis=-1)
        J = jax.nn.softmax(jnp.where(mask, logits, jnp.finfo(logits.dtype).min), axis=-1)
        return jnp.where(mask, J, 0)

    def couplings(self, x: Sites, mask: Mask = None, context: Context = None) -> Float[Array, "H N M"]:
        """J^h_ij = softmax_j(q^h_i . k^h_j), (heads, sites, sites or context sites); 0 where the mask is False."""
        sites, senders, allowed = self._checked(x, mask, context)
        J = self._couplings(sites.directions, (sites if senders is None else senders).directions, allowed)
        return J.reshape(self.num_heads, *J.shape[2:])

    def fields(self, x: Sites, mask: Mask = None) -> Float[Array, "N D"]:
        """The fields x_i (N, D) that act on the spins, those of the inputs and of the feed-forward network."""
        return self._rows(self._fields(self._checked(x, mask, None)[0]))

    def __call__(
        self, x: Sites, mask: Mask = None, context: Context = None, *, state: Sites | None = None
    ) -> Float[Array, "N D"]:
        """The magnetizations (sites, dim), from ``state`` on, that of a ``readout``."""
        found = self.steady_state(x, mask, context, state=state)
        return self.dynamics.output(found.value, found.converged)

    def steady_state(
        self, x: Sites, mask: Mask = None, context: Context = None, *, state: Sites | None = None
    ) -> FixedPoint:
        """The magnetizations and the evidence that an update leaves them alone.

        ``residual`` is the largest change of a component of the fields in another update, ``converged`` whether it was
        within the tolerance of ``dynamics``, never for ``Unroll``. A component of the magnetizations changes by at most
        beta / 2 times as much.
        """
        problem = self._problem(x, mask, context, state)
        m, _, solution = _settle(problem, self.theory, self.response, self.dynamics)
        return solution._replace(value=self._rows(m))

    def readout(self, x: Sites, mask: Mask = None, *, state: Sites | None = None) -> Readout:
        """A call with its state, to carry on from, and the irreversibility of its last update at frozen drive.

        With ``dynamics`` = ``Unroll(k)`` that is between the updates k - 1 and k; the programs of the source measure it
        one update later, from the fields that the outputs make. With TAP sigma is still of first order in the
        couplings, at the fields of TAP.

        >>> module = SpinTransformerModule(8, 2, key=jax.random.key(0), dynamics=Unroll(1), start=AtRest)
        >>> x = jax.random.normal(jax.random.key(1), (5, 8))
        >>> first = module.readout(x)
        >>> second = module.readout(x, state=first.state)
        >>> second.entropy_production.shape, jnp.allclose(second.magnetizations, module.under(Unroll(2))(x)).item()
        ((1,), True)
        """
        problem = self._problem(x, mask, None, state)
        m, before, solution = _settle(problem, self.theory, self.response, self.dynamics)
        sigma = _irreversibility(problem, solution.value, before, self.response)
        return Readout(self._rows(m), self._rows(solution.value), sigma, solution.residual, solution.converged)


class SpinTransformer(eqx.Module):
    """``depth`` modules in a row, with couplings of their own: the magnetizations of one are the fields of the next.

    Arguments, and all further ``options``, are those of ``SpinTransformerModule``; the mask and the context are those
    of every module. Compiled once whatever the depth. With ``inputs=as_magnetizations`` the outputs of one module pass
    to the next as means; at the bottom of the stack pass the means of the fields, ``response(fields, beta)``.
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
        **options: Any,
    ) -> None:
        self.depth = validate.count(depth, "depth", minimum=1)

        def module(key: PRNGKeyArray) -> SpinTransformerModule:
            return SpinTransformerModule(dim, num_heads, beta=beta, key=key, **options)

        self.modules = eqx.filter_vmap(module)(jax.random.split(key, self.depth))

    def under(self, dynamics: Relax | Unroll) -> SpinTransformer:
        """The same parameters with other ``dynamics``, as ``SpinTransformerModule.under``."""
        return eqx.tree_at(lambda stack: stack.modules, self, self.modules.under(dynamics))

    def __call__(self, x: Sites, mask: Mask = None, context: Context = None) -> Float[Array, "N D"]:
        """The magnetizations of the last module (sites, dim); NaN if ``Relax`` finds no steady state of a module."""
        found = self.steady_state(x, mask, context)
        return self.modules.dynamics.output(found.value[-1], jnp.all(found.converged))

    def steady_state(self, x: Sites, mask: Mask = None, context: Context = None) -> FixedPoint:
        """The magnetizations of every module (depth, sites, dim), and the evidence of each (depth,).

        Each entry as in the ``steady_state`` of a module. A module that does not converge passes on its best state, so
        that the evidence of the modules after it is their own. If not all converged, ``jnp.argmin(found.converged)`` is
        the first that failed.

        >>> stack = SpinTransformer(3, 8, 2, key=jax.random.key(0))
        >>> stack.steady_state(jax.random.normal(jax.random.key(1), (5, 8))).converged.tolist()
        [True, True, True]
        """
        # Within the loop values are hidden and could not be checked.
        sites, senders, allowed = self.modules._checked(x, mask, context)
        found: FixedPoint = _in_a_row(self.modules, sites.rows, allowed, None if senders is None else senders.rows)
        return found


@eqx.filter_jit
def _in_a_row(modules: SpinTransformerModule, x: Array, mask: Array | None, context: Array | None) -> FixedPoint:
    arrays, rest = eqx.partition(modules, eqx.is_array)

    def advance(x: Array, arrays: SpinTransformerModule) -> tuple[Array, FixedPoint]:
        found = eqx.combine(arrays, rest).steady_state(x, mask, context)
        return found.value, found

    found: FixedPoint = jax.lax.scan(advance, x, arrays)[1]
    return found
