"""Measures how far the means of mean-field theory are from those of sampled spins, with couplings from a softmax.

``sampled`` takes frozen couplings and fields, and samples the parallel dynamics in two halves that share nothing,
started from the fields and from one common direction. A squared error is the product of the two deviations, in which
sampling noise cancels on average. Instead of the spins their conditional means phi(h) are averaged, which are much
quieter. The record of a ``Case`` for each setting is made by ``records/fidelity/run.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from experiments import records
from spinbook import sphere
from spinbook.annotations import ArrayLike, Float
from spinbook.vector import fluctuations, mean_field

GROUPS = 8
"""Groups of replicas in each half, which the standard errors come from."""


class Case(NamedTuple):
    """One frozen system: what is asked of it, how its couplings were made, and how long it is sampled.

    ``kind`` is "rows" (errors of the means, by row) or "collective" (delayed correlations too). ``scale`` is the
    standard deviation of the logits, or 0 for a module trained at beta = 1; ``field`` the length of the fields over R.
    """

    kind: str
    beta: float
    scale: float
    causal: bool
    num_sites: int
    dim: int
    draw: int
    field: float = 1.0
    replicas: int = 64
    steps: int = 70


class Halves(NamedTuple):
    """Averages of two independent halves, (2, groups, ...): ``means`` (N, D), ``delayed`` (N, N), or None."""

    means: Float[Array, "2 G N D"]
    delayed: Float[Array, "2 G N N"] | None


_Sums = tuple[Array, Array, Array, Array]


@partial(jax.jit, static_argnames=("steps", "transient", "delayed"))
def _sampled(
    key: PRNGKeyArray, start: Array, J: Array, x: Array, beta: Array, steps: int, transient: int, delayed: bool
) -> tuple[Array, Array, Array]:
    """Sums over time of phi(h), of the s that made h, and of phi_i . s_l, by groups of replicas."""
    groups = start.shape[0]

    def advance(state: _Sums, t: Array) -> tuple[_Sums, None]:
        s, total, before, products = state
        h = x + J @ s
        mean = sphere.magnetization(h, beta=beta)
        kept = (t >= transient).astype(s.dtype)
        total, before = total + kept * mean.mean(1), before + kept * s.mean(1)
        if delayed:
            products = products + kept * jnp.einsum("grid,grld->gil", mean, s) / s.shape[1]
        return (sphere.sample(jax.random.fold_in(key, t), h, beta=beta), total, before, products), None

    shape = start.shape[2:]
    nothing = jnp.zeros((groups, *shape), start.dtype)
    products = jnp.zeros((groups, shape[0], shape[0]) if delayed else (), start.dtype)
    state, _ = jax.lax.scan(advance, (start, nothing, nothing, products), jnp.arange(steps + transient))
    return state[1] / steps, state[2] / steps, state[3] / steps


def sampled_halves(
    key: PRNGKeyArray, J: Array, x: Array, beta: Array, replicas: int, steps: int, transient: int, delayed: bool
) -> tuple[Array, Array, Array]:
    """Averages of phi(h), of the s that made h, and of phi_i . s_l, of both halves: (2, G, ...)."""
    shape = (GROUPS, replicas // GROUPS, *x.shape)
    R = jnp.float32(sphere.radius(x.shape[1]))
    common = R * jnp.full_like(x, x.shape[1] ** -0.5)
    lengths = jnp.linalg.norm(x, axis=1, keepdims=True)
    along = jnp.where(lengths > 0, R * x / jnp.where(lengths > 0, lengths, 1), common)
    found = []
    for begin, half in zip((along, common), jax.random.split(key), strict=True):
        start = jnp.broadcast_to(begin, shape)
        found.append(_sampled(half, start, J, x, beta, steps, transient, delayed))
    means, before, products = (jnp.stack(parts) for parts in zip(*found, strict=True))
    return means, before, products


def own_means_apart(
    means: Float[Array, "2 G N D"], before: Float[Array, "2 G N D"], products: Float[Array, "2 G N N"]
) -> Float[Array, "2 G N N"]:
    """<phi_i . s_l> - <phi_i> . <s_l> of every group, which is too small by the covariance of its two means."""
    return products - jnp.einsum("agid,agld->agil", means, before)


def delayed_estimate(
    means: Float[Array, "2 G N D"], before: Float[Array, "2 G N D"], products: Float[Array, "2 G N N"]
) -> Float[Array, "2 G N N"]:
    """Values of groups whose average is that of the products, less that of products of means of different groups.

    With c_g the product of the deviations of a group's two means from those of all G groups, the sum of c_g over G - 1
    estimates C, the covariance of the two means of one group, by which the product of its own means is too large. The
    shares (G c_g - C) / (G - 2) of the groups add up to G C, and make the average over all groups but one the same
    estimate from these alone, so that leaving out a group gives the standard error of the estimate. Of each group the
    means of the others could be subtracted instead, with the same average; but the groups would then hold noise of a
    mean that cancels in the average, and their scatter would not be its error.
    """
    groups = means.shape[1]
    off = [values - values.mean(1, keepdims=True) for values in (means, before)]
    c = jnp.einsum("agid,agld->agil", *off)
    C = c.sum(1, keepdims=True) / (groups - 1)
    return own_means_apart(means, before, products) + (groups * c - C) / (groups - 2)


def sampled(
    key: PRNGKeyArray,
    couplings: Float[ArrayLike, "N N"],
    fields: Float[ArrayLike, "N D"],
    *,
    beta: Float[ArrayLike, ""],
    replicas: int,
    steps: int,
    transient: int,
    delayed: bool = False,
) -> Halves:
    """m_i = <phi(x_i + sum_j J_ij s_j)> and D_il = <s_i(t) . s_l(t - 1)> - m_i . m_l, from two independent halves.

    Each half has ``replicas`` replicas in eight groups, and averages ``steps`` steps after ``transient`` ones. The
    first starts with every spin along its field, the second with all spins along one direction, so that halves that
    agree have forgotten where they began; a spin without a field is along that direction in both. All in float32.

    In D the product m_i . m_l is that of means of different groups of one half, which share no noise; with both means
    of the same n = ``replicas`` / 8 times ``steps`` samples it would be too large by the covariance of the two, a part
    (1 + chi) / (1 - chi) / n of the correlations of all spins together. A group's value is a jackknife pseudo-value:
    unbiased, and the average over all groups, or over all but one, is the estimate from these alone.

    Raises ``ValueError`` for replicas that eight groups do not share equally.

    >>> halves = sampled(jax.random.key(0), jnp.eye(2), jnp.ones((2, 4)), beta=1.0, replicas=16, steps=5, transient=2)
    >>> halves.means.shape
    (2, 8, 2, 4)
    """
    if replicas < GROUPS or replicas % GROUPS:
        raise ValueError(f"replicas: expected a multiple of {GROUPS}, the number of groups, got {replicas}")
    J, x, beta = (jnp.asarray(np.asarray(value), jnp.float32) for value in (couplings, fields, beta))
    means, before, products = sampled_halves(key, J, x, beta, replicas, steps, transient, delayed)
    return Halves(means, delayed_estimate(means, before, products) if delayed else None)


def jackknife(statistic: Callable[[np.ndarray, np.ndarray], Any], halves: np.ndarray) -> tuple[Any, Any]:
    """statistic(mean of the first half, of the second), and its standard error from leaving out each group in turn."""
    whole = statistic(*halves.mean(1))
    keep = ~np.eye(halves.shape[1], dtype=bool)
    left = np.array([statistic(*halves[:, chosen].mean(1)) for chosen in keep])
    return whole, np.sqrt((len(left) - 1) * np.var(left, axis=0))


def squared_error(theory: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
    """The squared error of a theory, over the square of what was sampled, from two halves."""
    return lambda a, b: float(np.sum((theory - a) * (theory - b)) / np.sum(a * b))


def forgotten(means: np.ndarray) -> float:
    """The squared distance of the means of two halves over what the scatter of their groups lets expect."""
    expected = sum(np.var(half, axis=0, ddof=1).sum() / len(half) for half in means)
    return float(np.sum((means[0].mean(0) - means[1].mean(0)) ** 2) / expected)


def system(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The couplings (N, N) and fields (N, D) of a case: rows of a softmax, and vectors of length ``field`` times R.

    Logits are scalar products of queries and keys that two random maps make of the inputs. Those of a trained module,
    of ``scale`` 0, are not made here.

    >>> J, x = system(Case("rows", 1.0, 1.0, False, 6, 8, 0))
    >>> J.sum(1).round(6).tolist(), x.shape
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], (6, 8))
    """
    N, D = case.num_sites, case.dim
    allowed = np.tril(np.ones((N, N), bool)) if case.causal else np.ones((N, N), bool)
    rng = np.random.default_rng([N, D, case.draw])
    inputs = rng.normal(size=(N, D))
    queries, keys = inputs @ rng.normal(size=(2, D, D))
    logits = queries @ keys.T
    logits = np.where(allowed, case.scale * logits / logits.std(), -np.inf)
    J = np.exp(logits - logits.max(axis=1, keepdims=True))
    x = case.field * sphere.radius(D) * inputs / np.linalg.norm(inputs, axis=1, keepdims=True)
    return J / J.sum(axis=1, keepdims=True), x


