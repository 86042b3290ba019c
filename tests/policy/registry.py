"""Good arguments of the core functions, by name: what ``test_policy`` spoils and ``test_batches`` stacks."""

import importlib
import inspect
from functools import cache

import jax
import numpy as np
import torch


def _random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


_J = 0.3 * _random(3, 3)
_SYMMETRIC = (_J + _J.T) * (1 - np.eye(3))
KEY = jax.random.key(0)
ISING = {
    "couplings": _J, "fields": 0.1 * _random(3), "beta": 0.7, "magnetizations": 0.1 * _random(3, seed=2),
    "previous": 0.1 * _random(3, seed=2), "spins": np.where(_random(2, 3, seed=1) > 0, 1.0, -1.0), "steps": 3,
    "key": KEY, "max_steps": 50, "delayed_correlations": _random(3, 3), "num_spins": 3, "mean": 1.0, "std": 0.1,
}  # fmt: skip
VECTOR = {
    "couplings": _J, "fields": 0.5 * _random(3, 4), "beta": 0.7, "magnetizations": 0.1 * _random(3, 4),
    "previous": 0.1 * _random(3, 4, seed=1), "previous_fields": 0.5 * _random(3, 4), "other": 0.5 * _random(3, 4),
    "max_steps": 50,
}  # fmt: skip
SPHERE = {
    "fields": _random(2, 4), "beta": 0.7, "magnetizations": 0.2 * _random(2, 4), "order": 1.5, "x": 2.0, "key": KEY,
}  # fmt: skip
RBM = {
    "visible": np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), "weights": 0.5 * _random(3, 2),
    "patterns": _random(4, 3), "queries": _random(2, 3, seed=1), "beta": 1.5, "energies": _random(8),
    "cumulant_generating_function": lambda t: t * t / 2,
}  # fmt: skip
BINARY = {"couplings": 0.5 * _SYMMETRIC, "fields": 0.3 * _random(3), "beta": 0.7, "tol": 1e-8, "max_steps": 50}
BLOCKS = {"couplings": 0.3 * _SYMMETRIC[:, :, None, None], "fields": 0.3 * _random(3, 1), "tol": 1e-8, "max_steps": 50}
FREE = {
    "h": 0.5 * _random(2, 4), "couplings": np.array([[0.0, 0.2], [0.2, 0.0]]), "beta": 0.7, "tol": 1e-10,
    "t0": np.full(2, 2.0), "direction": _random(2, 4), "max_steps": 50,
}  # fmt: skip

CORE = [
    ("ising.mean_field", "naive_step tap_step tap_solve averaged_step", ISING),
    ("ising.mean_field", "correlations delayed_correlations", ISING),
    ("ising.exact", "transition_matrix stationary_distribution magnetizations entropy_production", ISING),
    ("ising.stochastic", "step simulate", ISING),
    ("ising.sherrington_kirkpatrick", "sample_couplings", ISING),
    ("entropy_production.steady", "from_delayed_correlations", ISING),
    ("entropy_production.mean_field", "vector_mean_field", VECTOR),
    ("entropy_production.relaxation", "divergence", VECTOR),
    ("vector.mean_field", "flat_tap_step naive_step spread_step tap_step steady_state", VECTOR),
    ("sphere", "bessel_ratio covariance field_large_d log_partition magnetization", SPHERE),
    ("sphere", "magnetization_large_d sample", SPHERE),
    ("rbm.energies", "effective_energy", RBM),
    ("rbm.exact", "interaction_strength_by_order", RBM),
    ("rbm.mixture", "mixture_log_density mixture_weights modern_hopfield_energy posterior_mean responsibilities", RBM),
    ("rbm.mixture", "retrieve", RBM),
    ("adaptive_tap.exact", "log_partition magnetizations susceptibilities", BINARY),
    ("adaptive_tap.ising", "solve_ising solve_naive_ising solve_tap_ising", BINARY),
    ("adaptive_tap.vector", "solve_gaussian solve", BLOCKS),
    ("free_energy.exact", "free_energy log_partition magnetizations", FREE),
    (
        "free_energy.model.VectorSpinModel",
        "correlations free_energy internal_energy log_prob magnetizations specific_heat susceptibilities",
        FREE,
    ),
]
NAMES = {f"{module}.{name}": (module, name, table) for module, names, table in CORE for name in names.split()}


@cache
def case(full):
    """A core function and its good arguments."""
    module, name, table = NAMES[full]
    if module.endswith("VectorSpinModel"):
        from spinbook.free_energy import VectorSpinModel

        owner = VectorSpinModel(2, 4, 0.7, torch.tensor([[0.0, 0.2], [0.2, 0.0]], dtype=torch.float64))
    else:
        owner = importlib.import_module(f"spinbook.{module}")
    function = getattr(owner, name)
    good = {p: table[p] for p in inspect.signature(function).parameters if p in table}
    if full == "adaptive_tap.vector.solve":
        from spinbook.adaptive_tap import priors

        good["prior"] = priors.Binary()
    return function, good
