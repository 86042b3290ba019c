"""Are the means of mean-field theory those of sampled spins, with couplings that a softmax made?

A ``Case`` fixes couplings and fields: random logits of a given standard deviation, or those of a module that was
trained to find twins. Both are frozen, and the parallel dynamics is sampled in two halves that share nothing, started
from the fields and from one common direction. A squared error is the product of the two deviations, in which sampling
noise cancels on average. Instead of the spins their conditional means phi(h) are averaged, which are much quieter.

``python -m experiments run spin-transformers-fidelity --out FOLDER`` computes all of ``cases()`` and writes
``fidelity.json.gz``; the one beside this module is the record of the book, see ``record``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, PRNGKeyArray

from experiments import designs, records
from spinbook import sphere, validate
from spinbook.annotations import ArrayLike, Float
from spinbook.precision import enable_x64
from spinbook.spin_transformer import SpinTransformerModule
from spinbook.vector import fluctuations, mean_field

__all__ = [
    "Case",
    "Halves",
    "cases",
    "compute",
    "delayed_estimate",
    "exact_gain",
    "forgotten",
    "independent_correlations",
    "jackknife",
    "measure",
    "own_means_apart",
    "record",
    "sampled",
    "sampled_halves",
    "spread_means",
    "squared_error",
    "steady_means",
    "system",
    "trained",
    "twins",
]

_ARTIFACT = "fidelity.json.gz"
GROUPS = 8
"""Groups of replicas in each half, which the standard errors come from."""


@designs.record(kind=("rows", "collective"), scale=partial(validate.number, least=0), draw=validate.count)
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


def cases() -> list[Case]:
    """Every case of the record: 48 of rows, then 80 of the collective mode.

    >>> len(cases()), cases()[0].kind
    (128, 'rows')
    """
    found = []
    for causal in (False, True):
        for beta in (0.5, 1.0, 2.0, 4.0):
            scales = (1 / 3, 1.0, float(np.sqrt(128)) / 6, 4.0)
            found += [Case("rows", beta, scale, causal, 64, 128, 0) for scale in scales]
            found.append(Case("rows", beta, 0.0, causal, 32, 32, 0))
            found.append(Case("rows", beta, 1.0, causal, 64, 128, 0, field=0.25))
    for beta, scale in ((1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (2.0, 4.0)):
        for num_sites in (32, 64, 128, 256):
            options = {"replicas": 32, "steps": 50}
            found += [Case("collective", beta, scale, False, num_sites, 32, draw, **options) for draw in range(5)]
    return found


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


def _model(couplings: Any, fields: Any, beta: Any, *, dtype: Any) -> tuple[Array, Array, Array]:
    """One matrix of couplings, one field for each site, and beta > 0."""
    J = validate.matrix(couplings, "couplings", dtype=dtype)
    x = validate.matrix(fields, "fields", rows=J.shape[1], dtype=dtype)
    sphere.has_radius(x, "fields")
    return J, x, validate.positive(beta, "beta", ndim=0, dtype=dtype)


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

    Raises ``ValueError`` for arguments of other shapes, numbers whose squares do not fit into float32, and replicas
    that eight groups do not share equally.

    >>> halves = sampled(jax.random.key(0), jnp.eye(2), jnp.ones((2, 4)), beta=1.0, replicas=16, steps=5, transient=2)
    >>> halves.means.shape
    (2, 8, 2, 4)
    """
    key = validate.key(key)
    J, x, beta = _model(couplings, fields, beta, dtype=jnp.float32)
    steps, transient = validate.count(steps, "steps", minimum=1), validate.count(transient, "transient")
    replicas = validate.count(replicas, "replicas", minimum=GROUPS)
    if replicas % GROUPS:
        raise ValueError(f"replicas: expected a multiple of {GROUPS}, the number of groups, got {replicas}")
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