def _message_passing(m: Array, J: Array, x: Array, *, beta: Any) -> Array:
    """m_i = phi(x_i + sum_j J_ij m'_j - b_i m'_i), b_i = (beta / D) sum_j J_ij^2 (R^2 - |m'_j|^2), at one time."""
    b = beta / m.shape[1] * J**2 @ (sphere.squared_radius(m.shape[1]) - sphere.squared_length(m))
    return sphere.exact(x + J @ m - b[:, None] * m, beta)


_exact_naive = partial(mean_field.naive_step, response=sphere.exact)
_exact_tap = partial(mean_field.flat_tap_step, response=sphere.exact)
_wrong_index = partial(mean_field.flat_tap_step, response=sphere.exact, covariances=fluctuations.of_receivers)
STEPS: Mapping[str, Any] = {
    "naive": _exact_naive,
    "TAP": _exact_tap,
    "naive, large D": mean_field.naive_step,
    "TAP, large D": mean_field.flat_tap_step,
    "TAP, wrong index": _wrong_index,
    "message passing": _message_passing,
}
"""The theories whose steady states are compared; the response is exact unless the name says otherwise."""
THEORIES = (*STEPS, "spread", "phi(x)", "one update")
"""The order of ``squared``, (theories, 2), in the measurement of a case of rows."""
BY_ROW = ("naive", "TAP", "spread")
"""The order of ``by_row``, (theories, N)."""


