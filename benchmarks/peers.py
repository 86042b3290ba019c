"""The library beside other packages that do the same, where they are installed: none is a dependency.

``chaotax`` (0.0.1) and ``lyapax`` (0.3.0) compute Lyapunov exponents of maps in JAX. Both get the book's map as the
library defines it, four steps at a time, which is its period, so that all three push twelve tangents through as many
steps and orthonormalise every four: equal work, and an equal error. What they return is compared as any baseline is.
PyTorch's own encoder layer is another model than a module of spins, of the same sites, components and heads.

``neqnn``, the authors' own code at commit 647554e, has the module of vector spins with all options of a transformer.

To install them without touching the environment: ``pip install --no-deps --target FOLDER chaotax lyapax einops``, and
``PYTHONPATH=FOLDER``, for ``neqnn`` with a copy of its repository.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks import Benchmark
from benchmarks.spin_transformer import RELAXATIONS
from spinbook.self_attention import (
    EXPONENTS_ONLY,
    MEASURED,
    bifurcation,
    lyapunov_exponents,
    mean_field,
    paper_network,
    simulate,
)
from spinbook.spin_transformer import SpinTransformerModule

__all__ = ["PEERS", "installed", "many_orbits", "one_orbit", "torch_block"]

# Orbits contract here, and every exponent is a sharp number.
CONTRACTING = (0.8, 1.15)


def installed():
    """The peers that can be run here."""
    names = [name for name in ("chaotax", "lyapax") if importlib.util.find_spec(name)]
    runs = [partial(make, name) for make in (one_orbit, many_orbits) for name in names]
    theirs = [partial(make, package="neqnn") for make in RELAXATIONS] if importlib.util.find_spec("neqnn") else []
    return [*runs, *theirs, torch_block]


def _four_steps(beta):
    """(K M,) to the same after one period of the positions, in JAX."""
    couplings = mean_field.couplings(paper_network(), beta=beta)

    def advance(state):
        window = mean_field.Window(state.reshape(4, 3), jnp.asarray(4), jnp.asarray(0))
        for _ in range(4):
            window, _ = mean_field.step(couplings, window)
        return window.attention.ravel()

    return advance


def _spectrum(name, steps, transient, beta, start):
    """All twelve exponents per step by the package of this name."""
    package = importlib.import_module(name)
    advance = _four_steps(beta)
    if name == "chaotax":
        run = package.lyapunov_spectrum(advance, rollout_steps=steps // 4, warmup_steps=transient // 4, discard_steps=0)
        # It computes the number of components with JAX, and a compiled function needs to know it.
        with jax.ensure_compile_time_eval():
            found = run(start, key=jax.random.key(0))
    else:
        options = {"dt": 1.0, "n_steps": steps // 4, "t_transient": transient / 4, "renorm_every": 1}
        found = package.lyapunov_spectrum(advance, start, **options).exponents
    return jnp.sort(found)[::-1] / 4


def _start(beta):
    """A full window whose next token carries position 0."""
    return simulate(paper_network(), beta=beta, steps=8).window


def _apart(steps, ours, theirs):
    """The logarithm of a bounded factor over the number of steps."""
    return float(np.max(np.abs(ours - theirs)) / (20 / steps))


def one_orbit(name, *, steps=20_000, transient=400):
    """All twelve exponents of one orbit, orthonormalised every four steps on both sides."""
    beta = 1.1
    window = _start(beta)
    start = jnp.asarray(window.attention.ravel())
    theirs = jax.jit(lambda start: _spectrum(name, steps, transient, beta, start))

    def ours():
        options = {"steps": steps, "transient": transient, "num_exponents": 12, "num_blocks": 2}
        return lyapunov_exponents(paper_network(), beta=beta, start=window, **options).exponents

    return Benchmark(
        f"all 12 exponents of one orbit, {steps} steps, against {name}",
        ours,
        lambda: np.asarray(theirs(start)),
        partial(_apart, steps),
    )


def many_orbits(name, size=64, *, steps=4000, transient=400):
    """The same for ``size`` temperatures at once; theirs in one ``jax.vmap``."""
    betas = np.linspace(*CONTRACTING, size)
    start = jnp.zeros(12).at[::3].set(0.1)
    theirs = jax.jit(jax.vmap(lambda beta: _spectrum(name, steps, transient, beta, start)))

    def ours():
        numerics = MEASURED._replace(num_blocks=2, orthonormalise_every=4)
        options = {"steps": steps, "transient": transient, "num_exponents": 12, "numerics": numerics}
        window = np.asarray(start).reshape(4, 3)
        found = bifurcation(paper_network(), betas, start=window, observation=EXPONENTS_ONLY, **options)
        return found.exponents.values

    return Benchmark(
        f"all 12 exponents of {size} orbits, {steps} steps, against {name}",
        ours,
        lambda: np.asarray(theirs(jnp.asarray(betas))),
        partial(_apart, steps),
    )


def torch_block(size=512, *, dim=512, num_heads=8):
    """A module of spins against ``torch.nn.TransformerEncoderLayer``, forward; one is no substitute for the other."""
    module = SpinTransformerModule(dim, num_heads, key=jax.random.key(0), dtype=jnp.float32)
    arrays, rest = eqx.partition(module, eqx.is_array)
    compiled = jax.jit(lambda arrays, x: eqx.combine(arrays, rest)(x))
    x = jax.random.normal(jax.random.key(1), (size, dim), jnp.float32)
    layer = torch.nn.TransformerEncoderLayer(dim, num_heads, 4 * dim, dropout=0.0, batch_first=True).eval()
    given = torch.tensor(np.asarray(x))[None]

    def theirs():
        with torch.no_grad():
            return layer(given)[0].numpy()

    return Benchmark(
        f"spin_transformer.SpinTransformerModule, ({size}, {dim}), {num_heads} heads, forward, against PyTorch's layer",
        lambda: compiled(arrays, x),
        theirs,
        lambda ours, theirs: 0.0 if np.isfinite(ours).all() and np.isfinite(theirs).all() else np.inf,
    )


PEERS = (one_orbit, many_orbits, torch_block)
