"""Benchmarks of ``spinbook.free_energy`` against plain PyTorch and SciPy. Each takes its size; none knows its timing.

For the first one at (8, 64, 64) the reference rates, recorded on two cores of another day, are 0.110 s for the authors'
code and 0.0248 s for the best prototype; its baseline here is faster than the authors' code, which does more einsums.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from benchmarks import Benchmark
from spinbook.free_energy import VectorSpinModel, couplings

# Both sides stop at a residual of 1e-12 or at the rounding of their products of N x N matrices, and neither curvature
# nor coupling here magnifies it by more than ten.
TOLERANCE = 1e-10


def _deviation(tolerance, ours, baseline):
    """Largest difference in units of the tolerance."""
    return float(np.max(np.abs(ours - baseline)) / tolerance)


def system(batch, num_spins, dim):
    """Couplings (N, N) and fields (batch, N, D) in double precision."""
    generator = torch.Generator().manual_seed(0)
    J = couplings.sample(num_spins, dim, generator=generator, dtype=torch.float64)
    h = torch.randn(batch, num_spins, dim, generator=generator, dtype=torch.float64) / dim**0.5
    return J, h


def _plain_mean_spins(J, h, beta):
    """1/2 V^-1 h at the saddle, by Newton steps in the graph, with the derivatives of phi term by term over (N, D)."""
    t = torch.ones(h.shape[:-1], dtype=h.dtype)
    while True:
        P = torch.linalg.inv(torch.diag_embed(t) - J)
        m = torch.einsum("bij,bjf->bif", P, h) / 2
        quadratic = torch.einsum("bji,bjf,bkf,bik->bi", P, h, h, P)
        slope = beta - P.diagonal(dim1=-2, dim2=-1) / 2 - beta / 4 * quadratic
        if slope.abs().max() <= 1e-12 * beta:
            return m
        curvature = P * P / 2 + beta / 2 * torch.einsum("bij,bik,bkf,blf,blj->bij", P, P, h, h, P)
        t = t - torch.linalg.solve(curvature, slope)


def _with_gradient(mean_spins, h):
    source = h.clone().requires_grad_()
    m = mean_spins(source)
    (gradient,) = torch.autograd.grad(m.square().sum(), source)
    return np.stack([m.detach().numpy(), gradient.numpy()])


def mean_spins_and_gradient(size=64, *, batch=8, dim=64):
    """m(h) and the gradient of |m|^2, against Newton steps that autograd unrolls."""
    J, h = system(batch, size, dim)
    model = VectorSpinModel(size, dim, 1.0, J)
    return Benchmark(
        f"free_energy: mean spins and gradient, {batch} x {size} spins x {dim}",
        partial(_with_gradient, model.magnetizations, h),
        partial(_with_gradient, partial(_plain_mean_spins, J, beta=1.0), h),
        partial(_deviation, TOLERANCE),
    )


BENCHMARKS = (mean_spins_and_gradient,)
