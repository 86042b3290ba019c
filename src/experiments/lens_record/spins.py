"""Takes a head of attention for vector spins, and compares the closure and its rivals with sampled spins.

What is asked, and what would refute it, is in the plan of the lens; ``records/lens-spins/run.py`` measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.vector import fidelity
from experiments.vector.fidelity import forgotten, jackknife, squared_error
from spinbook import lens, sphere
from spinbook.entropy_production import vector_delayed_correlations
from spinbook.vector import closure, mean_field

LAWS = ("columns alike", "with P", "linear", "one mode", "closure")
"""The order of ``predicted``."""
MEANS = ("naive", "TAP", "spread", "closure")
"""The order of ``means``."""


class Sizes(NamedTuple):
    """Replicas of each half, their steps, and steps before these that do not count."""

    replicas: int = 32
    steps: int = 60
    transient: int = 30


def head(attention: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Couplings (N, N) whose rows sum to one, and fields (N, d): values, scaled to a mean squared length of R^2."""
    J, v = np.asarray(attention, float), np.asarray(values, float)
    return J / J.sum(-1, keepdims=True), v * np.sqrt(sphere.squared_radius(v.shape[-1]) / np.mean(np.sum(v**2, -1)))


def _settled(J: np.ndarray, x: np.ndarray, beta: float, step: Any) -> np.ndarray:
    # Of naive updates one head takes 300 and a few; what TAP's do not reach by then they do not reach.
    most = 3000 if step is fidelity.STEPS["naive"] else 300
    steady = mean_field.steady_state(J, x, beta=beta, step=step, max_steps=most)
    return np.where(steady.converged, np.asarray(steady.value), np.nan)


def _delayed(J: np.ndarray, x: np.ndarray, m: np.ndarray, beta: float) -> np.ndarray:
    theta = x + J @ m
    return np.asarray(vector_delayed_correlations(J, theta, theta, beta=beta, response=sphere.exact))


def measure(key: Any, J: np.ndarray, x: np.ndarray, beta: float, sizes: Sizes) -> dict[str, Any]:
    """What sampling says of a head, and what was foreseen.

    ``delayed`` (2,): the squared relative error of naive delayed correlations, with its standard error; ``left`` (2,):
    the same of the closure's; ``means`` (4,): squared relative errors of ``MEANS``; ``predicted`` (5,): the relative
    error of naive delayed correlations by ``LAWS``; ``predicted_means``: that of naive means by the closure; ``sigma``
    (2,): the irreversibility of the sampled spins and its standard error; ``sigma_closure`` and ``sigma_naive``: by
    theory; ``forgotten``: the squared distance of the halves over what their scatter lets expect.
    """
    halves = fidelity.sampled(key, J, x, beta=beta, delayed=True, **sizes._asdict())
    means, delayed = (np.asarray(part, float) for part in halves)
    a, b = means.mean(1)
    states = {name: _settled(J, x, beta, fidelity.STEPS[name]) for name in ("naive", "TAP")}
    states["spread"] = fidelity.spread_means(J, x, beta=beta)
    found = closure.steady_state(J, x, beta=beta)
    lost = 0.0 if bool(found.converged) else np.nan
    states["closure"], D = (np.asarray(z) + lost for z in (found.magnetizations, found.delayed_correlations))
    m = states["naive"]
    naive = _delayed(J, x, m, beta)
    law = lens.sink_law(J, m, beta=beta)
    laws = law.uniform, law.with_sinks, law.linear, law.one_mode
    odd = beta * (J - J.T)
    return {
        "delayed": jackknife(squared_error(naive), delayed),
        "left": jackknife(squared_error(D), delayed),
        "means": [squared_error(states[name])(a, b) for name in MEANS],
        "predicted": [*laws, np.linalg.norm(D - naive) / np.linalg.norm(D)],
        "predicted_means": np.linalg.norm(states["closure"] - m) / np.linalg.norm(states["closure"]),
        "sigma": jackknife(lambda c, d: float(np.sum(odd * (c + d) / 2)), delayed),
        "sigma_closure": np.sum(odd * D),
        "sigma_naive": np.sum(odd * naive),
        "forgotten": forgotten(means),
    }


def order(J: np.ndarray, x: np.ndarray, beta: float, dims: Sequence[int], sizes: Sizes, seed: int) -> np.ndarray:
    """Squared relative errors that the closure and naive theory leave, with standard errors, at each D (n, 2, 2).

    Couplings are kept, and fields are as long as they were, in units of R, in random directions.
    """
    found = []
    for dim in dims:
        rng = np.random.default_rng([seed, dim])
        u = rng.normal(size=(len(J), dim))
        lengths = np.linalg.norm(x, axis=1) / sphere.radius(x.shape[1]) * sphere.radius(dim)
        u *= (lengths / np.linalg.norm(u, axis=1))[:, None]
        key = jax.random.key(rng.integers(2**31))
        halves = fidelity.sampled(key, J, u, beta=beta, delayed=True, **sizes._asdict())
        D = np.asarray(closure.steady_state(J, u, beta=beta).delayed_correlations)
        naive = _delayed(J, u, _settled(J, u, beta, fidelity.STEPS["naive"]), beta)
        delayed = np.asarray(halves.delayed, float)
        found.append([jackknife(squared_error(theory), delayed) for theory in (D, naive)])
    return np.array(found)
