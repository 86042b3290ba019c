"""PyTorch's compiler, transformations and precisions against the plain call of the same modules in double precision."""

import os
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from spinbook import transforms, validate
from spinbook.adaptive_tap import AdaptiveTAPAttention, MeanFieldAttention, attention, couplings, priors, vector
from spinbook.free_energy import QueryKeyCouplings, VectorSpinAttention, VectorSpinModel
from spinbook.spread_attention import SpreadAttention

# What PyTorch's compiler says of its own reading of gradients at a cut between two graphs.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")

compiles = pytest.mark.skipif(
    bool(os.environ.get("SPINBOOK_TYPES")), reason="the compiler does not read functions wrapped to check their types"
)

N, D = 3, 4
BOUND = couplings.Bounded()
MODULES = {
    "linear system": lambda: AdaptiveTAPAttention(N, D),
    "bounded": lambda: AdaptiveTAPAttention(N, D, symmetry=lambda J: BOUND(4 * J)),
    "adaptive TAP": lambda: AdaptiveTAPAttention(N, D, prior=priors.Spherical(1.0)),
    "mean field": lambda: MeanFieldAttention(N, D),
    "spread": lambda: SpreadAttention(D, beta=2.0),
    "free energy": lambda: VectorSpinAttention(N, D),
    "free energy of content": lambda: VectorSpinAttention(N, D, couplings=QueryKeyCouplings(N, D)),
}


