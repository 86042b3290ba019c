"""A transformer module that keeps its state between calls and computes its entropy production.

The source's example model: naive mean field of vector spins with softmax couplings, and a feed-forward network that
adds a memory to the fields. One call is one time step of the spins under the inputs of that time, so that attention
reads the outputs of the step before: a parallel transformer block whose values are its own past.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from spinbook import fixed_point, sphere, validate
from spinbook.annotations import ArrayLike, Bool, Float, Number
from spinbook.entropy_production import mean_field
from spinbook.fixed_point import FixedPoint

__all__ = ["MemoryModule", "MemoryStack", "Output", "State", "causal"]

Sites = Float[ArrayLike, "N D"]
Mask = Bool[ArrayLike, "N N"] | None


class State(NamedTuple):
    """The state of a module between steps: magnetizations and effective fields, each (sites, dim)."""

    magnetizations: Float[Array, "N D"]
    effective_fields: Float[Array, "N D"]

    def grown(self, num_sites: int) -> State:
        """The same sites, and new ones at rest behind them.

        >>> State(jnp.ones((2, 4)), jnp.ones((2, 4))).grown(3).magnetizations.shape
        (3, 4)
        """
        present = self.magnetizations.shape[0]
        extra = validate.count(num_sites, "num_sites", minimum=present) - present
        return State(*(jnp.pad(a, ((0, extra), (0, 0))) for a in self))


class Output(NamedTuple):
    """After a step: the ``magnetizations`` (N, D), the ``entropy_production`` of the step, a scalar in nats, the
    ``couplings`` (N, N) and the ``state`` for the next step.
    """

    magnetizations: Float[Array, "N D"]
    entropy_production: Float[Array, ""]
    couplings: Float[Array, "N N"]
    state: State


def causal(num_sites: int) -> Bool[Array, "N N"]:
    """True where site i may attend to site j: j <= i.

    >>> causal(2).tolist()
    [[True, False], [True, True]]
    """
    n = validate.count(num_sites, "num_sites", minimum=1)
    return jnp.tril(jnp.ones((n, n), bool))


def _response(theta: Array, beta: Array) -> Array:
    return sphere.large_d(theta, beta.astype(theta.dtype))


def _advanced(J: Array, h: Array, beta: Array, state: State) -> State:
    theta = h + J @ state.magnetizations
    return State(_response(theta, beta), theta)


@partial(jax.jit, static_argnames="steps")
def _repeated(J: Array, h: Array, beta: Array, state: State, steps: int) -> State:
    return jax.lax.scan(lambda state, _: (_advanced(J, h, beta, state), None), state, length=steps)[0]


@partial(jax.jit, static_argnames=("tol", "max_steps"))
def _steady(J: Array, h: Array, beta: Array, tol: float, max_steps: int) -> FixedPoint:
    return fixed_point.solve(lambda theta: h + J @ _response(theta, beta), h, tol=tol, max_steps=max_steps)


class MemoryModule(eqx.Module):
    """m_i(t) = phi(theta_i(t)), theta_i(t) = x_i + FFN(x_i) + sum_j softmax_j(x_i Q K^T x_j^T) m_j(t-1).

    ``dim`` components D > 2 on the sphere of radius R, R^2 = D/2 - 1; inputs are scaled to length R; phi is the large-D
    response. FFN has one hidden layer of ``hidden_dim`` units (4 D if not given) with GELU. ``beta`` is a leaf that
    gradients reach. Calls take (sites, dim); for batches use ``jax.vmap``.

    Raises ``ValueError`` for dim <= 2, beta <= 0, inputs or masks of the wrong shape, NaN, and a row of the mask that
    is all False. Source: Bal (2026), section "Example model", label softmax.

    >>> module = MemoryModule(8, key=jax.random.key(0))
    >>> x = jax.random.normal(jax.random.key(1), (5, 8))
    >>> first = module.step(x, mask=causal(5))
    >>> first.magnetizations.shape, bool(module.step(x, first.state, mask=causal(5)).entropy_production > 0)
    ((5, 8), True)
    """

    to_queries: eqx.nn.Linear
    to_keys: eqx.nn.Linear
    memory: eqx.nn.MLP
    beta: Array
    dim: int = eqx.field(static=True)

    def __init__(self, dim: int, *, hidden_dim: int | None = None, beta: Number = 1.0, key: PRNGKeyArray) -> None:
        key = validate.key(key)
        sphere.radius(dim)
        hidden = 4 * dim if hidden_dim is None else validate.count(hidden_dim, "hidden_dim", minimum=1)
        keys = jax.random.split(key, 3)
        self.dim = dim
        self.to_queries = eqx.nn.Linear(dim, dim, use_bias=False, key=keys[0])
        self.to_keys = eqx.nn.Linear(dim, dim, use_bias=False, key=keys[1])
        self.memory = eqx.nn.MLP(dim, dim, hidden, 1, activation=jax.nn.gelu, key=keys[2])
        self.beta = validate.positive(beta, "beta", ndim=0)

    def start(self, num_sites: int) -> State:
        """A state at rest: no magnetization, no field."""
        zeros = jnp.zeros((validate.count(num_sites, "num_sites", minimum=1), self.dim), self.to_keys.weight.dtype)
        return State(zeros, zeros)

    def _inputs(self, x: Any) -> Array:
        x = validate.matrix(x, "x", columns=self.dim, dtype=self.to_keys.weight.dtype)
        x = sphere.balanced(x)
        length = jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True) + jnp.finfo(x.dtype).tiny)
        return sphere.radius(self.dim) * x / length

    def fields(self, x: Sites) -> Float[Array, "N D"]:
        """x_i + FFN(x_i), with x_i scaled to length R."""
        scaled = self._inputs(x)
        return scaled + jax.vmap(self.memory)(scaled)

    def couplings(self, x: Sites, mask: Mask = None) -> Float[Array, "N N"]:
        """J_ij = softmax_j(x_i Q K^T x_j^T), over the j that ``mask`` allows."""
        scaled = self._inputs(x)
        scores = jax.vmap(self.to_queries)(scaled) @ jax.vmap(self.to_keys)(scaled).T
        if mask is None:
            return jax.nn.softmax(scores, axis=-1)
        if np.shape(mask) != scores.shape:
            raise ValueError(f"mask: expected shape {scores.shape}, got shape {np.shape(mask)}")
        # NumPy, because in compiled code an operation of JAX would hide even a known mask.
        if not validate.is_traced(mask) and not np.asarray(mask, bool).any(axis=-1).all():
            raise ValueError("mask: expected something to attend to in every row, got a row of False")
        return jax.nn.softmax(jnp.where(jnp.asarray(mask, bool), scores, -jnp.inf), axis=-1)

    def step(self, x: Sites, state: State | None = None, mask: Mask = None) -> Output:
        """One time step from ``state``, at rest if not given.

        The entropy production is that of ``vector_mean_field`` between the fields of this step and of the one before: a
        proxy while inputs change, and the mean-field entropy production once the state repeats.
        """
        return self(x, state, mask, steps=1)

    def __call__(self, x: Sites, state: State | None = None, mask: Mask = None, *, steps: int = 1) -> Output:
        """``steps`` time steps with the same inputs; the output of the last one."""
        J, h = self.couplings(x, mask), self.fields(x)
        before = self.start(h.shape[0]) if state is None else state
        if before.magnetizations.shape != h.shape:
            raise ValueError(
                f"state: expected {h.shape[0]} sites as in x, got {before.magnetizations.shape[0]} (State.grown adds "
                "sites)"
            )

        repeats = validate.count(steps, "steps", minimum=1) - 1
        before = _repeated(J, h, self.beta, before, repeats) if repeats else before
        return self._output(J, _advanced(J, h, self.beta, before), before.effective_fields)

    def driven(
        self, x: Float[ArrayLike, "#T N D"], mask: Mask = None, *, steps: int
    ) -> tuple[Float[Array, "T N N"], State]:
        """The couplings of T = ``steps`` steps from rest, and the states (T + 1, N, D) before the first and after each.

        ``x`` holds the inputs of every step, or one entry for all of them. Whatever depends on the inputs alone is
        computed for all steps at once. For compiled code.

        >>> module = MemoryModule(8, key=jax.random.key(0))
        >>> J, states = module.driven(jax.random.normal(jax.random.key(1), (3, 5, 8)), steps=3)
        >>> J.shape, states.magnetizations.shape
        ((3, 5, 5), (4, 5, 8))
        """
        J, h = jax.vmap(partial(self.couplings, mask=mask))(x), jax.vmap(self.fields)(x)
        J, h = (jnp.broadcast_to(a, (steps, *a.shape[1:])) for a in (J, h))
        rest = self.start(h.shape[1])

        def advance(state: State, now: tuple[Array, Array]) -> tuple[State, State]:
            state = _advanced(*now, self.beta, state)
            return state, state

        after = jax.lax.scan(advance, rest, (J, h))[1]
        return J, jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), rest, after)

    def _output(self, J: Array, state: State, before: Array) -> Output:
        sigma = mean_field.driven_production(J, state.effective_fields, before, self.beta.astype(before.dtype))
        return Output(state.magnetizations, sigma, J, state)

    def steady_state(self, x: Sites, mask: Mask = None, *, max_steps: int = 200) -> FixedPoint:
        """The output that does not change under constant inputs, as ``value``, with its evidence.

        Gradients are implicit. The residual is the largest change of the effective fields in another step. Without
        convergence the output is that of the last step.
        """
        J, h = self.couplings(x, mask), self.fields(x)
        tol = float(jnp.finfo(h.dtype).eps) ** 0.7
        solution = _steady(J, h, self.beta, tol, validate.count(max_steps, "max_steps", minimum=1))
        theta = solution.value
        return solution._replace(value=self._output(J, State(_response(theta, self.beta), theta), theta))


class MemoryStack(eqx.Module):
    """Modules in a row, each with a state of its own; the magnetizations of one are the inputs of the next.

    With ``local=True`` no gradient passes from a module to the one before: each learns from its own loss only. Raises
    as ``MemoryModule``, and for a list of states of another length. Source: Bal (2026), section "Global coherence from
    local backpropagation".

    >>> stack = MemoryStack(2, 8, key=jax.random.key(0))
    >>> outputs = stack.step(jax.random.normal(jax.random.key(1), (5, 8)))
    >>> len(outputs), outputs[-1].magnetizations.shape
    (2, (5, 8))
    """

    modules: tuple[MemoryModule, ...]

    def __init__(
        self, depth: int, dim: int, *, hidden_dim: int | None = None, beta: Number = 1.0, key: PRNGKeyArray
    ) -> None:
        key = validate.key(key)
        keys = jax.random.split(key, validate.count(depth, "depth", minimum=1))
        self.modules = tuple(MemoryModule(dim, hidden_dim=hidden_dim, beta=beta, key=k) for k in keys)

    def step(
        self, x: Sites, states: tuple[State, ...] | None = None, mask: Mask = None, *, local: bool = False
    ) -> tuple[Output, ...]:
        """One time step of every module, in order; the outputs of all."""
        if states is not None and len(states) != len(self.modules):
            raise ValueError(f"states: expected {len(self.modules)}, one for each module, got {len(states)}")
        outputs = []
        for k, module in enumerate(self.modules):
            outputs.append(module.step(x, None if states is None else states[k], mask))
            x = outputs[-1].magnetizations
            x = jax.lax.stop_gradient(x) if local else x
        return tuple(outputs)

    def grown(self, module: MemoryModule) -> MemoryStack:
        """This stack with another module on top."""
        return eqx.tree_at(lambda s: s.modules, self, (*self.modules, module))
