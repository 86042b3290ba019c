"""The modules against dense linear algebra, PyTorch's own attention, and unrolled iterations."""

import numpy as np
import pytest
import torch
from torch import nn

from spinbook.adaptive_tap import attention, couplings, priors, vector

ROUNDING = 1e-12


def dense(J):
    return couplings.as_matrix(J).detach()


def seeded(make, *arguments, **options):
    torch.manual_seed(0)
    return make(*arguments, **options).double()


def fields(batch, num_spins, dim, seed=0):
    return torch.tensor(np.random.default_rng(seed).normal(scale=0.7, size=(batch, num_spins, dim)))


def adaptive(**options):
    return lambda: attention.AdaptiveTAPAttention(3, 2, **options)


MODULES = {
    "gaussian": adaptive(),
    "binary": adaptive(prior=priors.Binary(), tol=1e-13),
    "spherical": adaptive(prior=priors.Spherical(1.2), tol=1e-13),
    "free": lambda: attention.MeanFieldAttention(3, 2),
    "binary response": lambda: attention.EquilibriumAttention(attention.CouplingTensor(3, 2), response=torch.tanh),
    "two heads": lambda: attention.EquilibriumAttention(attention.SoftmaxCouplings(2, 2), attention.FeedForward(2)),
}


def with_parameters(module):
    """The module as a function of its input and all its parameters."""
    names = [name for name, _ in module.named_parameters()]

    def call(x, *values):
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (x,))

    return call, [parameter.detach().clone().requires_grad_() for parameter in module.parameters()]


@pytest.mark.parametrize("name", MODULES)
def test_gradients_for_every_option(name):
    call, parameters = with_parameters(seeded(MODULES[name]))
    x = fields(3, 3, 2).requires_grad_()
    assert torch.autograd.gradcheck(call, (x, *parameters), fast_mode=True)


def test_drawn_couplings_give_a_model_that_exists():
    for seed in range(10):
        module = attention.AdaptiveTAPAttention(12, 1, generator=torch.Generator().manual_seed(seed))
        J = dense(module.coupling_tensor())
        assert torch.equal(J, J.T)
        # Half, up to single precision.
        assert float(torch.linalg.eigvalsh(J)[-1]) <= 0.5 + 1e-5


def trained(module, learning_rate, num_updates, seed):
    """Adam on a task that asks for strong couplings: every spin answers with twice the field of its neighbour."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(16, module.num_spins, module.dim, generator=generator)
    optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate)
    losses = []
    for _ in range(num_updates):
        optimizer.zero_grad()
        loss = (module(x) - 2 * x.roll(1, 1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def test_training_cannot_leave_the_domain_that_literal_couplings_leave():
    def drawn(**options):
        return attention.AdaptiveTAPAttention(8, 6, generator=torch.Generator().manual_seed(0), **options)

    literal = drawn(symmetry=couplings.symmetrize)
    assert torch.equal(literal.coupling_tensor(), drawn().coupling_tensor())
    with pytest.raises(ValueError, match="positive definite, got smallest eigenvalue"):
        trained(literal, 0.1, 40, 0)
    losses = trained(drawn(), 0.1, 40, 0)
    assert np.isfinite(losses).all()


@pytest.mark.parametrize("strength", [0.5, 0.97])
def test_given_couplings_are_represented_exactly_and_survive_saving(make_vectors, strength):
    J, X = make_vectors(4, 3, 0.5, seed=1)
    J = strength * J / torch.linalg.eigvalsh(couplings.as_matrix(J))[-1]
    module = attention.AdaptiveTAPAttention(4, 3, J)
    assert torch.equal(module.coupling_tensor().detach(), J)
    np.testing.assert_allclose(module(X).detach(), vector.solve_gaussian(J, X).magnetizations, atol=ROUNDING)
    # The neighbourhood too: half of the way to where the model ends.
    with torch.no_grad():
        module.couplings.mul_(1 + 0.4 * (1 / strength - 1))
    assert torch.equal(module.coupling_tensor(), couplings.symmetrize(module.couplings))
    copy = attention.AdaptiveTAPAttention(4, 3).double()
    copy.load_state_dict(module.state_dict())
    assert torch.equal(copy(X), module(X))


def test_learned_module_solves_the_printed_equation_and_agrees_with_plain_iteration():
    module = seeded(attention.MeanFieldAttention, 5, 3)
    x = fields(4, 5, 3)
    with torch.no_grad():
        S = module(x)
        J = module.coupling_tensor()
        update = torch.einsum("ijab,njb->nia", J, S) - module.correction(S) + x
        np.testing.assert_allclose(update, S, atol=1e-11)
        iterated = torch.zeros_like(x)
        for _ in range(500):
            iterated = module.step(iterated, x)
    np.testing.assert_allclose(iterated, S, atol=1e-10)


def test_softmax_interaction_is_the_attention_of_pytorch():
    num_heads = 2
    module = seeded(attention.SoftmaxCouplings, 8, num_heads)
    x = fields(2, 5, 8)

    def heads(vectors):
        return vectors.unflatten(-1, (num_heads, -1)).transpose(1, 2)

    expected = nn.functional.scaled_dot_product_attention(
        heads(module.to_queries(x)), heads(module.to_keys(x)), heads(module.to_values(x))
    )
    out = module(x)(x)
    np.testing.assert_allclose(out.detach(), expected.transpose(1, 2).flatten(2).detach(), atol=ROUNDING)
    J = module.coupling_tensor(x)
    np.testing.assert_allclose(torch.einsum("nijab,njb->nia", J, x).detach(), out.detach(), atol=ROUNDING)


def test_unresolved_responses_are_an_error_and_evidence_on_request():
    strong = seeded(attention.MeanFieldAttention, 4, 3, max_steps=2)
    x = fields(3, 4, 3)
    with pytest.raises(RuntimeError, match="3 of 3 examples did not converge, with residuals up to"):
        strong(x)
    assert not bool(strong.solve(x).converged.any())
    binary = seeded(attention.AdaptiveTAPAttention, 4, 3, prior=priors.Binary(), max_steps=1)
    with pytest.raises(RuntimeError, match="3 of 3 examples did not converge"):
        binary(x)