def made(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MODULES[name]().double()


def fields(*batch):
    return torch.randn(*batch, N, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def answer_and_gradients(call, module, x):
    x = x.clone().requires_grad_()
    out = call(x)
    return [out.detach(), *torch.autograd.grad(out.float().square().sum(), [x, *module.parameters()])]


def assert_compiled_as_called(name, **options):
    module, x = made(name), fields(2)
    torch.compiler.reset()
    compiled = torch.compile(module, **options)
    pairs = zip(answer_and_gradients(compiled, module, x), answer_and_gradients(module, module, x), strict=True)
    for ours, plain in pairs:
        # The same operations, which a compiler may add up in another order.
        np.testing.assert_allclose(ours, plain, rtol=1e-10, atol=1e-12)


ONE_GRAPH = ("linear system", "bounded")
SEVERAL_GRAPHS = [name for name in MODULES if name not in ONE_GRAPH]


@compiles
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_a_linear_system_is_one_graph(name):
    assert_compiled_as_called(name, backend="aot_eager", fullgraph=True)


@pytest.mark.slow
@compiles
@pytest.mark.parametrize("name", SEVERAL_GRAPHS)
def test_solvers_run_between_graphs(name):
    assert_compiled_as_called(name, backend="aot_eager")


@compiles
@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="inductor needs a C++ compiler")
@pytest.mark.parametrize("name", MODULES)
def test_every_module_compiles(name):
    assert_compiled_as_called(name, backend="inductor")


@compiles
@pytest.mark.slow
def test_compiled_solvers_still_say_that_they_failed():
    torch.compiler.reset()
    hasty = torch.compile(MeanFieldAttention(N, D, max_steps=1).double(), backend="eager")
    with pytest.raises(RuntimeError, match="2 of 2 examples did not converge"):
        hasty(fields(2))


@pytest.mark.parametrize("name", ["linear system", "bounded"])
def test_a_linear_system_is_exported(name):
    module, x = made(name), fields(2)
    program = torch.export.export(module, (x,), strict=False)
    np.testing.assert_allclose(program.module()(x).detach(), module(x).detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["mean field", "spread", "free energy"])
def test_solvers_refuse_to_be_exported_in_words(name):
    with pytest.raises(RuntimeError, match=r"takes a number of steps that depends on values, which torch\.vmap"):
        torch.export.export(made(name), (fields(2),), strict=False)


@pytest.mark.parametrize("name", ["linear system", "bounded", "free energy"])
def test_vmap_is_the_leading_axis_and_jacrev_the_jacobian(name):
    module, x = made(name), fields(2, 1)
    together = torch.stack([module(one) for one in x])
    np.testing.assert_allclose(torch.vmap(module)(x).detach(), together.detach(), rtol=1e-10, atol=1e-12)
    jacobian = torch.func.jacrev(module)(x[0])
    plain = torch.autograd.functional.jacobian(module, x[0])
    np.testing.assert_allclose(jacobian.detach(), plain, rtol=1e-9, atol=1e-11)


def test_vmap_over_parameters_is_an_ensemble():
    modules = [made("bounded") for _ in range(2)]
    with torch.no_grad():
        modules[1].couplings.mul_(0.1)
    states, _ = torch.func.stack_module_state(modules)
    x = fields(2)
    out = torch.vmap(lambda state: torch.func.functional_call(modules[0], state, (x,)))(states)
    for k, module in enumerate(modules):
        np.testing.assert_allclose(out[k].detach(), module(x).detach(), rtol=1e-10, atol=1e-12)


def test_iterations_refuse_vmap_in_words():
    with pytest.raises(RuntimeError, match="a fixed point takes a number of steps that depends on values"):
        torch.vmap(made("mean field"))(fields(2, 1))


def test_the_jacobian_of_an_iteration_is_that_of_its_implicit_gradient():
    module, x = made("mean field"), fields(1)
    jacobian = torch.autograd.functional.jacobian(module, x)
    step = 1e-5
    direction = fields(1).flip(1)
    ends = [module(x + sign * step * direction).detach() for sign in (1, -1)]
    along = (jacobian.flatten(3) @ direction.flatten()).detach()
    # Central differences, of a solution to 1000 roundings: errors of step^2 and of 1e-13 / step.
    np.testing.assert_allclose(along, (ends[0] - ends[1]) / (2 * step), atol=1e-7)


def test_what_would_be_an_error_is_nan_where_values_are_hidden():
    J, x = made("linear system").coupling_tensor().detach(), fields()
    too_strong = torch.stack([J, 10 * J])
    with pytest.raises(ValueError, match="positive definite"):
        vector.mean_response(too_strong[1], x)
    out = torch.vmap(lambda J: vector.mean_response(J, x))(too_strong)
    assert bool(torch.isfinite(out[0]).all())
    assert bool(torch.isnan(out[1]).all())
    model = VectorSpinModel(N, D, couplings=0.01 * J[:, :, 0, 0] + 0.01 * J[:, :, 0, 0].T)
    phi = torch.vmap(lambda t: model.phi(t, x))(torch.tensor([[1.0], [-1.0]], dtype=torch.float64))
    assert torch.isnan(phi).tolist() == [False, True]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", MODULES)
def test_half_precision_is_a_solution_in_single_precision_rounded(name, dtype):
    module = made(name).to(dtype)
    x = fields(2).to(dtype)
    half = answer_and_gradients(module, module, x)
    assert all(part.dtype == dtype for part in half)
    # The same numbers, which are exact in single precision, without any rounding to half precision inside.
    single = made(name).to(dtype).float()
    full = answer_and_gradients(single, single, x.float())
    # Rounding the answer, and rounding it again on the way to the gradient of its square.
    for ours, exact in zip(half, full, strict=True):
        size = float(exact.abs().max())
        np.testing.assert_allclose(ours.float(), exact, rtol=0, atol=4 * torch.finfo(dtype).eps * size)


@pytest.mark.parametrize("name", MODULES)
def test_autocast_changes_nothing_inside(name):
    module = made(name).float()
    x = fields(2).float()

    def cast(x):
        # Backward passes are made outside, as PyTorch asks.
        with torch.autocast("cpu", torch.bfloat16):
            assert nn.Linear(D, D)(x).dtype == torch.bfloat16
            return module(x)

    pairs = zip(answer_and_gradients(cast, module, x), answer_and_gradients(module, module, x), strict=True)
    assert all(torch.equal(ours, exact) for ours, exact in pairs)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(nn.Linear(D, D)(x)).dtype == torch.float32


def test_free_energies_of_half_precision_are_single():
    model = VectorSpinModel(N, D, couplings=torch.zeros(N, N, dtype=torch.bfloat16))
    with torch.autocast("cpu", torch.bfloat16):
        found = model.free_energy(fields(2).bfloat16())
        inner = model.magnetizations(fields(2).float())
    assert found.dtype == inner.dtype == torch.float32


def test_checks_of_tensors_do_without_jax(monkeypatch):
    def refuse(*_):
        raise AssertionError("JAX was asked")

    monkeypatch.setattr(validate.jax.tree, "leaves", refuse)
    assert validate.tensor(fields(), "x").dtype == torch.float64
    assert validate.common_tensor_type(fields().float(), 1.0, None)[0] == torch.float32


def test_an_interaction_of_ones_own_is_solved_in_single_precision():
    # Weights for which the iteration converges, which not all do.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = attention.EquilibriumAttention(attention.SoftmaxCouplings(D), attention.FeedForward(D)).bfloat16()
    found = module.solve(fields(2).bfloat16())
    assert found.value.dtype == torch.bfloat16
    assert found.residual.dtype == torch.float32
    # Single precision: bfloat16 could not tell residuals below a hundredth.
    assert float(found.residual.max()) < 1e-3
    assert all(parameter.dtype == torch.bfloat16 for parameter in module.parameters())
    assert transforms.at_least_single(torch.float16) == torch.float32


@pytest.mark.parametrize("make", [attention.AdaptiveTAPAttention, VectorSpinAttention])
def test_modules_of_one_class_and_other_sizes_are_compiled_one_after_the_other(make):
    torch._dynamo.reset()
    for size in ((5, 8), (7, 4), (6, 5)):
        module, x = make(*size), torch.linspace(-1, 1, 2 * size[0] * size[1]).reshape(2, *size)
        compiled = torch.compile(module, backend="eager")
        torch.testing.assert_close(compiled(x), module(x))
    torch._dynamo.reset()
