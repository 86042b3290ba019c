"""Leading axes are systems side by side: all at once they get what each gets alone, compiled or not."""

import itertools

import jax
import numpy as np
import pytest

from tests.policy import registry

# For each function the arguments with leading axes of their own: of two systems, of three, and of two again.
BATCHED = [
    ("adaptive_tap.exact", "log_partition magnetizations susceptibilities", "couplings fields beta"),
    ("adaptive_tap.ising", "solve_ising solve_naive_ising solve_tap_ising", "couplings fields"),
    ("adaptive_tap.vector", "solve solve_gaussian", "fields"),
    ("entropy_production.relaxation", "divergence", "fields other"),
    ("free_energy.exact", "free_energy log_partition magnetizations", "couplings h beta"),
    (
        "free_energy.model.VectorSpinModel",
        "correlations free_energy internal_energy log_prob magnetizations specific_heat susceptibilities",
        "h",
    ),
    ("ising.mean_field", "averaged_step naive_step tap_step", "magnetizations"),
    ("rbm.energies", "effective_energy", "visible"),
    ("rbm.exact", "interaction_strength_by_order", "energies"),
    ("rbm.mixture", "posterior_mean responsibilities retrieve", "queries"),
    ("sphere", "covariance log_partition magnetization", "fields"),
    ("rbm.mixture", "mixture_log_density modern_hopfield_energy", "visible"),
    ("vector.mean_field", "flat_tap_step naive_step spread_step tap_step", "magnetizations"),
]
CASES = [(f"{module}.{name}", named) for module, names, named in BATCHED for name in names.split()]


def floats(result):
    """The floating numbers of a result, NumPy's, with the axes that they have."""
    leaves = (np.asarray(leaf.detach() if hasattr(leaf, "detach") else leaf) for leaf in jax.tree.leaves(result))
    return [leaf for leaf in leaves if leaf.dtype.kind == "f"]


@pytest.mark.parametrize(("name", "named"), CASES, ids=[name for name, _ in CASES])
def test_leading_axes_are_a_batch(name, named):
    (function, good), names = registry.case(name), named.split()
    # Solvers go on until a neighbour that stops early would show.
    good = good | ({"tol": 1e-12} if "tol" in good else {})
    sizes = (2, 3, 2)[: len(names)]
    systems = [np.stack([(1 - 0.1 * k) * good[key] for k in range(n)]) for key, n in zip(names, sizes, strict=True)]

    def call(*arrays):
        return function(**good | dict(zip(names, arrays, strict=True)))

    # Axes of their own: each system of one argument meets each of the others; two axes where there is one argument.
    axes = max(len(names), 2)
    apart = [np.expand_dims(x, tuple(range(1, axes - k))) for k, x in enumerate(systems)]
    every = list(itertools.product(*systems))
    if name.startswith(("adaptive_tap", "free_energy")):
        alone = [np.stack(parts) for parts in zip(*(floats(call(*one)) for one in every), strict=True)]
    else:
        alone = floats(jax.jit(jax.vmap(call))(*map(np.stack, zip(*every, strict=True))))
        none = jax.eval_shape(call, apart[0][:0], *apart[1:])
        assert all(leaf.shape[0] == 0 for leaf in jax.tree.leaves(none))
    for ours, expected in zip(floats(call(*apart)), alone, strict=True):
        np.testing.assert_allclose(ours.reshape(expected.shape), expected, rtol=1e-9, atol=2e-11)
