"""How far one step of mean-field theory is from spins drawn anew: the table of the book.

Independent spins of given means are drawn at one time, and the exact response to the field that they make is averaged:
this is the mean after one step. Naive and TAP steps are held against it, with the large-D response and the exact one.

``python -m experiments run spin-transformers-one-step --out FOLDER`` computes all of ``cases()`` and writes
``one_step.json.gz``; the one beside this module is the record of the book, see ``record``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from experiments import designs, records
from spinbook import sphere, validate
from spinbook.precision import enable_x64
from spinbook.vector import mean_field

__all__ = ["NAMES", "Case", "System", "cases", "compute", "measure", "record", "systems"]

_ARTIFACT = "one_step.json.gz"
_SITES = 16
_BATCHES = 8
_STATES = (8, 32, 128, 32)
"""Components of the spins of each system, in the order in which they are drawn."""
_STRENGTH = 0.4
_RESPONSES = {"large D": sphere.large_d, "exact": sphere.exact}
_STEPS: Mapping[str, Any] = {"naive": mean_field.naive_step, "TAP": mean_field.tap_step}
NAMES = tuple(f"{step}, {response}" for response in _RESPONSES for step in _STEPS)
"""The theories, in the order of ``errors``."""


@designs.record(system=validate.count)
class Case(NamedTuple):
    """One row of the table: which of the ``systems()``, the strength of its couplings, and how much is drawn.

    ``draws`` is divided by the number of components, for the numbers that are drawn to be as many in every row.
    """

    system: int
    strength: float
    draws: int = 65536


class System(NamedTuple):
    """Couplings (N, N) of variance 1/N, means (N, D) of the spins before the step, and fields (N, D) of length R."""

    couplings: np.ndarray
    magnetizations: np.ndarray
    fields: np.ndarray


def cases() -> list[Case]:
    """Every row of the table: three dimensions at one strength, then four strengths at one dimension.

    >>> len(cases()), cases()[0]  # exact
    (7, Case(system=0, strength=0.4, draws=65536))
    """
    return [Case(k, _STRENGTH) for k in range(3)] + [Case(3, strength) for strength in (0.1, 0.2, 0.4, 0.8)]


_USED = 58765
"""How many numbers of its generator the audit of the chapter has used before it comes to the table.

The record was made of the systems that the audit draws there, and the audit measures its cases anew. With systems of a
seed of their own, the record and all that the audit draws afterwards would be other numbers.
"""


def systems(rng: np.random.Generator | None = None) -> list[System]:
    """The four systems of the table, with 8, 32, 128 and 32 components, drawn one after another.

    ``rng``: where they are drawn from; by default from where the audit of the chapter draws them.

    >>> [system.fields.shape for system in systems()]
    [(16, 8), (16, 32), (16, 128), (16, 32)]
    """
    rng = np.random.Generator(np.random.PCG64(2666).advance(_USED)) if rng is None else rng
    found = []
    for dim in _STATES:
        couplings = rng.normal(size=(_SITES, _SITES)) / np.sqrt(_SITES)
        # The spins before the step and others after it, of which only the former are used.
        states = rng.normal(size=(2, _SITES, dim))
        lengths = 0.6 + 0.2 * rng.uniform(-1, 1, (2, _SITES, 1))
        states *= sphere.radius(dim) * lengths / np.linalg.norm(states, axis=-1)[..., None]
        fields = rng.normal(size=(_SITES, dim))
        fields *= sphere.radius(dim) / np.linalg.norm(fields, axis=-1)[:, None]
        found.append(System(couplings, states[0], fields))
    return found


# More effort makes a program that runs for a moment no faster.
@partial(jax.jit, static_argnames="count", compiler_options={"xla_backend_optimization_level": 1})
def _averages(key: PRNGKeyArray, before: Array, m: Array, drive: Array, J: Array, count: int) -> Array:
    """Eight averages of the exact response over spins, less a part of mean zero, which removes most of the noise."""

    def batch(key: PRNGKeyArray) -> Array:
        s = sphere.sample(key, jnp.broadcast_to(before, (count, *before.shape)), beta=1.0)
        shift = jnp.einsum("ij,rjd->rid", J, s - m)
        rest = sphere.magnetization(drive + shift, beta=1.0) - sphere.first_derivative(drive, shift, beta=1.0)
        return rest.mean(0)

    return jax.lax.map(batch, jax.random.split(key, _BATCHES))


@partial(jax.jit, static_argnames=("step", "response"), compiler_options={"xla_backend_optimization_level": 0})
def _after(m: Array, J: Array, x: Array, step: Any, response: sphere.Response) -> Array:
    after: Array = step(m, J, x, beta=1.0, response=response)
    return after


def measure(case: Case, system: System | None = None) -> dict[str, np.ndarray]:
    """``errors`` (4,) of the theories of ``NAMES`` after one step at beta = 1, and the ``noise`` of the sampling.

    Both are root mean squares over sites of the length of a vector, in units of R; noise is a standard error, from
    eight batches. ``system``: by default that of the case.
    """
    with enable_x64(True):
        unit, m, x = systems()[case.system] if system is None else system
        dim = x.shape[1]
        J = case.strength * unit
        drive = x + J @ m
        before, count = sphere.field(m, beta=1.0), max(case.draws // dim // _BATCHES, 64)
        batches = np.asarray(_averages(jax.random.key(dim), before, m, drive, J, count))
        off = [
            _after(m, J, x, step, response) - batches.mean(0)
            for response in _RESPONSES.values()
            for step in _STEPS.values()
        ]
        off.append(np.std(batches, axis=0, ddof=1) / np.sqrt(_BATCHES))
        sizes = np.array([np.sqrt(np.mean(np.asarray(part) ** 2)) for part in off]) * np.sqrt(dim) / sphere.radius(dim)
        return {"errors": sizes[:-1], "noise": sizes[-1]}


def compute(out: Path, quick: bool, **options: Any) -> None:
    """Measure every case, see ``records.measure``, with all digits; ``quick`` takes two cases with few draws."""
    chosen = [case._replace(draws=1024) for case in cases()[:2]] if quick else cases()
    records.measure(out, "spin-transformers-one-step", _ARTIFACT, {"case": (measure, chosen)}, digits=17, **options)


def record() -> list[tuple[Case, dict[str, np.ndarray]]]:
    """Every case of the book's record with what was measured.

    >>> [case for case, _ in record()] == cases()  # exact
    True
    """
    return records.measured("experiments.vector", _ARTIFACT, case=Case)[0]
