"""Modules behind one face are what they are elsewhere in the book, and their diagnostics agree with other routes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from experiments.comparison import blocks, torch_blocks
from spinbook import sphere
from spinbook.adaptive_tap import couplings as coupling_tensors
from spinbook.spin_transformer import Unroll, naive

SITES, DIM = 5, 8
# Sums of some tens of products of numbers of order one.
ROUNDING = 100 * float(np.finfo(np.float32).eps)


@pytest.fixture
def x():
    return jax.random.normal(jax.random.key(1), (SITES, DIM), jnp.float32)


def _value(block, x):
    """Compiled as a whole, which is faster than operation by operation."""
    return np.asarray(eqx.filter_jit(lambda block, x: block(x).value)(block, x))


def _vanilla(**options):
    a, b = jax.random.split(jax.random.key(0))
    return blocks.Block(DIM, blocks.Attention(DIM, 2, key=a), blocks.FeedForward(DIM, key=b), **options)


def maps_in_torch(block):
    """The maps of a vanilla block of JAX under the names that they have in the block of PyTorch."""
    arrays = {
        "to_queries_keys_values.weight": block.mixer.to_queries_keys_values,
        "to_output.weight": block.mixer.to_output,
        "up.weight": block.feed_forward.up,
        "up.bias": block.feed_forward.up_bias,
        "down.weight": block.feed_forward.down,
        "down.bias": block.feed_forward.down_bias,
    }
    return {name: torch.tensor(np.asarray(array)) for name, array in arrays.items()}


def test_the_vanilla_blocks_of_both_frameworks_are_one_function(x):
    block = _vanilla()
    rng = np.random.default_rng(2)
    # Gains and biases away from one and zero, so that leaving them out would be seen.
    block = jax.tree.map(lambda a: a + jnp.asarray(0.3 * rng.normal(size=a.shape), a.dtype), block)
    twin = torch_blocks.Vanilla(DIM, 2)
    norms = {f"norms.{k}.weight": torch.tensor(np.asarray(norm.gain)) for k, norm in enumerate(block.norms)}
    norms |= {f"norms.{k}.bias": torch.tensor(np.asarray(norm.bias)) for k, norm in enumerate(block.norms)}
    twin.load_state_dict(maps_in_torch(block) | norms)
    with torch.no_grad():
        theirs = twin(torch.tensor(np.asarray(x))[None]).value[0].numpy()
    assert np.abs(_value(block, x) - theirs).max() < ROUNDING * np.abs(theirs).max()


def test_the_vanilla_block_is_the_encoder_layer_of_pytorch(x):
    block = _vanilla()
    answers = []
    for norm_first in (True, False):
        layer = torch.nn.TransformerEncoderLayer(
            DIM, 2, 4 * DIM, 0.0, "gelu", batch_first=True, norm_first=norm_first
        ).eval()
        copied = {
            layer.self_attn.in_proj_weight: block.mixer.to_queries_keys_values,
            layer.self_attn.out_proj.weight: block.mixer.to_output,
            layer.linear1.weight: block.feed_forward.up,
            layer.linear1.bias: block.feed_forward.up_bias,
            layer.linear2.weight: block.feed_forward.down,
            layer.linear2.bias: block.feed_forward.down_bias,
        }
        with torch.no_grad():
            for theirs, ours in copied.items():
                theirs.copy_(torch.tensor(np.asarray(ours)))
            answers.append(layer(torch.tensor(np.asarray(x))[None])[0].numpy())
    before, after = (np.abs(_value(block, x) - answer).max() for answer in answers)
    assert before < ROUNDING * np.abs(answers[0]).max()
    assert after > 0.1


def test_a_block_without_normalisation_has_no_norms(x):
    plain = _vanilla(normalize=False)
    assert plain.norms == ()
    assert np.asarray(plain.mixer(x)) == pytest.approx(
        np.asarray(plain(x).value - plain.feed_forward(x + plain.mixer(x)) - x), abs=10 * ROUNDING
    )


def test_one_naive_step_is_a_normalised_residual_block_without_values(x):
    block = blocks.SpinBlock(DIM, 2, naive, Unroll(1), key=jax.random.key(0))
    scaled = sphere.radius(DIM) * x / jnp.linalg.norm(x, axis=1, keepdims=True)
    phi = sphere.magnetization_large_d(scaled, beta=1.0)
    mixed = jnp.einsum("hij,jhd->ihd", block.module.couplings(x), phi.reshape(SITES, 2, -1)).reshape(SITES, DIM)
    expected = sphere.magnetization_large_d(scaled + mixed, beta=1.0)
    assert _value(block, x) == pytest.approx(np.asarray(expected), abs=ROUNDING)


def test_beta_of_the_memory_is_not_trained(x):
    memory = blocks.Memory(DIM, 3, key=jax.random.key(0))
    slope = eqx.filter_jit(eqx.filter_grad(lambda block: jnp.sum(block(x).value)))(memory)
    assert float(slope.module.beta) == 0
    assert float(jnp.abs(slope.module.to_keys.weight).max()) > 0


@pytest.fixture
def fields():
    return torch.randn(3, SITES, DIM, generator=torch.Generator().manual_seed(0))


def test_the_memory_settles_where_the_source_says(x):
    block = blocks.Memory(DIM, 40, key=jax.random.key(0))
    settled = eqx.filter_jit(lambda block, x: block.module.steady_state(x))(block, x)
    assert bool(settled.converged)
    assert _value(block, x) == pytest.approx(np.asarray(settled.value.magnetizations), abs=1e-4)


def test_adaptive_tap_is_the_limit_of_its_iteration(fields):
    block = torch_blocks.AdaptiveTAP(SITES, DIM)
    J = coupling_tensors.as_matrix(block.module.coupling_tensor().detach()).double()
    m, X = torch.zeros(SITES * DIM, dtype=torch.float64), torch_blocks.standardized(fields)[0].double().flatten()
    for _ in range(60):
        m = X + J @ m
    assert np.asarray(block(fields).value[0].detach()).ravel() == pytest.approx(m.numpy(), abs=1e-4)
