"""The hot paths on a GPU, where there is one: the same numbers as on the CPU, within what rounding allows.

On the CPU the same code runs against itself, so that it is known to run before a GPU is at hand.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from spinbook import lyapunov
from spinbook.adaptive_tap import AdaptiveTAPAttention
from spinbook.adaptive_tap import couplings as tensors
from spinbook.free_energy import VectorSpinModel
from spinbook.free_energy import couplings as free
from spinbook.ising import mean_field, stochastic
from spinbook.self_attention import couplings, paper_network, token_window
from spinbook.self_attention import mean_field as attention
from spinbook.spin_transformer import SpinTransformerModule
from spinbook.vector import mean_field as vector


def jax_devices():
    try:
        gpus = jax.devices("gpu")
    except RuntimeError:
        gpus = []
    return [jax.devices("cpu")[0], gpus[0] if gpus else None]


def torch_devices():
    return ["cpu", "cuda" if torch.cuda.is_available() else None]


def on(devices):
    cpu, gpu = devices
    skip = pytest.mark.skipif(gpu is None, reason="no GPU")
    return [pytest.param(cpu, id="cpu"), pytest.param(gpu, id="gpu", marks=[pytest.mark.gpu, skip])]


KEYS = jax.random.split(jax.random.key(0), 4)
J = np.asarray(jax.random.normal(KEYS[0], (12, 12))) / np.sqrt(12) / 2
FIELDS = np.asarray(jax.random.normal(KEYS[1], (12, 8)))


def ising_tap(device):
    return mean_field.simulate(jnp.zeros(12), J, FIELDS[:, 0], beta=0.7, steps=10)


def vector_tap(device):
    return vector.tap_step(jnp.zeros((12, 8)), J, FIELDS, beta=1.0)


def module(device):
    made = SpinTransformerModule(8, 2, key=jax.random.key(3))
    return jax.value_and_grad(lambda x: jnp.sum(made(x) ** 2))(jnp.asarray(FIELDS))[1]


def attention_map(device):
    network = paper_network()
    return attention.simulate(couplings(network, beta=1.0), token_window(network), steps=20)[1].attention


def henon(device):
    found = lyapunov.exponents(
        lambda x, a: jnp.stack([1 - a * x[0] ** 2 + x[1], 0.3 * x[0]]), [0.1, 0.1], 1.4, steps=40, transient=0
    )
    return found.exponents


def spins(device):
    drawn = partial(stochastic.simulate, jax.random.key(1), jnp.ones((64, 12)), J, FIELDS[:, 0], beta=0.7, steps=5)
    return drawn().spins


# Rounding of some hundred operations, magnified by at most a hundred: iterations stop at residuals of 1e-10 and less,
# and the orbit of the Henon map has grown an error by exp(0.42 * 40).
ALLOWED = {ising_tap: 1e-9, vector_tap: 1e-8, module: 1e-8, attention_map: 1e-10, henon: 1e-6, spins: 0}


@pytest.mark.parametrize("device", on(jax_devices()))
@pytest.mark.parametrize("compute", ALLOWED, ids=lambda function: function.__name__)
def test_jax_computes_the_same_on_every_device(compute, device):
    with jax.default_device(jax.devices("cpu")[0]):
        expected = np.asarray(compute(None))
    with jax.default_device(device):
        found = compute(device)
    if isinstance(found, jax.Array):
        assert found.devices() == {device}
    assert np.abs(np.asarray(found) - expected).max() <= ALLOWED[compute]


def adaptive_tap(device):
    generator = torch.Generator().manual_seed(0)
    drawn = tensors.symmetrize(tensors.sample(6, 4, generator=generator, dtype=torch.float64))
    x = torch.randn(3, 6, 4, generator=generator, dtype=torch.float64)
    return AdaptiveTAPAttention(6, 4, drawn).to(device)(x.to(device))


def free_energy(device):
    generator = torch.Generator().manual_seed(0)
    drawn = free.sample(6, 4, generator=generator, dtype=torch.float64)
    x = torch.randn(3, 6, 4, generator=generator, dtype=torch.float64)
    return VectorSpinModel(6, 4, 1.0, drawn).to(device).magnetizations(x.to(device))


@pytest.mark.parametrize("device", on(torch_devices()))
@pytest.mark.parametrize("compute", [adaptive_tap, free_energy], ids=lambda function: function.__name__)
def test_pytorch_computes_the_same_on_every_device(compute, device):
    expected, found = compute("cpu"), compute(device)
    assert found.device.type == device
    assert (found.cpu() - expected).abs().max() <= 1e-9
