"""Transformer modules made of vector spins: inputs are fields, attention is the couplings, outputs are magnetizations.

A module takes (sites, dim) to (sites, dim): its inputs, scaled to the radius of the spins' sphere, act as fields x_i on
the spins and choose their couplings J_ij by softmax; its outputs are the steady magnetizations m_i of the spins, found
as a fixed point and differentiated implicitly, or reached by a number of steps. Batches take ``jax.vmap``. Outputs are
not normalised.

Options say how inputs act (``Inputs``), where the spins start (``AtFields``, ``AtRest``, ``Learned``, or the ``State``
of an earlier call), what is done to queries and keys (``unit_length``, ``Rotary``), and whether a feed-forward network
adds to the fields. Without options the only parameters are those of the couplings.
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
from spinbook.entropy_production import mean_field, relaxation
from spinbook.fixed_point import Adjoint, FixedPoint
from spinbook.sphere import Response, squared_length
from spinbook.vector import fluctuations
from spinbook.vector.fluctuations import COMPONENTS, Rule, received, tap_field
from spinbook.vector.heads import by_heads, from_heads

__all__ = [
    "AtFields",
    "AtRest",
    "Inputs",
    "Learned",
    "Path",
    "Readout",
    "Relax",
    "Rotary",
    "SpinTransformer",
    "SpinTransformerModule",
    "Spins",
    "State",
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

    Fields (heads, N, d) in, fields out; a theory to pass to a module. Source: Bal (2023), label naivemvector, at t = t
    - 1.

    Takes its arguments without checks; its callers have checked them.

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
    ``spread_step``; m_j = phi(theta_j). Fields (heads, N, d) in, fields out; a theory to pass to a module. theta_i is
    the field of a free spin with the same mean.

    Takes its arguments without checks; its callers have checked them.

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
    wrong index, ``fluctuations.of_receivers``, in its fourth digit; bind it with ``functools.partial``.
    Source: Bal (2023), label ftheta, at t = t - 1, with the index of gamma corrected.

    Takes its arguments without checks; its callers have checked them.

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


@dataclass(frozen=True)
class Inputs:
    """How an input of a module acts on its spins: ``field(x, direction, response, beta)`` is the field x_i.

    Arrays are (spheres, heads, N, d): the inputs as given (``x``), and scaled to the radius (``direction``). Couplings,
    feed-forward field and a learned start always use the scaled inputs. ``check(x, name, beta)`` raises ``ValueError``
    for rows of a sphere that cannot be such an input. There are three: ``as_directions``, ``as_fields`` and
    ``as_magnetizations``.

    >>> as_fields
    as_fields
    """

    name: str
    field: Callable[[Array, Array, Response, Array], Array]
    check: Callable[[Array, str, Array], None]

    def __repr__(self) -> str:
        return self.name


def _nothing_to_check(rows: Array, name: str, beta: Array) -> None:
    return


# With names, which pickle needs.
def _direction(x: Array, direction: Array, response: Response, beta: Array) -> Array:
    return direction


def _field(x: Array, direction: Array, response: Response, beta: Array) -> Array:
    return x


def _conjugate(x: Array, direction: Array, response: Response, beta: Array) -> Array:
    def of_sphere(m: Array) -> Array:
        squares = jnp.expand_dims(squared_length(m, COMPONENTS), COMPONENTS)
        # Hidden values cannot be checked, and no field has a mean on the sphere or beyond.
        inside = squares < sphere.squared_radius(m.shape[0] * m.shape[2])
        return jnp.where(inside, response.inverse(jnp.where(inside, m, 0), beta, axes=COMPONENTS), jnp.nan)

    return jax.vmap(of_sphere)(x)


def _check_magnetizations(rows: Array, name: str, beta: Array) -> None:
    sphere.inside_ball(rows, name)


# x_i = R a_i / |a_i|: of the input a only the direction counts, as in the source of 2023.
as_directions = Inputs("as_directions", _direction, _nothing_to_check)
# x_i = a_i: the length of a field says how hard it pins its spin.
as_fields = Inputs("as_fields", _field, sphere.in_range)
# phi(x_i) = a_i: the field conjugate to the magnetization of the layer below, which alone would give it back.
as_magnetizations = Inputs("as_magnetizations", _conjugate, _check_magnetizations)


class AtFields(eqx.Module):
    """theta_i(0) = x_i: the spins start in their fields, without neighbours."""

    def __init__(self, dim: int, *, key: PRNGKeyArray, dtype: Any = None) -> None:
        pass

    def __call__(self, fields: Float[Array, "N D"], directions: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return fields


class AtRest(eqx.Module):
    """theta_i(0) = 0: the spins start without magnetization, so that the first naive update sees no neighbours.

    Raises as the module does.
    """

    def __init__(self, dim: int, *, key: PRNGKeyArray, dtype: Any = None) -> None:
        pass

    def __call__(self, fields: Float[Array, "N D"], directions: Float[Array, "N D"]) -> Float[Array, "N D"]:
        # Not a constant of the compiled function, which can give NaN, see ``fixed_point``.
        return 0 * fields


class Learned(eqx.Module):
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
        return directions @ self.weight.T.astype(directions.dtype)


class _FeedForward(eqx.Module):
    """W_2 gelu(W_1 a), without biases."""

    up: Array
    down: Array

    def __init__(self, dim: int, hidden_dim: int, *, key: PRNGKeyArray, dtype: Any) -> None:
        first, second = jax.random.split(key)
        self.up = eqx.nn.Linear(dim, hidden_dim, use_bias=False, dtype=dtype, key=first).weight
        self.down = eqx.nn.Linear(hidden_dim, dim, use_bias=False, dtype=dtype, key=second).weight

    def __call__(self, directions: Float[Array, "N D"]) -> Float[Array, "N D"]:
        hidden = jax.nn.gelu(directions @ self.up.T.astype(directions.dtype), approximate=False)
        return hidden @ self.down.T.astype(directions.dtype)


def unit_length(a: Float[Array, "*batch N d"]) -> Float[Array, "*batch N d"]:
    """a / |a|, with 0 for 0: of queries and keys the logits are then cosines. A map to pass to a module.

    Takes its arguments without checks; its callers have checked them.

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

    Raises ``ValueError`` for base <= 0, and, when a module is made, for an odd number of components of a head.
    Source: Su et al. (2021), RoFormer, equation 34.

    >>> Rotary()(jnp.ones((2, 4))).round(3).tolist()
    [[1.0, 1.0, 1.0, 1.0], [-0.30..., 1.38..., 0.99..., 1.01...]]
    """

    base: float = 10_000.0

    def __post_init__(self) -> None:
        # Fixed when the module is made, and so never traced.
        base = validate.known_numbers(self.base, "base")
        validate.positive(base, "base", ndim=0)
        object.__setattr__(self, "base", base.item())

    def __call__(self, a: Float[Array, "*batch N d"]) -> Float[Array, "*batch N d"]:
        sites, dim = a.shape[-2:]
        if dim % 2:
            raise ValueError(f"query_key_maps: expected an even number of components of a head to turn, got {dim}")
        # In double precision, whatever the dtype: the angle of a late site has few digits in single.
        angles = np.arange(sites)[:, None] * self.base ** -(np.arange(0, dim, 2) / dim)
        cos, sin = (jnp.asarray(f(angles), a.dtype) for f in (np.cos, np.sin))
        even, odd = a[..., 0::2], a[..., 1::2]
        return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(a.shape)


class State(NamedTuple):
    """The effective fields (N, D), or (depth, N, D) of a stack, at the end of a call, to start the next call from.

    The means of spins in these fields are the magnetizations; a spin at rest has field zero.
    """

    effective_fields: Float[Array, "*depth N D"]

    def shifted(self, drop: int = 1, add: int = 1) -> State:
        """Without the first ``drop`` sites, and with ``add`` new sites at rest at the end, as for a moving window.

        Raises ``ValueError`` for negative numbers and for more sites to drop than there are.

        >>> State(jnp.ones((3, 4))).shifted(drop=2, add=1).effective_fields.shape
        (2, 4)
        """
        theta = validate.finite(self.effective_fields, "effective_fields")
        if theta.ndim < 2:
            raise ValueError(f"effective_fields: expected shape (..., N, D), got {theta.shape}")
        drop = validate.count(drop, "drop", maximum=theta.shape[-2])
        widths = [(0, 0)] * (theta.ndim - 2) + [(0, validate.count(add, "add")), (0, 0)]
        return State(jnp.pad(theta[..., drop:, :], widths))


class Readout(NamedTuple):
    """The result of a call of a module, its state, and its irreversibility.

    ``magnetizations`` (N, D), the ``state`` for the next call, and the evidence ``residual`` and ``converged`` as in
    ``SpinTransformerModule.steady_state``. ``entropy_production`` (spheres,) in nats is the frozen-drive
    irreversibility of the last update, sigma = (beta^2 / 2) sum_ij (J_ij - J_ji)^2 T_ij, see
    ``spinbook.entropy_production.mean_field.vector_mean_field``: a proxy along a transient, and in a steady state the
    entropy production of naive mean field under constant inputs. For a stack the depth is the first axis of each.
    """

    magnetizations: Float[Array, "*depth N D"]
    state: State
    entropy_production: Float[Array, "*depth S"]
    residual: Float[Array, "*depth"]
    converged: Bool[Array, "*depth"]


class Path(NamedTuple):
    """Updates t = 1, ..., T of a module under constant inputs, for example after a change of the inputs.

    ``magnetizations`` (T, N, D); ``mismatch`` (T, S): the divergence of the independent spins of that time from those
    of the steady state, in nats, for each sphere of a site; ``entropy_production`` (T, S): the proxy between t - 1 and
    t; ``residual`` (T,): the largest change of a component of the effective fields. ``steady`` is the steady state that
    was solved for from the end of the path, with its evidence; where it did not converge the mismatch is meaningless.
    """

    magnetizations: Float[Array, "T N D"]
    mismatch: Float[Array, "T S"]
    entropy_production: Float[Array, "T S"]
    residual: Float[Array, " T"]
    steady: FixedPoint


@dataclass(frozen=True)
class Relax:
    """Solve for the steady state, until an update changes the fields by at most ``tol``; NaN where that fails.

    ``tol`` is by default eps^0.7, 1.4e-5 in float32; ``max_steps`` bounds the updates and those of the gradient's
    linear system; ``history`` is the memory of the acceleration, see ``fixed_point.solve``. Gradients are implicit:
    they do not depend on how the state was found, and cost about as much as finding it.

    >>> Relax().max_steps
    100
    """

    tol: float | None = None
    max_steps: int = 100
    history: int = 1

    def __post_init__(self) -> None:
        if self.tol is not None:
            validate.number(self.tol, "tol", above=0)
        validate.count(self.max_steps, "max_steps", minimum=1)
        validate.count(self.history, "history")

    def __call__(self, update: Callable[[Array], Array], start: Array) -> FixedPoint:
        tol = float(jnp.finfo(start.dtype).eps) ** 0.7 if self.tol is None else self.tol
        adjoint = Adjoint(self.history, self.max_steps)
        return fixed_point.solve(
            update, start, tol=tol, max_steps=self.max_steps, history=self.history, adjoint=adjoint
        )

    def last_two(self, update: Callable[[Array], Array], start: Array) -> tuple[Array, FixedPoint]:
        """The state before the last, which is the same, and the last with its evidence."""
        found = self(update, start)
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

    def __post_init__(self) -> None:
        validate.count(self.num_steps, "num_steps", minimum=1)

    def __call__(self, update: Callable[[Array], Array], start: Array) -> FixedPoint:
        return self.last_two(update, start)[1]

    def last_two(self, update: Callable[[Array], Array], start: Array) -> tuple[Array, FixedPoint]:
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
    def update(fields: Array) -> Array:
        def of_sphere(f: Array, x: Array, J: Array, c: Array | None) -> Array:
            return theory(f, Spins(x, J, c, response, problem.beta))

        return _sphere_by_sphere(of_sphere)(fields, problem.fields, problem.couplings, problem.context)

    return update


def _sphere_by_sphere(of_sphere: Callable[..., Array]) -> Callable[..., Array]:
    """Map over the first axis. Without ``vmap`` for a single sphere, which is faster and gives the same bits."""

    def of_all(fields: Array, *others: Array | None) -> Array:
        if len(fields) > 1:
            return jax.vmap(of_sphere)(fields, *others)
        return of_sphere(fields[0], *(None if array is None else array[0] for array in others))[None]

    return of_all


def _means(fields: Array, response: Response, beta: Array) -> Array:
    return jax.vmap(lambda f: response(f, beta, axes=COMPONENTS))(fields)


def _joined(fields: Array) -> Float[Array, "S N E"]:
    return jax.vmap(from_heads)(fields)


def _irreversibility(problem: _Problem, now: Array, before: Array, response: Response) -> Float[Array, " S"]:
    """The proxy between two times; spins of a context are driven and receive no field from others."""
    J = problem.couplings
    if problem.context is not None:
        now, before = (jnp.concatenate([theta, problem.context], axis=2) for theta in (now, before))
        sites, senders = J.shape[-2:]
        J = jnp.pad(J, ((0, 0), (0, 0), (0, senders), (sites, 0)))

    def of_sphere(J: Array, theta: Array, old: Array) -> Array:
        return mean_field.driven_production(J, theta, old, problem.beta, response)

    return jax.vmap(of_sphere)(J, _joined(now), _joined(before))


@partial(jax.jit, static_argnames=("theory", "response", "dynamics"))
def _settle(problem: _Problem, theory: Theory, response: Response, dynamics: Relax | Unroll) -> FixedPoint:
    """The magnetizations (spheres, heads, sites, d), with the evidence of their effective fields."""
    solution = dynamics(_update(problem, theory, response), problem.start)
    return solution._replace(value=_means(solution.value, response, problem.beta))


@partial(jax.jit, static_argnames=("theory", "response", "dynamics"))
def _read(
    problem: _Problem, theory: Theory, response: Response, dynamics: Relax | Unroll
) -> tuple[Array, FixedPoint, Array]:
    """The magnetizations, the effective fields with their evidence, and the irreversibility of the last update."""
    before, solution = dynamics.last_two(_update(problem, theory, response), problem.start)
    sigma = _irreversibility(problem, solution.value, before, response)
    return _means(solution.value, response, problem.beta), solution, sigma


@partial(jax.jit, static_argnames=("theory", "response", "dynamics", "steps"))
def _follow(problem: _Problem, theory: Theory, response: Response, dynamics: Relax, steps: int) -> Any:
    update = _update(problem, theory, response)

    def advance(theta: Array, _: None) -> tuple[Array, tuple[Array, Array, Array]]:
        new = update(theta)
        return new, (new, jnp.max(jnp.abs(new - theta)), _irreversibility(problem, new, theta, response))

    last, (thetas, residual, sigma) = jax.lax.scan(advance, problem.start, length=steps)
    steady = dynamics(update, last)
    final = _joined(steady.value)
    mismatch = jnp.sum(relaxation.divergence(jax.vmap(_joined)(thetas), final, beta=problem.beta), axis=-1)
    means = jax.vmap(lambda theta: _means(theta, response, problem.beta))(thetas)
    return means, mismatch, sigma, residual, steady._replace(value=_means(steady.value, response, problem.beta))


def _number(value: Any, name: str) -> Any:
    checked = validate.positive(value, name, ndim=0)
    # A masked array without masked entries, and other formats of numbers, pass every check but no function of JAX.
    return checked if isinstance(value, np.ndarray) else value


class _Sites(NamedTuple):
    """Inputs as rows (N, D), and scaled to the radius by spheres and heads."""

    rows: Array
    directions: Float[Array, "S H N d"]


Start = AtFields | AtRest | Learned


class SpinTransformerModule(eqx.Module):
    """m = phi(x + J(x) m + second order): the steady magnetizations of spins in fields x with softmax couplings.

    Inputs (sites, ``dim``) are scaled to the radius of the sphere and act as fields; they are also mapped to queries
    and keys by one bias-free linear map drawn from ``key``, the only parameters, and J^h_ij = softmax_j(q^h_i . k^h_j)
    with softmax temperature 1. With ``num_heads`` heads each J^h couples a slice of the components. ``spheres`` says
    what a site is: with ``one_sphere`` (default) one spin of ``dim`` components, so that heads share one norm and the
    second order joins them; with ``sphere_per_head`` one independent smaller model for each head, as in the source's
    code. With one head both are the same, and with the defaults the source's arithmetic.

    ``theory`` is ``tap``, ``spread`` or ``naive``, and ``response`` the mean of a spin in its field. The defaults are
    the source's; for the averages of sampled spins take ``theory=spread`` and ``response=sphere.exact``, which is
    ``spinbook.spread_attention`` in PyTorch. ``dynamics`` is ``Relax()`` for the steady state or ``Unroll(k)`` for k
    updates. ``dtype`` is that of the weights, by default JAX's. ``beta`` may be a JAX array, and is then trained like
    any parameter.

    Further options can be combined. ``inputs``: ``as_directions`` (default), inputs scaled to the radius, so that their
    length does not matter and m(10 x) = m(x); ``as_fields``, fields of any length; ``as_magnetizations``, the means of
    the layer below, whose conjugate fields act. Couplings, start and feed-forward network use directions in each case.
    ``start``: ``AtFields`` (default), ``AtRest`` or ``Learned``, the effective fields before the first update if no
    ``state`` is given.
    ``feed_forward``: hidden units of W_2 gelu(W_1 a), which is added to the fields; no network by default.
    ``query_key_maps``: functions (heads, N, d) to the same, applied to queries and to keys in order, as
    ``(unit_length, Rotary())``. ``sharpness``: a factor of all logits, the inverse temperature of attention; as a JAX
    array it is trained.

    Calls take ``x`` (N, D), a boolean ``mask`` (N, N), True = may attend, and ``context`` (M, D): then sites attend to
    the spins of the context, each in its own field, and not to x, and the mask is (N, M). A site whose row of the mask
    is all False responds to its own field alone. A site whose row and column are False is padding: no other site
    depends on it, its input may be zero, and its result is then zero. ``state`` is the state of an earlier call, see
    ``readout``. The result (N, D) has the dtype of the weights; for weights in half precision the computation is in
    float32. Batches take ``jax.vmap``. Cost of an update: 2 N^2 D for the naive theory, 6 N^2 D for TAP.

    Raises ``ValueError`` for a ``dim`` that heads do not divide, two components or fewer for a head, beta <= 0,
    sharpness <= 0, maps of queries and keys that change their shape, shapes that do not fit, NaN, inputs of length zero
    outside of padding, magnetizations on or beyond the sphere, and masks that are not booleans. Where values are
    hidden, as in a batch under ``jax.vmap``, all outputs of such a system are NaN, and a loss that leaves them out
    (``jnp.nanmean``) has a finite gradient.
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
        key = validate.key(key)
        self.dim = validate.count(dim, "dim", minimum=1)
        self.num_heads = validate.count(num_heads, "num_heads", minimum=1)
        if self.dim % self.num_heads:
            raise ValueError(f"num_heads: expected a divisor of dim, {self.dim}, got {self.num_heads}")
        if self.dim // self.num_heads <= 2:
            raise ValueError(
                f"num_heads: expected more than 2 components for each head, got {self.dim // self.num_heads}"
            )
        self.beta, self.sharpness = _number(beta, "beta"), _number(sharpness, "sharpness")
        self.theory, self.response, self.spheres, self.dynamics = theory, response, spheres, dynamics
        self.inputs = validate.instance(inputs, Inputs, "inputs")
        self.query_key_maps = tuple(query_key_maps)
        slices = jax.ShapeDtypeStruct((1, 2, self.dim // self.num_heads), jnp.float32)
        for turned in self.query_key_maps:
            shape = jax.eval_shape(turned, slices).shape
            if shape != slices.shape:
                raise ValueError(f"query_key_maps: expected functions that keep the shape {slices.shape}, got {shape}")
        self.to_queries_keys = eqx.nn.Linear(self.dim, 2 * self.dim, use_bias=False, dtype=dtype, key=key)
        # Couplings are drawn from the key itself, whatever the other options are.
        start_key, memory_key = (jax.random.fold_in(key, part) for part in (1, 2))
        self.start = start(self.dim, key=start_key, dtype=dtype)
        self.memory = None
        if feed_forward is not None:
            hidden_dim = validate.count(feed_forward, "feed_forward", minimum=1)
            self.memory = _FeedForward(self.dim, hidden_dim, key=memory_key, dtype=dtype)

    @property
    def _precision(self) -> Any:
        """The dtype of all arithmetic: that of the weights, but for half precision, in which nothing can be solved."""
        return np.promote_types(self.to_queries_keys.weight.dtype, np.float32)

    def under(self, dynamics: Relax | Unroll) -> SpinTransformerModule:
        """The same parameters with other ``dynamics``: train with one number of updates, evaluate with another.

        >>> module = SpinTransformerModule(8, key=jax.random.key(0))
        >>> module.under(Unroll(1)).dynamics
        Unroll(num_steps=1)
        """
        other = copy.copy(self)
        object.__setattr__(other, "dynamics", validate.instance(dynamics, (Relax, Unroll), "dynamics"))
        return other

    def _by_spheres(self, rows: Array) -> Float[Array, "S H N d"]:
        heads = by_heads(rows, self.num_heads)
        return heads.reshape(self.spheres(self.num_heads), -1, *heads.shape[1:])

    def _directions(self, a: Array, name: str, padding: Array | None) -> Array:
        """Inputs by spheres and heads, (spheres, heads, sites, d), scaled to the radius; padding may be zero."""
        spheres = self.spheres(self.num_heads)
        parts = a.reshape(len(a), spheres, self.dim // spheres)
        if not validate.is_traced((a, self.beta)):
            # For a stack the largest beta counts.
            self.inputs.check(parts.reshape(-1, parts.shape[-1]), name, jnp.max(jnp.asarray(self.beta, a.dtype)))
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
            # The direction of zero has no derivative either: padding stays zero.
            parts = jnp.where(empty, 0, parts)
        scaled = sphere.radius(self.dim // spheres) * parts / lengths
        return self._by_spheres(scaled.reshape(len(a), self.dim))

    def _checked(self, x: Any, mask: Any, context: Any) -> tuple[_Sites, _Sites | None, Array | None]:
        """Inputs and context as they came and scaled, and the mask."""
        a = validate.matrix(x, "x", columns=self.dim, dtype=self._precision)
        if context is None:
            allowed = self._mask(mask, (len(a), len(a)))
            # A site is the same site in the next layer: padding may neither receive nor send.
            apart = None if allowed is None else ~(jnp.any(allowed, axis=0) | jnp.any(allowed, axis=1))
            return _Sites(a, self._directions(a, "x", apart)), None, allowed
        c = validate.matrix(context, "context", columns=self.dim, dtype=self._precision)
        allowed = self._mask(mask, (len(a), len(c)))
        silent, unheard = (None, None) if allowed is None else (~jnp.any(allowed, axis=k) for k in (1, 0))
        sites = _Sites(a, self._directions(a, "x", silent))
        return sites, _Sites(c, self._directions(c, "context", unheard)), allowed

    def _rows(self, a: Array) -> Array:
        return from_heads(a.reshape(self.num_heads, *a.shape[2:]))

    def _carrier(self, sites: _Sites) -> Array:
        beta = jnp.asarray(self.beta, sites.rows.dtype)
        return self.inputs.field(self._by_spheres(sites.rows), sites.directions, self.response, beta)

    def _fields(self, sites: _Sites) -> Array:
        carrier = self._carrier(sites)
        if self.memory is None:
            return carrier
        return carrier + self._by_spheres(self.memory(self._rows(sites.directions)))

    def _problem(self, x: Any, mask: Any, context: Any, state: State | None) -> _Problem:
        sites, senders, allowed = self._checked(x, mask, context)
        fields = self._fields(sites)
        if state is None:
            start = self._by_spheres(self.start(self._rows(fields), self._rows(sites.directions)))
        else:
            validate.instance(state, State, "state")
            rows = validate.matrix(state.effective_fields, "state", columns=self.dim, dtype=self._precision)
            if rows.shape != sites.rows.shape:
                raise ValueError(
                    f"state: expected {len(sites.rows)} sites as in x, got {len(rows)} (see State.shifted)"
                )
            start = self._by_spheres(rows)
        J = self._couplings(sites.directions, (sites if senders is None else senders).directions, allowed)
        others = None if senders is None else self._fields(senders)
        return _Problem(fields, start, J, others, jnp.asarray(self.beta, fields.dtype))

    def _projected(self, a: Array, weight: Array) -> Array:
        heads = by_heads(self._rows(a) @ weight.T.astype(a.dtype), self.num_heads)
        for turned in self.query_key_maps:
            heads = turned(heads)
        return heads.reshape(a.shape)

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
        logits = jnp.asarray(self.sharpness, x.dtype) * queries @ jnp.swapaxes(keys, -1, -2)
        if mask is None:
            return jax.nn.softmax(logits, axis=-1)
        J = jax.nn.softmax(jnp.where(mask, logits, jnp.finfo(logits.dtype).min), axis=-1)
        return jnp.where(mask, J, 0)

    def couplings(self, x: Sites, mask: Mask = None, context: Context = None) -> Float[Array, "H N M"]:
        """J^h_ij = softmax_j(q^h_i . k^h_j), (heads, sites, sites or context sites); 0 where the mask is False."""
        sites, senders, allowed = self._checked(x, mask, context)
        J = self._couplings(sites.directions, (sites if senders is None else senders).directions, allowed)
        return J.reshape(self.num_heads, *J.shape[2:]).astype(self.to_queries_keys.weight.dtype)

    def input_fields(self, x: Sites, mask: Mask = None, context: Context = None) -> Float[Array, "N D"]:
        """The fields (N, D) of the inputs alone, as ``inputs`` says, without those of a feed-forward network."""
        return self._rows(self._carrier(self._checked(x, mask, context)[0])).astype(self.to_queries_keys.weight.dtype)

    def fields(self, x: Sites, mask: Mask = None, context: Context = None) -> Float[Array, "N D"]:
        """The fields x_i (N, D) that act on the spins, those of the inputs and of the feed-forward network."""
        return self._rows(self._fields(self._checked(x, mask, context)[0])).astype(self.to_queries_keys.weight.dtype)

    def _set_apart(self, x: Any, mask: Any, context: Any) -> tuple[Any, Any, bool | Array]:
        """Inputs and context, with bad systems replaced where values are hidden, and whether each is good.

        Outputs become NaN at the end: NaN as an input would reach the gradient of every parameter, whatever the loss
        leaves out.
        """
        if not validate.is_traced((x, context)):
            return x, context, True
        sites, senders, _ = self._checked(x, mask, context)
        given = [sites] if senders is None else [sites, senders]
        parts = [part for some in given for part in (some.directions, self._carrier(some))]
        computable = jnp.all(jnp.asarray([jnp.all(jnp.isfinite(part)) for part in parts]))
        # Short enough for a magnetization of every dimension.
        x, *others = (jnp.where(computable, some.rows, 0.1) for some in given)
        return x, others[0] if others else None, computable

    def _settle(self, x: Any, mask: Any, context: Any, state: State | None) -> FixedPoint:
        solution = _settle(self._problem(x, mask, context, state), self.theory, self.response, self.dynamics)
        return solution._replace(value=self._rows(solution.value).astype(self.to_queries_keys.weight.dtype))

    def __call__(
        self, x: Sites, mask: Mask = None, context: Context = None, *, state: State | None = None
    ) -> Float[Array, "N D"]:
        """The magnetizations (sites, dim)."""
        x, context, computable = self._set_apart(x, mask, context)
        solution = self._settle(x, mask, context, state)
        return jnp.where(computable, self.dynamics.output(solution.value, solution.converged), jnp.nan)

    def steady_state(
        self, x: Sites, mask: Mask = None, context: Context = None, *, state: State | None = None
    ) -> FixedPoint:
        """The magnetizations and the evidence that an update leaves them alone.

        ``residual`` is the largest change of a component of the fields in another update, ``converged`` whether it was
        within the tolerance of ``dynamics``, never for ``Unroll``. A component of the magnetizations changes by at most
        beta / 2 times as much.
        """
        return self._settle(x, mask, context, state)

    def readout(self, x: Sites, mask: Mask = None, context: Context = None, *, state: State | None = None) -> Readout:
        """A call with its state, to carry on from, and the irreversibility of its last update at frozen drive.

        With ``dynamics`` = ``Unroll(k)`` that is between the updates k - 1 and k; the programs of the source measure it
        one update later, from the fields that the outputs make. In cross-attention the spins of the context are driven
        and receive no field from other spins. With TAP sigma is still of first order in the couplings, at the fields of
        TAP.

        >>> module = SpinTransformerModule(8, 2, key=jax.random.key(0), dynamics=Unroll(1), start=AtRest)
        >>> x = jax.random.normal(jax.random.key(1), (5, 8))
        >>> first = module.readout(x)
        >>> second = module.readout(x, state=first.state)
        >>> second.entropy_production.shape, jnp.allclose(second.magnetizations, module.under(Unroll(2))(x)).item()
        ((1,), True)
        """
        m, solution, sigma = _read(self._problem(x, mask, context, state), self.theory, self.response, self.dynamics)
        means = self._rows(m).astype(self.to_queries_keys.weight.dtype)
        return Readout(means, State(self._rows(solution.value)), sigma, solution.residual, solution.converged)

    def path(
        self, x: Sites, mask: Mask = None, context: Context = None, *, steps: int, state: State | None = None
    ) -> Path:
        """``steps`` plain updates towards the steady state, whatever ``dynamics`` says, with the evidence of each.

        From ``state``, as a change of inputs (a quench) leaves it, or from ``start``. The steady state is solved for
        from the last update, with the numbers of ``dynamics`` if that is ``Relax``.

        >>> module = SpinTransformerModule(8, 2, key=jax.random.key(0), theory=naive)
        >>> old, new = jax.random.normal(jax.random.key(1), (2, 5, 8))
        >>> quench = module.path(new, state=module.readout(old).state, steps=9)
        >>> quench.mismatch.shape, bool(quench.mismatch[-1, 0] < 0.01 * quench.mismatch[0, 0])
        ((9, 1), True)
        """
        steps = validate.count(steps, "steps", minimum=1)
        dynamics = self.dynamics if isinstance(self.dynamics, Relax) else Relax()
        problem = self._problem(x, mask, context, state)
        m, mismatch, sigma, residual, steady = _follow(problem, self.theory, self.response, dynamics, steps)
        dtype = self.to_queries_keys.weight.dtype
        steady = steady._replace(value=self._rows(steady.value).astype(dtype))
        return Path(jax.vmap(self._rows)(m).astype(dtype), mismatch, sigma, residual, steady)


class SpinTransformer(eqx.Module):
    """``depth`` modules in a row, with couplings of their own: the magnetizations of one are the fields of the next.

    Arguments, and all further ``options``, are those of ``SpinTransformerModule``; the mask and the context are those
    of every module. Compiled once whatever the depth. ``steady_state`` returns the evidence of every module,
    ``readout`` their states. With ``inputs=as_magnetizations`` the outputs of one module pass to the next as
    means; at the bottom of the stack pass the means of the fields, ``response(fields, beta)``.
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
        key = validate.key(key)
        self.depth = validate.count(depth, "depth", minimum=1)

        def module(key: PRNGKeyArray) -> SpinTransformerModule:
            return SpinTransformerModule(dim, num_heads, beta=beta, key=key, **options)

        self.modules = eqx.filter_vmap(module)(jax.random.split(key, self.depth))

    def under(self, dynamics: Relax | Unroll) -> SpinTransformer:
        """The same parameters with other ``dynamics``, as ``SpinTransformerModule.under``."""
        return eqx.tree_at(lambda stack: stack.modules, self, self.modules.under(dynamics))

    def __call__(self, x: Sites, mask: Mask = None, context: Context = None) -> Float[Array, "N D"]:
        """The magnetizations of the last module (sites, dim); NaN if ``Relax`` finds no steady state of a module."""

        return self._scan(_output, x, mask, context)[0]

    def steady_state(self, x: Sites, mask: Mask = None, context: Context = None) -> FixedPoint:
        """The magnetizations of every module (depth, sites, dim), and the evidence of each (depth,).

        Each entry as in the ``steady_state`` of a module. A module that does not converge passes on its best state, so
        that the evidence of the modules after it is their own. If not all converged, ``jnp.argmin(found.converged)`` is
        the first that failed; with ``Relax`` a call of the stack is NaN from there on.

        >>> stack = SpinTransformer(3, 8, 2, key=jax.random.key(0))
        >>> stack.steady_state(jax.random.normal(jax.random.key(1), (5, 8))).converged.tolist()
        [True, True, True]
        """

        found: FixedPoint = self._scan(_evidence, x, mask, context)[1]
        return found

    def readout(self, x: Sites, mask: Mask = None, context: Context = None, *, state: State | None = None) -> Readout:
        """The ``readout`` of every module, with the depth in front; ``state`` has that form, or starts afresh as None.

        >>> stack = SpinTransformer(3, 8, 2, key=jax.random.key(0))
        >>> read = stack.readout(jax.random.normal(jax.random.key(1), (5, 8)))
        >>> read.magnetizations.shape, read.state.effective_fields.shape, read.entropy_production.shape
        ((3, 5, 8), (3, 5, 8), (3, 1))
        """
        if state is not None:
            validate.instance(state, State, "state")
            theta = validate.finite(state.effective_fields, "state", ndim=3)
            if len(theta) != self.depth:
                raise ValueError(f"state: expected that of {self.depth} modules, got {len(theta)}")
            state = State(theta)

        read: Readout = self._scan(_carried, x, mask, context, state)[1]
        return read

    def _scan(
        self,
        layer: Layer,
        x: Any,
        mask: Any,
        context: Any,
        state: State | None = None,
    ) -> tuple[Array, Any]:
        modules = self.modules
        # Within the loop values are hidden and could not be checked.
        modules._checked(x, mask, context)
        start = validate.matrix(x, "x", columns=modules.dim, dtype=modules.to_queries_keys.weight.dtype)
        allowed = None if mask is None else jnp.asarray(mask)
        others = None
        if context is not None:
            others = validate.matrix(context, "context", columns=modules.dim, dtype=modules._precision)
        found: tuple[Array, Any] = _in_a_row(layer, modules, start, allowed, others, state)
        return found


Layer = Callable[[SpinTransformerModule, Array, Array | None, Array | None, State | None], tuple[Array, Any]]
"""What a module passes to the next, and what it returns."""


def _output(
    module: SpinTransformerModule, x: Array, mask: Array | None, context: Array | None, _: State | None
) -> tuple[Array, None]:
    return module(x, mask, context), None


def _evidence(
    module: SpinTransformerModule, x: Array, mask: Array | None, context: Array | None, _: State | None
) -> tuple[Array, FixedPoint]:
    found = module.steady_state(x, mask, context)
    return found.value, found


def _carried(
    module: SpinTransformerModule, x: Array, mask: Array | None, context: Array | None, state: State | None
) -> tuple[Array, Readout]:
    read = module.readout(x, mask, context, state=state)
    return read.magnetizations, read


@eqx.filter_jit
def _in_a_row(
    layer: Layer,
    modules: SpinTransformerModule,
    x: Array,
    mask: Array | None,
    context: Array | None,
    state: State | None,
) -> tuple[Array, Any]:
    arrays, rest = eqx.partition(modules, eqx.is_array)

    def advance(x: Array, xs: tuple[SpinTransformerModule, State | None]) -> tuple[Array, Any]:
        return layer(eqx.combine(xs[0], rest), x, mask, context, xs[1])

    return jax.lax.scan(advance, x, (arrays, state))