def twins(key: PRNGKeyArray, num_sites: int, dim: int) -> tuple[Array, Array]:
    """Inputs (N, D) and the partner of every site (N,): half of a vector is an address, the other half a content.

    The address of a site's twin is its own with its two halves exchanged, so that a site finds its twin by a linear map
    of its address, and does not find itself. Raises ``ValueError`` for an odd number of sites, and for fewer than two
    of them or four components.
    """
    key = validate.key(key)
    num_sites, dim = validate.count(num_sites, "num_sites", minimum=2), validate.count(dim, "dim", minimum=4)
    if num_sites % 2:
        raise ValueError(f"num_sites: expected an even number, every site having a twin, got {num_sites}")
    quarter = dim // 4
    order_key, address_key, content_key = jax.random.split(key, 3)
    address = jax.random.normal(address_key, (num_sites // 2, 2, quarter))
    both = jnp.concatenate([address, address[:, ::-1]]).reshape(num_sites, 2 * quarter)
    content = jax.random.normal(content_key, (num_sites, dim - 2 * quarter))
    order = jax.random.permutation(order_key, num_sites)
    place = jnp.argsort(order)
    partner = place[(order + num_sites // 2) % num_sites]
    return jnp.concatenate([both, content], axis=1)[order], partner


@cache
def trained(causal: bool, *, num_sites: int = 32, dim: int = 32, updates: int = 300) -> SpinTransformerModule:
    """A module of one head at beta = 1 whose queries and keys learnt to read the content of a site's twin.

    The loss is minus the mean cosine between the second half of an output and that of the twin's input; under a causal
    mask only sites whose twin came before them count. Adam with a rate of 0.003 on eight new sequences an update.
    """
    with enable_x64(False):
        key = jax.random.key(17)
        module = SpinTransformerModule(dim, beta=1.0, key=key)
        mask = jnp.tril(jnp.ones((num_sites, num_sites), bool)) if causal else None
        content = slice(2 * (dim // 4), None)

        def loss(module: SpinTransformerModule, keys: Array) -> Array:
            def one(key: PRNGKeyArray) -> Array:
                x, partner = twins(key, num_sites, dim)
                out, target = module(x, mask)[:, content], x[partner][:, content]
                lengths = jnp.linalg.norm(out, axis=1) * jnp.linalg.norm(target, axis=1)
                counts = (partner < jnp.arange(num_sites)) if causal else jnp.ones(num_sites, bool)
                return -jnp.sum(jnp.where(counts, jnp.sum(out * target, axis=1) / lengths, 0)) / jnp.sum(counts)

            return jnp.mean(jax.vmap(one)(keys))

        optimizer = optax.adam(3e-3)
        arrays, rest = eqx.partition(module, eqx.is_array)

        @jax.jit
        def update(state: Any, key: PRNGKeyArray) -> tuple[Any, Array]:
            arrays, memory = state
            value, slope = jax.value_and_grad(lambda a: loss(eqx.combine(a, rest), jax.random.split(key, 8)))(arrays)
            change, memory = optimizer.update(slope, memory)
            return (eqx.apply_updates(arrays, change), memory), value

        state = arrays, optimizer.init(arrays)
        for key in jax.random.split(jax.random.key(18), updates):
            state, _ = update(state, key)
        return eqx.combine(state[0], rest)


def system(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The couplings (N, N) and fields (N, D) of a case: rows of a softmax, and vectors of length ``field`` times R.

    Random logits are scalar products of queries and keys that two random maps make of the inputs, as in the module.

    >>> J, x = system(Case("rows", 1.0, 1.0, False, 6, 8, 0))
    >>> J.sum(1).round(6).tolist(), x.shape
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], (6, 8))
    """
    N, D = case.num_sites, case.dim
    allowed = np.tril(np.ones((N, N), bool)) if case.causal else np.ones((N, N), bool)
    if case.scale == 0:
        module = trained(case.causal, num_sites=N, dim=D)
        with enable_x64(False):
            found = twins(jax.random.key(1000 + case.draw), N, D)[0]
            J = np.asarray(module.couplings(found, jnp.asarray(allowed))[0], dtype=float)
        inputs = np.asarray(found, dtype=float)
    else:
        rng = np.random.default_rng([N, D, case.draw])
        inputs = rng.normal(size=(N, D))
        queries, keys = inputs @ rng.normal(size=(2, D, D))
        logits = queries @ keys.T
        logits = np.where(allowed, case.scale * logits / logits.std(), -np.inf)
        J = np.exp(logits - logits.max(axis=1, keepdims=True))
    x = case.field * sphere.radius(D) * inputs / np.linalg.norm(inputs, axis=1, keepdims=True)
    return J / J.sum(axis=1, keepdims=True), x


_exact_naive = partial(mean_field.naive_step, response=sphere.exact)
_exact_tap = partial(mean_field.flat_tap_step, response=sphere.exact)
_wrong_index = partial(mean_field.flat_tap_step, response=sphere.exact, covariances=fluctuations.of_receivers)
STEPS: Mapping[str, Any] = {
    "naive": _exact_naive,
    "TAP": _exact_tap,
    "naive, large D": mean_field.naive_step,
    "TAP, large D": mean_field.flat_tap_step,
    "TAP, wrong index": _wrong_index,
    "message passing": partial(mean_field.message_passing_step, response=sphere.exact),
}
"""The theories whose steady states are compared; the response is exact unless the name says otherwise."""


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


def _closed(J: np.ndarray, m: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """A C and C = C_0 + A C A^T, with A_ij = beta v_i J_ij and v_i the variance of a spin per component."""
    dim = m.shape[1]
    v = (sphere.squared_radius(dim) - np.sum(m**2, axis=1)) / dim
    A, own = beta * v[:, None] * J, np.diag(dim * v)
    C = own
    for _ in range(400):
        C = own + A @ C @ A.T
    return A @ C, C


exact_gain = jax.jit(sphere.exact.gain, static_argnums=1)


def spread_means(
    couplings: Float[ArrayLike, "N N"],
    fields: Float[ArrayLike, "N D"],
    *,
    beta: Float[ArrayLike, ""],
    updates: int = 80,
) -> Float[np.ndarray, "N D"]:
    """m_i = f(|h_i|^2 + sum_j J_ij^2 (R^2 - |m_j|^2)) h_i with h_i = x_i + sum_j J_ij m_j, where phi(h) = f(|h|^2) h.

    In many dimensions the fluctuations of a field lie across its mean: they make it longer and do not turn it. What
    they add to its squared length is the sum of the variances of independent neighbours. Plain updates from the answer
    to the fields alone, which settle if a step contracts; what they have come to is returned. Raises ``ValueError``
    for arguments of other shapes and for fields whose squares overflow.

    >>> spread_means(np.full((2, 2), 0.5), np.ones((2, 4)), beta=1.0).shape
    (2, 4)
    """
    _model(couplings, fields, beta, dtype=validate.common_dtype(couplings, fields))
    updates = validate.count(updates, "updates")
    J, x = (validate.known_numbers(a, name) for a, name in ((couplings, "couplings"), (fields, "fields")))
    dim, beta = x.shape[1], float(validate.known_numbers(beta, "beta"))
    m = np.asarray(sphere.magnetization(x, beta=beta))
    for _ in range(updates):
        h = x + J @ m
        squared = np.sum(h**2, axis=1) + J**2 @ (sphere.squared_radius(dim) - np.sum(m**2, axis=1))
        m = np.asarray(exact_gain(squared, dim, beta))[:, None] * h
    return m


def measure(case: Case) -> dict[str, np.ndarray]:
    """What sampling says of a case; squared errors are products of independent halves, "error" is a standard error.

    Rows: ``n_eff`` (N,) = 1 / sum_j J_ij^2; ``squared`` (theories, 2), the sum over rows of |m - m_sampled|^2 over that
    of |m_naive - phi(x)|^2, with its error, for the theories of ``THEORIES``; ``by_row`` (theories, N), the same
    ratio of each row for those of ``BY_ROW``; ``size``, the root mean square of |m_naive - phi(x)| / R; ``forgotten``,
    the squared distance of the two halves over what their scatter lets expect. Collective: ``delayed`` (3, 2), the
    squared relative error of D of independent spins, of the same with the correlations closed, and the part of the
    first along the uniform direction; ``means`` (3, 2), the squared error of naive, TAP and spread means over R^2;
    ``mode``, chi, r and q.
    """
    with enable_x64(True):
        J, x = system(case)
        key = jax.random.key(sum(ord(c) * 31**k for k, c in enumerate(repr(case))) % 2**31)
        options: dict[str, Any] = {"beta": case.beta, "replicas": case.replicas, "steps": case.steps}
        halves = sampled(
            key, jnp.asarray(J), jnp.asarray(x), transient=30, delayed=case.kind == "collective", **options
        )
        means = np.asarray(halves.means, dtype=float)
        if case.kind == "collective":
            assert halves.delayed is not None
            return _collective(case, J, x, means, np.asarray(halves.delayed, dtype=float))
        return _rows(case, J, x, means)


THEORIES = (*STEPS, "spread", "phi(x)", "one update")
"""The order of ``squared`` in the measurement of a case of rows."""
BY_ROW = ("naive", "TAP", "spread")
"""The order of ``by_row``."""


def _rows(case: Case, J: np.ndarray, x: np.ndarray, means: np.ndarray) -> dict[str, np.ndarray]:
    found = {name: steady_means(J, x, case.beta, step) for name, step in STEPS.items()}
    found["spread"] = spread_means(J, x, beta=case.beta)
    alone = np.asarray(sphere.magnetization(x, beta=case.beta))
    found["phi(x)"] = alone
    found["one update"] = np.asarray(sphere.magnetization(x + J @ alone, beta=case.beta))
    scale = np.sum((found["naive"] - alone) ** 2, axis=1)

    def product(m: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        return lambda a, b: np.sum((m - a) * (m - b), axis=1)

    def total(m: np.ndarray) -> Callable[[np.ndarray, np.ndarray], Any]:
        return lambda a, b: product(m)(a, b).sum() / scale.sum()

    squared, by_row = [], {}
    for name in THEORIES:
        squared.append(jackknife(total(found[name]), means))
        by_row[name] = product(found[name])(*means.mean(1)) / scale
    return {
        "squared": np.array(squared),
        "n_eff": 1 / np.sum(J**2, axis=1),
        "by_row": np.array([by_row[name] for name in BY_ROW]),
        "size": np.array(np.sqrt(scale.mean()) / sphere.radius(case.dim)),
        "forgotten": np.array(forgotten(means)),
    }


def _collective(
    case: Case, J: np.ndarray, x: np.ndarray, means: np.ndarray, delayed: np.ndarray
) -> dict[str, np.ndarray]:
    naive, tap = (steady_means(J, x, case.beta, STEPS[name]) for name in ("naive", "TAP"))
    spread = spread_means(J, x, beta=case.beta)
    independent, closed = independent_correlations(J, naive, case.beta), _closed(J, naive, case.beta)[0]

    def uniform(a: np.ndarray, b: np.ndarray) -> float:
        first, second = ((independent - half).mean() for half in (a, b))
        return float(first * second * len(J) ** 2 / np.sum(a * b))

    def mean_error(m: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
        return lambda a, b: float(np.sum((m - a) * (m - b)) / len(J) / sphere.squared_radius(case.dim))

    return {
        "delayed": np.array(
            [jackknife(f, delayed) for f in (squared_error(independent), squared_error(closed), uniform)]
        ),
        "means": np.array([jackknife(mean_error(m), means) for m in (naive, tap, spread)]),
        "mode": np.array(mean_field.collective_mode(J, naive, beta=case.beta)),
    }


def compute(out: Path, quick: bool, **options: Any) -> None:
    """Measure every case, see ``records.measure``; ``quick`` takes a few with few steps."""
    chosen: Sequence[Case] = cases()
    if quick:
        chosen = [case._replace(num_sites=8, dim=8, replicas=8, steps=4) for case in (chosen[0], chosen[-1])]
    records.measure(out, "spin-transformers-fidelity", _ARTIFACT, {"case": (measure, chosen)}, **options)


def record() -> list[tuple[Case, dict[str, np.ndarray]]]:
    """Every case of the book's record with what was measured; NaN where a theory found no steady state.

    >>> case, found = record()[0]
    >>> case == cases()[0], found["n_eff"].shape  # exact
    (True, (64,))
    """
    return records.measured("experiments.vector", _ARTIFACT, case=Case)[0]
