"""Benchmarks of ``spinbook.adaptive_tap`` against plain PyTorch and NumPy. Each takes its size; none knows its timing.

For the first one at (4, 16, 8) the reference rates, recorded on two cores of another day, are 0.1185 s for the authors'
code and 0.0029 s for the best prototype, both with the backward pass.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from benchmarks import Benchmark
from spinbook.adaptive_tap import AdaptiveTAPAttention, couplings

# Every side stops at a residual of 1e-12. The responses here magnify it by up to ten, their gradients by up to a
# hundred, and both are of order ten.
TOLERANCE = 1e-9


def _deviation(ours, baseline):
    """Largest difference in units of the tolerance."""
    return float(np.max(np.abs(ours - baseline)) / TOLERANCE)


def _vectors(batch, num_spins, dim):
    generator = torch.Generator().manual_seed(0)
    drawn = couplings.sample(num_spins, dim, generator=generator, dtype=torch.float64)
    x = torch.randn(batch, num_spins, dim, generator=generator, dtype=torch.float64) / dim**0.5
    return couplings.symmetrize(drawn), x


def _iterated_response(J, x):
    """Adaptive TAP with a Gaussian prior as the source iterates it, damped, with one linear system for V per step."""
    batch, N, D = x.shape
    eye = torch.eye(D, dtype=x.dtype)
    matrix, m, V = couplings.as_matrix(J), torch.zeros_like(x), x.new_zeros(batch, N, D, D)
    while True:
        spin = torch.linalg.inv(eye - V)
        field = torch.einsum("ijab,njb->nia", J, m) - torch.einsum("niab,nib->nia", V, m) + x
        new_m = torch.einsum("niab,nib->nia", spin, field)
        change = torch.stack([torch.block_diag(*(torch.linalg.inv(s) + v)) for s, v in zip(spin, V, strict=True)])
        chi = torch.linalg.inv(change - matrix).reshape(batch, N, D, N, D)
        own = torch.diagonal(chi, dim1=1, dim2=3).movedim(-1, 1)
        new_V = V + torch.linalg.inv(spin) - torch.linalg.inv(own)
        gap = max(float((new_m - m).detach().abs().max()), float((new_V - V).detach().abs().max()))
        if gap <= 1e-12:
            return m
        m, V = m + 0.5 * (new_m - m), V + 0.5 * (new_V - V)


def _with_gradient(response, x):
    source = x.clone().requires_grad_()
    out = response(source)
    (gradient,) = torch.autograd.grad(out.square().sum(), source)
    return np.stack([out.detach().numpy(), gradient.numpy()])


def gaussian_response(size=16, *, batch=4, dim=8):
    """m(x) and the gradient of |m|^2: one linear system, against the iteration that autograd unrolls."""
    J, x = _vectors(batch, size, dim)
    return Benchmark(
        f"adaptive_tap: Gaussian response and gradient, {batch} x {size} spins x {dim}",
        partial(_with_gradient, AdaptiveTAPAttention(size, dim, J), x),
        partial(_with_gradient, partial(_iterated_response, J), x),
        _deviation,
    )


BENCHMARKS = (gaussian_response,)
