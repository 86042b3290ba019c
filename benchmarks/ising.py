"""Benchmarks of ``spinbook.ising`` against plain PyTorch and NumPy. Each takes its size; none knows how it is timed.

On two cores of 2.5 GHz a ``torch.bernoulli`` loop at 512 spins and 1024 replicas was recorded at 54 to 65 thousand
replica-steps a second, the product of matrices alone at 237 thousand; only the ratio carries over to another machine.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks import Benchmark
from spinbook.ising import sherrington_kirkpatrick as sk
from spinbook.ising import stochastic


def system(num_spins, dtype):
    """A system in its ordered phase, whose mean magnetisation a sampler must find."""
    J_key, h_key = jax.random.split(jax.random.key(0))
    J = sk.sample_couplings(J_key, num_spins, mean=1.0, std=0.1, dtype=dtype)
    return J, jax.random.uniform(h_key, (num_spins,), dtype, -0.5, 0.5)


def standard_errors_apart(ours, baseline):
    """Distance of the means of two samples of independent replicas, in units of six standard errors."""
    variance = ours.var(ddof=1) / ours.size + baseline.var(ddof=1) / baseline.size
    return float(abs(ours.mean() - baseline.mean()) / (6 * np.sqrt(variance)))


def simulate(size=1024, *, num_spins=512, steps=20, beta=1.5):
    """``size`` replicas in single precision, against torch.bernoulli(torch.sigmoid(2 beta (h + s J^T)))."""
    J, h = system(num_spins, jnp.float32)
    start = jnp.ones((size, num_spins), jnp.float32)
    torch_J, torch_h = (torch.from_numpy(np.array(x)) for x in (J, h))
    generator = torch.Generator().manual_seed(1)

    def ours():
        return stochastic.simulate(jax.random.key(2), start, J, h, beta=beta, steps=steps).spins.mean(axis=1)

    def baseline():
        s = torch.ones(size, num_spins)
        for _ in range(steps):
            probability = torch.sigmoid(2 * beta * (torch_h + s @ torch_J.T))
            s = 2 * torch.bernoulli(probability, generator=generator) - 1
        return s.mean(dim=1).numpy()

    name = f"ising.stochastic.simulate, {num_spins} spins x {size} replicas x {steps} steps, float32"
    return Benchmark(name, ours, baseline, standard_errors_apart)


BENCHMARKS = (simulate,)
