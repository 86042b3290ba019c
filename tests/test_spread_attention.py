"""The PyTorch module against the JAX module with the same weights, and its gradients, masks, batches and refusals."""

from functools import partial

import equinox as eqx
import jax
import numpy as np
import pytest
import torch
from torch import nn

from spinbook import sphere
from spinbook.spin_transformer import Relax, SpinTransformerModule, spread
from spinbook.spread_attention import SpreadAttention

# Two sites of four components with W_Q = 1, W_K = 1/2, at beta = 2, and the means by the loop of the lesson, with
# Bessel functions of SciPy.
INPUTS = [[1.0, 2.0, -1.0, 0.5], [0.0, -1.0, 3.0, 1.0]]
MEANS = [
    [0.214751215198, 0.402772969513, -0.134562832547, 0.134105068483],
    [0.035460637040, -0.090953545031, 0.450163820291, 0.179605137630],
]


def shared(dim, num_heads, beta, seed=0):
    """Both modules in double precision, solved to rounding, with the weights of the JAX module."""
    ours = SpinTransformerModule(
        dim,
        num_heads,
        beta=jax.numpy.asarray(beta),
        key=jax.random.key(seed),
        theory=spread,
        response=sphere.exact,
        dynamics=Relax(1e-13, max_steps=500),
    )
    module = SpreadAttention(dim, num_heads, beta=beta, tol=1e-13).double()
    module.load_state_dict({"to_queries_keys.weight": torch.tensor(np.asarray(ours.to_queries_keys.weight))})
    return ours, module


def inputs(*shape, seed=0):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape))


def causal(sites):
    return torch.ones(sites, sites).tril().bool()


def test_both_modules_give_the_test_vector():
    ours, module = shared(4, 1, 2.0)
    weight = np.concatenate([np.eye(4), np.eye(4) / 2])
    ours = eqx.tree_at(lambda made: made.to_queries_keys.weight, ours, jax.numpy.asarray(weight))
    module.load_state_dict({"to_queries_keys.weight": torch.tensor(weight)})
    np.testing.assert_allclose(ours(np.array(INPUTS)), MEANS, rtol=0, atol=1e-12)
    np.testing.assert_allclose(module(torch.tensor(INPUTS, dtype=torch.float64)).detach(), MEANS, rtol=0, atol=1e-12)


@eqx.filter_jit
@partial(eqx.filter_grad, has_aux=True)
def slopes(given, mask, along):
    """By the module and its inputs, of the means weighed with ``along``, and the means: compiled once for all cases."""
    ours, x = given
    value = ours(x, mask)
    return jax.numpy.sum(value * along), value


@pytest.mark.parametrize(("beta", "mask"), [(1.0, None), (20.0, causal(5))])
def test_means_and_gradients_are_those_of_the_jax_module(beta, mask):
    ours, module = shared(8, 2, beta)
    x, along = inputs(5, 8).requires_grad_(), inputs(5, 8, seed=1)
    value = module(x, mask)
    by_weight, by_x = torch.autograd.grad((value * along).sum(), [module.to_queries_keys.weight, x])
    allowed = np.ones((5, 5), bool) if mask is None else mask.numpy()
    theirs, means = slopes((ours, jax.numpy.asarray(x.detach())), allowed, along.numpy())
    np.testing.assert_allclose(value.detach(), means, rtol=0, atol=2e-12)
    np.testing.assert_allclose(by_weight, theirs[0].to_queries_keys.weight, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(by_x, theirs[1], rtol=1e-8, atol=1e-10)


def test_gradients_are_those_of_differences_of_beta_too():
    beta = nn.Parameter(torch.tensor(1.5, dtype=torch.float64))
    module = SpreadAttention(6, 2, beta=beta, tol=1e-13).double()
    assert set(dict(module.named_parameters())) == {"beta", "to_queries_keys.weight"}

    def call(x, weight, beta):
        return torch.func.functional_call(module, {"to_queries_keys.weight": weight, "beta": beta}, (x, causal(3)))

    x = inputs(2, 3, 6).requires_grad_()
    assert torch.autograd.gradcheck(call, (x, module.to_queries_keys.weight, module.beta), fast_mode=True)


def test_examples_of_a_batch_do_not_meet_and_masks_may_differ():
    _, module = shared(8, 2, 2.0)
    x = inputs(2, 3, 4, 8)
    masks = torch.stack([causal(4), causal(4).T])[:, None].expand(2, 3, 4, 4)
    together = module(x, masks)
    assert together.shape == x.shape
    for i in range(2):
        for j in range(3):
            np.testing.assert_allclose(together[i, j].detach(), module(x[i, j], masks[i, j]).detach(), atol=1e-11)


def test_true_means_may_attend_and_padding_changes_nothing():
    _, module = shared(8, 1, 2.0)
    x = inputs(4, 8)
    changed = x.clone()
    changed[3] = inputs(8, seed=5)
    before, after = module(x, causal(4)), module(changed, causal(4))
    np.testing.assert_allclose(before[:3].detach(), after[:3].detach(), atol=1e-11)
    # Without a mask the first sites see the last.
    assert (module(x) - module(changed))[:3].abs().max() > 1e-3

    real = torch.tensor([True, True, True, False])
    padded = torch.where(real[:, None], x, 0).requires_grad_()
    value = module(padded, real & real[:, None])
    value.square().sum().backward()
    np.testing.assert_allclose(value[:3].detach(), module(x[:3]).detach(), atol=1e-11)
    assert not value[3].any()
    assert torch.isfinite(padded.grad).all()


def test_a_solution_is_given_with_evidence_or_refused():
    module = SpreadAttention(8, beta=5.0, max_steps=2)
    found = module.solve(inputs(3, 4, 8).float())
    assert found.converged.shape == found.residual.shape == (3,)
    assert not found.converged.any()
    with pytest.raises(RuntimeError, match="expected a steady state in 2 steps, got a residual of"):
        module(inputs(3, 4, 8).float())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: SpreadAttention(6, 3), "num_heads: expected a divisor of dim, 6, below its half, got 3"),
        (lambda: SpreadAttention(8, beta=0.0), "beta: expected numbers > 0, got 0"),
        (lambda: SpreadAttention(8)(torch.ones(2, 7)), r"x: expected shape \(\.\.\., \*, 8\), got \(2, 7\)"),
        (lambda: SpreadAttention(8).half()(torch.ones(2, 8)), "x: expected single or double precision"),
        (lambda: SpreadAttention(8)(torch.zeros(2, 8)), "x: expected vectors that are not zero"),
        (lambda: SpreadAttention(8)(torch.ones(2, 8), causal(3)), "mask: expected booleans of shape"),
    ],
)
def test_what_cannot_be_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