# More effort makes a program that runs for a moment no faster.
@partial(jax.jit, static_argnames="step", compiler_options={"xla_backend_optimization_level": 0})
def _steady(J: Array, x: Array, beta: float, step: Any) -> Array:
    found = mean_field.steady_state(J, x, beta=beta, step=step, max_steps=300)
    return jnp.where(found.converged, found.value, jnp.nan)


def steady_means(J: np.ndarray, x: np.ndarray, beta: float, step: Any) -> np.ndarray:
    """m = step(m) within 300 steps; NaN where there is no such state."""
    # Compiled as a whole, so that no program is made for evidence that is not read.
    return np.asarray(_steady(J, x, beta, step))


def independent_correlations(J: np.ndarray, m: np.ndarray, beta: float) -> np.ndarray:
    """D_il = beta tr(Var_i Var_l) J_il, of spins whose neighbours fluctuate independently of each other."""
    Var = np.asarray(sphere.covariance(sphere.field(m, beta=beta), beta=beta))
    return beta * J * np.einsum("iab,lab->il", Var, Var, optimize=True)


exact_gain = jax.jit(sphere.exact.gain, static_argnums=1)


def spread_means(
    couplings: Float[ArrayLike, "N N"],
    fields: Float[ArrayLike, "N D"],
    *,
    beta: float,
    updates: int = 80,
) -> Float[np.ndarray, "N D"]:
    """m_i = f(|h_i|^2 + sum_j J_ij^2 (R^2 - |m_j|^2)) h_i with h_i = x_i + sum_j J_ij m_j, where phi(h) = f(|h|^2) h.

    In many dimensions the fluctuations of a field lie across its mean: they make it longer and do not turn it. What
    they add to its squared length is the sum of the variances of independent neighbours. Plain updates from the answer
    to the fields alone, which settle if a step contracts; what they have come to is returned.
    >>> spread_means(np.full((2, 2), 0.5), np.ones((2, 4)), beta=1.0).shape
    (2, 4)
    """
    J, x, dim = np.asarray(couplings, float), np.asarray(fields, float), np.shape(fields)[1]
    m = np.asarray(sphere.magnetization(x, beta=beta))
    for _ in range(updates):
        h = x + J @ m
        squared = np.sum(h**2, axis=1) + J**2 @ (sphere.squared_radius(dim) - np.sum(m**2, axis=1))
        m = np.asarray(exact_gain(squared, dim, beta))[:, None] * h
    return m


def record() -> list[tuple[Case, dict[str, np.ndarray]]]:
    """Every case of the book's record with what was measured; NaN where a theory found no steady state.

    >>> case, found = record()[0]
    >>> case.kind, found["n_eff"].shape  # exact
    ('rows', (64,))
    """
    return records.rows("fidelity", case=Case)[0]
