"""The budget of parameters is counted right and spent as evenly as the architectures allow."""

import equinox as eqx
import jax
import pytest

from experiments.comparison import modules, tasks
from experiments.comparison.training import _network, _TorchNetwork
from experiments.digit_network import count_parameters

TASK = tasks.recall(num_pairs=2, num_keys=4, num_values=3, num_train=4, num_test=2)
TRAINED = {module.name: module for module in modules.MODULES}
COUNTED = TRAINED | {f"{row}, two layers": modules.stacked(row, 2, (2, 2)) for row in modules.ROWS}


@pytest.mark.parametrize("name", [name for name, module in COUNTED.items() if module.framework == "jax"])
def test_the_count_is_that_of_the_arrays_that_are_trained(name):
    net = eqx.filter_eval_shape(lambda: _network(COUNTED[name], TASK, 12, 0))
    leaves = [leaf for leaf in jax.tree.leaves(net) if isinstance(leaf, jax.ShapeDtypeStruct)]
    # beta, the one scalar, is held.
    assert sum(leaf.size for leaf in leaves if leaf.ndim) == modules.num_parameters(COUNTED[name], TASK, 12)


@pytest.mark.parametrize("name", [name for name, module in COUNTED.items() if module.framework == "torch"])
def test_the_count_has_tied_couplings_once_in_every_layer_and_self_couplings_never(name):
    # Four sites and three components, since tied couplings are told apart by their values.
    net = _TorchNetwork(COUNTED[name], TASK, 3, 0)
    outside = sum(parameter.numel() for parameter in net.parameters(recurse=False))
    assert outside + count_parameters(net.block) == modules.num_parameters(COUNTED[name], TASK, 3)


@pytest.mark.parametrize("task", [tasks.classify_digits(), tasks.recall(num_train=1)], ids=["digits", "recall"])
def test_no_module_has_a_tenth_more_or_fewer_parameters_than_vanilla(task):
    wanted = modules.num_parameters(modules.MODULES[0], task, modules.VANILLA_WIDTH)
    for module in modules.MODULES:
        dim = modules.width(module, task)
        count = modules.num_parameters(module, task, dim)
        assert dim % module.multiple == 0
        assert abs(count / wanted - 1) < 0.12, module.name
        for other in (dim - module.multiple, dim + module.multiple):
            assert abs(modules.num_parameters(module, task, other) - wanted) >= abs(count - wanted)
