"""Reads numbers that the program of Bal (2026), Nonequilibrium, gave, and makes the same modules of this library.

The program is ``mcbal/neqnn`` at commit 647554e. It was run once, in double precision; ``neqnn.json`` beside this
module holds what it gave and how its parameters were made. Nothing of the program itself is here.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from spinbook import sphere
from spinbook.spin_transformer import (
    AtRest,
    Learned,
    Relax,
    Rotary,
    SpinTransformerModule,
    Unroll,
    as_fields,
    as_magnetizations,
    naive,
    sphere_per_head,
    unit_length,
)


class Recorded(NamedTuple):
    """A module of the program, built again here, and the program's results for it.

    ``module`` has the same parameters and makes as many ``updates``, None for the fixed point. ``x`` (N, D), ``mask``
    and ``state`` are the arguments of the call. The program's results are ``magnetizations`` (N, D),
    ``entropy_production`` (heads,), which is that between the last update and another one, and ``gradient`` (N, D) of
    sum(m^3) with respect to x.
    """

    module: SpinTransformerModule
    x: jax.Array
    mask: np.ndarray | None
    state: jax.Array | None
    updates: int | None
    magnetizations: np.ndarray
    entropy_production: np.ndarray
    gradient: np.ndarray


@cache
def _record() -> Any:
    return json.loads(
        resources.files("chapters.nonequilibrium_dynamics").joinpath("neqnn.json").read_text(encoding="utf-8")
    )


def cases() -> tuple[str, ...]:
    """The names of the recorded cases.

    >>> cases()[0], len(cases())
    ('learned, K=1', 8)
    """
    return tuple(_record()["cases"])


def _array(name: str) -> np.ndarray:
    """scale cos(a k + b sqrt(k)) for k = 1, 2, ..., numbers that any program can make."""
    shape, a, b, scale = _record()["recipe"]["arrays_of"][name]
    k = np.arange(1, math.prod(shape) + 1, dtype=float)
    return np.asarray(scale * np.cos(a * k + b * np.sqrt(k)).reshape(shape))


def load(case: str) -> Recorded:
    """One of ``cases()``. In double precision if JAX is set to it, and rounded otherwise.

    Raises ``KeyError`` for another name. Source: Bal (2026), Nonequilibrium, the program's class
    ``SpinModelTransformerModule``.

    >>> load("learned, K=2").x.shape
    (6, 12)
    """
    recipe, found = _record()["recipe"], _record()["cases"][case]
    updates = None if case.endswith("fixed point") else int(case.rpartition("K=")[2])
    plain, reset = case.startswith("neither"), case.startswith("reset")
    temperature, heads, dim = recipe["attn_temperature"], recipe["heads"], recipe["dim"]
    module = SpinTransformerModule(
        dim,
        heads,
        beta=recipe["beta"],
        key=jax.random.key(0),
        theory=naive,
        spheres=sphere_per_head,
        dynamics=Relax(tol=1e-13) if updates is None else Unroll(updates),
        inputs=as_magnetizations if case.startswith("magnetizations") else as_fields,
        start=AtRest if reset else Learned,
        feed_forward=None if plain else 4 * dim,
        query_key_maps=() if plain else (unit_length, Rotary()),
        # Without unit lengths their logits are divided by the components of a head.
        sharpness=temperature * heads / dim if plain else temperature,
    )
    module = eqx.tree_at(lambda m: m.to_queries_keys.weight, module, jnp.asarray(_array("to_qk")))
    if not reset:
        module = eqx.tree_at(lambda m: m.start.weight, module, jnp.asarray(_array("to_v")))
    if not plain:
        feed_forward = tuple(jnp.asarray(_array(name)) for name in ("ffn.0", "ffn.2"))
        module = eqx.tree_at(lambda m: (m.memory.up, m.memory.down), module, feed_forward)
    x = jnp.asarray(_array("x") * (0.5 if case.startswith("magnetizations") else 1.0))
    state = None
    if case.startswith("carried"):
        before = jnp.asarray(_array("state").reshape(len(x), heads, -1))
        state = sphere.large_d.inverse(before, jnp.asarray(recipe["beta"])).reshape(x.shape)
    return Recorded(
        module,
        x,
        None if plain else np.tril(np.ones((len(x), len(x)), bool)),
        state,
        updates,
        *(np.array(found[name]) for name in ("magnetizations", "entropy_production", "gradient_x")),
    )
