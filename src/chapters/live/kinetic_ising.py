"""A crowd of 64 spins, by the naive equation, by TAP and in random runs: markup of the live model, and its picture."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from chapters import scripts
from spinbook.ising import mean_field, stochastic

_SEED, _SPINS = 2666, 64


def _crowd(beta: float, disorder: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The disorder z, the inputs x (both in hundredths), the couplings, and the spin with the largest naive error."""
    rng = np.random.default_rng(_SEED)
    z = np.round(rng.normal(size=(_SPINS, _SPINS)), 2)
    x = rng.uniform(-0.5, 0.5, size=_SPINS)
    x = np.round(x - x.mean() + 0.05, 2)
    J = 1 / _SPINS + disorder * z / np.sqrt(_SPINS)
    m = mean_field.steady_state(J, x, beta=beta).value
    return z, x, J, int(np.argmax(mean_field.naive_step(m, J, x, beta=beta) - m))


def markup(*, beta: float = 1.6, disorder: float = 0.5, ticks: int = 40, runs: int = 128) -> str:
    """The crowd and the scripts that run it: couplings are 1 / N + ``disorder`` z / sqrt(N)."""
    z, x, _, listener = _crowd(beta, disorder)
    hundredths = {name: np.round(100 * values).astype(int).tolist() for name, values in (("z", z), ("x", x))}
    settings = {"listener": listener, "beta": beta, "disorder": disorder, "ticks": ticks, "runs": runs}
    return scripts.markup("kinetic-ising", hundredths | settings)


def still(*, beta: float = 1.6, disorder: float = 0.5, ticks: int = 40, runs: int = 128) -> Figure:
    """The mean of the crowd against time, and the fields of one spin under its tanh."""
    _, x, J, i = _crowd(beta, disorder)
    up, key = np.ones((runs, _SPINS)), jax.random.key(_SEED)
    states = stochastic.simulate(key, up, J, x, beta=beta, steps=ticks, observable=jnp.array).observed
    fields = beta * (x[i] + np.asarray(states)[ticks // 2 - 1 : -1] @ J[i]).ravel()
    with plt.style.context("spinbook.book"):
        figure, (crowd, spin) = plt.subplots(1, 2, figsize=(7, 2.9))
        for name, step, line in (("naive", mean_field.naive_step, "C1--"), ("TAP", mean_field.tap_step, "C0-")):
            course = mean_field.simulate(up[0], J, x, beta=beta, steps=ticks, step=step, observable=jnp.mean)
            crowd.plot(np.r_[1.0, course], line, label=name)
        few = np.arange(2, ticks + 1, 3)
        crowd.plot(few, states.mean(axis=(1, 2))[few - 1], "ko", mfc="w", label="runs")
        crowd.set(xlabel="tick", ylabel="mean of the crowd", ylim=(-0.2, 1.05))
        crowd.legend()
        axis = np.linspace(-4, 4, 121)
        counts, edges = np.histogram(fields, bins=48, range=(-4, 4))
        spin.bar(edges[:-1], 0.9 * counts / counts.max(), np.diff(edges), bottom=-1, align="edge", color="0.8")
        spin.plot(axis, np.tanh(axis), "k")
        spin.plot(fields.mean(), np.tanh(fields.mean()), "C1s", ms=7)
        spin.plot(fields.mean(), np.tanh(fields).mean(), "kD", mfc="w", ms=6)
        spin.set(xlabel=r"field of one spin, times $\beta$", ylabel="its answer")
    return figure
