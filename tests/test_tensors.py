"""The modules in PyTorch as people use them: compiled, under autocast and inference mode, with odd tensors."""

import os

import pytest
import torch
from torch import nn

from spinbook.adaptive_tap import AdaptiveTAPAttention, MeanFieldAttention, solve_ising
from spinbook.free_energy import QueryKeyCouplings, VectorSpinAttention
from spinbook.spread_attention import SpreadAttention

N, D = 3, 4
MODULES = {
    "adaptive TAP": lambda: AdaptiveTAPAttention(N, D),
    "mean field": lambda: MeanFieldAttention(N, D),
    "spread": lambda: SpreadAttention(D, beta=2.0),
    "free energy": lambda: VectorSpinAttention(N, D, couplings=QueryKeyCouplings(N, D)),
}
# What PyTorch's compiler says of its own reading of gradients at a cut between two graphs.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")


@pytest.fixture(params=MODULES)
def module(request):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MODULES[request.param]()


def fields(*batch):
    return torch.randn(*batch, N, D, generator=torch.Generator().manual_seed(1))


@pytest.mark.skipif(bool(os.environ.get("SPINBOOK_TYPES")), reason="the compiler does not read checked functions")
@pytest.mark.parametrize("make", [AdaptiveTAPAttention, VectorSpinAttention])
def test_modules_of_one_class_and_other_sizes_are_compiled_one_after_the_other(make):
    torch.compiler.reset()
    for size in ((5, 8), (7, 4)):
        module, x = make(*size), torch.linspace(-1, 1, 2 * size[0] * size[1]).reshape(2, *size).requires_grad_()
        results = []
        for call in (torch.compile(module, backend="eager"), module):
            out = call(x)
            results.append((out, *torch.autograd.grad(out.square().sum(), (x, *module.parameters()))))
        torch.testing.assert_close(*results)
    torch.compiler.reset()


def test_autocast_changes_nothing_inside(module):
    x = fields(2).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        assert nn.Linear(D, D)(x).dtype == torch.bfloat16
        cast = module(x)
    plain = module(x)
    assert torch.equal(cast, plain)
    gradients = (torch.autograd.grad(out.square().sum(), (x, *module.parameters())) for out in (cast, plain))
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_inference_mode_gives_the_same_numbers(module):
    expected = module(fields(2)).detach()
    with torch.inference_mode():
        torch.testing.assert_close(module(fields(2)), expected)


def test_half_precision_of_the_arguments_is_solved_in_single():
    found = solve_ising(torch.zeros(2, 2).bfloat16(), torch.ones(2).bfloat16())
    assert found.magnetizations.dtype == torch.float32
