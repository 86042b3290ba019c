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
from jaxtyping import Array, PRNGKeyArray

from spinbook import fixed_point, sphere, validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.entropy_production import mean_field
from spinbook.fixed_point import FixedPoint

Sites = Float[ArrayLike, "N D"]


class State(NamedTuple):
    """The state of a module between steps: magnetizations and effective fields, each (sites, dim)."""

    magnetizations: Float[Array, "N D"]
    effective_fields: Float[Array, "N D"]


class Output(NamedTuple):
    """After a step: the ``magnetizations`` (N, D), the ``entropy_production`` of the step, a scalar in nats, the
    ``couplings`` (N, N) and the ``state`` for the next step.
    """

    magnetizations: Float[Array, "N D"]
    entropy_production: Float[Array, ""]
    couplings: Float[Array, "N N"]
    state: State


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
    response. FFN has one hidden layer of 4 D units with GELU. ``beta`` is a leaf that gradients reach. Calls take
    (sites, dim); for batches use ``jax.vmap``.

    Raises ``ValueError`` for dim <= 2, beta <= 0, inputs of the wrong shape, and NaN. Source: Bal (2026), section
    "Example model", label softmax.

    >>> module = MemoryModule(8, key=jax.random.key(0))
    >>> x = jax.random.normal(jax.random.key(1), (5, 8))
    >>> first = module.step(x)
    >>> first.magnetizations.shape, bool(module.step(x, first.state).entropy_production > 0)
    ((5, 8), True)
    """

    to_queries: eqx.nn.Linear
    to_keys: eqx.nn.Linear
    memory: eqx.nn.MLP
    beta: Array
    dim: int = eqx.field(static=True)

    def __init__(self, dim: int, *, beta: Number = 1.0, key: PRNGKeyArray) -> None:
        sphere.radius(dim)
        keys = jax.random.split(key, 3)
        self.dim = dim
        self.to_queries = eqx.nn.Linear(dim, dim, use_bias=False, key=keys[0])
        self.to_keys = eqx.nn.Linear(dim, dim, use_bias=False, key=keys[1])
        self.memory = eqx.nn.MLP(dim, dim, 4 * dim, 1, activation=jax.nn.gelu, key=keys[2])
        self.beta = validate.positive(beta, "beta", "")

    def start(self, num_sites: int) -> State:
        """A state at rest: no magnetization, no field."""
        zeros = jnp.zeros((validate.count(num_sites, "num_sites", minimum=1), self.dim), self.to_keys.weight.dtype)
        return State(zeros, zeros)

    def _inputs(self, x: Any) -> Array:
        x = validate.finite(x, "x", f"N {self.dim}", dtype=self.to_keys.weight.dtype)
        x = sphere.balanced(x)
        length = jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True) + jnp.finfo(x.dtype).tiny)
        return sphere.radius(self.dim) * x / length

    def fields(self, x: Sites) -> Float[Array, "N D"]:
        """x_i + FFN(x_i), with x_i scaled to length R."""
        scaled = self._inputs(x)
        return scaled + jax.vmap(self.memory)(scaled)

    def couplings(self, x: Sites) -> Float[Array, "N N"]:
        """J_ij = softmax_j(x_i Q K^T x_j^T)."""
        scaled = self._inputs(x)
        return jax.nn.softmax(jax.vmap(self.to_queries)(scaled) @ jax.vmap(self.to_keys)(scaled).T, axis=-1)

    def step(self, x: Sites, state: State | None = None) -> Output:
        """One time step from ``state``, at rest if not given.

        The entropy production is that of ``vector_mean_field`` between the fields of this step and of the one before: a
        proxy while inputs change, and the mean-field entropy production once the state repeats.
        """
        return self(x, state, steps=1)

    def __call__(self, x: Sites, state: State | None = None, *, steps: int = 1) -> Output:
        """``steps`` time steps with the same inputs; the output of the last one."""
        J, h = self.couplings(x), self.fields(x)
        before = self.start(h.shape[0]) if state is None else state
        if before.magnetizations.shape != h.shape:
            raise ValueError(f"state: expected {h.shape[0]} sites as in x, got {before.magnetizations.shape[0]}")
        repeats = validate.count(steps, "steps", minimum=1) - 1
        before = _repeated(J, h, self.beta, before, repeats) if repeats else before
        return self._output(J, _advanced(J, h, self.beta, before), before.effective_fields)

    def _output(self, J: Array, state: State, before: Array) -> Output:
        sigma = mean_field.vector_mean_field(J, state.effective_fields, before, beta=self.beta, response=sphere.large_d)
        return Output(state.magnetizations, sigma, J, state)

    def steady_state(self, x: Sites, *, max_steps: int = 200) -> FixedPoint:
        """The output that does not change under constant inputs, as ``value``, with its evidence.

        Gradients are implicit. The residual is the largest change of the effective fields in another step. Without
        convergence the output is that of the last step.
        """
        J, h = self.couplings(x), self.fields(x)
        tol = float(jnp.finfo(h.dtype).eps) ** 0.7
        solution = _steady(J, h, self.beta, tol, validate.count(max_steps, "max_steps", minimum=1))
        theta = solution.value
        return solution._replace(value=self._output(J, State(_response(theta, self.beta), theta), theta))
